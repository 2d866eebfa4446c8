//! Messages: their sources and UIDs, APPEND, and limits on memory.

use restante_store::MailboxPolicy;
use restante_store::disk::DiskStore;
use restante_testdir::TestDir;
use tokio::task::yield_now;
use tokio::time::{Instant, sleep};

use super::*;

/// More than the system buffers for a connection whose peer does not read.
const LARGE_BYTES: usize = 4 * 1024 * 1024;
/// Longer than a few commands take, and shorter than the delays and timeouts of the server, by a paused clock.
const SOON: Duration = Duration::from_millis(900);

#[tokio::test]
async fn sources_are_sent_octet_by_octet() {
    let all_octets: Vec<u8> = (0..=255).collect();
    let large = [&b"Subject: large\r\n\r\n"[..], &b".a line of text\r\n".repeat(65_536)].concat();
    let endless = [&b"Subject: one line\r\n\r\n"[..], &b".".repeat(1_000_000)].concat();
    let mails: [&[u8]; 12] = [
        MAIL.as_bytes(),
        b"Subject: dots\r\n\r\n.\r\n..\r\n",
        b"Subject: bare LF\n\nline\n.\nend\n",
        b"Subject: bare CR\r\rline\r.\r",
        b"Subject: no last line end\r\n\r\nend",
        b"Subject: half a line end\r\n\r\nend\r",
        b"Subject: 8 bits\r\n\r\n\xc3\xa4 \xe4 \xff\xfe\x00\r\n",
        b"Subject: closes\r\n\r\n)\r\na OK FETCH completed\r\n",
        b"\r\n",
        &all_octets,
        &large,
        &endless,
    ];
    let server = TestServer::start();
    let mut stored = Vec::new();
    for mail in mails {
        stored.push(server.deliver("bob@x.org", mail.to_vec()).await);
    }
    let mut client = server.open_inbox("bob").await;
    let sizes: Vec<String> =
        (1..).zip(&stored).map(|(number, stored)| format!("* {number} FETCH (RFC822.SIZE {})", stored.size)).collect();
    assert_eq!(client.ok("FETCH 1:* RFC822.SIZE").await, sizes);
    for ((uid, stored), mail) in (1..).zip(&stored).zip(mails) {
        let source = server.mailroom.source(&mailbox("bob"), stored.id).await.unwrap().unwrap().to_bytes();
        assert!(source.ends_with(mail));
        assert!(client.source(uid).await == source, "{}", String::from_utf8_lossy(mail));
    }
}

#[tokio::test]
async fn appended_messages_are_stored_as_they_are() {
    let server = TestServer::start();
    let mut client = server.open_inbox("bob").await;
    let uid_validity = server.mailroom.uid_validity().await.unwrap();
    client
        .talk(&format!(
            r#"
            C: 1 APPEND INBOX (\Seen \Draft run7) "17-Jul-1996 02:44:25 -0700" {{4}}
            S: + Ready for the message
            C: a: b
            S: * 1 EXISTS
            S: * 1 RECENT
            S: 1 OK [APPENDUID {uid_validity} 1] APPEND completed
            C: 2 APPEND INBOX {{4+}}
            C: c: d
            S: * 2 EXISTS
            S: * 2 RECENT
            S: 2 OK [APPENDUID {uid_validity} 2] APPEND completed
            C: 3 APPEND INBOX {{0}}
            S: + Ready for the message
            C:
            S: 3 NO [CANNOT] The message is empty
            C: 4 FETCH 1 (FLAGS INTERNALDATE RFC822.SIZE)
            S: * 1 FETCH (FLAGS (\Seen \Draft \Recent run7) INTERNALDATE "17-Jul-1996 09:44:25 +0000" RFC822.SIZE 4)
            S: 4 OK FETCH completed
            "#
        ))
        .await;
    assert_eq!((client.source(1).await, client.source(2).await), (b"a: b".to_vec(), b"c: d".to_vec()));
}

