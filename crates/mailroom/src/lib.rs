//! The mailroom: a server's only way into its store.
//!
//! Receiving protocols hand mail in here, readers ask here, and every change of what is held is told to the world from
//! here. [`Mailroom`] ties the pieces together: [`policy`] decides, [`hooks`] may overrule, the store keeps, [`events`]
//! tells. No protocol and no wire format is known in this crate.
//!
//! Several nodes may share a store, each with a mailroom. What happens in it is then told by the feed of the store, to all of
//! them in the same order; see [`Mailroom::follow`].

mod arrivals;
mod counters;
mod delivery;
pub mod events;
pub mod hooks;
pub mod policy;
mod publish;
mod retention;
mod run_to_completion;
pub mod store_error_log;
mod wait_registry;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use restante_journal::Journal;
use restante_mail::address::Address;
use restante_mail::message::{MessageId, Source, Summary};
use restante_mail::naming::{MailboxName, NameError, Naming};
use restante_store::feed::Feed;
use restante_store::{Listing, MailboxState, Result, Store, Usage, Version};
/// What readers ask with, and what they get when the store cannot answer.
pub use restante_store::{MailboxPage, MessageSelector, Page, StoreError};
use tokio::task::JoinSet;
use tokio::time::timeout;

pub use arrivals::Arrivals;
use counters::Counters;
pub use counters::{Counts, DeletionCause};
pub use delivery::DeliveryOutcome;
use events::{Hub, Position, Subscription};
use hooks::{Extensions, HookPoint, Hooks};
use policy::Policy;
use run_to_completion::{incomplete_error, run_to_completion};
use wait_registry::WaitRegistry;

/// How long the store may take to return its usage. Health checks use it, and their timeouts are about as short by default.
const USAGE_TIMEOUT: Duration = Duration::from_secs(2);

/// How many messages of a mailbox go at once; deliveries take their turn in between.
const PURGE_BATCH_SIZE: usize = 1000;

/// How many changes are under way at once when somebody deletes or marks many messages. The store makes them last together,
/// so the more the faster; deliveries take their turn in between.
const CHANGE_BATCH_SIZE: usize = 500;

/// How long somebody who deletes many messages waits in all, so that those who listen can hear of each of them.
const MAX_SUBSCRIBER_WAIT: Duration = Duration::from_secs(5);

/// What a mailroom is told at its start.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The host's name in the Received lines.
    pub domain: String,
    /// How addresses become mailbox names.
    pub naming: Naming,
    /// Who may send, who may receive, and what is kept.
    pub policy: Policy,
    /// How many stored messages a new listener gets replayed.
    pub history: usize,
}

/// See the crate's documentation.
pub struct Mailroom {
    settings: Settings,
    inner: Arc<Inner>,
    journal: Option<Arc<dyn Journal>>,
    /// What others tell of the store, until somebody follows it.
    feed: Mutex<Option<Feed>>,
}

/// Where the store is changed and the change is told. Shared with the changes that are under way, which outlive the
/// caller who asked for them.
struct Inner {
    store: Arc<dyn Store>,
    extensions: Extensions,
    hub: Arc<Hub>,
    wait_registry: Arc<WaitRegistry>,
    counters: Counters,
    /// Whether others change the store as well. Its feed then tells of all changes, also of those that are made here.
    is_shared: bool,
}

impl Mailroom {
    /// A mailroom over this store.
    pub fn new(settings: Settings, store: Arc<dyn Store>, extensions: Extensions) -> Self {
        let feed = store.feed();
        let is_shared = feed.is_some();
        let hub = if is_shared { Hub::for_shared_store(settings.history) } else { Hub::new(settings.history) };
        let (waiters, tally) = (Arc::default(), Counters::default());
        let desk = Arc::new(Inner { store, extensions, hub, wait_registry: waiters, counters: tally, is_shared });
        Self { settings, inner: desk, journal: None, feed: Mutex::new(feed) }
    }

    /// Whether other nodes change the store as well.
    pub fn is_shared(&self) -> bool {
        self.inner.is_shared
    }

    /// The same with a journal, in which those who bring mail note what was said.
    #[must_use]
    pub fn with_journal(self, journal: Arc<dyn Journal>) -> Self {
        Self { journal: Some(journal), ..self }
    }

    /// The journal, where one is kept.
    pub fn journal(&self) -> Option<&Arc<dyn Journal>> {
        self.journal.as_ref()
    }

    /// The mailbox that a reader means by a name or an address.
    pub fn mailbox(&self, text: &str) -> std::result::Result<MailboxName, NameError> {
        self.settings.naming.parse_mailbox(text)
    }

    /// An address whose mail comes to this mailbox, if there can be one.
    pub fn address_of(&self, mailbox: &MailboxName) -> Option<Address> {
        self.settings.naming.address_for(mailbox, self.domain())
    }

    /// The host's name.
    pub fn domain(&self) -> &str {
        &self.settings.domain
    }

