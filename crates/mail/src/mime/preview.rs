//! The preview of a message: the first words of its text and the number of its attachments, for lists of messages.
//!
//! It is computed when a message arrives, so it costs far less than a view. A message of plain ASCII text is neither
//! split nor decoded. Other messages are split into their parts, and only the start of a text is decoded.

use std::borrow::Cow;
use std::ops::ControlFlow;

use super::TEXT_SEPARATOR;
use super::base64::is_base64_digit;
use super::bodies::{self, Bodies};
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
pub const MAX_SNIPPET_CHARS: usize = 100;
/// A snippet that would end within a word ends before the word, unless it would be shorter than this number of
/// characters.
const MIN_CUT_SNIPPET_CHARS: usize = MAX_SNIPPET_CHARS / 2;
/// The number of bytes of plain ASCII text that are read without decoding. They contain a snippet, unless most of them
/// are blank.
const ASCII_BYTES: usize = 512;
/// The number of bytes of the text parts that are decoded, before decoding.
const TEXT_BYTES: usize = 4 * 1024;
/// The number of bytes of the HTML that are decoded, before decoding. The second number is used if the text that the
/// first one contains is too short: many documents start with a long style sheet.
const HTML_BYTES: [usize; 2] = [8 * 1024, 32 * 1024];

/// What lists show of the content of a message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Preview {
    /// The first words of the text, on one line, at most [`MAX_SNIPPET_CHARS`] characters.
    pub snippet: String,
    /// The number of attachments.
    pub attachments: u32,
}

/// Returns the preview of a message.
///
/// The snippet is the start of [`Mime::text`](super::Mime::text). Whitespace and control characters are collapsed to
/// single spaces, and characters without a width are omitted. It ends at the end of a word if possible. It is empty if
/// the text starts beyond the first 4 KiB of the text parts, and beyond the first 32 KiB of the HTML. A charset that is
/// not declared is detected by these bytes.
///
/// The number of attachments is [`Mime::attachment_count`](super::Mime::attachment_count).
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
        && let Some(snippet) = ascii_snippet(&source[body..])
    {
        return Preview { snippet, attachments: 0 };
    }
    let mut root = content.into_part("text/plain", &mut Defects::default());
    root.header = 0..body;
    root.body = body..source.len();
    let parts = split::split_parts(source, root);
    let bodies = bodies::classify(source, &parts);
    Preview {
        snippet: snippet(source, &parts, &bodies),
        // The number of parts is limited.
        attachments: u32::try_from(bodies.attachments.len()).unwrap_or(u32::MAX),
    }
}

/// Returns the snippet of a text if it only depends on ASCII characters. These are the same in all charsets that
/// [`ContentFields::is_unencoded_text`] accepts.
fn ascii_snippet(text: &[u8]) -> Option<String> {
    let mut snippet = SnippetWriter::default();
    let start = &text[..text.len().min(ASCII_BYTES)];
    for &byte in start {
        if byte.is_ascii_graphic() {
            if snippet.push_visible(&[byte]).is_break() {
                break;
            }
        } else if byte.is_ascii() && byte != b'\x1b' {
            snippet.has_gap = true;
        } else {
            // An escape character can start a sequence of a stateful charset.
            return None;
        }
    }
    (snippet.is_full || start.len() == text.len()).then(|| snippet.into_string())
}

/// Returns the snippet of a message: of its texts, or of its HTML if they are blank.
fn snippet(source: &[u8], parts: &[Part], bodies: &Bodies) -> String {
    let snippet = text_snippet(source, parts, &bodies.text);
    match bodies.html {
        Some(html) if snippet.is_empty() => html_snippet(source, &parts[html]).into_string(),
        _ => snippet.into_string(),
    }
}

/// Returns the snippet of the text parts.
fn text_snippet(source: &[u8], parts: &[Part], texts: &[usize]) -> SnippetWriter {
    let mut snippet = SnippetWriter::default();
    let mut rest = TEXT_BYTES;
    for &index in texts {
        let part = &parts[index];
        let start = BodyStart::of_text(source, parts, index, rest);
        rest -= start.encoded.len();
        let mut text = start.decode(part);
        if let Some(flowed) = part.flowed.filter(|_| part.content_type == "text/plain") {
            text = flowed::unflow(&text.replace("\r\n", "\n"), flowed);
        }
        if !text.trim().is_empty() {
            if !snippet.is_empty() {
                let _ = snippet.push(TEXT_SEPARATOR);
            }
            let _ = snippet.push(&text);
        }
        if start.is_truncated {
            snippet.end_truncated();
        }
        if snippet.is_full {
            break;
        }
    }
    snippet
}

