//! Decoding of encoded words (RFC 2047): `=?charset?encoding?text?=` in header values. Deviations of common mail
//! clients are accepted.

use std::borrow::Cow;

use memchr::memmem;

use super::base64::decode_base64;
use super::charset::{decode, decode_unlabelled, one_line};
use super::transfer_encoding;

/// The maximum length of the text of one encoded word. RFC 2047 section 2 allows 75, but clients that do not fold write
/// far longer ones.
const MAX_TEXT_BYTES: usize = 4096;
/// The maximum length of a charset name with its language (RFC 2231 section 5).
const MAX_CHARSET_BYTES: usize = 64;

/// Decodes an unfolded header value to text on one line.
pub(super) fn decode_line(value: &[u8]) -> String {
    // This is the most common case: one line of ASCII without an encoded word.
    if value.iter().all(|byte| matches!(byte, b' '..=b'<' | b'>'..=b'~'))
        && let Ok(text) = std::str::from_utf8(value)
    {
        return text.trim().to_owned();
    }
    one_line(&decode_words(value))
}

/// Decodes an unfolded header value. 8-bit bytes between encoded words are decoded as UTF-8 or in a guessed charset.
fn decode_words(value: &[u8]) -> Cow<'_, str> {
    // One byte is found faster than two, and most values do not contain it.
    if memchr::memchr(b'=', value).is_none() {
        return decode_unlabelled(value);
    }
    let mut text = String::with_capacity(value.len());
    let mut plain_start = 0;
    let mut run: Option<WordRun<'_>> = None;
    let mut pos = 0;
    while let Some(offset) = memmem::find(&value[pos..], b"=?") {
        let start = pos + offset;
        let Some(word) = EncodedWord::parse(&value[start..]) else {
            pos = start + 2;
            continue;
        };
        let between = &value[plain_start..start];
        // RFC 2047 section 6.2: whitespace between two encoded words is not part of the text.
        if run.is_none() || !between.trim_ascii().is_empty() {
            WordRun::flush(run.take(), &mut text);
            text.push_str(&decode_unlabelled(between));
        }
        pos = start + word.len;
        plain_start = pos;
        run = Some(match run.take() {
            Some(open) if open.charset.eq_ignore_ascii_case(word.charset) => open.append(word.decode_content()),
            other => {
                WordRun::flush(other, &mut text);
                WordRun { charset: word.charset, content: word.decode_content() }
            }
        });
    }
    WordRun::flush(run, &mut text);
    text.push_str(&decode_unlabelled(&value[plain_start..]));
    Cow::Owned(text)
}

/// Adjacent encoded words of one charset. They are decoded together, because clients split multi-byte characters
/// between two words although section 5 forbids it.
struct WordRun<'a> {
    charset: &'a str,
    content: Vec<u8>,
}

impl WordRun<'_> {
    fn append(mut self, content: Vec<u8>) -> Self {
        if self.content.is_empty() {
            self.content = content;
        } else {
            self.content.extend_from_slice(&content);
        }
        self
    }

    fn flush(run: Option<Self>, text: &mut String) {
        if let Some(run) = run {
            text.push_str(&decode(Some(run.charset), &run.content).text);
        }
    }
}

/// An encoded word. Its text is not decoded.
pub(super) struct EncodedWord<'a> {
    charset: &'a str,
    encoding: Encoding,
    pub(super) text: &'a [u8],
    /// The length of the whole encoded word.
    pub(super) len: usize,
}

enum Encoding {
    B,
    Q,
}

