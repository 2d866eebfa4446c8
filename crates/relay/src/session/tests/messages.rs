//! Messages that are accepted, deferred and refused.

use super::super::RecipientOutcome::{self, Accepted, Permanent, Temporary};
use super::super::Transaction;
use super::{OPENING, Server, connect, conversation, test_target};

const DATA: &[u8] = b"Subject: x\r\n\r\n.hi\r\n";
const MAIL: &str = "C: MAIL FROM:<ann@x.org>\n";
const RCPT_A: &str = "C: RCPT TO:<a@x.org>\n";
const RCPT_B: &str = "C: RCPT TO:<b@x.org>\n";
const CONTENT: &str = "C: Subject: x\nC: \nC: ..hi\nC: .\n";
const OK: &str = "S: 250 2.0.0 ok\n";
const GO: &str = "S: 354 go\n";

/// The steps of a message to two recipients, with the replies that accept it.
const STEPS: [(&str, &str); 5] = [(MAIL, OK), (RCPT_A, OK), (RCPT_B, OK), ("C: DATA\n", GO), (CONTENT, OK)];

/// Sends a message to two recipients. The script follows the opening.
async fn send(script: &str) -> Transaction {
    let server = Server::start(&format!("{OPENING}{script}"), None).await;
    let mut session = connect(&server, test_target()).await.unwrap();
    let transaction = session.send("ann@x.org", &["a@x.org", "b@x.org"], DATA).await;
    server.finish().await;
    transaction
}

fn outcomes(transaction: &Transaction) -> Vec<RecipientOutcome> {
    transaction.recipients.iter().map(|result| result.outcome).collect()
}

/// Returns the steps with other replies at some of them, and without those at the end that have none.
fn script(replies: &[&str]) -> String {
    let steps = STEPS.into_iter().zip(replies.iter().copied());
    steps.flat_map(|((command, ok), reply)| [command, if reply.is_empty() { ok } else { reply }]).collect()
}

#[tokio::test]
async fn replies_decide_about_recipients() {
    let table: [(&[&str], [RecipientOutcome; 2], &str); 12] = [
        (&["", "", "", "", ""], [Accepted, Accepted], "250 2.0.0 ok"),
        (&["", "", "", "", "S: 251-a\nS: 251 b\n"], [Accepted, Accepted], "251 a b"),
        (&["S: 451 later\n"], [Temporary, Temporary], "451 later"),
        (&["S: 550 5.7.606 no\n"], [Permanent, Permanent], "550 5.7.606 no"),
        (&["", "S: 450 later\n", "", "", ""], [Temporary, Accepted], "250 2.0.0 ok"),
        (&["", "S: 550 no\n", "", "", ""], [Permanent, Accepted], "250 2.0.0 ok"),
        (&["", "S: 550 no\n", "", "", "S: 452 full\n"], [Permanent, Temporary], "452 full"),
        (&["", "S: 550 no\n", "S: 450 later\n"], [Permanent, Temporary], "550 no"),
        (&["", "", "", "S: 451 later\n"], [Temporary, Temporary], "451 later"),
        (&["", "", "", "S: 554 no\n"], [Permanent, Permanent], "554 no"),
        (&["", "", "", "", "S: 451 later\n"], [Temporary, Temporary], "451 later"),
        (&["", "", "", "", "S: 552 large\n"], [Permanent, Permanent], "552 large"),
    ];
    for (replies, expected, reply) in table {
        let transaction = send(&script(replies)).await;
        assert_eq!(outcomes(&transaction), expected, "{replies:?}");
        assert_eq!(transaction.reply, reply);
        assert!(transaction.is_reusable && !transaction.is_target_failure, "{replies:?}");
    }
}

#[tokio::test]
async fn broken_sessions_are_temporary_failures() {
    for (at, (command, _)) in STEPS.into_iter().enumerate() {
        for reply in ["", "S: 421 4.3.2 bye\n", "S: 150 what\n", "S: hello\n"] {
            let mut steps = script(&vec![""; at]);
            steps.push_str(command);
            steps.push_str(reply);
            let transaction = send(&steps).await;
            // An unexpected reply to RCPT is a refusal of this recipient. Here the connection breaks after it.
            assert_eq!(outcomes(&transaction), [Temporary, Temporary], "{steps}");
            assert!(!transaction.is_reusable, "{steps}");
            let is_target_failure = reply.contains("421") || (at == 0 && !reply.contains("150"));
            assert_eq!(transaction.is_target_failure, is_target_failure, "{steps}");
        }
    }
    assert_eq!(send(MAIL).await.reply, "the server closed the connection");
    assert_eq!(send(&format!("{MAIL}S: 421 4.3.2 bye\n")).await.reply, "421 4.3.2 bye");
    let text = "the server sent a reply that is too long or not valid";
    assert_eq!(send(&format!("{MAIL}S: hello\n")).await.reply, text);
    let transaction = send(&format!("{}C: DATA\nS: 250 what\n", script(&["", "", ""]))).await;
    assert_eq!(outcomes(&transaction), [Temporary, Temporary]);
    assert!(!transaction.is_reusable);
}

