//! The MIME view of a mail: headers, texts and attachments out of raw bytes.
//!
//! Mail is hostile, and what is not hostile is often broken. Nothing here fails: whatever the bytes are, there is a
//! view of them, and [`Mime::defects`] says what was wrong. Time and memory are linear in the size of the mail, and
//! everything a sender could multiply (parts, depth, fields, parameters, addresses) has a limit.
//!
//! A mail takes this way: `split` finds the parts as byte ranges (`header`, `params` and `part` read what they say
//! about themselves), `bodies` decides which of them are the text, the HTML and the attachments. When one of these is
//! requested, `transfer`, `charset`, `flowed` and `plain` decode it. [`header_summary`] is the short way for mail that
//! has just arrived.

mod address_list;
mod base64;
mod bodies;
mod charset;
mod code_pages;
mod defect;
mod encoded_words;
mod entities;
mod filename;
mod flowed;
mod header;
mod html_to_text;
pub mod html_tokens;
mod hz;
mod iso2022;
mod labels;
mod line;
mod mixed_base64;
mod params;
mod part;
pub mod references;
mod split;
mod summary;
mod transfer_encoding;
mod utf32;
mod utf7;
mod uuencode;

use std::collections::HashMap;
use std::fmt::Write as _;

use bytes::Bytes;
use md5::{Digest, Md5};

use base64::DecodedContent;
use bodies::Bodies;
use charset::DecodedText;
use defect::Defects;
use html_to_text::Style;

pub use address_list::NamedAddress;
pub use bodies::Role;
pub use defect::Defect;
pub use header::HeaderField;
pub use part::{Disposition, Part};
pub use split::{MAX_DEPTH, MAX_FIELDS, MAX_PARTS};
pub use summary::{HeaderSummary, header_summary, summarize_recipients, summarize_subject};
pub use transfer_encoding::TransferEncoding;

/// What stands between two texts of one mail.
const TEXT_SEPARATOR: &str = "\n--\n";

/// A parsed mail: byte ranges over its source, found once; contents are decoded when they are asked for.
#[derive(Debug, Clone)]
pub struct Mime {
    source: Bytes,
    header: Vec<HeaderField>,
    parts: Vec<Part>,
    bodies: Bodies,
    structural_defects: Defects,
}

impl Mime {
    /// Finds the parts of a mail. Every sequence of bytes is a mail.
    pub fn parse(source: Bytes) -> Self {
        let split = split::split(&source);
        Self {
            bodies: bodies::classify(&source, &split.parts),
            source,
            header: split.header,
            parts: split.parts,
            structural_defects: split.defects,
        }
    }

    /// The bytes of the mail.
    pub fn source(&self) -> &Bytes {
        &self.source
    }

    /// The mail itself as a part.
    pub fn root(&self) -> &Part {
        &self.parts[0]
    }

    /// All parts, depth first; the root is the first.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// What each of these parts is for, in their order.
    pub fn roles(&self) -> Vec<Role> {
        self.bodies.roles(self.parts.len())
    }

    /// The fields of the mail's header, in order.
    pub fn header(&self) -> &[HeaderField] {
        &self.header
    }

    /// The header by canonical names (`Mime-Version`), in the order in which each is first seen; values unfolded, not
    /// decoded, in the order of the mail. Bytes that are no UTF-8 become U+FFFD.
    pub fn header_map(&self) -> Vec<(String, Vec<String>)> {
        let mut map: Vec<(String, Vec<String>)> = Vec::new();
        let mut indices = HashMap::new();
        for field in &self.header {
            let name = field.name();
            let index_in_map = *indices.entry(name.clone()).or_insert_with(|| {
                map.push((name, Vec::new()));
                map.len() - 1
            });
            map[index_in_map].1.push(field.value());
        }
        map
    }

    /// The plain text of the mail, in UTF-8 with lines that end in LF: its text parts, or its HTML made readable when
    /// they say nothing. Flowed lines (RFC 3676) are joined.
    pub fn text(&self) -> String {
        self.text_body().unwrap_or_else(|| self.html_as_text())
    }

    /// The plain text of the mail in the form of version 1 of the REST API, which is Inbucket's: flowed lines as they
    /// were sent, and text made from HTML with its marks for headings and bold text.
    pub fn inbucket_text(&self) -> String {
        let from_html = || html_to_text::from_html(&self.html(), Style::Inbucket);
        self.join_text_parts(FlowedLines::AsSent).unwrap_or_else(from_html)
    }

    /// The HTML of the mail made readable; empty when there is none.
    pub fn html_as_text(&self) -> String {
        html_to_text::from_html(&self.html(), Style::Readable)
    }

    /// The texts of the text parts; `None` when the HTML has to speak for them.
    pub fn text_body(&self) -> Option<String> {
        self.join_text_parts(FlowedLines::Joined)
    }

    fn join_text_parts(&self, lines: FlowedLines) -> Option<String> {
        let mut texts: Vec<_> = self.bodies.text.iter().map(|&text| self.decode_text(text, lines).text).collect();
        if texts.len() > 1 {
            texts.retain(|text| !text.trim().is_empty());
        }
        let is_blank = texts.iter().all(|text| text.trim().is_empty());
        if is_blank && self.bodies.html.is_some() {
            return None;
        }
        Some(if texts.len() == 1 { texts.swap_remove(0) } else { texts.join(TEXT_SEPARATOR) })
    }

    /// The HTML of the mail as it was sent, in UTF-8 with lines that end in LF; empty when there is none. It is
    /// not sanitised.
    pub fn html(&self) -> String {
        self.bodies.html.map(|html| self.decode_text(html, FlowedLines::AsSent).text).unwrap_or_default()
    }

