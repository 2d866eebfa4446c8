//! The preview of a message: the first words of its text and the number of its attachments, for lists of messages.
//!
//! It is computed when a message arrives, so it costs far less than a view. A message that is only a text without a
//! transfer encoding is neither split nor decoded. Other messages are split into their parts, and only the start of a
//! text is decoded.

use std::borrow::Cow;
use std::ops::ControlFlow;

use super::TEXT_SEPARATOR;
use super::base64::is_base64_digit;
use super::bodies::{self, Bodies};
use super::charset::DecodedText;
use super::defect::Defects;
use super::flowed;
use super::header::Fields;
use super::html_to_text;
use super::part::{ContentFields, Part};
use super::split;
use super::summary::{HeaderSummary, summarize_fields};
use super::transfer_encoding::TransferEncoding;
use super::uuencode;

/// The maximum length of a snippet, in characters.
pub const MAX_SNIPPET_CHARS: usize = 200;
/// A snippet that would end within a word ends before the word, unless it would be shorter than this number of
/// characters.
const MIN_CUT_SNIPPET_CHARS: usize = MAX_SNIPPET_CHARS / 2;
/// The number of bytes of a text without a transfer encoding that are read first. They contain a snippet, unless most of
/// them are blank.
const UNENCODED_BYTES: usize = 1024;
/// The escape character of stateful charsets (ISO 2022).
const ESCAPE: u8 = 0x1b;
/// The number of ASCII characters that are written at once.
const CHUNK_BYTES: usize = 8;
/// The number of bytes of the text parts that are decoded, before decoding. The second number is used if the first bytes
/// contain too little text, or if their charset is a guess.
const TEXT_BYTES: [usize; 2] = [768, 4 * 1024];
/// The same for HTML, which often starts with a long style sheet.
const HTML_BYTES: [usize; 2] = [8 * 1024, 32 * 1024];

/// What lists show of the content of a message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Preview {
    /// The first words of the text, on one line, at most [`MAX_SNIPPET_CHARS`] characters.
    pub snippet: String,
    /// The number of attachments that are not inline.
    pub attachments: u32,
    /// The number of files that are marked as attachments, or have the type `application/octet-stream`.
    pub attached_parts: u32,
    /// The number of parts that are marked as inline.
    pub inline_parts: u32,
    /// Whether the message has parts that are not counted, because of a limit.
    pub omits_parts: bool,
}

/// Returns the preview of a message.
///
/// The snippet is the start of [`Mime::text`](super::Mime::text). If that is made from HTML, the URLs of links are left out.
/// Whitespace and control characters are collapsed to single spaces, and characters without a width are omitted. It ends
/// at the end of a word if possible. It is empty if the text starts beyond the first 4 KiB of the text parts, and beyond
/// the first 32 KiB of the HTML. A charset that is not declared is detected by these bytes.
///
/// The number of attachments is [`Mime::attachment_count`](super::Mime::attachment_count). In a message with very many
/// lines that look like delimiters, only the attachments at its start are counted.
pub fn preview(source: &[u8]) -> Preview {
    let mut content = ContentFields::default();
    let mut fields = Fields::new(source, 0, |_| false);
    for field in &mut fields {
        content.record(source, &field);
    }
    let body = fields.body_start();
    preview_body(source, content, body)
}

/// Returns the header summary and the preview of a message. Reads the header once.
pub fn summarize(source: &[u8]) -> (HeaderSummary, Preview) {
    let mut content = ContentFields::default();
    let (summary, body) = summarize_fields(source, |field| content.record(source, field));
    (summary, preview_body(source, content, body))
}

/// Returns the preview of a message with these content fields, whose body starts at `body`.
fn preview_body(source: &[u8], content: ContentFields<'_>, body: usize) -> Preview {
    if content.is_unencoded_text()
        && !uuencode::has_begin_line(&source[body..])
        && let Some(snippet) = unencoded_snippet(&source[body..])
    {
        return Preview { snippet, ..Preview::default() };
    }
    let mut root = content.into_part("text/plain", &mut Defects::default());
    root.header = 0..body;
    root.body = body..source.len();
    let (parts, omits_parts) = split::split_parts(source, root);
    let bodies = bodies::classify(source, &parts);
    // The number of parts is limited.
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let (attached_parts, inline_parts) = bodies.disposition_counts(&parts);
    Preview {
        snippet: snippet(source, &parts, &bodies),
        attachments: count(bodies.attachment_count(&parts)),
        attached_parts: count(attached_parts),
        inline_parts: count(inline_parts),
        omits_parts,
    }
}