#[tokio::test]
async fn messages_above_the_limit_are_refused() {
    let server = Setup { max_message_bytes: 1000, ..Setup::default() }.start();
    let mut client = server.open_inbox("bob").await;
    // At the limit, and above it, with and without a continuation.
    let message = "x".repeat(1000);
    client.talk("C: 1 APPEND INBOX {1000}\nS: + Ready for the message").await;
    client.send(format!("{message}\r\n")).await;
    client.talk("S: * 1 EXISTS\nS: * 1 RECENT\nS~ 1 OK [APPENDUID ").await;
    client.talk("C: 2 APPEND INBOX {1001}\nS: 2 NO [TOOBIG] The message is too large").await;
    client.send(format!("3 APPEND INBOX {{1001+}}\r\n{message}x\r\n4 NOOP\r\n")).await;
    client.talk("S: 3 NO [TOOBIG] The message is too large\nS: 4 OK NOOP completed").await;
    client.send(format!("5 APPEND INBOX {{5000000+}}\r\n{}\r\n6 NOOP\r\n", "x".repeat(5_000_000))).await;
    client.talk("S: 5 NO [TOOBIG] The message is too large\nS: 6 OK NOOP completed").await;
    assert_eq!(server.count("bob").await, 1);
}

#[tokio::test]
async fn messages_above_the_limit_of_their_mailbox_are_refused() {
    let policy =
        MailboxPolicy { mailboxes: ["bob"].into_iter().collect(), bytes: Some(1000), ..MailboxPolicy::default() };
    let limits = Limits { policies: [policy].into_iter().collect(), ..Limits::default() };
    let server = Setup { limits, ..Setup::default() }.start();
    let large = server.import("ann", "x".repeat(2000)).await;
    let mut client = server.log_in("bob").await;
    client.send(format!("1 APPEND INBOX {{2000+}}\r\n{}\r\n", "x".repeat(2000))).await;
    client.talk("S: 1 NO [LIMIT] There is no space left").await;
    client.ok("CREATE Work").await;
    assert_eq!((large.size, server.count("bob").await), (2000, 0));
}

#[tokio::test]
async fn uids_are_not_used_again() {
    let server = TestServer::start();
    for _ in 0..3 {
        server.deliver("bob@x.org", MAIL).await;
    }
    let mut client = server.open_inbox("bob").await;
    assert_eq!(client.uids().await, [1, 2, 3]);
    client.ok(r"STORE 2:3 +FLAGS.SILENT (\Deleted)").await;
    client.ok("UID EXPUNGE 3").await;
    assert_eq!(client.uids().await, [1, 2]);
    client.ok("EXPUNGE").await;
    server.deliver("bob@x.org", MAIL).await;
    client.ok("NOOP").await;
    assert_eq!(client.uids().await, [1, 4]);
    assert_eq!(server.counter("restante_messages_deleted_total{cause=\"imap\"}").await, 2);
}

#[tokio::test]
async fn uids_are_the_same_after_a_restart() {
    let dir = TestDir::new();
    let mut seen = Vec::new();
    for _ in 0..2 {
        let store = Arc::new(DiskStore::open(dir.path(), restante_store::disk::Settings::default()).unwrap());
        let server = Setup { store: store.clone(), ..Setup::default() }.start();
        if seen.is_empty() {
            let first = server.deliver("bob@x.org", MAIL).await;
            server.deliver("bob@x.org", MAIL).await;
            server.mailroom.remove(&mailbox("bob"), first.id).await.unwrap();
            server.import("bob,Work", MAIL).await;
        }
        let mut client = server.log_in("bob").await;
        let mut found = Vec::new();
        for folder in ["INBOX", "Work"] {
            let lines = client.ok(&format!("SELECT {folder}")).await;
            found.extend(lines.into_iter().filter(|line| line.contains("[UIDVALIDITY ") || line.contains("[UIDNEXT ")));
            found.extend(client.uids().await.into_iter().map(|uid| uid.to_string()));
        }
        seen.push(found);
        drop(client);
        // The store is closed with the last session.
        server.shut_down().await;
        drop(store);
    }
    assert_eq!(seen[0], seen[1]);
    assert_eq!(seen[0].len(), 6, "{seen:?}");
}

