//! The mailroom: the only access of a server to its store.
//!
//! The receiving protocols deliver messages to the [`Mailroom`], readers query it, and it publishes every change.
//! [`policy`] decides about senders and recipients, [`hooks`] may overrule it, the store keeps the messages, and
//! [`events`] sends changes to subscribers. This crate contains no protocol and no wire format.
//!
//! Several nodes may share a store, each with its own mailroom. Changes are then published from the feed of the store,
//! on all nodes in the same order. See [`Mailroom::follow_feed`].

mod arrivals;
pub mod chaos;
mod copy;
mod counters;
mod delivery;
pub mod events;
pub mod hooks;
mod import;
mod marks;
mod message_limit;
pub mod policy;
pub mod projects;
mod publish;
mod retention;
mod run_expiry;
mod run_to_completion;
pub mod store_error_log;
pub mod tagging;
#[cfg(test)]
mod tests;

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use restante_auth::runs::Runs;
use restante_journal::Journal;
use restante_mail::address::Address;
use restante_mail::message::{Message, MessageId, Source, Summary};
use restante_mail::naming::{MailboxName, NameError, Naming, Project};
use restante_store::feed::Feed;
use restante_store::overview::Overview;
/// The query types of the store, and its error.
pub use restante_store::{
    CopyKey, CopyUpdate, IndexEntry, MailboxIndex, MailboxPage, MessageSelector, Page, StoreError, UpdateOutcome,
};
use restante_store::{
    Limits, Listing, MailboxLimits, MailboxState, MessageListing, ProjectState, Result, Store, Usage, Version,
};
use tokio::task::JoinSet;
use tokio::time::timeout;

pub use arrivals::{ArrivalSource, Arrivals};
use chaos::Chaos;
use counters::Counters;
pub use counters::{Counts, DeletionCause};
pub use delivery::{DeliveryOutcome, WriteAccess};
use events::{Hub, MarkPublisher, MarkSubscription, Position, Subscription};
use hooks::{Extensions, HookPoint, Hooks};
pub use import::Import;
use policy::Policy;
use projects::ProjectRules;
use run_to_completion::{incomplete_error, run_to_completion};
use tagging::Tagging;

/// How long the store may take to return its usage. Health checks use it, and their timeouts are about as short by default.
const USAGE_TIMEOUT: Duration = Duration::from_secs(2);

/// The number of messages that one step of a purge deletes. Deliveries run between the steps.
const PURGE_BATCH_SIZE: usize = 1000;

/// The number of changes that run concurrently when many messages are deleted or marked. The store commits concurrent
/// changes together, so more of them are faster. Deliveries run between the batches.
const CHANGE_BATCH_SIZE: usize = 500;

/// How long a request that deletes many messages waits in total for subscribers, so that they get every event.
const MAX_SUBSCRIBER_WAIT: Duration = Duration::from_secs(5);

/// The settings of a mailroom.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The host name in Received headers.
    pub domain: String,
    /// How mailbox names are derived from addresses.
    pub naming: Naming,
    /// Which senders and recipients are accepted, and what is stored.
    pub policy: Policy,
    /// Which project a new message is delivered into.
    pub projects: ProjectRules,
    /// The limits of the store.
    pub limits: Limits,
    /// Which tags a new message gets.
    pub tagging: Tagging,
    /// The number of stored messages that a new subscriber gets first.
    pub history: usize,
}

/// The access to a store. See the crate's documentation.
pub struct Mailroom {
    settings: Settings,
    inner: Arc<Inner>,
    journal: Option<Arc<Journal>>,
    chaos: Option<Chaos>,
    runs: Option<Arc<Runs>>,
    /// The feed of a shared store, until [`Mailroom::follow_feed`] takes it.
    feed: Mutex<Option<Feed>>,
}

