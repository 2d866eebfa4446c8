//! The POP3 server with clients that use much memory and time. They must not affect other clients.

use std::time::Duration;

use bytes::Bytes;
use restante_auth::AuthService;
use restante_mail::address::{Address, Alphabet};
use restante_mail::envelope::{Envelope, Peer, Recipient};
use restante_mail::naming::Naming;
use restante_mailroom::Mailroom;
use restante_mailroom::hooks::Extensions;
use restante_metrics::Protocol;
use restante_net::{Certificate, ConnectionLimits, ShutdownTrigger, Tls};
use restante_proto::Secret;
use restante_settings::MailboxPassword;
use restante_store::Limits as StoreLimits;
use restante_store::memory::MemoryStore;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::task::{JoinHandle, yield_now};
use tokio::time::{Instant, sleep};

use super::*;

/// Short enough for a test to wait for it, and longer than a few commands take on a busy machine.
const SHORT_TIMEOUT: Duration = Duration::from_secs(3);

/// More than the system buffers for a connection whose peer does not read.
const LARGE_BYTES: usize = 4 * 1024 * 1024;

fn mailroom() -> Arc<Mailroom> {
    let store = Arc::new(MemoryStore::new(StoreLimits::default()));
    Arc::new(Mailroom::new(restante_mailroom::Settings::default(), store, Extensions::default()))
}

async fn deliver(mailroom: &Mailroom, to: &str, body: Bytes) {
    let address = Address::parse(to, Alphabet::Ascii).unwrap();
    let envelope = Envelope {
        peer: Peer { ip: None, helo: "client.test".into() },
        login: None,
        key: None,
        listener: None,
        from: None,
        recipients: vec![Recipient::new(address, Naming::Local).unwrap()],
    };
    mailroom.deliver(&envelope, body).await.unwrap();
}

/// Accounts without users and tokens.
fn auth_service() -> Arc<AuthService> {
    AuthService::open(restante_auth::Settings::default()).unwrap()
}

/// Creates a server with this memory budget for lists and for messages.
fn server(mailroom: &Arc<Mailroom>, budget: &Arc<Budget>, timeout: Duration) -> Arc<Server> {
    Arc::new(unshared_server(mailroom, budget, timeout))
}

/// Creates a server that is not shared yet, so that a test can change it.
fn unshared_server(mailroom: &Arc<Mailroom>, budget: &Arc<Budget>, timeout: Duration) -> Server {
    Server {
        context: ListenerContext {
            protocol: Protocol::Pop3,
            mailroom: mailroom.clone(),
            tls: None,
            implicit_tls: false,
            metrics: Arc::default(),
            idle_timeout: timeout,
            netdebug: false,
            session_count: Arc::default(),
            store_errors: Arc::default(),
        },
        settings: Arc::new(Settings { domain: "mx.test".to_owned(), stls: false, max_bad_commands: 20 }),
        login: Arc::new(MailboxLogin::new("pop3.credentials", Vec::new(), auth_service())),
        maildrop_budget: budget.clone(),
        message_budget: budget.clone(),
    }
}

/// Returns a client and the task of its session.
fn connect(server: &Arc<Server>, shutdown: &Shutdown) -> (BufReader<UnixStream>, JoinHandle<()>) {
    let (client_end, server_end) = UnixStream::pair().unwrap();
    let admission = ConnectionLimits::new(1, None).admit();
    let session_task = tokio::spawn(server.clone().serve(Stream::Unix(server_end), None, admission, shutdown.clone()));
    (BufReader::new(client_end), session_task)
}

/// Sends these lines. Returns the first line of the reply to the last one, and the connection.
async fn send_lines(server: &Arc<Server>, shutdown: &Shutdown, lines: &[&str]) -> (String, BufReader<UnixStream>) {
    let (mut client, _) = connect(server, shutdown);
    client.write_all(format!("{}\r\n", lines.join("\r\n")).as_bytes()).await.unwrap();
    let mut line = String::new();
    for _ in 0..=lines.len() {
        line.clear();
        client.read_line(&mut line).await.unwrap();
    }
    (line, client)
}