/// Returns the snippet of an HTML part.
fn html_snippet(source: &[u8], part: &Part) -> SnippetWriter {
    let mut snippet = SnippetWriter::default();
    for limit in HTML_BYTES {
        snippet = SnippetWriter::default();
        let start = BodyStart::new(&source[part.body.clone()], limit);
        let html = start.decode(part);
        let html = if start.is_truncated { without_truncated_tag(&html) } else { &html };
        html_to_text::read_html(html, !start.is_truncated, |text| snippet.push(text));
        if snippet.is_full || !start.is_truncated {
            return snippet;
        }
        snippet.end_truncated();
    }
    snippet
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
    fn decode(&self, part: &Part) -> String {
        let encoding = part.transfer_encoding;
        let encoded = if self.is_truncated { without_truncated_code(&self.encoded, encoding) } else { &self.encoded };
        let content = encoding.decode_slice(encoded, part.expected_content()).content;
        let content = if self.is_truncated { without_truncated_char(&content) } else { &content };
        part.decode_charset(content).text
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
    match std::str::from_utf8(content.get(tail..).unwrap_or_default()) {
        Ok(_) => content,
        Err(_) => {
            let lead = content[tail..].iter().rposition(|b| !(0x80..0xc0).contains(b)).map(|at| tail + at);
            let is_truncated =
                |at: &usize| std::str::from_utf8(&content[*at..]).is_err_and(|error| error.error_len().is_none());
            lead.filter(is_truncated).map_or(content, |at| &content[..at])
        }
    }
}

/// A snippet that is being written.
struct SnippetWriter {
    /// The text, in UTF-8.
    buffer: [u8; MAX_SNIPPET_CHARS * 4],
    len: usize,
    /// The length of the text, in characters.
    chars: usize,
    /// The end of the last word but one, as a length in bytes and in characters.
    last_gap: (usize, usize),
    /// Whether a space precedes the next word.
    has_gap: bool,
    /// Whether more text has no effect.
    is_full: bool,
}

impl Default for SnippetWriter {
    fn default() -> Self {
        let buffer = [0; MAX_SNIPPET_CHARS * 4];
        Self { buffer, len: 0, chars: 0, last_gap: (0, 0), has_gap: false, is_full: false }
    }
}

impl SnippetWriter {
    fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn text(&self) -> &[u8] {
        &self.buffer[..self.len]
    }

    fn into_string(self) -> String {
        // Only whole characters are written, so the text is valid.
        String::from_utf8_lossy(self.text()).into_owned()
    }

    /// Writes text. It need not start or end at the end of a word. Breaks if the snippet is full.
    fn push(&mut self, text: &str) -> ControlFlow<()> {
        for c in text.chars() {
            if c.is_ascii_graphic() {
                self.push_visible(&[c as u8])?;
            } else if c.is_whitespace() || c.is_control() {
                self.has_gap = true;
            } else if !is_invisible(c) {
                self.push_visible(c.encode_utf8(&mut [0; 4]).as_bytes())?;
            }
        }
        if self.is_full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Writes a visible character.
    #[inline]
    fn push_visible(&mut self, utf8: &[u8]) -> ControlFlow<()> {
        if self.has_gap && self.len > 0 {
            // The space would be the last character.
            if self.chars + 1 >= MAX_SNIPPET_CHARS {
                return self.end();
            }
            self.last_gap = (self.len, self.chars);
            self.append(b" ");
        } else if self.chars == MAX_SNIPPET_CHARS {
            if self.last_gap.1 >= MIN_CUT_SNIPPET_CHARS {
                self.len = self.last_gap.0;
            }
            return self.end();
        }
        self.has_gap = false;
        self.append(utf8);
        ControlFlow::Continue(())
    }

    #[inline]
    fn append(&mut self, utf8: &[u8]) {
        self.buffer[self.len..self.len + utf8.len()].copy_from_slice(utf8);
        self.len += utf8.len();
        self.chars += 1;
    }

    fn end(&mut self) -> ControlFlow<()> {
        self.is_full = true;
        ControlFlow::Break(())
    }

    /// Ends the snippet of a truncated text. Drops the last word if it may be incomplete. If it is the only word, it is
    /// kept, but not a truncated character at its end.
    fn end_truncated(&mut self) {
        if self.is_full {
            return;
        }
        self.is_full = true;
        if self.last_gap.0 > 0 && !self.has_gap {
            self.len = self.last_gap.0;
        }
        while let Some(rest) = self.text().strip_suffix("\u{fffd}".as_bytes()) {
            self.len = rest.len();
        }
    }
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
