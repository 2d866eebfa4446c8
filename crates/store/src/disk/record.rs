//! The format of a message in a segment file. A record contains the whole message: its headline, the mailbox, id, marks,
//! tags, details and trace lines of each copy, and the body, once. So the rows of the message can be created from it. All
//! numbers are little-endian.
//!
//! ```text
//! magic u32 | CRC32C of all that follows u32 | length of the whole record u64 | received, Unix nanoseconds i64 |
//! sender text | subject text | recipients text, each ends in a line feed |
//! number of copies u32 | per copy: id u64, marks u8, mailbox text, tags text, details text, trace text | body
//! ```
//!
//! A text is its length in bytes as a u32, and the bytes. Marks are the bits of the flags, and the highest bit if the copy is
//! marked as read.

use std::ops::Range;

use bytes::Bytes;
use restante_mail::details::Details;
use restante_mail::message::{Flags, Headline, MessageId};
use restante_mail::naming::MailboxName;
use restante_mail::tags::Tags;

use crate::sql_values::{nanos_to_time, time_to_nanos};
use crate::{NewCopy, NewMessage};

/// The first bytes of a record: `RMR` and the version of the format.
const MAGIC: u32 = u32::from_le_bytes(*b"RMR1");
/// The first bytes of a record whose space was freed. Everything after its header may be a hole.
pub(super) const FREED_MAGIC: [u8; 4] = *b"RMR-";
/// The length of magic, checksum and length: enough to find the next record.
pub(super) const HEADER_BYTES: usize = 16;
/// The offset of the part that the checksum covers.
const CHECKSUM_START: usize = 8;
/// The offset of the first text, which is after the time of receipt.
const RECEIVED_END: usize = HEADER_BYTES + 8;

/// The bit of the marks of a copy that is marked as read.
const SEEN: u8 = 1 << 7;

/// A record to be written. The body is not copied for it.
pub(super) struct Record {
    /// Everything before the body.
    pub(super) head: Vec<u8>,
    pub(super) body: Bytes,
}

/// What is assigned to a copy before it is stored.
pub(super) struct PreparedCopy {
    pub(super) id: MessageId,
    pub(super) trace: Bytes,
}

/// A valid record. The ranges are those of the texts in its bytes.
pub(super) struct ParsedRecord {
    /// Sender, subject and recipients.
    headline: [Range<usize>; 3],
    copies: Vec<RecordCopy>,
    /// The offset of the body, which extends to the end.
    body: usize,
}

/// A copy in a record.
pub(super) struct RecordCopy {
    pub(super) mailbox: String,
    pub(super) id: MessageId,
    marks: u8,
    tags: Range<usize>,
    details: Range<usize>,
    trace: Range<usize>,
}

/// Why bytes are not a valid record. The text is for the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct RecordError(&'static str);

impl Record {
    /// Creates the record of a message. `prepared` has an element for each of its copies.
    pub(super) fn new(message: &NewMessage, prepared: &[PreparedCopy]) -> Self {
        let NewMessage { received, headline, body, copies } = message;
        let mut head = Vec::with_capacity(HEADER_BYTES + 1024 * copies.len());
        head.extend_from_slice(&[0; HEADER_BYTES]);
        head.extend_from_slice(&time_to_nanos(*received).to_le_bytes());
        for text in [headline.from(), headline.subject(), headline.recipient_lines()] {
            push_text(&mut head, text.as_bytes());
        }
        push_length(&mut head, copies.len());
        for (copy, PreparedCopy { id, trace }) in copies.iter().zip(prepared) {
            head.extend_from_slice(&id.number().to_le_bytes());
            head.push(copy.flags.bits() | if copy.seen { SEEN } else { 0 });
            for text in [copy.mailbox.as_str(), copy.tags.encoded(), copy.details.encoded()] {
                push_text(&mut head, text.as_bytes());
            }
            push_text(&mut head, trace);
        }
        let length = (head.len() + body.len()) as u64;
        head[..4].copy_from_slice(&MAGIC.to_le_bytes());
        head[CHECKSUM_START..HEADER_BYTES].copy_from_slice(&length.to_le_bytes());
        let sum = crc32c::crc32c_append(crc32c::crc32c(&head[CHECKSUM_START..]), body);
        head[4..CHECKSUM_START].copy_from_slice(&sum.to_le_bytes());
        Self { head, body: body.clone() }
    }

