//! Which parts of a mail are its text, its HTML and its attachments. The rules are those that existing clients of the
//! interface are used to.

use super::part::{Disposition, Part};

/// The parts of a mail by what they are for, as indices.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Bodies {
    /// The parts whose texts make up the plain text, in order.
    pub(super) text: Vec<usize>,
    /// The HTML.
    pub(super) html: Option<usize>,
    /// Everything else, in the order of the attachment list: inline parts, attachments, and what says nothing.
    pub(super) attachments: Vec<usize>,
}

/// What a part is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It only holds other parts.
    Multipart,
    /// It is the plain text, or a piece of it.
    Text,
    /// It is the HTML.
    Html,
    /// It is the attachment at this place of the list.
    Attachment(usize),
}

impl Bodies {
    /// The role of each of the mail's parts, of which there are so many.
    pub(super) fn roles(&self, parts: usize) -> Vec<Role> {
        let mut roles = vec![Role::Multipart; parts];
        let text = self.text.iter().map(|&part| (part, Role::Text));
        let html = self.html.iter().map(|&part| (part, Role::Html));
        let attachments = self.attachments.iter().enumerate().map(|(place, &part)| (part, Role::Attachment(place)));
        for (part, role) in text.chain(html).chain(attachments) {
            roles[part] = role;
        }
        roles
    }
}

/// Sorts the parts of a mail.
pub(super) fn sort(parts: &[Part]) -> Bodies {
    let alternatives = outermost_alternatives(parts);
    let shown = shown(parts, &alternatives);
    let mut bodies = Bodies {
        text: texts(parts, &shown, &alternatives),
        html: shown.iter().copied().find(|&index| is_html(&parts[index])),
        attachments: Vec::new(),
    };
    let (mut inline, mut attached, mut silent) = (Vec::new(), Vec::new(), Vec::new());
    for (index, part) in parts.iter().enumerate() {
        if part.is_multipart() || bodies.html == Some(index) || bodies.text.binary_search(&index).is_ok() {
            continue;
        }
        let list = if part.is_attachment() || part.parent.is_none() {
            &mut attached
        } else if part.disposition == Some(Disposition::Inline) {
            &mut inline
        } else {
            &mut silent
        };
        list.push(index);
    }
    bodies.attachments = [inline, attached, silent].concat();
    bodies
}

/// The texts and HTML documents that may be shown. One with a file name is a file that came with the mail, unless it is
/// the first of all, or another form of the first.
fn shown(parts: &[Part], alternatives: &[Option<usize>]) -> Vec<usize> {
    let readable = |part: &Part| (is_plain(part) || is_html(part)) && !part.is_attachment();
    let Some(first) = parts.iter().position(readable) else { return Vec::new() };
    let with_first =
        |index: usize| index == first || alternatives[index].is_some() && alternatives[index] == alternatives[first];
    let shown = |&index: &usize| readable(&parts[index]) && (parts[index].filename.is_none() || with_first(index));
    (first..parts.len()).filter(shown).collect()
}

fn is_html(part: &Part) -> bool {
    part.content_type == "text/html"
}

/// A mail that is a single text of another kind (Markdown, a calendar) is read as it is.
fn is_plain(part: &Part) -> bool {
    part.content_type == "text/plain" || part.parent.is_none() && part.is_text() && !is_html(part)
}

/// The parts of the plain text: of each multipart/alternative the first text, elsewhere all of them.
fn texts(parts: &[Part], shown: &[usize], alternatives: &[Option<usize>]) -> Vec<usize> {
    let mut texts = Vec::new();
    let mut last = None;
    for &index in shown.iter().filter(|&&index| is_plain(&parts[index])) {
        // Parts are in depth-first order, so those of one alternative follow each other.
        if alternatives[index].is_some() && alternatives[index] == last {
            continue;
        }
        last = alternatives[index];
        texts.push(index);
    }
    texts
}

