//! Tests of the relay as a whole, with a mailroom, a queue in memory and a receiving server.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use restante_mail::address::{Address, Alphabet};
use restante_mail::envelope::{Envelope, Peer, Recipient};
use restante_mail::message::Message;
use restante_mail::naming::Naming;
use restante_mailroom::hooks::Extensions;
use restante_mailroom::{Mailroom, MessageSelector};
use restante_store::Limits;
use restante_store::memory::MemoryStore;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

use restante_queue::{EntryControl as _, Limits as QueueLimits, Queue, SqliteQueue};

use crate::session::tests::test_target;
use crate::{
    Entry, EntryFilter, EntryState, ForwardRule, RecipientPatterns, Relay, ReleaseError, ReleaseRequest, Selection,
    Settings, Target,
};

/// How long a test waits for a condition.
const TIMEOUT: Duration = Duration::from_mins(1);

/// An SMTP server that accepts everything and closes a session after a number of messages.
struct Receiver {
    address: SocketAddr,
    /// The messages, each with the commands before it.
    messages: Arc<Mutex<Vec<String>>>,
}

impl Receiver {
    async fn start(messages_per_session: usize) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        Self::serve(listener, messages_per_session)
    }

    fn serve(listener: TcpListener, messages_per_session: usize) -> Self {
        let (address, messages) = (listener.local_addr().unwrap(), Arc::<Mutex<Vec<String>>>::default());
        let received = messages.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve_session(stream, messages_per_session, received.clone()));
            }
        });
        Self { address, messages }
    }

    /// Returns the recipients of all messages.
    fn recipients(&self) -> Vec<String> {
        let messages = self.messages.lock().unwrap();
        let recipient = |line: &str| Some(line.strip_prefix("RCPT TO:<")?.strip_suffix('>')?.to_owned());
        messages.iter().flat_map(|message| message.lines().filter_map(recipient).collect::<Vec<_>>()).collect()
    }
}

async fn serve_session(stream: TcpStream, messages_per_session: usize, messages: Arc<Mutex<Vec<String>>>) {
    let mut stream = BufReader::new(stream);
    let (mut text, mut count, mut is_content) = (String::new(), 0, false);
    let mut reply = "220 receiver.test\r\n";
    loop {
        if stream.write_all(reply.as_bytes()).await.is_err() {
            return;
        }
        let mut line = String::new();
        if stream.read_line(&mut line).await.is_ok_and(|length| length == 0) {
            return;
        }
        if count == messages_per_session {
            // The session is closed without a reply.
            return;
        }
        text.push_str(&line);
        reply = match line.trim_end() {
            "." if is_content => {
                messages.lock().unwrap().push(std::mem::take(&mut text).replace("\r\n", "\n"));
                (count, is_content) = (count + 1, false);
                "250 accepted\r\n"
            }
            _ if is_content => "",
            "DATA" => {
                is_content = true;
                "354 go on\r\n"
            }
            _ => "250 ok\r\n",
        };
    }
}

fn new_queue() -> Arc<SqliteQueue> {
    let limits = QueueLimits { max_waiting: 1000, max_finished: 1000 };
    Arc::new(SqliteQueue::in_memory(crate::QUEUE, limits).unwrap())
}

/// A relay with a mailroom.
struct Test {
    relay: Arc<Relay>,
    queue: Arc<SqliteQueue>,
    mailroom: Arc<Mailroom>,
}

impl Test {
    /// Starts a relay with one target, which allows recipients at `x.org`.
    async fn start(port: u16, rules: Vec<ForwardRule>) -> Self {
        let target = Target { port, allowed: RecipientPatterns::parse(["*@x.org"]).unwrap(), ..test_target() };
        let settings = Settings {
            targets: vec![target],
            rules,
            allow_private_addresses: true,
            give_up_after: Duration::from_hours(1),
            domain: "relay.test".to_owned(),
            ..Settings::default()
        };
        let queue = new_queue();
        let relay = Relay::new(settings, queue.clone());
        let extensions = Extensions { store_observers: vec![relay.clone()], ..Extensions::default() };
        let settings = restante_mailroom::Settings { domain: "relay.test".to_owned(), ..Default::default() };
        let mailroom = Arc::new(Mailroom::new(settings, Arc::new(MemoryStore::new(Limits::default())), extensions));
        relay.start(&mailroom).await.unwrap();
        Self { relay, queue, mailroom }
    }

    /// Delivers a message.
    async fn deliver(&self, to: &str, source: &str) {
        let address = |text: &str| Address::parse(text, Alphabet::Ascii).unwrap();
        let envelope = Envelope {
            from: Some(address("ann@x.org")),
            recipients: vec![Recipient::new(address(to), Naming::Local).unwrap()],
            peer: Peer { ip: None, helo: "client.test".to_owned() },
            login: None,
            key: None,
            listener: None,
        };
        self.mailroom.deliver(&envelope, source.to_owned().into()).await.unwrap();
    }

