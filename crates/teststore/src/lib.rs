//! A store for tests that several nodes share: messages in memory, and a feed for each node that contains every change,
//! in one order. The feed of a node can be held back, as a slow or broken network would do, and its lists can fail.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use jiff::Timestamp;
use parking_lot::Mutex;
use restante_mail::message::{Message, MessageId, Source, Summary};
use restante_mail::naming::{MailboxName, Project};
use restante_store::feed::{Change, CopyEvent, Feed, FeedItem, MarkChange};
use restante_store::memory::MemoryStore;
use restante_store::overview::Overview;
use restante_store::{
    AgeRange, Appended, CopyKey, CopyUpdate, Limits, Listing, MailboxIndex, MailboxPage, MailboxState, MessageListing,
    MessageSelector, NewMessage, Page, ProjectState, Result, Store, StoreError, UpdateOutcome, Usage, Version,
};
use tokio::sync::mpsc::Sender;

/// The number of items that a node may leave unread before changes wait for it.
const FEED_CAPACITY: usize = 1000;

/// See the crate documentation.
pub struct SharedStore {
    memory: MemoryStore,
    /// Locked during a change and the publishing of its events.
    state: tokio::sync::Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The position of the last change.
    clock: u64,
    links: Vec<NodeLink>,
}

/// The sender of a node's feed.
struct NodeLink {
    sender: Sender<FeedItem>,
    /// Changes that are held back. `None` if they are sent at once.
    held_changes: Option<Vec<Change>>,
    /// The position of the last change before the node was created, until its backlog was sent.
    starts_after: Option<u64>,
}

/// The store as one node uses it.
pub struct Node {
    store: Arc<SharedStore>,
    /// The index in [`State::links`].
    index: usize,
    feed: Mutex<Option<Feed>>,
    fails_lists: AtomicBool,
    /// How the next removal of copies fails.
    failing_removal: Mutex<Option<FailingRemoval>>,
}

/// A removal of copies that returns an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailingRemoval {
    /// The copies stay.
    NotMade,
    /// The copies are removed, as if the connection to the store was lost after that.
    Made,
}

impl SharedStore {
    /// Creates an empty store with these limits.
    pub fn new(limits: Limits) -> Arc<Self> {
        Arc::new(Self { memory: MemoryStore::new(limits), state: tokio::sync::Mutex::default() })
    }

    /// Adds a node, which gets all further changes.
    pub async fn node(self: &Arc<Self>) -> Arc<Node> {
        let node = self.starting_node().await;
        node.release().await;
        node
    }

    /// Adds a node that is still starting: further changes are held back, and are its backlog when it is released.
    pub async fn starting_node(self: &Arc<Self>) -> Arc<Node> {
        let (sender, feed) = Feed::new(FEED_CAPACITY);
        let mut state = self.state.lock().await;
        let index = state.links.len();
        let starts_after = Some(state.clock);
        state.links.push(NodeLink { sender, held_changes: Some(Vec::new()), starts_after });
        Arc::new(Node {
            store: self.clone(),
            index,
            feed: Mutex::new(Some(feed)),
            fails_lists: AtomicBool::new(false),
            failing_removal: Mutex::default(),
        })
    }
}

impl Node {
    /// Sets whether lists and overviews of messages fail on this node.
    pub fn fail_lists(&self, fails: bool) {
        self.fails_lists.store(fails, Ordering::Relaxed);
    }

    /// Lets the next removal of copies by this node fail.
    pub fn fail_next_removal(&self, removal: FailingRemoval) {
        *self.failing_removal.lock() = Some(removal);
    }

    fn check_lists(&self) -> Result<()> {
        if self.fails_lists.load(Ordering::Relaxed) {
            return Err(StoreError::Unavailable("lists fail on this node".to_owned()));
        }
        Ok(())
    }

    /// Holds back the changes for this node. Has no effect if they are held back already.
    pub async fn hold(&self) {
        self.store.state.lock().await.links[self.index].held_changes.get_or_insert_default();
    }

    /// Sends the changes that were held back.
    pub async fn release(&self) {
        let mut state = self.store.state.lock().await;
        let link = &mut state.links[self.index];
        let Some(changes) = link.held_changes.take() else { return };
        match link.starts_after.take() {
            Some(after) => link.send(FeedItem::Backlog { after, changes }).await,
            None if changes.is_empty() => {}
            None => link.send(FeedItem::Changes(changes)).await,
        }
    }

    /// Discards the changes that were held back, and sends a gap instead.
    pub async fn discard_held(&self) {
        let mut state = self.store.state.lock().await;
        let link = &mut state.links[self.index];
        link.held_changes = None;
        link.send(FeedItem::Gap).await;
    }
}

impl State {
    /// Publishes an event to all nodes, at this position or the next one.
    async fn publish(&mut self, position: Option<u64>, event: CopyEvent) {
        self.clock = position.unwrap_or(self.clock + 1);
        for link in &mut self.links {
            let change = Change { position: self.clock, event: event.clone() };
            match &mut link.held_changes {
                Some(changes) => changes.push(change),
                None => link.send(FeedItem::Changes(vec![change])).await,
            }
        }
    }