/// Returns the snippet of a text that is ASCII or UTF-8, whatever it declares. Returns `None` if this is not certain, or
/// if the first [`UNENCODED_BYTES`] are too few.
fn unencoded_snippet(text: &[u8]) -> Option<String> {
    let mut snippet = SnippetWriter::new();
    let start = &text[..text.len().min(UNENCODED_BYTES)];
    let is_truncated = start.len() < text.len();
    let used = snippet.push_ascii(start);
    if !snippet.is_full && used < start.len() {
        let rest = &start[used..];
        let rest = if is_truncated { without_truncated_char(rest) } else { rest };
        // An escape character can start a sequence of a stateful charset.
        if memchr::memchr(ESCAPE, rest).is_some() {
            return None;
        }
        let _ = snippet.push(str::from_utf8(rest).ok()?);
    }
    (snippet.is_full || !is_truncated).then(|| snippet.text().to_owned())
}

/// Returns the snippet of a message: of its texts, or of its HTML if they are blank.
fn snippet(source: &[u8], parts: &[Part], bodies: &Bodies) -> String {
    let snippet =
        write_with_limits(TEXT_BYTES, |limit, snippet| write_texts(source, parts, &bodies.text, limit, snippet));
    match bodies.html {
        Some(html) if snippet.text().is_empty() => {
            let html = &parts[html];
            write_with_limits(HTML_BYTES, |limit, snippet| write_html(source, html, limit, snippet)).text().to_owned()
        }
        _ => snippet.text().to_owned(),
    }
}

/// Writes a snippet of the text within the first limit, and again within the second limit if that is not sufficient.
/// `write` returns how much of the body it decoded.
fn write_with_limits(limits: [usize; 2], write: impl Fn(usize, &mut SnippetWriter) -> Extent) -> SnippetWriter {
    let mut snippet = SnippetWriter::new();
    let extent = write(limits[0], &mut snippet);
    let is_sufficient = match extent {
        Extent::Complete => true,
        Extent::Truncated => snippet.is_full,
        Extent::TruncatedGuess => false,
    };
    if !is_sufficient {
        snippet = SnippetWriter::new();
        if write(limits[1], &mut snippet) != Extent::Complete {
            snippet.end_truncated();
        }
    }
    snippet
}

/// How much of a body was decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// All of it.
    Complete,
    /// A part of it.
    Truncated,
    /// A part of it, and its charset is not the declared one.
    TruncatedGuess,
}

/// Writes the first `limit` bytes of the text parts.
fn write_texts(source: &[u8], parts: &[Part], texts: &[usize], limit: usize, snippet: &mut SnippetWriter) -> Extent {
    let mut rest = limit;
    for &index in texts {
        let part = &parts[index];
        let start = BodyStart::of_text(source, parts, index, rest);
        rest -= start.encoded.len();
        let (mut text, extent) = start.decode(part);
        if let Some(flowed) = part.flowed.filter(|_| part.content_type == "text/plain") {
            text = flowed::unflow(&text.replace("\r\n", "\n"), flowed);
        }
        if !text.trim().is_empty() {
            if !snippet.text().is_empty() {
                let _ = snippet.push(TEXT_SEPARATOR);
            }
            let _ = snippet.push(&text);
        }
        if extent != Extent::Complete || snippet.is_full {
            return extent;
        }
    }
    Extent::Complete
}

/// Writes the text in the first `limit` bytes of an HTML part.
fn write_html(source: &[u8], part: &Part, limit: usize, snippet: &mut SnippetWriter) -> Extent {
    let start = BodyStart::new(&source[part.body.clone()], limit);
    let (html, extent) = start.decode(part);
    let html = if start.is_truncated { without_truncated_tag(&html) } else { &html };
    html_to_text::read_html(html, |text| snippet.push(text));
    extent
}

