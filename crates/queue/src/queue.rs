//! The [`Queue`] contract. Every backend passes the suite in `tests/conformance`.

use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use restante_mail::message::MessageId;
use restante_store::{Result, StoreError};

use crate::entry::{AttemptRecord, Entry, EntryFilter, EntryId, NewEntry, Selection, StateCount};
use crate::room::Room;

/// The number of entries that a retry by hand reads at a time.
const RETRY_PAGE: usize = 100;

/// What is queued. Each kind has its own entries, targets and limits.
#[derive(Clone, Copy, Debug)]
pub struct QueueKind {
    /// The name, for log lines and for the rows in a database.
    pub name: &'static str,
    /// The name of the file in a data directory.
    pub file_name: &'static str,
    /// Identifies the file.
    pub application_id: i64,
    /// No entry is queued for a later time than this. The delay between attempts is shorter, so an entry that is due later
    /// was queued before the clock was set back. It is claimed at once.
    pub max_delay: Duration,
    /// Whether entries are on disk when [`Queue::add`] returns. Otherwise a power failure can undo their addition.
    pub is_synced: bool,
    /// The payload of an entry in a final state is kept up to this size in bytes. A larger one becomes empty.
    pub max_finished_payload: usize,
    /// Returns the payload of an entry that is retried by hand. `None` if it cannot be sent again.
    pub retried_payload: fn(payload: &[u8]) -> Option<Vec<u8>>,
}

impl QueueKind {
    /// Returns the time above which an entry is due at once.
    pub(crate) fn latest_due(&self, now: Timestamp) -> Timestamp {
        now.checked_add(self.max_delay).unwrap_or(Timestamp::MAX)
    }
}

/// The maximum numbers of entries.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Entries that are queued or being sent.
    pub max_waiting: usize,
    /// Entries in a final state. Above it, those with the lowest ids are deleted.
    pub max_finished: usize,
}

/// What may wait for one target.
#[derive(Clone, Copy, Debug)]
pub struct TargetLimits {
    /// Entries that are queued or being sent.
    pub max_waiting: usize,
    /// The size of their payloads.
    pub max_bytes: u64,
}

impl TargetLimits {
    /// No limits of its own: those of the queue suffice.
    pub const NONE: Self = Self { max_waiting: usize::MAX, max_bytes: u64::MAX };
}

