//! Segments: immutable parts of the index. A segment has the terms of its documents, sorted by key, in blocks. The
//! first key of each block is in another table: it must be found without reading the blocks.
//!
//! An entry of a block has the number of bytes that its key shares with the key before it, the rest of the key, and
//! the postings. The numbers of documents are the positions of their ids in the list of ids of the segment. They have
//! no particular order.

use std::cmp::Ordering;
use std::ops::{ControlFlow, Range};

use rusqlite::{Connection, Error, OptionalExtension as _, Result, Row, ffi, params};

use super::bitmap::Bitmap;
use super::postings::{EncodedPostings, Postings, push_number, read_number};

/// The size from which a block is complete. With its key it fills four overflow pages of the database, and the part of
/// a row that is not on overflow pages.
const BLOCK_BYTES: usize = 4 * 4092 + 800;

/// Reads a block.
const SELECT_BLOCK: &str = "SELECT data FROM blocks WHERE number = ?1";

/// A segment without its terms.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) number: i64,
    /// The number of documents, including deleted ones.
    pub(super) count: u32,
    /// The lowest and the highest id of a document.
    pub(super) first_id: u64,
    pub(super) last_id: u64,
    /// The number of the block after its last one.
    end: i64,
    /// The length of all blocks, in bytes.
    pub(super) bytes: u64,
    /// The deleted documents.
    pub(super) deleted: Bitmap,
}

impl Segment {
    /// Returns all segments.
    pub(super) fn list(connection: &Connection) -> Result<Vec<Self>> {
        let sql =
            "SELECT number, documents, first, last, end, bytes, deleted, length(ids) FROM segments ORDER BY first";
        let mut select = connection.prepare_cached(sql)?;
        let mut rows = select.query([])?;
        let mut segments = Vec::new();
        while let Some(row) = rows.next()? {
            segments.push(Self::from_row(row)?);
        }
        Ok(segments)
    }

    fn from_row(row: &Row<'_>) -> Result<Self> {
        let (count, id_bytes): (u32, u64) = (row.get(1)?, row.get(7)?);
        // Every id has at least one byte. A wrong number must not cause a large allocation.
        if u64::from(count) > id_bytes {
            return Err(damage());
        }
        let deleted = match row.get_ref(6)?.as_blob_or_null()? {
            None => Bitmap::new(count),
            Some(bytes) => Bitmap::from_bytes(count, bytes).ok_or_else(damage)?,
        };
        Ok(Self {
            number: row.get(0)?,
            count,
            first_id: row.get(2)?,
            last_id: row.get(3)?,
            end: row.get(4)?,
            bytes: row.get(5)?,
            deleted,
        })
    }

    /// Returns the number of documents that are not deleted.
    pub(super) fn live_count(&self) -> u32 {
        self.count - self.deleted.count()
    }

    /// Reads the ids of the documents.
    pub(super) fn ids(&self, connection: &Connection) -> Result<Vec<u64>> {
        let mut select = connection.prepare_cached("SELECT ids FROM segments WHERE number = ?1")?;
        let mut rows = select.query([self.number])?;
        let bytes = rows.next()?.ok_or_else(damage)?.get_ref(0)?.as_blob()?;
        let ids = decode_ids(bytes).ok_or_else(damage)?;
        if ids.len() == self.count as usize { Ok(ids) } else { Err(damage()) }
    }

    /// Writes which documents are deleted.
    pub(super) fn save_deleted(&self, connection: &Connection) -> Result<()> {
        let mut update = connection.prepare_cached("UPDATE segments SET deleted = ?2 WHERE number = ?1")?;
        update.execute(params![self.number, self.deleted.to_bytes()])?;
        Ok(())
    }

