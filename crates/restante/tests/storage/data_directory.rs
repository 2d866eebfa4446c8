//! The real program with a data directory: what it kept is there again, and a directory that it cannot use is refused in
//! plain words.

use std::path::{Path, PathBuf};
use std::process::Output;

use restante_testdir::TestDir;
use serde_json::Value;

use crate::support::{Server, command};

/// A directory that is gone when the test ends.
struct Scratch(TestDir);

impl Scratch {
    fn new() -> Self {
        Self(TestDir::new())
    }

    /// The data directory, which the server has to make.
    fn data(&self) -> PathBuf {
        self.0.path().join("data")
    }
}

fn start(data: &Path) -> Server {
    Server::start(&["--data", data.to_str().unwrap()])
}

/// Starts a server that is expected to end at once.
fn refused(data: &Path) -> (i32, String) {
    let Output { status, stderr, .. } = command().arg("--data").arg(data).output().unwrap();
    (status.code().unwrap(), String::from_utf8(stderr).unwrap())
}

fn send(server: &Server, to: &str, subject: &str) {
    let mut talk = server.talk();
    talk.open_mail(to);
    talk.say("DATA", "354");
    talk.say(&format!("Subject: {subject}\r\n\r\nHello\r\n."), "250");
    talk.say("QUIT", "221");
}

fn ids(list: &Value) -> Vec<u64> {
    let id = |message: &Value| message["id"].as_str().unwrap().parse().unwrap();
    list.as_array().unwrap().iter().map(id).collect()
}

#[test]
fn a_restart_keeps_everything() {
    let scratch = Scratch::new();
    let mut server = start(&scratch.data());
    server.logged(&format!("mail is kept in {}: 0 messages in 0 mailboxes", scratch.data().display()));
    for subject in ["one", "two", "three"] {
        send(&server, "bob@x.org", subject);
    }
    send(&server, "ann@x.org", "four");
    let first = ids(&server.json("/api/v1/mailbox/bob"));
    let path = |id: u64| format!("/api/v1/mailbox/bob/{id}");
    ureq::patch(server.url(&path(first[0]))).send_empty().unwrap();
    ureq::delete(server.url(&path(first[2]))).call().unwrap();
    let before = server.json("/api/v1/mailbox/bob");
    let source = server.bytes(&format!("{}/source", path(first[1])));

    for signal in ["TERM", "KILL"] {
        server.signal(signal);
        assert_eq!(server.wait().success(), signal == "TERM");
        if signal == "TERM" {
            assert!(!scratch.data().join("restante.db-wal").exists(), "the database was closed");
        }
        server = start(&scratch.data());
        server.logged("3 messages in 2 mailboxes");
        assert_eq!(server.json("/api/v1/mailbox/bob"), before, "after {signal}");
        assert_eq!(before[0]["seen"], true);
        assert_eq!(server.bytes(&format!("{}/source", path(first[1]))), source);
    }
    // The id of a message that is gone is not given again.
    send(&server, "bob@x.org", "five");
    assert!(ids(&server.json("/api/v1/mailbox/bob"))[2] > first[2]);
}

#[test]
fn one_server_for_each_directory() {
    let scratch = Scratch::new();
    let first = start(&scratch.data());
    let (code, log) = refused(&scratch.data());
    // Not 2: trying again helps as soon as the other server is gone.
    assert_eq!(code, 1, "{log}");
    assert!(log.contains(&format!("in use by another server (process {})", first.pid())), "{log}");
    send(&first, "bob@x.org", "still served");
    assert_eq!(first.count("bob"), 1);
}

#[test]
fn directories_that_cannot_be_used() {
    let scratch = Scratch::new();
    let file = scratch.0.path().join("file");
    std::fs::write(&file, "no directory").unwrap();
    for data in [file.clone(), file.join("below"), PathBuf::from("/proc/restante")] {
        let (code, log) = refused(&data);
        assert_eq!(code, 2, "{log}");
        assert!(log.contains(data.to_str().unwrap()), "{log}");
    }

    let server = start(&scratch.data());
    send(&server, "bob@x.org", "lost");
    drop(server);
    for rest in ["-wal", "-shm"] {
        let _ = std::fs::remove_file(scratch.data().join(format!("restante.db{rest}")));
    }
    std::fs::write(scratch.data().join("restante.db"), "This is no database at all.".repeat(1000)).unwrap();
    let (code, log) = refused(&scratch.data());
    assert_eq!(code, 2, "{log}");
    assert!(log.contains("damaged") && log.lines().filter(|line| line.contains("ERROR")).count() == 1, "{log}");
}

#[test]
fn what_is_checked_and_what_is_told() {
    let scratch = Scratch::new();
    let data = scratch.data();
    let check = command().args(["config", "check", "--data"]).arg(&data).stdout(std::process::Stdio::piped()).output();
    let text = String::from_utf8(check.unwrap().stdout).unwrap();
    assert!(text.contains(&format!("storage.path = \"{}\"", data.display())), "{text}");
    assert!(text.contains("storage.type = \"file\""), "{text}");
    assert!(!data.exists(), "a check leaves no traces");

    std::fs::create_dir_all(data.join("mail/a1b")).unwrap();
    let mut server = start(&data);
    server.logged(&format!("restante import --data {0} {0}", data.display()));
    assert_eq!(server.bytes("/livez"), b"ok\n");
    assert_eq!(server.bytes("/readyz"), b"ok\n");
}

#[test]
fn the_program_asks_after_its_own_health() {
    let scratch = Scratch::new();
    let mut server = start(&scratch.data());
    let http = server.http.to_string();
    let ask = || {
        let mut ask = command();
        ask.args(["health", "--web-addr", &http, "--data"]).arg(scratch.data()).stdout(std::process::Stdio::piped());
        let Output { status, stdout, .. } = ask.output().unwrap();
        (status.code(), String::from_utf8(stdout).unwrap())
    };
    assert_eq!(ask(), (Some(0), format!("healthy: HTTP on {http} is ready\n")));
    server.signal("TERM");
    server.wait();
    let (code, text) = ask();
    assert_eq!(code, Some(1));
    assert!(text.starts_with(&format!("unhealthy: HTTP on {http} cannot be reached: ")), "{text}");
}
