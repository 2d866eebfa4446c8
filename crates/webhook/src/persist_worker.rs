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
    /// Receives the gap, if there is one, so that [`crate::Webhooks::catch_up`] can search it.
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
        lanes: Vec<Arc<TargetQueue>>,
        intake: Arc<EventInbox>,
        shelf: Option<OutboxFile>,
        habits: PersistSettings,
        searcher: oneshot::Sender<Gap>,
    ) -> Self {
        Self {
            queues: lanes,
            inbox: intake,
            outbox_file: shelf,
            settings: habits,
            gap_sender: Some(searcher),
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
            let is_restless = self.outbox_file.is_some() || self.lacks_threads;
            let batch = self.inbox.next_batch(is_restless.then_some(self.settings.retry_interval));
            let (is_over, is_clean) = (batch.is_stopping, batch.is_clean);
            if let Some(beginning) = batch.last_id_before_start {
                self.start(beginning);
            }
            let lines = self.process_batch(batch);
            if is_over {
                // This is the last chance to write, so do not wait for the retry time.
                self.retry_at = None;
            }
            self.persist();
            self.enqueue(lines);
            if is_over {
                return self.shut_down(is_clean);
            }
        }
    }

    /// Starts processing. Called when the server starts serving.
    fn start(&mut self, beginning: u64) {
        self.last_id_before_start = Some(beginning);
        self.persisted_highest_id = beginning;
        match self.outbox_file.as_mut().and_then(OutboxFile::take_backlog) {
            Some(past) => self.resume(past),
            None if self.outbox_file.is_some() => self.retry_at = Some(Instant::now() + self.settings.retry_interval),
            None => self.gap_sender = None,
        }
    }

    /// Queues the events that were waiting when the process last ended.
    fn resume(&mut self, Backlog { waiting, missed }: Backlog) {
        let mut lines = BTreeMap::<usize, Vec<QueuedEvent>>::new();
        for (lane, row, notice) in waiting {
            if !self.queues[lane].reserve_slot() || !self.queues[lane].reserve_bytes(&notice) {
                self.changes.finished_rows.push(row);
                continue;
            }
            let notice = Arc::new(notice);
            // If the outbox was opened late, its row ids may have been assigned to newer events in the meantime.
            let number = row.max(self.last_row + 1);
            if number != row {
                self.changes.finished_rows.push(row);
                self.changes.waiting.insert(number, (lane, notice.clone()));
            }
            self.last_row = number;
            lines.entry(lane).or_default().push(self.queued_event(number, notice, self.settings.min_retry_time));
        }
        for (lane, items) in &lines {
            let (webhook, events) = (&self.queues[*lane].endpoint.label, items.len());
            tracing::info!(webhook, events, "events still wait for a webhook");
        }
        self.enqueue(lines);
        let searcher = self.gap_sender.take();
        self.has_gap = missed.is_some();
        match missed {
            // If the search was abandoned, the gap remains for the next start.
            Some(missed) => {
                let gap = Gap { missed, end_id: self.last_id_before_start.unwrap_or(0) };
                let _ = searcher.map(|searcher| searcher.send(gap));
            }
            None => self.changes.floor = self.last_id_before_start,
        }
    }

    /// Applies a batch to the pending changes. Returns the new events by target.
    fn process_batch(&mut self, batch: Batch) -> BTreeMap<usize, Vec<QueuedEvent>> {
        self.record_finished(batch.finished_rows);
        let lines = self.record_events(batch.events);
        if self.has_gap && batch.is_caught_up {
            self.has_gap = false;
            self.changes.floor = self.last_id_before_start;
        }
        lines
    }

    /// Records that rows are finished. Rows that were never written need no deletion.
    fn record_finished(&mut self, settled: Vec<i64>) {
        if self.outbox_file.is_some() {
            let Changes { waiting, finished_rows: all, .. } = &mut self.changes;
            all.extend(settled.into_iter().filter(|row| waiting.remove(row).is_none()));
        }
    }

    /// Adds new events to the pending changes. Returns them by target.
    fn record_events(&mut self, news: Vec<InboxEvent>) -> BTreeMap<usize, Vec<QueuedEvent>> {
        let mut lines = BTreeMap::<usize, Vec<QueuedEvent>>::new();
        for InboxEvent { event, summary, targets: lanes } in news {
            let notice = Arc::new(Payload::new(event, &summary, Timestamp::now()));
            for lane in lanes {
                if !self.queues[lane].reserve_bytes(&notice) {
                    continue;
                }
                self.last_row += 1;
                let item = self.queued_event(self.last_row, notice.clone(), Duration::ZERO);
                lines.entry(lane).or_default().push(item);
                if self.outbox_file.is_some() {
                    self.changes.waiting.insert(self.last_row, (lane, notice.clone()));
                }
            }
            if self.outbox_file.is_some() && event == Event::Stored {
                self.changes.processed.push((summary.id.number(), summary.mailbox));
            }
        }
        lines
    }

    fn enqueue(&mut self, mut lines: BTreeMap<usize, Vec<QueuedEvent>>) {
        if lines.is_empty() && !self.lacks_threads {
            return;
        }
        self.lacks_threads = false;
        for (number, lane) in self.queues.iter().enumerate() {
            self.lacks_threads |= !lane.push(lines.remove(&number).unwrap_or_default());
        }
    }

    /// Writes the pending changes. After an error they are kept, within the limits of the queues, and retried later.
    fn persist(&mut self) {
        if self.outbox_file.is_none() || self.last_id_before_start.is_none() {
            return;
        }
        if self.retry_at.is_some_and(|at| at > Instant::now()) {
            let excess = self.changes.processed.len().saturating_sub(MAX_PROCESSED);
            self.changes.processed.drain(..excess);
            return;
        }
        let written = self.try_persist();
        self.inbox.set_persisted(written.is_ok());
        match written {
            Ok(()) => {
                if self.retry_at.take().is_some() {
                    tracing::info!("the events that wait for webhooks can be written down again");
                }
            }
            Err(problem) => {
                if self.retry_at.is_none() {
                    tracing::error!(
                        problem,
                        "the events that wait for webhooks cannot be written down; new ones are in memory only"
                    );
                }
                self.retry_at = Some(Instant::now() + self.settings.retry_interval);
            }
        }
    }

    fn try_persist(&mut self) -> Result<(), String> {
        if let Some(past) = self.outbox_file.as_mut().map(OutboxFile::open).transpose()?.flatten() {
            self.resume(past);
        }
        let highest = self.inbox.highest_id();
        self.changes.highest = (highest > self.persisted_highest_id && !self.has_gap).then_some(highest);
        if let Some(shelf) = &mut self.outbox_file
            && !self.changes.is_empty()
        {
            shelf.write(&self.changes)?;
            self.persisted_highest_id = self.changes.highest.unwrap_or(self.persisted_highest_id);
            self.changes = Changes::default();
        }
        Ok(())
    }

    fn shut_down(self, clean: bool) {
        if let Some(shelf) = self.outbox_file
            && clean
            && self.last_id_before_start.is_some()
            && !self.has_gap
            && self.changes.is_empty()
            && let Err(problem) = shelf.close_clean()
        {
            tracing::error!(problem, "the file of events that wait for webhooks was not closed in good order");
        }
        self.inbox.mark_stopped();
    }

    /// Returns a queue entry for an event. Its deadline counts from the time of the event, also across restarts, but
    /// leaves at least `min_retry_time` from now.
    fn queued_event(&self, row: i64, notice: Arc<Payload>, grace: Duration) -> QueuedEvent {
        let age = Timestamp::now().as_millisecond().saturating_sub(notice.occurred_at_millis);
        let age = Duration::from_millis(u64::try_from(age).unwrap_or(0));
        let deadline = Instant::now() + self.settings.give_up_after.saturating_sub(age).max(grace);
        QueuedEvent { row_id: row, payload: notice, deadline, failures: 0 }
    }
}
