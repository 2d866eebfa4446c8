//! A small MIME writer for script tests. It writes the given fields. Which fields a test can give, and their defaults,
//! is decided in `fixtures`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;

/// The length of a line of base64 (RFC 2045 section 6.8).
const BASE64_LINE_CHARS: usize = 76;

/// The contents of a message.
#[derive(Clone, Debug, Default)]
pub(super) struct MessageBuilder {
    /// Header fields in their order, without those about the content.
    pub(super) fields: Vec<(String, String)>,
    /// The plain text.
    pub(super) text: Option<Vec<u8>>,
    /// The HTML.
    pub(super) html: Option<Vec<u8>>,
    /// The attachments.
    pub(super) attachments: Vec<Attachment>,
}

/// An attachment.
#[derive(Clone, Debug)]
pub(super) struct Attachment {
    /// The file name.
    pub(super) filename: String,
    /// The media type, as `image/png`.
    pub(super) content_type: String,
    /// The bytes.
    pub(super) content: Vec<u8>,
}

impl MessageBuilder {
    /// Returns the message with CRLF line ends. Texts are written as 8bit, attachments in base64.
    pub(super) fn build(&self) -> Bytes {
        let mut message = Vec::new();
        for (name, value) in &self.fields {
            push_field(&mut message, name, value);
        }
        push_field(&mut message, "MIME-Version", "1.0");
        if self.attachments.is_empty() {
            self.write_texts(&mut message);
            return message.into();
        }
        let boundary = self.boundary("mixed");
        push_field(&mut message, "Content-Type", &format!("multipart/mixed; boundary=\"{boundary}\""));
        push_boundary(&mut message, &boundary);
        self.write_texts(&mut message);
        for attachment in &self.attachments {
            push_boundary(&mut message, &boundary);
            attachment.write(&mut message);
        }
        push_closing_boundary(&mut message, &boundary);
        message.into()
    }

    /// Writes one text as it is, or both as alternatives.
    fn write_texts(&self, message: &mut Vec<u8>) {
        let (text, html) = match (&self.text, &self.html) {
            (Some(text), Some(html)) => (text, html),
            (None, Some(html)) => return push_text_part(message, "html", html),
            (text, None) => return push_text_part(message, "plain", text.as_deref().unwrap_or_default()),
        };
        let boundary = self.boundary("alternative");
        push_field(message, "Content-Type", &format!("multipart/alternative; boundary=\"{boundary}\""));
        push_boundary(message, &boundary);
        push_text_part(message, "plain", text);
        push_boundary(message, &boundary);
        push_text_part(message, "html", html);
        push_closing_boundary(message, &boundary);
    }

    /// Returns a boundary that no text contains. Base64 cannot contain it.
    fn boundary(&self, kind: &str) -> String {
        let mut boundary = format!("=_{kind}");
        while [&self.text, &self.html].into_iter().flatten().any(|text| contains(text, &boundary)) {
            boundary.push('_');
        }
        boundary
    }
}

impl Attachment {
    fn write(&self, message: &mut Vec<u8>) {
        let name = self.filename.replace('\\', "\\\\").replace('"', "\\\"");
        push_field(message, "Content-Type", &self.content_type);
        push_field(message, "Content-Disposition", &format!("attachment; filename=\"{name}\""));
        push_field(message, "Content-Transfer-Encoding", "base64");
        message.extend_from_slice(b"\r\n");
        for line in STANDARD.encode(&self.content).as_bytes().chunks(BASE64_LINE_CHARS) {
            message.extend_from_slice(line);
            message.extend_from_slice(b"\r\n");
        }
    }
}

fn contains(text: &[u8], part: &str) -> bool {
    text.windows(part.len()).any(|window| window == part.as_bytes())
}

fn push_field(message: &mut Vec<u8>, name: &str, value: &str) {
    message.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
}

fn push_text_part(message: &mut Vec<u8>, subtype: &str, text: &[u8]) {
    push_field(message, "Content-Type", &format!("text/{subtype}; charset=utf-8"));
    push_field(message, "Content-Transfer-Encoding", "8bit");
    message.extend_from_slice(b"\r\n");
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let has_newline = line.ends_with(b"\n");
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        message.extend_from_slice(line.strip_suffix(b"\r").unwrap_or(line));
        if has_newline {
            message.extend_from_slice(b"\r\n");
        }
    }
}

fn push_boundary(message: &mut Vec<u8>, boundary: &str) {
    message.extend_from_slice(format!("\r\n--{boundary}\r\n").as_bytes());
}

fn push_closing_boundary(message: &mut Vec<u8>, boundary: &str) {
    message.extend_from_slice(format!("\r\n--{boundary}--\r\n").as_bytes());
}

#[cfg(test)]
mod tests {
    use restante_mail::mime::Mime;

    use super::*;

    #[test]
    fn written_message_can_be_parsed() {
        let builder = MessageBuilder {
            fields: vec![("Subject".to_owned(), "Grüße".to_owned())],
            text: Some("first\nsecond: =_alternative, --=_mixed_".into()),
            html: Some("<p>Hallö</p>".into()),
            attachments: vec![
                Attachment {
                    filename: "a \"cat\".png".to_owned(),
                    content_type: "image/png".to_owned(),
                    content: (0..=255).collect(),
                },
                Attachment { filename: "empty".to_owned(), content_type: "text/plain".to_owned(), content: vec![] },
            ],
        };
        let mime = Mime::parse(builder.build());
        assert_eq!(mime.defects(), vec![]);
        assert_eq!(mime.text(), "first\nsecond: =_alternative, --=_mixed_");
        assert_eq!(mime.html(), "<p>Hallö</p>");
        let attachments = mime.attachments();
        assert_eq!(attachments.len(), 2);
        assert_eq!(attachments[0].content_type, "image/png");
        assert_eq!(attachments[0].part.filename.as_deref(), Some("a \"cat\".png"));
        assert_eq!(attachments[0].content(), (0..=255).collect::<Vec<u8>>());
        assert!(attachments[1].content().is_empty());
    }

    #[test]
    fn message_has_only_the_needed_parts() {
        let written = |builder: &MessageBuilder| String::from_utf8(builder.build().to_vec()).unwrap();
        let plain = MessageBuilder { text: Some("one\ntwo\r\n".into()), ..MessageBuilder::default() };
        assert_eq!(
            written(&plain),
            "MIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\n\
             one\r\ntwo\r\n"
        );
        let html = MessageBuilder { html: Some("<p>".into()), ..MessageBuilder::default() };
        assert!(written(&html).contains("Content-Type: text/html; charset=utf-8"));
        assert!(!written(&html).contains("multipart"));
    }
}
