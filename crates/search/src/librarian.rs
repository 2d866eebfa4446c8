//! The librarian: a thread that puts messages into the index, behind the deliveries and with what time they leave over. It hears of
//! changes through the intake, reads mail from the store, and asks the store for everything that it may have missed.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use restante_mail::message::MessageId;
use restante_worker::lower_priority;

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
    /// How long it is waited after a failure.
    patience: Duration,
    /// Whether the operator was told that something is wrong.
    was_told: bool,
}

impl Librarian {
    /// A librarian, who works on any thread.
    pub(crate) fn new(intake: Arc<Intake>, filing: Filing) -> Self {
        Self { intake, filing, catch_up: None, patience: PATIENCE, was_told: false }
    }

    /// Works until the intake is closed.
    pub(crate) fn run(mut self) {
        if let Err(error) = lower_priority() {
            tracing::debug!(%error, "the search index is filled at the usual priority");
        }
        while !self.open() {
            if self.intake.pause(self.patience) {
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
                    if self.intake.pause(if trouble.is_damage() { MOMENT } else { self.patience }) {
                        return;
                    }
                }
            }
        }
    }

    /// Opens the index, and finds out what it lacks.
    fn open(&mut self) -> bool {
        match self.filing.shelf.open() {
            Ok(Some(through)) if !self.filing.is_shared() => {
                self.intake.hear_of(through);
                self.intake.miss(Missed::Above(through));
            }
            // While this node was away, others may have deleted what is in the index.
            Ok(_) => self.intake.miss(Missed::Anything),
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
                // As it is now. When it changes after that, there are news of it.
                News::Doubted(mailbox, id) => match self.filing.find(&mailbox, id)? {
                    Some(summary) => changes.seen.push((id, summary.seen)),
                    None => changes.removed.push(id),
                },
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
            // What was wrong with the index has been told.
            Trouble::Index(_) | Trouble::NoIndex | Trouble::Ended => {}
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

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Instant;
    use std::{fs, thread};

    use bytes::Bytes;
    use restante_mail::address::{Address, Alphabet};
    use restante_mail::envelope::{Envelope, Peer, Recipient};
    use restante_mail::message::Summary;
    use restante_mail::naming::Naming;
    use restante_mailroom::hooks::Extensions;
    use restante_mailroom::{DeliveryOutcome, Mailroom, Settings};
    use restante_store::Limits;
    use restante_store::memory::MemoryStore;
    use restante_testdir::TestDir;
    use tokio::runtime::Handle;

    use super::*;
    use crate::shelf::Shelf;

    const LONG: Duration = Duration::from_mins(1);

    async fn deliver(mailroom: &Mailroom) -> Summary {
        let peer = Peer { ip: None, helo: "client.test".into() };
        let address = Address::parse("ann@x.org", Alphabet::Ascii).unwrap();
        let recipients = vec![Recipient::new(address, Naming::Local).unwrap()];
        let envelope = Envelope { peer, from: None, recipients };
        match mailroom.deliver(&envelope, Bytes::from_static(b"Subject: x\r\n\r\n")).await.unwrap() {
            DeliveryOutcome::Stored(mut copies) => copies.remove(0),
            DeliveryOutcome::Discarded => panic!("discarded"),
        }
    }

    /// Takes the index away and puts something into its place that is none and stays.
    fn spoil(shelf: &Shelf, file: &Path) {
        shelf.take().unwrap().discard();
        fs::create_dir(file).unwrap();
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn an_index_that_cannot_be_made_again_at_once_is_made_again_later() {
        let dir = TestDir::new();
        let directory = dir.path();
        let store = Arc::new(MemoryStore::new(Limits { messages_per_mailbox: 0, ..Limits::default() }));
        let mailroom = Arc::new(Mailroom::new(Settings::default(), store, Extensions::default()));
        let (intake, shelf) = (Arc::new(Intake::default()), Arc::new(Shelf::new(Some(directory.to_owned()))));
        let filing = Filing::new(shelf.clone(), Arc::downgrade(&mailroom), Handle::current());
        let mut librarian = Librarian::new(intake.clone(), filing);
        librarian.patience = Duration::from_millis(1);
        intake.open();
        let librarian = thread::spawn(move || librarian.run());
        assert!(intake.follow(LONG).await, "an index is made");

        spoil(&shelf, &directory.join("search.db"));
        // So many that some are left in the box when it was tried in vain to make the index again.
        let count = 3 * BATCH;
        for _ in 0..count {
            let Summary { mailbox, id, .. } = deliver(&mailroom).await;
            intake.put(|| News::Stored(mailbox, id));
        }
        assert!(!intake.follow(Duration::from_millis(50)).await, "there is nothing to put them into");
        assert!(!librarian.is_finished(), "the librarian stays");

        fs::remove_dir(directory.join("search.db")).unwrap();
        let deadline = Instant::now() + LONG;
        while shelf.count() < count as u64 && Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(shelf.count(), count as u64);
        intake.close();
        tokio::task::spawn_blocking(|| librarian.join().unwrap()).await.unwrap();
    }
}
