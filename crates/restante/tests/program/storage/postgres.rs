//! The program with PostgreSQL: a killed database, a broken and a hanging connection, and several nodes. Without PostgreSQL on this
//! machine the tests are skipped with a message.

use std::io::{BufRead as _, BufReader, Lines};
use std::net::SocketAddr;
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::time::{Duration, Instant};

use restante_testdir::TestDir;
use restante_testpg::{FaultProxy, Postgres};
use serde_json::{Value, json};

use crate::support::imap::Imap;
use crate::support::monitor::{EventStream, WebSocketClient};
use crate::support::pop3::Pop3;
use crate::support::{LineConnection, Server, TEST_TIMEOUT, command, connect};

/// Longer than the program waits for a response of the database.
const REPLY_TIMEOUT: Duration = Duration::from_mins(1);

fn url(port: u16) -> String {
    format!("postgres://restante@127.0.0.1:{port}/postgres")
}

/// Starts a server with the database at this port.
fn node(port: u16) -> Server {
    Server::start(&["--storage-url", &url(port)])
}

/// Sends a message, and returns the final reply.
fn send(server: &Server, to: &str, subject: &str) -> String {
    let stream = connect(server.smtp);
    stream.set_read_timeout(Some(REPLY_TIMEOUT)).unwrap();
    let mut connection = LineConnection::new(stream);
    connection.start_message(to);
    connection.command("DATA", "354");
    connection.send(format!("Subject: {subject}\r\n\r\nHello.\r\n.\r\n"));
    connection.line().expect("a reply")
}

fn status(server: &Server, path: &str) -> u16 {
    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
    agent.get(server.url(path)).call().expect("a response").status().as_u16()
}

/// Waits until a condition holds.
#[track_caller]
fn eventually(condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < TEST_TIMEOUT, "the condition never holds");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Returns the output of `restante health`.
fn health(server: &Server) -> String {
    let web = server.http.to_string();
    let Output { stdout, .. } =
        command().args(["health", "--web-addr", &web]).stdout(Stdio::piped()).output().expect("it starts");
    String::from_utf8(stdout).unwrap()
}

/// Checks that every protocol reports a temporary failure of the server.
fn assert_disconnected(server: &mut Server) {
    let reply = send(server, "bob@x.org", "refused");
    assert_eq!(reply, "451 4.3.0 The mail cannot be stored at the moment");
    assert_eq!(status(server, "/readyz"), 503);
    assert_eq!(status(server, "/livez"), 200, "the process runs, and a restart would not help");
    assert_eq!(status(server, "/api/v1/mailbox/bob"), 503);
    let health = health(server);
    assert!(health.starts_with("unhealthy: ") && health.contains("The store cannot be reached"), "{health}");
    let mut pop3 = Pop3::connect(server);
    pop3.connection.command("USER bob", "+OK");
    let reply = pop3.connection.command("PASS x", "-ERR");
    assert!(reply.contains("[SYS/TEMP]"), "{reply}");
    let reply = Imap::login(server, "bob").no("SELECT INBOX");
    assert!(reply.contains("[UNAVAILABLE]"), "{reply}");
}

/// Checks that the server works again and has all acknowledged messages.
fn assert_recovered(server: &Server, acknowledged: &[&str]) {
    eventually(|| status(server, "/readyz") == 200);
    let list = server.json("/api/v1/mailbox/bob");
    let subjects: Vec<&str> =
        list.as_array().unwrap().iter().map(|message| message["subject"].as_str().unwrap()).collect();
    let found: Vec<&str> = subjects.iter().copied().filter(|subject| acknowledged.contains(subject)).collect();
    assert_eq!(found, acknowledged, "{subjects:?}");
    assert!(health(server).starts_with("healthy: "));
}

