//! The MIME view of a message: headers, texts and attachments, parsed from raw bytes.
//!
//! Messages can be hostile, and many others are malformed. Parsing never fails: every sequence of bytes has a view, and
//! [`Mime::defects`] returns what is wrong with it. Time and memory are linear in the size of the message. Everything
//! that a sender could multiply (parts, depth, fields, parameters, addresses) has a limit.
//!
//! `split` finds the parts as byte ranges; `header`, `params` and `part` parse their headers. `bodies` decides which
//! parts are the text, the HTML and the attachments. `transfer_encoding`, `charset`, `flowed` and `html_to_text` decode
//! a part when it is requested. [`summarize`], [`header_summary`] and [`preview()`] are faster paths for a message that
//! has just arrived.

mod address_list;
mod base64;
mod bodies;
mod charset;
mod code_pages;
mod defect;
mod encoded_words;
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
mod preview;
pub mod references;
mod split;
mod summary;
#[cfg(test)]
mod tests;
mod transfer_encoding;
pub mod url;
mod utf32;
mod utf7;
mod uuencode;

use std::borrow::Cow;
use std::collections::HashMap;

use bytes::Bytes;
use data_encoding::HEXLOWER;
use md5::{Digest, Md5};

use base64::DecodedContent;
use bodies::Bodies;
use charset::DecodedText;
use defect::Defects;
use html_to_text::Style;

use crate::line_ends::with_lf;

pub use address_list::NamedAddress;
pub use bodies::Role;
pub use defect::Defect;
pub use filename::{media_type_of, message_filename, numbered_filename, portable_filename};
pub use header::{HeaderField, RawFields, decode_field, unfold};
pub use params::StructuredValue;
pub use part::{Disposition, Part};
pub use preview::{MAX_SNIPPET_CHARS, Preview, preview, summarize};
pub use split::{MAX_DEPTH, MAX_FIELDS, MAX_PARTS};
pub use summary::{
    HeaderSummary, SummaryField, SummaryFields, decode_short_field, header_summary, summarize_recipients,
    summarize_subject,
};
pub use transfer_encoding::TransferEncoding;

/// The separator between two text parts of one message.
const TEXT_SEPARATOR: &str = "\n--\n";
/// The number of bytes that [`Mime::content_start`] returns at least.
pub const CONTENT_START_BYTES: usize = 16;
/// The number of encoded bytes of which the start of a content is decoded. A byte of quoted-printable can take six: an
/// escape and a line break.
const MAX_ENCODED_START_BYTES: usize = 1024;

/// A parsed message. The byte ranges of its parts are found once; contents are decoded on request.
#[derive(Debug, Clone)]
pub struct Mime {
    source: Bytes,
    header: Vec<HeaderField>,
    parts: Vec<Part>,
    bodies: Bodies,
    structural_defects: Defects,
    omits_fields: bool,
    omits_parts: bool,
}

impl Mime {
    /// Parses a message. Every sequence of bytes is accepted.
    pub fn parse(source: Bytes) -> Self {
        let split = split::split(&source);
        Self {
            bodies: bodies::classify(&source, &split.parts),
            source,
            header: split.header,
            parts: split.parts,
            structural_defects: split.defects,
            omits_fields: split.omits_fields,
            omits_parts: split.omits_parts,
        }
    }

    /// Returns the source of the message.
    pub fn source(&self) -> &Bytes {
        &self.source
    }

    /// Returns the message itself as a part.
    pub fn root(&self) -> &Part {
        &self.parts[0]
    }

    /// Returns all parts, depth first. The first one is the root.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Returns the role of each part, in the order of [`Mime::parts`].
    pub fn roles(&self) -> Vec<Role> {
        self.bodies.roles(self.parts.len())
    }

    /// Returns the header fields of the message, in order.
    pub fn header(&self) -> &[HeaderField] {
        &self.header
    }

    /// Returns the header by canonical field names (`Mime-Version`), in the order of their first occurrence. The values
    /// are unfolded but not decoded, in the order of the message. Bytes that are not UTF-8 are replaced by U+FFFD.
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