    /// The mailbox of a recipient.
    pub fn mailbox_of(&self, recipient: &Address) -> std::result::Result<MailboxName, NameError> {
        self.settings.naming.mailbox_for(recipient)
    }

    /// See [`Store::version`].
    pub async fn version(&self, mailbox: &MailboxName) -> Result<Version> {
        self.inner.store.version(mailbox).await
    }

    /// See [`Store::list`].
    pub async fn list(&self, mailbox: &MailboxName, page: Page) -> Result<Listing> {
        self.inner.store.list(mailbox, page).await
    }

    /// See [`Store::find`].
    pub async fn find(&self, mailbox: &MailboxName, which: MessageSelector) -> Result<Option<Summary>> {
        self.inner.store.find(mailbox, which).await
    }

    /// See [`Store::source`].
    pub async fn source(&self, mailbox: &MailboxName, id: MessageId) -> Result<Option<Source>> {
        self.inner.store.source(mailbox, id).await
    }

    /// See [`Store::mailboxes`].
    pub async fn mailboxes(&self, page: MailboxPage) -> Result<Vec<MailboxState>> {
        self.inner.store.mailboxes(page).await
    }

    /// See [`Store::last_id`].
    pub async fn last_id(&self) -> Result<MessageId> {
        self.inner.store.last_id().await
    }

    /// Returns [`Store::usage`]. Returns [`StoreError::Unavailable`] if the store does not answer within two seconds. The
    /// query still runs to completion: a remote store notices a dead connection that way, and opens another one.
    pub async fn usage(&self) -> Result<Usage> {
        let desk = self.inner.clone();
        let query = run_to_completion(async move { desk.store.usage().await });
        let too_slow = |_| StoreError::Unavailable(format!("no answer within {USAGE_TIMEOUT:?}"));
        timeout(USAGE_TIMEOUT, query).await.map_err(too_slow)?
    }

    /// Marks a message as read or unread; false when there is none.
    pub async fn set_seen(&self, mailbox: &MailboxName, id: MessageId, seen: bool) -> Result<bool> {
        let (desk, mailbox) = (self.inner.clone(), mailbox.clone());
        let change = async move {
            let was_there = desk.store.set_seen(&mailbox, id, seen).await?;
            if was_there {
                desk.publish_seen(&mailbox, id, seen);
            }
            Ok(was_there)
        };
        run_to_completion(change).await
    }

    /// Deletes a message; false when there is none.
    pub async fn remove(&self, mailbox: &MailboxName, id: MessageId) -> Result<bool> {
        let (desk, mailbox) = (self.inner.clone(), mailbox.clone());
        let change = async move {
            let removed = desk.store.remove(&mailbox, id).await?;
            let was_there = removed.is_some();
            desk.publish_deleted(DeletionCause::Request, removed);
            Ok(was_there)
        };
        run_to_completion(change).await
    }

    /// Marks messages as read or unread; returns how many of them were there. After a failure, some of them are marked.
    pub async fn set_seen_all(&self, mailbox: &MailboxName, ids: Vec<MessageId>, seen: bool) -> Result<usize> {
        let (desk, mailbox) = (self.inner.clone(), mailbox.clone());
        let change = async move {
            let mut count = 0;
            for step in ids.chunks(CHANGE_BATCH_SIZE) {
                let mark = |store: Arc<dyn Store>, mailbox, id| async move {
                    let was_there = store.set_seen(&mailbox, id, seen).await?;
                    Ok(was_there.then_some(id))
                };
                let (marked, failure) = desk.change_each(&mailbox, step, mark).await;
                for id in marked.into_iter().flatten() {
                    count += 1;
                    desk.publish_seen(&mailbox, id, seen);
                }
                failure.map_or(Ok(()), Err)?;
            }
            Ok(count)
        };
        run_to_completion(change).await
    }

    /// Deletes messages of a mailbox, for this reason; returns how many of them were there. After a failure, some of
    /// them are gone.
    pub async fn remove_all(&self, mailbox: &MailboxName, ids: Vec<MessageId>, cause: DeletionCause) -> Result<usize> {
        let (desk, mailbox) = (self.inner.clone(), mailbox.clone());
        let change = async move {
            let mut count = 0;
            let mut patience = MAX_SUBSCRIBER_WAIT;
            for step in ids.chunks(CHANGE_BATCH_SIZE) {
                if count > 0 {
                    patience = desk.hub.wait_for_subscribers(patience).await;
                }
                count += desk.remove_batch(&mailbox, step, cause).await?;
            }
            Ok(count)
        };
        run_to_completion(change).await
    }

    /// Deletes everything in a mailbox; returns how much that was.
    pub async fn purge(&self, mailbox: &MailboxName) -> Result<usize> {
        let (desk, mailbox) = (self.inner.clone(), mailbox.clone());
        let change = async move {
            // What arrives from now on stays.
            let Some(latest) = desk.store.find(&mailbox, MessageSelector::Latest).await? else { return Ok(0) };
            desk.purge(&mailbox, latest.id).await
        };
        run_to_completion(change).await
    }

