//! Access of scripts to the mailroom. Script threads block while a task of the runtime performs the request. They never
//! own the mailroom: they may outlive the runtime, and dropping the last reference closes the store.

use std::fmt::Display;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::RwLock;
use restante_mail::message::{Message, MessageId, Source, Summary};
use restante_mail::naming::{MailboxName, Naming};
use restante_mailroom::{Mailroom, MessageSelector, Page};
use tokio::runtime::Handle;

use crate::services::{MailAccess, NO_SUCH_MESSAGE, Release, Releaser};

/// The error after the shutdown.
const UNREACHABLE: &str = "the stored messages are no longer accessible";

/// The stored messages, while the mailroom exists.
pub(crate) struct StoredMail {
    naming: Naming,
    connection: RwLock<Connection>,
    /// The relay, if it is configured.
    relay: OnceLock<Arc<dyn Releaser>>,
}

/// The connection to the mailroom.
#[derive(Clone)]
enum Connection {
    /// There is no mailroom yet.
    NotConnected,
    /// The mailroom owns its hooks, and so this object. A strong reference would be a cycle.
    Connected(Weak<Mailroom>, Handle),
    /// The server is shutting down.
    Closed,
}

impl StoredMail {
    pub(crate) fn new(naming: Naming) -> Self {
        Self { naming, connection: RwLock::new(Connection::NotConnected), relay: OnceLock::new() }
    }

    /// Connects to the mailroom. Must be called within the Tokio runtime.
    pub(crate) fn connect(&self, mailroom: &Arc<Mailroom>) {
        self.set_connection(Connection::Connected(Arc::downgrade(mailroom), Handle::current()));
    }

    /// Connects to the relay. Only the first call has an effect.
    pub(crate) fn connect_relay(&self, relay: Arc<dyn Releaser>) {
        drop(self.relay.set(relay));
    }

    /// Disconnects from the mailroom.
    pub(crate) fn disconnect(&self) {
        self.set_connection(Connection::Closed);
    }

    fn set_connection(&self, connection: Connection) {
        *self.connection.write() = connection;
    }

    fn connection(&self) -> Result<(Weak<Mailroom>, Handle), String> {
        match &*self.connection.read() {
            Connection::NotConnected => {
                Err("the stored messages are not accessible while the server starts".to_owned())
            }
            Connection::Connected(mailroom, runtime) => Ok((mailroom.clone(), runtime.clone())),
            Connection::Closed => Err(UNREACHABLE.to_owned()),
        }
    }

    /// Runs a request of the mailroom and blocks until it completes or `timeout` passes. If the runtime ends, the task
    /// is dropped and the request fails.
    fn block_on<T, E, F>(
        &self,
        timeout: Duration,
        request: impl FnOnce(Arc<Mailroom>) -> F + Send + 'static,
    ) -> Result<T, String>
    where
        T: Send + 'static,
        E: Display + Send + 'static,
        F: Future<Output = Result<T, E>> + Send,
    {
        let (mailroom, runtime) = self.connection()?;
        let (sender, receiver) = sync_channel(1);
        let task = runtime.spawn(async move {
            let Some(mailroom) = mailroom.upgrade() else { return };
            // The receiver is gone after a timeout.
            drop(sender.send(request(mailroom).await));
        });
        match receiver.recv_timeout(timeout) {
            Ok(result) => result.map_err(to_message),
            Err(RecvTimeoutError::Timeout) => {
                task.abort();
                Err("the store did not respond in time".to_owned())
            }
            Err(RecvTimeoutError::Disconnected) => Err(UNREACHABLE.to_owned()),
        }
    }
}

impl MailAccess for StoredMail {
    fn mailbox(&self, text: &str) -> Result<MailboxName, String> {
        self.connection()?;
        self.naming.parse_mailbox(text).map_err(to_message)
    }

    fn list(
        &self,
        mailbox: &MailboxName,
        after: Option<MessageId>,
        limit: usize,
        timeout: Duration,
    ) -> Result<Vec<Summary>, String> {
        let (mailbox, page) = (mailbox.clone(), Page { limit: Some(limit), before: None, after });
        let listing = self.block_on(timeout, move |mailroom| async move { mailroom.list(&mailbox, page).await })?;
        Ok(listing.messages)
    }

