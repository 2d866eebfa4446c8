//! Messages for the tests. Contents are encoded in base64, so any bytes are preserved.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

/// A message that is composed of the given parts.
#[derive(Clone, Copy, Default)]
pub(crate) struct Mail<'a> {
    /// The From field; Ann if empty.
    pub(crate) from: &'a str,
    /// The To field; James if empty.
    pub(crate) to: &'a str,
    pub(crate) subject: &'a str,
    /// More header lines, each terminated.
    pub(crate) header: &'a str,
    pub(crate) text: &'a str,
    pub(crate) html: &'a str,
    pub(crate) pictures: &'a [Picture<'a>],
    pub(crate) files: &'a [File<'a>],
}

/// An image that the HTML refers to by its content id.
#[derive(Clone, Copy)]
pub(crate) struct Picture<'a> {
    pub(crate) id: &'a str,
    pub(crate) kind: &'a str,
    pub(crate) content: &'a [u8],
}

/// An attachment.
#[derive(Clone, Copy)]
pub(crate) struct File<'a> {
    pub(crate) kind: &'a str,
    pub(crate) name: &'a str,
    pub(crate) content: &'a [u8],
}

impl Mail<'_> {
    /// Returns the source of the message.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let or = |given: &str, otherwise: &str| if given.is_empty() { otherwise.to_owned() } else { given.to_owned() };
        let people = format!("From: {}\r\nTo: {}\r\n", or(self.from, "Ann <ann@x.org>"), or(self.to, "james@x.org"));
        let head = format!("{people}Subject: {}\r\nMIME-Version: 1.0\r\n{}", word(self.subject), self.header);
        let mut parts = vec![self.body()];
        for File { kind, name, content } in self.files {
            let disposition = format!("Content-Disposition: attachment; filename=\"{}\"\r\n", word(name));
            parts.push(format!("{disposition}{}", part(kind, content)));
        }
        format!("{head}{}", joined("mixed", parts)).into_bytes()
    }

    fn body(&self) -> String {
        let mut forms = Vec::new();
        if !self.text.is_empty() || self.html.is_empty() {
            forms.push(part("text/plain; charset=utf-8", self.text.as_bytes()));
        }
        if !self.html.is_empty() {
            let mut parts = vec![part("text/html; charset=utf-8", self.html.as_bytes())];
            for Picture { id, kind, content } in self.pictures {
                parts.push(format!("Content-ID: <{id}>\r\nContent-Disposition: inline\r\n{}", part(kind, content)));
            }
            forms.push(joined("related", parts));
        }
        joined("alternative", forms)
    }
}

/// Returns a message with HTML only.
pub(crate) fn html(subject: &str, html: &str) -> Vec<u8> {
    Mail { subject, html, ..Mail::default() }.bytes()
}

/// Returns a message with text only.
pub(crate) fn text(subject: &str, text: &str) -> Vec<u8> {
    Mail { subject, text, ..Mail::default() }.bytes()
}

/// Encodes a text for a header field (RFC 2047).
pub(crate) fn word(text: &str) -> String {
    // An encoded word has at most 75 characters and contains complete characters only.
    let words = text.chars().collect::<Vec<_>>();
    let words = words.chunks(10).map(|chunk| BASE64_STANDARD.encode(chunk.iter().collect::<String>()));
    words.map(|word| format!("=?utf-8?B?{word}?=")).collect::<Vec<_>>().join("\r\n ")
}

fn part(kind: &str, content: &[u8]) -> String {
    let encoded = BASE64_STANDARD.encode(content);
    let lines = encoded.as_bytes().chunks(76).map(|line| String::from_utf8_lossy(line));
    let lines: Vec<_> = lines.collect();
    format!("Content-Type: {kind}\r\nContent-Transfer-Encoding: base64\r\n\r\n{}\r\n", lines.join("\r\n"))
}

/// Joins parts into a multipart; a single part is returned as it is.
fn joined(kind: &str, mut parts: Vec<String>) -> String {
    if parts.len() == 1 {
        return parts.remove(0);
    }
    let parts = parts.join(&format!("--{kind}-limit\r\n"));
    format!(
        "Content-Type: multipart/{kind}; boundary={kind}-limit\r\n\r\n--{kind}-limit\r\n{parts}--{kind}-limit--\r\n"
    )
}