/// For each part the outermost multipart/alternative that it is in.
fn outermost_alternatives(parts: &[Part]) -> Vec<Option<usize>> {
    let mut found: Vec<Option<usize>> = Vec::with_capacity(parts.len());
    for part in parts {
        // A parent stands before its children.
        let around = part.parent.and_then(|parent| {
            let own = parts[parent].content_type == "multipart/alternative";
            found[parent].or(own.then_some(parent))
        });
        found.push(around);
    }
    found
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;
    use crate::mime::split::split;

    /// A mail of one line per part: its depth as indentation, its type and its disposition.
    fn mail(outline: &str) -> String {
        let mut source = String::new();
        let mut open: Vec<usize> = Vec::new();
        for (n, line) in outline.lines().enumerate() {
            let depth = line.len() - line.trim_start().len();
            open.truncate(depth);
            if let Some(parent) = open.last() {
                write!(source, "\n--b{parent}x\n").ok();
            }
            let (kind, disposition) = line.trim().split_once(' ').unwrap_or((line.trim(), ""));
            writeln!(source, "Content-Type: {kind}; boundary=b{n}x").ok();
            if !disposition.is_empty() {
                writeln!(source, "Content-Disposition: {disposition}").ok();
            }
            source += "\n";
            if kind.starts_with("multipart/") {
                open.push(n);
            }
        }
        source
    }

    #[test]
    fn which_part_is_what() {
        type Row = (&'static str, &'static [usize], Option<usize>, &'static [usize]);
        let table: &[Row] = &[
            ("text/plain", &[0], None, &[]),
            ("text/html", &[], Some(0), &[]),
            ("text/plain attachment", &[], None, &[0]),
            ("text/markdown", &[0], None, &[]),
            ("application/pdf", &[], None, &[0]),
            ("message/rfc822", &[], None, &[0]),
            ("multipart/alternative\n text/plain\n text/html\n text/calendar", &[1], Some(2), &[3]),
            ("multipart/alternative\n text/plain attachment\n text/plain\n text/plain", &[2], None, &[1, 3]),
            ("multipart/mixed\n text/plain\n image/png\n text/plain inline", &[1, 3], None, &[2]),
            (
                "multipart/mixed\n multipart/alternative\n  text/plain\n  text/html\n text/plain\n text/html",
                &[2, 4],
                Some(3),
                &[5],
            ),
            (
                "multipart/related\n multipart/alternative\n  text/plain\n  text/html\n image/png\n image/gif inline",
                &[2],
                Some(3),
                &[5, 4],
            ),
            (
                "multipart/mixed\n image/a\n application/octet-stream inline\n image/b attachment\n image/c inline\n text/html inline",
                &[],
                Some(5),
                &[4, 2, 3, 1],
            ),
            ("multipart/mixed\n text/plain\n message/rfc822\n message/rfc822 inline", &[1], None, &[3, 2]),
            ("text/plain inline; filename=a.txt", &[0], None, &[]),
            ("text/html;name=a.html", &[], Some(0), &[]),
            (
                "multipart/mixed\n text/plain\n text/plain;name=a.log\n text/plain inline; filename=b.log\n text/plain inline",
                &[1, 4],
                None,
                &[3, 2],
            ),
            ("multipart/mixed\n text/plain\n text/html inline; filename=report.html", &[1], None, &[2]),
            ("multipart/mixed\n text/plain\n text/html;name=report.html\n text/html", &[1], Some(3), &[2]),
            ("multipart/mixed\n text/plain;name=a.txt\n text/plain;name=b.txt\n text/html", &[1], Some(3), &[2]),
            ("multipart/mixed\n image/png\n text/html;name=a.html\n text/plain;name=b.txt", &[], Some(2), &[1, 3]),
            (
                "multipart/mixed\n multipart/alternative\n  text/plain;name=a.txt\n  text/html;name=a.html\n text/html;name=b.html",
                &[2],
                Some(3),
                &[4],
            ),
        ];
        for (outline, text, html, attachments) in table {
            let source = bytes::Bytes::from(mail(outline));
            let bodies = sort(&split(&source).parts);
            let expected = Bodies { text: text.to_vec(), html: *html, attachments: attachments.to_vec() };
            assert_eq!(bodies, expected, "{outline}");
        }
    }

    #[test]
    fn every_part_has_a_role() {
        let outline =
            "multipart/mixed\n multipart/alternative\n  text/plain\n  text/html\n image/png\n image/gif inline";
        let source = bytes::Bytes::from(mail(outline));
        let parts = split(&source).parts;
        let roles = sort(&parts).roles(parts.len());
        let (first, second) = (Role::Attachment(0), Role::Attachment(1));
        assert_eq!(roles, [Role::Multipart, Role::Multipart, Role::Text, Role::Html, second, first]);
    }
}