/// The entries of all targets of one kind.
///
/// All methods may be called at the same time from any number of tasks. When a method returns `Ok`, its change survives
/// the end of the process, except in memory. If several nodes share a queue, an entry is claimed by one of them at a
/// time.
///
/// There are two ways to add an entry for every stored message, also if the process ends at any time. One node at a time
/// can read all messages in the order of their ids: the *cursor* moves together with the entries that are added. Or every
/// node adds entries for the messages that it stores, and records a *checkpoint*: if the node dies, another one looks for
/// messages above it that have no entry.
#[async_trait]
pub trait Queue: Send + Sync + 'static {
    /// Returns the kind.
    fn kind(&self) -> QueueKind;

    /// Returns the limits.
    fn limits(&self) -> Limits;

    /// Returns the id of the queue: 32 hexadecimal digits, which are random and created once with the queue. All nodes
    /// that share it get the same.
    async fn identity(&self) -> Result<String>;

    /// Returns a secret of the same form. Unlike the id, it is never sent.
    async fn secret(&self) -> Result<String>;

    /// Adds entries, all or none, except those whose keys exist. Their first attempt is due at once. If no entry is
    /// waiting, any number of entries is added, here and in [`Queue::forward`], so that a message with very many entries
    /// does not wait forever. Returns the ids of the added entries.
    async fn add(&self, entries: Vec<NewEntry>) -> Result<Vec<EntryId>, AddError>;

    /// Adds entries, and moves the cursor from `from` to `to`, in one change. Changes nothing unless the result is
    /// [`ForwardOutcome::Added`].
    async fn forward(&self, entries: Vec<NewEntry>, from: MessageId, to: MessageId) -> Result<ForwardOutcome>;

    /// Returns the cursor if this node forwards: no entries were added for messages above it. If there is no
    /// cursor, it is set to `start`. Returns `None` if another node forwards. A node has to call this every few seconds
    /// to remain the one.
    async fn acquire_cursor(&self, start: MessageId) -> Result<Option<MessageId>>;

    /// Deletes the cursor. Returns false if there still is one, because another node forwards.
    async fn delete_cursor(&self) -> Result<bool>;

    /// Sets the checkpoint of this node: it has added entries for all messages up to this one that it has stored. `None` if
    /// that is true for all messages.
    async fn set_checkpoint(&self, checkpoint: Option<MessageId>) -> Result<()>;

    /// Returns the checkpoints of nodes that have died, which includes earlier processes.
    async fn abandoned_checkpoints(&self) -> Result<Vec<AbandonedCheckpoint>>;

    /// Deletes checkpoints of dead nodes, because entries were added for all messages above them. Keeps that of a node that
    /// was alive meanwhile.
    async fn delete_abandoned(&self, checkpoints: Vec<AbandonedCheckpoint>) -> Result<()>;

    /// Sets the targets. New ones get `since` as [`TargetRecord::since`]. The entries of all others are cancelled, and so are
    /// earlier entries of new ones: another node has queued them after the target was removed. Returns the number of
    /// cancelled entries.
    async fn set_targets(&self, names: Vec<String>, since: MessageId) -> Result<u64>;

    /// Returns the targets that were set or paused.
    async fn targets(&self) -> Result<Vec<TargetRecord>>;

    /// Pauses a target, or ends its pause. The entries of a paused target are not claimed by any node.
    async fn set_paused(&self, target: &str, is_paused: bool) -> Result<()>;

    /// Claims at most `limit` entries of a target that are due, in the order of their next attempt and then of their
    /// ids. An entry that is due later than [`QueueKind::max_delay`] is claimed after those, because the clock was set
    /// back. They are [`crate::EntryState::Sending`] until their results are recorded. Entries that a dead node has
    /// claimed are due, too. Expired entries are not claimed.
    async fn claim(&self, target: &str, now: Timestamp, limit: usize) -> Result<Vec<Entry>>;

    /// Records the results of claimed entries. The result of a claim that has ended is ignored, so it does no harm to
    /// record results again after an error. An entry that was cancelled after it was claimed stays cancelled, but
    /// everything else is recorded.
    async fn record(&self, results: Vec<AttemptRecord>) -> Result<()>;

    /// Returns when the next entry of a target is due. `None` if none is queued or the target is paused. Expired entries
    /// count until [`Queue::expire`] has failed them, so the time can be in the past although nothing can be claimed.
    async fn next_due(&self, target: &str) -> Result<Option<Timestamp>>;

    /// Fails queued entries that have expired. Returns the target of each.
    async fn expire(&self, now: Timestamp) -> Result<Vec<String>>;

    /// Lets no queued entry expire before `time`.
    async fn postpone_expiry(&self, time: Timestamp) -> Result<()>;

    /// Returns entries, highest id first.
    async fn list(&self, filter: EntryFilter) -> Result<Vec<Entry>>;

    /// Returns an entry.
    async fn find(&self, id: EntryId) -> Result<Option<Entry>>;

    /// Returns what is kept of the last attempt of an entry. `None` if there is no such entry or no attempt.
    async fn attempt_log(&self, id: EntryId) -> Result<Option<Vec<u8>>>;

    /// Cancels queued and claimed entries. What is being sent may still be accepted. Returns the number of
    /// cancelled entries.
    async fn cancel(&self, selection: Selection) -> Result<u64>;

    /// Makes entries due at once that are queued, failed or cancelled, with the payload of [`QueueKind::retried_payload`].
    /// They expire at `expires`. Entries without such a payload are left out, and so are entries of other targets than
    /// `targets`, and entries above the limit of the queue or of their target. Returns the target of each.
    async fn retry(
        &self,
        selection: Selection,
        now: Timestamp,
        expires: Timestamp,
        targets: &[String],
        target_limits: TargetLimits,
    ) -> Result<Vec<String>> {
        let mut room = Room::new(self.limits().max_waiting, target_limits, &self.counts().await?);
        let (mut after, mut retried) = (EntryId(0), Vec::new());
        loop {
            let page = self.retryable(&selection, after, RETRY_PAGE).await?;
            let Some(last) = page.last() else { return Ok(retried) };
            after = last.id;
            let mut entries = Vec::with_capacity(page.len());
            for entry in page.into_iter().filter(|entry| targets.contains(&entry.target)) {
                let Some(payload) = (self.kind().retried_payload)(&entry.payload) else { continue };
                if !entry.state.is_final() || room.take(&entry.target, payload.len()) {
                    entries.push(Entry { payload, ..entry });
                }
            }
            retried.extend(self.requeue(entries, now, expires).await?);
        }
    }

    /// Returns selected entries with ids above `after` that are queued, failed or cancelled, lowest id first.
    async fn retryable(&self, selection: &Selection, after: EntryId, limit: usize) -> Result<Vec<Entry>>;

    /// Makes entries due at once with these payloads, unless they were attempted meanwhile. Returns the target of each.
    async fn requeue(&self, entries: Vec<Entry>, now: Timestamp, expires: Timestamp) -> Result<Vec<String>>;

    /// Returns the number of entries by target and state. Cheap enough to be called every few seconds.
    async fn counts(&self) -> Result<Vec<StateCount>>;

    /// Records that this node is alive, for the other nodes, and returns entries to the queue that were claimed although
    /// [`Queue::claim`] returned an error. Has to be called every few seconds.
    async fn heartbeat(&self) -> Result<()> {
        Ok(())
    }

    /// Returns all claimed entries of this node to the queue, and ends its part in forwarding. Called at shutdown.
    async fn leave(&self) -> Result<()>;
}

