//! The octets of sections (RFC 3501 section 6.4.5) and decoded parts (RFC 3516).

use std::collections::HashSet;
use std::num::NonZeroU32;
use std::ops::Range;

use bytes::Bytes;
use restante_mail::mime::RawFields;

use super::MessageView;
use crate::imap::command::{Section, SectionText};

/// The transfer encoding of a part is unknown, so that its content cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::imap) struct UnknownEncoding;

/// What the numbers of a section select.
struct Selected {
    /// The part. For a message, its root.
    node: usize,
    /// The root of the message that is selected or that the part contains.
    message: Option<usize>,
}

impl MessageView {
    /// Returns the octets of a section. Returns `None` if the message has no such section. Copies only for HEADER.FIELDS and
    /// HEADER.FIELDS.NOT.
    pub(in crate::imap) fn section(&self, section: &Section) -> Option<Bytes> {
        let Selected { node, message } = self.select(&section.part)?;
        let header = |node: usize| self.nodes[node].part.header.clone();
        let body = |node: usize| self.nodes[node].part.body.clone();
        let range = match &section.text {
            SectionText::All if section.part.is_empty() => 0..self.source.len(),
            SectionText::All => body(node),
            SectionText::Header => header(message?),
            SectionText::HeaderFields(names) => return Some(self.header_fields(message?, names, true)),
            SectionText::HeaderFieldsNot(names) => return Some(self.header_fields(message?, names, false)),
            SectionText::Text => body(message?),
            SectionText::Mime if section.part.is_empty() => return None,
            SectionText::Mime => header(node),
        };
        Some(self.source.slice(range))
    }

    /// Returns the decoded content of a part. Multiparts and messages are not encoded. Returns `None` if the message has no
    /// such part.
    pub(in crate::imap) fn binary(&self, part: &[NonZeroU32]) -> Option<Result<Bytes, UnknownEncoding>> {
        let Selected { node, .. } = self.select(part)?;
        if part.is_empty() {
            return Some(Ok(self.source.clone()));
        }
        let node = &self.nodes[node];
        if !node.children.is_empty() || node.message.is_some() {
            return Some(Ok(self.source.slice(node.part.body.clone())));
        }
        Some(if node.part.has_known_encoding() {
            Ok(node.part.decode_content(&self.source))
        } else {
            Err(UnknownEncoding)
        })
    }

    /// Finds a part by its numbers. The only part of a message that is not a multipart has the number 1.
    fn select(&self, part: &[NonZeroU32]) -> Option<Selected> {
        let mut selected = Selected { node: 0, message: Some(0) };
        for number in part {
            let parent = selected.message.unwrap_or(selected.node);
            let children = &self.nodes[parent].children;
            let node = if !children.is_empty() {
                *children.get(usize::try_from(number.get() - 1).ok()?)?
            } else if selected.message.is_some() && number.get() == 1 {
                parent
            } else {
                return None;
            };
            selected = Selected { node, message: self.nodes[node].message };
        }
        Some(selected)
    }

    /// Returns the fields with these names, or the header without them, and the blank line.
    fn header_fields(&self, message: usize, names: &[String], is_included: bool) -> Bytes {
        let header = self.header(message);
        let names: HashSet<_> = names.iter().map(|name| name.to_ascii_lowercase().into_bytes()).collect();
        let mut found = Vec::new();
        // The end of the last field that was included, or left out.
        let mut pos = 0;
        for (name, value) in RawFields::new(header).into_ranges() {
            if names.contains(&header[name.clone()].to_ascii_lowercase()) {
                let end = line_end(header, value.end);
                let range = if is_included { name.start..end } else { pos..name.start };
                push_lines(&mut found, header, range);
                pos = end;
            }
        }
        if !is_included {
            push_lines(&mut found, header, pos..header.len());
            if let Some(fields) = strip_blank_line(&found) {
                found.truncate(fields);
            }
        }
        found.extend_from_slice(b"\r\n");
        found.into()
    }
}

/// Appends lines. The last line of a header can have no line end.
fn push_lines(out: &mut Vec<u8>, header: &[u8], range: Range<usize>) {
    out.extend_from_slice(&header[range]);
    if !out.is_empty() && !out.ends_with(b"\n") {
        out.extend_from_slice(b"\r\n");
    }
}

/// Returns the end of the line whose text ends at `end`.
fn line_end(header: &[u8], end: usize) -> usize {
    let rest = &header[end..];
    let rest = rest.strip_prefix(b"\r").unwrap_or(rest);
    header.len() - rest.strip_prefix(b"\n").unwrap_or(rest).len()
}

/// Returns the length of the header without its blank line. Returns `None` if it has none.
fn strip_blank_line(header: &[u8]) -> Option<usize> {
    let fields = header.strip_suffix(b"\n")?;
    let fields = fields.strip_suffix(b"\r").unwrap_or(fields);
    (fields.is_empty() || fields.ends_with(b"\n")).then_some(fields.len())
}