    /// Returns the complete subject of the message. `subject` is that of its summary, which is truncated if it is very long.
    /// If it is not the start of the Subject field, because a script has replaced it, it is returned unchanged.
    pub fn complete_subject<'a>(&self, subject: &'a str) -> Cow<'a, str> {
        let field = self.header.iter().find(|field| field.has_name("Subject"));
        field.map_or(Cow::Borrowed(subject), |field| summary::complete_subject(subject, field))
    }

    /// Returns the plain text of the message, in UTF-8 with LF line ends: its text parts, or text converted from the
    /// HTML if they are blank. Flowed lines (RFC 3676) are joined.
    pub fn text(&self) -> String {
        self.text_body().unwrap_or_else(|| self.html_as_text())
    }

    /// Returns the plain text as version 1 of the REST API does, which is compatible with Inbucket: flowed lines are
    /// not joined, and text converted from HTML contains marks for headings and bold text.
    pub fn inbucket_text(&self) -> String {
        self.join_text_parts(FlowedLines::AsSent).unwrap_or_else(|| inbucket_html_as_text(&self.html()))
    }

    /// Returns the content of a text part in UTF-8, with its line ends and its uuencoded files as sent.
    pub fn text_as_sent(&self, part: &Part) -> String {
        part.decode_charset(&self.content(part)).text
    }

    /// Returns the HTML of the message converted to text. Empty if there is no HTML.
    pub fn html_as_text(&self) -> String {
        html_to_text::from_html(&self.html(), Style::Readable)
    }

    /// Returns the text of the text parts. Returns `None` if they are blank and the message has HTML.
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

    /// Returns the HTML of the message as it was sent, in UTF-8 with LF line ends. Empty if there is none. The HTML is
    /// not sanitized.
    pub fn html(&self) -> String {
        self.bodies.html.map(|html| self.decode_text(html, FlowedLines::AsSent).text).unwrap_or_default()
    }

    /// Returns whether the message has an HTML body.
    pub fn has_html(&self) -> bool {
        self.bodies.html.is_some()
    }

    /// Returns the number of attachments that are not [inline](Attachment::is_inline). Decodes nothing.
    pub fn attachment_count(&self) -> usize {
        self.bodies.attachment_count(&self.parts)
    }

    /// Returns the number of parts that are marked as attachments, and of those that are marked as inline. See
    /// [`Preview::attached_parts`] and [`Preview::inline_parts`].
    pub fn disposition_counts(&self) -> (usize, usize) {
        self.bodies.disposition_counts(&self.parts)
    }

    /// Returns whether the header has fields that are not in [`Mime::header`], because there are more than [`MAX_FIELDS`].
    pub fn omits_fields(&self) -> bool {
        self.omits_fields
    }

    /// Returns whether the message has parts that are not in [`Mime::parts`], because there are more than [`MAX_PARTS`] or
    /// they are deeper than [`MAX_DEPTH`].
    pub fn omits_parts(&self) -> bool {
        self.omits_parts
    }

    /// Returns the parts that are offered as files, in this order: inline parts, attachments, parts without a
    /// disposition, and uuencoded files inside of texts. Within each group outer parts precede inner ones. An inline
    /// text with a file name is listed here and is also part of the plain text.
    pub fn attachments(&self) -> Vec<Attachment<'_>> {
        let attachment = |(index, &part): (usize, &usize)| Attachment::new(self, part, index);
        self.bodies.attachments.iter().enumerate().map(attachment).collect()
    }

    /// Returns the parts in the order of Inbucket's list of attachments, in which also bodies that are marked as inline count.
    /// A part that [`Mime::attachments`] lists has the same name in both.
    pub fn inbucket_attachments(&self) -> Vec<Attachment<'_>> {
        let listed = &self.bodies.attachments;
        let attachment = |(index, part): (usize, usize)| {
            Attachment::new(self, part, listed.iter().position(|&other| other == part).unwrap_or(index))
        };
        self.bodies.inbucket_attachments(&self.parts).into_iter().enumerate().map(attachment).collect()
    }

    /// Decodes the transfer encoding of a part and returns its content. Does not copy if there is no encoding.
    pub fn content(&self, part: &Part) -> Bytes {
        self.decode_part(part).content
    }

    /// Decodes the start of a part: at least the first [`CONTENT_START_BYTES`] bytes of the content, if it is that long.
    /// Costs less than [`Self::content`]. For a damaged part the result can differ from the start of the content.
    pub fn content_start(&self, part: &Part) -> Bytes {
        let body = self.raw_body(part);
        let start = match part.transfer_encoding {
            // Its decoder needs the last line.
            TransferEncoding::Uuencode => body,
            TransferEncoding::Base64 => {
                let blank = body.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
                body.slice(blank..body.len().min(blank + MAX_ENCODED_START_BYTES))
            }
            TransferEncoding::QuotedPrintable => body.slice(..body.len().min(MAX_ENCODED_START_BYTES)),
            TransferEncoding::Identity => body.slice(..body.len().min(CONTENT_START_BYTES)),
        };
        part.transfer_encoding.decode(&start, part.expected_content()).content
    }

    fn decode_part(&self, part: &Part) -> DecodedContent {
        part.transfer_encoding.decode(&self.raw_body(part), part.expected_content())
    }

    /// Returns the defects of the message. This decodes every part, so it costs more than all other methods together.
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
                let detail = format!(
                    "Lines of the part {} are not Base64. Lines that are {outcome}: {foreign_lines}.",
                    part.content_type
                );
                defects.add_severe(name, detail);
            }
            if broken > 0 {
                let detail = format!(
                    "The part {} cannot be decoded completely. Places with errors: {broken}.",
                    part.content_type
                );
                defects.add_severe(name, detail);
            }
        }
        for &body in self.bodies.text.iter().chain(&self.bodies.html) {
            if let Some(defect) = self.decode_text(body, FlowedLines::AsSent).defect {
                defects.add_severe(Defect::CHARSET, defect);
            }
        }
        if self.text_body().is_none() {
            defects
                .add_minor(Defect::TEXT_FROM_HTML, "The message has no plain text. The text was made from the HTML.");
        }
        defects.into_vec()
    }

    fn raw_body(&self, part: &Part) -> Bytes {
        self.source.slice(part.body.clone())
    }

    /// Returns the content of a text part without the uuencoded files inside of it, which are separate parts.
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

    /// Decodes a text part to UTF-8 with LF line ends.
    fn decode_text(&self, index: usize, lines: FlowedLines) -> DecodedText {
        let part = &self.parts[index];
        let decoded = part.decode_charset(&self.text_content(index));
        let text = with_lf(decoded.text);
        let text = match part.flowed {
            Some(flowed) if lines == FlowedLines::Joined && part.content_type == "text/plain" => {
                flowed::unflow(&text, flowed)
            }
            _ => text,
        };
        DecodedText { text, defect: decoded.defect }
    }
}