#[test]
fn recovers_after_a_broken_database_connection() {
    let Some(postgres) = Postgres::start() else { return };
    let mut proxy = FaultProxy::new(postgres.port());
    let mut server = node(proxy.port());
    server
        .wait_for_log(&format!("messages are stored in PostgreSQL at 127.0.0.1:{}/postgres: 0 messages", proxy.port()));
    assert_eq!(server.json("/serve/status")["storage-config"]["store-type"], "postgres");
    assert!(send(&server, "bob@x.org", "first").starts_with("250"));
    proxy.disconnect();
    assert_disconnected(&mut server);
    proxy.restore();
    assert_recovered(&server, &["first"]);
    assert!(send(&server, "bob@x.org", "second").starts_with("250"));
    assert_recovered(&server, &["first", "second"]);
}

#[test]
fn recovers_after_the_database_was_killed() {
    let Some(mut postgres) = Postgres::start() else { return };
    let mut server = node(postgres.port());
    assert!(send(&server, "bob@x.org", "first").starts_with("250"));
    postgres.kill();
    assert_disconnected(&mut server);
    postgres.start_again();
    assert_recovered(&server, &["first"]);
    assert!(send(&server, "bob@x.org", "second").starts_with("250"));
    postgres.stop();
    assert_disconnected(&mut server);
    server.signal("TERM");
    assert_eq!(server.wait().code(), Some(0), "it shuts down without the database");
}

#[test]
fn recovers_after_a_hanging_database_connection() {
    let Some(postgres) = Postgres::start() else { return };
    let mut proxy = FaultProxy::new(postgres.port());
    let server = node(proxy.port());
    assert!(send(&server, "bob@x.org", "first").starts_with("250"));
    proxy.hang();
    eventually(|| status(&server, "/readyz") == 503);
    let reply = send(&server, "bob@x.org", "perhaps");
    assert_eq!(reply, "451 4.3.0 The mail cannot be stored at the moment");
    proxy.restore();
    assert_recovered(&server, &["first"]);
    assert!(send(&server, "bob@x.org", "second").starts_with("250"));
    assert_recovered(&server, &["first", "second"]);
    // The message that was not acknowledged may have been stored, but not more than once.
    assert!(server.count("bob") <= 3);
}

#[test]
fn messages_of_one_node_are_at_once_visible_at_the_other() {
    let Some(postgres) = Postgres::start() else { return };
    // Both nodes start at the same time on an empty database.
    let start = || node(postgres.port());
    let (one, other) = std::thread::scope(|scope| {
        let other = scope.spawn(start);
        (start(), other.join().unwrap())
    });
    let mut connection = one.connect_smtp();
    connection.expect("220");
    connection.command("EHLO client.test", "250");
    for number in 0..200 {
        connection.command("MAIL FROM:<ann@x.org>", "250");
        connection.command("RCPT TO:<bob@x.org>", "250");
        connection.command("DATA", "354");
        connection.command(&format!("Subject: {number}\r\n\r\nHello.\r\n."), "250");
        let latest = other.json("/api/v1/mailbox/bob/latest");
        assert_eq!(latest["subject"], number.to_string());
        if number % 10 == 0 {
            let id = latest["id"].as_str().unwrap();
            ureq::delete(other.url(&format!("/api/v1/mailbox/bob/{id}"))).call().unwrap();
            assert_eq!(status(&one, &format!("/api/v1/mailbox/bob/{id}")), 404);
        }
    }
    assert_eq!((one.count("bob"), other.count("bob")), (180, 180));
    connection.command("QUIT", "221");
    // The transcript is written after the delivery.
    eventually(|| status(&other, "/api/v2/mailbox/bob/latest/transcript") == 200);
    let transcript = other.json("/api/v2/mailbox/bob/latest/transcript");
    assert!(
        transcript["lines"].as_array().unwrap().iter().any(|proxy| proxy["text"] == "RCPT TO:<bob@x.org>"),
        "{transcript}"
    );
}

