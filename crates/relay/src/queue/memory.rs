//! The queue in memory. It is lost when the process ends, like the messages of the memory store.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use jiff::Timestamp;
use restante_journal::TranscriptLines;
use restante_mail::message::MessageId;
use restante_store::{Result, StoreError};

use super::transitions::{
    EXPIRED_REPLY, can_be_retried, due_after, fail_waiting, latest_due, queued_entry, retry_failed, state_after,
};
use super::{
    AddError, AttemptOutcome, AttemptRecord, EntryFilter, ForwardOutcome, MAX_FINISHED, NewEntry, Queue, Selection,
    StateCount,
};
use crate::entry::{Entry, EntryId, EntryState};

/// A [`Queue`] in memory.
pub struct MemoryQueue {
    max_waiting: usize,
    max_finished: usize,
    /// `None` if the random source failed.
    identity: Option<String>,
    contents: Mutex<Contents>,
}

impl MemoryQueue {
    /// Creates an empty queue that holds at most `max_waiting` entries that are not finished.
    pub fn new(max_waiting: usize) -> Self {
        Self::with_limits(max_waiting, MAX_FINISHED)
    }

    pub(super) fn with_limits(max_waiting: usize, max_finished: usize) -> Self {
        let mut random = [0; 16];
        let is_random = aws_lc_rs::rand::fill(&mut random).is_ok();
        let identity = is_random.then(|| format!("{:032x}", u128::from_ne_bytes(random)));
        Self { max_waiting, max_finished, identity, contents: Mutex::default() }
    }

    /// Nothing panics while the lock is held. If it does, the contents are still usable.
    fn lock(&self) -> MutexGuard<'_, Contents> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Queue for MemoryQueue {
    async fn identity(&self) -> Result<String> {
        self.identity.clone().ok_or_else(|| StoreError::Unavailable("there are no random numbers".to_owned()))
    }

    async fn add(&self, entries: Vec<NewEntry>) -> Result<Vec<EntryId>, AddError> {
        let mut contents = self.lock();
        if !contents.has_room(entries.len(), self.max_waiting) {
            return Err(AddError::Full);
        }
        Ok(entries.into_iter().map(|entry| contents.insert(entry)).collect())
    }

    async fn forward(&self, entries: Vec<NewEntry>, from: MessageId, to: MessageId) -> Result<ForwardOutcome> {
        let mut contents = self.lock();
        if contents.cursor != Some(from) {
            return Ok(ForwardOutcome::CursorMoved);
        }
        if !contents.has_room(entries.len(), self.max_waiting) {
            return Ok(ForwardOutcome::Full);
        }
        for entry in entries {
            contents.insert(entry);
        }
        contents.cursor = Some(to);
        Ok(ForwardOutcome::Added)
    }

    async fn acquire_cursor(&self, start: MessageId) -> Result<Option<MessageId>> {
        Ok(Some(*self.lock().cursor.get_or_insert(start)))
    }

    async fn delete_cursor(&self) -> Result<()> {
        self.lock().cursor = None;
        Ok(())
    }

    async fn claim(&self, target: &str, now: Timestamp, limit: usize) -> Result<Vec<Entry>> {
        let mut contents = self.lock();
        let Some(due) = contents.due.get(target) else { return Ok(Vec::new()) };
        let is_current = |id: &EntryId| contents.entries.get(id).is_some_and(|stored| stored.entry.expires > now);
        let last = |time| (time, EntryId(u64::MAX));
        let too_late = (Bound::Excluded(last(latest_due(now))), Bound::Unbounded);
        let claimable = due.range(..=last(now)).chain(due.range(too_late)).map(|(_, id)| *id);
        let ids: Vec<EntryId> = claimable.filter(is_current).take(limit).collect();
        let claim = |id| {
            contents.change(id, |stored| {
                stored.entry.state = EntryState::Sending;
                stored.is_claimed = true;
                stored.to_entry()
            })
        };
        Ok(ids.into_iter().filter_map(claim).collect())
    }

    async fn record(&self, results: Vec<AttemptRecord>) -> Result<()> {
        let mut contents = self.lock();
        for AttemptRecord { id, outcome, .. } in results {
            contents.change(id, |stored| stored.record(outcome));
        }
        contents.prune(self.max_finished);
        Ok(())
    }

    async fn next_due(&self, target: &str) -> Result<Option<Timestamp>> {
        Ok(self.lock().due.get(target).and_then(|due| due.first()).map(|(due, _)| *due))
    }