/// Returns the HTML up to the tag that is truncated at its end, if any.
fn without_truncated_tag(html: &str) -> &str {
    match memchr::memrchr2(b'<', b'>', html.as_bytes()) {
        Some(at) if html.as_bytes()[at] == b'<' => &html[..at],
        _ => html,
    }
}

/// The start of the body of a part, still encoded.
struct BodyStart<'a> {
    encoded: Cow<'a, [u8]>,
    /// Whether the body is longer.
    is_truncated: bool,
}

impl<'a> BodyStart<'a> {
    /// Takes the first `limit` bytes of a body.
    fn new(body: &'a [u8], limit: usize) -> Self {
        Self { encoded: Cow::Borrowed(&body[..body.len().min(limit)]), is_truncated: body.len() > limit }
    }

    /// Takes the first `limit` bytes of a text without the uuencoded files inside of it.
    fn of_text(source: &'a [u8], parts: &[Part], index: usize, limit: usize) -> Self {
        let body = parts[index].body.clone();
        let mut files = parts[index + 1..].iter().take_while(|file| file.parent == Some(index)).peekable();
        if files.peek().is_none() {
            return Self::new(&source[body], limit);
        }
        let mut text = Vec::new();
        let mut start = body.start;
        for file in files {
            let before = &source[start..file.body.start];
            // One more byte than the limit shows that the text is longer.
            text.extend_from_slice(&before[..before.len().min(limit + 1 - text.len())]);
            start = file.body.end;
        }
        let after = &source[start..body.end];
        text.extend_from_slice(&after[..after.len().min(limit + 1 - text.len())]);
        let is_truncated = text.len() > limit;
        text.truncate(limit);
        Self { encoded: Cow::Owned(text), is_truncated }
    }

    /// Decodes the transfer encoding and the charset. A character, group or escape that is truncated at the end is
    /// omitted: it could be taken for a sign of another charset or encoding.
    fn decode(&self, part: &Part) -> (String, Extent) {
        let encoding = part.transfer_encoding;
        let encoded = if self.is_truncated { without_truncated_code(&self.encoded, encoding) } else { &self.encoded };
        let content = encoding.decode_slice(encoded, part.expected_content()).content;
        let content = if self.is_truncated { without_truncated_char(&content) } else { &content };
        let DecodedText { text, defect } = part.decode_charset(content);
        let extent = match (self.is_truncated, defect) {
            (false, _) => Extent::Complete,
            (true, None) => Extent::Truncated,
            (true, Some(_)) => Extent::TruncatedGuess,
        };
        (text, extent)
    }
}

/// Returns the bytes up to the group of base64 or the escape of quoted-printable that is truncated at their end, if
/// any.
fn without_truncated_code(encoded: &[u8], encoding: TransferEncoding) -> &[u8] {
    match encoding {
        TransferEncoding::Base64 => {
            let segment = memchr::memrchr(b'=', encoded).map_or(0, |padding| padding + 1);
            let digits = || encoded.iter().enumerate().skip(segment).filter(|&(_, &b)| is_base64_digit(b));
            match digits().count() % 4 {
                0 => encoded,
                extra => digits().rev().nth(extra - 1).map_or(encoded, |(at, _)| &encoded[..at]),
            }
        }
        TransferEncoding::QuotedPrintable => {
            let end = encoded.len().saturating_sub(2);
            memchr::memchr(b'=', &encoded[end..]).map_or(encoded, |at| &encoded[..end + at])
        }
        TransferEncoding::Identity | TransferEncoding::Uuencode => encoded,
    }
}

/// Returns the bytes up to the UTF-8 character that is truncated at their end, if any.
fn without_truncated_char(content: &[u8]) -> &[u8] {
    // A truncated character has at most three bytes.
    let tail = content.len().saturating_sub(3);
    let lead = content[tail..].iter().rposition(|&byte| !is_continuation(byte)).map(|at| tail + at);
    let is_truncated = |at: &usize| str::from_utf8(&content[*at..]).is_err_and(|error| error.error_len().is_none());
    lead.filter(is_truncated).map_or(content, |at| &content[..at])
}

