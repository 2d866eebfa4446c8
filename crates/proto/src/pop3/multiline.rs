//! Multi-line replies, which are sent in parts: a listing of the mailbox, and a message. They track how much was sent,
//! so no reply is ever in memory as a whole.

use restante_mail::message::Source;

use super::dot_stuffing::DotStuffer;
use super::maildrop::Maildrop;
use super::reply;
use super::request::{Column, Extent};
use super::top;

/// The number of message bytes that are dot-stuffed at once. Dot-stuffing adds at most half of it, so a block is small
/// compared with a part.
const BLOCK_BYTES: usize = 8 * 1024;

/// The rest of a multi-line reply after its first line.
#[derive(Debug)]
pub(super) enum MultilineReply {
    Listing(Listing),
    Message(OutgoingMessage),
}

/// The progress of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// There is more to send.
    Partial,
    /// Only the final line with a dot is missing.
    Complete,
}

/// A listing with one line for each message that is not marked as deleted.
#[derive(Debug)]
pub(super) struct Listing {
    pub(super) column: Column,
    /// The number of the next message to list.
    next_number: u64,
}

/// A message, or the top of it.
#[derive(Debug)]
pub(super) struct OutgoingMessage {
    /// All of it is in memory until the end is sent.
    pub(super) source: Source,
    /// The number of octets sent, and the number to send.
    sent: usize,
    length: usize,
    stuffer: DotStuffer,
}

impl Listing {
    pub(super) fn new(column: Column) -> Self {
        Self { column, next_number: 1 }
    }

    /// Appends lines until the output has about this length.
    pub(super) fn fill(&mut self, maildrop: &Maildrop, out: &mut Vec<u8>, length: usize) -> Progress {
        while let Some((number, entry)) = maildrop.next_unmarked(self.next_number) {
            if out.len() >= length {
                return Progress::Partial;
            }
            reply::write_listing_line(out, number, entry, self.column);
            self.next_number = number + 1;
        }
        Progress::Complete
    }
}

impl OutgoingMessage {
    pub(super) fn new(source: Source, extent: Extent) -> Self {
        let length = match extent {
            Extent::Whole => source.len(),
            Extent::Top(lines) => top::length(&source, lines),
        };
        Self { source, sent: 0, length, stuffer: DotStuffer::new() }
    }

    /// Appends text until the output has about this length. Also returns the number of message octets that it took.
    pub(super) fn fill(&mut self, out: &mut Vec<u8>, length: usize) -> (usize, Progress) {
        let sent_before = self.sent;
        while self.sent < self.length && out.len() < length {
            let trace = self.source.trace.len();
            let part = match self.sent.checked_sub(trace) {
                None => &self.source.trace[self.sent..],
                Some(offset) => &self.source.body[offset..],
            };
            let block = &part[..part.len().min(self.length - self.sent).min(BLOCK_BYTES)];
            self.stuffer.push(block, out);
            self.sent += block.len();
        }
        let octets = self.sent - sent_before;
        if self.sent < self.length {
            return (octets, Progress::Partial);
        }
        out.extend_from_slice(self.stuffer.missing_line_end());
        (octets, Progress::Complete)
    }
}
