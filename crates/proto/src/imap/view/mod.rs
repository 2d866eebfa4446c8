//! The IMAP view of a message: its structure, and the parts of it that clients fetch and search.
//!
//! A message is parsed once. Its parts are ranges of the source, so that sections are found without a copy.
//!
//! `section` finds the octets of sections, `envelope` and `structure` write ENVELOPE and BODYSTRUCTURE, and `text` decodes
//! the texts that SEARCH compares.

mod address;
mod envelope;
mod section;
mod structure;
#[cfg(test)]
mod tests;
mod text;

use bytes::Bytes;
use restante_mail::mime::{MAX_DEPTH, MAX_PARTS, Part, RawFields, mime_parts};

pub(super) use address::parse_addresses;
pub(in crate::imap) use section::UnknownEncoding;
pub(super) use text::fold;

/// The maximum depth of messages in messages, so that the time to parse them is linear. A deeper message is a file.
const MAX_MESSAGE_DEPTH: usize = 10;

/// A parsed message, with the values that FETCH and SEARCH need.
#[derive(Debug, Clone)]
pub(in crate::imap) struct MessageView {
    source: Bytes,
    /// The parts, each after the one that contains it. The first one is the message.
    nodes: Vec<Node>,
}

/// A part of a message, with the parts in it.
#[derive(Debug, Clone)]
struct Node {
    /// The part, with ranges of the whole source.
    part: Part,
    /// The parts of a multipart. It has at least one.
    children: Vec<usize>,
    /// The root of the message that a message/rfc822 part contains.
    message: Option<usize>,
}

impl MessageView {
    /// Parses a message. Every sequence of octets is accepted.
    pub(in crate::imap) fn parse(source: Bytes) -> Self {
        let mut view = Self { source, nodes: Vec::new() };
        view.add_message(0, view.source.len(), 0);
        // The messages in parts, and the number of messages that contain them.
        let (mut index, mut depths) = (0, vec![(0, 0)]);
        while let Some(node) = view.nodes.get(index) {
            if node.part.content_type == "message/rfc822" {
                let part = &node.part;
                let depth = depths.iter().rev().find(|(first, _)| *first <= index).map_or(0, |(_, depth)| *depth) + 1;
                if depth <= MAX_MESSAGE_DEPTH && part.depth < MAX_DEPTH && view.nodes.len() < MAX_PARTS {
                    let (body, part_depth) = (part.body.clone(), part.depth + 1);
                    depths.push((view.nodes.len(), depth));
                    let root = view.add_message(body.start, body.end, part_depth);
                    view.nodes[index].message = Some(root);
                } else {
                    "application/octet-stream".clone_into(&mut view.nodes[index].part.content_type);
                }
            }
            index += 1;
        }
        view
    }

    /// Adds the parts of the message in a range of the source. Returns the index of its root.
    fn add_message(&mut self, start: usize, end: usize, depth: usize) -> usize {
        let root = self.nodes.len();
        for mut part in mime_parts(&self.source[start..end]) {
            part.header = part.header.start + start..part.header.end + start;
            part.body = part.body.start + start..part.body.end + start;
            part.depth += depth;
            let index = self.nodes.len();
            if let Some(parent) = part.parent {
                self.nodes[root + parent].children.push(index);
            }
            self.nodes.push(Node { part, children: Vec::new(), message: None });
        }
        for index in root..self.nodes.len() {
            let Node { part, children, .. } = &self.nodes[index];
            if part.is_multipart() && children.is_empty() {
                // The syntax of BODYSTRUCTURE requires a part. An empty message is an empty text.
                let end = part.body.end;
                let Some(mut part) = mime_parts(b"").pop() else { continue };
                (part.header, part.body) = (end..end, end..end);
                let child = self.nodes.len();
                self.nodes[index].children.push(child);
                self.nodes.push(Node { part, children: Vec::new(), message: None });
            }
        }
        root
    }

    /// Returns the source of the message.
    pub(in crate::imap) fn source(&self) -> &Bytes {
        &self.source
    }

    /// Returns the value of the first field with this name in the header of the message, still folded.
    pub(super) fn first_field(&self, name: &str) -> Option<&[u8]> {
        self.fields(0).find(|(field, _)| field.eq_ignore_ascii_case(name.as_bytes())).map(|(_, value)| value)
    }

    /// Returns the fields in the header of a part: names, and values that are still folded.
    fn fields(&self, node: usize) -> RawFields<'_> {
        RawFields::new(self.header(node))
    }

    /// Returns the header of a part.
    fn header(&self, node: usize) -> &[u8] {
        &self.source[self.nodes[node].part.header.clone()]
    }
}