#[tokio::test]
async fn unread_messages_are_limited_by_the_budget() {
    let mailroom = mailroom();
    deliver(&mailroom, "bob@x.org", Bytes::from(b"a line\r\n".repeat(LARGE_BYTES / 8))).await;
    let budget = Budget::new(LARGE_BYTES + LARGE_BYTES / 2);
    let long_timeout_server = server(&mailroom, &budget, Duration::from_mins(1));
    let short_timeout_server = server(&mailroom, &budget, SHORT_TIMEOUT);
    let (_trigger, shutdown) = ShutdownTrigger::new();
    let retrieve = async |server| send_lines(server, &shutdown, &["USER bob", "PASS x", "RETR 1"]).await;

    // The budget is enough for one, and one more may exceed it.
    let (first, first_client) = retrieve(&long_timeout_server).await;
    let (second, _second_client) = retrieve(&long_timeout_server).await;
    assert!(first.starts_with("+OK") && second.starts_with("+OK"), "{first}{second}");
    let (third, _) = retrieve(&short_timeout_server).await;
    assert!(third.starts_with("-ERR [SYS/TEMP] "), "{third}");
    // A client that disconnects releases its memory.
    drop(first_client);
    let (fourth, _) = retrieve(&long_timeout_server).await;
    assert!(fourth.starts_with("+OK"), "{fourth}");
}

#[tokio::test]
async fn open_large_mailboxes_are_limited_by_the_budget() {
    let mailroom = mailroom();
    for _ in 0..1001 {
        deliver(&mailroom, "bob@x.org", Bytes::from_static(b"Hi\r\n")).await;
    }
    // The budget is enough for one, and one more may exceed it.
    let budget = Budget::new(1);
    let long_timeout_server = server(&mailroom, &budget, Duration::from_mins(1));
    let short_timeout_server = server(&mailroom, &budget, SHORT_TIMEOUT);
    let (trigger, shutdown) = ShutdownTrigger::new();
    let open_mailbox = async |server, user| send_lines(server, &shutdown, &[user, "PASS x"]).await;

    let (first, first_client) = open_mailbox(&long_timeout_server, "USER bob").await;
    let (second, _second_client) = open_mailbox(&long_timeout_server, "USER bob").await;
    assert!(first.starts_with("+OK 1001 ") && second.starts_with("+OK 1001 "), "{first}{second}");
    let (third, mut client) = open_mailbox(&short_timeout_server, "USER bob").await;
    assert!(third.starts_with("-ERR [SYS/TEMP] "), "{third}");
    // A small mailbox needs no memory from the budget, also after a refusal.
    client.write_all(b"USER ann\r\nPASS x\r\n").await.unwrap();
    let mut lines = client.lines();
    lines.next_line().await.unwrap();
    assert_eq!(lines.next_line().await.unwrap().as_deref(), Some("+OK 0 messages (0 octets)"));
    // A client that disconnects releases its memory.
    drop(first_client);
    let (fourth, _fourth_client) = open_mailbox(&long_timeout_server, "USER bob").await;
    assert!(fourth.starts_with("+OK 1001 "), "{fourth}");
    // A session that waits for memory ends at shutdown.
    let (_, mut waiting) = send_lines(&long_timeout_server, &shutdown, &["USER bob"]).await;
    waiting.write_all(b"PASS x\r\n").await.unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    drop(shutdown);
    assert!(trigger.trigger_and_wait(Duration::from_secs(8)).await);
    let mut fifth = String::new();
    waiting.read_line(&mut fifth).await.unwrap();
    assert!(fifth.starts_with("-ERR [SYS/TEMP] "), "{fifth}");
}

/// Longer than closing a connection takes, and shorter than the other delays and timeouts of the server. The clock is
/// paused in the tests that use it: it advances to the next timer as soon as all tasks wait, so the elapsed time shows
/// which timeout has passed.
const SOON: Duration = Duration::from_millis(900);

/// Returns a server whose mailbox `bob` contains a large and a small message, and two clients that never read the large
/// one, so that no memory is left for a third client.
async fn with_exhausted_memory(shutdown: &Shutdown) -> (Arc<Server>, [BufReader<UnixStream>; 2]) {
    let mailroom = mailroom();
    deliver(&mailroom, "bob@x.org", Bytes::from(b"a line\r\n".repeat(LARGE_BYTES / 8))).await;
    deliver(&mailroom, "bob@x.org", Bytes::from_static(b"Hi\r\n")).await;
    // The budget is enough for one, and one more may exceed it.
    let server = server(&mailroom, &Budget::new(LARGE_BYTES + LARGE_BYTES / 2), Duration::from_mins(5));
    let mut stalled_clients = Vec::new();
    for _ in 0..2 {
        let (reply, client) = send_lines(&server, shutdown, &["USER bob", "PASS x", "RETR 1"]).await;
        assert!(reply.starts_with("+OK"), "{reply}");
        stalled_clients.push(client);
    }
    (server, stalled_clients.try_into().unwrap())
}

