//! Mails for the tests to send. Everything is in base64, so that whatever they hold comes through as it is.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

const HEAD: &str = "From: Ann <ann@x.org>\r\nTo: james@x.org\r\nMIME-Version: 1.0\r\n";

/// A mail of HTML alone.
pub(crate) fn html(subject: &str, html: &str) -> Vec<u8> {
    format!("{HEAD}Subject: {}\r\n{}", word(subject), part("text/html; charset=utf-8", html)).into_bytes()
}

/// A mail with a file for each content type, content and name.
pub(crate) fn files(subject: &str, files: &[(&str, &str, &str)]) -> Vec<u8> {
    let mut parts = vec![part("text/plain; charset=utf-8", "With files.")];
    for (content_type, content, name) in files {
        let disposition = format!("Content-Disposition: attachment; filename=\"{}\"\r\n", word(name));
        parts.push(format!("{disposition}{}", part(content_type, content)));
    }
    let head = format!("{HEAD}Subject: {}\r\nContent-Type: multipart/mixed; boundary=limit\r\n", word(subject));
    format!("{head}\r\n--limit\r\n{}--limit--\r\n", parts.join("--limit\r\n")).into_bytes()
}

/// A text of any characters in a header (RFC 2047).
fn word(text: &str) -> String {
    // An encoded word holds 75 characters at most, and no part of a character.
    let words = text.chars().collect::<Vec<_>>();
    let words = words.chunks(10).map(|chunk| BASE64_STANDARD.encode(chunk.iter().collect::<String>()));
    words.map(|word| format!("=?utf-8?B?{word}?=")).collect::<Vec<_>>().join("\r\n ")
}

fn part(content_type: &str, content: &str) -> String {
    let encoded = BASE64_STANDARD.encode(content);
    let lines = encoded.as_bytes().chunks(76).map(|line| String::from_utf8_lossy(line));
    let lines: Vec<_> = lines.collect();
    format!("Content-Type: {content_type}\r\nContent-Transfer-Encoding: base64\r\n\r\n{}\r\n", lines.join("\r\n"))
}
