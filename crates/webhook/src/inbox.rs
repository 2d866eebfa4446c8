//! The inbox of the persist worker. The mailroom puts events into it and the target queues report finished rows;
//! neither ever waits. Every event in it has a reserved slot in each of its target queues, so the number of events is
//! limited by the queues. The size is limited in bytes.

use std::mem::size_of;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use restante_mail::message::{MessageId, Summary};
use restante_worker::{BoundedQueue, Contents, Inbox, Stage};

use crate::Event;

/// The maximum size of all events in the inbox. The worker empties it immediately. It fills only if the disk stalls or a
/// large mailbox is deleted.
pub(crate) const MAX_INBOX_BYTES: usize = 64 << 20;

/// An event for the worker.
#[derive(Clone, Debug)]
pub(crate) struct InboxEvent {
    pub(crate) event: Event,
    pub(crate) summary: Summary,
    /// The indexes of the target queues. A slot is reserved in each of them.
    pub(crate) targets: Vec<usize>,
}

impl InboxEvent {
    /// Returns the approximate memory use.
    fn size_bytes(&self) -> usize {
        size_of::<Self>() + self.summary.text_len()
    }
}

/// The reason why an event is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DropReason {
    /// The queue or the inbox is full.
    Full,
    /// The server is shutting down.
    Closed,
}

/// The inbox. See the module documentation.
#[derive(Debug, Default)]
pub(crate) struct EventInbox {
    inbox: Inbox<State>,
    /// The highest id of any stored message, whether a target matches it or not.
    highest_id: AtomicU64,
    /// Whether the waiting events are written to disk.
    is_persisted: AtomicBool,
}

/// Everything that the worker takes from the inbox in one step.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// The last id that was assigned before the server started serving. Present in one batch only.
    pub(crate) last_id_before_start: Option<u64>,
    pub(crate) events: Vec<InboxEvent>,
    /// Whether all missed messages have been put into the inbox, in this batch or an earlier one.
    pub(crate) is_caught_up: bool,
    /// Rows of the outbox that are finished.
    pub(crate) finished_rows: Vec<i64>,
    /// Whether the worker must stop after this batch.
    pub(crate) is_stopping: bool,
    /// Whether this is a clean shutdown.
    pub(crate) is_clean: bool,
}

#[derive(Debug)]
struct State {
    start: StartState,
    /// The size of an item is its memory use in bytes.
    events: BoundedQueue<InboxEvent>,
    is_caught_up: bool,
    finished_rows: Vec<i64>,
    /// Whether an event arrived after the inbox was closed.
    has_late_event: bool,
    /// Whether a clean shutdown was requested.
    is_clean: bool,
    worker: WorkerProgress,
}

/// The start of the server. Until the server is serving, the worker changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StartState {
    NotStarted,
    /// The server is serving. Contains the last id that was assigned before.
    Started(u64),
    /// The worker has received that id.
    TakenByWorker,
}

/// The progress of the worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum WorkerProgress {
    #[default]
    Running,
    /// It has processed all events that arrived before the inbox was closed.
    Flushed,
    /// It takes nothing from the inbox any more.
    Stopped,
}

impl StartState {
    /// Returns the last id before the start. Returns it only once.
    fn take_last_id(&mut self) -> Option<u64> {
        let Self::Started(last) = *self else { return None };
        *self = Self::TakenByWorker;
        Some(last)
    }
}

impl Default for State {
    fn default() -> Self {
        Self {
            start: StartState::NotStarted,
            events: BoundedQueue::new(MAX_INBOX_BYTES),
            is_caught_up: false,
            finished_rows: Vec::new(),
            has_late_event: false,
            is_clean: false,
            worker: WorkerProgress::Running,
        }
    }
}

impl EventInbox {
    /// Records that the server is serving. `last` is the last id that was assigned before.
    pub(crate) fn start(&self, last: MessageId) {
        self.record_id(last);
        let mut contents = self.inbox.lock();
        if contents.stage == Stage::Open && contents.queue.start == StartState::NotStarted {
            contents.queue.start = StartState::Started(last.number());
        }
        self.inbox.notify();
    }

    /// Adds an event, unless the inbox is full or closed.
    pub(crate) fn push(&self, event: InboxEvent) -> Result<(), DropReason> {
        let mut contents = self.inbox.lock();
        if contents.stage != Stage::Open {
            contents.queue.has_late_event = true;
            return Err(DropReason::Closed);
        }
        let bytes = event.size_bytes();
        contents.queue.events.push(event, bytes).map_err(|_| DropReason::Full)?;
        self.inbox.notify();
        Ok(())
    }