/// The part of a mailroom that operations share. An operation may outlive the caller that started it.
struct Inner {
    store: Arc<dyn Store>,
    extensions: Extensions,
    hub: Arc<Hub>,
    /// Sends the changes of marks to their subscribers.
    marks: MarkPublisher,
    counters: Counters,
    /// Whether other nodes change the store as well. Its feed then reports all changes, also those made here.
    is_shared: bool,
}

impl Mailroom {
    /// Creates a mailroom for this store.
    pub fn new(settings: Settings, store: Arc<dyn Store>, extensions: Extensions) -> Self {
        let feed = store.feed();
        let is_shared = feed.is_some();
        let hub = Hub::new(settings.history, is_shared);
        let inner = Arc::new(Inner {
            store,
            extensions,
            hub,
            marks: MarkPublisher::default(),
            counters: Counters::default(),
            is_shared,
        });
        Self { settings, inner, journal: None, chaos: None, runs: None, feed: Mutex::new(feed) }
    }

    /// Returns whether other nodes change the store as well.
    pub fn is_shared(&self) -> bool {
        self.inner.is_shared
    }

    /// Sets the journal in which the receiving protocols record transcripts.
    #[must_use]
    pub fn with_journal(self, journal: Arc<Journal>) -> Self {
        Self { journal: Some(journal), ..self }
    }

    /// Returns the journal, if one is configured.
    pub fn journal(&self) -> Option<&Arc<Journal>> {
        self.journal.as_ref()
    }

    /// Enables simulated failures of SMTP.
    #[must_use]
    pub fn with_chaos(self, chaos: Chaos) -> Self {
        Self { chaos: Some(chaos), ..self }
    }

    /// Returns the simulated failures of SMTP, if they are enabled.
    pub fn chaos(&self) -> Option<&Chaos> {
        self.chaos.as_ref()
    }

    /// Delivers mail for the domains of leased runs to their projects.
    #[must_use]
    pub fn with_runs(self, runs: Arc<Runs>) -> Self {
        Self { runs: Some(runs), ..self }
    }

    /// Returns the mailbox for a name or an address given by a reader without a home.
    pub fn mailbox(&self, text: &str) -> std::result::Result<MailboxName, NameError> {
        self.mailbox_in(None, text)
    }

    /// Returns the mailbox for a name or an address given by a reader with this home.
    pub fn mailbox_in(&self, home: Option<&Project>, text: &str) -> std::result::Result<MailboxName, NameError> {
        self.settings.naming.parse_mailbox_in(home, text)
    }

    /// Returns an address that delivers to this mailbox, if there is one.
    pub fn address_of(&self, mailbox: &MailboxName) -> Option<Address> {
        self.settings.naming.address_for(mailbox, self.domain())
    }

    /// Returns the host name.
    pub fn domain(&self) -> &str {
        &self.settings.domain
    }

    /// Returns the mailbox of a recipient.
    pub fn mailbox_of(&self, recipient: &Address) -> std::result::Result<MailboxName, NameError> {
        self.settings.naming.mailbox_for(recipient)
    }

    /// See [`Store::version`].
    pub async fn version(&self, mailbox: &MailboxName) -> Result<Version> {
        self.inner.store.version(mailbox).await
    }

    /// Returns [`Store::list`], with the name of the mailbox in the form of `mailbox`.
    pub async fn list(&self, mailbox: &MailboxName, page: Page) -> Result<Listing> {
        self.inner.list(mailbox, page).await
    }

    /// Returns [`Store::find`], with the name of the mailbox in the form of `mailbox`.
    pub async fn find(&self, mailbox: &MailboxName, selector: MessageSelector) -> Result<Option<Summary>> {
        let found = self.inner.store.find(mailbox, selector).await?;
        Ok(found.map(|summary| Summary { mailbox: mailbox.clone(), ..summary }))
    }

    /// See [`Store::source`].
    pub async fn source(&self, mailbox: &MailboxName, id: MessageId) -> Result<Option<Source>> {
        self.inner.store.source(mailbox, id).await
    }

