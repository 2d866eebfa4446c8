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
use crate::{DeletionCause, Inner, Mailroom};

/// How long it is waited for what a store tells first.
const BACKLOG_TIMEOUT: Duration = Duration::from_secs(5);

impl Mailroom {
    /// Tells what happens in a shared store, for as long as the future is polled; once. Without it nobody here hears of mail, and
    /// the store waits for somebody who listens. Where the store is not shared, there is nothing to follow, and it ends at once.
    pub async fn follow_feed(&self) {
        let Some(mut feed) = self.lock_feed().take() else { return };
        while let Some(news) = feed.next().await {
            self.inner.handle_feed_item(news);
        }
    }

    /// Tells what happened in a shared store before this node has started, which is to be done before anybody listens: who comes
    /// earlier would take it for new, and who comes from another node would not be known. A store that says nothing has trouble,
    /// and is not waited for.
    pub async fn read_feed_backlog(&self) {
        let Some(mut feed) = self.lock_feed().take() else { return };
        if let Ok(Some(news)) = timeout(BACKLOG_TIMEOUT, feed.next()).await {
            self.inner.handle_feed_item(news);
        }
        *self.lock_feed() = Some(feed);
    }

    fn lock_feed(&self) -> MutexGuard<'_, Option<Feed>> {
        self.feed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    pub(crate) fn publish_stored(&self, stored: impl IntoIterator<Item = Summary>) {
        for summary in stored {
            for observer in self.direct_observers() {
                observer.message_stored(&summary);
            }
            if !self.is_shared {
                self.wait_registry.wake_mailbox(&summary.mailbox);
                self.hub.publish_stored(summary);
            }
        }
    }

    pub(crate) fn publish_seen(&self, mailbox: &MailboxName, id: MessageId, seen: bool) {
        for observer in self.direct_observers() {
            observer.seen_changed(mailbox, id, seen);
        }
    }

    pub(crate) fn publish_deleted(&self, cause: DeletionCause, deleted: impl IntoIterator<Item = Summary>) {
        let mut count = 0;
        for summary in deleted {
            count += 1;
            for observer in self.direct_observers() {
                observer.message_deleted(&summary);
            }
            if !self.is_shared {
                self.hub.publish_deleted(summary);
            }
        }
        self.counters.count_deleted(cause, count);
    }

    /// Those who are told of what this mailroom does. Those who follow a shared store hear of it as the other nodes do.
    fn direct_observers(&self) -> impl Iterator<Item = &Arc<dyn Observer>> {
        let followers: &[_] = if self.is_shared { &[] } else { &self.extensions.store_observers };
        self.extensions.node_observers.iter().chain(followers)
    }

    fn handle_feed_item(&self, news: FeedItem) {
        match news {
            FeedItem::Backlog { after: behind, changes } => {
                self.hub.set_history_start(behind);
                self.publish_changes(changes);
            }
            FeedItem::Changes(changes) => self.publish_changes(changes),
            FeedItem::Gap => self.publish_missed(),
        }
    }

    fn publish_changes(&self, changes: Vec<Change>) {
        for change in changes {
            self.publish_change(change);
        }
    }

    fn publish_change(&self, Change { position: number, event }: Change) {
        let followers = self.extensions.store_observers.iter();
        match event {
            feed::Event::Stored(summary) => {
                followers.for_each(|follower| follower.message_stored(&summary));
                self.wait_registry.wake_mailbox(&summary.mailbox);
                self.hub.publish_numbered(number, Event::Stored(summary));
            }
            feed::Event::Deleted(summary) => {
                followers.for_each(|follower| follower.message_deleted(&summary));
                self.hub.publish_numbered(number, Event::Deleted(summary));
            }
            feed::Event::Seen { mailbox, id, seen } => {
                followers.for_each(|follower| follower.seen_changed(&mailbox, id, seen));
            }
        }
    }

    /// Nobody knows what happened: all look for themselves.
    fn publish_missed(&self) {
        for follower in &self.extensions.store_observers {
            follower.events_missed();
        }
        tokio::spawn(self.wait_registry.clone().wake_all());
        self.hub.events_missed();
    }
}