    async fn expire(&self, now: Timestamp) -> Result<u64> {
        let mut contents = self.lock();
        let queued = contents.due.values().flatten().map(|(_, id)| *id);
        let is_expired = |id: &EntryId| contents.entries.get(id).is_some_and(|stored| stored.entry.expires <= now);
        let expired: Vec<EntryId> = queued.filter(is_expired).collect();
        for id in &expired {
            contents.change(*id, Stored::expire);
        }
        contents.prune(self.max_finished);
        Ok(expired.len() as u64)
    }

    async fn list(&self, filter: EntryFilter) -> Result<Vec<Entry>> {
        let contents = self.lock();
        let before = filter.before.unwrap_or(EntryId(u64::MAX));
        let matches = |stored: &&Stored| {
            filter.target.as_ref().is_none_or(|target| stored.entry.target == *target)
                && filter.state.is_none_or(|state| stored.entry.state == state)
        };
        let matching: Box<dyn Iterator<Item = &Stored>> = if let Some(message) = filter.message {
            let ids = contents.by_message.range((message, EntryId(0))..(message, before)).rev();
            Box::new(ids.filter_map(|(_, id)| contents.entries.get(id)).filter(matches))
        } else {
            Box::new(contents.entries.range(..before).rev().map(|(_, stored)| stored).filter(matches))
        };
        Ok(matching.take(filter.limit).map(Stored::to_entry).collect())
    }

    async fn find(&self, id: EntryId) -> Result<Option<Entry>> {
        Ok(self.lock().entries.get(&id).map(Stored::to_entry))
    }

    async fn transcript(&self, id: EntryId) -> Result<Option<TranscriptLines>> {
        Ok(self.lock().entries.get(&id).and_then(|stored| stored.transcript.clone()))
    }

    async fn cancel(&self, selection: Selection) -> Result<u64> {
        let mut contents = self.lock();
        let ids = contents.select(&selection, |state| !state.is_final());
        for id in &ids {
            contents.change(*id, |stored| stored.entry.state = EntryState::Cancelled);
        }
        contents.prune(self.max_finished);
        Ok(ids.len() as u64)
    }

    async fn retry(&self, selection: Selection, now: Timestamp, expires: Timestamp) -> Result<u64> {
        let mut contents = self.lock();
        let ids = contents.select(&selection, can_be_retried);
        let mut retried = 0;
        for id in ids {
            let has_room = contents.has_room(1, self.max_waiting);
            let is_retried = contents.change(id, |stored| stored.retry(has_room, now, expires));
            retried += u64::from(is_retried == Some(true));
        }
        Ok(retried)
    }

    async fn counts(&self) -> Result<Vec<StateCount>> {
        let contents = self.lock();
        let count = |((target, state), count): (&(String, EntryState), &u64)| StateCount {
            target: target.clone(),
            state: *state,
            count: *count,
        };
        Ok(contents.counts.iter().map(count).collect())
    }

    async fn leave(&self) -> Result<()> {
        let mut contents = self.lock();
        for id in contents.select(&Selection::Target(None), |state| state == EntryState::Sending) {
            contents.change(id, |stored| stored.record(AttemptOutcome::Released));
        }
        Ok(())
    }
}

/// All entries, with their indexes.
#[derive(Default)]
struct Contents {
    entries: BTreeMap<EntryId, Stored>,
    last_id: u64,
    /// The queued entries of each target, in the order in which they are claimed.
    due: HashMap<String, BTreeSet<(Timestamp, EntryId)>>,
    by_message: BTreeSet<(MessageId, EntryId)>,
    finished: BTreeSet<EntryId>,
    counts: HashMap<(String, EntryState), u64>,
    cursor: Option<MessageId>,
}

impl Contents {
    /// Returns whether this number of entries can be added.
    fn has_room(&self, added: usize, max_waiting: usize) -> bool {
        let waiting = self.entries.len() - self.finished.len();
        added == 0 || waiting == 0 || waiting.saturating_add(added) <= max_waiting
    }

    fn insert(&mut self, new: NewEntry) -> EntryId {
        self.last_id += 1;
        let (id, due) = (EntryId(self.last_id), new.created);
        let stored = Stored { entry: queued_entry(id, new), due, is_claimed: false, transcript: None };
        self.add_to_indexes(&stored);
        self.entries.insert(id, stored);
        id
    }

    /// Changes an entry and its indexes. Returns `None` if there is no such entry.
    fn change<T>(&mut self, id: EntryId, change: impl FnOnce(&mut Stored) -> T) -> Option<T> {
        let mut stored = self.entries.remove(&id)?;
        self.remove_from_indexes(&stored);
        let result = change(&mut stored);
        self.add_to_indexes(&stored);
        self.entries.insert(id, stored);
        Some(result)
    }

