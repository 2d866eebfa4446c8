//! The librarian: a thread that puts messages into the index, behind the deliveries and with what time they leave over. It hears of
//! changes through the intake, reads mail from the store, and asks the store for everything that it may have missed.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use restante_mail::message::MessageId;

use crate::catch_up::CatchUp;
use crate::filing::{Filing, Trouble};
use crate::index::{Changes, is_damage};
use crate::intake::{Batch, Intake, Missed, News};

/// How many changes are made at once.
const BATCH: usize = 512;
/// How long changes are gathered when nobody waits for them: one large step costs much less than many small ones.
const GATHER: Duration = Duration::from_millis(250);
/// How long it is waited after a failure.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long it is waited before a damaged index is made again.
const MOMENT: Duration = Duration::from_millis(100);

/// See the file's documentation.
pub(crate) struct Librarian {
    intake: Arc<Intake>,
    filing: Filing,
    catch_up: Option<CatchUp>,
    /// Whether the operator was told that something is wrong.
    was_told: bool,
}

impl Librarian {
    /// A librarian, who works on any thread.
    pub(crate) fn new(intake: Arc<Intake>, filing: Filing) -> Self {
        Self { intake, filing, catch_up: None, was_told: false }
    }

    /// Works until the intake is closed.
    pub(crate) fn run(mut self) {
        step_back();
        while !self.open() {
            if self.intake.pause(PATIENCE) {
                return;
            }
        }
        loop {
            let batch = self.intake.next(BATCH, GATHER, self.catch_up.is_some());
            if batch.is_over {
                return self.leave(&batch);
            }
            let count = batch.news.len();
            match self.work(batch) {
                Ok(()) => {
                    self.was_told = false;
                    self.intake.done(count, self.catch_up.is_none());
                }
                Err(Trouble::Ended) => return,
                Err(trouble) => {
                    self.look_again_after(&trouble);
                    self.intake.done(count, false);
                    if self.intake.pause(if trouble.is_damage() { MOMENT } else { PATIENCE }) {
                        return;
                    }
                }
            }
        }
    }

    /// Opens the index, and finds out what it lacks.
    fn open(&mut self) -> bool {
        match self.filing.shelf.open() {
            Ok(Some(through)) => {
                self.intake.hear_of(through);
                self.intake.miss(Missed::Above(through));
            }
            Ok(None) => self.intake.miss(Missed::Anything),
            Err(error) => {
                self.tell(&error);
                return false;
            }
        }
        true
    }

    fn work(&mut self, batch: Batch) -> Result<(), Trouble> {
        if let Some(missed) = batch.missed {
            if missed == Missed::Index {
                self.make_again()?;
            }
            self.catch_up = Some(match (missed, self.catch_up.take()) {
                (Missed::Above(id), None) => CatchUp::above(id),
                _ => CatchUp::with_everything(),
            });
            // What is stored from now on is heard of.
            let last = self.filing.ask(async |mailroom| mailroom.last_id().await)?;
            self.intake.hear_of(last);
        }
        self.take_in(batch.news)?;
        if let Some(mut catch_up) = self.catch_up.take()
            && !catch_up.step(&mut self.filing)?
        {
            self.catch_up = Some(catch_up);
        }
        Ok(())
    }

    fn make_again(&self) -> Result<(), Trouble> {
        if let Some(index) = self.filing.shelf.take() {
            tracing::warn!("the search index is damaged and is made again");
            index.discard();
        }
        self.filing.shelf.open()?;
        Ok(())
    }

    fn take_in(&mut self, news: Vec<News>) -> Result<(), Trouble> {
        let mut changes = Changes::default();
        let mut stored = Vec::new();
        for news in news {
            match news {
                News::Stored(mailbox, id) => stored.push((mailbox, id)),
                News::Seen(id, seen) => changes.seen.push((id, seen)),
                News::Deleted(id) => changes.removed.push(id),
            }
        }
        let gone: HashSet<MessageId> = changes.removed.iter().copied().collect();
        let mut bytes = 0;
        for (mailbox, id) in stored {
            if gone.contains(&id) {
                continue;
            }
            let Some(summary) = self.filing.find(&mailbox, id)? else { continue };
            self.filing.add(summary, &mut changes.added, &mut bytes)?;
        }
        self.filing.write(changes)
    }

    /// After a failure, everything is looked at again, or the index is made again.
    fn look_again_after(&mut self, trouble: &Trouble) {
        self.catch_up = None;
        match trouble {
            Trouble::Index(error) if !is_damage(error) => self.tell(error),
            Trouble::Store(error) => self.tell(error),
            Trouble::NoRoom => self.tell(&"the little space that is left on the disk is for mail"),
            Trouble::Index(_) | Trouble::Ended => {}
        }
        let is_lost = trouble.is_damage() || self.filing.shelf.is_empty();
        self.intake.miss(if is_lost { Missed::Index } else { Missed::Anything });
    }

    /// Tells the operator once.
    fn tell(&mut self, error: &dyn std::fmt::Display) {
        if !std::mem::replace(&mut self.was_told, true) {
            tracing::error!(%error, "messages cannot be put into the search index; it is tried again");
        }
    }

    fn leave(self, batch: &Batch) {
        let is_whole = batch.is_clean
            && batch.news.is_empty()
            && batch.missed.is_none()
            && self.catch_up.is_none()
            && !self.filing.has_gap;
        let Some(index) = self.filing.shelf.take() else { return };
        if !is_whole || !self.filing.shelf.is_lasting() {
            return;
        }
        if let Err(error) = index.close(self.intake.highest()) {
            tracing::warn!(%error, "the search index was not closed in good order");
        }
    }
}

/// Leaves the processors to those who bring mail or ask for it.
fn step_back() {
    const NICEST: i32 = 19;
    if let Err(error) = rustix::process::setpriority_process(Some(rustix::thread::gettid()), NICEST) {
        tracing::debug!(%error, "the search index is filled at the usual priority");
    }
}
