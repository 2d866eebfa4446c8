//! Connections: TLS, proxies, limits, timeouts, and the ends of sessions.

use restante_proto::Secret;
use tokio::time::{Instant, sleep};

use super::*;

/// Returns how many sessions have ended for this reason. Waits until one has, because a session ends after its last reply.
async fn ended(server: &TestServer, reason: &str) -> u64 {
    let series = format!("restante_sessions_ended_total{{protocol=\"imap\",outcome=\"{reason}\"}}");
    let count = async {
        loop {
            match server.counter(&series).await {
                0 => sleep(Duration::from_millis(1)).await,
                count => return count,
            }
        }
    };
    timeout(TEST_TIMEOUT, count).await.expect("a session has ended for this reason")
}

#[tokio::test]
async fn starttls_is_offered_and_used() {
    let server = Setup { tls: true, ..Setup::default() }.start();
    server.deliver("bob@x.org", MAIL).await;
    let mut client = server.connect_without_greeting().await;
    let greeting = client.line().await.unwrap();
    assert!(greeting.contains(" STARTTLS "), "{greeting}");
    client.talk("C: 1 STARTTLS\nS: 1 OK Begin TLS negotiation now").await;
    let mut client = client.start_tls().await;
    client
        .talk(
            r#"
            C: 2 STARTTLS
            S: 2 BAD TLS is already on
            C: 3 LOGIN bob x
            S~ 3 OK [CAPABILITY
            C: 4 STATUS INBOX (MESSAGES)
            S: * STATUS "INBOX" (MESSAGES 1)
            S: 4 OK STATUS completed
            C: 5 LOGOUT
            S: * BYE Logging out
            S: 5 OK LOGOUT completed
            EOF
            "#,
        )
        .await;
    assert_eq!(ended(&server, "quit").await, 1);
    assert_eq!(server.counter("restante_tls_handshakes_total{protocol=\"imap\",outcome=\"ok\"}").await, 1);
}

/// Commands that an attacker has added before the handshake are not executed after it.
#[tokio::test]
async fn commands_before_the_handshake_are_discarded() {
    let server = Setup { tls: true, ..Setup::default() }.start();
    let mut client = server.connect().await;
    client.send("1 STARTTLS\r\n2 LOGIN eve x\r\n").await;
    client.talk("S: 1 OK Begin TLS negotiation now").await;
    let mut client = client.start_tls().await;
    client.talk("C: 3 NOOP\nS: 3 OK NOOP completed\nC: 4 SELECT INBOX\nS: 4 BAD Log in first").await;
}

#[tokio::test]
async fn starttls_is_refused_without_a_certificate() {
    let server = TestServer::start();
    let mut client = server.connect().await;
    client.talk("C: 1 STARTTLS\nS: 1 NO TLS is not available\nC: 2 NOOP\nS: 2 OK NOOP completed").await;
}

#[tokio::test]
async fn implicit_tls_greets_after_the_handshake() {
    let server = Setup { tls: true, implicit_tls: true, ..Setup::default() }.start();
    let mut client = server.connect_without_greeting().await.start_tls().await;
    let greeting = client.line().await.unwrap();
    assert!(greeting.starts_with("* OK [CAPABILITY ") && !greeting.contains("STARTTLS"), "{greeting}");
    client.talk("C: 1 STARTTLS\nS: 1 BAD TLS is already on\nC: 2 LOGIN bob x\nS~ 2 OK [CAPABILITY ").await;
}

#[tokio::test]
async fn failed_handshake_ends_the_session() {
    for implicit_tls in [true, false] {
        let server = Setup { tls: true, implicit_tls, ..Setup::default() }.start();
        let mut client = server.connect_without_greeting().await;
        if !implicit_tls {
            client.talk("S~ * OK \nC: 1 STARTTLS\nS: 1 OK Begin TLS negotiation now").await;
        }
        client.send("this is not a handshake\r\n").await;
        assert_eq!(ended(&server, "tls").await, 1);
    }
}

#[tokio::test]
async fn clients_of_a_proxy_send_a_header() {
    let proxies = vec!["127.0.0.1".parse().unwrap()];
    let server = Setup { proxies, ..Setup::default() }.start();
    let mut client = server.connect_without_greeting().await;
    client.talk("C: PROXY TCP4 203.0.113.7 127.0.0.1 40000 143\nS~ * OK [CAPABILITY \nC: 1 LOGOUT\nS* 1 OK LOGOUT completed").await;
    let mut without_header = server.connect_without_greeting().await;
    without_header.talk("C: 1 LOGOUT\nEOF").await;
}

#[tokio::test]
async fn connections_above_the_limit_are_refused() {
    let server = Setup { max_connections: 1, ..Setup::default() }.start();
    let mut first = server.connect().await;
    let mut second = server.connect_without_greeting().await;
    second.talk("S: * BYE [UNAVAILABLE] mx.test has too many connections, try again later\nEOF").await;
    drop(second);
    assert_eq!(ended(&server, "refused").await, 1);
    assert_eq!(server.counter("restante_connections_refused_total{protocol=\"imap\"}").await, 1);
    first.talk("C: 1 LOGOUT\nS* 1 OK LOGOUT completed\nEOF").await;
    assert_eq!(ended(&server, "quit").await, 1);
    server.connect().await;
}

#[tokio::test(start_paused = true)]
async fn silent_clients_are_disconnected() {
    const IDLE_TIMEOUT: Duration = Duration::from_secs(30);
    // The commands, and what follows them before the timeout.
    for (commands, replies) in [
        ("", ""),
        ("1 LOGI", ""),
        ("1 LOGIN bob x\r\n", "S~ 1 OK "),
        ("1 LOGIN bob x\r\n2 APPEND INBOX {1000}\r\nSubject:", "S~ 1 OK \nS: + Ready for the message"),
        ("1 LOGIN bob x\r\n2 IDLE\r\n", "S~ 1 OK \nS: + idling"),
        (
            "1 LOGIN bob x\r\n2 SELECT INBOX\r\n3 IDLE\r\n",
            "S~ 1 OK \nS* 2 OK [READ-WRITE] SELECT completed\nS: + idling",
        ),
    ] {
        let server = Setup { idle_timeout: IDLE_TIMEOUT, ..Setup::default() }.start();
        let (mut client, session_task) = server.connect_by_socket_pair().await;
        let started = Instant::now();
        client.send(commands).await;
        client.talk(replies).await;
        client.talk("S: * BYE Idle for too long\nEOF").await;
        assert_eq!(started.elapsed().as_secs(), IDLE_TIMEOUT.as_secs(), "{commands}");
        drop(client);
        session_task.await.unwrap();
        assert_eq!(ended(&server, "timeout").await, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn commands_and_changes_restart_the_idle_timeout() {
    let server = Setup { idle_timeout: Duration::from_secs(30), ..Setup::default() }.start();
    let (mut client, _) = server.connect_by_socket_pair().await;
    client.ok("LOGIN bob x").await;
    client.ok("SELECT INBOX").await;
    for _ in 0..3 {
        sleep(Duration::from_secs(20)).await;
        client.ok("NOOP").await;
    }
    client.talk("C: 1 IDLE\nS: + idling").await;
    let started = Instant::now();
    for number in 1..=3 {
        sleep(Duration::from_secs(20)).await;
        server.deliver("bob@x.org", MAIL).await;
        client.talk(&format!("S: * {number} EXISTS\nS: * {number} RECENT")).await;
    }
    client.talk("S: * BYE Idle for too long\nEOF").await;
    assert_eq!(started.elapsed().as_secs(), 90);
}

#[tokio::test]
async fn too_many_bad_commands_end_the_session() {
    let server = Setup { max_bad_commands: 3, ..Setup::default() }.start();
    let mut client = server.log_in("bob").await;
    client
        .talk(
            r"
            C: 1 NOPE
            S~ 1 BAD
            C: 2 SELECT None
            S: 2 NO [NONEXISTENT] There is no such mailbox
            C: 3 FETCH
            S~ 3 BAD
            C: 4 STORE 1 x
            S~ 4 BAD
            S: * BYE Too many errors
            EOF
            ",
        )
        .await;
    drop(client);
    assert_eq!(ended(&server, "errors").await, 1);
}

#[tokio::test(start_paused = true)]
async fn too_many_failed_logins_end_the_session() {
    let credentials = vec![MailboxPassword { mailbox: None, password: Secret::new("right") }];
    let server = Setup { credentials, max_bad_commands: 3, ..Setup::default() }.start();
    let (mut client, _) = server.connect_by_socket_pair().await;
    client
        .talk(
            r"
            C: 1 LOGIN bob wrong
            S: 1 NO [AUTHENTICATIONFAILED] Wrong user name or password
            C: 2 AUTHENTICATE PLAIN AGJvYgB3cm9uZw==
            S: 2 NO [AUTHENTICATIONFAILED] Wrong user name or password
            C: 3 LOGIN ann wrong
            S: 3 NO [AUTHENTICATIONFAILED] Wrong user name or password
            S: * BYE Too many errors
            EOF
            ",
        )
        .await;
}

/// The body of an HTTP request may contain commands.
#[tokio::test]
async fn commands_of_web_pages_are_not_executed() {
    let server = TestServer::start();
    server.deliver("bob@x.org", MAIL).await;
    let mut client = server.connect().await;
    client
        .send(
            "POST / HTTP/1.1\r\nHost: localhost\r\n\r\n\r\n1 LOGIN bob x\r\n2 SELECT INBOX\r\n\
             3 STORE 1 +FLAGS (\\Deleted)\r\n4 EXPUNGE\r\n",
        )
        .await;
    client.talk("S: * BYE This is IMAP, not HTTP\nEOF").await;
    drop(client);
    assert_eq!(ended(&server, "errors").await, 1);
    assert_eq!(server.count("bob").await, 1);
}

#[tokio::test]
async fn shutdown_says_goodbye_to_waiting_clients() {
    let server = TestServer::start();
    let mut clients = vec![server.connect().await, server.log_in("bob").await, server.open_inbox("bob").await];
    let mut idling = server.open_inbox("bob").await;
    idling.talk("C: 1 IDLE\nS: + idling").await;
    clients.push(idling);
    let mut authenticating = server.connect().await;
    authenticating.talk("C: 1 AUTHENTICATE PLAIN\nS~ + ").await;
    clients.push(authenticating);
    let clients = tokio::spawn(async move {
        for client in &mut clients {
            client.talk("S: * BYE [UNAVAILABLE] mx.test is shutting down\nEOF").await;
        }
    });
    server.shut_down().await;
    clients.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn shutdown_does_not_wait_for_handshakes_and_delayed_logins() {
    for (tls, implicit_tls, command) in
        [(true, true, ""), (true, false, "1 STARTTLS\r\n"), (false, false, "1 LOGIN bob wrong\r\n")]
    {
        let credentials = vec![MailboxPassword { mailbox: None, password: Secret::new("right") }];
        let server = Setup { credentials, tls, implicit_tls, ..Setup::default() }.start();
        let (client_end, server_end) = UnixStream::pair().unwrap();
        let admission = ConnectionLimits::new(1, None).admit();
        let session = server.server.clone().serve(Stream::Unix(server_end), None, admission, server.shutdown.clone());
        tokio::spawn(session);
        let mut client = Client::new(Box::new(client_end));
        client.send(command).await;
        // The first failed login is being delayed.
        sleep(Duration::from_millis(500)).await;
        let started = Instant::now();
        server.shut_down().await;
        assert!(started.elapsed() < Duration::from_secs(1), "{command}");
    }
}

#[tokio::test]
async fn sessions_and_connections_are_counted() {
    let server = TestServer::start();
    for _ in 0..3 {
        server.log_in("bob").await.talk("C: 1 LOGOUT\nS* 1 OK LOGOUT completed\nEOF").await;
    }
    drop(server.log_in("bob").await);
    assert_eq!(ended(&server, "left").await, 1);
    for (series, count) in [
        ("restante_sessions_ended_total{protocol=\"imap\",outcome=\"quit\"}", 3),
        ("restante_connections_accepted_total{protocol=\"imap\"}", 4),
        ("restante_connections{protocol=\"imap\"}", 0),
        ("restante_logins_total{protocol=\"imap\",outcome=\"ok\"}", 4),
    ] {
        assert_eq!(server.counter(series).await, count, "{series}");
    }
}
