//! The program with its mail in PostgreSQL: a real server, a line to it that is cut or hangs, and nodes beside each other. Without
//! PostgreSQL on this machine these tests say that they were skipped.

use std::io::{BufRead as _, BufReader, Lines};
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::time::{Duration, Instant};

use restante_testdir::TestDir;
use restante_testpg::{FaultProxy, Postgres};

use crate::support::monitor::{Ear, EventStream};
use crate::support::pop3::Pop3;
use crate::support::{LONG, Server, Talk, command, connect};

/// Longer than the program waits for an answer of the database.
const LONGER: Duration = Duration::from_mins(1);

fn url(port: u16) -> String {
    format!("postgres://restante@127.0.0.1:{port}/postgres")
}

/// A server with its mail in the database behind this port.
fn node(port: u16) -> Server {
    Server::start(&["--storage-url", &url(port)])
}

/// Sends a mail, and returns what is said to it at last.
fn send(server: &Server, to: &str, subject: &str) -> String {
    let stream = connect(server.smtp);
    stream.set_read_timeout(Some(LONGER)).unwrap();
    let mut talk = Talk::new(stream);
    talk.open_mail(to);
    talk.say("DATA", "354");
    talk.send(format!("Subject: {subject}\r\n\r\nHello.\r\n.\r\n"));
    talk.line().expect("an answer")
}

fn status(server: &Server, path: &str) -> u16 {
    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
    agent.get(server.url(path)).call().expect("an answer").status().as_u16()
}

/// Waits until something is so.
#[track_caller]
fn eventually(is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < LONG, "it is never so");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// What `restante health` says of a server.
fn health(server: &Server) -> String {
    let web = server.http.to_string();
    let Output { stdout, .. } =
        command().args(["health", "--web-addr", &web]).stdout(Stdio::piped()).output().expect("it runs");
    String::from_utf8(stdout).unwrap()
}

/// Every way in and out says that it does not go on for now, and that it is not the client's fault.
fn assert_cut_off(server: &mut Server) {
    let answer = send(server, "bob@x.org", "refused");
    assert_eq!(answer, "451 4.3.0 The mail cannot be stored at the moment");
    assert_eq!(status(server, "/readyz"), 503);
    assert_eq!(status(server, "/livez"), 200, "it lives, and starting it again would not help");
    assert_eq!(status(server, "/api/v1/mailbox/bob"), 503);
    let health = health(server);
    assert!(health.starts_with("unhealthy: ") && health.contains("The store cannot be reached"), "{health}");
    let mut pop3 = Pop3::connect(server);
    pop3.talk.say("USER bob", "+OK");
    let answer = pop3.talk.say("PASS x", "-ERR");
    assert!(answer.contains("[SYS/TEMP]"), "{answer}");
}

/// It does its work again, and nothing that it has acknowledged is missing.
fn assert_recovered(server: &Server, acknowledged: &[&str]) {
    eventually(|| status(server, "/readyz") == 200);
    let list = server.json("/api/v1/mailbox/bob");
    let subjects: Vec<&str> =
        list.as_array().unwrap().iter().map(|message| message["subject"].as_str().unwrap()).collect();
    let kept: Vec<&str> = subjects.iter().copied().filter(|subject| acknowledged.contains(subject)).collect();
    assert_eq!(kept, acknowledged, "{subjects:?}");
    assert!(health(server).starts_with("healthy: "));
}

#[test]
fn a_line_to_the_database_that_is_cut() {
    let Some(postgres) = Postgres::start() else { return };
    let mut line = FaultProxy::new(postgres.port());
    let mut server = node(line.port());
    server.logged(&format!("mail is kept in PostgreSQL at 127.0.0.1:{}/postgres: 0 messages", line.port()));
    assert_eq!(server.json("/serve/status")["storage-config"]["store-type"], "postgres");
    assert!(send(&server, "bob@x.org", "first").starts_with("250"));
    line.disconnect();
    assert_cut_off(&mut server);
    line.restore();
    assert_recovered(&server, &["first"]);
    assert!(send(&server, "bob@x.org", "second").starts_with("250"));
    assert_recovered(&server, &["first", "second"]);
}