    /// Returns the length on disk.
    pub(super) fn len(&self) -> u64 {
        (self.head.len() + self.body.len()) as u64
    }
}

/// Returns the length of the record with this header. The record may be a freed one.
pub(super) fn length(header: [u8; HEADER_BYTES]) -> Result<u64, RecordError> {
    let mut fields = FieldReader { bytes: &header, position: 0 };
    let magic = fields.array()?;
    if magic != FREED_MAGIC && u32::from_le_bytes(magic) != MAGIC {
        return Err(RecordError("there is no record here"));
    }
    fields.position = CHECKSUM_START;
    let length = u64::from_le_bytes(fields.array()?);
    if length < HEADER_BYTES as u64 { Err(RecordError("the length is too small")) } else { Ok(length) }
}

impl ParsedRecord {
    /// Parses a record, and checks that it is complete and unchanged.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, RecordError> {
        let header = bytes.first_chunk().ok_or(RecordError("the header is incomplete"))?;
        if length(*header)? != bytes.len() as u64 {
            return Err(RecordError("the length is wrong"));
        }
        if header.starts_with(&FREED_MAGIC) {
            return Err(RecordError("its space was freed"));
        }
        let mut fields = FieldReader { bytes, position: 4 };
        let sum = u32::from_le_bytes(fields.array()?);
        if crc32c::crc32c(&bytes[CHECKSUM_START..]) != sum {
            return Err(RecordError("the checksum does not match"));
        }
        fields.position = RECEIVED_END;
        let headline = [fields.text()?, fields.text()?, fields.text()?];
        let count = u32::from_le_bytes(fields.array()?);
        let mut copies = Vec::new();
        for _ in 0..count {
            let id = MessageId::from(u64::from_le_bytes(fields.array()?));
            let [marks] = fields.array()?;
            let mailbox = std::str::from_utf8(&bytes[fields.text()?]);
            let mailbox = mailbox.map_err(|_| RecordError("a mailbox name is not UTF-8"))?.to_owned();
            let (tags, details, trace) = (fields.text()?, fields.text()?, fields.text()?);
            copies.push(RecordCopy { mailbox, id, marks, tags, details, trace });
        }
        Ok(Self { headline, copies, body: fields.position })
    }

    /// Returns the message and the ids of its copies. `bytes` are those of this record.
    pub(super) fn into_message(self, bytes: Vec<u8>) -> (NewMessage, Vec<PreparedCopy>) {
        let bytes = Bytes::from(bytes);
        let text = |range: Range<usize>| String::from_utf8_lossy(&bytes[range]);
        let nanos = bytes[HEADER_BYTES..RECEIVED_END].try_into().map_or(0, i64::from_le_bytes);
        let [sender, subject, recipients] = self.headline.map(text);
        let headline = Headline::new(&sender, recipients.split_terminator('\n'), &subject);
        let mut prepared = Vec::with_capacity(self.copies.len());
        let mut copies = Vec::with_capacity(self.copies.len());
        for copy in self.copies {
            let trace = bytes.slice(copy.trace);
            copies.push(NewCopy {
                mailbox: MailboxName::from(copy.mailbox),
                seen: copy.marks & SEEN != 0,
                flags: Flags::from_bits(copy.marks),
                tags: Tags::from_encoded(&text(copy.tags)),
                details: Details::from_encoded(&text(copy.details)),
                trace: Some(trace.clone()),
            });
            prepared.push(PreparedCopy { id: copy.id, trace });
        }
        let body = bytes.slice(self.body..);
        (NewMessage { received: nanos_to_time(nanos), headline, body, copies }, prepared)
    }

    pub(super) fn copies(&self) -> &[RecordCopy] {
        &self.copies
    }

    /// Returns the range of a copy's trace lines and the offset of the body.
    pub(super) fn source(&self, mailbox: &str, id: MessageId) -> Option<(Range<usize>, usize)> {
        let copy = self.copies.iter().find(|copy| copy.id == id && copy.mailbox == mailbox)?;
        Some((copy.trace.clone(), self.body))
    }
}

