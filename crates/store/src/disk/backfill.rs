//! The second part of the migration to version 3: copies that an earlier version stored get the values of the new
//! columns. Every message is read once for its details, so this can take long. It runs in batches, before the store is
//! used. Each batch is a transaction that also advances `backfilled_id` in the table `state`. If the process is stopped,
//! the next start continues there.
//!
//! Batches are in the order of ids. So the copies of a message are adjacent, the copies of a mailbox get ascending
//! numbers, and records are read in about the order in which they were written.

use std::io::ErrorKind::{InvalidData, NotFound, UnexpectedEof};
use std::time::{Duration, Instant};

use restante_mail::details::Details;
use restante_mail::message::MessageId;
use restante_mail::naming::MailboxName;
use rusqlite::wal::CheckpointMode;
use rusqlite::{Connection, OptionalExtension as _, Transaction, params};

use super::OpenError;
use super::checkpoint::run_checkpoint;
use super::record::ParsedRecord;
use super::rows::{get_mailbox, get_u64};
use super::segment::{Location, Segments};
use crate::migrated_details::BodyDetails;
use crate::sql_values::{id_to_i64, to_i64};

/// The maximum number of copies in one batch, and the number of bytes of records and details after which a batch ends.
const MAX_BATCH_COPIES: usize = 25_000;
const MAX_BATCH_BYTES: u64 = 64 << 20;
/// The time between two log lines about the progress.
const LOG_INTERVAL: Duration = Duration::from_secs(3);

/// Migrates the copies that have no values in the new columns yet. Logs its progress.
pub(super) fn run(database: &mut Connection, segments: &Segments) -> Result<(), OpenError> {
    let Some(mut backfill) = Backfill::resume(database, segments)? else { return Ok(()) };
    let start = Instant::now();
    let mut last_log = start;
    while !backfill.run_batch(database, MAX_BATCH_COPIES)? {
        if last_log.elapsed() >= LOG_INTERVAL {
            last_log = Instant::now();
            tracing::info!("migrated {} of {} messages", backfill.migrated, backfill.total);
        }
    }
    tracing::info!(took = ?start.elapsed(), "migrated all {} messages", backfill.total);
    if backfill.unreadable > 0 {
        tracing::warn!("{} of them could not be read; their details are empty", backfill.unreadable);
    }
    Ok(())
}

/// A backfill that is not complete. All numbers count copies.
pub(super) struct Backfill<'a> {
    segments: &'a Segments,
    /// The copies up to this id are migrated.
    position: MessageId,
    /// The message of the copy at this position, and where its record is.
    last: Option<(MessageId, Location)>,
    migrated: u64,
    total: u64,
    unreadable: u64,
}

/// A copy that is not migrated.
struct OldCopy {
    mailbox: MailboxName,
    id: MessageId,
    location: Location,
}

/// A copy with the values of its new columns, except for the number.
struct MigratedCopy {
    mailbox: MailboxName,
    id: MessageId,
    message: MessageId,
    details: Details,
}

/// The copies of a batch.
struct Batch {
    copies: Vec<MigratedCopy>,
    /// The number of messages of which this batch has the first copy.
    messages: u64,
    /// Whether these are the last copies.
    is_last: bool,
}

impl<'a> Backfill<'a> {
    /// Returns the backfill at the position where it stopped. `None` if it is complete.
    pub(super) fn resume(database: &Connection, segments: &'a Segments) -> Result<Option<Self>, OpenError> {
        let (position, total) = database.query_row("SELECT backfilled_id, copies FROM state", [], |row| {
            Ok((row.get::<_, Option<u64>>(0)?, get_u64(row, 1)?))
        })?;
        let Some(position) = position else { return Ok(None) };
        let last = "SELECT message, segment, offset, length FROM copies WHERE id <= ?1 ORDER BY id DESC LIMIT 1";
        let last = database.query_row(last, [position], |row| {
            let location = Location { segment: get_u64(row, 1)?, offset: get_u64(row, 2)?, length: get_u64(row, 3)? };
            Ok((get_u64(row, 0)?.into(), location))
        });
        let migrated =
            database.query_row("SELECT count(*) FROM copies WHERE id <= ?1", [position], |row| get_u64(row, 0))?;
        Ok(Some(Self { segments, position: position.into(), last: last.optional()?, migrated, total, unreadable: 0 }))
    }

    /// Migrates up to `limit` copies. Returns true if these were the last ones.
    pub(super) fn run_batch(&mut self, database: &mut Connection, limit: usize) -> Result<bool, OpenError> {
        let old = self.next_copies(database, limit)?;
        let is_complete = old.len() < limit;
        let batch = self.migrate(old, is_complete)?;
        let transaction = database.transaction()?;
        self.write(&transaction, &batch)?;
        transaction.commit()?;
        // Otherwise the log would grow to the size of the database.
        run_checkpoint(database, CheckpointMode::PASSIVE);
        self.migrated += batch.copies.len() as u64;
        Ok(batch.is_last)
    }

