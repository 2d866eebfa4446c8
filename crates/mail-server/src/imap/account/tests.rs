use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use restante_auth::{AuthService, Scopes};
use restante_mail::patterns::Patterns;
use restante_mail::tags::Tags;
use restante_mailroom::hooks::Extensions;
use restante_metrics::Protocol;
use restante_net::{Budget, ConnectionLimits, ShutdownTrigger, Stream};
use restante_proto::imap::Settings;
use restante_store::Limits;
use restante_store::memory::MemoryStore;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::time::Instant;

use super::*;
use crate::ListenerContext;
use crate::mailbox_login::MailboxLogin;

/// The timeout of a session.
const IDLE_TIMEOUT: Duration = Duration::from_mins(30);

/// Returns a server whose mailboxes have room for some messages, without accounts.
fn server(messages_per_mailbox: usize) -> Server {
    let limits = Limits { messages_per_mailbox, ..Limits::default() };
    let store = Arc::new(MemoryStore::new(limits.clone()));
    let settings = restante_mailroom::Settings { limits, ..restante_mailroom::Settings::default() };
    let auth = AuthService::open(restante_auth::Settings::default()).unwrap();
    Server {
        context: ListenerContext {
            protocol: Protocol::Imap,
            mailroom: Arc::new(Mailroom::new(settings, store, Extensions::default())),
            tls: None,
            implicit_tls: false,
            metrics: Arc::default(),
            idle_timeout: IDLE_TIMEOUT,
            netdebug: false,
            session_count: Arc::default(),
            store_errors: Arc::default(),
        },
        settings: Arc::new(Settings {
            domain: "mx.test".to_owned(),
            starttls: false,
            max_bad_commands: 20,
            max_message_bytes: 1_000_000,
        }),
        login: Arc::new(MailboxLogin::new("imap.credentials", Vec::new(), auth)),
        folders: Arc::default(),
        index_budget: Budget::new(1 << 20),
        message_budget: Budget::new(1 << 20),
        lists: Arc::default(),
        session_uid_validity: Arc::new(AtomicU32::new(100)),
    }
}

fn mailbox(name: &str) -> MailboxName {
    name.to_owned().into()
}

/// Stores messages, each in the mailbox of this name.
async fn store(server: &Server, names: &[&str]) {
    for name in names {
        let import = Import {
            mailbox: mailbox(name),
            received: Timestamp::now(),
            seen: false,
            flags: Flags::DELETED,
            tags: Tags::default(),
            message: Bytes::from_static(b"Subject: Hello\r\n\r\nHi\r\n"),
        };
        server.context.mailroom.import(import).await.unwrap();
    }
}

/// Returns an account without users and tokens.
fn anyone(name: &str) -> Account {
    Account { mailbox: mailbox(name), grant: Grant::EVERYTHING, sees_others: false }
}

/// Returns the account of a user with these rights in mailboxes that match a pattern.
fn user(name: &str, scopes: &[Scope], pattern: &str) -> Account {
    let patterns = Some(Patterns::from_iter([pattern]));
    Account { mailbox: mailbox(name), grant: Grant::new(name, scopes_of(scopes), patterns), sees_others: true }
}

/// Returns the account of a user with all rights in all mailboxes.
fn everything(name: &str) -> Account {
    let scopes = scopes_of(&[Scope::Read, Scope::Write]);
    Account { mailbox: mailbox(name), grant: Grant::new(name, scopes, None), sees_others: true }
}

fn scopes_of(scopes: &[Scope]) -> Scopes {
    scopes.iter().copied().collect()
}

impl Account {
    async fn try_perform(&self, server: &Server, operation: Operation) -> Result<Outcome, Refusal> {
        self.perform(server, None, operation).await.map_err(|failure| match failure {
            Failure::Refusal(refusal) => refusal,
            Failure::Store(error) => panic!("{error}"),
        })
    }

    async fn set_subscription(&self, server: &Server, mailbox: &str, is_subscribed: bool) -> Result<Outcome, Refusal> {
        self.try_perform(server, Operation::Subscribe { mailbox: mailbox.to_owned(), is_subscribed }).await
    }

    async fn try_create(&self, server: &Server, name: &str) -> Result<Outcome, Refusal> {
        self.try_perform(server, Operation::Create(name.to_owned())).await
    }

    async fn try_rename(&self, server: &Server, from: &str, to: &str) -> Result<Outcome, Refusal> {
        self.try_perform(server, Operation::Rename { from: from.to_owned(), to: to.to_owned() }).await
    }

    async fn quota_of(&self, server: &Server, name: &str) -> Result<Quota, Refusal> {
        match self.try_perform(server, Operation::Quota(name.to_owned())).await? {
            Outcome::Quota(quota) => Ok(quota),
            outcome => panic!("{outcome:?}"),
        }
    }

