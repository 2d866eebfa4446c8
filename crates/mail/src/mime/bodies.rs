//! Classification of parts: which are the text, the HTML and the attachments. The rules are those that existing API
//! clients expect.

use super::part::{Disposition, Part};

/// The indices of the parts of a message by their use.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Bodies {
    /// The parts of the plain text, in order.
    pub(super) text: Vec<usize>,
    /// The HTML part.
    pub(super) html: Option<usize>,
    /// The files, in the order of the attachment list: inline parts, attachments, parts without a disposition, files
    /// inside of texts. An inline text with a name is in this list and in `text`.
    pub(super) attachments: Vec<usize>,
}

/// The use of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It only contains other parts.
    Multipart,
    /// It is the plain text, or a part of it.
    Text,
    /// It is the HTML.
    Html,
    /// It is an attachment and not displayed as a body. The value is its index in the list of attachments.
    Attachment(usize),
}

impl Bodies {
    /// Returns the number of attachments that are not inline.
    pub(super) fn attachment_count(&self, parts: &[Part]) -> usize {
        self.attachments.iter().filter(|&&index| !self.is_inline(parts, index)).count()
    }

    /// Returns the number of parts that are marked as attachments, and of those that are marked as inline. Only the
    /// Content-Disposition decides, except that a file of the type `application/octet-stream` is an attachment, and so is
    /// a message that is only a file. The structure of the message is not considered, unlike in [`Self::is_inline`].
    pub(super) fn disposition_counts(&self, parts: &[Part]) -> (usize, usize) {
        if let [only] = parts {
            let is_inline = only.disposition == Some(Disposition::Inline);
            let is_file = !self.attachments.is_empty();
            return (usize::from(is_file && !is_inline), usize::from(is_file && is_inline));
        }
        let files = || parts.iter().filter(|part| !part.is_multipart() && !part.is_in_text);
        let attached = files().filter(|part| part.is_attachment()).count();
        let inline = files().filter(|part| part.disposition == Some(Disposition::Inline)).count();
        (attached, inline)
    }

    /// Returns whether a part belongs to the HTML and is not a file of its own. It has a Content-ID, by which the HTML can
    /// refer to it (RFC 2392), and it is
    ///
    /// - in a multipart/related (RFC 2387), of a type that HTML embeds, and not marked as an attachment,
    /// - or an image in a multipart/mixed that is marked as inline. Some programs send images that way. Without HTML these
    ///   are files.
    ///
    /// Only the structure decides, not the HTML, because attachments are counted when a message arrives.
    pub(super) fn is_inline(&self, parts: &[Part], index: usize) -> bool {
        let part = &parts[index];
        let Some(parent) = part.parent.filter(|_| part.content_id.is_some()) else { return false };
        match parts[parent].content_type.as_str() {
            "multipart/related" => is_embeddable(part) && part.disposition != Some(Disposition::Attachment),
            "multipart/mixed" => self.html.is_some() && is_image(part) && part.disposition == Some(Disposition::Inline),
            _ => false,
        }
    }

    /// Returns the parts in the order of Inbucket's list of attachments: the inline parts, also those that are a body, then
    /// the attachments. A part that is both is in the list twice. The attachments that Inbucket does not list follow, so that
    /// they do not change the positions of the others.
    pub(super) fn inbucket_attachments(&self, parts: &[Part]) -> Vec<usize> {
        let root = &parts[0];
        let mut listed: Vec<usize> = if root.is_multipart() {
            let select = |is_listed: &dyn Fn(&Part) -> bool| {
                let is_listed = |&index: &usize| !parts[index].is_in_text && is_listed(&parts[index]);
                let mut selected: Vec<usize> = (0..parts.len()).filter(is_listed).collect();
                selected.sort_by_key(|&index| parts[index].depth);
                selected
            };
            let is_inline = |part: &Part| part.disposition == Some(Disposition::Inline) && !part.is_multipart();
            [select(&is_inline), select(&Part::is_attachment)].concat()
        } else if root.is_attachment() || !matches!(root.content_type.as_str(), "text/plain" | "text/html") {
            vec![0]
        } else {
            Vec::new()
        };
        let others: Vec<usize> = self.attachments.iter().copied().filter(|index| !listed.contains(index)).collect();
        listed.extend(others);
        listed
    }

    /// Returns the role of each part.
    pub(super) fn roles(&self, part_count: usize) -> Vec<Role> {
        let mut roles = vec![Role::Multipart; part_count];
        let text = self.text.iter().map(|&part| (part, Role::Text));
        let html = self.html.iter().map(|&part| (part, Role::Html));
        let attachments = self.attachments.iter().enumerate().map(|(index, &part)| (part, Role::Attachment(index)));
        for (part, role) in attachments.chain(text).chain(html) {
            roles[part] = role;
        }
        roles
    }
}