    /// Deletes the segment.
    pub(super) fn delete(&self, connection: &Connection) -> Result<()> {
        let first_block = self.find_block(connection, &[])?;
        let mut delete = connection.prepare_cached("DELETE FROM blocks WHERE number >= ?1 AND number < ?2")?;
        delete.execute([first_block, self.end])?;
        connection.prepare_cached("DELETE FROM keys WHERE segment = ?1")?.execute([self.number])?;
        connection.prepare_cached("DELETE FROM segments WHERE number = ?1")?.execute([self.number])?;
        Ok(())
    }

    /// Calls `visit` with the keys that are not below `from`, in ascending order, and their postings, until it returns
    /// `Break`.
    pub(super) fn scan(
        &self,
        connection: &Connection,
        from: &[u8],
        mut visit: impl FnMut(&[u8], EncodedPostings<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let mut select = connection.prepare_cached(SELECT_BLOCK)?;
        for number in self.find_block(connection, from)?..self.end {
            let mut rows = select.query([number])?;
            let block = rows.next()?.ok_or_else(damage)?.get_ref(0)?.as_blob()?;
            if block.is_empty() {
                return Err(damage());
            }
            let mut cursor = BlockCursor::default();
            while let Some(postings) = cursor.next(block)? {
                if cursor.key.as_slice() >= from && visit(&cursor.key, postings)?.is_break() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Returns the number of the block that has the key, if any block has it, or otherwise of the first block.
    fn find_block(&self, connection: &Connection, key: &[u8]) -> Result<i64> {
        let before = "SELECT block FROM keys WHERE segment = ?1 AND first <= ?2 ORDER BY first DESC LIMIT 1";
        let found = connection.prepare_cached(before)?.query_row(params![self.number, key], |row| row.get(0));
        if let Some(block) = found.optional()? {
            return Ok(block);
        }
        let first = "SELECT block FROM keys WHERE segment = ?1 ORDER BY first LIMIT 1";
        connection.prepare_cached(first)?.query_row([self.number], |row| row.get(0)).optional()?.ok_or_else(damage)
    }
}

/// Writes a new segment. Terms must be pushed in the ascending order of their keys.
pub(super) struct SegmentWriter<'a> {
    connection: &'a Connection,
    number: i64,
    /// The number of the next block.
    next_block: i64,
    /// The length of the blocks so far.
    bytes: u64,
    block: Vec<u8>,
    first_key: Vec<u8>,
    last_key: Vec<u8>,
}

impl<'a> SegmentWriter<'a> {
    /// Starts a new segment.
    pub(super) fn new(connection: &'a Connection) -> Result<Self> {
        let next_number = |sql| connection.prepare_cached(sql)?.query_row([], |row| row.get(0));
        let number = next_number("SELECT coalesce(max(number), 0) + 1 FROM segments")?;
        let next_block = next_number("SELECT coalesce(max(number), 0) + 1 FROM blocks")?;
        let (block, first_key, last_key) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Self { connection, number, next_block, bytes: 0, block, first_key, last_key })
    }

    /// Appends a term.
    pub(super) fn push(&mut self, key: &[u8], postings: EncodedPostings<'_>) -> Result<()> {
        let EncodedPostings { documents, positions } = postings;
        let size = self.block.len() + key.len() + documents.len() + positions.len();
        if size > BLOCK_BYTES {
            self.write_block()?;
        }
        if self.block.is_empty() {
            key.clone_into(&mut self.first_key);
            self.last_key.clear();
        }
        let shared = self.last_key.iter().zip(key).take_while(|(left, right)| left == right).count();
        for length in [shared, key.len() - shared, documents.len(), positions.len()] {
            push_number(&mut self.block, length as u64);
        }
        for part in [&key[shared..], documents, positions] {
            self.block.extend_from_slice(part);
        }
        self.last_key.truncate(shared);
        self.last_key.extend_from_slice(&key[shared..]);
        Ok(())
    }

    /// Completes the segment. `ids` are those of its documents, in the order of their numbers.
    pub(super) fn finish(mut self, ids: &[u64]) -> Result<()> {
        self.write_block()?;
        let sql = "INSERT INTO segments (number, documents, first, last, end, bytes, ids) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        let (first, last) = (ids.iter().min(), ids.iter().max());
        let mut insert = self.connection.prepare_cached(sql)?;
        insert.execute(params![self.number, ids.len(), first, last, self.next_block, self.bytes, encode_ids(ids)])?;
        Ok(())
    }

    fn write_block(&mut self) -> Result<()> {
        if self.block.is_empty() {
            return Ok(());
        }
        let mut insert =
            self.connection.prepare_cached("INSERT INTO keys (segment, first, block) VALUES (?1, ?2, ?3)")?;
        insert.execute(params![self.number, self.first_key, self.next_block])?;
        let mut insert = self.connection.prepare_cached("INSERT INTO blocks (number, data) VALUES (?1, ?2)")?;
        insert.execute(params![self.next_block, self.block])?;
        self.next_block += 1;
        self.bytes += self.block.len() as u64;
        self.block.clear();
        Ok(())
    }
}

/// Replaces segments with one that has all of their documents, except deleted ones.
pub(super) fn merge(connection: &Connection, segments: &[Segment]) -> Result<()> {
    let mut ids = Vec::new();
    let mut inputs = Vec::with_capacity(segments.len());
    for segment in segments {
        let new_numbers = segment.ids(connection)?.into_iter().zip(0..).map(|(id, number)| {
            let is_kept = !segment.deleted.contains(number);
            is_kept.then(|| {
                ids.push(id);
                u32::try_from(ids.len() - 1).unwrap_or(u32::MAX)
            })
        });
        inputs.push(MergeInput { new_numbers: new_numbers.collect(), terms: TermCursor::new(connection, segment)? });
    }
    if !ids.is_empty() {
        let mut writer = SegmentWriter::new(connection)?;
        merge_terms(&mut inputs, &mut writer)?;
        writer.finish(&ids)?;
    }
    segments.iter().try_for_each(|segment| segment.delete(connection))
}

/// A segment that is merged with others.
struct MergeInput<'a> {
    /// The new number of each document. Deleted documents have none.
    new_numbers: Vec<Option<u32>>,
    terms: TermCursor<'a>,
}

fn merge_terms(inputs: &mut [MergeInput<'_>], writer: &mut SegmentWriter<'_>) -> Result<()> {
    let (mut key, mut merged, mut current) = (Vec::new(), Postings::default(), Vec::new());
    loop {
        find_lowest_key(inputs, &mut current);
        let Some(lowest) = current.first().and_then(|&first: &usize| inputs[first].terms.key()) else { return Ok(()) };
        key.clear();
        key.extend_from_slice(lowest);
        merged.clear();
        for &position in &current {
            let input = &mut inputs[position];
            let new_number = |number: u32| input.new_numbers.get(number as usize).copied().flatten();
            merged.append(input.terms.postings(), new_number).ok_or_else(damage)?;
            input.terms.advance()?;
        }
        if !merged.is_empty() {
            writer.push(&key, merged.encoded())?;
        }
    }
}

/// Finds the inputs whose current key is the lowest one.
fn find_lowest_key(inputs: &[MergeInput<'_>], positions: &mut Vec<usize>) {
    positions.clear();
    let mut lowest: Option<&[u8]> = None;
    for (position, input) in inputs.iter().enumerate() {
        let Some(key) = input.terms.key() else { continue };
        let order = lowest.map_or(Ordering::Less, |lowest| key.cmp(lowest));
        if order == Ordering::Less {
            positions.clear();
            lowest = Some(key);
        }
        if order != Ordering::Greater {
            positions.push(position);
        }
    }
}

/// Reads all terms of a segment.
struct TermCursor<'a> {
    connection: &'a Connection,
    /// The numbers of the blocks that follow the current one.
    blocks: Range<i64>,
    block: Vec<u8>,
    cursor: BlockCursor,
    is_at_end: bool,
}

impl<'a> TermCursor<'a> {
    /// Starts at the first term.
    fn new(connection: &'a Connection, segment: &Segment) -> Result<Self> {
        let blocks = segment.find_block(connection, &[])?..segment.end;
        let (block, cursor) = (Vec::new(), BlockCursor::default());
        let mut terms = Self { connection, blocks, block, cursor, is_at_end: false };
        terms.advance()?;
        Ok(terms)
    }

    /// Returns the current key, or `None` at the end.
    fn key(&self) -> Option<&[u8]> {
        (!self.is_at_end).then_some(self.cursor.key.as_slice())
    }

    /// Returns the postings of the current term.
    fn postings(&self) -> EncodedPostings<'_> {
        self.cursor.postings(&self.block)
    }

    /// Moves to the next term.
    fn advance(&mut self) -> Result<()> {
        if self.cursor.next(&self.block)?.is_some() {
            return Ok(());
        }
        let Some(number) = self.blocks.next() else {
            self.is_at_end = true;
            return Ok(());
        };
        let mut select = self.connection.prepare_cached(SELECT_BLOCK)?;
        let mut rows = select.query([number])?;
        self.block.clear();
        self.block.extend_from_slice(rows.next()?.ok_or_else(damage)?.get_ref(0)?.as_blob()?);
        self.cursor = BlockCursor::default();
        self.cursor.next(&self.block)?.ok_or_else(damage)?;
        Ok(())
    }
}

/// A position in a block.
#[derive(Default)]
struct BlockCursor {
    /// The key of the current entry.
    key: Vec<u8>,
    documents: Range<usize>,
    positions: Range<usize>,
}

impl BlockCursor {
    /// Moves to the next entry and returns its postings.
    fn next<'a>(&mut self, block: &'a [u8]) -> Result<Option<EncodedPostings<'a>>> {
        if self.positions.end == block.len() {
            return Ok(None);
        }
        self.read_entry(block).ok_or_else(damage)?;
        Ok(Some(self.postings(block)))
    }

    fn postings<'a>(&self, block: &'a [u8]) -> EncodedPostings<'a> {
        EncodedPostings { documents: &block[self.documents.clone()], positions: &block[self.positions.clone()] }
    }

    /// Reads the entry after the current one. Returns `None` if the block is damaged.
    fn read_entry(&mut self, block: &[u8]) -> Option<()> {
        let mut rest = &block[self.positions.end..];
        let mut length = || usize::try_from(read_number(&mut rest)?).ok();
        let (shared, suffix, documents, positions) = (length()?, length()?, length()?, length()?);
        let start = block.len() - rest.len();
        if shared > self.key.len() {
            return None;
        }
        self.key.truncate(shared);
        self.key.extend_from_slice(rest.get(..suffix)?);
        self.documents = start + suffix..start.checked_add(suffix)?.checked_add(documents)?;
        self.positions = self.documents.end..self.documents.end.checked_add(positions)?;
        (self.positions.end <= block.len()).then_some(())
    }
}

/// The error for damaged data.
pub(super) fn damage() -> Error {
    Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_CORRUPT), Some("the search index is damaged".to_owned()))
}

/// Encodes ids as differences. Most ids are higher than the one before.
fn encode_ids(ids: &[u64]) -> Vec<u8> {
    let (mut bytes, mut last) = (Vec::new(), 0_u64);
    for &id in ids {
        let difference = id.wrapping_sub(last).cast_signed();
        push_number(&mut bytes, ((difference << 1) ^ (difference >> 63)).cast_unsigned());
        last = id;
    }
    bytes
}

/// Decodes ids. Returns `None` if the bytes are damaged.
fn decode_ids(mut bytes: &[u8]) -> Option<Vec<u64>> {
    let (mut ids, mut last) = (Vec::new(), 0_u64);
    while !bytes.is_empty() {
        let number = read_number(&mut bytes)?;
        let difference = (number >> 1).cast_signed() ^ -((number & 1).cast_signed());
        last = last.wrapping_add(difference.cast_unsigned());
        ids.push(last);
    }
    Some(ids)
}
