//! The librarian: a thread that puts messages into the index, behind the deliveries and with what time they leave over. It hears of
//! changes through the intake, reads mail from the store, and asks the store for everything that it may have missed.

use std::collections::HashSet;
use std::sync::{Arc, Weak};
use std::time::Duration;

use restante_mail::message::{MessageId, Source, Summary};
use restante_mail::mime::Mime;
use restante_mail::naming::MailboxName;
use restante_mailroom::{Mailroom, StoreError, Which};
use rusqlite::Error;
use tokio::runtime::Handle;

use crate::catch_up::CatchUp;
use crate::index::{Changes, Entry, Index, is_damage};
use crate::intake::{Batch, Intake, Missed, News};
use crate::shelf::Shelf;

/// How many changes are made at once.
const BATCH: usize = 512;
/// How many bytes of texts are written at once.
const BATCH_BYTES: usize = 4 << 20;
/// How long changes are gathered when nobody waits for them: one large step costs much less than many small ones.
const GATHER: Duration = Duration::from_millis(250);
/// How long it is waited after a failure.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long it is waited before a damaged index is made again.
const MOMENT: Duration = Duration::from_millis(100);

/// See the file's documentation.
pub(crate) struct Librarian {
    intake: Arc<Intake>,
    shelf: Arc<Shelf>,
    /// Those who ask the mailroom hold it for the moment only, so that it can go when the server ends.
    mailroom: Weak<Mailroom>,
    runtime: Handle,
    catch_up: Option<CatchUp>,
    /// Whether a message could not be read, so that the index is not all that it should be.
    has_gap: bool,
    /// Whether the operator was told that something is wrong.
    was_told: bool,
}

/// Why something could not be done.
pub(crate) enum Trouble {
    /// The index.
    Index(Error),
    /// The store.
    Store(StoreError),
    /// The disk is as good as full.
    NoRoom,
    /// The server ends, and there is no mailroom any more.
    Ended,
}

impl Trouble {
    fn is_damage(&self) -> bool {
        matches!(self, Self::Index(error) if is_damage(error))
    }
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Self::Index(error)
    }
}

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl Librarian {
    /// A librarian who is called within a runtime, and works on any thread.
    pub(crate) fn new(intake: Arc<Intake>, shelf: Arc<Shelf>, mailroom: Weak<Mailroom>, runtime: Handle) -> Self {
        Self { intake, shelf, mailroom, runtime, catch_up: None, has_gap: false, was_told: false }
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
        match self.shelf.open() {
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
            let last = self.ask(async |mailroom| mailroom.last_id().await)?;
            self.intake.hear_of(last);
        }
        self.take_in(batch.news)?;
        if let Some(mut catch_up) = self.catch_up.take()
            && !catch_up.step(self)?
        {
            self.catch_up = Some(catch_up);
        }
        Ok(())
    }

    fn make_again(&self) -> Result<(), Trouble> {
        if let Some(index) = self.shelf.take() {
            tracing::warn!("the search index is damaged and is made again");
            index.discard();
        }
        self.shelf.open()?;
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
            let Some(summary) = self.find(&mailbox, id)? else { continue };
            self.add(summary, &mut changes.added, &mut bytes)?;
        }
        self.write(changes)
    }

    /// Puts messages into the index that it does not have.
    pub(crate) fn add_all(&mut self, summaries: Vec<Summary>) -> Result<(), Trouble> {
        let (mut added, mut bytes) = (Vec::new(), 0);
        for summary in summaries {
            self.add(summary, &mut added, &mut bytes)?;
        }
        self.write(Changes { added, ..Changes::default() })
    }

    /// Adds a message to those that are written next, and writes them when they are many.
    fn add(&mut self, summary: Summary, added: &mut Vec<Entry>, bytes: &mut usize) -> Result<(), Trouble> {
        let Some(source) = self.source(&summary)? else { return Ok(()) };
        let entry = Entry::new(summary, &Mime::parse(source.to_bytes()));
        *bytes += entry.bytes();
        added.push(entry);
        if *bytes > BATCH_BYTES {
            *bytes = 0;
            self.write(Changes { added: std::mem::take(added), ..Changes::default() })?;
        }
        Ok(())
    }

    /// Changes the index.
    pub(crate) fn write(&self, changes: Changes) -> Result<(), Trouble> {
        if changes.is_empty() {
            return Ok(());
        }
        if !self.shelf.has_room() {
            return Err(Trouble::NoRoom);
        }
        self.with_index(|index| index.write(changes))
    }

    /// Does something with the index.
    pub(crate) fn with_index<T>(&self, work: impl FnOnce(&mut Index) -> rusqlite::Result<T>) -> Result<T, Trouble> {
        Ok(self.shelf.with(work).ok_or(Trouble::Ended)??)
    }

    /// Asks the mailroom something.
    pub(crate) fn ask<T>(&self, question: impl AsyncFnOnce(&Mailroom) -> Result<T, StoreError>) -> Result<T, Trouble> {
        let mailroom = self.mailroom.upgrade().ok_or(Trouble::Ended)?;
        Ok(self.runtime.block_on(question(&mailroom))?)
    }

    /// A message's summary as it is now, if it is still there.
    pub(crate) fn find(&self, mailbox: &MailboxName, id: MessageId) -> Result<Option<Summary>, Trouble> {
        self.ask(async |mailroom| mailroom.find(mailbox, Which::Id(id)).await)
    }

    /// A message's source, if it is still there. One that cannot be read is left out.
    fn source(&mut self, summary: &Summary) -> Result<Option<Source>, Trouble> {
        match self.ask(async |mailroom| mailroom.source(&summary.mailbox, summary.id).await) {
            Err(Trouble::Store(error @ StoreError::Broken(_))) => {
                tracing::warn!(%error, mailbox = %summary.mailbox, id = %summary.id, "a message cannot be searched");
                self.has_gap = true;
                Ok(None)
            }
            source => source,
        }
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
        let is_lost = trouble.is_damage() || self.shelf.is_empty();
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
            && !self.has_gap;
        let Some(index) = self.shelf.take() else { return };
        if !is_whole || !self.shelf.is_lasting() {
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