/// Returns the parts of a message by the rules of MIME alone, depth first, with at least one. They differ from
/// [`Mime::parts`]: blank parts are included, uuencoded files stay in their text, and the body of a multipart extends over its
/// closing boundary and its epilogue.
pub fn mime_parts(source: &[u8]) -> Vec<Part> {
    split::split_structure(source)
}

/// Decodes text in the charset with this label. Returns `None` if the charset is unknown. Invalid bytes are replaced.
pub fn decode_text(label: &str, bytes: &[u8]) -> Option<String> {
    let is_known = labels::Charset::from_label(label) != labels::Charset::Unknown;
    is_known.then(|| charset::decode(Some(label), bytes).text)
}

/// Converts HTML to text as [`Mime::inbucket_text`] does.
pub fn inbucket_html_as_text(html: &str) -> String {
    html_to_text::from_html(html, Style::Inbucket)
}

/// The treatment of flowed lines (RFC 3676).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FlowedLines {
    AsSent,
    Joined,
}

/// A part of a message that is offered as a file.
#[derive(Debug, Clone)]
pub struct Attachment<'a> {
    /// The part.
    pub part: &'a Part,
    /// The file name, safe to use in links and headers. Generated if the part declares none.
    pub filename: String,
    /// `type/subtype`.
    pub content_type: String,
    /// Whether the part belongs to the HTML, such as an image in it: it has a Content-ID, and it is of a type that HTML
    /// embeds, in a multipart/related and not marked as an attachment, or an image in a multipart/mixed that is marked as
    /// inline. Counts of attachments leave it out.
    pub is_inline: bool,
    mime: &'a Mime,
}

impl<'a> Attachment<'a> {
    /// Creates the attachment at `index` of the list. `part` is the index of its part.
    fn new(mime: &'a Mime, part: usize, index: usize) -> Self {
        let is_inline = mime.bodies.is_inline(&mime.parts, part);
        let part = &mime.parts[part];
        Self {
            filename: filename::attachment_filename(part.filename.as_deref(), &part.content_type, index),
            content_type: part.content_type.clone(),
            is_inline,
            part,
            mime,
        }
    }

    /// Decodes the transfer encoding and returns the content, otherwise unchanged.
    pub fn content(&self) -> Bytes {
        self.mime.content(self.part)
    }

    /// Returns the MD5 digest of the content, in lower-case hexadecimal.
    pub fn md5_hex(&self) -> String {
        self.len_and_md5().1
    }

    /// Returns the length of the content and its MD5 digest. Decodes the content once.
    pub fn len_and_md5(&self) -> (usize, String) {
        let content = self.content();
        (content.len(), HEXLOWER.encode(&Md5::digest(&content)))
    }
}