    fn find(&self, mailbox: &MailboxName, id: MessageId, timeout: Duration) -> Result<Option<Summary>, String> {
        let mailbox = mailbox.clone();
        self.block_on(timeout, move |mailroom| async move { mailroom.find(&mailbox, MessageSelector::Id(id)).await })
    }

    fn latest(&self, mailbox: &MailboxName, timeout: Duration) -> Result<Option<Summary>, String> {
        let mailbox = mailbox.clone();
        self.block_on(timeout, move |mailroom| async move { mailroom.find(&mailbox, MessageSelector::Latest).await })
    }

    fn source(&self, mailbox: &MailboxName, id: MessageId, timeout: Duration) -> Result<Option<Bytes>, String> {
        let mailbox = mailbox.clone();
        let source = self.block_on(timeout, move |mailroom| async move { mailroom.source(&mailbox, id).await })?;
        Ok(source.as_ref().map(Source::to_bytes))
    }

    fn delete(&self, mailbox: &MailboxName, id: MessageId, timeout: Duration) -> Result<bool, String> {
        let mailbox = mailbox.clone();
        self.block_on(timeout, move |mailroom| async move { mailroom.remove(&mailbox, id).await })
    }

    fn release(
        &self,
        mailbox: &MailboxName,
        id: MessageId,
        release: Release,
        timeout: Duration,
    ) -> Result<String, String> {
        let relay = self.relay.get().cloned().ok_or("no relay target is configured: set relay.targets")?;
        let mailbox = mailbox.clone();
        self.block_on(timeout, move |mailroom| async move {
            let found = mailroom.find(&mailbox, MessageSelector::Id(id)).await.map_err(to_message)?;
            // The message made of this copy: by default it is sent to the recipients whose mail is in this mailbox.
            let message = Message::group(found).pop().ok_or(NO_SUCH_MESSAGE)?;
            relay.release(message, release).await
        })
    }
}