#[test]
fn a_database_that_is_killed() {
    let Some(mut postgres) = Postgres::start() else { return };
    let mut server = node(postgres.port());
    assert!(send(&server, "bob@x.org", "first").starts_with("250"));
    postgres.kill();
    assert_cut_off(&mut server);
    postgres.start_again();
    assert_recovered(&server, &["first"]);
    assert!(send(&server, "bob@x.org", "second").starts_with("250"));
    postgres.stop();
    assert_cut_off(&mut server);
    server.signal("TERM");
    assert_eq!(server.wait().code(), Some(0), "it ends as well without the database");
}

#[test]
fn a_line_to_the_database_that_hangs() {
    let Some(postgres) = Postgres::start() else { return };
    let mut line = FaultProxy::new(postgres.port());
    let server = node(line.port());
    assert!(send(&server, "bob@x.org", "first").starts_with("250"));
    line.hang();
    eventually(|| status(&server, "/readyz") == 503);
    let answer = send(&server, "bob@x.org", "perhaps");
    assert_eq!(answer, "451 4.3.0 The mail cannot be stored at the moment");
    line.restore();
    assert_recovered(&server, &["first"]);
    assert!(send(&server, "bob@x.org", "second").starts_with("250"));
    assert_recovered(&server, &["first", "second"]);
    // What was not acknowledged may have been stored nevertheless, by the answer that was not heard; not more than once.
    assert!(server.count("bob") <= 3);
}

#[test]
fn what_one_node_has_taken_is_at_the_other_at_once() {
    let Some(postgres) = Postgres::start() else { return };
    // They start at the same time, and find nothing in the database.
    let start = || node(postgres.port());
    let (one, other) = std::thread::scope(|scope| {
        let other = scope.spawn(start);
        (start(), other.join().unwrap())
    });
    let mut talk = one.talk();
    talk.expect("220");
    talk.say("EHLO client.test", "250");
    for number in 0..200 {
        talk.say("MAIL FROM:<ann@x.org>", "250");
        talk.say("RCPT TO:<bob@x.org>", "250");
        talk.say("DATA", "354");
        talk.say(&format!("Subject: {number}\r\n\r\nHello.\r\n."), "250");
        let latest = other.json("/api/v1/mailbox/bob/latest");
        assert_eq!(latest["subject"], number.to_string());
        if number % 10 == 0 {
            let id = latest["id"].as_str().unwrap();
            ureq::delete(other.url(&format!("/api/v1/mailbox/bob/{id}"))).call().unwrap();
            assert_eq!(status(&one, &format!("/api/v1/mailbox/bob/{id}")), 404);
        }
    }
    assert_eq!((one.count("bob"), other.count("bob")), (180, 180));
    talk.say("QUIT", "221");
    // What was said to bring it is written behind the delivery.
    eventually(|| status(&other, "/api/v2/mailbox/bob/latest/transcript") == 200);
    let told = other.json("/api/v2/mailbox/bob/latest/transcript");
    assert!(told["lines"].as_array().unwrap().iter().any(|line| line["text"] == "RCPT TO:<bob@x.org>"), "{told}");
}

/// Who listens at one node hears of what happens at another, in its order and once, also of what happened while its node was cut off.
#[test]
fn what_happens_at_one_node_is_told_at_the_other() {
    let Some(postgres) = Postgres::start() else { return };
    let mut line = FaultProxy::new(postgres.port());
    let (one, other) = (node(postgres.port()), node(line.port()));
    let mut ear = Ear::open(&other, "/api/v2/monitor/messages");
    let mut stream = EventStream::open(&other, "/api/v2/events/bob", "");
    let waiting = std::thread::spawn({
        let url = other.url("/api/v2/mailbox/bob/wait?timeout=20s");
        move || ureq::get(url).call().unwrap().body_mut().read_to_string().unwrap()
    });
    assert!(send(&one, "bob@x.org", "first").starts_with("250"));
    let told = ear.text();
    assert_eq!((&told["variant"], &told["header"]["subject"]), (&"message-stored".into(), &"first".into()), "{told}");
    let position = stream.next().expect("an event").id;
    assert!(waiting.join().unwrap().contains("\"subject\":\"first\""));

    line.disconnect();
    eventually(|| status(&other, "/readyz") == 503);
    for subject in ["second", "third"] {
        assert!(send(&one, "bob@x.org", subject).starts_with("250"));
    }
    let first = &one.ids("bob")[0];
    ureq::delete(one.url(&format!("/api/v1/mailbox/bob/{first}"))).call().unwrap();
    line.restore();
    assert!(send(&one, "bob@x.org", "last").starts_with("250"));
    let heard: Vec<_> = (0..4).map(|_| ear.text()).collect();
    let subjects: Vec<_> = heard.iter().map(|told| told["header"]["subject"].as_str().unwrap_or("gone")).collect();
    assert_eq!(subjects, ["second", "third", "gone", "last"], "{heard:?}");

    // A position in the stream of one node is good at the other.
    let mut stream = EventStream::open(&one, "/api/v2/events/bob", &format!("Last-Event-ID: {position}\r\n"));
    let next = stream.next().expect("an event");
    assert_eq!((&*next.name, &next.data["header"]["subject"]), ("message-stored", &"second".into()), "{next:?}");
}