/// Entries of a queue, as operators see and change them.
pub trait EntryControl: Send + Sync + 'static {
    /// An entry.
    type Entry: Send + Sync + 'static;

    /// Returns entries, the newest first.
    fn entries(&self, filter: EntryFilter) -> impl Future<Output = Result<Vec<Self::Entry>>> + Send;

    /// Returns an entry.
    fn entry(&self, id: EntryId) -> impl Future<Output = Result<Option<Self::Entry>>> + Send;

    /// Cancels entries that are not final. Returns their number. See [`Queue::cancel`].
    fn cancel(&self, selection: Selection) -> impl Future<Output = Result<u64>> + Send;

    /// Sends entries again, at once. Returns their number. See [`Queue::retry`].
    fn retry(&self, selection: Selection) -> impl Future<Output = Result<u64>> + Send;
}

/// Why entries were not added.
#[derive(Clone, Debug, thiserror::Error)]
pub enum AddError {
    /// The queue would exceed its limit.
    #[error("the queue is full")]
    Full,
    /// The storage failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The result of [`Queue::forward`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForwardOutcome {
    /// The entries were added, and the cursor was moved.
    Added,
    /// The queue would exceed its limit.
    Full,
    /// The cursor is not where it was expected: another node has moved it.
    CursorMoved,
}

/// The checkpoint of a dead node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AbandonedCheckpoint {
    /// The node has added entries for all messages up to this one that it has stored.
    pub message: MessageId,
    pub(crate) node: i64,
    /// The version of the node's row. It changes if the node was alive meanwhile.
    pub(crate) version: String,
}

/// A target, as the queue knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetRecord {
    /// The name.
    pub name: String,
    /// Whether it is paused by hand.
    pub is_paused: bool,
    /// The last message before the target was set.
    pub since: MessageId,
}
