//! A node: an IMAP server with its mailroom, and changes that do not come from IMAP.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use restante_auth::AuthService;
use restante_mail::address::{Address, Alphabet};
use restante_mail::envelope::{Envelope, Peer, Recipient};
use restante_mail::naming::{MailboxName, Naming};
use restante_mail::tags::Tags;
use restante_mail_server::imap::{self, FolderNotes, Server};
use restante_mail_server::{ListenerContext, MailboxLogin};
use restante_mailroom::hooks::Extensions;
use restante_mailroom::{CopyKey, DeletionCause, DeliveryOutcome, Mailroom, Settings};
use restante_metrics::Protocol;
use restante_net::{Budget, ConnectionLimits, Shutdown, ShutdownTrigger, Stream};
use restante_store::{Limits, Store};
use restante_teststore::Node as SharedNode;
use tokio::net::UnixStream;
use tokio::task::JoinSet;

use crate::client::Client;
use crate::command::{FlagChange, FlagOperation, message_of};
use crate::contents::Contents;
use crate::random::Random;
use crate::session::{AddedMessage, ConditionalChange, Effects};
use crate::view::FlagSet;

/// The mailbox of all clients.
const MAILBOX: &str = "bob";
/// More than the test needs.
const MEMORY_BYTES: usize = 64 << 20;

/// An IMAP server with its mailroom.
pub(crate) struct TestNode {
    pub(crate) mailroom: Arc<Mailroom>,
    server: Arc<Server>,
    /// The node of the store, if its feed can be held back.
    feed: Option<Arc<SharedNode>>,
    shutdown: Shutdown,
    _trigger: ShutdownTrigger,
    /// The task that reads the feed. Aborted when the node is dropped.
    _feed_reader: JoinSet<()>,
}

/// A change that does not come from IMAP.
#[derive(Clone, Debug)]
pub(crate) enum OtherChange {
    Deliver {
        subject: String,
    },
    Delete(Vec<u32>),
    DeleteLikePop3(Vec<u32>),
    Purge,
    SetSeen(Vec<u32>, bool),
    SetTags(Vec<u32>, &'static str),
    /// The feed of this node is held back.
    HoldFeed,
    ReleaseFeed,
    /// The node misses the changes that were held back.
    LoseFeed,
}

impl OtherChange {
    /// Chooses a change of a mailbox with these contents.
    pub(crate) fn random(random: &mut Random, contents: &Contents, can_hold: bool, subject: String) -> Self {
        let all: Vec<u32> = contents.messages.keys().copied().collect();
        if all.is_empty() {
            return Self::Deliver { subject };
        }
        let uids = all[random.part_of(0..all.len())].to_vec();
        match random.below(100) {
            40..50 => Self::Delete(vec![uids[0]]),
            50..54 => Self::DeleteLikePop3(uids),
            54..55 => Self::Purge,
            55..70 => Self::SetSeen(uids, random.one_in(2)),
            70..85 => Self::SetTags(uids, random.choose(&["", "red", "blue", "red blue"])),
            85..92 if can_hold => Self::HoldFeed,
            92..96 if can_hold => Self::ReleaseFeed,
            96..98 if can_hold => Self::LoseFeed,
            _ => Self::Deliver { subject },
        }
    }
}

impl TestNode {
    /// Starts a node. `feed` is the node of a shared store in memory.
    pub(crate) async fn start(store: Arc<dyn Store>, limits: Limits, feed: Option<Arc<SharedNode>>) -> Self {
        let settings = Settings { limits, ..Settings::default() };
        let mailroom = Arc::new(Mailroom::new(settings, store, Extensions::default()));
        mailroom.read_feed_backlog().await;
        let mut feed_reader = JoinSet::new();
        let shared_mailroom = mailroom.clone();
        feed_reader.spawn(async move { shared_mailroom.follow_feed().await });
        let context = ListenerContext {
            protocol: Protocol::Imap,
            mailroom: mailroom.clone(),
            tls: None,
            implicit_tls: false,
            metrics: Arc::default(),
            idle_timeout: Duration::from_mins(5),
            netdebug: false,
            session_count: Arc::default(),
            store_errors: Arc::default(),
        };
        let settings = restante_proto::imap::Settings {
            domain: "mx.test".to_owned(),
            starttls: false,
            max_bad_commands: 1,
            max_message_bytes: 1 << 20,
        };
        let auth = AuthService::open(restante_auth::Settings::default()).unwrap();
        let server = Arc::new(imap::Server {
            context,
            settings: Arc::new(settings),
            login: Arc::new(MailboxLogin::new("imap.credentials", Vec::new(), auth)),
            folders: Arc::new(FolderNotes::default()),
            index_budget: Budget::new(MEMORY_BYTES),
            message_budget: Budget::new(MEMORY_BYTES),
            lists: Arc::default(),
            session_uid_validity: Arc::default(),
        });
        let (trigger, shutdown) = ShutdownTrigger::new();
        Self { mailroom, server, feed, shutdown, _trigger: trigger, _feed_reader: feed_reader }
    }

