//! Answers of many lines, which go out in portions: a listing of the mailbox, and a message. What has gone out is
//! remembered here, so that no answer is ever in memory as a whole.

use restante_mail::message::Source;

use super::dot_stuffing::DotStuffer;
use super::maildrop::Maildrop;
use super::reply;
use super::request::{Column, Extent};
use super::top;

/// How much of a message is stuffed at once. Stuffing makes at most half as much again of it, so the pieces are small
/// against the portions.
const BLOCK_BYTES: usize = 8 * 1024;

/// The part of an answer behind its first line that is still to be sent.
#[derive(Debug)]
pub(super) enum MultilineReply {
    Listing(Listing),
    Message(OutgoingMessage),
}

/// How far an answer has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// There is more to send.
    Partial,
    /// Only the dot that ends the answer is missing.
    Complete,
}

/// One line for each message that is not marked.
#[derive(Debug)]
pub(super) struct Listing {
    pub(super) column: Column,
    /// The number of the message to go on with.
    next_number: u64,
}

/// A message, or the top of it.
#[derive(Debug)]
pub(super) struct OutgoingMessage {
    source: Source,
    /// How much of it is sent, and how much is to be.
    sent: usize,
    length: usize,
    stuffing: DotStuffer,
}

impl Listing {
    pub(super) fn new(column: Column) -> Self {
        Self { column, next_number: 1 }
    }

    /// Appends lines until the output has about the given length.
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
        Self { source, sent: 0, length, stuffing: DotStuffer::new() }
    }

    /// The bytes of the message, which are held until all of it is sent.
    pub(super) fn held_bytes(&self) -> usize {
        self.source.len()
    }

    /// Appends text until the output has about the given length. Also returns how many octets of the message these were.
    pub(super) fn fill(&mut self, out: &mut Vec<u8>, length: usize) -> (usize, Progress) {
        let before = self.sent;
        while self.sent < self.length && out.len() < length {
            let trace = self.source.trace.len();
            let part = match self.sent.checked_sub(trace) {
                None => &self.source.trace[self.sent..],
                Some(at) => &self.source.body[at..],
            };
            let piece = &part[..part.len().min(self.length - self.sent).min(BLOCK_BYTES)];
            self.stuffing.push(piece, out);
            self.sent += piece.len();
        }
        let octets = self.sent - before;
        if self.sent < self.length {
            return (octets, Progress::Partial);
        }
        out.extend_from_slice(self.stuffing.missing_line_end());
        (octets, Progress::Complete)
    }
}
