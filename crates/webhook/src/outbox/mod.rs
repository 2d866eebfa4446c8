//! The outbox: an SQLite file in the data directory with the waiting events, so that they survive a restart or a crash.
//! It also stores what is needed to find messages whose event was lost in a crash: the id up to which nothing can be
//! missing (the floor), and the messages above it that were processed. The store is the source of truth for messages;
//! this file may be lost.
//!
//! Opening the file does not change it. The first write marks it as in use, so a server that fails during its
//! start leaves the file unchanged.

mod open;

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use restante_mail::naming::MailboxName;
use rusqlite::{Connection, Transaction, params};

use crate::endpoint::Digest;
use crate::payload::Payload;

/// Message ids are times in microseconds, and events arrive roughly in the order of their ids. An arriving id
/// is at most this far below the highest id so far.
const MAX_ID_DISORDER_MICROS: u64 = 10_000_000;
/// The maximum number of processed messages in the file. When it is reached, the older half is deleted.
pub(crate) const MAX_PROCESSED: usize = 100_000;

/// The open file. It has one writer.
pub(crate) struct Outbox {
    connection: Connection,
    /// The row ids of the targets, by target index.
    targets: Vec<i64>,
    /// The approximate number of rows in `taken`.
    processed: usize,
    /// Changes of the targets, to be written with the first change.
    target_changes: Option<TargetChanges>,
}

/// The difference between the configured targets and those in the file.
struct TargetChanges {
    /// New targets, with the row id that they get.
    added: Vec<(i64, Digest)>,
    /// Targets that are no longer configured.
    removed: Vec<i64>,
}

/// What the file contained when it was opened.
#[derive(Default)]
pub(crate) struct Backlog {
    /// Waiting events in the order of arrival: target index, row id, payload.
    pub(crate) waiting: Vec<(usize, i64, Payload)>,
    /// The messages that may have been missed; `None` after a clean shutdown.
    pub(crate) missed: Option<Missed>,
}

/// Stored messages for which an event may be missing.
#[derive(Default)]
pub(crate) struct Missed {
    /// Only ids above this one can be missing.
    pub(crate) floor: u64,
    /// Messages above the floor that were processed.
    pub(crate) processed: HashSet<(u64, String)>,
    /// Indexes of targets that were not in the file. Events before this start are not sent to them.
    pub(crate) new_targets: HashSet<usize>,
}

/// Changes to write.
#[derive(Default)]
pub(crate) struct Changes {
    /// New waiting events by row id, with their target index.
    pub(crate) waiting: BTreeMap<i64, (usize, Arc<Payload>)>,
    /// Rows that are finished. They are deleted before rows are inserted, which may reuse an id.
    pub(crate) finished_rows: Vec<i64>,
    /// Stored messages that were processed.
    pub(crate) processed: Vec<(u64, MailboxName)>,
    /// No message up to this id can be missing.
    pub(crate) floor: Option<u64>,
    /// The highest id of a stored message. Ids far below it cannot be missing. `None` while missed messages are
    /// still searched.
    pub(crate) highest: Option<u64>,
}

impl Changes {
    /// Returns whether there is nothing to write.
    pub(crate) fn is_empty(&self) -> bool {
        let Self { waiting, finished_rows, processed, floor, highest } = self;
        waiting.is_empty() && finished_rows.is_empty() && processed.is_empty() && floor.is_none() && highest.is_none()
    }
}

impl Outbox {
    /// Opens the file in `directory` for targets with these digests. An unusable file is renamed and a new one is
    /// created.
    pub(crate) fn open(directory: &Path, digests: &[Digest]) -> Result<(Self, Backlog), String> {
        open::open(directory, digests)
    }

    /// Writes all changes in one transaction.
    pub(crate) fn write(&mut self, changes: &Changes) -> rusqlite::Result<()> {
        let transaction = self.connection.transaction()?;
        let dropped = self
            .target_changes
            .as_ref()
            .map(|target_changes| record_start(&transaction, target_changes))
            .transpose()?;
        {
            let mut delete = transaction.prepare_cached("DELETE FROM waiting WHERE id = ?1")?;
            for row in &changes.finished_rows {
                delete.execute([row])?;
            }
            let mut insert =
                transaction.prepare_cached("INSERT OR REPLACE INTO waiting VALUES (?1, ?2, ?3, ?4, ?5)")?;
            for (row, (index, payload)) in &changes.waiting {
                let Some(target) = self.targets.get(*index) else { continue };
                insert.execute(params![row, target, payload.webhook_id, payload.occurred_at_millis, payload.body])?;
            }
            let mut insert_processed = transaction.prepare_cached("INSERT OR IGNORE INTO taken VALUES (?1, ?2)")?;
            for (id, mailbox) in &changes.processed {
                insert_processed.execute(params![id, mailbox.as_str()])?;
            }
        }
        let processed = self.processed + changes.processed.len();
        let pruned = prune_processed(&transaction, changes, processed)?;
        transaction.commit()?;
        self.processed = processed.saturating_sub(pruned);
        self.target_changes = None;
        if let Some(events @ 1..) = dropped {
            tracing::info!(events, "dropped events for webhooks that are no longer configured");
        }
        Ok(())
    }

