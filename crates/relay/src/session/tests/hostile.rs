//! Servers that do not answer as they should, before and during a message.

use std::time::Duration;

use super::super::{Connector, RecipientOutcome};
use super::{OPENING, Server, connect, test_target};
use crate::settings::{Target, TargetTls};

/// Returns the error of a connection to a server with this script.
async fn connect_error(script: &str, target: Target) -> String {
    let server = Server::start(script, None).await;
    let error = connect(&server, target).await.err().expect("an error");
    assert!(error.transcript.iter().any(|line| line.text.contains(&error.text)), "the error is in the transcript");
    server.finish().await;
    error.text
}

#[tokio::test]
async fn refused_sessions_are_explained() {
    let (opening, starttls) = (OPENING, Target { tls: TargetTls::StartTls, ..test_target() });
    let invalid = "the server sent a reply that is too long or not valid";
    let long = "the reply of the server is too long";
    let table = [
        ("S: 554 5.7.1 go away\n", "the server refused the connection: 554 5.7.1 go away"),
        ("S: 421 busy\n", "the server refused the connection: 421 busy"),
        ("", "the server closed the connection"),
        ("S: SSH-2.0\n", invalid),
        ("S: 220 mx\nC: EHLO relay.test\nS: 421 bye\n", "the server refused the greeting: 421 bye"),
        (
            "S: 220 mx\nC: EHLO relay.test\nS: 502 what\nC: HELO relay.test\nS: 550 no\n",
            "the server refused the greeting: 550 no",
        ),
        ("ENDLESS 2", invalid),
        ("ENDLESS 220-x\\n", long),
        ("S: 220 mx\nC: EHLO relay.test\nENDLESS 250-X\\n", long),
    ];
    for (script, text) in table {
        assert_eq!(connect_error(script, test_target()).await, text, "{script}");
    }
    let text = "the server offers no STARTTLS; set starttls=optional or starttls=never for this target";
    assert_eq!(connect_error(opening, starttls).await, text);
}

#[tokio::test]
async fn a_server_without_extensions_is_used() {
    let script = "S: 220 mx\nC: EHLO relay.test\nS: 502 what\nC: HELO relay.test\nS: 250 mx\n\
                  C: MAIL FROM:<>\nS: 250 ok\nC: RCPT TO:<a@x.org>\nS: 250 ok\nC: DATA\nS: 354 go\nC: x\nC: .\nS: 250 ok\n";
    let server = Server::start(script, None).await;
    let target = Target { tls: TargetTls::Optional, ..test_target() };
    let transaction = connect(&server, target).await.unwrap().send("", &["a@x.org"], b"x\r\n").await;
    assert_eq!(transaction.recipients[0].outcome, RecipientOutcome::Accepted);
    server.finish().await;
}

#[tokio::test]
async fn slow_servers_do_not_hold_a_session() {
    let target = || Target { timeout: Duration::from_secs(3), ..test_target() };
    let greeting = connect_error("SLOW 220-\\n", target());
    let silence = async {
        let server = Server::start("SLOW ", None).await;
        connect(&server, target()).await.err().expect("an error").text
    };
    let reply = async {
        let server = Server::start(&format!("{OPENING}C: MAIL FROM:<>\nSLOW 250-\\n"), None).await;
        let transaction = connect(&server, target()).await.unwrap().send("", &["a@x.org"], b"x\r\n").await;
        assert!(transaction.is_target_failure && !transaction.is_reusable);
        transaction.reply
    };
    let (greeting, silence, reply) = tokio::join!(greeting, silence, reply);
    assert_eq!([greeting, silence, reply], ["the server did not reply in time"; 3]);
}

#[tokio::test]
async fn endless_replies_are_cut_off() {
    for reply in ["250-x\\n", "250-\\n", "250 x", "250\\r"] {
        let server = Server::start(&format!("{OPENING}C: MAIL FROM:<>\nENDLESS {reply}"), None).await;
        let transaction = connect(&server, test_target()).await.unwrap().send("", &["a@x.org"], b"x\r\n").await;
        assert!(transaction.reply.contains("too long"), "{reply:?}: {}", transaction.reply);
        assert_eq!(transaction.recipients[0].outcome, RecipientOutcome::Temporary);
        assert!(!transaction.is_reusable);
        let bytes: usize = transaction.transcript.iter().map(|line| line.text.len()).sum();
        assert!(bytes < 64 * 1024, "{bytes}");
        server.finish().await;
    }
}

#[tokio::test]
async fn private_addresses_must_be_allowed() {
    let connector = Connector::new("relay.test".to_owned(), false);
    for host in ["10.0.0.7", "127.0.0.1", "::1", "localhost"] {
        let error = connector.connect(&Target { host: host.to_owned(), ..test_target() }).await.err().unwrap();
        assert_eq!(error.text, format!("{host} is not a public address; set relay.private to allow it"));
    }
}

#[tokio::test]
async fn unreachable_targets_are_explained() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let connector = Connector::new("relay.test".to_owned(), true);
    let error = connector.connect(&Target { port, ..test_target() }).await.err().unwrap();
    assert!(error.text.starts_with(&format!("cannot connect to 127.0.0.1:{port}: ")), "{}", error.text);
    let error = connector.connect(&Target { host: "mx.invalid".to_owned(), ..test_target() }).await.err().unwrap();
    assert!(error.text.starts_with("cannot resolve mx.invalid"), "{}", error.text);
}

#[tokio::test]
async fn a_server_may_take_longer_to_accept_a_message() {
    let script = format!(
        "{OPENING}C: MAIL FROM:<>\nS: 250 ok\nC: RCPT TO:<a@x.org>\nS: 250 ok\nC: DATA\nS: 354 go\nC: x\nC: .\n\
         WAIT 4\nS: 250 ok\n"
    );
    let server = Server::start(&script, None).await;
    let target = Target { timeout: Duration::from_secs(3), ..test_target() };
    let transaction = connect(&server, target).await.unwrap().send("", &["a@x.org"], b"x\r\n").await;
    assert_eq!(transaction.reply, "250 ok");
    server.finish().await;
}