    /// See [`Store::sources`].
    pub async fn sources(&self, copies: Vec<CopyKey>) -> Result<Vec<Option<Source>>> {
        self.inner.store.sources(copies).await
    }

    /// See [`Store::index`].
    pub async fn index(&self, mailbox: &MailboxName, after: MessageId, limit: usize) -> Result<MailboxIndex> {
        self.inner.store.index(mailbox, after, limit).await
    }

    /// See [`Store::uid_validity`].
    pub async fn uid_validity(&self) -> Result<u32> {
        self.inner.store.uid_validity().await
    }

    /// Returns [`Store::messages`]. With a project, the names of mailboxes are relative to it.
    pub async fn messages(&self, project: Option<&Project>, page: Page) -> Result<MessageListing> {
        self.inner.messages(project, page).await
    }

    /// See [`Store::find_message`].
    pub async fn find_message(&self, selector: MessageSelector) -> Result<Option<Message>> {
        self.inner.store.find_message(selector).await
    }

    /// See [`Store::store_version`].
    pub async fn store_version(&self) -> Result<Version> {
        self.inner.store.store_version().await
    }

    /// See [`Store::overview`].
    pub async fn overview(&self, project: Option<&Project>) -> Result<Overview> {
        self.inner.store.overview(project).await
    }

    /// See [`Store::projects`].
    pub async fn projects(&self, after: Option<&Project>, limit: usize) -> Result<Vec<ProjectState>> {
        self.inner.store.projects(after, limit).await
    }

    /// Returns the limits of a mailbox.
    pub fn mailbox_limits(&self, mailbox: &MailboxName) -> MailboxLimits {
        self.settings.limits.of_mailbox(mailbox)
    }

    /// See [`Store::mailboxes`].
    pub async fn mailboxes(&self, page: MailboxPage) -> Result<Vec<MailboxState>> {
        self.inner.store.mailboxes(page).await
    }

    /// See [`Store::last_id`].
    pub async fn last_id(&self) -> Result<MessageId> {
        self.inner.store.last_id().await
    }

    /// Returns [`Store::usage`]. Returns [`StoreError::Unavailable`] if the store does not respond within two seconds. The
    /// query still runs to completion: a remote store notices a dead connection that way, and opens another one.
    pub async fn usage(&self) -> Result<Usage> {
        let inner = self.inner.clone();
        let query = run_to_completion(async move { inner.store.usage().await });
        let too_slow = |_| StoreError::Unavailable(format!("no response within {USAGE_TIMEOUT:?}"));
        timeout(USAGE_TIMEOUT, query).await.map_err(too_slow)?
    }

    /// Deletes a message. Returns false if it does not exist.
    pub async fn remove(&self, mailbox: &MailboxName, id: MessageId) -> Result<bool> {
        let copy = CopyKey { mailbox: mailbox.clone(), id };
        Ok(self.remove_copies(vec![copy], DeletionCause::Request).await? > 0)
    }

    /// Deletes copies and counts them under this cause, in batches, each of them completely or not at all. Returns how many
    /// of them existed.
    pub async fn remove_copies(&self, copies: Vec<CopyKey>, cause: DeletionCause) -> Result<usize> {
        let inner = self.inner.clone();
        let operation = async move {
            let (mut count, mut wait_budget) = (0, MAX_SUBSCRIBER_WAIT);
            for batch in copies.chunks(CHANGE_BATCH_SIZE) {
                if count > 0 {
                    wait_budget = inner.hub.wait_for_subscribers(wait_budget).await;
                }
                let removed = inner.store.remove_copies(batch.to_vec()).await?;
                count += removed.len();
                inner.publish_deleted(cause, removed);
            }
            Ok(count)
        };
        run_to_completion(operation).await
    }

