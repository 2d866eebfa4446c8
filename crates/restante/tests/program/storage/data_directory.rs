//! The real program with a data directory: its content survives restarts, and an unusable directory is rejected with a clear error.

use std::path::{Path, PathBuf};
use std::process::Output;

use restante_testdir::TestDir;
use serde_json::Value;

use crate::support::{Server, command};

/// A directory that is removed when the test ends.
struct Scratch(TestDir);

impl Scratch {
    fn new() -> Self {
        Self(TestDir::new())
    }

    /// The data directory. The server creates it.
    fn data(&self) -> PathBuf {
        self.0.path().join("data")
    }
}

fn start(data: &Path) -> Server {
    Server::start(&["--data", data.to_str().unwrap()])
}

/// Runs a server that is expected to exit at once. Returns its exit code and log.
fn run_refused(data: &Path) -> (i32, String) {
    let Output { status, stderr, .. } = command().arg("--data").arg(data).output().unwrap();
    (status.code().unwrap(), String::from_utf8(stderr).unwrap())
}

fn send(server: &Server, to: &str, subject: &str) {
    let mut connection = server.connect_smtp();
    connection.start_message(to);
    connection.command("DATA", "354");
    connection.command(&format!("Subject: {subject}\r\n\r\nHello\r\n."), "250");
    connection.command("QUIT", "221");
}

fn ids(list: &Value) -> Vec<u64> {
    let id = |message: &Value| message["id"].as_str().unwrap().parse().unwrap();
    list.as_array().unwrap().iter().map(id).collect()
}

#[test]
fn messages_survive_restarts() {
    let scratch = Scratch::new();
    let mut server = start(&scratch.data());
    server.wait_for_log(&format!("messages are stored in {}: 0 messages in 0 mailboxes", scratch.data().display()));
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
            assert!(!scratch.data().join("restante.db-wal").exists(), "the database was not closed");
        }
        server = start(&scratch.data());
        server.wait_for_log("3 messages in 2 mailboxes");
        assert_eq!(server.json("/api/v1/mailbox/bob"), before, "after {signal}");
        assert_eq!(before[0]["seen"], true);
        assert_eq!(server.bytes(&format!("{}/source", path(first[1]))), source);
    }
    // The id of a deleted message is not assigned again.
    send(&server, "bob@x.org", "five");
    assert!(ids(&server.json("/api/v1/mailbox/bob"))[2] > first[2]);
}

#[test]
fn second_server_on_the_same_directory_is_rejected() {
    let scratch = Scratch::new();
    let first = start(&scratch.data());
    let (code, log) = run_refused(&scratch.data());
    // Not 2: a retry succeeds after the other server has stopped.
    assert_eq!(code, 1, "{log}");
    assert!(log.contains(&format!("in use by another server (process {})", first.pid())), "{log}");
    send(&first, "bob@x.org", "still running");
    assert_eq!(first.count("bob"), 1);
}

#[test]
fn rejects_unusable_directories() {
    let scratch = Scratch::new();
    let file = scratch.0.path().join("file");
    std::fs::write(&file, "no directory").unwrap();
    for data in [file.clone(), file.join("below"), PathBuf::from("/proc/restante")] {
        let (code, log) = run_refused(&data);
        assert_eq!(code, 2, "{log}");
        assert!(log.contains(data.to_str().unwrap()), "{log}");
    }

    let server = start(&scratch.data());
    send(&server, "bob@x.org", "lost");
    drop(server);
    for rest in ["-wal", "-shm"] {
        let _ = std::fs::remove_file(scratch.data().join(format!("restante.db{rest}")));
    }
    std::fs::write(scratch.data().join("restante.db"), "This is not a database.".repeat(1000)).unwrap();
    let (code, log) = run_refused(&scratch.data());
    assert_eq!(code, 2, "{log}");
    assert!(log.contains("damaged") && log.lines().filter(|line| line.contains("ERROR")).count() == 1, "{log}");
}

#[test]
fn config_check_creates_nothing_and_inbucket_data_is_reported() {
    let scratch = Scratch::new();
    let data = scratch.data();
    let check = command().args(["config", "check", "--data"]).arg(&data).stdout(std::process::Stdio::piped()).output();
    let text = String::from_utf8(check.unwrap().stdout).unwrap();
    assert!(text.contains(&format!("storage.path = \"{}\"", data.display())), "{text}");
    assert!(text.contains("storage.type = \"file\""), "{text}");
    assert!(!data.exists(), "the check created the directory");

    std::fs::create_dir_all(data.join("mail/a1b")).unwrap();
    let mut server = start(&data);
    server.wait_for_log(&format!("restante import --data {0} {0}", data.display()));
    assert_eq!(server.bytes("/livez"), b"ok\n");
    assert_eq!(server.bytes("/readyz"), b"ok\n");
}

#[test]
fn health_command_reports_a_running_and_a_stopped_server() {
    let scratch = Scratch::new();
    let mut server = start(&scratch.data());
    let http = server.http.to_string();
    let health = |wait: &[&str]| {
        let mut health = command();
        health.args(["health", "--web-addr", &http, "--data"]).arg(scratch.data()).args(wait);
        health.stdout(std::process::Stdio::piped());
        let Output { status, stdout, .. } = health.output().unwrap();
        (status.code(), String::from_utf8(stdout).unwrap())
    };
    for wait in [&[][..], &["--wait", "30s"]] {
        assert_eq!(health(wait), (Some(0), format!("healthy: HTTP on {http} is ready\n")));
    }
    server.signal("TERM");
    server.wait();
    for wait in [&[][..], &["--wait", "300ms"]] {
        let (code, text) = health(wait);
        assert_eq!(code, Some(1));
        assert!(text.starts_with(&format!("unhealthy: HTTP on {http} cannot be reached: ")), "{text}");
    }
}
