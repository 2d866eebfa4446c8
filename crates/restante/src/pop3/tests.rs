//! The POP3 server against clients that take up memory and time: what one of them does must not be felt by the others.

use std::time::Duration;

use bytes::Bytes;
use restante_mail::address::{Address, Alphabet};
use restante_mail::envelope::{Envelope, Peer};
use restante_mailroom::Mailroom;
use restante_store::Limits as StoreLimits;
use restante_store::memory::MemoryStore;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;

use super::*;
use crate::metrics::Protocol;
use crate::net::{Limits, ShutdownTrigger};

/// More than the system keeps for a connection whose peer does not read.
const LARGE: usize = 4 * 1024 * 1024;

fn mailroom() -> Arc<Mailroom> {
    let store = Arc::new(MemoryStore::new(StoreLimits::default()));
    Arc::new(Mailroom::new(restante_mailroom::Settings::default(), store, None))
}

async fn deliver(mailroom: &Mailroom, to: &str, mail: Bytes) {
    let envelope = Envelope {
        peer: Peer { ip: None, helo: "client.test".into() },
        from: None,
        recipients: vec![Address::parse(to, Alphabet::Ascii).unwrap()],
    };
    mailroom.deliver(&envelope, mail).await.unwrap();
}

/// A server that keeps to so many bytes, be it of lists or of messages.
fn server(mailroom: &Arc<Mailroom>, budget: &Arc<Budget>, timeout: Duration) -> Arc<Server> {
    Arc::new(Server {
        host: Host {
            protocol: Protocol::Pop3,
            mailroom: mailroom.clone(),
            tls: None,
            implicit_tls: false,
            metrics: Arc::default(),
            timeout,
            netdebug: false,
            sessions: Arc::default(),
        },
        settings: Arc::new(Settings { domain: "mx.test".to_owned(), stls: false, max_bad_commands: 20 }),
        login: Arc::new(Login::new(Vec::new())),
        maildrops: budget.clone(),
        messages: budget.clone(),
    })
}

/// Says these lines, and returns the first line of the answer to the last, with the rest of the connection.
async fn say(server: &Arc<Server>, shutdown: &Shutdown, lines: &[&str]) -> (String, BufReader<UnixStream>) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let admission = Limits::new(1, None).admit();
    tokio::spawn(server.clone().serve(Stream::Unix(theirs), None, admission, shutdown.clone()));
    let mut client = BufReader::new(ours);
    client.write_all(format!("{}\r\n", lines.join("\r\n")).as_bytes()).await.unwrap();
    let mut line = String::new();
    for _ in 0..=lines.len() {
        line.clear();
        client.read_line(&mut line).await.unwrap();
    }
    (line, client)
}

#[tokio::test]
async fn messages_that_nobody_takes_do_not_add_up() {
    let mailroom = mailroom();
    deliver(&mailroom, "bob@x.org", Bytes::from(b"a line\r\n".repeat(LARGE / 8))).await;
    let budget = Budget::new(LARGE + LARGE / 2);
    let patient = server(&mailroom, &budget, Duration::from_mins(1));
    let impatient = server(&mailroom, &budget, Duration::from_millis(100));
    let (_trigger, shutdown) = ShutdownTrigger::new();
    let ask = async |server| say(server, &shutdown, &["USER bob", "PASS x", "RETR 1"]).await;

    // There is room for one, and one more may overdraw.
    let (first, holder) = ask(&patient).await;
    let (second, _overdrawn) = ask(&patient).await;
    assert!(first.starts_with("+OK") && second.starts_with("+OK"), "{first}{second}");
    let (third, _) = ask(&impatient).await;
    assert!(third.starts_with("-ERR [SYS/TEMP] "), "{third}");
    // Whoever leaves gives back.
    drop(holder);
    let (fourth, _) = ask(&patient).await;
    assert!(fourth.starts_with("+OK"), "{fourth}");
}

#[tokio::test]
async fn large_mailboxes_that_are_open_do_not_add_up() {
    let mailroom = mailroom();
    for _ in 0..1001 {
        deliver(&mailroom, "bob@x.org", Bytes::from_static(b"Hi\r\n")).await;
    }
    // Room for one, and one more may overdraw.
    let budget = Budget::new(1);
    let patient = server(&mailroom, &budget, Duration::from_mins(1));
    let impatient = server(&mailroom, &budget, Duration::from_millis(100));
    let (trigger, shutdown) = ShutdownTrigger::new();
    let open = async |server, user| say(server, &shutdown, &[user, "PASS x"]).await;

    let (first, holder) = open(&patient, "USER bob").await;
    let (second, _overdrawn) = open(&patient, "USER bob").await;
    assert!(first.starts_with("+OK 1001 ") && second.starts_with("+OK 1001 "), "{first}{second}");
    let (third, mut client) = open(&impatient, "USER bob").await;
    assert!(third.starts_with("-ERR [SYS/TEMP] "), "{third}");
    // A small one needs none of it, also behind one that was too large.
    client.write_all(b"USER ann\r\nPASS x\r\n").await.unwrap();
    let mut lines = client.lines();
    lines.next_line().await.unwrap();
    assert_eq!(lines.next_line().await.unwrap().as_deref(), Some("+OK 0 messages (0 octets)"));
    // Whoever leaves gives back.
    drop(holder);
    let (fourth, _here) = open(&patient, "USER bob").await;
    assert!(fourth.starts_with("+OK 1001 "), "{fourth}");
    // Nobody waits for it when the server ends.
    let (_, mut waiting) = say(&patient, &shutdown, &["USER bob"]).await;
    waiting.write_all(b"PASS x\r\n").await.unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    drop(shutdown);
    assert!(trigger.run(Duration::from_secs(8)).await);
    let mut fifth = String::new();
    waiting.read_line(&mut fifth).await.unwrap();
    assert!(fifth.starts_with("-ERR [SYS/TEMP] "), "{fifth}");
}
