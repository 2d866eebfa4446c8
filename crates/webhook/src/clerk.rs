//! The one thread between the intake and the lanes: it writes down what waits, lets it wait, and crosses out what is done
//! with. Whatever lies in the box goes into one transaction. Nothing is written before the server serves.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use tokio::sync::oneshot;

use crate::Event;
use crate::intake::{Batch, Intake, News};
use crate::lane::Lane;
use crate::line::Item;
use crate::notice::Notice;
use crate::outbox::{Changes, MAX_TAKEN, Missed, Past};
use crate::shelf::Shelf;

/// See the file's documentation.
pub(crate) struct Clerk {
    lanes: Vec<Arc<Lane>>,
    intake: Arc<Intake>,
    /// None when what waits is kept in memory only.
    shelf: Option<Shelf>,
    habits: Habits,
    /// Who looks for what was missed.
    searcher: Option<oneshot::Sender<Gap>>,
    /// The last id that was given before the server served; none as long as it does not.
    beginning: Option<u64>,
    /// Whether there may be messages up to the beginning of which nobody was told.
    has_gap: bool,
    /// What is not yet written.
    changes: Changes,
    /// The highest id that the file knows of.
    highest: u64,
    /// When writing is tried again, after it failed.
    retry: Option<Instant>,
    last_row: i64,
    /// Whether there is a lane without a thread that it needs.
    is_understaffed: bool,
}

/// What the clerk was told.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Habits {
    /// How long it is tried to tell of an event.
    pub(crate) give_up_after: Duration,
    /// How long what waited in the outbox is tried at least, however old it is.
    pub(crate) grace: Duration,
    /// How long something that failed is left alone, and how long it may take until the outbox knows what happened.
    pub(crate) patience: Duration,
}

/// Ids of messages of which nobody may have been told.
pub(crate) struct Gap {
    pub(crate) missed: Missed,
    /// Where it ends: later messages are heard of.
    pub(crate) end: u64,
}

impl Clerk {
    pub(crate) fn new(
        lanes: Vec<Arc<Lane>>,
        intake: Arc<Intake>,
        shelf: Option<Shelf>,
        habits: Habits,
        searcher: oneshot::Sender<Gap>,
    ) -> Self {
        Self {
            lanes,
            intake,
            shelf,
            habits,
            searcher: Some(searcher),
            beginning: None,
            has_gap: false,
            changes: Changes::default(),
            highest: 0,
            retry: None,
            last_row: 0,
            is_understaffed: false,
        }
    }

    /// Works until it is told to leave.
    pub(crate) fn run(mut self) {
        loop {
            let is_restless = self.shelf.is_some() || self.is_understaffed;
            let batch = self.intake.next(is_restless.then_some(self.habits.patience));
            let (is_over, is_clean) = (batch.is_over, batch.is_clean);
            if let Some(beginning) = batch.beginning {
                self.begin(beginning);
            }
            let lines = self.work_off(batch);
            if is_over {
                // The last chance to write.
                self.retry = None;
            }
            self.write();
            self.push(lines);
            if is_over {
                return self.leave(is_clean);
            }
        }
    }

    /// The server serves from now on.
    fn begin(&mut self, beginning: u64) {
        self.beginning = Some(beginning);
        self.highest = beginning;
        match self.shelf.as_mut().and_then(Shelf::past) {
            Some(past) => self.resume(past),
            None if self.shelf.is_some() => self.retry = Some(Instant::now() + self.habits.patience),
            None => self.searcher = None,
        }
    }

    /// Lets wait what waited when the process ended last.
    fn resume(&mut self, Past { waiting, missed }: Past) {
        let mut lines = BTreeMap::<usize, Vec<Item>>::new();
        for (lane, row, notice) in waiting {
            if !self.lanes[lane].take_place() || !self.lanes[lane].fill_place(&notice) {
                self.changes.settled.push(row);
                continue;
            }
            let notice = Arc::new(notice);
            // A file that was opened late may have numbers that were given meanwhile.
            let number = row.max(self.last_row + 1);
            if number != row {
                self.changes.settled.push(row);
                self.changes.waiting.insert(number, (lane, notice.clone()));
            }
            self.last_row = number;
            lines.entry(lane).or_default().push(self.item(number, notice, self.habits.grace));
        }
        for (lane, items) in &lines {
            let (webhook, events) = (&self.lanes[*lane].place.label, items.len());
            tracing::info!(webhook, events, "events still wait for a webhook");
        }
        self.push(lines);
        let searcher = self.searcher.take();
        self.has_gap = missed.is_some();
        match missed {
            // The search may have been given up already; then the gap stays for the next start.
            Some(missed) => {
                let gap = Gap { missed, end: self.beginning.unwrap_or(0) };
                let _ = searcher.map(|searcher| searcher.send(gap));
            }
            None => self.changes.floor = self.beginning,
        }
    }

