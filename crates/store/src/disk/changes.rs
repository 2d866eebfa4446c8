//! The changes of one batch of jobs: rows in the open transaction, and the counters that are applied to the
//! [`Statistics`] afterwards. If the batch fails, the value is dropped without effect.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};

use jiff::Timestamp;
use restante_mail::message::{Marks, MessageId, Summary};
use restante_mail::naming::{MailboxName, Project};
use rusqlite::{Connection, OptionalExtension as _, params};

use super::Shared;
use super::record::PreparedCopy;
use super::rows::{self, CopyRow, columns, get_u64};
use super::segment::{Location, MIN_PUNCH_BYTES};
use super::statistics::{Counters, MailboxStats, SegmentStats, Statistics};
use super::uncommitted::Uncommitted;
use crate::sql_values::{id_to_i64, time_to_nanos, to_i64};
use crate::{Appended, CopyKey, CopyUpdate, Limits, NewCopy, NewMessage, Result, UpdateOutcome};

pub(super) struct Changes<'a> {
    statistics: &'a Statistics,
    uncommitted: &'a Uncommitted,
    shared: &'a Shared,
    limits: &'a Limits,
    counters: Counters,
    /// The next version is at least this number.
    lowest_version: u64,
    segments: BTreeMap<u64, SegmentStats>,
    mailboxes: HashMap<MailboxName, MailboxStats>,
    released: Vec<Location>,
}

/// The part of [`Changes`] that is applied to the statistics.
pub(super) struct ChangedStatistics {
    pub(super) counters: Counters,
    pub(super) segments: BTreeMap<u64, SegmentStats>,
    pub(super) mailboxes: HashMap<MailboxName, MailboxStats>,
    /// Large records that no copy refers to any more.
    pub(super) released: Vec<Location>,
}

impl<'a> Changes<'a> {
    pub(super) fn new(
        statistics: &'a Statistics,
        uncommitted: &'a Uncommitted,
        shared: &'a Shared,
        limits: &'a Limits,
    ) -> Self {
        let (segments, mailboxes, released) = Default::default();
        let (counters, lowest_version) = (statistics.counters, 0);
        Self { statistics, uncommitted, shared, limits, counters, lowest_version, segments, mailboxes, released }
    }

    /// Gives the following changes versions that are at least the time in Unix microseconds. So no version is used twice if
    /// the machine fails before a commit is synced.
    pub(super) fn use_clock_for_versions(&mut self) {
        self.lowest_version = Timestamp::now().as_microsecond().unsigned_abs();
    }

    /// Counts a record that was written.
    pub(super) fn record_written(&mut self, at: Location) {
        let stats = self.segment_mut(at.segment);
        stats.end = at.offset + at.length;
        stats.live += at.length;
    }

    /// Adds the copies of a message whose record is written, and enforces the limits.
    pub(super) fn append(
        &mut self,
        database: &Connection,
        message: &NewMessage,
        prepared: &[PreparedCopy],
        at: Location,
    ) -> Result<Appended> {
        self.counters.last_id = prepared.iter().map(|copy| copy.id).fold(self.counters.last_id, Ord::max);
        let stored = self.insert(database, message, prepared, at)?;
        let mut evicted = Vec::new();
        for summary in &stored {
            self.enforce_mailbox_limits(database, &summary.mailbox, &mut evicted)?;
        }
        self.enforce_size_limit(database, &mut evicted)?;
        Ok(Appended { stored, evicted })
    }

    fn insert(
        &mut self,
        database: &Connection,
        message: &NewMessage,
        prepared: &[PreparedCopy],
        at: Location,
    ) -> Result<Vec<Summary>> {
        let NewMessage { received, headline, body, copies } = message;
        let Some(PreparedCopy { id: message, .. }) = prepared.first() else { return Ok(Vec::new()) };
        let shared = copies.len() > 1;
        let received_nanos = time_to_nanos(*received);
        let mut statement = database.prepare_cached(concat!(
            "INSERT INTO copies (mailbox, ",
            columns!(),
            ", project) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20)"
        ))?;
        // A number from the record: it is the same if the message is replayed, although other changes may be lost.
        self.lowest_version = prepared.last().map_or(0, |copy| copy.id.number());
        let version = self.next_version();
        self.lowest_version = 0;
        let mut stored = Vec::with_capacity(copies.len());
        for (PreparedCopy { id, trace }, copy) in prepared.iter().zip(copies) {
            let size = (trace.len() + body.len()) as u64;
            let number = self.count_new_copy(database, copy, version, size)?;
            let project = copy.mailbox.project();
            statement.execute(params![
                copy.mailbox.as_str(),
                id_to_i64(*id),
                received_nanos,
                copy.seen,
                size,
                body.len(),
                headline.from(),
                headline.recipient_lines(),
                headline.subject(),
                at.segment,
                at.offset,
                at.length,
                shared,
                id_to_i64(*message),
                number,
                copy.tags.encoded(),
                copy.details.encoded(),
                copy.flags.bits(),
                version,
                project.as_ref().map(Project::as_str),
            ])?;
            self.counters.usage.bytes += trace.len() as u64;
            stored.push(Summary {
                mailbox: copy.mailbox.clone(),
                id: *id,
                message: *message,
                number,
                headline: headline.clone(),
                received: *received,
                size,
                seen: copy.seen,
                flags: copy.flags,
                tags: copy.tags.clone(),
                modseq: version,
                details: copy.details.clone(),
            });
        }
        self.counters.usage.messages += 1;
        self.counters.usage.bytes += body.len() as u64;
        if shared {
            let mut statement = database.prepare_cached("INSERT INTO shared VALUES (?1, ?2, ?3)")?;
            statement.execute(params![at.segment, at.offset, copies.len()])?;
        }
        Ok(stored)
    }

