//! The one thread between the intake and the lanes: it writes down what waits, lets it wait, and crosses out what is done
//! with. Whatever lies in the box goes into one transaction. Nothing is written before the server serves.

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

/// See the file's documentation.
pub(crate) struct PersistWorker {
    queues: Vec<Arc<TargetQueue>>,
    inbox: Arc<EventInbox>,
    /// None when what waits is kept in memory only.
    outbox_file: Option<OutboxFile>,
    settings: PersistSettings,
    /// Who looks for what was missed.
    gap_sender: Option<oneshot::Sender<Gap>>,
    /// The last id that was given before the server served; none as long as it does not.
    last_id_before_start: Option<u64>,
    /// Whether there may be messages up to the beginning of which nobody was told.
    has_gap: bool,
    /// What is not yet written.
    changes: Changes,
    /// The highest id that the file knows of.
    persisted_highest_id: u64,
    /// When writing is tried again, after it failed.
    retry_at: Option<Instant>,
    last_row: i64,
    /// Whether there is a lane without a thread that it needs.
    lacks_threads: bool,
}

/// What the clerk was told.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PersistSettings {
    /// How long it is tried to tell of an event.
    pub(crate) give_up_after: Duration,
    /// How long what waited in the outbox is tried at least, however old it is.
    pub(crate) min_retry_time: Duration,
    /// How long something that failed is left alone, and how long it may take until the outbox knows what happened.
    pub(crate) retry_interval: Duration,
}

/// Ids of messages of which nobody may have been told.
pub(crate) struct Gap {
    pub(crate) missed: Missed,
    /// Where it ends: later messages are heard of.
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

    /// Works until it is told to leave.
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
                // The last chance to write.
                self.retry_at = None;
            }
            self.persist();
            self.enqueue(lines);
            if is_over {
                return self.shut_down(is_clean);
            }
        }
    }

    /// The server serves from now on.
    fn start(&mut self, beginning: u64) {
        self.last_id_before_start = Some(beginning);
        self.persisted_highest_id = beginning;
        match self.outbox_file.as_mut().and_then(OutboxFile::take_backlog) {
            Some(past) => self.resume(past),
            None if self.outbox_file.is_some() => self.retry_at = Some(Instant::now() + self.settings.retry_interval),
            None => self.gap_sender = None,
        }
    }

    /// Lets wait what waited when the process ended last.
    fn resume(&mut self, Backlog { waiting, missed }: Backlog) {
        let mut lines = BTreeMap::<usize, Vec<QueuedEvent>>::new();
        for (lane, row, notice) in waiting {
            if !self.queues[lane].reserve_slot() || !self.queues[lane].reserve_bytes(&notice) {
                self.changes.finished_rows.push(row);
                continue;
            }
            let notice = Arc::new(notice);
            // A file that was opened late may have numbers that were given meanwhile.
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
            // The search may have been given up already; then the gap stays for the next start.
            Some(missed) => {
                let gap = Gap { missed, end_id: self.last_id_before_start.unwrap_or(0) };
                let _ = searcher.map(|searcher| searcher.send(gap));
            }
            None => self.changes.floor = self.last_id_before_start,
        }
    }

    /// Takes into account what has happened, and says who is told of what.
    fn process_batch(&mut self, batch: Batch) -> BTreeMap<usize, Vec<QueuedEvent>> {
        self.record_finished(batch.finished_rows);
        let lines = self.record_events(batch.events);
        if self.has_gap && batch.is_caught_up {
            self.has_gap = false;
            self.changes.floor = self.last_id_before_start;
        }
        lines
    }

    /// Rows that were never written need not be crossed out.
    fn record_finished(&mut self, settled: Vec<i64>) {
        if self.outbox_file.is_some() {
            let Changes { waiting, finished_rows: all, .. } = &mut self.changes;
            all.extend(settled.into_iter().filter(|row| waiting.remove(row).is_none()));
        }
    }

    /// Notes events for the outbox and the lanes.
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

    /// Writes what there is to write. What cannot be written stays, within the bound on what waits, and is tried again.
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

    /// An event is given up some time after it happened, whether this process was there all the time or not, but not before
    /// it had its chance.
    fn queued_event(&self, row: i64, notice: Arc<Payload>, grace: Duration) -> QueuedEvent {
        let age = Timestamp::now().as_millisecond().saturating_sub(notice.occurred_at_millis);
        let age = Duration::from_millis(u64::try_from(age).unwrap_or(0));
        let deadline = Instant::now() + self.settings.give_up_after.saturating_sub(age).max(grace);
        QueuedEvent { row_id: row, payload: notice, deadline, failures: 0 }
    }
}