    fn next_copies(&self, database: &Connection, limit: usize) -> Result<Vec<OldCopy>, OpenError> {
        let mut statement = database.prepare_cached(
            "SELECT mailbox, id, segment, offset, length FROM copies WHERE id > ?1 ORDER BY id LIMIT ?2",
        )?;
        let copies = statement.query_map(params![id_to_i64(self.position), to_i64(limit)], |row| {
            let location = Location { segment: get_u64(row, 2)?, offset: get_u64(row, 3)?, length: get_u64(row, 4)? };
            Ok(OldCopy { mailbox: get_mailbox(row, 0)?, id: get_u64(row, 1)?.into(), location })
        })?;
        Ok(copies.collect::<rusqlite::Result<_>>()?)
    }

    /// Reads the messages of copies, and advances the position. Fails if a message may be readable later.
    fn migrate(&mut self, old: Vec<OldCopy>, is_complete: bool) -> Result<Batch, OpenError> {
        let mut batch = Batch { copies: Vec::with_capacity(old.len()), messages: 0, is_last: is_complete };
        let mut bytes = 0;
        let mut record = None;
        for OldCopy { mailbox, id, location } in old {
            if bytes > MAX_BATCH_BYTES {
                batch.is_last = false;
                break;
            }
            // A copy of the same record is a copy of the same message.
            let known = self.last.filter(|(_, last)| *last == location).map(|(message, _)| message);
            if known.is_none() || batch.copies.is_empty() {
                bytes += location.length;
                record = ReadRecord::read(self.segments, location)?;
            }
            let details = record.as_ref().and_then(|record| record.details(&mailbox, id));
            let message = known.unwrap_or(id);
            batch.messages += u64::from(known.is_none());
            self.unreadable += u64::from(details.is_none());
            let details = details.unwrap_or_default();
            bytes += details.encoded().len() as u64;
            self.last = Some((message, location));
            self.position = id;
            batch.copies.push(MigratedCopy { mailbox, id, message, details });
        }
        Ok(batch)
    }

    fn write(&self, transaction: &Transaction<'_>, batch: &Batch) -> Result<(), OpenError> {
        let mut update = transaction.prepare_cached(
            "UPDATE copies SET message = ?3, number = ?4, details = ?5 WHERE mailbox = ?1 AND id = ?2",
        )?;
        let mut find_number = transaction.prepare_cached("SELECT last_number FROM mailboxes WHERE name = ?1")?;
        let mut set_number = transaction.prepare_cached("UPDATE mailboxes SET last_number = ?2 WHERE name = ?1")?;
        let mut copies: Vec<&MigratedCopy> = batch.copies.iter().collect();
        // In the order of the table.
        copies.sort_unstable_by_key(|copy| (copy.mailbox.as_str(), copy.id));
        for copies in copies.chunk_by(|one, other| one.mailbox == other.mailbox) {
            let mailbox = copies[0].mailbox.as_str();
            let mut number: u32 = find_number.query_row([mailbox], |row| row.get(0)).optional()?.unwrap_or(0);
            for MigratedCopy { id, message, details, .. } in copies {
                number = number.saturating_add(1);
                update.execute(params![mailbox, id_to_i64(*id), id_to_i64(*message), number, details.encoded()])?;
            }
            set_number.execute(params![mailbox, number])?;
        }
        let position = (!batch.is_last).then(|| id_to_i64(self.position));
        let mut advance =
            transaction.prepare_cached("UPDATE state SET messages = messages + ?1, backfilled_id = ?2")?;
        advance.execute(params![batch.messages, position])?;
        Ok(())
    }
}

/// A record that was read for the details of its copies.
struct ReadRecord {
    bytes: Vec<u8>,
    parsed: ParsedRecord,
    body: BodyDetails,
}

impl ReadRecord {
    /// Reads a record and parses its message. Returns `None` if it is damaged or missing. Other errors may be temporary.
    fn read(segments: &Segments, at: Location) -> Result<Option<Self>, OpenError> {
        match segments.read(at) {
            Ok(bytes) => Ok(Self::parse(bytes)),
            Err(error) if matches!(error.kind(), NotFound | UnexpectedEof | InvalidData) => Ok(None),
            Err(error) => Err(OpenError::Database(format!(
                "migrating its messages: cannot read segment {} at {}: {error}",
                at.segment, at.offset
            ))),
        }
    }

    fn parse(bytes: Vec<u8>) -> Option<Self> {
        let parsed = ParsedRecord::parse(&bytes).ok()?;
        let body = BodyDetails::parse(&bytes[parsed.body()..], true)?;
        Some(Self { bytes, parsed, body })
    }

    /// Returns the details of a copy. `None` if it is not in this record.
    fn details(&self, mailbox: &MailboxName, id: MessageId) -> Option<Details> {
        let (trace, _) = self.parsed.source(mailbox.as_str(), id)?;
        Some(self.body.details(&self.bytes[trace]))
    }
}