    /// Adds a copy to the counters of its mailbox. Returns its number.
    fn count_new_copy(&mut self, database: &Connection, copy: &NewCopy, version: u64, size: u64) -> Result<u32> {
        let highest_free_number = self.counters.highest_free_number;
        let stats = self.mailbox_mut(database, &copy.mailbox)?;
        let was_empty = stats.messages == 0;
        if was_empty {
            stats.last_number = stats.last_number.max(highest_free_number);
        }
        stats.version = version;
        stats.messages += 1;
        stats.unseen += u64::from(!copy.seen);
        stats.bytes += size;
        stats.last_number = stats.last_number.saturating_add(1);
        let number = stats.last_number;
        self.counters.usage.copies += 1;
        self.counters.usage.mailboxes += u64::from(was_empty);
        Ok(number)
    }

    fn enforce_mailbox_limits(
        &mut self,
        database: &Connection,
        mailbox: &MailboxName,
        removed: &mut Vec<Summary>,
    ) -> Result<()> {
        let limits = self.limits.of_mailbox(mailbox);
        loop {
            let stats = self.mailbox_mut(database, mailbox)?;
            let excess = stats.messages.saturating_sub(limits.messages).max((stats.bytes > limits.bytes).into());
            let excess = usize::try_from(excess).unwrap_or(usize::MAX);
            let purged = if excess > 0 { self.purge(database, mailbox, MessageId::MAX, excess)? } else { Vec::new() };
            if purged.is_empty() {
                return Ok(());
            }
            removed.extend(purged);
        }
    }

    fn enforce_size_limit(&mut self, database: &Connection, removed: &mut Vec<Summary>) -> Result<()> {
        while self.limits.bytes > 0 && self.counters.usage.bytes > self.limits.bytes {
            let oldest = Self::find_oldest(database, i64::MAX, 1)?;
            if oldest.is_empty() {
                break;
            }
            removed.extend(self.remove_all(database, &oldest)?);
        }
        Ok(())
    }

    /// See [`Store::update_copies`](crate::Store::update_copies).
    pub(super) fn update_copies(
        &mut self,
        database: &Connection,
        updates: &[CopyUpdate],
    ) -> Result<Vec<UpdateOutcome>> {
        let mut find =
            database.prepare_cached("SELECT seen, flags, tags, modseq FROM copies WHERE mailbox = ?1 AND id = ?2")?;
        let mut write = database.prepare_cached(
            "UPDATE copies SET seen = ?3, flags = ?4, tags = ?5, modseq = ?6 WHERE mailbox = ?1 AND id = ?2",
        )?;
        let mut outcomes = Vec::with_capacity(updates.len());
        for update in updates {
            let CopyKey { mailbox, id } = &update.copy;
            let (mailbox_name, id) = (mailbox.as_str(), id_to_i64(*id));
            let found = find.query_row(params![mailbox_name, id], |row| rows::get_marks(row, 0)).optional()?;
            let Some(mut marks) = found else {
                outcomes.push(UpdateOutcome::Missing);
                continue;
            };
            let was_seen = marks.seen;
            let Some(changed) = update.apply(&mut marks, || self.next_version()) else {
                outcomes.push(UpdateOutcome::Conflict);
                continue;
            };
            if !changed.is_empty() {
                let Marks { seen, flags, tags, modseq } = &marks;
                write.execute(params![mailbox_name, id, seen, flags.bits(), tags.encoded(), modseq])?;
                let stats = self.mailbox_mut(database, mailbox)?;
                stats.version = *modseq;
                stats.unseen = (stats.unseen + u64::from(was_seen)).saturating_sub(u64::from(*seen));
            }
            outcomes.push(UpdateOutcome::Updated(marks, changed));
        }
        Ok(outcomes)
    }

