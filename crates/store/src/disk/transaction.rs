//! The open transaction: changes are made in it, and it is committed later. See [`writer`](super::writer) for the order.

use restante_sqlite::ErrorKind;
use rusqlite::Connection;

use super::Durability;
use super::changes::{ChangedStatistics, Changes};
use super::checkpoint::sync_wal;
use super::error::segment_error;
use super::record::Record;
use super::segment::Location;
use super::writer::Writer;
use crate::{Result, StoreError};

/// Why a transaction failed.
pub(super) enum TransactionError {
    /// Nothing was changed. It can be retried.
    RolledBack(StoreError),
    /// It may have been committed. A retry could apply it twice.
    InDoubt(StoreError),
}

impl TransactionError {
    pub(super) fn into_error(self) -> StoreError {
        match self {
            Self::RolledBack(error) | Self::InDoubt(error) => error,
        }
    }
}

impl From<StoreError> for TransactionError {
    fn from(error: StoreError) -> Self {
        Self::RolledBack(error)
    }
}

impl Writer {
    /// Writes records and makes the changes that refer to them in the open transaction: all or nothing.
    pub(super) fn transact(
        &mut self,
        records: &[Record],
        apply: impl FnOnce(&mut Changes<'_>, &Connection, &[Location]) -> Result<()>,
    ) -> Result<(), TransactionError> {
        let locations = self.active_segment.append(records).map_err(|error| {
            self.reclaim.has_leftovers = true;
            segment_error("writing a message", &error)
        })?;
        if self.settings.durability == Durability::Full
            && !records.is_empty()
            && let Err(error) = self.active_segment.sync()
        {
            self.active_segment.undo_append();
            self.active_segment.close();
            self.reclaim.has_leftovers = true;
            return Err(segment_error("syncing a message", &error).into());
        }
        let changed = self.change(&locations, apply);
        if changed.is_err() {
            self.active_segment.undo_append();
        }
        self.active_segment.keep_appended();
        changed
    }

    /// Makes the changes that refer to records at these locations in the open transaction. After an error, the database is
    /// closed.
    pub(super) fn change(
        &mut self,
        locations: &[Location],
        apply: impl FnOnce(&mut Changes<'_>, &Connection, &[Location]) -> Result<()>,
    ) -> Result<(), TransactionError> {
        // Put back only after success. Closing the connection rolls the transaction back.
        let database = self.database.take().ok_or_else(|| StoreError::Broken("no database".to_owned()))?;
        let mut changes = Changes::new(&self.statistics, &self.uncommitted, &self.shared, &self.settings.limits);
        let run = || {
            if database.is_autocommit() {
                database.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
            }
            for at in locations {
                changes.record_written(*at);
            }
            apply(&mut changes, &database, locations)?;
            if changes.is_empty() && self.uncommitted.is_empty() {
                database.prepare_cached("COMMIT")?.execute([])?;
            }
            Ok(())
        };
        if let Err(error) = run() {
            drop(database);
            self.close_database();
            return Err(TransactionError::RolledBack(error));
        }
        self.database = Some(database);
        if !changes.is_empty() {
            let changes = changes.into_statistics();
            self.update_statistics(changes);
        }
        Ok(())
    }

    /// Applies changes of the open transaction to the statistics.
    fn update_statistics(&mut self, changes: ChangedStatistics) {
        let ChangedStatistics { counters, segments, mailboxes, released } = changes;
        for at in released {
            self.uncommitted.frees.records.entry(at.segment).or_default().push(at);
        }
        let copies = self.statistics.counters.usage.copies;
        self.reclaim.deleted_rows += copies.saturating_sub(counters.usage.copies);
        self.statistics.counters = counters;
        let current = self.active_segment.current();
        let last = self.statistics.segments.last_key_value().map(|(id, _)| *id);
        self.uncommitted.segments.extend(segments.keys());
        for (id, stats) in segments {
            if stats.live == 0 && Some(id) != current && Some(id) != self.replayed_segment {
                self.statistics.segments.remove(&id);
                self.uncommitted.frees.segments.push(id);
            } else {
                self.statistics.segments.insert(id, stats);
                self.reclaim.mark_if_sparse(id, stats, current);
            }
        }
        // A segment that is no longer the active one may be sparse already.
        if let Some(last) = last
            && let Some(stats) = self.statistics.segments.get(&last)
        {
            self.reclaim.mark_if_sparse(last, *stats, current);
        }
        self.retire_empty_segment();
        self.uncommitted.mailboxes.extend(mailboxes.clone());
        self.uncommitted.add_batch();
        // Before the versions are known: a query that follows must find these changes.
        self.shared.has_uncommitted.set(true);
        self.shared.store_version.set(counters.last_version);
        self.shared.mailbox_cache.lock().update(mailboxes);
    }

    /// Commits the open transaction, if there is one. It is synced at the next checkpoint.
    pub(super) fn commit(&mut self) -> Result<(), TransactionError> {
        if self.uncommitted.is_empty() {
            return Ok(());
        }
        let database = self.database.take().ok_or_else(|| StoreError::Broken("no database".to_owned()))?;
        let written = self.uncommitted.write_counters(&database, &self.statistics);
        let committed = written.and_then(|()| database.prepare_cached("COMMIT")?.execute([]));
        if let Err(error) = committed {
            drop(database);
            self.close_database();
            // Records that the commit may refer to are not overwritten.
            self.active_segment.close();
            self.reclaim.has_leftovers = true;
            let is_full = ErrorKind::classify(&error) == ErrorKind::Full;
            return Err(if is_full {
                TransactionError::RolledBack(error.into())
            } else {
                TransactionError::InDoubt(error.into())
            });
        }
        self.database = Some(database);
        let committed = std::mem::take(&mut self.uncommitted);
        self.reclaim.pending_frees.merge(committed.frees);
        // A replay that goes on has further messages.
        self.shared.has_uncommitted.set(self.replayed_segment.is_some());
        Ok(())
    }

    /// Commits the open transaction, and syncs it unless the durability is relaxed.
    pub(super) fn commit_synced(&mut self) -> Result<(), TransactionError> {
        self.commit()?;
        if self.settings.durability == Durability::Relaxed {
            return Ok(());
        }
        if self.checkpointer.has_sync_failed() {
            self.restart_wal();
            let failed = || StoreError::Unavailable("syncing a change: an earlier sync has failed".to_owned());
            return if self.checkpointer.has_sync_failed() { Err(TransactionError::InDoubt(failed())) } else { Ok(()) };
        }
        sync_wal(&self.directory.database_path()).map_err(|error| {
            self.checkpointer.set_sync_failed();
            TransactionError::InDoubt(segment_error("syncing a change", &error))
        })
    }

    /// Commits the open transaction. No job waits for the result; the messages in it are acknowledged.
    pub(super) fn commit_in_background(&mut self) {
        if let Err(error) = self.commit().map_err(TransactionError::into_error) {
            tracing::error!(%error, "cannot commit messages to the database, retrying with the next request");
        }
        self.run_maintenance();
    }
}