    fn add_to_indexes(&mut self, Stored { entry, due, .. }: &Stored) {
        match entry.state {
            EntryState::Queued => {
                self.due.entry(entry.target.clone()).or_default().insert((*due, entry.id));
            }
            state if state.is_final() => {
                self.finished.insert(entry.id);
            }
            _ => {}
        }
        self.by_message.insert((entry.message, entry.id));
        *self.counts.entry((entry.target.clone(), entry.state)).or_default() += 1;
    }

    fn remove_from_indexes(&mut self, Stored { entry, due, .. }: &Stored) {
        if let Some(entries) = self.due.get_mut(&entry.target) {
            entries.remove(&(*due, entry.id));
            if entries.is_empty() {
                self.due.remove(&entry.target);
            }
        }
        self.finished.remove(&entry.id);
        self.by_message.remove(&(entry.message, entry.id));
        let key = (entry.target.clone(), entry.state);
        if let Some(count) = self.counts.get_mut(&key) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&key);
            }
        }
    }

    /// Returns the selected entries in certain states, lowest id first.
    fn select(&self, selection: &Selection, has_state: impl Fn(EntryState) -> bool) -> Vec<EntryId> {
        match selection {
            Selection::Ids(ids) => {
                let unique: BTreeSet<EntryId> = ids.iter().copied().collect();
                let is_selected =
                    |id: &EntryId| self.entries.get(id).is_some_and(|stored| has_state(stored.entry.state));
                unique.into_iter().filter(is_selected).collect()
            }
            Selection::Target(target) => {
                let is_selected = |stored: &&Stored| {
                    has_state(stored.entry.state) && target.as_ref().is_none_or(|target| stored.entry.target == *target)
                };
                self.entries.values().filter(is_selected).map(|stored| stored.entry.id).collect()
            }
        }
    }

    /// Deletes finished entries above the limit.
    fn prune(&mut self, max_finished: usize) {
        while self.finished.len() > max_finished
            && let Some(id) = self.finished.first().copied()
            && let Some(stored) = self.entries.remove(&id)
        {
            self.remove_from_indexes(&stored);
        }
    }
}

/// An entry with what is not part of [`Entry`].
struct Stored {
    entry: Entry,
    /// When it is attempted next, if it is queued, or was due, if it was claimed.
    due: Timestamp,
    /// Whether it is being sent. A cancelled entry can be.
    is_claimed: bool,
    transcript: Option<TranscriptLines>,
}

impl Stored {
    fn to_entry(&self) -> Entry {
        let next_attempt = (self.entry.state == EntryState::Queued).then_some(self.due);
        Entry { next_attempt, ..self.entry.clone() }
    }

    /// Records a result, unless the entry is not claimed any more. A cancelled entry stays cancelled.
    fn record(&mut self, outcome: AttemptOutcome) {
        if !std::mem::take(&mut self.is_claimed) {
            return;
        }
        let new_state = match outcome {
            AttemptOutcome::Released => EntryState::Queued,
            AttemptOutcome::Attempted { state, next_attempt, at, recipients, reply, mut transcript } => {
                transcript.shrink();
                self.due = due_after(next_attempt, at);
                self.transcript = Some(transcript);
                self.entry.attempts += 1;
                self.entry.last_attempt = Some(at);
                self.entry.recipients = recipients;
                self.entry.last_reply = reply;
                state_after(state)
            }
        };
        if self.entry.state == EntryState::Sending {
            self.entry.state = new_state;
        }
    }

    fn expire(&mut self) {
        self.entry.state = EntryState::Failed;
        fail_waiting(&mut self.entry.recipients);
        if self.entry.last_reply.is_empty() {
            EXPIRED_REPLY.clone_into(&mut self.entry.last_reply);
        }
    }

    /// Queues the entry again. Returns whether it was possible.
    fn retry(&mut self, has_room: bool, now: Timestamp, expires: Timestamp) -> bool {
        if self.entry.state != EntryState::Queued && !has_room {
            return false;
        }
        let mut recipients = self.entry.recipients.clone();
        if !retry_failed(&mut recipients) {
            return false;
        }
        self.entry.recipients = recipients;
        self.entry.state = EntryState::Queued;
        self.entry.expires = expires;
        self.due = now;
        self.is_claimed = false;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::conformance;

    #[tokio::test(flavor = "multi_thread")]
    async fn passes_conformance_suite() {
        conformance::run(async |max_waiting, max_finished| MemoryQueue::with_limits(max_waiting, max_finished)).await;
    }
}
