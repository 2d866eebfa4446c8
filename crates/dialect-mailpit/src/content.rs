//! The texts and the files of a message, selected as Mailpit selects them: by the type and the disposition of each part
//! alone. Our own API classifies parts differently.

use restante_mail::mime::{Disposition, Mime, Part, inbucket_html_as_text};

const PLAIN: &str = "text/plain";
const HTML: &str = "text/html";

/// The separator between two texts of one message.
const TEXT_SEPARATOR: &str = "\n--\n";

/// The parts of a message that are files, as indices.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Files {
    /// The parts that are marked as inline, then those of other types without a disposition.
    pub(crate) inline: Vec<usize>,
    /// The parts that are marked as attachments or contain arbitrary bytes.
    pub(crate) attachments: Vec<usize>,
}

impl Files {
    /// Returns the files of a message, outer parts first. A part can be in both lists.
    pub(crate) fn of(mime: &Mime) -> Self {
        let parts = mime.parts();
        if let [only] = parts {
            return Self::of_single_part(only);
        }
        let is_leaf =
            |part: &Part| !part.is_multipart() && part.parent.is_none_or(|parent| parts[parent].is_multipart());
        // Files inside of texts are not listed: the text contains them.
        let mut by_depth: Vec<usize> = (0..parts.len()).filter(|&index| is_leaf(&parts[index])).collect();
        by_depth.sort_by_key(|&index| parts[index].depth);
        let select = |is_selected: &dyn Fn(&Part) -> bool| {
            by_depth.iter().copied().filter(|&index| is_selected(&parts[index])).collect::<Vec<usize>>()
        };
        let mut inline = select(&|part| part.disposition == Some(Disposition::Inline));
        inline.extend(select(&|part| part.disposition.is_none() && !part.is_attachment() && !is_body_type(part)));
        Self { inline, attachments: select(&Part::is_attachment) }
    }

    fn of_single_part(part: &Part) -> Self {
        if part.is_multipart() || is_body_type(part) && part.disposition != Some(Disposition::Attachment) {
            Self::default()
        } else if part.disposition == Some(Disposition::Inline) {
            Self { inline: vec![0], ..Self::default() }
        } else {
            Self { attachments: vec![0], ..Self::default() }
        }
    }

    /// Returns the index of the part with this id, if it is a file.
    pub(crate) fn find(mime: &Mime, id: &str) -> Option<usize> {
        let (files, ids) = (Self::of(mime), part_ids(mime));
        files.inline.into_iter().chain(files.attachments).find(|&index| ids[index] == id)
    }
}

/// Returns the id of each part: its position in the message, such as `1.2` for the second part of the first part. The id of
/// the root is `0`. Other multiparts have a last component of zero, and no part of a multipart has its id.
pub(crate) fn part_ids(mime: &Mime) -> Vec<String> {
    // The ids without the last component of multiparts. A parent precedes its children.
    let mut positions: Vec<String> = Vec::new();
    for part in mime.parts() {
        positions.push(match part.parent {
            None => String::new(),
            Some(0) => part.number.to_string(),
            Some(parent) => format!("{}.{}", positions[parent], part.number),
        });
    }
    let id = |(part, position): (&Part, String)| match part.parent {
        None => "0".to_owned(),
        Some(_) if part.is_multipart() => position + ".0",
        Some(_) => position,
    };
    mime.parts().iter().zip(positions).map(id).collect()
}

/// Returns the name under which a part is listed: its file name, or its Content-ID. A part without either is not listed.
pub(crate) fn listed_name(part: &Part) -> Option<&str> {
    part.filename.as_deref().or(part.content_id.as_deref())
}

/// Returns the HTML of a message as it was sent, with its line ends. Empty if there is none.
pub(crate) fn html(mime: &Mime) -> String {
    mime.parts().iter().find(|part| is_body(part, HTML)).map(|part| mime.text_as_sent(part)).unwrap_or_default()
}

/// Returns the text of a message as it was sent, with its line ends. If there is none, it is made from the HTML.
pub(crate) fn text(mime: &Mime, html: &str) -> String {
    let mut texts: Vec<&Part> = mime.parts().iter().filter(|part| is_body(part, PLAIN)).collect();
    if mime.root().content_type == "multipart/alternative" {
        // The first one of the outermost ones.
        texts = texts.into_iter().min_by_key(|part| part.depth).into_iter().collect();
    }
    let text = texts.into_iter().map(|part| mime.text_as_sent(part)).collect::<Vec<_>>().join(TEXT_SEPARATOR);
    if text.is_empty() { inbucket_html_as_text(html) } else { text }
}

fn is_body(part: &Part, content_type: &str) -> bool {
    part.content_type == content_type && part.disposition != Some(Disposition::Attachment)
}