/// Classifies the parts of a message.
pub(super) fn classify(source: &[u8], parts: &[Part]) -> Bodies {
    if let [only] = parts {
        return classify_single_part(only);
    }
    let alternatives = outermost_alternatives(parts);
    let displayable = displayable_parts(parts, &alternatives);
    let mut bodies = Bodies {
        text: text_parts(parts, &displayable, &alternatives),
        html: displayable.iter().copied().find(|&index| is_html(&parts[index])),
        attachments: Vec::new(),
    };
    let mut lists: [Vec<usize>; 4] = Default::default();
    let mut empty = Vec::new();
    for (index, part) in parts.iter().enumerate() {
        let is_body = bodies.html == Some(index) || bodies.text.binary_search(&index).is_ok();
        let is_main = displayable.first() == Some(&index) || alternatives[index].is_some();
        if part.is_multipart() || is_body && !is_also_attachment(part, is_main) {
            continue;
        }
        // An empty text without a name is not offered as a file. As a part of the text, it adds nothing.
        if part.is_text() && part.disposition.is_none() && part.filename.is_none() && is_blank(source, part) {
            empty.push(index);
            continue;
        }
        let list = match part.disposition {
            _ if part.is_in_text => 3,
            _ if part.parent.is_none() => 1,
            Some(Disposition::Inline) => 0,
            _ if part.is_attachment() => 1,
            _ => 2,
        };
        lists[list].push(index);
    }
    for list in &mut lists[..3] {
        // Outer parts come first. In most messages the parts are already in this order.
        list.sort_by_key(|&index| parts[index].depth);
    }
    bodies.attachments = lists.concat();
    if !empty.is_empty() {
        bodies.text.extend(empty);
        bodies.text.sort_unstable();
    }
    bodies
}

/// Classifies the part of a message that has only one. This is the common case.
fn classify_single_part(part: &Part) -> Bodies {
    let mut bodies = Bodies::default();
    if part.is_multipart() {
        return bodies;
    }
    if part.is_attachment() || !is_html(part) && !is_plain(part) {
        bodies.attachments.push(0);
    } else if is_html(part) {
        bodies.html = Some(0);
    } else {
        bodies.text.push(0);
    }
    bodies
}

/// Returns whether a body is also an attachment: an inline part with a name, or a named text other than the main one.
fn is_also_attachment(part: &Part, is_main: bool) -> bool {
    part.parent.is_some()
        && part.filename.is_some()
        && (part.disposition == Some(Disposition::Inline) || is_plain(part) && !is_main)
}

fn is_blank(source: &[u8], part: &Part) -> bool {
    source[part.body.clone()].trim_ascii().is_empty()
}

/// Returns the texts and HTML documents that can be displayed. HTML with a file name is an attachment, unless it is the
/// first of all or of its multipart, or an alternative form of a text.
fn displayable_parts(parts: &[Part], alternatives: &[Option<usize>]) -> Vec<usize> {
    let is_readable = |part: &Part| (is_plain(part) || is_html(part)) && !part.is_attachment();
    let Some(first) = parts.iter().position(is_readable) else { return Vec::new() };
    let is_first = |index: usize| index == first || parts[index].parent == Some(index - 1);
    let is_displayable = |&index: &usize| {
        let part = &parts[index];
        let is_named_html = part.filename.is_some() && is_html(part);
        is_readable(part) && (!is_named_html || is_first(index) || alternatives[index].is_some())
    };
    (first..parts.len()).filter(is_displayable).collect()
}

/// Returns whether HTML can embed a part of this type. Others, such as PDF, can only be opened.
fn is_embeddable(part: &Part) -> bool {
    let is_media = ["audio/", "video/", "font/"].iter().any(|start| part.content_type.starts_with(start));
    is_image(part) || is_media || part.content_type == "text/css"
}

fn is_image(part: &Part) -> bool {
    part.content_type.starts_with("image/")
}

fn is_html(part: &Part) -> bool {
    part.content_type == "text/html"
}

/// Returns whether the part is plain text. The only part of a message counts as plain text if it is another kind of
/// text, such as Markdown or a calendar.
fn is_plain(part: &Part) -> bool {
    part.content_type == "text/plain" || part.parent.is_none() && part.is_text() && !is_html(part)
}

/// Returns the parts of the plain text: the first text of each multipart/alternative, and all other texts.
fn text_parts(parts: &[Part], displayable: &[usize], alternatives: &[Option<usize>]) -> Vec<usize> {
    let mut texts = Vec::new();
    let mut last = None;
    for &index in displayable.iter().filter(|&&index| is_plain(&parts[index])) {
        // Parts are in depth-first order, so the parts of one alternative are adjacent.
        if alternatives[index].is_some() && alternatives[index] == last {
            continue;
        }
        last = alternatives[index];
        texts.push(index);
    }
    texts
}

