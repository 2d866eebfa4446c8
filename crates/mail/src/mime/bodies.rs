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

/// Sorts the parts of a mail.
pub(super) fn sort(parts: &[Part]) -> Bodies {
    let mut bodies = Bodies {
        text: texts(parts),
        html: parts.iter().position(|part| part.content_type == "text/html" && !part.is_attachment()),
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

/// The parts of the plain text: of each multipart/alternative the first text, elsewhere all of them.
fn texts(parts: &[Part]) -> Vec<usize> {
    let alternatives = outermost_alternatives(parts);
    let mut texts = Vec::new();
    let mut last = None;
    for (index, part) in parts.iter().enumerate() {
        // A mail that is a single text of another kind (Markdown, a calendar) is read as it is.
        let plain = part.content_type == "text/plain"
            || part.parent.is_none() && part.is_text() && part.content_type != "text/html";
        if !plain || part.is_attachment() {
            continue;
        }
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
        ];
        for (outline, text, html, attachments) in table {
            let source = bytes::Bytes::from(mail(outline));
            let bodies = sort(&split(&source).parts);
            let expected = Bodies { text: text.to_vec(), html: *html, attachments: attachments.to_vec() };
            assert_eq!(bodies, expected, "{outline}");
        }
    }
}