    /// See [`Store::remove_copies`](crate::Store::remove_copies).
    pub(super) fn remove_copies(&mut self, database: &Connection, copies: &[CopyKey]) -> Result<Vec<Summary>> {
        let mut removed = self.remove_all(database, copies)?;
        removed.sort_unstable_by_key(|summary| summary.id);
        Ok(removed)
    }

    fn remove(&mut self, database: &Connection, CopyKey { mailbox, id }: &CopyKey) -> Result<Option<Summary>> {
        let mut statement = database
            .prepare_cached(concat!("DELETE FROM copies WHERE mailbox = ?1 AND id = ?2 RETURNING ", columns!()))?;
        let row = params![mailbox.as_str(), id_to_i64(*id)];
        let removed = statement.query_row(row, |row| CopyRow::from_row(mailbox, row)).optional()?;
        removed.map(|copy| self.update_counters(database, copy)).transpose()
    }

    /// See [`Store::purge`](crate::Store::purge).
    pub(super) fn purge(
        &mut self,
        database: &Connection,
        mailbox: &MailboxName,
        last: MessageId,
        limit: usize,
    ) -> Result<Vec<Summary>> {
        let mut statement =
            database.prepare_cached("SELECT id FROM copies WHERE mailbox = ?1 AND id <= ?2 ORDER BY id LIMIT ?3")?;
        let range = params![mailbox.as_str(), id_to_i64(last), to_i64(limit)];
        let keys =
            statement.query_map(range, |row| Ok(CopyKey { mailbox: mailbox.clone(), id: get_u64(row, 0)?.into() }))?;
        let keys: Vec<CopyKey> = keys.collect::<rusqlite::Result<_>>()?;
        self.remove_all(database, &keys)
    }

    /// See [`Store::expire`](crate::Store::expire).
    pub(super) fn expire(&mut self, database: &Connection, deadline: Timestamp, limit: usize) -> Result<Vec<Summary>> {
        let old = Self::find_oldest(database, time_to_nanos(deadline), limit)?;
        self.remove_all(database, &old)
    }

    /// Returns whether a copy refers to the record at this location.
    pub(super) fn is_referenced(database: &Connection, mailbox: &str, id: MessageId, at: Location) -> Result<bool> {
        let mut statement = database
            .prepare_cached("SELECT 1 FROM copies WHERE mailbox = ?1 AND id = ?2 AND segment = ?3 AND offset = ?4")?;
        Ok(statement.exists(params![mailbox, id_to_i64(id), at.segment, at.offset])?)
    }

    /// Changes the location of a record that was copied for compaction. `copies` are the copies that refer to it.
    pub(super) fn relocate_record(
        &mut self,
        database: &Connection,
        copies: &[(String, MessageId)],
        from: Location,
        to: Location,
    ) -> Result<()> {
        let mut statement =
            database.prepare_cached("UPDATE copies SET segment = ?3, offset = ?4 WHERE mailbox = ?1 AND id = ?2")?;
        for (mailbox, id) in copies {
            statement.execute(params![mailbox, id_to_i64(*id), to.segment, to.offset])?;
        }
        let mut statement = database
            .prepare_cached("UPDATE shared SET segment = ?3, offset = ?4 WHERE segment = ?1 AND offset = ?2")?;
        statement.execute(params![from.segment, from.offset, to.segment, to.offset])?;
        self.release_record(from);
        Ok(())
    }

    /// Returns whether the statistics stay as they are.
    pub(super) fn is_empty(&self) -> bool {
        self.counters.last_version == self.statistics.counters.last_version && self.segments.is_empty()
    }

    /// Writes to the database without changing anything.
    pub(super) fn test_write(database: &Connection) -> Result<()> {
        database.prepare_cached("UPDATE state SET last_id = last_id")?.execute([])?;
        Ok(())
    }

    /// Returns the changes that are applied to the statistics.
    pub(super) fn into_statistics(self) -> ChangedStatistics {
        let Self { counters, segments, mailboxes, released, .. } = self;
        ChangedStatistics { counters, segments, mailboxes, released }
    }

    fn remove_all(&mut self, database: &Connection, copies: &[CopyKey]) -> Result<Vec<Summary>> {
        let mut removed = Vec::with_capacity(copies.len());
        for key in copies {
            removed.extend(self.remove(database, key)?);
        }
        Ok(removed)
    }

