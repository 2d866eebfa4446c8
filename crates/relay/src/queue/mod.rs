//! The queue of messages that are sent: the [`Queue`] contract, and its backends. Every backend passes the suite in
//! `conformance.rs`.

use async_trait::async_trait;
use jiff::Timestamp;
use restante_journal::TranscriptLines;
use restante_mail::message::MessageId;
use restante_store::{Result, StoreError};

pub use crate::entry::NewEntry;
use crate::entry::{Entry, EntryId, EntryRecipient, EntryState};

mod columns;
#[cfg(test)]
mod conformance;
mod disk;
mod memory;
mod postgres;
mod transitions;
mod waiting;

pub use disk::DiskQueue;
pub use memory::MemoryQueue;
pub use postgres::PostgresQueue;

/// The maximum number of entries in a final state. Above it, those with the lowest ids are deleted.
pub const MAX_FINISHED: usize = 10_000;

/// The entries of all targets, and the cursor of the forwarder.
///
/// All methods may be called at the same time from any number of tasks. When a method returns `Ok`, its change survives
/// the end of the process, except in memory. If several nodes share a queue, an entry is claimed by one of them at a
/// time.
#[async_trait]
pub trait Queue: Send + Sync + 'static {
    /// Returns the id of the queue: 32 hexadecimal digits, which are random and created once with the queue. All nodes
    /// that share it get the same. Sent messages contain it, so that they are recognized when they come back.
    async fn identity(&self) -> Result<String>;

    /// Adds entries, all or none. Their first attempt is due at once. If no entry is waiting, any number of entries is added,
    /// here and in [`Queue::forward`], so that a message with very many entries does not wait forever.
    async fn add(&self, entries: Vec<NewEntry>) -> Result<Vec<EntryId>, AddError>;

    /// Adds the entries of forwarded messages, and moves the cursor of the forwarder from `from` to `to`, in one
    /// change. Changes nothing unless the result is [`ForwardOutcome::Added`].
    async fn forward(&self, entries: Vec<NewEntry>, from: MessageId, to: MessageId) -> Result<ForwardOutcome>;

    /// Returns the cursor if this node forwards: messages above it have not been compared with the rules. If there is no
    /// cursor, it is set to `start`. Returns `None` if another node forwards. A node has to call this every few seconds
    /// to remain the one.
    async fn acquire_cursor(&self, start: MessageId) -> Result<Option<MessageId>>;

    /// Deletes the cursor, because there are no rules. Does nothing if another node forwards.
    async fn delete_cursor(&self) -> Result<()>;

    /// Claims at most `limit` entries of a target that are due, in the order of their next attempt and then of their
    /// ids. An entry that is due in more than 30 minutes is claimed after those, because the clock was set back. They are
    /// [`EntryState::Sending`] until their results are recorded. Entries that a dead node has claimed are
    /// due, too. Expired entries are not claimed.
    async fn claim(&self, target: &str, now: Timestamp, limit: usize) -> Result<Vec<Entry>>;

    /// Records the results of claimed entries. The result of a claim that has ended is ignored, so it does no harm to
    /// record results again after an error. An entry that was cancelled after it was claimed stays cancelled, but everything else is recorded.
    async fn record(&self, results: Vec<AttemptRecord>) -> Result<()>;

    /// Returns when the next entry of a target is due. `None` if none is queued. Expired entries count until
    /// [`Queue::expire`] has failed them, so the time can be in the past although nothing can be claimed.
    async fn next_due(&self, target: &str) -> Result<Option<Timestamp>>;

    /// Fails queued entries that have expired: their waiting recipients fail. Returns the number of entries.
    async fn expire(&self, now: Timestamp) -> Result<u64>;

    /// Returns entries, highest id first.
    async fn list(&self, filter: EntryFilter) -> Result<Vec<Entry>>;

    /// Returns an entry.
    async fn find(&self, id: EntryId) -> Result<Option<Entry>>;

    /// Returns the transcript of the last attempt of an entry. `None` if there is no such entry or no attempt.
    async fn transcript(&self, id: EntryId) -> Result<Option<TranscriptLines>>;

    /// Cancels queued and claimed entries. A message that is being sent may still be accepted. Returns the number of
    /// cancelled entries.
    async fn cancel(&self, selection: Selection) -> Result<u64>;

    /// Makes entries due at once that are queued, failed or cancelled. Their failed recipients wait again, and they
    /// expire at `expires`. Entries without a waiting recipient are left out, and so are entries above the limit of the
    /// queue. Returns the number of entries.
    async fn retry(&self, selection: Selection, now: Timestamp, expires: Timestamp) -> Result<u64>;

    /// Returns the number of entries by target and state. Cheap enough to be called every few seconds.
    async fn counts(&self) -> Result<Vec<StateCount>>;

    /// Tells the other nodes that this node is alive, and returns entries to the queue that were claimed although
    /// [`Queue::claim`] returned an error. Has to be called every few seconds.
    async fn heartbeat(&self) -> Result<()> {
        Ok(())
    }

    /// Returns all claimed entries of this node to the queue, and ends its part in forwarding. Called at shutdown.
    async fn leave(&self) -> Result<()>;
}

/// Why entries were not added.
#[derive(Clone, Debug)]
pub enum AddError {
    /// The queue would exceed its limit.
    Full,
    /// The storage failed.
    Store(StoreError),
}

impl From<StoreError> for AddError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
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

/// The result of an attempt to send an entry.
#[derive(Clone, Debug)]
pub struct AttemptRecord {
    /// The entry.
    pub id: EntryId,
    /// The claim to which the result belongs: [`Entry::claim`] of the claimed entry.
    pub claim: u64,
    /// What happened.
    pub outcome: AttemptOutcome,
}

/// What happened to a claimed entry.
#[derive(Clone, Debug)]
pub enum AttemptOutcome {
    /// It was not attempted. It is queued again as it was.
    Released,
    /// It was attempted.
    Attempted {
        /// The new state: queued, delivered or failed.
        state: EntryState,
        /// When it is attempted next, if it is queued.
        next_attempt: Option<Timestamp>,
        /// When it was attempted.
        at: Timestamp,
        /// The recipients with their new states.
        recipients: Vec<EntryRecipient>,
        /// The last reply of the server, or the error that prevented it.
        reply: String,
        /// The conversation.
        transcript: TranscriptLines,
    },
}

/// Selects entries for a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EntryFilter {
    /// Only entries of this message.
    pub message: Option<MessageId>,
    /// Only entries of this target.
    pub target: Option<String>,
    /// Only entries in this state.
    pub state: Option<EntryState>,
    /// Only entries with ids below this one.
    pub before: Option<EntryId>,
    /// The maximum number of entries.
    pub limit: usize,
}

/// Selects entries for a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    /// These entries.
    Ids(Vec<EntryId>),
    /// All entries of a target, or of all targets.
    Target(Option<String>),
}

/// A number of entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateCount {
    /// The name of the target.
    pub target: String,
    /// The state.
    pub state: EntryState,
    /// The number of entries.
    pub count: u64,
}