#[tokio::test]
async fn commands_are_pipelined() {
    let opening = "S: 220 mx.test ESMTP\nC: EHLO relay.test\nS: 250-mx.test\nS: 250 PIPELINING\n";
    let group = format!("{MAIL}{RCPT_A}{RCPT_B}");
    let table: [(&str, [RecipientOutcome; 2]); 5] = [
        (&format!("{OK}{OK}{OK}C: DATA\n{GO}{CONTENT}{OK}"), [Accepted, Accepted]),
        (&format!("{OK}S: 550 no\n{OK}C: DATA\n{GO}{CONTENT}{OK}"), [Permanent, Accepted]),
        // DATA is not sent without recipients.
        (&format!("{OK}S: 550 no\nS: 450 later\n"), [Permanent, Temporary]),
        ("S: 450 later\nS: 503 no\nS: 503 no\n", [Temporary, Temporary]),
        ("S: 550 no\nS: 503 no\nS: 503 no\n", [Permanent, Permanent]),
    ];
    for (script, expected) in table {
        let reset = if expected.contains(&Accepted) { "" } else { "C: RSET\nS: 250 ok\n" };
        let script = format!("{opening}{group}{script}{reset}{group}{OK}{OK}{OK}C: DATA\n{GO}{CONTENT}{OK}");
        let server = Server::start(&script, None).await;
        let mut session = connect(&server, test_target()).await.unwrap();
        let transaction = session.send("ann@x.org", &["a@x.org", "b@x.org"], DATA).await;
        assert_eq!(outcomes(&transaction), expected, "{script}");
        assert!(transaction.is_reusable);
        let transaction = session.send("ann@x.org", &["a@x.org", "b@x.org"], DATA).await;
        assert_eq!(outcomes(&transaction), [Accepted, Accepted], "{script}");
        server.finish().await;
    }
    let server = Server::start(&format!("{opening}{group}{OK}S: 421 bye\n"), None).await;
    let mut session = connect(&server, test_target()).await.unwrap();
    let transaction = session.send("ann@x.org", &["a@x.org", "b@x.org"], DATA).await;
    assert_eq!(outcomes(&transaction), [Temporary, Temporary]);
    assert!(transaction.is_target_failure && !transaction.is_reusable);
}

#[tokio::test]
async fn a_session_sends_several_messages() {
    let message = script(&["", "", "", "", ""]);
    let refused = format!("{MAIL}S: 550 no\n");
    let reset = "C: RSET\nS: 250 ok\n";
    let script = format!("{OPENING}{message}{refused}{reset}{message}{message}C: QUIT\nS: 221 bye\n");
    let server = Server::start(&script, None).await;
    let mut session = connect(&server, test_target()).await.unwrap();
    let mut transcripts = Vec::new();
    for expected in [Accepted, Permanent, Accepted, Accepted] {
        let transaction = session.send("ann@x.org", &["a@x.org", "b@x.org"], DATA).await;
        assert_eq!(outcomes(&transaction), [expected; 2]);
        transcripts.push(transaction.transcript);
    }
    session.quit().await;
    server.finish().await;

    // The transcript of each message has the start of the session, and no content.
    let without_content = message.replace(CONTENT, "");
    assert_eq!(conversation(&transcripts[0]), format!("{OPENING}{without_content}"));
    assert_eq!(conversation(&transcripts[1]), format!("{OPENING}{refused}"));
    assert_eq!(conversation(&transcripts[2]), format!("{OPENING}{reset}{without_content}"));
    assert!(transcripts[0].iter().any(|line| line.text == "(19 bytes)"));
}

#[tokio::test]
async fn a_server_may_close_an_idle_session() {
    let message = script(&["", "", "", "", ""]);
    for (end, reply) in [("S: 421 4.4.2 idle\n", "421 4.4.2 idle"), ("", "the server closed the connection")] {
        let server = Server::start(&format!("{OPENING}{message}{end}"), None).await;
        let mut session = connect(&server, test_target()).await.unwrap();
        assert_eq!(outcomes(&session.send("ann@x.org", &["a@x.org", "b@x.org"], DATA).await), [Accepted; 2]);
        server.finish().await;
        let transaction = session.send("ann@x.org", &["a@x.org"], DATA).await;
        assert_eq!((outcomes(&transaction), transaction.reply.as_str()), (vec![Temporary], reply));
        assert!(transaction.is_target_failure && !transaction.is_reusable);
    }
}