    async fn publish_deleted(&mut self, summaries: &[Summary]) {
        for summary in summaries {
            self.publish(None, CopyEvent::Deleted(summary.clone())).await;
        }
    }
}

impl NodeLink {
    /// Sends an item. Ignores a node that was dropped.
    async fn send(&self, item: FeedItem) {
        let _ = self.sender.send(item).await;
    }
}

#[async_trait]
impl Store for Node {
    async fn append(&self, message: NewMessage) -> Result<Appended> {
        let mut state = self.store.state.lock().await;
        // An id is both a position and a time, so the time of the last change must have passed.
        while Timestamp::now().as_microsecond().unsigned_abs() <= state.clock {
            tokio::task::yield_now().await;
        }
        let appended = self.store.memory.append(message).await?;
        for summary in &appended.stored {
            state.publish(Some(summary.id.number()), CopyEvent::Stored(summary.clone())).await;
        }
        state.publish_deleted(&appended.evicted).await;
        Ok(appended)
    }

    async fn update_copies(&self, updates: Vec<CopyUpdate>) -> Result<Vec<UpdateOutcome>> {
        let mut state = self.store.state.lock().await;
        let outcomes = self.store.memory.update_copies(updates.clone()).await?;
        for (update, outcome) in updates.iter().zip(&outcomes) {
            if let Some(change) = MarkChange::of_update(update, outcome) {
                state.publish(None, CopyEvent::Marked(change)).await;
            }
        }
        Ok(outcomes)
    }

    async fn remove_copies(&self, copies: Vec<CopyKey>) -> Result<Vec<Summary>> {
        let failing = self.failing_removal.lock().take();
        let failed = || StoreError::Unavailable("this removal fails".to_owned());
        if failing == Some(FailingRemoval::NotMade) {
            return Err(failed());
        }
        let mut state = self.store.state.lock().await;
        let removed = self.store.memory.remove_copies(copies).await?;
        state.publish_deleted(&removed).await;
        if failing == Some(FailingRemoval::Made) { Err(failed()) } else { Ok(removed) }
    }

    async fn purge(&self, mailbox: &MailboxName, last: MessageId, limit: usize) -> Result<Vec<Summary>> {
        let mut state = self.store.state.lock().await;
        let removed = self.store.memory.purge(mailbox, last, limit).await?;
        state.publish_deleted(&removed).await;
        Ok(removed)
    }

    async fn expire(&self, deadline: Timestamp, limit: usize) -> Result<Vec<Summary>> {
        let mut state = self.store.state.lock().await;
        let removed = self.store.memory.expire(deadline, limit).await?;
        state.publish_deleted(&removed).await;
        Ok(removed)
    }

    async fn version(&self, mailbox: &MailboxName) -> Result<Version> {
        self.store.memory.version(mailbox).await
    }

    async fn list(&self, mailbox: &MailboxName, page: Page) -> Result<Listing> {
        self.store.memory.list(mailbox, page).await
    }

    async fn find(&self, mailbox: &MailboxName, selector: MessageSelector) -> Result<Option<Summary>> {
        self.store.memory.find(mailbox, selector).await
    }

    async fn source(&self, mailbox: &MailboxName, id: MessageId) -> Result<Option<Source>> {
        self.store.memory.source(mailbox, id).await
    }

    async fn index(&self, mailbox: &MailboxName, after: MessageId, limit: usize) -> Result<MailboxIndex> {
        self.store.memory.index(mailbox, after, limit).await
    }

    async fn uid_validity(&self) -> Result<u32> {
        self.store.memory.uid_validity().await
    }

    async fn messages(&self, project: Option<&Project>, page: Page) -> Result<MessageListing> {
        self.check_lists()?;
        self.store.memory.messages(project, page).await
    }

    async fn find_message(&self, selector: MessageSelector) -> Result<Option<Message>> {
        self.store.memory.find_message(selector).await
    }

    async fn oldest(&self, range: AgeRange, limit: usize) -> Result<Vec<Summary>> {
        self.store.memory.oldest(range, limit).await
    }

    async fn store_version(&self) -> Result<Version> {
        self.store.memory.store_version().await
    }

    async fn mailboxes(&self, page: MailboxPage) -> Result<Vec<MailboxState>> {
        self.store.memory.mailboxes(page).await
    }

    async fn last_id(&self) -> Result<MessageId> {
        self.store.memory.last_id().await
    }

    async fn overview(&self, project: Option<&Project>) -> Result<Overview> {
        self.check_lists()?;
        self.store.memory.overview(project).await
    }

    async fn projects(&self, after: Option<&Project>, limit: usize) -> Result<Vec<ProjectState>> {
        self.check_lists()?;
        self.store.memory.projects(after, limit).await
    }

    async fn usage(&self) -> Result<Usage> {
        self.store.memory.usage().await
    }

    fn feed(&self) -> Option<Feed> {
        self.feed.lock().take()
    }
}