    async fn status_of(&self, server: &Server, name: &str) -> MailboxStatus {
        let items = vec![StatusItem::Size, StatusItem::Deleted];
        match self.try_perform(server, Operation::Status { mailbox: name.to_owned(), items }).await {
            Ok(Outcome::Status(status)) => status,
            outcome => panic!("{outcome:?}"),
        }
    }

    /// Returns the names of all mailboxes, those that are subscribed with a plus sign.
    async fn names(&self, server: &Server) -> Vec<String> {
        let Ok(Outcome::Folders(folders)) = self.try_perform(server, Operation::List).await else { panic!("no list") };
        let name = |folder: Folder| if folder.is_subscribed { format!("+{}", folder.name) } else { folder.name };
        folders.into_iter().map(name).collect()
    }
}

fn is_cannot(result: &Result<Outcome, Refusal>) -> bool {
    matches!(result, Err(Refusal::Cannot(_)))
}

#[tokio::test]
async fn each_folder_has_its_quota() {
    let server = server(5);
    store(&server, &["bob", "bob", "bob,Sent", "shop:bob"]).await;
    let bob = anyone("bob");
    for (name, messages) in [("INBOX", 2), ("Sent", 1)] {
        let quota = bob.quota_of(&server, name).await.unwrap();
        assert_eq!((quota.messages, quota.max_messages, quota.max_bytes), (messages, Some(5), None), "{name}");
    }
    assert_eq!(bob.quota_of(&server, "None").await, Err(Refusal::NoSuchMailbox));
    // INBOX of a login that may not read the mailbox of its name.
    let shopper = user("bob", &[Scope::Read], "shop:*");
    assert_eq!(shopper.quota_of(&server, "INBOX").await, Ok(Quota::default()));
    assert_eq!(shopper.quota_of(&server, "Sent").await, Err(Refusal::NoSuchMailbox));
    assert_eq!(anyone("ann").quota_of(&server, "Other Users/bob").await, Err(Refusal::NoSuchMailbox));
}

#[tokio::test]
async fn own_folders_are_subscribed_and_others_are_not() {
    let server = server(0);
    store(&server, &["ann", "bob", "bob,Sent"]).await;
    let (ann, bob) = (everything("ann"), everything("bob"));
    assert_eq!(bob.names(&server).await, ["All mail", "+INBOX", "Other Users/ann", "+Sent"]);
    assert_eq!(ann.names(&server).await, ["All mail", "+INBOX", "Other Users/bob", "Other Users/bob/Sent"]);

    // Own subscriptions and those of others are independent.
    for (name, is_subscribed) in [("Other Users/bob/Sent", true), ("Other Users/eve", true), ("INBOX", false)] {
        ann.set_subscription(&server, name, is_subscribed).await.unwrap();
    }
    bob.set_subscription(&server, "Sent", false).await.unwrap();
    let anns = ["All mail", "INBOX", "Other Users/bob", "+Other Users/bob/Sent", "+Other Users/eve"];
    assert_eq!(ann.names(&server).await, anns);
    assert_eq!(bob.names(&server).await, ["All mail", "+INBOX", "Other Users/ann", "+Other Users/eve", "Sent"]);
    ann.set_subscription(&server, "Other Users/bob/Sent", false).await.unwrap();
    ann.set_subscription(&server, "Other Users/eve", false).await.unwrap();
    assert_eq!(ann.names(&server).await, ["All mail", "INBOX", "Other Users/bob", "Other Users/bob/Sent"]);

    ann.set_subscription(&server, ALL_MAIL, false).await.unwrap();
    assert!(is_cannot(&ann.set_subscription(&server, ALL_MAIL, true).await));
}

#[tokio::test]
async fn ended_subscription_stays_ended() {
    let server = server(0);
    store(&server, &["bob,Sent"]).await;
    let bob = anyone("bob");
    bob.set_subscription(&server, "Sent", false).await.unwrap();
    bob.status_of(&server, "Sent").await;
    assert_eq!(bob.names(&server).await, ["+INBOX", "Sent"]);
    // It is kept when the folder is renamed.
    bob.try_rename(&server, "Sent", "Old").await.unwrap();
    assert_eq!(bob.names(&server).await, ["+INBOX", "Old"]);
    bob.set_subscription(&server, "Old", true).await.unwrap();
    assert_eq!(bob.names(&server).await, ["+INBOX", "+Old"]);
}

#[tokio::test]
async fn subscriptions_need_the_right_to_write() {
    let server = server(0);
    store(&server, &["bob,Sent"]).await;
    let bob = user("bob", &[Scope::Read], "bob");
    for name in ["INBOX", "Sent"] {
        assert_eq!(bob.set_subscription(&server, name, false).await, Err(Refusal::NotPermitted), "{name}");
        assert_eq!(bob.set_subscription(&server, name, true).await, Ok(Outcome::Done), "{name}");
    }
}