    /// Marks a clean shutdown and closes the file.
    pub(crate) fn close_clean(self) -> rusqlite::Result<()> {
        self.connection.execute("UPDATE state SET clean = 1", [])?;
        self.connection.close().map_err(|(_, error)| error)
    }
}

/// Marks the file as in use and updates its targets. Returns how many events were dropped because their target is gone.
fn record_start(transaction: &Transaction<'_>, target_changes: &TargetChanges) -> rusqlite::Result<usize> {
    transaction.execute("UPDATE state SET clean = 0", [])?;
    for (target, digest) in &target_changes.added {
        transaction.execute("INSERT INTO targets VALUES (?1, ?2)", params![target, digest])?;
    }
    let mut dropped = 0;
    for target in &target_changes.removed {
        dropped += transaction.execute("DELETE FROM waiting WHERE target = ?1", [target])?;
        transaction.execute("DELETE FROM targets WHERE id = ?1", [target])?;
    }
    Ok(dropped)
}

/// Updates the floor and deletes processed messages up to it. Returns how many were deleted.
fn prune_processed(transaction: &Transaction<'_>, changes: &Changes, processed: usize) -> rusqlite::Result<usize> {
    if let Some(floor) = changes.floor {
        transaction.execute("UPDATE state SET floor = ?1", [floor])?;
    }
    if let Some(highest) = changes.highest {
        transaction
            .prepare_cached("UPDATE state SET floor = max(floor, ?1)")?
            .execute([highest.saturating_sub(MAX_ID_DISORDER_MICROS)])?;
    }
    if processed > MAX_PROCESSED {
        transaction.execute(
            "UPDATE state SET floor = max(floor, coalesce(
                (SELECT id FROM taken ORDER BY id DESC LIMIT 1 OFFSET ?1), 0))",
            [MAX_PROCESSED / 2],
        )?;
    }
    transaction.prepare_cached("DELETE FROM taken WHERE id <= (SELECT floor FROM state)")?.execute([])
}

#[cfg(test)]
mod tests {
    use restante_mail::naming::Naming;

    use super::*;
    use restante_testdir::TestDir;

    #[test]
    fn processed_messages_are_limited() {
        let dir = TestDir::new();
        let (mut outbox, backlog) = Outbox::open(dir.path(), &[]).unwrap();
        assert!(backlog.missed.is_none(), "this is the first start");
        let first = 1 << 52;
        let mailbox = Naming::Local.parse_mailbox("james").unwrap();
        let last = first + u64::try_from(MAX_PROCESSED).unwrap();
        let processed = (first..=last).map(|id| (id, mailbox.clone())).collect();
        outbox.write(&Changes { processed, highest: Some(last), ..Changes::default() }).unwrap();
        drop(outbox);

        let missed = Outbox::open(dir.path(), &[]).unwrap().1.missed.unwrap();
        assert_eq!(missed.processed.len(), MAX_PROCESSED / 2);
        let half = u64::try_from(MAX_PROCESSED / 2).unwrap();
        assert_eq!(missed.floor, last - half, "pruned ids are not searched either");
    }

    #[test]
    fn prunes_ids_far_below_the_highest() {
        let dir = TestDir::new();
        let (mut outbox, _) = Outbox::open(dir.path(), &[]).unwrap();
        let highest = 1 << 52;
        let mailbox = Naming::Local.parse_mailbox("james").unwrap();
        let processed =
            vec![(highest - MAX_ID_DISORDER_MICROS, mailbox.clone()), (highest - MAX_ID_DISORDER_MICROS + 1, mailbox)];
        outbox.write(&Changes { processed, highest: Some(highest), ..Changes::default() }).unwrap();
        drop(outbox);

        let missed = Outbox::open(dir.path(), &[]).unwrap().1.missed.unwrap();
        assert_eq!(missed.floor, highest - MAX_ID_DISORDER_MICROS);
        assert_eq!(missed.processed, HashSet::from([(highest - MAX_ID_DISORDER_MICROS + 1, "james".to_owned())]));
    }

    #[test]
    fn opening_does_not_change_the_file() {
        let dir = TestDir::new();
        let (mut outbox, _) = Outbox::open(dir.path(), &[[1; 32]]).unwrap();
        outbox.write(&Changes { floor: Some(7), ..Changes::default() }).unwrap();
        outbox.close_clean().unwrap();
        for _ in 0..2 {
            let backlog = Outbox::open(dir.path(), &[[2; 32]]).unwrap().1;
            assert!(backlog.missed.is_none(), "it is still marked as clean");
        }
        let (mut outbox, _) = Outbox::open(dir.path(), &[[2; 32]]).unwrap();
        outbox.write(&Changes { floor: Some(8), ..Changes::default() }).unwrap();
        drop(outbox);
        let missed = Outbox::open(dir.path(), &[[1; 32], [2; 32]]).unwrap().1.missed.unwrap();
        assert_eq!((missed.floor, missed.new_targets), (8, HashSet::from([0])));
    }
}