/// Starts a server whose mailbox `bob` contains a large and a small message, with two clients that never read the large
/// one, so that no memory is left for a third client.
async fn with_exhausted_memory() -> (TestServer, [(Client, JoinHandle<()>); 2]) {
    // The budget is enough for one, and one more may exceed it.
    let budget = Budget::new(LARGE_BYTES + LARGE_BYTES / 2);
    let server = Setup { budget, max_message_bytes: LARGE_BYTES, ..Setup::default() }.start();
    server.import("bob", b"a line\r\n".repeat(LARGE_BYTES / 8)).await;
    server.import("bob", "Hi").await;
    let mut stalled = Vec::new();
    for _ in 0..2 {
        let (mut client, session_task) = server.connect_by_socket_pair().await;
        client.ok("LOGIN bob x").await;
        client.ok("SELECT INBOX").await;
        client.talk(&format!("C: 1 FETCH 1 BODY.PEEK[]\nS: * 1 FETCH (BODY[] {{{LARGE_BYTES}}}")).await;
        stalled.push((client, session_task));
    }
    let Ok(stalled) = stalled.try_into() else { panic!("two clients") };
    (server, stalled)
}

#[tokio::test(start_paused = true)]
async fn messages_in_memory_are_limited() {
    let (server, [(stalled, _), _other]) = with_exhausted_memory().await;
    let (mut client, _) = server.connect_by_socket_pair().await;
    client.ok("LOGIN bob x").await;
    client.ok("SELECT INBOX").await;
    let started = Instant::now();
    // Small messages need no reservation.
    assert_eq!(client.source(2).await, b"Hi");
    client.talk("C: 1 APPEND INBOX {2+}\nC: Hi\nS: * 3 EXISTS\nS: * 1 RECENT\nS~ 1 OK [APPENDUID ").await;
    assert!(started.elapsed() < SOON);
    // Large ones are refused in time, and the session continues.
    let refused = "NO [UNAVAILABLE] The store is not available now, try again later";
    client
        .talk(&format!("C: 2 APPEND INBOX {{{LARGE_BYTES}}}\nS: 2 {refused}\nC: 3 FETCH 1 BODY.PEEK[]\nS: 3 {refused}"))
        .await;
    assert!((Duration::from_secs(19)..Duration::from_secs(25)).contains(&started.elapsed()));
    // A client that disconnects releases its memory.
    drop(stalled);
    assert_eq!(client.source(1).await.len(), LARGE_BYTES);
}

#[tokio::test(start_paused = true)]
async fn disconnected_client_does_not_wait_for_memory() {
    let (server, _stalled) = with_exhausted_memory().await;
    for command in ["FETCH 1 BODY[]".to_owned(), format!("APPEND INBOX {{{LARGE_BYTES}}}")] {
        let (mut client, session_task) = server.connect_by_socket_pair().await;
        client.ok("LOGIN bob x").await;
        client.ok("SELECT INBOX").await;
        client.send(format!("1 {command}\r\n")).await;
        sleep(SOON).await;
        drop(client);
        let started = Instant::now();
        session_task.await.unwrap();
        assert!(started.elapsed() < SOON, "{command}");
    }
}

#[tokio::test(start_paused = true)]
async fn lists_of_messages_are_limited() {
    let server = Setup { budget: Budget::new(1), ..Setup::default() }.start();
    for _ in 0..1001 {
        server.import("bob", "Hi").await;
    }
    let mut clients = Vec::new();
    // The budget is enough for one, and one more may exceed it.
    for expected in ["OK [READ-WRITE] ", "OK [READ-WRITE] ", "NO [UNAVAILABLE] "] {
        let (mut client, session_task) = server.connect_by_socket_pair().await;
        client.ok("LOGIN bob x").await;
        let (_, completion) = client.command("SELECT INBOX").await;
        assert!(completion.starts_with(expected), "{completion}");
        clients.push((client, session_task));
    }
    let [(first, first_task), (mut second, _), (mut third, _)] = clients.try_into().ok().unwrap();
    // A small mailbox needs no memory from the budget, also after a refusal.
    third.ok("CREATE Empty").await;
    third.ok("SELECT Empty").await;
    // A client that closes the mailbox or the connection releases its memory.
    second.ok("UNSELECT").await;
    third.ok("SELECT INBOX").await;
    assert!(second.refused("SELECT INBOX").await.starts_with("NO [UNAVAILABLE] "));
    drop(first);
    first_task.await.unwrap();
    third.ok("NOOP").await;
    second.ok("SELECT INBOX").await;
}

