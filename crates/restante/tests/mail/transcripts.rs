//! What the real program tells about the sessions that brought mail, and about those that did not.

use std::fs;
use std::io::Write as _;
use std::time::{Duration, Instant};

use restante_testdir::TestDir;
use serde_json::{Value, json};

use crate::support::tls::Wire;
use crate::support::{LONG, Server, Talk, connect};

/// The lines of a transcript, each with who said it: `C: QUIT`.
fn lines(told: &Value) -> Vec<String> {
    let line = |line: &Value| {
        let who = if line["from"] == "client" { "C" } else { "S" };
        format!("{who}: {}", line["text"].as_str().unwrap())
    };
    told["lines"].as_array().unwrap().iter().map(line).collect()
}

fn transcript(server: &Server, mailbox: &str) -> Value {
    server.json(&format!("/api/v2/mailbox/{mailbox}/latest/transcript"))
}

/// The latest of so many sessions, once it has ended.
fn ended(server: &Server, number: usize) -> Value {
    let deadline = Instant::now() + LONG;
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
fn a_mail_by_tls_from_somebody_who_has_logged_in() {
    let server = Server::start(&[
        "--smtp-tlsenabled=true",
        "--smtp-tlscert",
        "self-signed",
        "--smtp-credentials",
        "ann:hunter2",
    ]);
    let mut talk = Talk::new(Wire::Plain(connect(server.smtp)));
    talk.expect("220");
    talk.say("EHLO first.test", "250");
    talk.say("STARTTLS", "220");
    talk.stream.start_tls();
    talk.say("EHLO client.test", "250");
    talk.say("AUTH LOGIN", "334");
    talk.say("aHVudGVyMg==", "334");
    talk.say("aHVudGVyMg==", "535");
    talk.say("AUTH PLAIN AGFubgBodW50ZXIy", "235");
    talk.say("MAIL FROM:<a@x.org> SIZE=7 BODY=8BITMIME RET=HDRS ENVID=QQ314159", "250");
    talk.say("RCPT TO:<bob@x.org> NOTIFY=SUCCESS,DELAY ORCPT=rfc822;bob@x.org", "250");
    talk.say("DATA", "354");
    talk.say("hunter3\r\n.", "250");

    // The session is still open, and the transcript is there.
    let told = transcript(&server, "bob");
    let said = lines(&told);
    let head = said.iter().position(|line| line.starts_with("C: MAIL")).unwrap();
    assert!(said[0].starts_with("S: 220 mx.test"), "{said:?}");
    let client: Vec<&String> = said[..head].iter().filter(|line| line.starts_with("C: ")).collect();
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
        said[head..],
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
    let text = told.to_string();
    assert!(!text.contains("hunter") && !text.contains("aHVudGVy") && !text.contains("AGFubg"), "{text}");
    let session = &told["session"];
    assert_eq!(session["tls"], json!({"version": "TLSv1.3", "cipher": session["tls"]["cipher"]}));
    assert!(session["tls"]["cipher"].as_str().unwrap().starts_with("TLS_"), "{session}");
    let record = ["protocol", "client", "helo", "user", "ended-millis", "ending", "refused"].map(|name| &session[name]);
    let expected =
        [json!("smtp"), json!("127.0.0.1"), json!("client.test"), json!("ann"), json!(null), json!(null), json!(1)];
    assert_eq!(record, expected.each_ref());
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

    talk.say("QUIT", "221");
    let whole = ended(&server, 1);
    assert_eq!(whole["session"]["ending"], "quit");
    assert_eq!(lines(&whole).last().unwrap(), "S: 221 2.0.0 Bye");
}

/// What is said behind EHLO and answered by which codes; the outcome of the mail, its recipients, and how much was refused.
type Attempt<'a> = (&'a [(&'a str, &'a str)], &'a str, Value, u64);

#[test]
fn mails_that_are_not_taken() {
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
        let mut talk = server.talk();
        talk.expect("220");
        talk.say("EHLO client.test", "250");
        for (line, code) in *dialogue {
            talk.say(line, code);
        }
        let told = ended(&server, number);
        let session = &told["session"];
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
fn clients_that_leave_or_are_sent_away() {
    let server = Server::start(&["--smtp-maxbadcommands", "2"]);
    let mut talk = server.talk();
    talk.open_mail("bob@x.org");
    talk.say("DATA", "354");
    talk.send("half a mail");
    drop(talk);
    let told = ended(&server, 1);
    assert_eq!(lines(&told).last().unwrap(), "C: (11 octets of mail)");
    assert_eq!(told["session"]["ending"], "left");
    assert_eq!(told["session"]["transactions"][0]["outcome"], "aborted");
    assert_eq!(told["session"]["transactions"][0]["reply"], json!(null));

    let mut talk = server.talk();
    talk.expect("220");
    talk.say("BOGUS", "500");
    talk.say("BOGUS", "421");
    drop(talk);
    let told = ended(&server, 2);
    assert_eq!((&told["session"]["ending"], &told["session"]["refused"]), (&json!("errors"), &json!(2)));
}

#[test]
fn one_client_too_many() {
    let server = Server::start(&["--smtp-maxconnections", "1"]);
    let mut first = server.talk();
    first.expect("220");
    server.talk().expect("421");
    let told = ended(&server, 1);
    assert_eq!((&told["session"]["ending"], &told["session"]["refused"]), (&json!("refused"), &json!(1)));
}

#[test]
fn a_silent_client() {
    let server = Server::start(&["--smtp-timeout", "1s"]);
    let mut talk = server.talk();
    talk.expect("220");
    talk.expect("421");
    drop(talk);
    let told = ended(&server, 1);
    assert_eq!((&told["session"]["ending"], &told["session"]["refused"]), (&json!("timeout"), &json!(1)));
}

#[test]
fn a_handshake_that_fails() {
    let server = Server::start(&["--smtp-tlsenabled=true", "--smtp-tlscert", "self-signed"]);
    let mut talk = server.talk();
    talk.expect("220");
    talk.say("STARTTLS", "220");
    talk.send("this is no handshake\r\n");
    while talk.line().is_some() {}
    let told = ended(&server, 1);
    assert_eq!((&told["session"]["ending"], &told["session"]["tls"]), (&json!("tls"), &json!(null)));
    let said = lines(&told);
    assert!(said.last().unwrap().starts_with("S: (the TLS handshake failed: "), "{said:?}");
    assert_eq!(server.json("/api/v2/sessions?refused=true")["sessions"].as_array().unwrap().len(), 1);
}

#[test]
fn mails_in_one_session_are_told_apart() {
    let server = Server::start(&[]);
    let mut talk = server.talk();
    talk.expect("220");
    talk.send(concat!(
        "EHLO client.test\r\n",
        "MAIL FROM:<one@x.org>\r\nRCPT TO:<first@x.org>\r\nBDAT 3\r\none",
        "BDAT 2 LAST\r\n\r\n",
        "MAIL FROM:<lost@x.org>\r\nRSET\r\n",
        "MAIL FROM:<two@x.org>\r\nRCPT TO:<second@x.org>\r\nRCPT TO:<third@x.org>\r\nBDAT 5 LAST\r\ntwo\r\nQUIT\r\n",
    ));
    while talk.line().is_some() {}
    let client =
        |told: &Value| -> Vec<String> { lines(told).into_iter().filter(|line| line.starts_with("C: ")).collect() };
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
    let told = ended(&server, 1);
    let mails = told["session"]["transactions"].as_array().unwrap();
    let outcomes: Vec<&str> = mails.iter().map(|mail| mail["outcome"].as_str().unwrap()).collect();
    assert_eq!(outcomes, ["stored", "aborted", "stored"]);
    assert_eq!(mails[2]["messages"].as_array().unwrap().len(), 2);
    let (whole, moments) = (client(&told), told["lines"].as_array().unwrap());
    assert_eq!(whole.len(), first.len() + 2 + second.len() - 1 + 1, "{whole:?}");
    assert!(moments.iter().map(|line| line["after-millis"].as_u64().unwrap()).is_sorted());
}

#[test]
fn nothing_is_recorded_where_nothing_shall_be() {
    let server = Server::start(&["--smtp-transcriptkb", "0"]);
    server.deliver("bob@x.org", b"Subject: hi\r\n\r\n");
    assert_eq!(server.json("/api/v2/sessions"), json!({"sessions": [], "next": null}));
    let answer = ureq::get(server.url("/api/v2/mailbox/bob/latest/transcript")).call();
    assert!(matches!(answer, Err(ureq::Error::StatusCode(404))), "{answer:?}");
}

#[test]
fn transcripts_outlive_the_server() {
    let dir = TestDir::new();
    let data = dir.path().join("data");
    let start = || Server::start(&["--data", data.to_str().unwrap()]);
    let mut server = start();
    server.deliver("bob@x.org", b"Subject: hi\r\n\r\n");
    let before = transcript(&server, "bob");
    let session = ended(&server, 1);
    server.signal("TERM");
    assert!(server.wait().success());
    let mut server = start();
    let after = transcript(&server, "bob");
    assert_eq!((&after["lines"], lines(&after).len()), (&before["lines"], lines(&before).len()));
    let id = session["session"]["id"].as_str().unwrap();
    assert_eq!(server.json(&format!("/api/v2/sessions/{id}")), session);

    // Whatever happens to the file, mail is served.
    server.signal("TERM");
    assert!(server.wait().success());
    let mut file = fs::File::create(data.join("sessions.db")).unwrap();
    file.write_all(b"this is no database").unwrap();
    let server = start();
    assert_eq!(server.count("bob"), 1);
    assert_eq!(server.json("/api/v2/sessions"), json!({"sessions": [], "next": null}));
    server.deliver("bob@x.org", b"Subject: hi\r\n\r\n");
    assert!(lines(&transcript(&server, "bob")).len() > 5);
}
