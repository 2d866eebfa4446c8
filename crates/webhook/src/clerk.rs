//! The one thread between the intake and the lanes: it writes down what waits, lets it wait, and crosses out what is done
//! with. Whatever lies in the box goes into one transaction.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use restante_mail::message::Summary;

use crate::Event;
use crate::intake::{Batch, Intake, News, Stage};
use crate::lane::Lane;
use crate::line::Item;
use crate::notice::Notice;
use crate::outbox::{Changes, MAX_TAKEN, Outbox, Past};

/// See the file's documentation.
pub(crate) struct Clerk {
    lanes: Vec<Arc<Lane>>,
    intake: Arc<Intake>,
    /// None when what waits is kept in memory only.
    outbox: Option<Outbox>,
    habits: Habits,
    /// What is not yet written.
    changes: Changes,
    /// When writing is tried again, after it failed.
    retry: Option<Instant>,
    last_row: i64,
}

/// What the clerk was told.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Habits {
    /// Writes a summary record.
    pub(crate) render: fn(&Summary) -> String,
    /// How long it is tried to tell of an event.
    pub(crate) give_up_after: Duration,
    /// How long an outbox that cannot be written to is left alone.
    pub(crate) patience: Duration,
}

impl Clerk {
    pub(crate) fn new(lanes: Vec<Arc<Lane>>, intake: Arc<Intake>, outbox: Option<Outbox>, habits: Habits) -> Self {
        Self { lanes, intake, outbox, habits, changes: Changes::default(), retry: None, last_row: 0 }
    }

    /// Lets wait what waited when the process ended last.
    pub(crate) fn resume(&mut self, past: Past) {
        let mut lines = BTreeMap::<usize, Vec<Item>>::new();
        for (lane, row, notice) in past.waiting {
            self.last_row = self.last_row.max(row);
            if self.lanes[lane].reserve(&notice) {
                let item = self.item(row, Arc::new(notice));
                lines.entry(lane).or_default().push(item);
            } else {
                self.changes.settled.push(row);
            }
        }
        for (lane, items) in lines {
            tracing::info!(
                webhook = self.lanes[lane].place.label,
                events = items.len(),
                "events still wait for a webhook"
            );
            self.lanes[lane].push(items);
        }
    }

    /// Works until it is told to leave.
    pub(crate) fn run(mut self) {
        loop {
            let wait = self.retry.map(|at| at.saturating_duration_since(Instant::now()));
            let Batch { news, settled, stage } = self.intake.next(wait);
            self.cross_out(settled);
            let lines = self.note(news);
            if matches!(stage, Stage::Over { .. }) {
                // The last chance to write.
                self.retry = None;
            }
            self.write();
            for (lane, items) in lines {
                self.lanes[lane].push(items);
            }
            if let Stage::Over { clean } = stage {
                return self.leave(clean);
            }
        }
    }

    /// Rows that were never written need not be crossed out.
    fn cross_out(&mut self, settled: Vec<i64>) {
        if self.outbox.is_some() {
            let Changes { waiting, settled: all, .. } = &mut self.changes;
            all.extend(settled.into_iter().filter(|row| waiting.remove(row).is_none()));
        }
    }

    /// Finds out who is told of what, and notes it for the outbox.
    fn note(&mut self, news: Vec<News>) -> BTreeMap<usize, Vec<Item>> {
        let mut lines = BTreeMap::<usize, Vec<Item>>::new();
        for News { event, summary, is_late } in news {
            let notice = Arc::new(Notice::new(event, &summary, self.habits.render, Timestamp::now()));
            for lane in 0..self.lanes.len() {
                let target = &self.lanes[lane];
                let is_meant = target.wants(event, summary.mailbox.as_str()) && !(is_late && target.is_new);
                if !is_meant || !target.reserve(&notice) {
                    continue;
                }
                self.last_row += 1;
                lines.entry(lane).or_default().push(self.item(self.last_row, notice.clone()));
                if self.outbox.is_some() {
                    self.changes.waiting.insert(self.last_row, (lane, notice.clone()));
                }
            }
            if self.outbox.is_some() && event == Event::Stored {
                self.changes.taken.push((summary.id.number(), summary.mailbox));
            }
        }
        lines
    }

    /// Writes what there is to write. What cannot be written stays, within the bound on what waits, and is tried again.
    fn write(&mut self) {
        let Some(outbox) = &mut self.outbox else { return };
        if self.changes.is_empty() {
            self.retry = None;
            return;
        }
        if self.retry.is_some_and(|at| at > Instant::now()) {
            let excess = self.changes.taken.len().saturating_sub(MAX_TAKEN);
            self.changes.taken.drain(..excess);
            return;
        }
        self.changes.highest = self.intake.highest();
        match outbox.write(&self.changes) {
            Ok(()) => {
                self.changes = Changes::default();
                if self.retry.take().is_some() {
                    tracing::info!("the events that wait for webhooks can be written down again");
                }
            }
            Err(error) => {
                if self.retry.is_none() {
                    tracing::error!(%error, "the events that wait for webhooks cannot be written down; new ones are in memory only");
                }
                self.retry = Some(Instant::now() + self.habits.patience);
            }
        }
    }

    fn leave(self, clean: bool) {
        if let Some(outbox) = self.outbox
            && clean
            && self.changes.is_empty()
            && let Err(error) = outbox.close_clean()
        {
            tracing::error!(%error, "the file of events that wait for webhooks was not closed in good order");
        }
        self.intake.leave();
    }

    /// An event is given up some time after it happened, whether this process was there all the time or not.
    fn item(&self, row: i64, notice: Arc<Notice>) -> Item {
        let age = Timestamp::now().as_millisecond().saturating_sub(notice.since);
        let age = Duration::from_millis(u64::try_from(age).unwrap_or(0));
        let deadline = Instant::now() + self.habits.give_up_after.saturating_sub(age);
        Item { row, notice, deadline, failures: 0 }
    }
}