fn to_message(error: impl Display) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use std::thread;

    use restante_mail::details::Details;
    use restante_mail::message::{Flags, Headline};
    use restante_mail::tags::Tags;
    use restante_mailroom::hooks::Extensions;
    use restante_mailroom::{Settings, StoreError};
    use restante_store::memory::MemoryStore;
    use restante_store::{Limits, NewCopy, NewMessage, Store as _};

    use super::*;

    const TIMEOUT: Duration = Duration::from_mins(1);

    /// A relay that returns what it would send.
    struct FakeRelay;

    #[async_trait::async_trait]
    impl Releaser for FakeRelay {
        async fn release(&self, message: Message, release: Release) -> Result<String, String> {
            let mailboxes: Vec<_> = message.mailboxes().map(MailboxName::as_str).collect();
            Ok(format!("{} {} {release:?}", message.first().headline.subject(), mailboxes.join(" ")))
        }
    }

    #[test]
    fn fails_before_it_is_connected() {
        let mail = StoredMail::new(Naming::Local);
        assert!(mail.mailbox("bob").unwrap_err().contains("while the server starts"));
    }

    #[tokio::test]
    async fn lists_reads_releases_and_deletes() {
        let store = Arc::new(MemoryStore::new(Limits::default()));
        for subject in ["one", "two", "three"] {
            let copies = vec![NewCopy {
                mailbox: "bob".to_owned().into(),
                seen: false,
                flags: Flags::default(),
                tags: Tags::default(),
                details: Details::default(),
                trace: Some(Bytes::from_static(b"trace ")),
            }];
            let headline = Headline::new("", [], subject);
            let received = std::time::SystemTime::now().try_into().unwrap();
            let body = Bytes::from_static(b"body");
            store.append(NewMessage { received, headline, body, copies }).await.unwrap();
        }
        let mailroom = Arc::new(Mailroom::new(Settings::default(), store, Extensions::default()));
        let mail = Arc::new(StoredMail::new(Naming::Local));
        mail.connect(&mailroom);
        let blocking = tokio::task::spawn_blocking(move || {
            let bob = mail.mailbox("Bob@example.com").unwrap();
            let all = mail.list(&bob, None, 10, TIMEOUT).unwrap();
            let subjects: Vec<_> = all.iter().map(|summary| summary.headline.subject()).collect();
            assert_eq!(subjects, ["one", "two", "three"]);
            let (first, second) = (all[0].id, all[1].id);
            assert_eq!(mail.list(&bob, Some(first), 1, TIMEOUT).unwrap(), [all[1].clone()]);
            assert_eq!(mail.find(&bob, second, TIMEOUT).unwrap().as_ref(), Some(&all[1]));
            assert_eq!(mail.latest(&bob, TIMEOUT).unwrap().as_ref(), Some(&all[2]));
            assert_eq!(mail.source(&bob, second, TIMEOUT).unwrap().unwrap(), "trace body");
            let release = || Release { target: Some("main".to_owned()), recipients: vec!["a@x.org".to_owned()] };
            let unconfigured = mail.release(&bob, second, release(), TIMEOUT).unwrap_err();
            assert!(unconfigured.contains("set relay.targets"), "{unconfigured}");
            mail.connect_relay(Arc::new(FakeRelay));
            let released = mail.release(&bob, second, release(), TIMEOUT).unwrap();
            assert_eq!(released, format!("two bob {:?}", release()));
            assert!(mail.delete(&bob, second, TIMEOUT).unwrap());
            assert_eq!(mail.release(&bob, second, release(), TIMEOUT), Err(NO_SUCH_MESSAGE.to_owned()));
            assert!(!mail.delete(&bob, second, TIMEOUT).unwrap());
            assert_eq!(mail.find(&bob, second, TIMEOUT).unwrap(), None);
            assert_eq!(mail.source(&bob, second, TIMEOUT).unwrap(), None);
            mail
        });
        let mail = blocking.await.unwrap();
        mail.disconnect();
        assert_eq!(mail.mailbox("bob"), Err(UNREACHABLE.to_owned()));
        assert_eq!(mail.latest(&"bob".to_owned().into(), TIMEOUT), Err(UNREACHABLE.to_owned()));
    }

    #[test]
    fn end_of_the_runtime_fails_waiting_requests() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let mail = StoredMail::new(Naming::Local);
        let mailroom = Arc::new(empty_mailroom());
        {
            let _within = runtime.enter();
            mail.connect(&mailroom);
        }
        let bob: MailboxName = "bob".to_owned().into();
        thread::scope(|scope| {
            let waiting = scope.spawn(|| mail.block_on(TIMEOUT, never));
            // Wait until the task holds the mailroom and the thread blocks.
            while Arc::strong_count(&mailroom) == 1 {
                thread::yield_now();
            }
            runtime.shutdown_timeout(TIMEOUT);
            assert_eq!(waiting.join().unwrap(), Err(UNREACHABLE.to_owned()));
        });
        assert_eq!(Arc::strong_count(&mailroom), 1);
        assert_eq!(mail.list(&bob, None, 1, TIMEOUT), Err(UNREACHABLE.to_owned()), "there is no runtime");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn timeout_aborts_the_task() {
        let (mail, mailroom) = (StoredMail::new(Naming::Local), Arc::new(empty_mailroom()));
        mail.connect(&mailroom);
        let result = tokio::task::block_in_place(|| mail.block_on(Duration::from_millis(1), never));
        assert_eq!(result, Err("the store did not respond in time".to_owned()));
        while Arc::strong_count(&mailroom) > 1 {
            tokio::task::yield_now().await;
        }
    }

    /// Holds the mailroom and never completes.
    async fn never(mailroom: Arc<Mailroom>) -> Result<(), StoreError> {
        std::future::pending::<()>().await;
        drop(mailroom);
        Ok(())
    }

    fn empty_mailroom() -> Mailroom {
        let store = Arc::new(MemoryStore::new(Limits::default()));
        Mailroom::new(Settings::default(), store, Extensions::default())
    }
}
