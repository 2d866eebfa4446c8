//! The log of sessions with `netdebug`: every command and reply, without passwords, tokens and mail.

use std::fmt::Write as _;

use data_encoding::BASE64;
use parking_lot::Mutex;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use super::*;

/// Collects log lines of all levels.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<String>>);

impl Subscriber for Log {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn event(&self, event: &Event<'_>) {
        let mut text = self.0.lock();
        event.record(&mut Fields(&mut text));
        text.push('\n');
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// Writes the fields of an event.
struct Fields<'a>(&'a mut String);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let _ = write!(self.0, "{}={value:?} ", field.name());
    }
}

#[tokio::test]
async fn log_has_no_secrets_and_no_mail() {
    const SECRET: &str = "tops3cret";
    let log = Log::default();
    // The test has one thread, so this applies to all tasks of the server.
    let guard = tracing::subscriber::set_default(log.clone());
    let server = Setup { netdebug: true, ..Setup::default() }.start();
    server.deliver("bob@x.org", "Subject: s3cret subject\r\n\r\ns3cret text\r\n").await;
    let plain = BASE64.encode(format!("\0bob\0{SECRET}").as_bytes());
    let bearer = BASE64.encode(format!("user=bob\x01auth=Bearer {SECRET}\x01\x01").as_bytes());
    let (user, password) = (BASE64.encode(b"bob"), BASE64.encode(SECRET.as_bytes()));
    let conversations = [
        format!("C: 1 LOGIN bob {SECRET}\nS~ 1 OK [CAPABILITY "),
        format!("C: 1 LOGIN bob \"{SECRET}\"\nS~ 1 OK [CAPABILITY "),
        format!("C: 1 LOGIN {{3+}}\nC: bob {{9}}\nS: + Ready for the literal\nC: {SECRET}\nS~ 1 OK [CAPABILITY "),
        // Wrong commands that contain a password.
        format!("C: 1 LOGIN {SECRET}\nS~ 1 BAD "),
        format!("C: LOGIN bob {SECRET}\nS~ LOGIN BAD "),
        format!("C: 1 {SECRET}\nS~ 1 BAD "),
        format!("C: 1 AUTHENTICATE {SECRET}\nS~ 1 NO "),
        format!("C: 1 AUTHENTICATE PLAIN {plain}\nS~ 1 OK [CAPABILITY "),
        format!("C: 1 AUTHENTICATE PLAIN\nS~ + \nC: {plain}\nS~ 1 OK [CAPABILITY "),
        format!("C: 1 AUTHENTICATE LOGIN\nS~ + \nC: {user}\nS~ + \nC: {password}\nS~ 1 OK [CAPABILITY "),
        format!("C: 1 AUTHENTICATE XOAUTH2 {bearer}\nS~ 1 OK [CAPABILITY "),
        format!("C: 1 AUTHENTICATE XOAUTH2\nS~ + \nC: {bearer}\nS~ 1 OK [CAPABILITY "),
    ];
    for conversation in &conversations {
        server.connect().await.talk(conversation).await;
    }
    let mut client = server.open_inbox("bob").await;
    for item in
        ["BODY.PEEK[]", "BODY.PEEK[TEXT]", "BODY.PEEK[HEADER.FIELDS (SUBJECT)]", "RFC822", "ENVELOPE", "PREVIEW"]
    {
        client.talk(&format!("C: 1 FETCH 1 {item}\nS* 1 OK FETCH completed")).await;
    }
    client
        .talk("C: 2 APPEND INBOX {14}\nS~ + \nC: a: s3cret mail\nS* * 2 EXISTS\nS~ * 2 RECENT\nS~ 2 OK [APPENDUID ")
        .await;
    client
        .talk("C: 3 APPEND INBOX (\\Seen) {14+}\nC: a: s3cret mail\nS* * 3 EXISTS\nS~ * 3 RECENT\nS~ 3 OK [APPENDUID ")
        .await;
    client.talk("C: 4 LOGOUT\nS* 4 OK LOGOUT completed\nEOF").await;
    drop(guard);

    let text = log.0.lock();
    for secret in ["s3cret", &plain, &bearer, &password] {
        let line = text.lines().find(|line| line.contains(secret));
        assert_eq!(line, None, "{secret}");
    }
    for expected in [
        "< 1 LOGIN bob ***",
        "< 1 AUTHENTICATE PLAIN ***",
        "< 1 FETCH 1 BODY.PEEK[]",
        "< 4 LOGOUT",
        "> 4 OK LOGOUT completed",
        "> 1 OK FETCH completed",
    ] {
        assert!(text.lines().any(|line| line.contains(expected)), "{expected} is not in {text}");
    }
}