/// A snippet that is being written.
struct SnippetWriter {
    /// The text, in UTF-8. Its only whitespace is a space between two words. Characters are written in chunks, so there
    /// is space for one more chunk.
    buffer: [u8; MAX_SNIPPET_CHARS * 4 + CHUNK_BYTES],
    /// The length of the text, in bytes.
    len: usize,
    /// The number of bytes that the text has more than characters.
    extra_bytes: usize,
    /// Whether a space precedes the next character.
    has_gap: bool,
    /// Whether more text has no effect.
    is_full: bool,
}

impl SnippetWriter {
    fn new() -> Self {
        let buffer = [0; MAX_SNIPPET_CHARS * 4 + CHUNK_BYTES];
        Self { buffer, len: 0, extra_bytes: 0, has_gap: false, is_full: false }
    }

    fn text(&self) -> &str {
        // Only whole characters are written, so the text is valid.
        str::from_utf8(&self.buffer[..self.len]).unwrap_or_default()
    }

    /// Writes text. It need not start or end at the end of a word. Breaks if the snippet is full.
    fn push(&mut self, text: &str) -> ControlFlow<()> {
        let mut rest = text;
        while !self.is_full {
            rest = &rest[self.push_ascii(rest.as_bytes())..];
            let mut chars = rest.chars();
            match chars.next() {
                _ if self.is_full => break,
                None => return ControlFlow::Continue(()),
                Some(c) if c.is_whitespace() || c.is_control() => self.has_gap = true,
                Some(c) if is_invisible(c) => {}
                Some(c) => self.push_visible(c),
            }
            rest = chars.as_str();
        }
        ControlFlow::Break(())
    }

    /// Writes ASCII characters, up to the first other character or escape character, or until the snippet is full.
    /// Returns the number of characters that were used.
    fn push_ascii(&mut self, text: &[u8]) -> usize {
        let mut pos = 0;
        while !self.is_full && pos < text.len() {
            if let Some(&chunk) = text[pos..].first_chunk() {
                let words = words_len(chunk);
                if words > 0 {
                    pos += self.push_words(chunk, words);
                    continue;
                }
            }
            match text[pos] {
                byte if byte.is_ascii_graphic() => self.push_visible(char::from(byte)),
                byte if byte.is_ascii() && byte != ESCAPE => self.has_gap = true,
                _ => break,
            }
            pos += 1;
        }
        pos
    }

    /// Writes the first `len` characters of a chunk: words, and single spaces after words. Returns the number of
    /// characters that were written.
    fn push_words(&mut self, chunk: [u8; CHUNK_BYTES], len: usize) -> usize {
        let Some(room) = self.begin_word() else { return 0 };
        let written = len.min(room);
        self.buffer[self.len..self.len + CHUNK_BYTES].copy_from_slice(&chunk);
        self.has_gap = chunk[written - 1] == b' ';
        self.len += written - usize::from(self.has_gap);
        written
    }

    /// Writes a visible character.
    fn push_visible(&mut self, c: char) {
        if self.begin_word().is_some() {
            let utf8 = c.encode_utf8(&mut self.buffer[self.len..]).len();
            self.len += utf8;
            self.extra_bytes += utf8 - 1;
            self.has_gap = false;
        }
    }

    /// Writes the space before a visible character, if any. Returns the number of characters for which there is room
    /// after it. Ends the snippet if there is none.
    #[inline]
    fn begin_word(&mut self) -> Option<usize> {
        let room = MAX_SNIPPET_CHARS + self.extra_bytes - self.len;
        if !self.has_gap || self.len == 0 {
            if room == 0 {
                self.end_within_word();
            }
            return (room > 0).then_some(room);
        }
        if room < 2 {
            self.is_full = true;
            return None;
        }
        self.buffer[self.len] = b' ';
        self.len += 1;
        Some(room - 1)
    }