    async fn latest(&self) -> Message {
        self.mailroom.find_message(MessageSelector::Latest).await.unwrap().unwrap()
    }

    async fn release(&self, to: &[&str]) -> Result<Entry, ReleaseError> {
        self.release_with_prefix(to, "").await
    }

    async fn release_with_prefix(&self, to: &[&str], prefix: &str) -> Result<Entry, ReleaseError> {
        let request = ReleaseRequest {
            message: self.latest().await,
            target: None,
            recipients: to.iter().map(ToString::to_string).collect(),
            by: None,
            subject_prefix: prefix.to_owned(),
        };
        self.relay.release(request).await
    }

    /// Waits until all entries are in this state. Returns them, the oldest first.
    async fn wait_for(&self, count: usize, state: EntryState) -> Vec<Entry> {
        let start = std::time::Instant::now();
        loop {
            let mut entries = self.relay.entries(EntryFilter { limit: 1000, ..EntryFilter::default() }).await.unwrap();
            if entries.len() == count && entries.iter().all(|entry| entry.state == state) {
                entries.reverse();
                return entries;
            }
            assert!(start.elapsed() < TIMEOUT, "expected {count} entries {state:?}: {entries:?}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Shuts the relay down.
    async fn stop(self) {
        let relay = self.relay.clone();
        tokio::task::spawn_blocking(move || relay.shut_down(TIMEOUT)).await.unwrap();
    }
}

fn forward_everything() -> Vec<ForwardRule> {
    vec![ForwardRule { target: "test".to_owned(), ..ForwardRule::default() }]
}

#[tokio::test(flavor = "multi_thread")]
async fn forwards_messages_to_allowed_recipients() {
    let receiver = Receiver::start(usize::MAX).await;
    let test = Test::start(receiver.address.port(), forward_everything()).await;
    for to in ["bob@x.org", "eve@y.org", "carol@x.org"] {
        test.deliver(to, "Subject: hi\r\nBcc: hidden@z.org\r\n\r\nHello\r\n").await;
    }
    let entries = test.wait_for(2, EntryState::Delivered).await;
    assert_eq!(entries[0].last_reply, "250 accepted");
    assert_eq!(receiver.recipients(), ["bob@x.org", "carol@x.org"]);
    assert_eq!(test.relay.counts().recipients_not_allowed, 1);
    let message = receiver.messages.lock().unwrap()[0].clone();
    let identity = test.queue.identity().await.unwrap();
    let field = format!("\nX-Restante-Relay: {identity} relay.test\n");
    assert!(message.contains(&field) && !message.contains("hidden@z.org"), "{message}");
    assert!(test.relay.transcript(entries[0].id).await.unwrap().is_some_and(|transcript| !transcript.is_empty()));
    test.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn prefix_is_sent_before_the_subject() {
    let receiver = Receiver::start(usize::MAX).await;
    let test = Test::start(receiver.address.port(), Vec::new()).await;
    test.deliver("bob@x.org", "Subject: Hi\r\n\r\nHello\r\n").await;
    test.release_with_prefix(&[], " [QA]").await.unwrap();
    test.wait_for(1, EntryState::Delivered).await;
    let sent = receiver.messages.lock().unwrap()[0].clone();
    assert!(sent.contains("Subject: [QA] Hi"), "{sent}");
    test.stop().await;
}

/// Otherwise messages that arrive without rules would be forwarded when there are rules again.
#[tokio::test(flavor = "multi_thread")]
async fn cursor_of_another_node_is_deleted_if_there_are_no_rules() {
    let test = Test::start(1, Vec::new()).await;
    let start = std::time::Instant::now();
    // A node with rules has the cursor while this one starts, and stops later.
    test.queue.acquire_cursor(5.into()).await.unwrap();
    while test.queue.acquire_cursor(9.into()).await.unwrap() != Some(9.into()) {
        assert!(start.elapsed() < TIMEOUT, "the cursor is not deleted");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    test.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_end_if_the_relay_is_dropped_without_a_shutdown() {
    let queue = new_queue();
    let relay = Relay::new(Settings { targets: vec![test_target()], ..Settings::default() }, queue.clone());
    let store = Arc::new(MemoryStore::new(Limits::default()));
    let mailroom = Arc::new(Mailroom::new(restante_mailroom::Settings::default(), store, Extensions::default()));
    relay.start(&mailroom).await.unwrap();
    drop(relay);
    let start = std::time::Instant::now();
    while Arc::strong_count(&queue) > 1 {
        assert!(start.elapsed() < TIMEOUT, "a task still uses the queue");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn message_that_was_sent_before_is_not_forwarded_again() {
    let receiver = Receiver::start(usize::MAX).await;
    let test = Test::start(receiver.address.port(), forward_everything()).await;
    let identity = test.queue.identity().await.unwrap();
    // Another node may have another domain.
    let source = format!("X-Restante-Relay: {identity} node2.test\r\nSubject: hi\r\n\r\nHello\r\n");
    test.deliver("bob@x.org", &source).await;
    let entries = test.wait_for(1, EntryState::Failed).await;
    assert!(entries[0].last_reply.contains("loop"), "{}", entries[0].last_reply);
    assert_eq!((test.relay.counts().loops, receiver.recipients().len()), (1, 0));
    test.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn message_of_another_server_with_the_same_domain_is_forwarded() {
    let receiver = Receiver::start(usize::MAX).await;
    let test = Test::start(receiver.address.port(), forward_everything()).await;
    let other = new_queue().identity().await.unwrap();
    let source = format!("X-Restante-Relay: {other} relay.test\r\nSubject: hi\r\n\r\nHello\r\n");
    test.deliver("bob@x.org", &source).await;
    test.wait_for(1, EntryState::Delivered).await;
    assert_eq!(receiver.recipients(), ["bob@x.org"]);
    test.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn session_that_the_server_closes_is_replaced() {
    let receiver = Receiver::start(1).await;
    let test = Test::start(receiver.address.port(), forward_everything()).await;
    for number in 0..5 {
        test.deliver(&format!("bob{number}@x.org"), "Subject: hi\r\n\r\nHello\r\n").await;
    }
    let entries = test.wait_for(5, EntryState::Delivered).await;
    assert!(entries.iter().all(|entry| entry.attempts == 1), "{entries:?}");
    assert_eq!(test.relay.counts().targets[0].connection_failures, 0);
    test.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn releases_to_allowed_recipients_only() {
    let receiver = Receiver::start(usize::MAX).await;
    let test = Test::start(receiver.address.port(), Vec::new()).await;
    test.deliver("bob@x.org", "Subject: hi\r\n\r\nHello\r\n").await;
    for refused in [&["eve@y.org"][..], &["bob@x.org", "eve@y.org"], &["bob"], &["bob@x.org>\r\nRCPT TO:<eve@y.org"]] {
        let error = test.release(refused).await.unwrap_err();
        assert!(matches!(error, ReleaseError::NotAllowed(_) | ReleaseError::InvalidRecipient(_)), "{refused:?}");
    }
    assert_eq!(
        test.release(&[]).await.unwrap().content.recipients[0].address,
        "bob@x.org",
        "the recipient of the envelope"
    );
    test.release(&["carol@x.org", "dave@x.org", "carol@x.org"]).await.unwrap();
    test.wait_for(2, EntryState::Delivered).await;
    let mut recipients = receiver.recipients();
    recipients.sort_unstable();
    assert_eq!(recipients, ["bob@x.org", "carol@x.org", "dave@x.org"]);
    test.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn retry_by_hand_reaches_a_target_that_is_available_again() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let test = Test::start(port, Vec::new()).await;
    test.deliver("bob@x.org", "Subject: hi\r\n\r\nHello\r\n").await;
    test.release(&["bob@x.org"]).await.unwrap();
    let start = std::time::Instant::now();
    while test.relay.counts().targets[0].connection_failures == 0 {
        assert!(start.elapsed() < TIMEOUT, "no attempt was made");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let status = test.relay.target_statuses().await.unwrap().remove(0);
    assert!(status.paused_until.is_some() && status.last_error.is_some(), "{status:?}");
    let receiver = Receiver::serve(TcpListener::bind(("127.0.0.1", port)).await.unwrap(), usize::MAX);
    test.wait_for(1, EntryState::Queued).await;
    assert_eq!(test.relay.retry(Selection::Target(None)).await.unwrap(), 1);
    let entries = test.wait_for(1, EntryState::Delivered).await;
    assert!(entries[0].attempts >= 2);
    assert_eq!(receiver.recipients(), ["bob@x.org"]);
    assert!(test.relay.target_statuses().await.unwrap()[0].paused_until.is_none());
    test.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deleted_message_fails() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let test = Test::start(listener.local_addr().unwrap().port(), Vec::new()).await;
    test.deliver("bob@x.org", "Subject: hi\r\n\r\nHello\r\n").await;
    // The first entry waits for the greeting, so the second one is not sent before the message is deleted.
    test.release(&["bob@x.org"]).await.unwrap();
    let message = test.latest().await;
    let copy = message.first();
    test.mailroom.remove(&copy.mailbox, copy.id).await.unwrap();
    let error = test.relay.release(ReleaseRequest {
        message: message.clone(),
        target: None,
        recipients: Vec::new(),
        by: None,
        subject_prefix: String::new(),
    });
    assert!(matches!(error.await.unwrap_err(), ReleaseError::Deleted));
    drop(listener);
    let start = std::time::Instant::now();
    loop {
        test.relay.retry(Selection::Target(None)).await.unwrap();
        let entries = test.relay.entries(EntryFilter { limit: 10, ..EntryFilter::default() }).await.unwrap();
        if entries[0].last_reply == "the message was deleted" {
            break;
        }
        assert!(start.elapsed() < TIMEOUT, "{entries:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    test.stop().await;
}
