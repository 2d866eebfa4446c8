//! Mails for the tests to send. Contents are in base64, so that whatever they hold comes through as it is.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

/// A mail to be sent, of those parts that are given.
#[derive(Clone, Copy, Default)]
pub(crate) struct Mail<'a> {
    /// The sender as it is written; Ann, when it is empty.
    pub(crate) from: &'a str,
    /// The recipients as they are written; James, when it is empty.
    pub(crate) to: &'a str,
    pub(crate) subject: &'a str,
    /// More lines of the header, each with its end.
    pub(crate) header: &'a str,
    pub(crate) text: &'a str,
    pub(crate) html: &'a str,
    pub(crate) pictures: &'a [Picture<'a>],
    pub(crate) files: &'a [File<'a>],
}

/// A picture that the HTML shows by its content id.
#[derive(Clone, Copy)]
pub(crate) struct Picture<'a> {
    pub(crate) id: &'a str,
    pub(crate) kind: &'a str,
    pub(crate) content: &'a [u8],
}

/// A file that goes with the mail.
#[derive(Clone, Copy)]
pub(crate) struct File<'a> {
    pub(crate) kind: &'a str,
    pub(crate) name: &'a str,
    pub(crate) content: &'a [u8],
}

impl Mail<'_> {
    /// The mail as it goes over the wire.
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

/// A mail of HTML alone.
pub(crate) fn html(subject: &str, html: &str) -> Vec<u8> {
    Mail { subject, html, ..Mail::default() }.bytes()
}

/// A mail of text alone.
pub(crate) fn text(subject: &str, text: &str) -> Vec<u8> {
    Mail { subject, text, ..Mail::default() }.bytes()
}

/// A text of any characters in a header (RFC 2047).
pub(crate) fn word(text: &str) -> String {
    // An encoded word holds 75 characters at most, and no part of a character.
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

/// Several parts in one; a single one stands for itself.
fn joined(kind: &str, mut parts: Vec<String>) -> String {
    if parts.len() == 1 {
        return parts.remove(0);
    }
    let parts = parts.join(&format!("--{kind}-limit\r\n"));
    format!(
        "Content-Type: multipart/{kind}; boundary={kind}-limit\r\n\r\n--{kind}-limit\r\n{parts}--{kind}-limit--\r\n"
    )
}