#[tokio::test(start_paused = true)]
async fn small_messages_do_not_wait_for_memory() {
    let (_trigger, shutdown) = ShutdownTrigger::new();
    let (server, _stalled_clients) = with_exhausted_memory(&shutdown).await;
    let started = Instant::now();
    let (_, mut waiting) = send_lines(&server, &shutdown, &["USER bob", "PASS x"]).await;
    waiting.write_all(b"RETR 1\r\n").await.unwrap();
    sleep(SOON).await;

    let (small, _) = send_lines(&server, &shutdown, &["USER bob", "PASS x", "RETR 2"]).await;
    assert!(small.starts_with("+OK"), "{small}");
    assert!(started.elapsed() < 2 * SOON);

    // The waiting client is refused in time, and its next command is still executed.
    waiting.write_all(b"NOOP\r\n").await.unwrap();
    let mut lines = waiting.lines();
    let refused = lines.next_line().await.unwrap().unwrap();
    assert!(refused.starts_with("-ERR [SYS/TEMP] "), "{refused}");
    assert!(started.elapsed() < Duration::from_secs(15));
    assert_eq!(lines.next_line().await.unwrap().as_deref(), Some("+OK"));
}

#[tokio::test(start_paused = true)]
async fn disconnected_client_leaves_the_memory_queue() {
    let (_trigger, shutdown) = ShutdownTrigger::new();
    let (server, _stalled_clients) = with_exhausted_memory(&shutdown).await;
    let (mut client, session_task) = connect(&server, &shutdown);
    client.write_all(b"USER bob\r\nPASS x\r\nRETR 1\r\n").await.unwrap();
    sleep(SOON).await;
    drop(client);
    let started = Instant::now();
    session_task.await.unwrap();
    assert!(started.elapsed() < SOON);
}

#[tokio::test]
async fn pipelining_client_yields_to_other_tasks() {
    const COMMANDS: usize = 400;
    let mailroom = mailroom();
    deliver(&mailroom, "bob@x.org", Bytes::from_static(b"Hi\r\n")).await;
    let server = server(&mailroom, &Budget::new(LARGE_BYTES), Duration::from_mins(1));
    let (_trigger, shutdown) = ShutdownTrigger::new();
    let (_, mut client) = send_lines(&server, &shutdown, &["USER bob", "PASS x"]).await;
    client.write_all("TOP 1 0\r\n".repeat(COMMANDS).as_bytes()).await.unwrap();
    // There is only one thread, so this task runs as often as the session yields.
    let mut reader = tokio::spawn(async move {
        let mut lines = client.lines();
        let mut ends = 0;
        while ends < COMMANDS {
            ends += usize::from(lines.next_line().await.unwrap().unwrap() == ".");
        }
    });
    let mut yields = 0;
    while !reader.is_finished() {
        yield_now().await;
        yields += 1;
    }
    (&mut reader).await.unwrap();
    assert!(yields >= COMMANDS, "{yields}");
}

#[tokio::test(start_paused = true)]
async fn shutdown_does_not_wait_for_handshakes() {
    for implicit_tls in [true, false] {
        let mut server = unshared_server(&mailroom(), &Budget::new(1), Duration::from_mins(1));
        server.context.tls = Some(Arc::new(Tls::new(Certificate::SelfSigned, &[], &[]).unwrap()));
        server.context.implicit_tls = implicit_tls;
        server.settings = Arc::new(Settings { stls: true, ..Settings::clone(&server.settings) });
        let (trigger, shutdown) = ShutdownTrigger::new();
        let (mut client, _) = connect(&Arc::new(server), &shutdown);
        if !implicit_tls {
            client.write_all(b"STLS\r\n").await.unwrap();
        }
        sleep(SOON).await;
        drop(shutdown);
        assert!(trigger.trigger_and_wait(SOON).await, "{implicit_tls}");
    }
}

#[tokio::test(start_paused = true)]
async fn shutdown_does_not_wait_for_delayed_logins() {
    let mut server = unshared_server(&mailroom(), &Budget::new(1), Duration::from_mins(1));
    server.login = Arc::new(MailboxLogin::new(
        "pop3.credentials",
        vec![MailboxPassword { mailbox: None, password: Secret::new("right") }],
        auth_service(),
    ));
    let (trigger, shutdown) = ShutdownTrigger::new();
    let (mut client, _) = connect(&Arc::new(server), &shutdown);
    client.write_all("USER bob\r\nPASS wrong\r\n".repeat(15).as_bytes()).await.unwrap();
    // The first login is being delayed.
    sleep(SOON / 2).await;
    drop(shutdown);
    // It gets a reply, and then the client has half a second to close.
    assert!(trigger.trigger_and_wait(SOON).await);
    let mut lines = client.lines();
    for reply in ["+OK Restante ", "+OK Now ", "-ERR [AUTH] ", "-ERR [SYS/TEMP] "] {
        let line = lines.next_line().await.unwrap().unwrap();
        assert!(line.starts_with(reply), "{line}");
    }
    assert_eq!(lines.next_line().await.unwrap(), None, "the remaining logins are not checked");
}
