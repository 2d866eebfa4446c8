//! The worker thread between the inbox and the target queues. It writes new events to the outbox, passes them to the
//! queues, and removes finished events from the outbox. All events of one inbox batch go into one transaction. Nothing
//! is written before the server is serving.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use tokio::sync::oneshot;

use crate::Event;
use crate::inbox::{Batch, EventInbox, InboxEvent};
use crate::outbox::{Backlog, Changes, MAX_PROCESSED, Missed};
use crate::outbox_file::OutboxFile;
use crate::payload::Payload;
use crate::retry_schedule::QueuedEvent;
use crate::target_queue::TargetQueue;

/// The state of the worker thread.
pub(crate) struct PersistWorker {
    queues: Vec<Arc<TargetQueue>>,
    inbox: Arc<EventInbox>,
    /// `None` if events are kept in memory only.
    outbox_file: Option<OutboxFile>,
    settings: PersistSettings,
    /// Sends the gap, if there is one, to [`crate::Webhooks::catch_up`], which searches it.
    gap_sender: Option<oneshot::Sender<Gap>>,
    /// The last id that was assigned before the server started serving. `None` until then.
    last_id_before_start: Option<u64>,
    /// Whether messages up to `last_id_before_start` may exist for which no event was recorded.
    has_gap: bool,
    /// Changes that are not written yet.
    changes: Changes,
    /// The highest message id that the outbox contains.
    persisted_highest_id: u64,
    /// When writing is retried after an error.
    retry_at: Option<Instant>,
    last_row: i64,
    /// Whether a queue has events but could not start a thread.
    lacks_threads: bool,
}

/// The time limits of the worker.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PersistSettings {
    /// How long delivery of an event is retried.
    pub(crate) give_up_after: Duration,
    /// The minimum time for which an event from the outbox is retried, however old it is.
    pub(crate) min_retry_time: Duration,
    /// The delay before a failed write or thread start is retried, and the longest delay until a new highest id is
    /// written.
    pub(crate) retry_interval: Duration,
}

/// A range of message ids in which messages may have been missed.
pub(crate) struct Gap {
    pub(crate) missed: Missed,
    /// The last id of the gap. Later messages are reported by the mailroom.
    pub(crate) end_id: u64,
}

impl PersistWorker {
    pub(crate) fn new(
        queues: Vec<Arc<TargetQueue>>,
        inbox: Arc<EventInbox>,
        outbox_file: Option<OutboxFile>,
        settings: PersistSettings,
        gap_sender: oneshot::Sender<Gap>,
    ) -> Self {
        Self {
            queues,
            inbox,
            outbox_file,
            settings,
            gap_sender: Some(gap_sender),
            last_id_before_start: None,
            has_gap: false,
            changes: Changes::default(),
            persisted_highest_id: 0,
            retry_at: None,
            last_row: 0,
            lacks_threads: false,
        }
    }

    /// Runs until the inbox is stopped.
    pub(crate) fn run(mut self) {
        loop {
            let needs_timeout = self.outbox_file.is_some() || self.lacks_threads;
            let batch = self.inbox.next_batch(needs_timeout.then_some(self.settings.retry_interval));
            let (is_stopping, is_clean) = (batch.is_stopping, batch.is_clean);
            if let Some(last_id) = batch.last_id_before_start {
                self.start(last_id);
            }
            let new_events = self.process_batch(batch);
            if is_stopping {
                // This is the last chance to write, so do not wait for the retry time.
                self.retry_at = None;
            }
            self.persist();
            self.enqueue(new_events);
            if is_stopping {
                return self.shut_down(is_clean);
            }
        }
    }

    /// Starts processing. Called when the server starts serving.
    fn start(&mut self, last_id: u64) {
        self.last_id_before_start = Some(last_id);
        self.persisted_highest_id = last_id;
        match self.outbox_file.as_mut().and_then(OutboxFile::take_backlog) {
            Some(backlog) => self.resume(backlog),
            None if self.outbox_file.is_some() => self.retry_at = Some(Instant::now() + self.settings.retry_interval),
            None => self.gap_sender = None,
        }
    }

    /// Queues the events that were waiting when the process last ended. Sends the gap, if there is one, to the search.
    fn resume(&mut self, Backlog { waiting, missed }: Backlog) {
        let mut new_events = BTreeMap::<usize, Vec<QueuedEvent>>::new();
        for (target, old_row, payload) in waiting {
            if !self.queues[target].reserve_slot() || !self.queues[target].reserve_bytes(&payload) {
                self.changes.finished_rows.push(old_row);
                continue;
            }
            let payload = Arc::new(payload);
            // If the outbox was opened late, its row ids may have been assigned to newer events in the meantime.
            let row_id = old_row.max(self.last_row + 1);
            if row_id != old_row {
                self.changes.finished_rows.push(old_row);
                self.changes.waiting.insert(row_id, (target, payload.clone()));
            }
            self.last_row = row_id;
            new_events.entry(target).or_default().push(self.queued_event(
                row_id,
                payload,
                self.settings.min_retry_time,
            ));
        }
        for (target, events) in &new_events {
            let (webhook, events) = (&self.queues[*target].endpoint.label, events.len());
            tracing::info!(webhook, events, "events from the last run wait for a webhook target");
        }
        self.enqueue(new_events);
        let gap_sender = self.gap_sender.take();
        self.has_gap = missed.is_some();
        match missed {
            // If the search was abandoned, the gap remains for the next start.
            Some(missed) => {
                let gap = Gap { missed, end_id: self.last_id_before_start.unwrap_or(0) };
                let _ = gap_sender.map(|gap_sender| gap_sender.send(gap));
            }
            None => self.changes.floor = self.last_id_before_start,
        }
    }

