//! The format of a message in a segment file. A record contains everything that is needed to find its copies again:
//! their mailboxes and ids, the trace lines of each mailbox, and the body, once. All numbers are little-endian.
//!
//! ```text
//! magic u32 | CRC32C of all that follows u32 | length of the whole record u64 | received, Unix nanoseconds i64 |
//! number of copies u32 | per copy: id u64, length of trace u32, length of mailbox u16, mailbox |
//! traces, in the same order | body
//! ```

use std::ops::Range;

use bytes::Bytes;
use restante_mail::message::MessageId;

use crate::sql_values::time_to_nanos;
use crate::{NewCopy, NewMessage};

/// The first bytes of a record: `RMR` and the version of the format.
const MAGIC: u32 = u32::from_le_bytes(*b"RMR1");
/// The first bytes of a record whose space was freed. Everything after its header may be a hole.
pub(super) const FREED_MAGIC: [u8; 4] = *b"RMR-";
/// The length of magic, checksum and length: enough to find the next record.
pub(super) const HEADER_BYTES: usize = 16;
/// The length of id and lengths of a copy.
const COPY_HEADER_BYTES: usize = 14;
/// The offset of the part that the checksum covers.
const CHECKSUM_START: usize = 8;

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

/// A valid record.
pub(super) struct ParsedRecord {
    copies: Vec<RecordCopy>,
    /// The offset of the body, which extends to the end.
    body: usize,
}

/// A copy in a record.
pub(super) struct RecordCopy {
    pub(super) mailbox: String,
    pub(super) id: MessageId,
    trace: Range<usize>,
}

/// Why bytes are not a valid record. The text is for the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct RecordError(&'static str);

impl Record {
    /// Creates the record of a message. `prepared` has an element for each of its copies.
    pub(super) fn new(message: &NewMessage, prepared: &[PreparedCopy]) -> Self {
        let NewMessage { received, copies, body, .. } = message;
        let copy_bytes = |(copy, prepared): (&NewCopy, &PreparedCopy)| {
            COPY_HEADER_BYTES + copy.mailbox.as_str().len() + prepared.trace.len()
        };
        let capacity: usize = copies.iter().zip(prepared).map(copy_bytes).sum();
        let mut head = Vec::with_capacity(HEADER_BYTES + 12 + capacity);
        head.extend_from_slice(&[0; HEADER_BYTES]);
        head.extend_from_slice(&time_to_nanos(*received).to_le_bytes());
        head.extend_from_slice(&narrow::<u32>(copies.len()).to_le_bytes());
        for (copy, PreparedCopy { id, trace }) in copies.iter().zip(prepared) {
            let mailbox = copy.mailbox.as_str();
            head.extend_from_slice(&id.number().to_le_bytes());
            head.extend_from_slice(&narrow::<u32>(trace.len()).to_le_bytes());
            head.extend_from_slice(&narrow::<u16>(mailbox.len()).to_le_bytes());
            head.extend_from_slice(mailbox.as_bytes());
        }
        for copy in prepared {
            head.extend_from_slice(&copy.trace);
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
        fields.position = HEADER_BYTES + 8;
        let count = u32::from_le_bytes(fields.array()?);
        let mut copies = Vec::new();
        for _ in 0..count {
            let id = MessageId::from(u64::from_le_bytes(fields.array()?));
            let trace = u32::from_le_bytes(fields.array()?) as usize;
            let mailbox = u16::from_le_bytes(fields.array()?);
            let mailbox = fields.slice(usize::from(mailbox))?;
            let mailbox = std::str::from_utf8(mailbox).map_err(|_| RecordError("a mailbox name is not UTF-8"))?;
            copies.push(RecordCopy { mailbox: mailbox.to_owned(), id, trace: 0..trace });
        }
        for copy in &mut copies {
            let start = fields.position;
            fields.slice(copy.trace.end)?;
            copy.trace = start..fields.position;
        }
        Ok(Self { copies, body: fields.position })
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
}

/// Converts a length. Panics if it does not fit. Lengths are limited before they get here: names by the rules for
/// addresses, traces because this program writes them.
fn narrow<T: TryFrom<usize>>(length: usize) -> T {
    T::try_from(length).unwrap_or_else(|_| panic!("a length of {length} does not fit into a record"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::conformance;

    fn record_bytes() -> Vec<u8> {
        let message = conformance::message(7, &["ann", "bob"], b"mail\r\n");
        let prepare = |(id, copy): (u64, &NewCopy)| PreparedCopy { id: id.into(), trace: copy.trace(message.received) };
        let prepared: Vec<_> = (7..).zip(&message.copies).map(prepare).collect();
        let record = Record::new(&message, &prepared);
        [record.head.as_slice(), &record.body].concat()
    }

    #[test]
    fn record_is_parsed_as_written() {
        let bytes = record_bytes();
        assert_eq!(length(*bytes.first_chunk().unwrap()), Ok(bytes.len() as u64));
        let parsed = ParsedRecord::parse(&bytes).unwrap();
        let copies: Vec<_> = parsed.copies().iter().map(|copy| (copy.mailbox.as_str(), copy.id.number())).collect();
        assert_eq!(copies, [("ann", 7), ("bob", 8)]);
        let (trace, body) = parsed.source("bob", MessageId::from(8)).unwrap();
        assert_eq!((&bytes[trace], &bytes[body..]), (&b"X-Trace: bob\r\n"[..], &b"mail\r\n"[..]));
        assert!(parsed.source("ann", MessageId::from(8)).is_none());
    }

    #[test]
    fn detects_every_flipped_bit_and_truncation() {
        let bytes = record_bytes();
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