    /// Deletes messages of a mailbox and counts them under this cause. Returns how many of them existed. After an error
    /// some of them are deleted.
    pub async fn remove_all(&self, mailbox: &MailboxName, ids: Vec<MessageId>, cause: DeletionCause) -> Result<usize> {
        let (inner, mailbox) = (self.inner.clone(), mailbox.clone());
        let operation = async move {
            let mut count = 0;
            let mut wait_budget = MAX_SUBSCRIBER_WAIT;
            for batch in ids.chunks(CHANGE_BATCH_SIZE) {
                if count > 0 {
                    wait_budget = inner.hub.wait_for_subscribers(wait_budget).await;
                }
                count += inner.remove_batch(&mailbox, batch, cause).await?;
            }
            Ok(count)
        };
        run_to_completion(operation).await
    }

    /// Deletes all messages of a mailbox. Returns their number. Messages that arrive during the purge stay.
    pub async fn purge(&self, mailbox: &MailboxName) -> Result<usize> {
        let (inner, mailbox) = (self.inner.clone(), mailbox.clone());
        let operation = async move {
            // Messages that arrive from now on stay.
            let Some(latest) = inner.store.find(&mailbox, MessageSelector::Latest).await? else { return Ok(0) };
            inner.purge(&mailbox, latest.id, DeletionCause::Request).await
        };
        run_to_completion(operation).await
    }

    /// Deletes all messages of the mailboxes whose names begin with `prefix` and for which `filter` returns true. Returns
    /// their number. After an error some of them are deleted. Messages that arrive during the purge stay.
    pub async fn purge_mailboxes(
        &self,
        prefix: String,
        filter: impl Fn(&MailboxName) -> bool + Send + 'static,
    ) -> Result<usize> {
        self.purge_prefix(prefix, DeletionCause::Request, filter).await
    }

    /// Deletes all messages of a project as [`Self::purge_mailboxes`] does, and counts them under this cause.
    pub async fn purge_project(&self, project: &Project, cause: DeletionCause) -> Result<usize> {
        self.purge_prefix(project.prefix(), cause, |_| true).await
    }

    async fn purge_prefix(
        &self,
        prefix: String,
        cause: DeletionCause,
        filter: impl Fn(&MailboxName) -> bool + Send + 'static,
    ) -> Result<usize> {
        let inner = self.inner.clone();
        let operation = async move {
            // Messages that arrive from now on stay.
            let last = inner.store.last_id().await?;
            let (mut count, mut wait_budget) = (0, MAX_SUBSCRIBER_WAIT);
            let mut page = MailboxPage { prefix, after: String::new(), limit: CHANGE_BATCH_SIZE };
            loop {
                let mut names: Vec<_> =
                    inner.store.mailboxes(page.clone()).await?.into_iter().map(|state| state.name).collect();
                let Some(last_name) = names.last() else { return Ok(count) };
                page.after = last_name.to_string();
                names.retain(&filter);
                count += inner.purge_each(names, last, cause).await?;
                wait_budget = inner.hub.wait_for_subscribers(wait_budget).await;
            }
        };
        run_to_completion(operation).await
    }

    /// Returns the counters since the start.
    pub fn counts(&self) -> Counts {
        self.inner.counters.counts()
    }

    /// Subscribes to the events of one mailbox, or of all if `topic` is `None`. A subscriber first gets the last stored
    /// messages that still exist, oldest first, and then every event from now on. With `resume` it gets the events
    /// after that position instead, if they are still known.
    pub fn subscribe(&self, topic: Option<MailboxName>, resume: Option<Position>) -> Subscription {
        self.inner.hub.subscribe(topic, resume)
    }

    /// Subscribes to the changes of read marks, flags and tags from now on.
    pub fn subscribe_to_marks(&self) -> MarkSubscription {
        self.inner.marks.subscribe()
    }
}

