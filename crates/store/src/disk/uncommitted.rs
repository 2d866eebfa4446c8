//! What the open transaction has changed besides the rows of copies: the counters, which are written once, before its
//! commit. A transaction holds several batches of new messages. Their records are synced, so they are acknowledged before
//! the commit: after a crash, [`Writer::replay`](super::writer::Writer::replay) creates their rows again.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use restante_mail::naming::MailboxName;
use rusqlite::{Connection, params};

use super::segment::PendingFrees;
use super::statistics::{Counters, MailboxStats, Statistics};
use crate::Usage;
use crate::sql_values::id_to_i64;

/// The number of batches and the time after which a transaction is committed although further messages arrive. A crash of
/// the process leaves at most this much to replay.
const MAX_BATCHES: usize = 256;
const MAX_AGE: Duration = Duration::from_millis(100);

/// The changes of the open transaction.
#[derive(Default)]
pub(super) struct Uncommitted {
    /// The statistics of the mailboxes that were changed.
    pub(super) mailboxes: HashMap<MailboxName, MailboxStats>,
    /// The segments that were changed.
    pub(super) segments: BTreeSet<u64>,
    /// Space that is not in use after the commit.
    pub(super) frees: PendingFrees,
    batches: usize,
    /// The time of the first batch.
    since: Option<Instant>,
}

impl Uncommitted {
    /// Counts a batch.
    pub(super) fn add_batch(&mut self) {
        self.batches += 1;
        self.since.get_or_insert_with(Instant::now);
    }

    /// Returns whether there are no changes.
    pub(super) fn is_empty(&self) -> bool {
        self.batches == 0
    }

    /// Returns whether the transaction must be committed now.
    pub(super) fn is_due(&self) -> bool {
        self.batches >= MAX_BATCHES || self.since.is_some_and(|since| since.elapsed() >= MAX_AGE)
    }

    /// Writes the counters, and deletes the rows of segments that are not in use.
    pub(super) fn write_counters(&self, database: &Connection, statistics: &Statistics) -> rusqlite::Result<()> {
        for (name, stats) in &self.mailboxes {
            let MailboxStats { messages, version, unseen, bytes, last_number } = stats;
            if *messages == 0 {
                database.prepare_cached("DELETE FROM mailboxes WHERE name = ?1")?.execute([name.as_str()])?;
                continue;
            }
            let mut upsert = database.prepare_cached(
                "INSERT OR REPLACE INTO mailboxes (name, messages, version, unseen, bytes, last_number) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            )?;
            upsert.execute(params![name.as_str(), messages, version, unseen, bytes, last_number])?;
        }
        for id in &self.segments {
            match statistics.segments.get(id) {
                Some(stats) => database
                    .prepare_cached("INSERT OR REPLACE INTO segments VALUES (?1, ?2, ?3)")?
                    .execute(params![id, stats.end, stats.live])?,
                None => database.prepare_cached("DELETE FROM segments WHERE id = ?1")?.execute([id])?,
            };
        }
        let Counters { last_id, last_version, usage, highest_free_number } = statistics.counters;
        let Usage { messages, copies, mailboxes, bytes } = usage;
        let mut update = database.prepare_cached(
            "UPDATE state SET last_id = ?1, last_version = ?2, messages = ?3, copies = ?4, mailboxes = ?5, bytes = ?6, \
             highest_free_number = ?7",
        )?;
        let last_id = id_to_i64(last_id);
        update.execute(params![last_id, last_version, messages, copies, mailboxes, bytes, highest_free_number])?;
        Ok(())
    }
}

/// Whether there are acknowledged changes that queries do not find before the next commit.
#[derive(Default)]
pub(super) struct HasUncommitted(AtomicBool);

impl HasUncommitted {
    pub(super) fn get(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    pub(super) fn set(&self, has_uncommitted: bool) {
        self.0.store(has_uncommitted, Ordering::Release);
    }
}