#[tokio::test]
async fn extensions_are_used_if_they_are_offered() {
    let opening = |extensions: &str| format!("S: 220 mx.test\nC: EHLO relay.test\nS: 250-mx.test\n{extensions}");
    let accepted = format!("{OK}C: DATA\n{GO}C: Subject: ü\nC: \nC: hi\nC: .\n{OK}");
    let data = "Subject: ü\r\n\r\nhi\r\n".as_bytes();
    let all = opening("S: 250-SIZE 1000\nS: 250-8BITMIME\nS: 250 SMTPUTF8\n");
    let table = [
        (
            format!("{all}C: MAIL FROM:<> SIZE=19 BODY=8BITMIME SMTPUTF8\n{OK}C: RCPT TO:<jürg@x.org>\n{accepted}"),
            Accepted,
            "250 2.0.0 ok",
        ),
        (
            opening("S: 250-8BITMIME\nS: 250 SIZE 1000\n"),
            Permanent,
            "jürg@x.org is not ASCII, and the server does not support such addresses (SMTPUTF8)",
        ),
        (
            opening("S: 250-SMTPUTF8\nS: 250 SIZE 18\n"),
            Permanent,
            "the message has 19 bytes, and the server accepts at most 18",
        ),
    ];
    for (script, expected, reply) in table {
        let server = Server::start(&script, None).await;
        let mut session = connect(&server, test_target()).await.unwrap();
        let transaction = session.send("", &["jürg@x.org"], data).await;
        assert_eq!((outcomes(&transaction), transaction.reply.as_str()), (vec![expected], reply));
        assert!(transaction.is_reusable);
        server.finish().await;
    }

    // Other recipients are not affected.
    let script = format!("{OPENING}{MAIL}{OK}{RCPT_A}{OK}C: DATA\n{GO}{CONTENT}{OK}");
    let server = Server::start(&script, None).await;
    let mut session = connect(&server, test_target()).await.unwrap();
    let transaction = session.send("ann@x.org", &["jürg@x.org", "a@x.org"], DATA).await;
    assert_eq!(outcomes(&transaction), [Permanent, Accepted]);
    server.finish().await;
}

#[tokio::test]
async fn domains_are_sent_in_the_form_that_is_compared() {
    // With and without the extension for international addresses.
    for extension in ["SMTPUTF8", "HELP"] {
        let script = format!(
            "S: 220 mx.test\nC: EHLO relay.test\nS: 250-mx.test\nS: 250 {extension}\n\
             C: MAIL FROM:<ann@xn--bcher-kva.example>\n{OK}C: RCPT TO:<bob@example.org>\n{OK}\
             C: RCPT TO:<bob@xn--strae-oqa.example>\n{OK}C: DATA\n{GO}{CONTENT}{OK}"
        );
        let server = Server::start(&script, None).await;
        let mut session = connect(&server, test_target()).await.unwrap();
        let recipients = ["bob@\u{ff45}xample.org", "bob@stra\u{df}e.example"];
        let transaction = session.send("ann@b\u{fc}cher.example", &recipients, DATA).await;
        assert_eq!(outcomes(&transaction), [Accepted, Accepted], "{extension}");
        server.finish().await;
    }
}

#[tokio::test]
async fn addresses_cannot_inject_commands() {
    let script = format!("{OPENING}{MAIL}{OK}{RCPT_A}{OK}C: DATA\n{GO}{CONTENT}{OK}");
    let server = Server::start(&script, None).await;
    let mut session = connect(&server, test_target()).await.unwrap();
    let invalid =
        ["", "b", "b@x.org>\r\nDATA", "b@x.org\r\nRSET", "b@x.org> SIZE=1", "\"a>b\"@x.org", "b@x\0.org", "<b@x.org>"];
    for sender in invalid.into_iter().filter(|sender| !sender.is_empty()) {
        let transaction = session.send(sender, &["a@x.org"], DATA).await;
        assert_eq!(outcomes(&transaction), [Permanent], "{sender:?}");
        assert!(transaction.is_reusable && !transaction.reply.contains(['\r', '\n', '\0']), "{}", transaction.reply);
    }
    let long = "x".repeat(9000);
    let recipients = [&invalid[..], &["a@x.org", &long]].concat();
    let transaction = session.send("ann@x.org", &recipients, DATA).await;
    let mut expected = vec![Permanent; recipients.len()];
    expected[invalid.len()] = Accepted;
    assert_eq!(outcomes(&transaction), expected);
    assert!(transaction.recipients.iter().all(|result| result.reply.len() < 200), "long addresses are cut off");
    server.finish().await;
}

#[tokio::test]
async fn content_cannot_end_the_message() {
    let script = format!("{OPENING}{MAIL}{OK}{RCPT_A}{OK}C: DATA\n{GO}C: ..\nC: ..\nC: ...\nC: \nC: .\n{OK}");
    let server = Server::start(&script, None).await;
    let mut session = connect(&server, test_target()).await.unwrap();
    let transaction = session.send("ann@x.org", &["a@x.org"], b".\r\n.\r\n..\r\n\r\n").await;
    assert_eq!(outcomes(&transaction), [Accepted]);
    server.finish().await;
}