/// Returns whether the part has the type of a body of a message.
fn is_body_type(part: &Part) -> bool {
    part.content_type == PLAIN || part.content_type == HTML
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parses a message with these parts, each of which starts with its type.
    fn mixed(root: &str, parts: &[&str]) -> Mime {
        let parts: String = parts.iter().map(|part| ["--b\r\nContent-Type: ", part, "\r\n"].concat()).collect();
        Mime::parse(format!("Content-Type: {root}; boundary=b\r\n\r\n{parts}--b--\r\n").into())
    }

    #[test]
    fn type_and_disposition_select_files() {
        let table: &[(&str, &[usize], &[usize])] = &[
            ("text/plain\r\n\r\nx", &[], &[]),
            ("text/html; name=a.html\r\n\r\nx", &[], &[]),
            ("text/plain; name=a.txt\r\nContent-Disposition: inline\r\n\r\nx", &[1], &[]),
            ("text/plain\r\nContent-Disposition: attachment\r\n\r\nx", &[], &[1]),
            ("text/calendar\r\n\r\nx", &[1], &[]),
            ("image/png\r\n\r\nx", &[1], &[]),
            ("image/png\r\nContent-Disposition: inline\r\n\r\nx", &[1], &[]),
            ("image/png\r\nContent-Disposition: x-other\r\n\r\nx", &[], &[1]),
            ("message/rfc822\r\n\r\nSubject: x\r\n\r\nx", &[1], &[]),
            ("application/octet-stream\r\n\r\nx", &[], &[1]),
            ("application/octet-stream\r\nContent-Disposition: inline\r\n\r\nx", &[1], &[1]),
        ];
        for (part, inline, attachments) in table {
            let expected = Files { inline: inline.to_vec(), attachments: attachments.to_vec() };
            assert_eq!(Files::of(&mixed("multipart/mixed", &[part])), expected, "{part}");
        }
        let single: &[(&str, &[usize], &[usize])] = &[
            ("text/plain", &[], &[]),
            ("text/html; name=a.html\r\nContent-Disposition: inline", &[], &[]),
            ("text/html\r\nContent-Disposition: attachment", &[], &[0]),
            ("text/calendar", &[], &[0]),
            ("application/pdf\r\nContent-Disposition: inline", &[0], &[]),
        ];
        for (header, inline, attachments) in single {
            let expected = Files { inline: inline.to_vec(), attachments: attachments.to_vec() };
            let mime = Mime::parse(format!("Content-Type: {header}\r\n\r\nx\r\n").into());
            assert_eq!(Files::of(&mime), expected, "{header}");
        }
    }

    #[test]
    fn ids_are_positions() {
        let inner = "multipart/related; boundary=i\r\n\r\n--i\r\n\r\none\r\n--i\r\nContent-Type: image/png\r\n\r\nx\r\n--i--\r\n";
        let mime = mixed("multipart/mixed", &["text/plain\r\n\r\nzero", inner, "image/gif\r\n\r\nx"]);
        assert_eq!(part_ids(&mime), ["0", "1", "2.0", "2.1", "2.2", "3"]);
        assert_eq!((Files::find(&mime, "2.2"), Files::find(&mime, "3")), (Some(4), Some(5)));
        assert_eq!([Files::find(&mime, "1"), Files::find(&mime, "2.0"), Files::find(&mime, "9")], [None; 3]);
        assert_eq!(part_ids(&Mime::parse("Content-Type: image/png\r\n\r\nx".into())), ["0"]);
    }

    #[test]
    fn texts_keep_their_line_ends() {
        let parts = ["text/plain\r\n\r\none\r\n", "text/html\r\n\r\n<p>two\r\n", "text/plain\r\n\r\nthree"];
        let mime = mixed("multipart/mixed", &parts);
        assert_eq!(text(&mime, &html(&mime)), "one\r\n\n--\nthree");
        assert_eq!(html(&mime), "<p>two\r\n");
        let mime = mixed("multipart/alternative", &parts);
        assert_eq!(text(&mime, &html(&mime)), "one\r\n");
        let mime = Mime::parse("Content-Type: text/html\r\n\r\n<h1>one</h1>\r\n".into());
        assert_eq!(
            (text(&mime, &html(&mime)), html(&mime)),
            ("***\none\n***".to_owned(), "<h1>one</h1>\r\n".to_owned())
        );
        let mime = Mime::parse("\r\nbegin 644 a\r\n#86)C\r\n`\r\nend\r\n".into());
        assert_eq!(
            (text(&mime, ""), Files::of(&mime)),
            ("begin 644 a\r\n#86)C\r\n`\r\nend\r\n".to_owned(), Files::default())
        );
        let mime = Mime::parse("Content-Type: text/calendar\r\n\r\nx\r\n".into());
        assert_eq!((text(&mime, &html(&mime)), html(&mime)), (String::new(), String::new()));
    }
}
