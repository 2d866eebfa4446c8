//! The file in the data directory that holds what waits, so that it survives the end of the process, however it ends. It also
//! holds what is needed to find messages of which nobody was told because the end came in between: up to which id nothing can
//! be missing, and which messages above it the clerk has dealt with. The store is the truth about mail; this file may be lost.
//!
//! Opening the file changes nothing in it. That it is in use is noted with the first change, so that a server that fails
//! before it serves leaves it as it was.

mod open;

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use restante_mail::naming::MailboxName;
use rusqlite::{Connection, Transaction, params};

use crate::endpoint::Digest;
use crate::payload::Payload;

/// Messages are announced in about the order of their ids, which are microseconds: none comes later than this behind others.
const MAX_ID_DISORDER_MICROS: u64 = 10_000_000;
/// How many messages are remembered as dealt with. When it is reached, the older half goes.
pub(crate) const MAX_PROCESSED: usize = 100_000;

/// The file, open for its one writer.
pub(crate) struct Outbox {
    connection: Connection,
    /// The targets in the order of the lanes.
    targets: Vec<i64>,
    /// How many messages are remembered, about.
    processed: usize,
    /// What is written with the first change.
    target_changes: Option<TargetChanges>,
}

/// How the targets differ from those that the file knows.
struct TargetChanges {
    /// Those that it does not know, with the number they get.
    added: Vec<(i64, Digest)>,
    /// Those that are no longer told.
    removed: Vec<i64>,
}

/// What the file said when it was opened.
#[derive(Default)]
pub(crate) struct Backlog {
    /// What waits: the lane, the row, and the event, in the order of arrival.
    pub(crate) waiting: Vec<(usize, i64, Payload)>,
    /// What may have been missed, after an end that was not in good order.
    pub(crate) missed: Option<Missed>,
}

/// Messages of which nobody may have been told.
#[derive(Default)]
pub(crate) struct Missed {
    /// They have ids above this one.
    pub(crate) floor: u64,
    /// These are none of them.
    pub(crate) processed: HashSet<(u64, String)>,
    /// Lanes that the file did not know. They are told of nothing that happened before.
    pub(crate) new_targets: HashSet<usize>,
}

/// What is to be written.
#[derive(Default)]
pub(crate) struct Changes {
    /// Events that wait now, by row, with their lane.
    pub(crate) waiting: BTreeMap<i64, (usize, Arc<Payload>)>,
    /// Rows that are done with. They go before others come, which may have the same number.
    pub(crate) finished_rows: Vec<i64>,
    /// Stored messages that were dealt with.
    pub(crate) processed: Vec<(u64, MailboxName)>,
    /// Nothing can be missing up to this id.
    pub(crate) floor: Option<u64>,
    /// The highest id heard of. Nothing can be missing that is far below, unless something is still to be caught up with.
    pub(crate) highest: Option<u64>,
}

impl Changes {
    /// Whether there is nothing to write.
    pub(crate) fn is_empty(&self) -> bool {
        let Self { waiting, finished_rows: settled, processed: taken, floor, highest } = self;
        waiting.is_empty() && settled.is_empty() && taken.is_empty() && floor.is_none() && highest.is_none()
    }
}

impl Outbox {
    /// Opens the file of a data directory for targets with these digests. A file that cannot be used is moved aside, and a
    /// new one begun.
    pub(crate) fn open(directory: &Path, digests: &[Digest]) -> Result<(Self, Backlog), String> {
        open::open(directory, digests)
    }

    /// Writes everything, or nothing.
    pub(crate) fn write(&mut self, changes: &Changes) -> rusqlite::Result<()> {
        let transaction = self.connection.transaction()?;
        let dropped = self.target_changes.as_ref().map(|novelty| record_start(&transaction, novelty)).transpose()?;
        {
            let mut delete = transaction.prepare_cached("DELETE FROM waiting WHERE id = ?1")?;
            for row in &changes.finished_rows {
                delete.execute([row])?;
            }
            let mut insert =
                transaction.prepare_cached("INSERT OR REPLACE INTO waiting VALUES (?1, ?2, ?3, ?4, ?5)")?;
            for (row, (lane, notice)) in &changes.waiting {
                let Some(target) = self.targets.get(*lane) else { continue };
                insert.execute(params![row, target, notice.webhook_id, notice.occurred_at_millis, notice.body])?;
            }
            let mut take = transaction.prepare_cached("INSERT OR IGNORE INTO taken VALUES (?1, ?2)")?;
            for (id, mailbox) in &changes.processed {
                take.execute(params![id, mailbox.as_str()])?;
            }
        }
        let taken = self.processed + changes.processed.len();
        let forgotten = prune_processed(&transaction, changes, taken)?;
        transaction.commit()?;
        self.processed = taken.saturating_sub(forgotten);
        self.target_changes = None;
        if let Some(events @ 1..) = dropped {
            tracing::info!(events, "dropped events for webhooks that are no longer configured");
        }
        Ok(())
    }