    pub(crate) fn connect(&self) -> Client {
        let (client_end, server_end) = UnixStream::pair().unwrap();
        let admission = ConnectionLimits::new(1, None).admit();
        let ip: Option<IpAddr> = None;
        tokio::spawn(self.server.clone().serve(Stream::Unix(server_end), ip, admission, self.shutdown.clone()));
        Client::new(client_end)
    }

    pub(crate) fn mailbox(&self) -> MailboxName {
        self.mailroom.mailbox(MAILBOX).unwrap()
    }

    pub(crate) async fn contents(&self) -> Contents {
        Contents::read(&self.mailroom, &self.mailbox()).await
    }

    pub(crate) fn can_hold_feed(&self) -> bool {
        self.feed.is_some()
    }

    /// Sends everything to the node that was held back.
    pub(crate) async fn release_feed(&self) {
        if let Some(feed) = &self.feed {
            feed.release().await;
        }
    }

    /// Makes a change.
    pub(crate) async fn change(&self, change: &OtherChange, contents: &Contents) -> Effects {
        let mut effects = Effects::default();
        let mailroom = &self.mailroom;
        let ids = |uids: &[u32]| uids.iter().map(|uid| contents.messages[uid].id).collect::<Vec<_>>();
        let copies = |uids: &[u32]| -> Vec<CopyKey> {
            ids(uids).into_iter().map(|id| CopyKey { mailbox: self.mailbox(), id }).collect()
        };
        let all_change = |uids: &[u32], operation, flags: &[&str]| {
            let flags: FlagSet = flags.iter().map(|flag| (*flag).to_owned()).collect();
            let conditional = ConditionalChange { change: FlagChange { operation, flags }, unchanged_since: None };
            uids.iter().map(|&uid| (uid, conditional.clone())).collect()
        };
        match change {
            OtherChange::Deliver { subject } => {
                let uid = self.deliver(subject).await;
                effects.added.insert(uid, AddedMessage::Delivered { subject: subject.clone() });
            }
            OtherChange::Delete(uids) => {
                for id in ids(uids) {
                    mailroom.remove(&self.mailbox(), id).await.unwrap();
                }
                effects.removed = uids.iter().copied().collect();
            }
            OtherChange::DeleteLikePop3(uids) => {
                mailroom.remove_all(&self.mailbox(), ids(uids), DeletionCause::Collected).await.unwrap();
                effects.removed = uids.iter().copied().collect();
            }
            OtherChange::Purge => {
                mailroom.purge(&self.mailbox()).await.unwrap();
                effects.removed = contents.messages.keys().copied().collect();
            }
            OtherChange::SetSeen(uids, seen) => {
                mailroom.mark_copies(copies(uids), *seen).await.unwrap();
                let operation = if *seen { FlagOperation::Add } else { FlagOperation::Remove };
                effects.flag_changes = all_change(uids, operation, &["\\Seen"]);
            }
            OtherChange::SetTags(uids, tags) => {
                let tags: Vec<&str> = tags.split_whitespace().collect();
                mailroom.set_tags(copies(uids), Tags::new(tags.iter().copied()).unwrap()).await.unwrap();
                effects.flag_changes = all_change(uids, FlagOperation::ReplaceKeywords, &tags);
            }
            OtherChange::HoldFeed => self.shared().hold().await,
            OtherChange::ReleaseFeed => self.shared().release().await,
            OtherChange::LoseFeed => self.shared().discard_held().await,
        }
        effects
    }

    fn shared(&self) -> &SharedNode {
        self.feed.as_ref().expect("only chosen if the feed can be held back")
    }

    /// Delivers a message. Returns its UID.
    async fn deliver(&self, subject: &str) -> u32 {
        let address = Address::parse(&format!("{MAILBOX}@x.org"), Alphabet::Ascii).unwrap();
        let envelope = Envelope {
            peer: Peer { ip: None, helo: "client.test".into() },
            login: None,
            key: None,
            listener: None,
            from: None,
            recipients: vec![Recipient::new(address, Naming::Local).unwrap()],
        };
        match self.mailroom.deliver(&envelope, message_of(subject).into()).await.unwrap() {
            DeliveryOutcome::Stored(copies) => copies[0].number,
            outcome => panic!("{outcome:?}"),
        }
    }
}