#[test]
fn three_nodes_agree_on_the_list_of_all_messages() {
    let Some(postgres) = Postgres::start() else { return };
    let nodes = [(); 3].map(|()| node(postgres.port()));
    let addresses = nodes.each_ref().map(|node| (node.smtp, node.http));
    std::thread::scope(|scope| {
        for number in 0..nodes.len() {
            let ((smtp, _), (_, http)) = (addresses[number], addresses[(number + 1) % nodes.len()]);
            scope.spawn(move || change_messages(smtp, http, number));
        }
    });
    let lists = addresses.map(|(_, http)| list_all(http));
    assert_eq!(lists[0], lists[1]);
    assert_eq!(lists[0], lists[2]);
    // Of the 20 messages of each node every fourth was deleted, and of every fifth the copy in one mailbox.
    assert_eq!(lists[0].len(), 3 * 15);
    let count = |is_counted: &dyn Fn(&Value) -> bool| lists[0].iter().filter(|message| is_counted(message)).count();
    assert_eq!(count(&|message| message["tags"] == json!(["kept"])), 45);
    assert_eq!(count(&|message| message["mailboxes"].as_array().unwrap().len() == 2), 3 * 3);
    for message in &lists[0] {
        let one =
            nodes.each_ref().map(|node| node.json(&format!("/api/v2/messages/{}", message["id"].as_str().unwrap())));
        assert!(one[0] == one[1] && one[0] == one[2], "{one:?}");
    }
}