    /// Ends the snippet although the last word continues. Drops that word, unless the rest is too short.
    fn end_within_word(&mut self) {
        self.is_full = true;
        let text = &self.buffer[..self.len];
        let Some(end) = memchr::memrchr(b' ', text) else { return };
        // Every character has one byte that does not continue another.
        let cut_chars = text[end..].iter().filter(|&&byte| !is_continuation(byte)).count();
        if MAX_SNIPPET_CHARS - cut_chars >= MIN_CUT_SNIPPET_CHARS {
            self.len = end;
        }
    }

    /// Ends the snippet of a truncated text. Drops the last word if it may be incomplete. If it is the only word, it is
    /// kept without the truncated character at its end.
    fn end_truncated(&mut self) {
        if self.is_full {
            return;
        }
        self.is_full = true;
        self.len = match self.text().rfind(' ') {
            _ if self.has_gap => self.len,
            Some(end) => end,
            None => self.text().trim_end_matches(char::REPLACEMENT_CHARACTER).len(),
        };
    }
}

/// Returns the number of bytes at the start of a chunk that are words with single spaces between them: printable ASCII
/// characters, and spaces after other characters.
fn words_len(chunk: [u8; CHUNK_BYTES]) -> usize {
    // Computed for eight bytes at once, without carries between them. The result for a byte is its highest bit.
    const HIGH_BITS: u64 = every_byte(0x80);
    let bytes = u64::from_le_bytes(chunk);
    let low_bits = bytes & !HIGH_BITS;
    let is_graphic = (low_bits + every_byte(0x80 - b'!')) & !(low_bits + every_byte(0x80 - 0x7f)) & !bytes & HIGH_BITS;
    let is_space = !((low_bits ^ every_byte(b' ')) + every_byte(0x7f)) & !bytes & HIGH_BITS;
    let is_allowed = is_graphic | is_space & is_graphic << 8;
    let allowed_bits = (!is_allowed & HIGH_BITS).trailing_zeros();
    (allowed_bits / 8) as usize
}

/// Returns whether the byte continues a character of UTF-8.
fn is_continuation(byte: u8) -> bool {
    (0x80..0xc0).contains(&byte)
}

/// Returns eight bytes with this value.
const fn every_byte(value: u8) -> u64 {
    u64::from_le_bytes([value; CHUNK_BYTES])
}

