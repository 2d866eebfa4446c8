//! A store for tests that several nodes share: mail in memory, and a feed for each node that tells of every change, in one order.
//! What a node is told can be held back, as a slow or broken network does.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use jiff::Timestamp;
use restante_mail::message::{MessageId, Source, Summary};
use restante_mail::naming::MailboxName;
use restante_store::feed::{Change, Event, Feed, FeedItem};
use restante_store::memory::MemoryStore;
use restante_store::{
    Appended, Limits, Listing, MailboxPage, MailboxState, MessageSelector, NewMessage, Page, Result, Store, Usage,
    Version,
};
use tokio::sync::mpsc::Sender;

/// How many news a node may leave unread before the others wait for it.
const FEED_CAPACITY: usize = 1000;

/// See the crate's documentation.
pub struct SharedStore {
    memory: MemoryStore,
    /// Held during a change and its telling.
    state: tokio::sync::Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The number of the last change.
    clock: u64,
    links: Vec<NodeLink>,
}

/// The way to a node.
struct NodeLink {
    sender: Sender<FeedItem>,
    /// What is held back, where it is.
    held_changes: Option<Vec<Change>>,
    /// The last change before it was there, until it has begun.
    starts_after: Option<u64>,
}

/// The store as one node sees it.
pub struct Node {
    store: Arc<SharedStore>,
    /// Its place among all nodes.
    index: usize,
    feed: Mutex<Option<Feed>>,
}

impl SharedStore {
    /// An empty store within these limits.
    pub fn new(limits: Limits) -> Arc<Self> {
        Arc::new(Self { memory: MemoryStore::new(limits), state: tokio::sync::Mutex::default() })
    }

    /// One more node, which is told of everything that happens from now on.
    pub async fn node(self: &Arc<Self>) -> Arc<Node> {
        let node = self.starting_node().await;
        node.release().await;
        node
    }

    /// One more node, which has not begun: what happens from now on is held back, and not new when it is released.
    pub async fn starting_node(self: &Arc<Self>) -> Arc<Node> {
        let (sender, feed) = Feed::new(FEED_CAPACITY);
        let mut register = self.state.lock().await;
        let number = register.links.len();
        let begins_behind = Some(register.clock);
        register.links.push(NodeLink { sender, held_changes: Some(Vec::new()), starts_after: begins_behind });
        Arc::new(Node { store: self.clone(), index: number, feed: Mutex::new(Some(feed)) })
    }
}

impl Node {
    /// Holds back what this node is told.
    pub async fn hold(&self) {
        self.store.state.lock().await.links[self.index].held_changes = Some(Vec::new());
    }

    /// Tells this node what was held back.
    pub async fn release(&self) {
        let mut register = self.store.state.lock().await;
        let wire = &mut register.links[self.index];
        let Some(changes) = wire.held_changes.take() else { return };
        match wire.starts_after.take() {
            Some(behind) => wire.send(FeedItem::Backlog { after: behind, changes }).await,
            None if changes.is_empty() => {}
            None => wire.send(FeedItem::Changes(changes)).await,
        }
    }

    /// Forgets what was held back, and tells this node that it has missed something.
    pub async fn discard_held(&self) {
        let mut register = self.store.state.lock().await;
        let wire = &mut register.links[self.index];
        wire.held_changes = None;
        wire.send(FeedItem::Gap).await;
    }
}

impl State {
    /// Tells all nodes of something that happened, under this number or the next one.
    async fn publish(&mut self, number: Option<u64>, event: Event) {
        self.clock = number.unwrap_or(self.clock + 1);
        for wire in &mut self.links {
            let change = Change { position: self.clock, event: event.clone() };
            match &mut wire.held_changes {
                Some(held) => held.push(change),
                None => wire.send(FeedItem::Changes(vec![change])).await,
            }
        }
    }

    async fn publish_deleted(&mut self, summaries: &[Summary]) {
        for summary in summaries {
            self.publish(None, Event::Deleted(summary.clone())).await;
        }
    }
}

impl NodeLink {
    /// A node that is gone is not told.
    async fn send(&self, news: FeedItem) {
        let _ = self.sender.send(news).await;
    }
}

#[async_trait]
impl Store for Node {
    async fn append(&self, message: NewMessage) -> Result<Appended> {
        let mut register = self.store.state.lock().await;
        // An id is the number of a change and a time, so the time of the last change must be over.
        while Timestamp::now().as_microsecond().unsigned_abs() <= register.clock {
            tokio::task::yield_now().await;
        }
        let appended = self.store.memory.append(message).await?;
        for summary in &appended.stored {
            register.publish(Some(summary.id.number()), Event::Stored(summary.clone())).await;
        }
        register.publish_deleted(&appended.evicted).await;
        Ok(appended)
    }

    async fn set_seen(&self, mailbox: &MailboxName, id: MessageId, seen: bool) -> Result<bool> {
        let mut register = self.store.state.lock().await;
        let was_there = self.store.memory.set_seen(mailbox, id, seen).await?;
        if was_there {
            register.publish(None, Event::Seen { mailbox: mailbox.clone(), id, seen }).await;
        }
        Ok(was_there)
    }

    async fn remove(&self, mailbox: &MailboxName, id: MessageId) -> Result<Option<Summary>> {
        let mut register = self.store.state.lock().await;
        let removed = self.store.memory.remove(mailbox, id).await?;
        register.publish_deleted(removed.as_slice()).await;
        Ok(removed)
    }

    async fn purge(&self, mailbox: &MailboxName, last: MessageId, limit: usize) -> Result<Vec<Summary>> {
        let mut register = self.store.state.lock().await;
        let removed = self.store.memory.purge(mailbox, last, limit).await?;
        register.publish_deleted(&removed).await;
        Ok(removed)
    }

    async fn expire(&self, deadline: Timestamp, limit: usize) -> Result<Vec<Summary>> {
        let mut register = self.store.state.lock().await;
        let removed = self.store.memory.expire(deadline, limit).await?;
        register.publish_deleted(&removed).await;
        Ok(removed)
    }

    async fn version(&self, mailbox: &MailboxName) -> Result<Version> {
        self.store.memory.version(mailbox).await
    }

    async fn list(&self, mailbox: &MailboxName, page: Page) -> Result<Listing> {
        self.store.memory.list(mailbox, page).await
    }

    async fn find(&self, mailbox: &MailboxName, which: MessageSelector) -> Result<Option<Summary>> {
        self.store.memory.find(mailbox, which).await
    }

    async fn source(&self, mailbox: &MailboxName, id: MessageId) -> Result<Option<Source>> {
        self.store.memory.source(mailbox, id).await
    }

    async fn mailboxes(&self, page: MailboxPage) -> Result<Vec<MailboxState>> {
        self.store.memory.mailboxes(page).await
    }

    async fn last_id(&self) -> Result<MessageId> {
        self.store.memory.last_id().await
    }

    async fn usage(&self) -> Result<Usage> {
        self.store.memory.usage().await
    }

    fn feed(&self) -> Option<Feed> {
        self.feed.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
