//! Publishes changes of the store as events, after they were made. If the store is not shared, a change is published by
//! the mailroom that made it. If several nodes share a store, the node that made a change notifies its own
//! `node_observers`. Everything else is published from the feed of the store, on every node. A node's own changes also
//! come back through the feed, so all nodes publish each change once and in the same order.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use restante_mail::message::{MessageId, Summary};
use restante_store::feed::{Change, CopyEvent, FeedItem, MarkChange};
use tokio::time::timeout;

use crate::events::{Event, MessageCopies};
use crate::hooks::Observer;
use crate::{DeletionCause, Inner, Mailroom};

/// How long [`Mailroom::read_feed_backlog`] waits for the store.
const BACKLOG_TIMEOUT: Duration = Duration::from_secs(5);

impl Mailroom {
    /// Publishes the changes of a shared store for as long as the future is polled. Call it once. Without it no
    /// subscriber of this node gets events, and the store waits for its feed to be read. Returns at once if the store
    /// is not shared.
    pub async fn follow_feed(&self) {
        let Some(mut feed) = self.feed.lock().take() else { return };
        while let Some(item) = feed.next().await {
            self.inner.handle_feed_item(item);
        }
    }

    /// Publishes the recent changes that a shared store reports first: those from before this node started. Call it
    /// before clients are accepted. A subscriber that came earlier would get the backlog as new events. A subscriber that
    /// comes from another node could not resume at its position. Returns after five seconds if the store does not
    /// respond.
    pub async fn read_feed_backlog(&self) {
        let Some(mut feed) = self.feed.lock().take() else { return };
        if let Ok(Some(item)) = timeout(BACKLOG_TIMEOUT, feed.next()).await {
            self.inner.handle_feed_item(item);
        }
        *self.feed.lock() = Some(feed);
    }
}

impl Inner {
    /// Publishes the copies of a message that was stored.
    pub(crate) fn publish_stored(&self, copies: &[Summary], body: &Bytes) {
        let shared = MessageCopies::new(copies);
        for summary in copies {
            for observer in self.direct_observers() {
                observer.message_stored_with_body(summary, body);
            }
            if !self.is_shared {
                self.hub.publish_stored(summary.clone(), shared.clone());
            }
        }
    }

    /// Publishes changed marks.
    pub(crate) fn publish_marks(&self, changes: &[MarkChange]) {
        for change in changes {
            for observer in self.direct_observers() {
                observer.mark_changed(change);
            }
        }
        if !self.is_shared {
            self.marks.send(changes);
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

    /// The observers that are notified directly of changes made by this mailroom. If the store is shared,
    /// `store_observers` are notified through the feed instead, like those of the other nodes.
    fn direct_observers(&self) -> impl Iterator<Item = &Arc<dyn Observer>> {
        let store_observers: &[_] = if self.is_shared { &[] } else { &self.extensions.store_observers };
        self.extensions.node_observers.iter().chain(store_observers)
    }

    fn handle_feed_item(&self, item: FeedItem) {
        match item {
            FeedItem::Backlog { after, changes } => {
                self.hub.set_history_start(after);
                self.publish_changes(&changes);
            }
            FeedItem::Changes(changes) => self.publish_changes(&changes),
            FeedItem::Gap => self.publish_missed(),
        }
    }

    fn publish_changes(&self, changes: &[Change]) {
        let mut copies = MessageCopies::default();
        let mut last_message = None;
        let mut marks = Vec::new();
        for (index, change) in changes.iter().enumerate() {
            if let CopyEvent::Stored(summary) = &change.event
                && last_message.replace(summary.message) != Some(summary.message)
            {
                copies = MessageCopies::new(&copies_from(&changes[index..], summary.message));
            }
            marks.extend(self.publish_change(change.clone(), &copies));
        }
        self.marks.send(&marks);
    }

    /// Publishes a change. `copies` are all copies of the message, if it was stored. Returns a change of marks, which the
    /// subscribers still have to get.
    fn publish_change(&self, Change { position, event }: Change, copies: &MessageCopies) -> Option<MarkChange> {
        let observers = self.extensions.store_observers.iter();
        match event {
            CopyEvent::Stored(summary) => {
                observers.for_each(|observer| observer.message_stored(&summary));
                self.hub.publish_numbered(position, Event::Stored(summary, copies.clone()));
                None
            }
            CopyEvent::Deleted(summary) => {
                observers.for_each(|observer| observer.message_deleted(&summary));
                self.hub.publish_numbered(position, Event::Deleted(summary));
                None
            }
            CopyEvent::Marked(change) => {
                observers.for_each(|observer| observer.mark_changed(&change));
                Some(change)
            }
        }
    }

    /// Handles a gap in the feed: some changes are not known. Every observer, waiting request and subscriber has to
    /// query the store again.
    fn publish_missed(&self) {
        for observer in &self.extensions.store_observers {
            observer.events_missed();
        }
        self.hub.events_missed();
    }
}

/// Returns the copies of a message at the start of these changes.
fn copies_from(changes: &[Change], message: MessageId) -> Vec<Summary> {
    let stored = changes.iter().map_while(|change| match &change.event {
        CopyEvent::Stored(summary) if summary.message == message => Some(summary.clone()),
        _ => None,
    });
    stored.collect()
}
