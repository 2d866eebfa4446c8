//! Whoever wants to know of a change is told from here, once it is made. Where several nodes share a store, the node that made the
//! change tells its observers, and everybody else is told what the feed of the store says, on all nodes: also what a node did
//! itself comes back to it in this way, so that all hear everything once and in the same order.

use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use restante_mail::message::{MessageId, Summary};
use restante_mail::naming::MailboxName;
use restante_store::feed::{self, Change, Feed, FeedItem};
use tokio::time::timeout;

use crate::events::Event;
use crate::hooks::Observer;
use crate::{Cause, Desk, Mailroom};

/// How long it is waited for what a store tells first.
const PATIENCE: Duration = Duration::from_secs(5);

impl Mailroom {
    /// Tells what happens in a shared store, for as long as the future is polled; once. Without it nobody here hears of mail, and
    /// the store waits for somebody who listens. Where the store is not shared, there is nothing to follow, and it ends at once.
    pub async fn follow(&self) {
        let Some(mut feed) = self.feed().take() else { return };
        while let Some(news) = feed.next().await {
            self.desk.take_in(news);
        }
    }

    /// Tells what happened in a shared store before this node has started, which is to be done before anybody listens: who comes
    /// earlier would take it for new, and who comes from another node would not be known. A store that says nothing has trouble,
    /// and is not waited for.
    pub async fn begin_to_follow(&self) {
        let Some(mut feed) = self.feed().take() else { return };
        if let Ok(Some(news)) = timeout(PATIENCE, feed.next()).await {
            self.desk.take_in(news);
        }
        *self.feed() = Some(feed);
    }

    fn feed(&self) -> MutexGuard<'_, Option<Feed>> {
        self.feed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Desk {
    pub(crate) fn announce_stored(&self, stored: impl IntoIterator<Item = Summary>) {
        for summary in stored {
            for observer in self.told() {
                observer.message_stored(&summary);
            }
            if !self.is_shared {
                self.waiters.wake(&summary.mailbox);
                self.hub.stored(summary);
            }
        }
    }

    pub(crate) fn announce_seen(&self, mailbox: &MailboxName, id: MessageId, seen: bool) {
        for observer in self.told() {
            observer.seen_changed(mailbox, id, seen);
        }
    }

    pub(crate) fn announce_deleted(&self, cause: Cause, deleted: impl IntoIterator<Item = Summary>) {
        let mut count = 0;
        for summary in deleted {
            count += 1;
            for observer in self.told() {
                observer.message_deleted(&summary);
            }
            if !self.is_shared {
                self.hub.deleted(summary);
            }
        }
        self.tally.deleted(cause, count);
    }

    /// Those who are told of what this mailroom does. Those who follow a shared store hear of it as the other nodes do.
    fn told(&self) -> impl Iterator<Item = &Arc<dyn Observer>> {
        let followers: &[_] = if self.is_shared { &[] } else { &self.extensions.followers };
        self.extensions.observers.iter().chain(followers)
    }

    fn take_in(&self, news: FeedItem) {
        match news {
            FeedItem::Backlog { after: behind, changes } => {
                self.hub.begin_behind(behind);
                self.tell_all(changes);
            }
            FeedItem::Changes(changes) => self.tell_all(changes),
            FeedItem::Gap => self.tell_of_missed(),
        }
    }

    fn tell_all(&self, changes: Vec<Change>) {
        for change in changes {
            self.tell(change);
        }
    }

    fn tell(&self, Change { position: number, event }: Change) {
        let followers = self.extensions.followers.iter();
        match event {
            feed::Event::Stored(summary) => {
                followers.for_each(|follower| follower.message_stored(&summary));
                self.waiters.wake(&summary.mailbox);
                self.hub.happened(number, Event::Stored(summary));
            }
            feed::Event::Deleted(summary) => {
                followers.for_each(|follower| follower.message_deleted(&summary));
                self.hub.happened(number, Event::Deleted(summary));
            }
            feed::Event::Seen { mailbox, id, seen } => {
                followers.for_each(|follower| follower.seen_changed(&mailbox, id, seen));
            }
        }
    }

    /// Nobody knows what happened: all look for themselves.
    fn tell_of_missed(&self) {
        for follower in &self.extensions.followers {
            follower.missed();
        }
        tokio::spawn(self.waiters.clone().wake_all());
        self.hub.missed();
    }
}