    /// Adds all messages that were missed before this start. Their size is limited by the caller. Adds all of them, or
    /// returns them if the inbox is closed.
    pub(crate) fn push_missed(&self, events: Vec<InboxEvent>) -> Result<(), Vec<InboxEvent>> {
        let mut contents = self.inbox.lock();
        if contents.stage != Stage::Open {
            return Err(events);
        }
        for event in events {
            // An item of size zero always fits.
            let _ = contents.queue.events.push(event, 0);
        }
        contents.queue.is_caught_up = true;
        self.inbox.notify();
        Ok(())
    }

    /// Records the id of a stored message.
    pub(crate) fn record_id(&self, id: MessageId) {
        self.highest_id.fetch_max(id.number(), Relaxed);
    }

    /// Returns the highest recorded id.
    pub(crate) fn highest_id(&self) -> u64 {
        self.highest_id.load(Relaxed)
    }

    /// Records whether the waiting events are written to disk. Called by the worker.
    pub(crate) fn set_persisted(&self, is_persisted: bool) {
        self.is_persisted.store(is_persisted, Relaxed);
    }

    /// Returns whether the waiting events will be found at the next start.
    pub(crate) fn is_persisted(&self) -> bool {
        self.is_persisted.load(Relaxed)
    }

    /// Reports that a row of the outbox is finished. There are never more of them than waiting events.
    pub(crate) fn finish_row(&self, row: i64) {
        let mut contents = self.inbox.lock();
        if contents.queue.worker < WorkerProgress::Stopped {
            contents.queue.finished_rows.push(row);
            self.inbox.notify();
        }
    }

    /// Waits until there is something to do, or until `timeout` has passed. Before the server is serving, it waits
    /// without a timeout. Called by the worker.
    pub(crate) fn next_batch(&self, timeout: Option<Duration>) -> Batch {
        let deadline = timeout.map(|timeout| Instant::now() + timeout);
        let has_started = |Contents { queue, stage }: &mut Contents<State>| {
            queue.start != StartState::NotStarted || *stage != Stage::Open
        };
        drop(self.inbox.wait_until(None, has_started));
        let has_work = |Contents { queue, stage }: &mut Contents<State>| {
            if *stage != Stage::Open && queue.events.is_empty() && queue.worker < WorkerProgress::Flushed {
                queue.worker = WorkerProgress::Flushed;
                self.inbox.notify();
            }
            let has_input = matches!(queue.start, StartState::Started(_))
                || !queue.events.is_empty()
                || !queue.finished_rows.is_empty();
            has_input || *stage == Stage::Stopped
        };
        let (mut contents, _) = self.inbox.wait_until(deadline, has_work);
        let (stage, queue) = (contents.stage, &mut contents.queue);
        Batch {
            last_id_before_start: queue.start.take_last_id(),
            events: queue.events.take(usize::MAX, usize::MAX).0,
            is_caught_up: queue.is_caught_up,
            finished_rows: std::mem::take(&mut queue.finished_rows),
            is_stopping: stage == Stage::Stopped,
            is_clean: queue.is_clean,
        }
    }

    /// Records that the worker has stopped.
    pub(crate) fn mark_stopped(&self) {
        self.inbox.lock().queue = State { worker: WorkerProgress::Stopped, ..State::default() };
        self.inbox.notify();
    }

    /// Rejects further events and waits until the worker has processed those in the inbox. Returns false if `deadline`
    /// passes first.
    pub(crate) fn close(&self, deadline: Instant) -> bool {
        self.inbox.close();
        self.wait_for_progress(WorkerProgress::Flushed, deadline)
    }

    /// Stops the worker and waits for it. Returns false if `deadline` passes first. If an event arrived after the inbox
    /// was closed, the shutdown is not clean.
    pub(crate) fn stop(&self, is_clean: bool, deadline: Instant) -> bool {
        let mut contents = self.inbox.lock();
        if contents.stage != Stage::Stopped {
            contents.queue.is_clean = is_clean && !contents.queue.has_late_event;
            contents.stage = Stage::Stopped;
        }
        drop(contents);
        self.inbox.notify();
        self.wait_for_progress(WorkerProgress::Stopped, deadline)
    }

    fn wait_for_progress(&self, progress: WorkerProgress, deadline: Instant) -> bool {
        self.inbox.wait_until(Some(deadline), |contents| contents.queue.worker >= progress).1
    }
}