    /// Returns the oldest messages that were received before a time.
    fn find_oldest(database: &Connection, before: i64, limit: usize) -> Result<Vec<CopyKey>> {
        let mut statement = database
            .prepare_cached("SELECT mailbox, id FROM copies WHERE received < ?1 ORDER BY received, id LIMIT ?2")?;
        let found = statement.query_map(params![before, to_i64(limit)], |row| {
            Ok(CopyKey { mailbox: rows::get_mailbox(row, 0)?, id: get_u64(row, 1)?.into() })
        })?;
        Ok(found.collect::<rusqlite::Result<_>>()?)
    }

    /// Updates the counters after the row of a copy was deleted.
    fn update_counters(&mut self, database: &Connection, copy: CopyRow) -> Result<Summary> {
        let CopyRow { summary, body_bytes, location, shared } = copy;
        let version = self.next_version();
        let stats = self.mailbox_mut(database, &summary.mailbox)?;
        stats.version = version;
        stats.messages = stats.messages.saturating_sub(1);
        stats.unseen = stats.unseen.saturating_sub(u64::from(!summary.seen));
        stats.bytes = stats.bytes.saturating_sub(summary.size);
        // The numbers of a mailbox that stays in use continue in its row.
        let free_number = (stats.messages == 0).then_some(stats.last_number);
        let is_last_copy = !shared || release_shared_copy(database, location)?;
        let freed = if is_last_copy { summary.size } else { summary.size.saturating_sub(body_bytes) };
        let usage = &mut self.counters.usage;
        usage.messages = usage.messages.saturating_sub(u64::from(is_last_copy));
        usage.copies = usage.copies.saturating_sub(1);
        usage.mailboxes = usage.mailboxes.saturating_sub(u64::from(free_number.is_some()));
        usage.bytes = usage.bytes.saturating_sub(freed);
        self.counters.highest_free_number = self.counters.highest_free_number.max(free_number.unwrap_or(0));
        if is_last_copy {
            self.release_record(location);
        }
        Ok(summary)
    }

    /// Counts a record that no copy refers to any more as free.
    fn release_record(&mut self, at: Location) {
        let stats = self.segment_mut(at.segment);
        stats.live = stats.live.saturating_sub(at.length);
        self.released.extend((at.length >= MIN_PUNCH_BYTES).then_some(at));
    }

    fn next_version(&mut self) -> u64 {
        self.counters.last_version = (self.counters.last_version + 1).max(self.lowest_version);
        self.counters.last_version
    }

    /// Returns the statistics of a segment. Its row is written by the next commit.
    pub(super) fn segment_mut(&mut self, id: u64) -> &mut SegmentStats {
        let current = self.statistics.segments.get(&id).copied();
        self.segments.entry(id).or_insert_with(|| current.unwrap_or_default())
    }

    fn mailbox_mut(&mut self, database: &Connection, name: &MailboxName) -> Result<&mut MailboxStats> {
        match self.mailboxes.entry(name.clone()) {
            Entry::Occupied(changed) => Ok(changed.into_mut()),
            Entry::Vacant(vacant) => {
                let uncommitted = self.uncommitted.mailboxes.get(name).copied();
                let known = uncommitted.or_else(|| self.shared.mailbox_cache.lock().stats(name));
                let stats = match known {
                    Some(stats) => stats,
                    None => query_mailbox(database, name)?.unwrap_or_default(),
                };
                Ok(vacant.insert(stats))
            }
        }
    }
}

/// Reads the statistics of a mailbox. Returns `None` if it is empty.
fn query_mailbox(database: &Connection, mailbox: &MailboxName) -> Result<Option<MailboxStats>> {
    let mut statement = database
        .prepare_cached("SELECT messages, version, unseen, bytes, last_number FROM mailboxes WHERE name = ?1")?;
    let stats = statement.query_row([mailbox.as_str()], |row| {
        let (messages, version, unseen) = (get_u64(row, 0)?, get_u64(row, 1)?, get_u64(row, 2)?);
        Ok(MailboxStats { messages, version, unseen, bytes: get_u64(row, 3)?, last_number: row.get(4)? })
    });
    Ok(stats.optional()?)
}

/// Removes one copy from the count of a shared record. Returns true if it was the last one.
fn release_shared_copy(database: &Connection, at: Location) -> Result<bool> {
    let mut release = database
        .prepare_cached("UPDATE shared SET copies = copies - 1 WHERE segment = ?1 AND offset = ?2 RETURNING copies")?;
    let remaining: Option<i64> = release.query_row(params![at.segment, at.offset], |row| row.get(0)).optional()?;
    if remaining.is_some_and(|remaining| remaining > 0) {
        return Ok(false);
    }
    let mut delete = database.prepare_cached("DELETE FROM shared WHERE segment = ?1 AND offset = ?2")?;
    delete.execute(params![at.segment, at.offset])?;
    Ok(true)
}
