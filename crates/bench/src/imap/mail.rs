//! Mails of several kinds, as a mailbox of a person has them: plain text, HTML, attachments, forwarded messages, encoded
//! headers, replies. The same number always generates the same mail.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use crate::words::{SplitMix64, WordGenerator, word};

/// The sizes of mails. Small ones are more frequent.
const MIN_BYTES: u64 = 1024;
const MAX_BYTES: u64 = 20 * 1024;
/// The length of encoded lines (RFC 2045 section 6.8).
const LINE_CHARS: usize = 76;

/// Generates mails.
pub(crate) struct MailGenerator(WordGenerator);

impl MailGenerator {
    pub(crate) fn new() -> Self {
        Self(WordGenerator::new(0))
    }

    /// Returns a mail. It ends with a line break, and no line starts with a dot.
    pub(crate) fn mail(&self, number: usize) -> Vec<u8> {
        let mut random = SplitMix64::new(number as u64);
        let size = MIN_BYTES + (random.next() % (MAX_BYTES - MIN_BYTES)) * (random.next() % 1024) / 1024;
        let mut mail = self.header(number, &mut random);
        let rest = usize::try_from(size).unwrap_or(0).saturating_sub(mail.len());
        match number % 8 {
            0 | 1 => self.plain(&mut mail, &mut random, rest),
            2 | 3 => self.alternative(&mut mail, &mut random, rest, "alt"),
            4 => self.html(&mut mail, &mut random, rest),
            5 | 6 => self.mixed(&mut mail, &mut random, rest, number),
            _ => self.forwarded(&mut mail, &mut random, rest, number),
        }
        mail.into_bytes()
    }

    /// Returns the fields that all mails have. The fields of the content follow.
    fn header(&self, number: usize, random: &mut SplitMix64) -> String {
        const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
        // A minute per mail; each month has 28 days.
        let days = number / 1440;
        let (day, month, year) = (days % 28 + 1, MONTHS[days / 28 % 12], 2020 + days / 336);
        let date = format!("{day:02} {month} {year} {:02}:{:02}:00 +0000", number / 60 % 24, number % 60);
        let name = word(number as u64 % 1000);
        let id = format!("{number}.{}@bench.example", random.next());
        let signature = BASE64.encode([random.next().to_be_bytes(); 16].concat());
        let display_name =
            if number.is_multiple_of(5) { encoded_word(&format!("Jürgen {name}")) } else { format!("{name} Sender") };
        let mut header = format!(
            "Return-Path: <{name}@bench.example>\r\n\
             Received: from mx.bench.example (mx.bench.example [192.0.2.7])\r\n\tby mail.bench.example with ESMTPS id {number};\r\n\t{date}\r\n\
             DKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed; d=bench.example; s=s1;\r\n\th=from:to:subject:date:message-id;\r\n\tb={signature}\r\n\
             From: {display_name} <{name}@bench.example>\r\n\
             To: Receiver <receiver@bench.example>, \"{}, Team\" <team@bench.example>\r\n\
             Subject: {}\r\nDate: {date}\r\nMessage-ID: <{id}>\r\nMIME-Version: 1.0\r\n",
            self.word(random),
            self.subject(number, random),
        );
        if number.is_multiple_of(3) {
            let parent = number.saturating_sub(3);
            let _ =
                write!(header, "Cc: {}@bench.example\r\nIn-Reply-To: <{parent}@bench.example>\r\n", self.word(random));
            let _ = write!(header, "References: <{}@bench.example>\r\n\t<{parent}@bench.example>\r\n", parent / 2);
        }
        header
    }

    /// Returns a subject. Every fourth one has an encoded word.
    fn subject(&self, number: usize, random: &mut SplitMix64) -> String {
        let words: Vec<String> = (0..3 + number % 4).map(|_| self.word(random)).collect();
        let prefix = if number.is_multiple_of(3) { "Re: " } else { "" };
        match number % 4 {
            0 => format!("{prefix}{} {}", encoded_word(&format!("Grüße aus {}", words[0])), words[1..].join(" ")),
            _ => prefix.to_owned() + &words.join(" "),
        }
    }

    fn word(&self, random: &mut SplitMix64) -> String {
        self.0.random_word(random)
    }

    /// Returns lines of words of at least `bytes` bytes.
    fn text(&self, random: &mut SplitMix64, bytes: usize) -> String {
        let mut text = String::with_capacity(bytes + 100);
        while text.len() < bytes.max(1) {
            for n in 0..10 {
                text.push_str(if n == 0 { "" } else { " " });
                text.push_str(&self.word(random));
            }
            text.push_str("\r\n");
        }
        text
    }