impl<'a> EncodedWord<'a> {
    /// Parses the encoded word at the start of the value.
    pub(super) fn parse(value: &'a [u8]) -> Option<Self> {
        let label = value.strip_prefix(b"=?")?;
        let label_len = memchr::memchr(b'?', &label[..label.len().min(MAX_CHARSET_BYTES)])?;
        let charset = std::str::from_utf8(&label[..label_len]).ok()?;
        if charset.is_empty() || !charset.bytes().all(|b| b.is_ascii_graphic()) {
            return None;
        }
        let charset = charset.split('*').next()?;
        let (encoding, text) = match &label[label_len + 1..] {
            [b'B' | b'b', b'?', text @ ..] => (Encoding::B, text),
            [b'Q' | b'q', b'?', text @ ..] => (Encoding::Q, text),
            _ => return None,
        };
        let text_len = memmem::find(&text[..text.len().min(MAX_TEXT_BYTES)], b"?=")?;
        let len = "=?".len() + label_len + "?B?".len() + text_len + "?=".len();
        Some(Self { charset, encoding, text: &text[..text_len], len })
    }

    fn decode_content(&self) -> Vec<u8> {
        match self.encoding {
            Encoding::B => decode_base64(self.text).0,
            Encoding::Q => decode_q(self.text),
        }
    }
}

/// Decodes the Q encoding (section 4.2): quoted-printable with `_` for a space.
fn decode_q(text: &[u8]) -> Vec<u8> {
    let spaced: Vec<u8> = text.iter().map(|&b| if b == b'_' { b' ' } else { b }).collect();
    let mut content = Vec::with_capacity(spaced.len());
    transfer_encoding::unescape(&spaced, b'=', &mut content);
    content
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decodes_encoded_words() {
        let table: &[(&[u8], &str)] = &[
            (b"plain", "plain"),
            (b"=?utf-8?Q?caf=C3=A9?=", "café"),
            (b"=?UTF-8?b?Y2Fmw6k=?=", "café"),
            (b"=?iso-8859-1?q?a_b=5Fc?=", "a b_c"),
            (b"=?utf-8*en?Q?hello?=", "hello"),
            // Section 8 of RFC 2047.
            (b"=?ISO-8859-1?Q?a?= b", "a b"),
            (b"=?ISO-8859-1?Q?a?= =?ISO-8859-1?Q?b?=", "ab"),
            (b"=?ISO-8859-1?Q?a?=   =?ISO-8859-2?Q?_b?=", "a b"),
            (b"=?utf-8?Q?a?==?utf-8?Q?b?=", "ab"),
            // A character split between two words.
            (b"=?utf-8?B?4pi?= =?utf-8?B?ug==?=", "☺"),
            (b"=?utf-8?Q?=E2=98?= =?utf-8?Q?=BA?=", "☺"),
            (b"=?iso-2022-jp?B?GyRCRnxLXDhsGyhC?=", "日本語"),
            // Each word of a stateful charset starts and ends in ASCII.
            (b"=?iso-2022-jp?B?GyRCRnxLXBsoQg==?= =?iso-2022-jp?B?GyRCOGwbKEI=?=", "日本語"),
            (b"=?gb2312?B?1tDOxA==?=", "中文"),
            (b"=?koi8-r?Q?=F0=D2=C9=D7=C5=D4?=", "Привет"),
            (b"=?utf-8?Q?Really??=", "Really?"),
            (b"=?utf-8?Q?raw blanks too?=", "raw blanks too"),
            (b"[=?utf-8?Q?x?=]", "[x]"),
            (b"=?utf-8?X?abc?=", "=?utf-8?X?abc?="),
            (b"=?utf-8?Q?no end", "=?utf-8?Q?no end"),
            (b"=??Q?x?=", "=??Q?x?="),
            (b"a =? b ?= c", "a =? b ?= c"),
            (b"=?", "=?"),
            (b"=?x-no-such?Q?abc?=", "abc"),
            ("naïve".as_bytes(), "naïve"),
            (b"caf\xe9", "café"),
        ];
        for (value, text) in table {
            assert_eq!(decode_line(value), *text, "{}", String::from_utf8_lossy(value));
        }
    }

    #[test]
    fn replaces_line_breaks_in_encoded_words() {
        assert_eq!(decode_line(b"=?utf-8?Q?a=0D=0ABcc:_x?="), "a  Bcc: x");
    }
}