/// Reads one field after the other. The checksum was correct, so a missing field is a bug.
struct FieldReader<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl<'a> FieldReader<'a> {
    fn slice(&mut self, length: usize) -> Result<&'a [u8], RecordError> {
        let end = self.position.checked_add(length).ok_or(RecordError("a length is too large"))?;
        let slice = self.bytes.get(self.position..end).ok_or(RecordError("a field is missing"))?;
        self.position = end;
        Ok(slice)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], RecordError> {
        self.slice(N)?.try_into().map_err(|_| RecordError("a field is missing"))
    }

    /// Returns the range of a text.
    fn text(&mut self) -> Result<Range<usize>, RecordError> {
        let length = u32::from_le_bytes(self.array()?) as usize;
        let start = self.position;
        self.slice(length)?;
        Ok(start..self.position)
    }
}

fn push_text(head: &mut Vec<u8>, text: &[u8]) {
    push_length(head, text.len());
    head.extend_from_slice(text);
}

/// Panics if the length does not fit. Lengths are limited before they get here: names by the rules for addresses, header
/// fields by the size of messages, the others because this program writes them.
fn push_length(head: &mut Vec<u8>, length: usize) {
    let length = u32::try_from(length).unwrap_or_else(|_| panic!("a length of {length} does not fit into a record"));
    head.extend_from_slice(&length.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::conformance;

    fn record_bytes(message: &NewMessage) -> Vec<u8> {
        let prepare = |(id, copy): (u64, &NewCopy)| PreparedCopy { id: id.into(), trace: copy.trace(message.received) };
        let prepared: Vec<_> = (7..).zip(&message.copies).map(prepare).collect();
        let record = Record::new(message, &prepared);
        [record.head.as_slice(), &record.body].concat()
    }

    #[test]
    fn record_is_parsed_as_written() {
        let bytes = record_bytes(&conformance::message(7, &["ann", "bob"], b"mail\r\n"));
        assert_eq!(length(*bytes.first_chunk().unwrap()), Ok(bytes.len() as u64));
        let parsed = ParsedRecord::parse(&bytes).unwrap();
        let copies: Vec<_> = parsed.copies().iter().map(|copy| (copy.mailbox.as_str(), copy.id.number())).collect();
        assert_eq!(copies, [("ann", 7), ("bob", 8)]);
        let (trace, body) = parsed.source("bob", MessageId::from(8)).unwrap();
        assert_eq!((&bytes[trace], &bytes[body..]), (&b"X-Trace: bob\r\n"[..], &b"mail\r\n"[..]));
        assert!(parsed.source("ann", MessageId::from(8)).is_none());
    }

    #[test]
    fn message_is_restored_from_its_record() {
        let mut message = conformance::message(7, &["ann", "bob"], b"mail\r\n");
        message.copies[1].tags = Tags::new(["a", "b c"]).unwrap();
        (message.copies[0].seen, message.copies[1].flags) = (true, Flags::DRAFT.union(Flags::FLAGGED));
        message.copies[1].details = Details::from_encoded("x\ny\n");
        let bytes = record_bytes(&message);
        let (restored, prepared) = ParsedRecord::parse(&bytes).unwrap().into_message(bytes);
        assert_eq!(prepared.iter().map(|copy| copy.id.number()).collect::<Vec<_>>(), [7, 8]);
        assert_eq!((restored.received, &restored.headline), (message.received, &message.headline));
        assert_eq!(restored.body, message.body);
        for (restored, copy) in restored.copies.iter().zip(&message.copies) {
            assert_eq!((&restored.mailbox, &restored.tags), (&copy.mailbox, &copy.tags));
            assert_eq!((restored.seen, restored.flags), (copy.seen, copy.flags));
            assert_eq!(restored.details, copy.details);
            assert_eq!(restored.trace(message.received), copy.trace(message.received));
        }
    }

    #[test]
    fn detects_every_flipped_bit_and_truncation() {
        let bytes = record_bytes(&conformance::message(7, &["ann", "bob"], b"mail\r\n"));
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut changed = bytes.clone();
                changed[at] ^= 1 << bit;
                assert!(ParsedRecord::parse(&changed).is_err(), "bit {bit} of byte {at}");
            }
            assert!(ParsedRecord::parse(&bytes[..at]).is_err(), "truncated at {at}");
        }
    }
}