impl Inner {
    /// See [`Mailroom::list`].
    async fn list(&self, mailbox: &MailboxName, page: Page) -> Result<Listing> {
        let mut listing = self.store.list(mailbox, page).await?;
        if mailbox.is_relative() {
            for summary in &mut listing.messages {
                summary.mailbox = mailbox.clone();
            }
        }
        Ok(listing)
    }

    /// See [`Mailroom::messages`].
    async fn messages(&self, project: Option<&Project>, page: Page) -> Result<MessageListing> {
        let mut listing = self.store.messages(project, page).await?;
        if project.is_some() {
            listing.messages = listing.messages.into_iter().map(|message| message.relative_to(project)).collect();
        }
        Ok(listing)
    }

    /// Returns the hooks, if they have one for this point.
    fn hooks(&self, point: HookPoint) -> Option<&dyn Hooks> {
        self.extensions.hooks.as_deref().filter(|hooks| hooks.has_hook(point))
    }

    /// Deletes these messages concurrently. Publishes those that were deleted, also if others failed.
    async fn remove_batch(&self, mailbox: &MailboxName, ids: &[MessageId], cause: DeletionCause) -> Result<usize> {
        let remove = |store: Arc<dyn Store>, copy: CopyKey| async move { store.remove(&copy.mailbox, copy.id).await };
        let copies = ids.iter().map(|&id| CopyKey { mailbox: mailbox.clone(), id });
        let (removed, last_error) = self.change_each(copies, remove).await;
        let mut removed: Vec<Summary> = removed.into_iter().flatten().collect();
        // The deletions finish in any order.
        removed.sort_unstable_by_key(|summary| summary.id);
        let count = removed.len();
        self.publish_deleted(cause, removed);
        last_error.map_or(Ok(count), Err)
    }

    /// Makes a change for each of these values concurrently. Returns the results of the changes that succeeded, and the last
    /// error.
    async fn change_each<V, T, F>(
        &self,
        values: impl IntoIterator<Item = V>,
        operation: impl Fn(Arc<dyn Store>, V) -> F,
    ) -> (Vec<T>, Option<StoreError>)
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let mut changes = JoinSet::new();
        for value in values {
            // Boxed, so that the task is compiled once for each type of result.
            let change: Pin<Box<dyn Future<Output = Result<T>> + Send>> =
                Box::pin(operation(self.store.clone(), value));
            changes.spawn(change);
        }
        let (mut done, mut last_error) = (Vec::new(), None);
        while let Some(ended) = changes.join_next().await {
            match ended {
                Ok(Ok(value)) => done.push(value),
                Ok(Err(error)) => last_error = Some(error),
                Err(panic) => last_error = Some(incomplete_error(&panic)),
            }
        }
        (done, last_error)
    }

    /// Deletes the messages of a mailbox up to and including the id `last`, in batches.
    async fn purge(&self, mailbox: &MailboxName, last: MessageId, cause: DeletionCause) -> Result<usize> {
        let (mut count, mut wait_budget) = (0, MAX_SUBSCRIBER_WAIT);
        loop {
            let removed = self.store.purge(mailbox, last, PURGE_BATCH_SIZE).await?;
            let deleted = removed.len();
            count += deleted;
            self.publish_deleted(cause, removed);
            if deleted < PURGE_BATCH_SIZE {
                return Ok(count);
            }
            wait_budget = self.hub.wait_for_subscribers(wait_budget).await;
        }
    }

    /// Deletes the messages of these mailboxes up to and including the id `last`, in all mailboxes concurrently.
    async fn purge_each(
        self: &Arc<Self>,
        mailboxes: Vec<MailboxName>,
        last: MessageId,
        cause: DeletionCause,
    ) -> Result<usize> {
        let purge = |_, mailbox: MailboxName| {
            let inner = self.clone();
            async move { inner.purge(&mailbox, last, cause).await }
        };
        let (counts, last_error) = self.change_each(mailboxes, purge).await;
        last_error.map_or(Ok(counts.into_iter().sum()), Err)
    }
}