    fn plain(&self, mail: &mut String, random: &mut SplitMix64, bytes: usize) {
        mail.push_str("Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 7bit\r\n\r\n");
        mail.push_str(&self.text(random, bytes));
    }

    /// Appends HTML in base64.
    fn html(&self, mail: &mut String, random: &mut SplitMix64, bytes: usize) {
        mail.push_str("Content-Type: text/html; charset=\"utf-8\"\r\nContent-Transfer-Encoding: base64\r\n\r\n");
        let html = format!("<html><body><p>Grüße</p>\r\n<p>{}</p></body></html>\r\n", self.text(random, bytes * 3 / 4));
        push_base64(mail, html.as_bytes());
    }

    /// Appends plain text and HTML in quoted-printable.
    fn alternative(&self, mail: &mut String, random: &mut SplitMix64, bytes: usize, boundary: &str) {
        let text = self.text(random, bytes / 3);
        let paragraphs = text.replace("\r\n", "</p>\r\n<p style=3D\"color: #333\">");
        let _ = write!(
            mail,
            "Content-Type: multipart/alternative;\r\n\tboundary=\"{boundary}\"\r\n\r\n\
             --{boundary}\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n{text}\r\n\
             --{boundary}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n\
             <html><head><meta charset=3D\"utf-8\"></head><body><p>{paragraphs}</p>\r\n</body></html>\r\n--{boundary}--\r\n"
        );
    }

    /// Appends plain text, HTML and an attachment.
    fn mixed(&self, mail: &mut String, random: &mut SplitMix64, bytes: usize, number: usize) {
        mail.push_str("Content-Type: multipart/mixed; boundary=\"mix\"\r\n\r\n--mix\r\n");
        self.alternative(mail, random, bytes / 3, "alt");
        let name = match number % 4 {
            1 => "filename*=UTF-8''f%C3%BCr%20Sie.pdf".to_owned(),
            _ => format!("filename=\"{}.pdf\"", self.word(random)),
        };
        let _ = write!(
            mail,
            "\r\n--mix\r\nContent-Type: application/pdf; name=\"invoice.pdf\"\r\nContent-Disposition: attachment; {name}\r\n\
             Content-Transfer-Encoding: base64\r\n\r\n"
        );
        let content: Vec<u8> = (0..bytes / 16).flat_map(|_| random.next().to_le_bytes()).collect();
        push_base64(mail, &content);
        mail.push_str("--mix--\r\n");
    }

    /// Appends plain text and another mail.
    fn forwarded(&self, mail: &mut String, random: &mut SplitMix64, bytes: usize, number: usize) {
        mail.push_str("Content-Type: multipart/mixed; boundary=\"fwd\"\r\n\r\n--fwd\r\n");
        self.plain(mail, random, bytes / 4);
        mail.push_str("\r\n--fwd\r\nContent-Type: message/rfc822\r\nContent-Disposition: attachment\r\n\r\n");
        mail.push_str(&self.header(number / 2, random));
        self.alternative(mail, random, bytes / 2, "alt");
        mail.push_str("\r\n--fwd--\r\n");
    }
}

/// Encodes a text for a header (RFC 2047).
fn encoded_word(text: &str) -> String {
    format!("=?UTF-8?B?{}?=", BASE64.encode(text))
}

/// Appends lines of base64.
fn push_base64(mail: &mut String, bytes: &[u8]) {
    for line in bytes.chunks(LINE_CHARS / 4 * 3) {
        BASE64.encode_string(line, mail);
        mail.push_str("\r\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mails_can_be_sent_and_vary() {
        let generator = MailGenerator::new();
        let mails: Vec<_> = (0..400).map(|number| generator.mail(number)).collect();
        assert_eq!(mails[17], generator.mail(17), "a mail is always the same");
        for mail in &mails {
            assert!(mail.ends_with(b"\r\n") && (900..24_000).contains(&mail.len()), "{}", mail.len());
            for line in mail.split_inclusive(|&byte| byte == b'\n') {
                assert!(
                    line.ends_with(b"\r\n") && !line.starts_with(b".") && line.len() <= 1000,
                    "{}",
                    line.escape_ascii()
                );
            }
        }
        let average = mails.iter().map(Vec::len).sum::<usize>() / mails.len();
        assert!((4000..8000).contains(&average), "{average}");
    }
}