    /// Applies a batch to the pending changes. Returns the new events by target.
    fn process_batch(&mut self, batch: Batch) -> BTreeMap<usize, Vec<QueuedEvent>> {
        self.record_finished(batch.finished_rows);
        let new_events = self.record_events(batch.events);
        if self.has_gap && batch.is_caught_up {
            self.has_gap = false;
            self.changes.floor = self.last_id_before_start;
        }
        new_events
    }

    /// Records that rows are finished. Rows that were never written need no deletion.
    fn record_finished(&mut self, rows: Vec<i64>) {
        if self.outbox_file.is_some() {
            let Changes { waiting, finished_rows, .. } = &mut self.changes;
            finished_rows.extend(rows.into_iter().filter(|row| waiting.remove(row).is_none()));
        }
    }

    /// Adds new events to the pending changes. Returns them by target.
    fn record_events(&mut self, events: Vec<InboxEvent>) -> BTreeMap<usize, Vec<QueuedEvent>> {
        let mut new_events = BTreeMap::<usize, Vec<QueuedEvent>>::new();
        for InboxEvent { event, summary, targets } in events {
            let payload = Arc::new(Payload::new(event, &summary, Timestamp::now()));
            for target in targets {
                if !self.queues[target].reserve_bytes(&payload) {
                    continue;
                }
                self.last_row += 1;
                let queued = self.queued_event(self.last_row, payload.clone(), Duration::ZERO);
                new_events.entry(target).or_default().push(queued);
                if self.outbox_file.is_some() {
                    self.changes.waiting.insert(self.last_row, (target, payload.clone()));
                }
            }
            if self.outbox_file.is_some() && event == Event::Stored {
                self.changes.processed.push((summary.id.number(), summary.mailbox));
            }
        }
        new_events
    }

    fn enqueue(&mut self, mut new_events: BTreeMap<usize, Vec<QueuedEvent>>) {
        if new_events.is_empty() && !self.lacks_threads {
            return;
        }
        self.lacks_threads = false;
        for (target, queue) in self.queues.iter().enumerate() {
            self.lacks_threads |= !queue.push(new_events.remove(&target).unwrap_or_default());
        }
    }

    /// Writes the pending changes. After an error they are kept, within the limits of the queues, and retried later.
    fn persist(&mut self) {
        if self.outbox_file.is_none() || self.last_id_before_start.is_none() {
            return;
        }
        if self.retry_at.is_some_and(|at| at > Instant::now()) {
            let surplus = self.changes.processed.len().saturating_sub(MAX_PROCESSED);
            self.changes.processed.drain(..surplus);
            return;
        }
        let written = self.try_persist();
        self.inbox.set_persisted(written.is_ok());
        match written {
            Ok(()) => {
                if self.retry_at.take().is_some() {
                    tracing::info!("webhook events can be written to disk again");
                }
            }
            Err(error) => {
                if self.retry_at.is_none() {
                    tracing::error!(error, "cannot write webhook events to disk; new events are kept in memory only");
                }
                self.retry_at = Some(Instant::now() + self.settings.retry_interval);
            }
        }
    }

    fn try_persist(&mut self) -> Result<(), String> {
        if let Some(backlog) = self.outbox_file.as_mut().map(OutboxFile::open).transpose()?.flatten() {
            self.resume(backlog);
        }
        let highest = self.inbox.highest_id();
        self.changes.highest = (highest > self.persisted_highest_id && !self.has_gap).then_some(highest);
        if let Some(outbox_file) = &mut self.outbox_file
            && !self.changes.is_empty()
        {
            outbox_file.write(&self.changes)?;
            self.persisted_highest_id = self.changes.highest.unwrap_or(self.persisted_highest_id);
            self.changes = Changes::default();
        }
        Ok(())
    }

    fn shut_down(self, is_clean: bool) {
        if let Some(outbox_file) = self.outbox_file
            && is_clean
            && self.last_id_before_start.is_some()
            && !self.has_gap
            && self.changes.is_empty()
            && let Err(error) = outbox_file.close_clean()
        {
            tracing::error!(error, "cannot close the webhook outbox; the next start searches for missed messages");
        }
        self.inbox.mark_stopped();
    }

    /// Returns a queue entry for an event. Its deadline counts from the time of the event, also across restarts, but
    /// leaves at least `min_retry_time` from now.
    fn queued_event(&self, row: i64, payload: Arc<Payload>, min_retry_time: Duration) -> QueuedEvent {
        let age = Timestamp::now().as_millisecond().saturating_sub(payload.occurred_at_millis);
        let age = Duration::from_millis(u64::try_from(age).unwrap_or(0));
        let deadline = Instant::now() + self.settings.give_up_after.saturating_sub(age).max(min_retry_time);
        QueuedEvent { row_id: row, payload, deadline, failures: 0 }
    }
}