    /// Whether the mail has an HTML body.
    pub fn has_html(&self) -> bool {
        self.bodies.html.is_some()
    }

    /// How many attachments there are. Nothing is decoded for it.
    pub fn attachment_count(&self) -> usize {
        self.bodies.attachments.len()
    }

    /// The parts that are handed out as files: inline parts first, then attachments, then parts that do not say, and at
    /// last files in uuencode that are written into a text. In each group the outer parts come before the inner ones. An
    /// inline text with a file name is listed although it is a piece of the plain text, too.
    pub fn attachments(&self) -> Vec<Attachment<'_>> {
        let parts = self.bodies.attachments.iter().map(|&index| &self.parts[index]);
        let attachment = |(index, part): (usize, _)| Attachment::new(self, part, index);
        parts.enumerate().map(attachment).collect()
    }

    /// The content of a part with its transfer encoding undone; not copied where there is none.
    pub fn content(&self, part: &Part) -> Bytes {
        self.decode_part(part).content
    }

    fn decode_part(&self, part: &Part) -> DecodedContent {
        part.transfer_encoding.decode(&self.raw_body(part), part.expected_content())
    }

    /// What is wrong with the mail. This decodes every part, so it costs more than the rest of the view.
    pub fn defects(&self) -> Vec<Defect> {
        let mut defects = self.structural_defects.clone();
        for part in self.parts.iter().filter(|part| !part.is_multipart()) {
            let DecodedContent { broken, foreign_lines, .. } = self.decode_part(part);
            let name = match part.transfer_encoding {
                TransferEncoding::QuotedPrintable => Defect::QUOTED_PRINTABLE,
                TransferEncoding::Uuencode => Defect::UUENCODE,
                _ => Defect::BASE64,
            };
            if foreign_lines > 0 {
                let outcome = if part.is_text() { "kept as text" } else { "left out" };
                let detail = format!("lines of {} that are not base64, {outcome}: {foreign_lines}", part.content_type);
                defects.add_severe(name, detail);
            }
            if broken > 0 {
                defects.add_severe(name, format!("places in {} that cannot be decoded: {broken}", part.content_type));
            }
        }
        for &body in self.bodies.text.iter().chain(&self.bodies.html) {
            if let Some(defect) = self.decode_text(body, FlowedLines::AsSent).defect {
                defects.add_severe(Defect::CHARSET, defect);
            }
        }
        if self.text_body().is_none() {
            defects.add_minor(Defect::TEXT_FROM_HTML, "the mail has no plain text, it was made from the HTML");
        }
        defects.into_vec()
    }

    fn raw_body(&self, part: &Part) -> Bytes {
        self.source.slice(part.body.clone())
    }

    /// The content of a text without the files that are written into it, which are parts of their own.
    fn text_content(&self, index: usize) -> Bytes {
        let part = &self.parts[index];
        let files = self.parts[index + 1..].iter().take_while(|file| file.parent == Some(index));
        let mut files = files.map(|file| file.body.clone()).peekable();
        if files.peek().is_none() {
            return self.content(part);
        }
        let mut text = Vec::with_capacity(part.body.len());
        let mut start = part.body.start;
        for file in files {
            text.extend_from_slice(&self.source[start..file.start]);
            start = file.end;
        }
        text.extend_from_slice(&self.source[start..part.body.end]);
        text.into()
    }

    /// The text of a part in UTF-8, with lines that end in LF.
    fn decode_text(&self, index: usize, lines: FlowedLines) -> DecodedText {
        let part = &self.parts[index];
        let content = self.text_content(index);
        let html = part.content_type == "text/html";
        let in_html = || html.then(|| charset::charset_declared_in_html(&content)).flatten();
        let charset = part.charset.clone().or_else(in_html);
        let decoded = charset::decode(charset.as_deref(), &content);
        let text = if memchr::memchr(b'\r', decoded.text.as_bytes()).is_some() {
            decoded.text.replace("\r\n", "\n")
        } else {
            decoded.text
        };
        let text = match part.flowed {
            Some(flowed) if lines == FlowedLines::Joined && part.content_type == "text/plain" => {
                flowed::unflow(&text, flowed)
            }
            _ => text,
        };
        DecodedText { text, defect: decoded.defect }
    }
}

/// What becomes of flowed lines (RFC 3676).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FlowedLines {
    AsSent,
    Joined,
}

/// A part of a mail that is handed out as a file.
#[derive(Debug, Clone)]
pub struct Attachment<'a> {
    /// The part.
    pub part: &'a Part,
    /// The file name, safe to use in links and headers; made up when the part declares none.
    pub filename: String,
    /// `type/subtype`.
    pub content_type: String,
    mime: &'a Mime,
}

impl<'a> Attachment<'a> {
    fn new(mime: &'a Mime, part: &'a Part, index: usize) -> Self {
        Self {
            filename: filename::attachment_filename(part.filename.as_deref(), &part.content_type, index),
            content_type: part.content_type.clone(),
            part,
            mime,
        }
    }

    /// The content, with its transfer encoding undone and otherwise as it was sent.
    pub fn content(&self) -> Bytes {
        self.mime.content(self.part)
    }

    /// The MD5 digest of the content, in lower-case hexadecimal.
    pub fn md5_hex(&self) -> String {
        self.len_and_md5().1
    }

    /// The length of the content and its MD5 digest, for which it is decoded once.
    pub fn len_and_md5(&self) -> (usize, String) {
        let content = self.content();
        let digest = Md5::digest(&content);
        let hex = digest.iter().fold(String::with_capacity(32), |mut hex, byte| {
            // Writing to a string cannot fail.
            let _ = write!(hex, "{byte:02x}");
            hex
        });
        (content.len(), hex)
    }
}