    /// Closes the file after an end in good order.
    pub(crate) fn close_clean(self) -> rusqlite::Result<()> {
        self.connection.execute("UPDATE state SET clean = 1", [])?;
        self.connection.close().map_err(|(_, error)| error)
    }
}

/// Notes that the file is in use, and by whom. How many events were dropped for that.
fn record_start(transaction: &Transaction<'_>, novelty: &TargetChanges) -> rusqlite::Result<usize> {
    transaction.execute("UPDATE state SET clean = 0", [])?;
    for (target, digest) in &novelty.added {
        transaction.execute("INSERT INTO targets VALUES (?1, ?2)", params![target, digest])?;
    }
    let mut dropped = 0;
    for target in &novelty.removed {
        dropped += transaction.execute("DELETE FROM waiting WHERE target = ?1", [target])?;
        transaction.execute("DELETE FROM targets WHERE id = ?1", [target])?;
    }
    Ok(dropped)
}

/// What need not be looked for after a crash need not be remembered, nor what is too much.
fn prune_processed(transaction: &Transaction<'_>, changes: &Changes, taken: usize) -> rusqlite::Result<usize> {
    if let Some(floor) = changes.floor {
        transaction.execute("UPDATE state SET floor = ?1", [floor])?;
    }
    if let Some(highest) = changes.highest {
        transaction
            .prepare_cached("UPDATE state SET floor = max(floor, ?1)")?
            .execute([highest.saturating_sub(MAX_ID_DISORDER_MICROS)])?;
    }
    if taken > MAX_PROCESSED {
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
    fn what_is_remembered_is_bounded() {
        let dir = TestDir::new();
        let (mut outbox, past) = Outbox::open(dir.path(), &[]).unwrap();
        assert!(past.missed.is_none(), "this is the first start");
        let first = 1 << 52;
        let mailbox = Naming::Local.parse_mailbox("james").unwrap();
        let last = first + u64::try_from(MAX_PROCESSED).unwrap();
        let taken = (first..=last).map(|id| (id, mailbox.clone())).collect();
        outbox.write(&Changes { processed: taken, highest: Some(last), ..Changes::default() }).unwrap();
        drop(outbox);

        let missed = Outbox::open(dir.path(), &[]).unwrap().1.missed.unwrap();
        assert_eq!(missed.processed.len(), MAX_PROCESSED / 2);
        let half = u64::try_from(MAX_PROCESSED / 2).unwrap();
        assert_eq!(missed.floor, last - half, "what is forgotten is not looked for either");
    }

    #[test]
    fn what_came_long_before_the_highest_id_is_forgotten() {
        let dir = TestDir::new();
        let (mut outbox, _) = Outbox::open(dir.path(), &[]).unwrap();
        let highest = 1 << 52;
        let mailbox = Naming::Local.parse_mailbox("james").unwrap();
        let taken =
            vec![(highest - MAX_ID_DISORDER_MICROS, mailbox.clone()), (highest - MAX_ID_DISORDER_MICROS + 1, mailbox)];
        outbox.write(&Changes { processed: taken, highest: Some(highest), ..Changes::default() }).unwrap();
        drop(outbox);

        let missed = Outbox::open(dir.path(), &[]).unwrap().1.missed.unwrap();
        assert_eq!(missed.floor, highest - MAX_ID_DISORDER_MICROS);
        assert_eq!(missed.processed, HashSet::from([(highest - MAX_ID_DISORDER_MICROS + 1, "james".to_owned())]));
    }

    #[test]
    fn opening_changes_nothing() {
        let dir = TestDir::new();
        let (mut outbox, _) = Outbox::open(dir.path(), &[[1; 32]]).unwrap();
        outbox.write(&Changes { floor: Some(7), ..Changes::default() }).unwrap();
        outbox.close_clean().unwrap();
        for _ in 0..2 {
            let past = Outbox::open(dir.path(), &[[2; 32]]).unwrap().1;
            assert!(past.missed.is_none(), "it is still closed in good order");
        }
        let (mut outbox, _) = Outbox::open(dir.path(), &[[2; 32]]).unwrap();
        outbox.write(&Changes { floor: Some(8), ..Changes::default() }).unwrap();
        drop(outbox);
        let missed = Outbox::open(dir.path(), &[[1; 32], [2; 32]]).unwrap().1.missed.unwrap();
        assert_eq!((missed.floor, missed.new_targets), (8, HashSet::from([0])));
    }
}