#[tokio::test]
async fn missing_folders_are_not_noted() {
    let server = server(0);
    let bob = anyone("bob");
    assert_eq!(bob.set_subscription(&server, "None", false).await, Ok(Outcome::Done));
    assert_eq!(bob.set_subscription(&server, "None", true).await, Err(Refusal::NoSuchMailbox));
    assert_eq!(server.folders.with_prefix(""), []);
}

#[tokio::test]
async fn status_of_all_mail_has_all_numbers() {
    let server = server(0);
    store(&server, &["bob", "shop:bob", "shop:ann,Sent"]).await;
    let ann = everything("ann");
    let status = ann.status_of(&server, ALL_MAIL).await;
    let bytes = status.bytes;
    assert_eq!((status.messages, status.deleted, status.next_uid, status.highest_modseq), (3, 3, 4, 3));
    let shopper = user("ann", &[Scope::Read], "shop:*");
    let status_in_project = shopper.status_of(&server, ALL_MAIL).await;
    assert_eq!((status_in_project.messages, status_in_project.deleted), (2, 2));
    assert!(bytes > status_in_project.bytes && status_in_project.bytes > 0);
    // It is not that of the store, and never the same again.
    assert_eq!((status.uid_validity, status_in_project.uid_validity), (100, 101));
}

#[tokio::test]
async fn rename_overwrites_nothing() {
    let server = server(0);
    store(&server, &["bob,Work", "bob,Work/2026", "bob,Job/2026"]).await;
    let bob = anyone("bob");
    let before = bob.names(&server).await;
    assert_eq!(bob.try_rename(&server, "Work", "Job").await, Err(Refusal::AlreadyExists));
    assert_eq!(bob.names(&server).await, before);
    bob.try_rename(&server, "Work", "Done").await.unwrap();
    assert_eq!(bob.names(&server).await, ["+Done", "+Done/2026", "+INBOX", "+Job/2026"]);
}

#[tokio::test]
async fn folders_do_not_get_names_of_other_mailboxes() {
    let server = server(0);
    store(&server, &["bob", "bob,Work"]).await;
    for account in [anyone("bob"), everything("bob")] {
        for name in ["Other Users", "All mail/a", "inbox/a"] {
            assert!(is_cannot(&account.try_create(&server, name).await), "{name}");
            assert!(is_cannot(&account.try_rename(&server, "Work", name).await), "{name}");
            assert!(is_cannot(&account.try_rename(&server, "INBOX", name).await), "{name}");
        }
        assert!(account.try_create(&server, ALL_MAIL).await.is_err());
    }
    everything("bob").try_create(&server, "Other Users/ann/New").await.unwrap();
    assert!(is_cannot(&everything("bob").try_create(&server, "Other Users/ann/All mail").await));
}

#[test]
fn login_opens_the_mailbox_of_its_name() {
    let server = server(0);
    let mailroom = &server.context.mailroom;
    let named = user("ann", &[Scope::Read], "shop:*").grant;
    let bad_name = |reason| Err(Refusal::Cannot(format!("Bad mailbox name: {reason}")));
    let folder = || bad_name("this is a folder, log in to its mailbox");
    let opened = |name: &str| Ok(mailbox(name));
    // The grant, whether it permits to read the mailbox of this name, the name and the mailbox.
    let table = [
        (&Grant::EVERYTHING, Some("bob"), "bob", opened("bob")),
        (&Grant::EVERYTHING, None, "", opened("inbox")),
        (&Grant::EVERYTHING, None, "first last", bad_name("the local part has a character that needs quotes")),
        (&Grant::EVERYTHING, Some("bob,Sent"), "bob,Sent", folder()),
        (&named, None, "first last", opened("shop:inbox")),
        (&named, None, "acme:bob", opened("acme:bob")),
        (&named, None, "acme:bob,Sent", folder()),
    ];
    for (grant, permitted, name, expected) in table {
        assert_eq!(mailbox_of_login(mailroom, grant, permitted.map(mailbox), name), expected, "{name}");
    }
}

/// Connects, sends commands, and returns how long the server waits for the next one.
async fn silence_after(commands: &str) -> Duration {
    let (mut client, stream) = UnixStream::pair().unwrap();
    let (_trigger, shutdown) = ShutdownTrigger::new();
    let admission = ConnectionLimits::new(1, None).admit();
    tokio::spawn(Arc::new(server(0)).serve(Stream::Unix(stream), None, admission, shutdown));
    let started = Instant::now();
    client.write_all(commands.as_bytes()).await.unwrap();
    client.read_to_end(&mut Vec::new()).await.unwrap();
    started.elapsed()
}

#[tokio::test(start_paused = true)]
async fn silent_client_is_disconnected_earlier_before_the_login() {
    let minutes = |silence: Duration| silence.as_secs() / 60;
    assert_eq!(minutes(silence_after("").await), 3);
    assert_eq!(minutes(silence_after("a NOOP\r\n").await), 3);
    assert_eq!(minutes(silence_after("a LOGIN bob x\r\n").await), 30);
}