/// A program that may not have come to serve yet.
struct Starting {
    child: Child,
    log: Lines<BufReader<ChildStderr>>,
}

impl Starting {
    fn new(url: &str) -> Self {
        let mut child = command().env("RESTANTE_STORAGE_URL", url).spawn().unwrap();
        let log = BufReader::new(child.stderr.take().unwrap()).lines();
        Self { child, log }
    }

    /// Waits for a line with this text.
    fn logged(&mut self, text: &str) {
        let line = self.log.by_ref().map_while(Result::ok).find(|line| line.contains(text));
        assert!(line.is_some(), "it ended without {text:?}");
    }
}

impl Drop for Starting {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_database_that_comes_later_is_waited_for() {
    let Some(mut postgres) = Postgres::start() else { return };
    let port = postgres.port();
    postgres.stop();
    let mut given_up = Starting::new(&url(port));
    given_up.logged("the database cannot be reached");
    let pid = given_up.child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    given_up.logged("shutting down");
    assert_eq!(given_up.child.wait().unwrap().code(), Some(0));

    let mut patient = Starting::new(&url(port));
    patient.logged("; waiting for it");
    postgres.start_again();
    patient.logged("mail is kept in PostgreSQL");
    patient.logged("HTTP listening on");
}

#[test]
fn what_waiting_does_not_help_against() {
    let access = "host all all 127.0.0.1/32 scram-sha-256\n";
    let Some(locked) = Postgres::start_with_files(&[("pg_hba.conf", access)], &[]) else { return };
    let Some(open) = Postgres::shared() else { return };
    let cases = [
        (url(open.port()).replace("/postgres", "/nothing"), "database \"nothing\" does not exist"),
        (url(open.port()).replace("restante@", "nobody@"), "role \"nobody\" does not exist"),
        (
            url(locked.port()).replace("restante@", "restante:hunter2@"),
            "password authentication failed for user \"restante\"",
        ),
        (url(locked.port()), "password missing"),
        (url(open.port()) + "?sslmode=on", "storage.url = \"***\" (variable RESTANTE_STORAGE_URL): sslmode must be"),
    ];
    for (url, expected) in cases {
        let Output { status, stderr, .. } = command().env("RESTANTE_STORAGE_URL", &url).output().unwrap();
        let told = String::from_utf8(stderr).unwrap();
        assert_eq!(status.code(), Some(2), "{told}");
        assert!(told.contains(expected) && !told.contains("hunter2") && !told.contains("waiting"), "{told}");
    }
}

#[test]
fn mail_comes_in_and_out_of_the_database() {
    let Some(postgres) = Postgres::start() else { return };
    let server = node(postgres.port());
    let transfer = |arguments: &[&str]| {
        let mut command = command();
        command.env("RESTANTE_STORAGE_URL", postgres.url()).args(arguments).stdout(Stdio::piped());
        let Output { status, stdout, stderr } = command.output().unwrap();
        assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
        String::from_utf8(stdout).unwrap()
    };
    let dir = TestDir::new();
    let letter = dir.path().join("letter.eml");
    std::fs::write(&letter, "Subject: from a file\r\n\r\nHello.\r\n").unwrap();
    // Beside a server that runs: a database has no lock like a data directory.
    transfer(&["import", "--mailbox", "bob", "--received-now", letter.to_str().unwrap()]);
    assert_eq!(server.json("/api/v1/mailbox/bob")[0]["subject"], "from a file");
    let exported = transfer(&["export", "-"]);
    assert!(exported.contains("Subject: from a file"), "{exported}");
}