    /// Takes into account what has happened, and says who is told of what.
    fn work_off(&mut self, batch: Batch) -> BTreeMap<usize, Vec<Item>> {
        self.cross_out(batch.settled);
        let lines = self.note(batch.news);
        if self.has_gap && batch.is_caught_up {
            self.has_gap = false;
            self.changes.floor = self.beginning;
        }
        lines
    }

    /// Rows that were never written need not be crossed out.
    fn cross_out(&mut self, settled: Vec<i64>) {
        if self.shelf.is_some() {
            let Changes { waiting, settled: all, .. } = &mut self.changes;
            all.extend(settled.into_iter().filter(|row| waiting.remove(row).is_none()));
        }
    }

    /// Notes events for the outbox and the lanes.
    fn note(&mut self, news: Vec<News>) -> BTreeMap<usize, Vec<Item>> {
        let mut lines = BTreeMap::<usize, Vec<Item>>::new();
        for News { event, summary, lanes } in news {
            let notice = Arc::new(Notice::new(event, &summary, Timestamp::now()));
            for lane in lanes {
                if !self.lanes[lane].fill_place(&notice) {
                    continue;
                }
                self.last_row += 1;
                let item = self.item(self.last_row, notice.clone(), Duration::ZERO);
                lines.entry(lane).or_default().push(item);
                if self.shelf.is_some() {
                    self.changes.waiting.insert(self.last_row, (lane, notice.clone()));
                }
            }
            if self.shelf.is_some() && event == Event::Stored {
                self.changes.taken.push((summary.id.number(), summary.mailbox));
            }
        }
        lines
    }

    fn push(&mut self, mut lines: BTreeMap<usize, Vec<Item>>) {
        if lines.is_empty() && !self.is_understaffed {
            return;
        }
        self.is_understaffed = false;
        for (number, lane) in self.lanes.iter().enumerate() {
            self.is_understaffed |= !lane.push(lines.remove(&number).unwrap_or_default());
        }
    }

    /// Writes what there is to write. What cannot be written stays, within the bound on what waits, and is tried again.
    fn write(&mut self) {
        if self.shelf.is_none() || self.beginning.is_none() {
            return;
        }
        if self.retry.is_some_and(|at| at > Instant::now()) {
            let excess = self.changes.taken.len().saturating_sub(MAX_TAKEN);
            self.changes.taken.drain(..excess);
            return;
        }
        let written = self.try_write();
        self.intake.set_kept(written.is_ok());
        match written {
            Ok(()) => {
                if self.retry.take().is_some() {
                    tracing::info!("the events that wait for webhooks can be written down again");
                }
            }
            Err(problem) => {
                if self.retry.is_none() {
                    tracing::error!(
                        problem,
                        "the events that wait for webhooks cannot be written down; new ones are in memory only"
                    );
                }
                self.retry = Some(Instant::now() + self.habits.patience);
            }
        }
    }

    fn try_write(&mut self) -> Result<(), String> {
        if let Some(past) = self.shelf.as_mut().map(Shelf::open).transpose()?.flatten() {
            self.resume(past);
        }
        let highest = self.intake.highest();
        self.changes.highest = (highest > self.highest && !self.has_gap).then_some(highest);
        if let Some(shelf) = &mut self.shelf
            && !self.changes.is_empty()
        {
            shelf.write(&self.changes)?;
            self.highest = self.changes.highest.unwrap_or(self.highest);
            self.changes = Changes::default();
        }
        Ok(())
    }

    fn leave(self, clean: bool) {
        if let Some(shelf) = self.shelf
            && clean
            && self.beginning.is_some()
            && !self.has_gap
            && self.changes.is_empty()
            && let Err(problem) = shelf.close_clean()
        {
            tracing::error!(problem, "the file of events that wait for webhooks was not closed in good order");
        }
        self.intake.leave();
    }

    /// An event is given up some time after it happened, whether this process was there all the time or not, but not before
    /// it had its chance.
    fn item(&self, row: i64, notice: Arc<Notice>, grace: Duration) -> Item {
        let age = Timestamp::now().as_millisecond().saturating_sub(notice.since);
        let age = Duration::from_millis(u64::try_from(age).unwrap_or(0));
        let deadline = Instant::now() + self.habits.give_up_after.saturating_sub(age).max(grace);
        Item { row, notice, deadline, failures: 0 }
    }
}