/// Sends messages for three mailboxes to one node, and tags and deletes some of them at another.
fn change_messages(smtp: SocketAddr, http: SocketAddr, sender: usize) {
    for number in 0..20 {
        let mut connection = LineConnection::new(connect(smtp));
        connection.expect("220");
        connection.command("EHLO client.test", "250");
        connection.command("MAIL FROM:<ann@x.org>", "250");
        for mailbox in ["bob", "cid", "dora"] {
            connection.command(&format!("RCPT TO:<{mailbox}@x.org>"), "250");
        }
        connection.command("DATA", "354");
        connection.command(&format!("Subject: {sender}-{number}\r\n\r\nHello.\r\n."), "250");
        let list = list_all(http);
        let subject = json!(format!("{sender}-{number}"));
        let message = list.iter().find(|message| message["subject"] == subject).expect("the message is listed");
        let id = message["id"].as_str().unwrap();
        let url = format!("http://{http}/api/v2/messages/{id}");
        if number % 4 == 0 {
            ureq::delete(url).call().unwrap();
            continue;
        }
        ureq::patch(url).content_type("application/json").send(r#"{"tags": ["kept"]}"#).unwrap();
        if number % 5 == 0 {
            ureq::delete(format!("http://{http}/api/v1/mailbox/bob/{id}")).call().unwrap();
        }
    }
}

fn list_all(http: SocketAddr) -> Vec<Value> {
    let url = format!("http://{http}/api/v2/messages?limit=200");
    let text = ureq::get(url).call().unwrap().body_mut().read_to_string().unwrap();
    let list: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(list["next"], Value::Null);
    list["messages"].as_array().unwrap().clone()
}

/// Subscribers of one node receive the events of another, in order and once, including events while their node was disconnected.
#[test]
fn events_of_one_node_reach_subscribers_of_the_other() {
    let Some(postgres) = Postgres::start() else { return };
    let mut proxy = FaultProxy::new(postgres.port());
    let (one, other) = (node(postgres.port()), node(proxy.port()));
    let mut socket = WebSocketClient::open(&other, "/api/v2/monitor/messages");
    let mut stream = EventStream::open(&other, "/api/v2/events/bob", "");
    let waiting = std::thread::spawn({
        let url = other.url("/api/v2/mailbox/bob/wait?timeout=20s");
        move || ureq::get(url).call().unwrap().body_mut().read_to_string().unwrap()
    });
    assert!(send(&one, "bob@x.org", "first").starts_with("250"));
    let event = socket.text();
    assert_eq!(
        (&event["variant"], &event["header"]["subject"]),
        (&"message-stored".into(), &"first".into()),
        "{event}"
    );
    let position = stream.next().expect("an event").id;
    assert!(waiting.join().unwrap().contains("\"subject\":\"first\""));

    proxy.disconnect();
    eventually(|| status(&other, "/readyz") == 503);
    for subject in ["second", "third"] {
        assert!(send(&one, "bob@x.org", subject).starts_with("250"));
    }
    let first = &one.ids("bob")[0];
    ureq::delete(one.url(&format!("/api/v1/mailbox/bob/{first}"))).call().unwrap();
    proxy.restore();
    assert!(send(&one, "bob@x.org", "last").starts_with("250"));
    let events: Vec<_> = (0..4).map(|_| socket.text()).collect();
    let subjects: Vec<_> =
        events.iter().map(|event| event["header"]["subject"].as_str().unwrap_or("deleted")).collect();
    assert_eq!(subjects, ["second", "third", "deleted", "last"], "{events:?}");

    // A position in the stream of one node is valid at the other.
    let mut stream = EventStream::open(&one, "/api/v2/events/bob", &format!("Last-Event-ID: {position}\r\n"));
    let next = stream.next().expect("an event");
    assert_eq!((&*next.name, &next.data["header"]["subject"]), ("message-stored", &"second".into()), "{next:?}");
}

/// A program that may still be starting.
struct StartingServer {
    child: Child,
    log: Lines<BufReader<ChildStderr>>,
}

impl StartingServer {
    fn new(url: &str) -> Self {
        let mut child = command().env("RESTANTE_STORAGE_URL", url).spawn().unwrap();
        let log = BufReader::new(child.stderr.take().unwrap()).lines();
        Self { child, log }
    }

    /// Waits for a proxy with this text.
    fn wait_for_log(&mut self, text: &str) {
        let proxy = self.log.by_ref().map_while(Result::ok).find(|proxy| proxy.contains(text));
        assert!(proxy.is_some(), "it exited without logging {text:?}");
    }
}

impl Drop for StartingServer {
    fn drop(&mut self) {
        // The process may have exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn waits_for_a_database_that_starts_later() {
    let Some(mut postgres) = Postgres::start() else { return };
    let port = postgres.port();
    postgres.stop();
    let mut stopped = StartingServer::new(&url(port));
    stopped.wait_for_log("the database cannot be reached");
    let pid = stopped.child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    stopped.wait_for_log("shutting down");
    assert_eq!(stopped.child.wait().unwrap().code(), Some(0));

    let mut waiting = StartingServer::new(&url(port));
    waiting.wait_for_log("; retrying");
    postgres.start_again();
    waiting.wait_for_log("messages are stored in PostgreSQL");
    waiting.wait_for_log("HTTP listening on");
}

#[test]
fn permanent_database_errors_stop_the_start() {
    let access = "host all all 127.0.0.1/32 scram-sha-256\n";
    let Some(locked) = Postgres::start_with_files(&[("pg_hba.conf", access)], &[]) else { return };
    let Some(open) = Postgres::shared() else { return };
    let cases = [
        (
            url(open.port()).replace("/postgres", "/nothing"),
            "database \"nothing\" does not exist; create it with: createdb nothing",
        ),
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
        let log = String::from_utf8(stderr).unwrap();
        assert_eq!(status.code(), Some(2), "{log}");
        assert!(log.contains(expected) && !log.contains("hunter2") && !log.contains("retrying"), "{log}");
    }
}

#[test]
fn imports_into_and_exports_from_the_database() {
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
    let file = dir.path().join("message.eml");
    std::fs::write(&file, "Subject: from a file\r\n\r\nHello.\r\n").unwrap();
    // This works while a server runs: unlike a data directory, a database has no lock.
    transfer(&["import", "--mailbox", "bob", "--received-now", file.to_str().unwrap()]);
    assert_eq!(server.json("/api/v1/mailbox/bob")[0]["subject"], "from a file");
    let exported = transfer(&["export", "-"]);
    assert!(exported.contains("Subject: from a file"), "{exported}");
}
