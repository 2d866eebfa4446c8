//! Session transcripts of the real program: of sessions that delivered messages, and of those that did not.

use std::fs;
use std::io::Write as _;
use std::time::{Duration, Instant};

use restante_testdir::TestDir;
use serde_json::{Value, json};

use crate::support::tls::ClientStream;
use crate::support::{LineConnection, Server, TEST_TIMEOUT, connect};

/// Returns the lines of a transcript, each with its party: `C: QUIT`.
fn lines(transcript: &Value) -> Vec<String> {
    let line = |line: &Value| {
        let party = if line["from"] == "client" { "C" } else { "S" };
        format!("{party}: {}", line["text"].as_str().unwrap())
    };
    transcript["lines"].as_array().unwrap().iter().map(line).collect()
}

fn transcript(server: &Server, mailbox: &str) -> Value {
    server.json(&format!("/api/v2/mailbox/{mailbox}/latest/transcript"))
}

/// Waits until there are `number` sessions and the latest has ended. Returns its transcript.
fn wait_for_end(server: &Server, number: usize) -> Value {
    let deadline = Instant::now() + TEST_TIMEOUT;
    loop {
        let list = server.json("/api/v2/sessions");
        let sessions = list["sessions"].as_array().unwrap();
        let latest = sessions.first().filter(|latest| sessions.len() == number && latest["ending"].is_string());
        if let Some(latest) = latest {
            return server.json(&format!("/api/v2/sessions/{}", latest["id"].as_str().unwrap()));
        }
        assert!(Instant::now() < deadline, "the session does not end: {list}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn transcript_of_a_session_with_tls_and_login() {
    let server = Server::start(&[
        "--smtp-tlsenabled=true",
        "--smtp-tlscert",
        "self-signed",
        "--smtp-credentials",
        "ann:hunter2",
    ]);
    let mut connection = LineConnection::new(ClientStream::Plain(connect(server.smtp)));
    connection.expect("220");
    connection.command("EHLO first.test", "250");
    connection.command("STARTTLS", "220");
    connection.stream.start_tls();
    connection.command("EHLO client.test", "250");
    connection.command("AUTH LOGIN", "334");
    connection.command("aHVudGVyMg==", "334");
    connection.command("aHVudGVyMg==", "535");
    connection.command("AUTH PLAIN AGFubgBodW50ZXIy", "235");
    connection.command("MAIL FROM:<a@x.org> SIZE=7 BODY=8BITMIME RET=HDRS ENVID=QQ314159", "250");
    connection.command("RCPT TO:<bob@x.org> NOTIFY=SUCCESS,DELAY ORCPT=rfc822;bob@x.org", "250");
    connection.command("DATA", "354");
    connection.command("hunter3\r\n.", "250");

    // The session is still open, but its transcript is available.
    let record = transcript(&server, "bob");
    let dialogue = lines(&record);
    let head = dialogue.iter().position(|line| line.starts_with("C: MAIL")).unwrap();
    assert!(dialogue[0].starts_with("S: 220 mx.test"), "{dialogue:?}");
    let client: Vec<&String> = dialogue[..head].iter().filter(|line| line.starts_with("C: ")).collect();
    assert_eq!(
        client,
        [
            "C: EHLO first.test",
            "C: STARTTLS",
            "C: EHLO client.test",
            "C: AUTH LOGIN",
            "C: ***",
            "C: ***",
            "C: AUTH PLAIN ***"
        ]
    );
    assert_eq!(
        dialogue[head..],
        [
            "C: MAIL FROM:<a@x.org> SIZE=7 BODY=8BITMIME RET=HDRS ENVID=QQ314159",
            "S: 250 2.1.0 Sender ok",
            "C: RCPT TO:<bob@x.org> NOTIFY=SUCCESS,DELAY ORCPT=rfc822;bob@x.org",
            "S: 250 2.1.5 Recipient ok",
            "C: DATA",
            "S: 354 End the mail with a dot on a line of its own",
            "C: (12 octets of mail)",
            "S: 250 2.0.0 Mail accepted",
        ]
    );
    let text = record.to_string();
    assert!(!text.contains("hunter") && !text.contains("aHVudGVy") && !text.contains("AGFubg"), "{text}");
    let session = &record["session"];
    assert_eq!(session["tls"], json!({"version": "TLSv1.3", "cipher": session["tls"]["cipher"]}));
    assert!(session["tls"]["cipher"].as_str().unwrap().starts_with("TLS_"), "{session}");
    let fields = ["protocol", "client", "helo", "user", "ended-millis", "ending", "refused"].map(|name| &session[name]);
    let expected =
        [json!("smtp"), json!("127.0.0.1"), json!("client.test"), json!("ann"), json!(null), json!(null), json!(1)];
    assert_eq!(fields, expected.each_ref());
    let id = server.ids("bob").remove(0);
    let mail = json!({
        "from": "a@x.org",
        "to": ["bob@x.org"],
        "parameters": {
            "mail": "SIZE=7 BODY=8BITMIME RET=HDRS ENVID=QQ314159",
            "rcpt": ["NOTIFY=SUCCESS,DELAY ORCPT=rfc822;bob@x.org"],
        },
        "outcome": "stored",
        "reply": "250 2.0.0 Mail accepted",
        "messages": [{"mailbox": "bob", "id": id}],
    });
    assert_eq!(session["transactions"], json!([mail]));

    connection.command("QUIT", "221");
    let whole = wait_for_end(&server, 1);
    assert_eq!(whole["session"]["ending"], "quit");
    assert_eq!(lines(&whole).last().unwrap(), "S: 221 2.0.0 Bye");
}

/// The commands after EHLO with the codes of their replies, the outcome, the recipients, and the number of refusals.
type Attempt<'a> = (&'a [(&'a str, &'a str)], &'a str, Value, u64);

#[test]
fn transcripts_of_messages_that_are_not_stored() {
    let server = Server::start(&[
        "--smtp-rejectdomains",
        "no.test",
        "--smtp-rejectorigindomains",
        "spam.test",
        "--smtp-discarddomains",
        "void.test",
        "--smtp-maxmessagebytes",
        "100",
    ]);
    let long = format!("{}\r\n.", "x".repeat(200));
    let table: &[Attempt<'_>] = &[
        (&[("MAIL FROM:<a@spam.test>", "5"), ("QUIT", "221")], "refused", json!([]), 1),
        (
            &[("MAIL FROM:<a@x.org>", "250"), ("RCPT TO:<b@no.test>", "5"), ("RSET", "250"), ("QUIT", "221")],
            "refused",
            json!([]),
            1,
        ),
        (&[("MAIL FROM:<a@x.org>", "250"), ("RCPT TO:<b@no.test>", "5"), ("QUIT", "221")], "refused", json!([]), 1),
        (
            &[
                ("MAIL FROM:<a@x.org>", "250"),
                ("RCPT TO:<b@x.org>", "250"),
                ("DATA", "354"),
                (&long, "552"),
                ("QUIT", "221"),
            ],
            "refused",
            json!(["b@x.org"]),
            1,
        ),
        (
            &[("MAIL FROM:<a@x.org>", "250"), ("RCPT TO:<b@x.org>", "250"), ("RSET", "250"), ("QUIT", "221")],
            "aborted",
            json!(["b@x.org"]),
            0,
        ),
        (
            &[
                ("MAIL FROM:<>", "250"),
                ("RCPT TO:<b@void.test>", "250"),
                ("DATA", "354"),
                (".", "250"),
                ("QUIT", "221"),
            ],
            "discarded",
            json!(["b@void.test"]),
            0,
        ),
    ];
    for (number, (dialogue, outcome, to, refused)) in (1..).zip(table) {
        let mut connection = server.connect_smtp();
        connection.expect("220");
        connection.command("EHLO client.test", "250");
        for (line, code) in *dialogue {
            connection.command(line, code);
        }
        let record = wait_for_end(&server, number);
        let session = &record["session"];
        let mails = session["transactions"].as_array().unwrap();
        assert_eq!(mails.len(), 1, "{dialogue:?}: {session}");
        assert_eq!((&mails[0]["outcome"], &mails[0]["to"]), (&json!(outcome), to), "{dialogue:?}");
        assert_eq!(session["refused"], *refused, "{dialogue:?}");
        let reply = mails[0]["reply"].as_str().unwrap_or("none");
        let expected = match *outcome {
            "refused" => "5",
            "discarded" => "250",
            _ => "none",
        };
        assert!(reply.starts_with(expected), "{dialogue:?}: {reply}");
    }
    let list = server.json("/api/v2/sessions?refused=true");
    assert_eq!(list["sessions"].as_array().unwrap().len(), 4);
}

#[test]
fn transcripts_of_disconnected_clients() {
    let server = Server::start(&["--smtp-maxbadcommands", "2"]);
    let mut connection = server.connect_smtp();
    connection.start_message("bob@x.org");
    connection.command("DATA", "354");
    connection.send("half a mail");
    drop(connection);
    let record = wait_for_end(&server, 1);
    assert_eq!(lines(&record).last().unwrap(), "C: (11 octets of mail)");
    assert_eq!(record["session"]["ending"], "left");
    assert_eq!(record["session"]["transactions"][0]["outcome"], "aborted");
    assert_eq!(record["session"]["transactions"][0]["reply"], json!(null));

    let mut connection = server.connect_smtp();
    connection.expect("220");
    connection.command("BOGUS", "500");
    connection.command("BOGUS", "421");
    drop(connection);
    let record = wait_for_end(&server, 2);
    assert_eq!((&record["session"]["ending"], &record["session"]["refused"]), (&json!("errors"), &json!(2)));
}

#[test]
fn transcript_of_a_client_above_the_connection_limit() {
    let server = Server::start(&["--smtp-maxconnections", "1"]);
    let mut first = server.connect_smtp();
    first.expect("220");
    server.connect_smtp().expect("421");
    let record = wait_for_end(&server, 1);
    assert_eq!((&record["session"]["ending"], &record["session"]["refused"]), (&json!("refused"), &json!(1)));
}

#[test]
fn transcript_of_an_idle_client() {
    let server = Server::start(&["--smtp-timeout", "1s"]);
    let mut connection = server.connect_smtp();
    connection.expect("220");
    connection.expect("421");
    drop(connection);
    let record = wait_for_end(&server, 1);
    assert_eq!((&record["session"]["ending"], &record["session"]["refused"]), (&json!("timeout"), &json!(1)));
}

#[test]
fn transcript_of_a_failed_tls_handshake() {
    let server = Server::start(&["--smtp-tlsenabled=true", "--smtp-tlscert", "self-signed"]);
    let mut connection = server.connect_smtp();
    connection.expect("220");
    connection.command("STARTTLS", "220");
    connection.send("this is not a handshake\r\n");
    while connection.line().is_some() {}
    let record = wait_for_end(&server, 1);
    assert_eq!((&record["session"]["ending"], &record["session"]["tls"]), (&json!("tls"), &json!(null)));
    let dialogue = lines(&record);
    assert!(dialogue.last().unwrap().starts_with("S: (the TLS handshake failed: "), "{dialogue:?}");
    assert_eq!(server.json("/api/v2/sessions?refused=true")["sessions"].as_array().unwrap().len(), 1);
}

#[test]
fn message_transcript_omits_other_messages_of_the_session() {
    let server = Server::start(&[]);
    let mut connection = server.connect_smtp();
    connection.expect("220");
    connection.send(concat!(
        "EHLO client.test\r\n",
        "MAIL FROM:<one@x.org>\r\nRCPT TO:<first@x.org>\r\nBDAT 3\r\none",
        "BDAT 2 LAST\r\n\r\n",
        "MAIL FROM:<lost@x.org>\r\nRSET\r\n",
        "MAIL FROM:<two@x.org>\r\nRCPT TO:<second@x.org>\r\nRCPT TO:<third@x.org>\r\nBDAT 5 LAST\r\ntwo\r\nQUIT\r\n",
    ));
    while connection.line().is_some() {}
    let client =
        |record: &Value| -> Vec<String> { lines(record).into_iter().filter(|line| line.starts_with("C: ")).collect() };
    let first = [
        "C: EHLO client.test",
        "C: MAIL FROM:<one@x.org>",
        "C: RCPT TO:<first@x.org>",
        "C: BDAT 3",
        "C: (3 octets of mail)",
        "C: BDAT 2 LAST",
        "C: (2 octets of mail)",
    ];
    assert_eq!(client(&transcript(&server, "first")), first);
    let second = [
        "C: EHLO client.test",
        "C: MAIL FROM:<two@x.org>",
        "C: RCPT TO:<second@x.org>",
        "C: RCPT TO:<third@x.org>",
        "C: BDAT 5 LAST",
        "C: (5 octets of mail)",
    ];
    for mailbox in ["second", "third"] {
        assert_eq!(client(&transcript(&server, mailbox)), second);
    }
    let record = wait_for_end(&server, 1);
    let mails = record["session"]["transactions"].as_array().unwrap();
    let outcomes: Vec<&str> = mails.iter().map(|mail| mail["outcome"].as_str().unwrap()).collect();
    assert_eq!(outcomes, ["stored", "aborted", "stored"]);
    assert_eq!(mails[2]["messages"].as_array().unwrap().len(), 2);
    let (whole, moments) = (client(&record), record["lines"].as_array().unwrap());
    assert_eq!(whole.len(), first.len() + 2 + second.len() - 1 + 1, "{whole:?}");
    assert!(moments.iter().map(|line| line["after-millis"].as_u64().unwrap()).is_sorted());
}

#[test]
fn all_messages_of_a_session_are_counted() {
    let server = Server::start(&["--smtp-rejectdomains=evil.test"]);
    let mut connection = server.connect_smtp();
    connection.expect("220");
    // The first refusal is recorded at once.
    connection.command("BOGUS", "500");
    connection.command("EHLO client.test", "250");
    let dialogues: [&[(&str, &str)]; 3] = [
        &[("RCPT TO:<bob@evil.test>", "550"), ("RSET", "250")],
        &[("RSET", "250")],
        &[("RCPT TO:<bob@x.org>", "250"), ("DATA", "354"), (".", "250")],
    ];
    for dialogue in dialogues.iter().cycle().take(120) {
        connection.command("MAIL FROM:<ann@x.org>", "250");
        for (line, code) in *dialogue {
            connection.command(line, code);
        }
    }
    connection.command("QUIT", "221");
    let counts =
        |session: &Value| (session["transaction-count"].as_u64(), session["transactions"].as_array().unwrap().len());
    assert_eq!(counts(&wait_for_end(&server, 1)["session"]), (Some(120), 120));
    assert_eq!(counts(&server.json("/api/v2/sessions")["sessions"][0]), (Some(120), 99));
    assert_eq!(transcript(&server, "bob")["session"]["transaction-count"], json!(null));
}

#[test]
fn transcripts_can_be_disabled() {
    let server = Server::start(&["--smtp-transcriptkb", "0"]);
    server.deliver("bob@x.org", b"Subject: hi\r\n\r\n");
    assert_eq!(server.json("/api/v2/sessions"), json!({"sessions": [], "next": null}));
    let response = ureq::get(server.url("/api/v2/mailbox/bob/latest/transcript")).call();
    assert!(matches!(response, Err(ureq::Error::StatusCode(404))), "{response:?}");
}

#[test]
fn transcripts_survive_restarts() {
    let dir = TestDir::new();
    let data = dir.path().join("data");
    let start = || Server::start(&["--data", data.to_str().unwrap()]);
    let mut server = start();
    server.deliver("bob@x.org", b"Subject: hi\r\n\r\n");
    let before = transcript(&server, "bob");
    let session = wait_for_end(&server, 1);
    server.signal("TERM");
    assert!(server.wait().success());
    let mut server = start();
    let after = transcript(&server, "bob");
    assert_eq!((&after["lines"], lines(&after).len()), (&before["lines"], lines(&before).len()));
    let id = session["session"]["id"].as_str().unwrap();
    assert_eq!(server.json(&format!("/api/v2/sessions/{id}")), session);

    // A damaged file does not stop the server.
    server.signal("TERM");
    assert!(server.wait().success());
    let mut file = fs::File::create(data.join("sessions.db")).unwrap();
    file.write_all(b"this is not a database").unwrap();
    let server = start();
    assert_eq!(server.count("bob"), 1);
    assert_eq!(server.json("/api/v2/sessions"), json!({"sessions": [], "next": null}));
    server.deliver("bob@x.org", b"Subject: hi\r\n\r\n");
    assert!(lines(&transcript(&server, "bob")).len() > 5);
}