/// Returns for each part the outermost multipart/alternative that contains it.
fn outermost_alternatives(parts: &[Part]) -> Vec<Option<usize>> {
    let mut found: Vec<Option<usize>> = Vec::with_capacity(parts.len());
    for part in parts {
        // A parent precedes its children.
        let outermost = part.parent.and_then(|parent| {
            let is_alternative = parts[parent].content_type == "multipart/alternative";
            found[parent].or(is_alternative.then_some(parent))
        });
        found.push(outermost);
    }
    found
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;
    use crate::mime::split::split;

    /// Builds a message from one line per part: its depth as indentation, its type and its disposition.
    fn message(outline: &str) -> String {
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
            } else if !disposition.contains("empty") {
                source += "content";
            }
        }
        source
    }

    #[test]
    fn classifies_parts() {
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
                &[2, 4, 3, 1],
            ),
            ("multipart/mixed\n text/plain\n message/rfc822\n message/rfc822 inline", &[1], None, &[3, 2]),
            ("text/plain inline; filename=a.txt", &[0], None, &[]),
            ("text/html;name=a.html", &[], Some(0), &[]),
            (
                "multipart/mixed\n text/plain\n text/plain;name=a.log\n text/plain inline; filename=b.log\n text/plain inline",
                &[1, 2, 3, 4],
                None,
                &[3, 2],
            ),
            ("multipart/mixed\n text/plain\n text/html inline; filename=report.html", &[1], None, &[2]),
            ("multipart/mixed\n text/plain\n text/html;name=report.html\n text/html", &[1], Some(3), &[2]),
            ("multipart/mixed\n text/plain;name=a.txt\n text/plain;name=b.txt\n text/html", &[1, 2], Some(3), &[2]),
            ("multipart/mixed\n image/png\n text/html;name=a.html\n text/plain;name=b.txt", &[3], Some(2), &[1, 3]),
            ("multipart/mixed\n text/html;name=a.html\n image/png", &[], Some(1), &[2]),
            ("multipart/mixed\n text/html inline; filename=a.html\n image/png", &[], Some(1), &[1, 2]),
            (
                "multipart/mixed\n text/plain\n multipart/related\n  text/html;name=a.html\n  image/png",
                &[1],
                Some(3),
                &[4],
            ),
            (
                "multipart/mixed\n multipart/related\n  text/html\n  image/a inline\n  image/b attachment\n image/c inline\n image/d attachment",
                &[],
                Some(2),
                &[5, 3, 6, 4],
            ),
            (
                "multipart/mixed\n multipart/mixed\n  image/a attachment\n  multipart/mixed\n   image/b attachment\n image/c attachment",
                &[],
                None,
                &[5, 2, 4],
            ),
            ("multipart/alternative\n text/plain x-empty\n text/plain", &[2], None, &[1]),
            (
                "multipart/mixed\n multipart/alternative\n  text/plain;name=a.txt\n  text/html;name=a.html\n text/html;name=b.html",
                &[2],
                Some(3),
                &[4],
            ),
        ];
        for (outline, text, html, attachments) in table {
            let source = bytes::Bytes::from(message(outline));
            let bodies = classify(&source, &split(&source).parts);
            let expected = Bodies { text: text.to_vec(), html: *html, attachments: attachments.to_vec() };
            assert_eq!(bodies, expected, "{outline}");
        }
    }

    #[test]
    fn positions_in_the_list_of_inbucket() {
        let table: &[(&str, &[usize])] = &[
            ("text/plain", &[]),
            ("text/plain inline; filename=a.txt", &[]),
            ("text/plain attachment", &[0]),
            ("text/calendar", &[0]),
            ("multipart/mixed\n text/plain inline\n image/png attachment", &[1, 2]),
            ("multipart/mixed\n text/plain\n image/png attachment", &[2]),
            (
                "multipart/mixed\n text/html inline\n image/png\n image/gif attachment\n image/jpeg inline",
                &[1, 4, 3, 2],
            ),
            ("multipart/mixed\n text/plain inline; filename=a.txt\n application/pdf attachment", &[1, 2]),
            ("multipart/mixed\n text/plain\n application/octet-stream inline\n image/png attachment", &[2, 2, 3]),
            (
                "multipart/mixed\n multipart/alternative inline\n  text/plain inline\n  text/html inline\n image/png inline",
                &[4, 2, 3],
            ),
            ("multipart/mixed\n text/plain\n multipart/mixed attachment\n  image/png attachment", &[2, 3]),
        ];
        for (outline, expected) in table {
            let source = bytes::Bytes::from(message(outline));
            let parts = split(&source).parts;
            let bodies = classify(&source, &parts);
            assert_eq!(bodies.inbucket_attachments(&parts), *expected, "{outline}");
        }
    }

    #[test]
    fn parts_of_the_html_are_inline() {
        let id = "\nContent-ID: <a@x>";
        let table = [
            ("multipart/related", format!("image/png{id}"), true),
            ("multipart/related", format!("image/png{id}\nContent-Disposition: inline; filename=a.png"), true),
            ("multipart/related", format!("IMAGE/SVG+XML{id}"), true),
            ("multipart/related", format!("audio/mpeg{id}"), true),
            ("multipart/related", format!("video/mp4{id}"), true),
            ("multipart/related", format!("font/woff2{id}"), true),
            ("multipart/related", format!("text/css{id}"), true),
            ("multipart/related", format!("text/csv{id}"), false),
            ("multipart/related", format!("application/octet-stream{id}"), false),
            ("multipart/related", format!("application/pdf{id}\nContent-Disposition: inline; filename=a.pdf"), false),
            ("multipart/related", format!("image/png{id}\nContent-Disposition: attachment"), false),
            ("multipart/related", format!("image/png{id}\nContent-Disposition: x-other"), false),
            ("multipart/related", "image/png".to_owned(), false),
            ("multipart/related", "image/png\nContent-Disposition: inline".to_owned(), false),
            ("multipart/mixed", format!("image/png{id}"), false),
            ("multipart/mixed", format!("image/png{id}\nContent-Disposition: inline; filename=a.png"), true),
            ("multipart/mixed", format!("image/png{id}\nContent-Disposition: attachment"), false),
            ("multipart/mixed", "image/png\nContent-Disposition: inline".to_owned(), false),
            ("multipart/mixed", format!("application/pdf{id}\nContent-Disposition: inline"), false),
            ("multipart/mixed", format!("video/mp4{id}\nContent-Disposition: inline"), false),
            ("multipart/alternative", format!("image/png{id}\nContent-Disposition: inline"), false),
        ];
        for (kind, part, expected) in table {
            assert_eq!(is_second_part_inline(kind, "text/html", &part), expected, "{kind} {part}");
        }
        let image = format!("image/png{id}\nContent-Disposition: inline");
        assert!(is_second_part_inline("multipart/related", "text/plain", &image));
        assert!(!is_second_part_inline("multipart/mixed", "text/plain", &image), "no HTML refers to it");
    }

    #[test]
    fn dispositions_are_counted() {
        let table = [
            ("text/plain", (0, 0)),
            ("text/plain inline", (0, 0)),
            ("text/plain attachment", (1, 0)),
            ("application/pdf", (1, 0)),
            ("application/pdf inline", (0, 1)),
            ("multipart/mixed\n text/plain inline\n image/png inline\n image/png attachment", (1, 2)),
            ("multipart/mixed\n text/plain\n image/png\n application/octet-stream", (1, 0)),
            ("multipart/related\n text/html\n image/png inline\n application/octet-stream inline", (1, 2)),
        ];
        for (outline, expected) in table {
            let source = bytes::Bytes::from(message(outline));
            let parts = split(&source).parts;
            assert_eq!(classify(&source, &parts).disposition_counts(&parts), expected, "{outline}");
        }
    }

    /// Returns whether the second part of a message is inline. The first part is a text of type `first`.
    fn is_second_part_inline(kind: &str, first: &str, second: &str) -> bool {
        let source = format!(
            "Content-Type: {kind}; boundary=b\n\n--b\nContent-Type: {first}\n\n<p>\n--b\nContent-Type: {second}\n\nx\n--b--\n"
        );
        let parts = split(&source.clone().into()).parts;
        let bodies = classify(source.as_bytes(), &parts);
        assert_eq!(bodies.attachments, [2], "{source}");
        let is_inline = bodies.is_inline(&parts, 2);
        assert_eq!(bodies.attachment_count(&parts), usize::from(!is_inline), "{source}");
        is_inline
    }

    #[test]
    fn assigns_a_role_to_every_part() {
        let outline =
            "multipart/mixed\n multipart/alternative\n  text/plain\n  text/html\n image/png\n image/gif inline";
        let source = bytes::Bytes::from(message(outline));
        let parts = split(&source).parts;
        let roles = classify(&source, &parts).roles(parts.len());
        let (first, second) = (Role::Attachment(0), Role::Attachment(1));
        assert_eq!(roles, [Role::Multipart, Role::Multipart, Role::Text, Role::Html, second, first]);
    }
}
