//! Changes of the database.

use std::time::Duration;

use jiff::Timestamp;
use restante_mail::message::MessageId;
use restante_store::sql_values::{id_to_i64, time_to_nanos, to_i64};
use restante_store::{Result, StoreError};
use rusqlite::params;

use super::file::Transaction;
use super::queries::{columns, read_entry, selected};
use crate::entry::{
    AttemptOutcome, AttemptRecord, EXPIRED_REPLY, Entry, EntryId, NewEntry, Selection, StateCount, state_number,
};
use crate::queue::ForwardOutcome;

impl Transaction<'_> {
    /// Adds entries. Returns `None` if they exceed the limit.
    pub(super) fn add(&self, entries: &[NewEntry]) -> Result<Option<Vec<EntryId>>> {
        if !self.has_room(entries.len())? {
            return Ok(None);
        }
        self.insert(entries).map(Some)
    }

    pub(super) fn forward(&self, entries: &[NewEntry], from: MessageId, to: MessageId) -> Result<ForwardOutcome> {
        if self.cursor()? != Some(from) {
            return Ok(ForwardOutcome::CursorMoved);
        }
        if !self.has_room(entries.len())? {
            return Ok(ForwardOutcome::Full);
        }
        self.insert(entries)?;
        self.execute("UPDATE cursor SET message = ?1", params![id_to_i64(to)])?;
        Ok(ForwardOutcome::Added)
    }

    pub(super) fn acquire_cursor(&self, start: MessageId) -> Result<MessageId> {
        if let Some(cursor) = self.cursor()? {
            return Ok(cursor);
        }
        self.execute("INSERT INTO cursor VALUES (1, ?1)", params![id_to_i64(start)])?;
        Ok(start)
    }

    pub(super) fn set_checkpoint(&self, checkpoint: Option<MessageId>) -> Result<()> {
        match checkpoint {
            Some(checkpoint) => self.execute("REPLACE INTO checkpoints VALUES (1, ?1)", [id_to_i64(checkpoint)]),
            None => self.execute("DELETE FROM checkpoints WHERE is_current = 1", []),
        }
        .map(drop)
    }

    pub(super) fn set_targets(&self, names: &[String], since: MessageId) -> Result<u64> {
        let (mut kept, mut cancelled) = (Vec::new(), 0);
        for target in self.targets()? {
            if names.contains(&target.name) {
                kept.push(target.name);
            } else {
                self.execute("DELETE FROM targets WHERE name = ?1", [target.name])?;
            }
        }
        for StateCount { target, .. } in self.counts()?.into_iter().filter(|count| !kept.contains(&count.target)) {
            cancelled += self.cancel(&Selection::Target(Some(target)))?;
        }
        for name in names {
            let sql = "INSERT INTO targets VALUES (?1, false, ?2) ON CONFLICT DO NOTHING";
            self.execute(sql, params![name, id_to_i64(since)])?;
        }
        Ok(cancelled)
    }

    pub(super) fn claim(&self, target: &str, now: Timestamp, limit: usize) -> Result<Vec<Entry>> {
        let sql = concat!(
            "UPDATE entries SET state = 1, claim = ?5 WHERE id IN (
                SELECT id FROM (
                    SELECT id FROM entries WHERE state = 0 AND target = ?1 AND due <= ?2 AND expires > ?2
                    ORDER BY due, id LIMIT ?3
                )
                UNION ALL SELECT id FROM (
                    SELECT id FROM entries WHERE state = 0 AND target = ?1 AND due > ?4 AND expires > ?2
                    ORDER BY due, id LIMIT ?3
                )
                LIMIT ?3
             ) AND NOT EXISTS (SELECT 1 FROM targets WHERE name = ?1 AND is_paused)
             RETURNING ",
            columns!()
        );
        let claim = self.file.last_claim.get() + 1;
        self.file.last_claim.set(claim);
        let latest = time_to_nanos(self.file.kind.latest_due(now));
        let parameters = params![target, time_to_nanos(now), to_i64(limit), latest, claim];
        let mut claimed = self.query(sql, parameters, |row| Ok((row.get::<_, i64>("due")?, read_entry(row))))?;
        claimed.sort_unstable_by_key(|(due, entry)| (*due, entry.as_ref().map_or(EntryId(0), |entry| entry.id)));
        claimed.into_iter().map(|(_, entry)| entry).collect()
    }

    pub(super) fn record(&self, results: &[AttemptRecord]) -> Result<()> {
        let max_kept = to_i64(self.file.kind.max_finished_payload);
        for AttemptRecord { id, claim, outcome } in results {
            let (id, claim) = (to_i64(id.0), to_i64(*claim));
            match outcome {
                AttemptOutcome::Released => {
                    let sql = "UPDATE entries SET state = iif(state = 1, 0, state), claim = 0
                               WHERE id = ?1 AND claim = ?2 AND claim <> 0";
                    self.execute(sql, [id, claim])?;
                }
                AttemptOutcome::Attempted { state, next_attempt, at, payload, reply, log } => {
                    let sql = "UPDATE entries SET state = iif(state = 1, ?3, state), claim = 0, due = ?4,
                                   attempts = attempts + 1, last_attempt = ?5, last_reply = ?7,
                                   payload = iif(max(state, ?3) >= 2 AND length(?6) > ?8, x'', ?6),
                                   size = iif(max(state, ?3) >= 2 AND length(?6) > ?8, 0, length(?6))
                               WHERE id = ?1 AND claim = ?2 AND claim <> 0";
                    let (due, at) = (time_to_nanos(next_attempt.unwrap_or(*at)), time_to_nanos(*at));
                    let parameters = params![id, claim, state_number(*state), due, at, payload, reply, max_kept];
                    if self.execute(sql, parameters)? > 0 {
                        self.execute("REPLACE INTO attempt_logs VALUES (?1, ?2)", params![id, log])?;
                    }
                }
            }
        }
        self.prune()
    }

    pub(super) fn expire(&self, now: Timestamp) -> Result<Vec<String>> {
        let sql = "UPDATE entries INDEXED BY entries_expiring SET state = 3, last_reply = iif(last_reply = '', ?2, last_reply),
                       payload = iif(size > ?3, x'', payload), size = iif(size > ?3, 0, size)
                   WHERE state = 0 AND expires <= ?1 RETURNING target";
        let max_kept = to_i64(self.file.kind.max_finished_payload);
        let expired = self.query(sql, params![time_to_nanos(now), EXPIRED_REPLY, max_kept], |row| row.get(0))?;
        self.prune()?;
        Ok(expired)
    }

    pub(super) fn cancel(&self, selection: &Selection) -> Result<u64> {
        let sql = concat!(
            "UPDATE entries SET state = 4, payload = iif(size > ?3, x'', payload), size = iif(size > ?3, 0, size)
             WHERE state IN (0, 1) AND ",
            selected!()
        );
        let (target, ids) = selection.parts();
        let max_kept = to_i64(self.file.kind.max_finished_payload);
        let cancelled = self.execute(sql, params![target, ids.map(|ids| format!("{ids:?}")), max_kept])?;
        self.prune()?;
        Ok(cancelled as u64)
    }

    pub(super) fn requeue(&self, entries: &[Entry], now: Timestamp, expires: Timestamp) -> Result<Vec<String>> {
        let sql = "UPDATE entries SET state = 0, claim = 0, due = ?3, expires = ?4, payload = ?5, size = length(?5)
                   WHERE id = ?1 AND attempts = ?2 AND state IN (0, 3, 4) RETURNING target";
        self.file.waiting.borrow_mut().raise(entries.len());
        let (now, expires) = (time_to_nanos(now), time_to_nanos(expires));
        let requeue = |Entry { id, attempts, payload, .. }: &Entry| {
            self.query_value(sql, params![to_i64(id.0), attempts, now, expires, payload]).transpose()
        };
        entries.iter().filter_map(requeue).collect()
    }

    fn insert(&self, entries: &[NewEntry]) -> Result<Vec<EntryId>> {
        if !entries.is_empty() && !self.file.directory.as_deref().is_none_or(self.file.has_space) {
            return Err(StoreError::NoSpace("the rest of the disk is reserved for messages".to_owned()));
        }
        let sql = "INSERT INTO entries (message, mailbox, target, key, payload, size, created, expires, state, claim, attempts,
                       due, last_reply)
                   VALUES (?1, ?2, ?3, ?4, ?5, length(?5), ?6, ?7, 0, 0, 0, ?6, '')
                   ON CONFLICT DO NOTHING RETURNING id";
        let mut ids = Vec::with_capacity(entries.len());
        for NewEntry { message, mailbox, target, key, payload, created, expires } in entries {
            let (created, expires) = (time_to_nanos(*created), time_to_nanos(*expires));
            let parameters = params![id_to_i64(*message), mailbox.as_str(), target, key, payload, created, expires];
            ids.extend(self.query_value(sql, parameters)?.map(EntryId));
        }
        Ok(ids)
    }

    /// Returns whether entries can be added, and raises the bound if so.
    fn has_room(&self, added: usize) -> Result<bool> {
        // Nothing else adds entries, so the bound is always valid.
        let is_known = self.file.waiting.borrow().has_room(added, self.file.limits.max_waiting, Duration::MAX);
        let has_room = is_known || added == 0 || {
            let waiting: usize =
                self.query_value("SELECT count(*) FROM entries WHERE state IN (0, 1)", [])?.unwrap_or(0);
            self.file.waiting.borrow_mut().set(waiting);
            waiting == 0 || waiting.saturating_add(added) <= self.file.limits.max_waiting
        };
        if has_room {
            self.file.waiting.borrow_mut().raise(added);
        }
        Ok(has_room)
    }

    /// Deletes finished entries above the limit.
    fn prune(&self) -> Result<()> {
        let finished: usize = self.query_value("SELECT count(*) FROM entries WHERE state >= 2", [])?.unwrap_or(0);
        let excess = finished.saturating_sub(self.file.limits.max_finished);
        if excess == 0 {
            return Ok(());
        }
        for sql in [
            "DELETE FROM attempt_logs WHERE entry IN (SELECT id FROM entries WHERE state >= 2 ORDER BY id LIMIT ?1)",
            "DELETE FROM entries WHERE id IN (SELECT id FROM entries WHERE state >= 2 ORDER BY id LIMIT ?1)",
        ] {
            self.execute(sql, [to_i64(excess)])?;
        }
        Ok(())
    }
}