#[tokio::test(start_paused = true)]
async fn shutdown_does_not_wait_for_memory() {
    let (server, stalled) = with_exhausted_memory().await;
    let (mut client, _) = server.connect_by_socket_pair().await;
    client.ok("LOGIN bob x").await;
    client.ok("SELECT INBOX").await;
    client.send("1 FETCH 1 BODY.PEEK[]\r\n").await;
    sleep(SOON).await;
    drop(stalled);
    server.shut_down().await;
    client.talk("S~ 1 NO [UNAVAILABLE] \nS~ * BYE [UNAVAILABLE] mx.test is shutting down\nEOF").await;
}

#[tokio::test(start_paused = true)]
async fn client_that_does_not_read_is_disconnected() {
    let server = Setup { idle_timeout: Duration::from_secs(30), ..Setup::default() }.start();
    server.import("bob", b"a line\r\n".repeat(LARGE_BYTES / 8)).await;
    let (mut client, session_task) = server.connect_by_socket_pair().await;
    client.ok("LOGIN bob x").await;
    client.ok("SELECT INBOX").await;
    let started = Instant::now();
    client.send("1 FETCH 1 BODY.PEEK[]\r\n").await;
    session_task.await.unwrap();
    assert!((30..60).contains(&started.elapsed().as_secs()), "{:?}", started.elapsed());
    assert_eq!(server.counter("restante_sessions_ended_total{protocol=\"imap\",outcome=\"timeout\"}").await, 1);
}

/// A store that cannot be changed, as when its disk has failed.
#[tokio::test]
async fn session_continues_after_errors_of_the_store() {
    let dir = TestDir::new();
    let settings = restante_store::disk::Settings::default();
    let writer = Arc::new(DiskStore::open(dir.path(), settings.clone()).unwrap());
    let server = Setup { store: writer.clone(), ..Setup::default() }.start();
    server.deliver("bob@x.org", MAIL).await;
    server.shut_down().await;
    drop(writer);
    let store = Arc::new(DiskStore::open_read_only(dir.path(), settings.cache_bytes).unwrap());
    let server = Setup { store, ..Setup::default() }.start();
    let mut client = server.open_inbox("bob").await;
    client.ok("CREATE Work").await;
    for command in [
        r"STORE 1 +FLAGS (\Seen)",
        "FETCH 1 BODY[]",
        "COPY 1 Work",
        "MOVE 1 Work",
        "RENAME INBOX Old",
        "APPEND INBOX {2+}\r\nHi",
    ] {
        let completion = client.refused(command).await;
        assert_eq!(completion, "NO [UNAVAILABLE] The store is not available now, try again later", "{command}");
    }
    assert_eq!(client.ok("FETCH 1 FLAGS").await, [r"* 1 FETCH (FLAGS (\Recent))"]);
    assert_eq!(client.uids().await, [1]);
}

/// A client that sends faster than it is answered leaves time for the others.
#[tokio::test]
async fn pipelining_client_yields_to_other_tasks() {
    const COMMANDS: usize = 400;
    let server = TestServer::start();
    server.deliver("bob@x.org", MAIL).await;
    let mut client = server.open_inbox("bob").await;
    client.send("a FETCH 1 (ENVELOPE BODYSTRUCTURE)\r\n".repeat(COMMANDS)).await;
    // There is only one thread, so this task runs as often as the session yields.
    let mut reader = tokio::spawn(async move {
        for _ in 0..COMMANDS {
            client.talk("S* a OK FETCH completed").await;
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