    /// Deletes everything in the mailboxes that `concerned` names; returns how much that was. After a failure, some of it
    /// is gone.
    pub async fn purge_everything(&self, concerned: impl Fn(&MailboxName) -> bool + Send + 'static) -> Result<usize> {
        let desk = self.inner.clone();
        let change = async move {
            // What arrives from now on stays.
            let last = desk.store.last_id().await?;
            let (mut count, mut patience) = (0, MAX_SUBSCRIBER_WAIT);
            let mut page = MailboxPage { limit: CHANGE_BATCH_SIZE, ..MailboxPage::ALL };
            loop {
                let mut names: Vec<_> =
                    desk.store.mailboxes(page.clone()).await?.into_iter().map(|of| of.name).collect();
                let Some(furthest) = names.last() else { return Ok(count) };
                page.after = furthest.to_string();
                names.retain(&concerned);
                count += desk.purge_each(names, last).await?;
                patience = desk.hub.wait_for_subscribers(patience).await;
            }
        };
        run_to_completion(change).await
    }

    /// What has happened since the start, in numbers.
    pub fn counts(&self) -> Counts {
        self.inner.counters.counts()
    }

    /// Listens to one mailbox, or to all of them: first to the last stored messages that are still there, oldest first, and
    /// then to everything that happens from now on. A listener who was cut off says where, and hears what happened since
    /// instead of the last messages, if that is still known. Called within a runtime, which does the telling.
    pub fn subscribe(&self, topic: Option<MailboxName>, resume: Option<Position>) -> Subscription {
        self.inner.hub.subscribe(topic, resume)
    }
}

impl Inner {
    /// The hooks, where they have something to say at this point.
    fn hooks(&self, point: HookPoint) -> Option<&dyn Hooks> {
        self.extensions.hooks.as_deref().filter(|hooks| hooks.has_hook(point))
    }

    /// Removes these messages at the same time, and tells of all that are gone then, also when some could not be removed.
    async fn remove_batch(&self, mailbox: &MailboxName, ids: &[MessageId], cause: DeletionCause) -> Result<usize> {
        let remove = |store: Arc<dyn Store>, mailbox, id| async move { store.remove(&mailbox, id).await };
        let (removed, failure) = self.change_each(mailbox, ids, remove).await;
        let mut removed: Vec<Summary> = removed.into_iter().flatten().collect();
        // They end in any order.
        removed.sort_unstable_by_key(|summary| summary.id);
        let count = removed.len();
        self.publish_deleted(cause, removed);
        failure.map_or(Ok(count), Err)
    }

    /// Changes each of these messages, all at the same time. What was done comes back also when some could not be changed.
    async fn change_each<T, F>(
        &self,
        mailbox: &MailboxName,
        ids: &[MessageId],
        change: impl Fn(Arc<dyn Store>, MailboxName, MessageId) -> F,
    ) -> (Vec<T>, Option<StoreError>)
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let mut changes = JoinSet::new();
        for &id in ids {
            changes.spawn(change(self.store.clone(), mailbox.clone(), id));
        }
        let (mut done, mut failure) = (Vec::new(), None);
        while let Some(ended) = changes.join_next().await {
            match ended {
                Ok(Ok(one)) => done.push(one),
                Ok(Err(error)) => failure = Some(error),
                Err(panic) => failure = Some(incomplete_error(&panic)),
            }
        }
        (done, failure)
    }

    /// Deletes the messages of a mailbox up to this one, in steps.
    async fn purge(&self, mailbox: &MailboxName, last: MessageId) -> Result<usize> {
        let (mut count, mut patience) = (0, MAX_SUBSCRIBER_WAIT);
        loop {
            let removed = self.store.purge(mailbox, last, PURGE_BATCH_SIZE).await?;
            let step = removed.len();
            count += step;
            self.publish_deleted(DeletionCause::Request, removed);
            if step < PURGE_BATCH_SIZE {
                return Ok(count);
            }
            patience = self.hub.wait_for_subscribers(patience).await;
        }
    }

    /// Deletes the messages of these mailboxes up to this one, in all of them at the same time.
    async fn purge_each(self: &Arc<Self>, mailboxes: Vec<MailboxName>, last: MessageId) -> Result<usize> {
        let mut purges = JoinSet::new();
        for mailbox in mailboxes {
            let desk = self.clone();
            purges.spawn(async move { desk.purge(&mailbox, last).await });
        }
        let (mut count, mut failure) = (0, None);
        while let Some(ended) = purges.join_next().await {
            match ended {
                Ok(Ok(some)) => count += some,
                Ok(Err(error)) => failure = Some(error),
                Err(panic) => failure = Some(incomplete_error(&panic)),
            }
        }
        failure.map_or(Ok(count), Err)
    }
}