/// Returns whether a character has no width. Newsletters fill the preview of mail clients with such characters, and some
/// of them change the order of the characters around them.
fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the snippet of a text, one character after the other.
    fn expected_snippet(text: &str) -> String {
        let visible: String = text.chars().filter(|&c| !is_invisible(c)).collect();
        let is_blank = |c: char| c.is_whitespace() || c.is_control();
        let words: Vec<_> = visible.split(is_blank).filter(|word| !word.is_empty()).collect();
        let line: Vec<_> = words.join(" ").chars().collect();
        if line.len() <= MAX_SNIPPET_CHARS {
            return line.into_iter().collect();
        }
        let end = (MIN_CUT_SNIPPET_CHARS..=MAX_SNIPPET_CHARS).rev().find(|&end| line[end] == ' ');
        line[..end.unwrap_or(MAX_SNIPPET_CHARS)].iter().collect::<String>().trim_end().to_owned()
    }

    fn pushed(pieces: &[String]) -> String {
        let mut snippet = SnippetWriter::new();
        for piece in pieces {
            let _ = snippet.push(piece);
        }
        snippet.text().to_owned()
    }

    #[test]
    fn ends_snippets_at_words() {
        let words = "word ".repeat(60);
        let table = [
            ("", String::new()),
            (" \r\n\t ", String::new()),
            ("  two\r\n\r\n  words  ", "two words".to_owned()),
            (&words, words[..199].to_owned()),
            (&"x".repeat(500), "x".repeat(200)),
            (&"€".repeat(500), "€".repeat(200)),
            (&"😀".repeat(500), "😀".repeat(200)),
            // A cut at the only space would leave too little.
            (&format!("See {}", "x".repeat(500)), format!("See {}", "x".repeat(196))),
            (&format!("{} {}", "a".repeat(100), "x".repeat(500)), "a".repeat(100)),
            (&format!("{} {}", "é".repeat(100), "x".repeat(500)), "é".repeat(100)),
            (&format!("{} {}", "a".repeat(99), "x".repeat(500)), format!("{} {}", "a".repeat(99), "x".repeat(100))),
            (&format!("{} b", "a".repeat(198)), format!("{} b", "a".repeat(198))),
            (&format!("{} b", "a".repeat(199)), "a".repeat(199)),
            (&format!("{} b", "a".repeat(200)), "a".repeat(200)),
            ("Hi\u{200b}\u{feff} \u{34f}\u{ad}\u{a0}\u{2007}there\u{200c}", "Hi there".to_owned()),
            ("a\0b\x1bc\x7fd\u{85}e", "a b c d e".to_owned()),
        ];
        for (text, snippet) in table {
            assert_eq!(pushed(&[text.to_owned()]), snippet, "{text:?}");
        }
    }

    #[test]
    fn omits_truncated_codes_and_characters() {
        let base64 = TransferEncoding::Base64;
        let quoted = TransferEncoding::QuotedPrintable;
        let table: &[(TransferEncoding, &str, &str)] = &[
            (base64, "SGVsbG8g", "SGVsbG8g"),
            (base64, "SGVsbG8", "SGVs"),
            (base64, "SGVs\r\nbG", "SGVs\r\n"),
            (base64, "SGk=SGVsb", "SGk=SGVs"),
            (base64, "S", ""),
            (quoted, "caf=C3=A9", "caf=C3=A9"),
            (quoted, "caf=C3=A", "caf=C3"),
            (quoted, "caf=C3=", "caf=C3"),
            (quoted, "=", ""),
            (TransferEncoding::Identity, "a=", "a="),
        ];
        for (encoding, encoded, expected) in table {
            assert_eq!(without_truncated_code(encoded.as_bytes(), *encoding), expected.as_bytes(), "{encoded}");
        }
        for c in ["é", "€", "😀"] {
            let text = format!("text{c}");
            assert_eq!(without_truncated_char(text.as_bytes()), text.as_bytes());
            for len in 5..text.len() {
                assert_eq!(without_truncated_char(&text.as_bytes()[..len]), b"text", "{c} {len}");
            }
        }
        assert_eq!(without_truncated_char(b"caf\xe9 "), b"caf\xe9 ");
        assert_eq!(without_truncated_tag("a<b>c<img alt='"), "a<b>c");
        assert_eq!(without_truncated_tag("a<b>c"), "a<b>c");
    }

    #[test]
    fn counts_words_in_chunks() {
        let table = [
            (b"abcdefgh", 8),
            (b"a b c d ", 8),
            (b"a  bcdef", 2),
            (b" abcdefg", 0),
            (b"ab\r\ncdef", 2),
            (b"~!\x7fabcde", 2),
            (b"abcdefg\xc3", 7),
            (b"\xa0bcdefgh", 0),
            (b"\x1fbcdefgh", 0),
        ];
        for (chunk, len) in table {
            assert_eq!(words_len(*chunk), len, "{}", chunk.escape_ascii());
        }
    }

    proptest! {
        #[test]
        fn snippets_do_not_depend_on_pieces(
            pieces in prop::collection::vec("[a-z]{0,9}[ \\r\\n]{0,2}[aé€😀\u{200b}\u{a0}.]{0,9}[ \\x00-\\x7f]{0,3}", 0..20),
        ) {
            let text = pieces.concat();
            let expected = expected_snippet(&text);
            prop_assert_eq!(&pushed(&pieces), &expected);
            prop_assert_eq!(&pushed(&[text]), &expected);
        }

        #[test]
        fn counts_words_like_a_loop_over_bytes(chunk: [u8; CHUNK_BYTES]) {
            let is_allowed = |&at: &usize| {
                chunk[at].is_ascii_graphic() || chunk[at] == b' ' && at > 0 && chunk[at - 1].is_ascii_graphic()
            };
            prop_assert_eq!(words_len(chunk), (0..CHUNK_BYTES).take_while(is_allowed).count());
        }
    }
}
