//! Webhooks of the real program: filters, errors and retries of targets, and events that survive restarts.

use std::collections::BTreeSet;
use std::io;
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

use crate::support::disk::Disk;
use crate::support::durability::{Client, ExpectedState, eventually};
use crate::support::exposition::Exposition;
use crate::support::webhook_receiver::{Receiver, WebhookRequest, status};
use crate::support::{LineConnection, Server, TEST_TIMEOUT, command, connect};

/// Starts a server with these targets.
fn start(entries: &[String], arguments: &[&str]) -> Server {
    Server::start(&[&["--webhook-private", "--webhook-urls", &entries.join(",")], arguments].concat())
}

pub(crate) fn send(server: &Server, mailbox: &str, subject: &str) {
    server.deliver(&format!("{mailbox}@x.org"), format!("Subject: {subject}\r\n\r\nHello\r\n").as_bytes());
}

fn delete(server: &Server, path: &str) {
    assert_eq!(ureq::delete(server.url(&format!("/api/v1/mailbox/{path}"))).call().unwrap().status(), 200);
}

pub(crate) fn stop(server: &mut Server) -> String {
    server.signal("TERM");
    assert!(server.wait().success());
    server.full_log()
}

/// Returns the metrics of all targets at this address: delivered, retried, failed, dropped and waiting.
fn counts(server: &Server, receiver: &Receiver) -> [u64; 5] {
    let page = Exposition::parse(&String::from_utf8(server.bytes("/metrics")).unwrap());
    let target = format!("target=\"http://{}\"", receiver.address);
    let outcomes = ["ok", "retried", "failed", "dropped"]
        .map(|outcome| format!("restante_webhook_deliveries_total{{{target},outcome=\"{outcome}\"}}"));
    let [ok, retried, failed, dropped] = outcomes.map(|series| whole(page.value(&series)));
    [ok, retried, failed, dropped, whole(page.value(&format!("restante_webhook_waiting{{{target}}}")))]
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is a small count")]
fn whole(value: f64) -> u64 {
    value as u64
}

fn short(requests: &[WebhookRequest]) -> Vec<String> {
    let mut short: Vec<String> = requests.iter().map(WebhookRequest::short).collect();
    short.sort();
    short
}

/// Computes the HMAC as in RFC 2104, independently of the code under test.
fn signature(key: &[u8], request: &WebhookRequest) -> String {
    let pad = |with: u8| (0..64).map(|at| key.get(at).unwrap_or(&0) ^ with).collect::<Vec<u8>>();
    let signed = format!("{}.{}.{}", request.webhook_id(), request.header("webhook-timestamp"), request.text);
    let inner = Sha256::digest([pad(0x36), signed.into_bytes()].concat());
    let outer = Sha256::digest([pad(0x5c), inner.to_vec()].concat());
    format!("v1,{}", STANDARD.encode(outer))
}

#[test]
fn stored_and_deleted_events_are_sent_and_signed() {
    let key = b"a secret of thirty-two letters..";
    for secret in [format!("whsec_{}", STANDARD.encode(key)), String::from_utf8_lossy(key).into_owned()] {
        let receiver = Receiver::start();
        let url = receiver.url("/hook?a=b").replace("http://", "http://ann:p%40ss@");
        let server = start(&[url], &["--webhook-secret", &secret]);
        server.deliver("James+Spam@x.org", b"From: Ann <ann@x.org>\r\nSubject: =?utf-8?q?gr=C3=BCn?=\r\n\r\nHello\r\n");
        receiver.wait_for(1);
        let record = server.json("/api/v1/mailbox/james")[0].clone();
        delete(&server, &format!("james/{}", record["id"].as_str().unwrap()));

        let requests = receiver.wait_for(2);
        for (request, event) in requests.iter().zip(["stored", "deleted"]) {
            assert_eq!(request.request_line, "POST /hook?a=b");
            assert_eq!(request.header("content-type"), "application/json");
            assert_eq!(request.header("user-agent"), concat!("Restante/", env!("CARGO_PKG_VERSION")));
            assert_eq!(request.header("authorization"), format!("Basic {}", STANDARD.encode("ann:p@ss")));
            assert_eq!(request.body["event"], format!("message-{event}"));
            assert_eq!(request.body["message"], record);
            assert_eq!(request.subject(), "grün");
            assert_eq!(request.header("webhook-signature"), signature(key, request));
            assert_ne!(request.header("webhook-signature"), signature(b"another key", request));
            let sent =
                SystemTime::UNIX_EPOCH + Duration::from_secs(request.header("webhook-timestamp").parse().unwrap());
            assert!(sent.elapsed().is_ok_and(|age| age < Duration::from_hours(1)), "{request:?}");
        }
        assert_ne!(requests[0].webhook_id(), requests[1].webhook_id());
        eventually("the event is not counted", || counts(&server, &receiver) == [2, 0, 0, 0, 0]);
    }
}

#[test]
fn targets_receive_matching_events_without_signature_if_no_secret() {
    let receiver = Receiver::start();
    let url = |path| receiver.url(path);
    let entries = [
        url("/all"),
        url("/stored events=stored"),
        url("/ci events=deleted mailboxes=CI-*|qa?"),
        // Two entries for one target: each event is sent once.
        url("/both events=stored"),
        url("/both mailboxes=ci-1"),
    ];
    let mut server = start(&entries, &[]);
    for mailbox in ["ci-1", "qa1", "qa22", "james"] {
        send(&server, mailbox, "x");
        delete(&server, mailbox);
    }
    let mut expected = Vec::new();
    for mailbox in ["ci-1", "qa1", "qa22", "james"] {
        for path in ["/all", "/stored", "/both"] {
            expected.push(format!("POST {path} message-stored {mailbox} x"));
        }
        expected.push(format!("POST /all message-deleted {mailbox} x"));
    }
    for (path, mailbox) in [("/ci", "ci-1"), ("/ci", "qa1"), ("/both", "ci-1")] {
        expected.push(format!("POST {path} message-deleted {mailbox} x"));
    }
    expected.sort();
    receiver.wait_for(expected.len());
    // Any further events would be sent during the shutdown.
    stop(&mut server);
    let requests = receiver.requests();
    assert_eq!(short(&requests), expected);
    assert!(requests.iter().all(|request| !request.headers.contains_key("webhook-signature")));
}

#[test]
fn every_cause_of_deletion_sends_an_event() {
    let receiver = Receiver::start();
    let entry = receiver.url("/ events=deleted");
    let mut server = start(std::slice::from_ref(&entry), &["--storage-mailboxmsgcap", "2"]);
    for subject in ["cap", "two", "three"] {
        send(&server, "purged", subject);
    }
    receiver.wait_for(1);
    delete(&server, "purged");
    receiver.wait_for(3);

    send(&server, "collected", "pop3");
    let mut connection = LineConnection::new(connect(server.address_of("POP3 listening on tcp4 ")));
    for line in ["", "USER collected", "PASS x", "DELE 1", "QUIT"] {
        if !line.is_empty() {
            connection.send(format!("{line}\r\n"));
        }
        assert!(connection.line().is_some_and(|reply| reply.starts_with("+OK")), "{line}");
    }
    receiver.wait_for(4);
    let server = start(&[entry], &["--storage-retentionperiod", "1s"]);
    send(&server, "old", "age");
    let subjects: Vec<String> = receiver.wait_for(5).iter().map(|request| request.subject().to_owned()).collect();
    assert_eq!((&subjects[0], &subjects[3], &subjects[4]), (&"cap".into(), &"pop3".into(), &"age".into()));
    assert_eq!(subjects[1..3].iter().collect::<BTreeSet<_>>(), BTreeSet::from([&"two".into(), &"three".into()]));
}

#[test]
fn private_targets_are_refused_by_default_without_affecting_deliveries() {
    let receiver = Receiver::start();
    let port = receiver.address.port();
    let entries = ["127.0.0.1", "localhost", "[::ffff:7f00:1]", "0x7f.1"].map(|host| format!("http://{host}:{port}/"));
    let mut server = Server::start(&["--webhook-urls", &entries.join(",")]);
    server.wait_for_log("receive no events unless webhook.private is true: webhook.urls, entry 1, 2, 3, 4");
    send(&server, "james", "one");
    eventually("the event is not counted", || counts(&server, &receiver) == [0, 0, 1, 0, 0]);
    server.wait_for_log("127.0.0.1 is not a public address (webhook.private=true allows targets that are not public)");
    send(&server, "james", "two");
    assert_eq!(server.count("james"), 2);
    stop(&mut server);
    assert!(receiver.requests().is_empty());
}

#[test]
fn events_wait_until_the_target_is_back() {
    let receiver = Receiver::stopped(|_, _| Some(status(200)));
    let mut server = start(&[receiver.url("/")], &[]);
    for subject in ["one", "two", "three"] {
        send(&server, "james", subject);
    }
    server.wait_for_log("webhook target is unavailable; its events wait");
    eventually("the events do not wait", || matches!(counts(&server, &receiver), [0, (1..), 0, 0, 3]));
    receiver.listen();
    server.wait_for_log("webhook target is available again");
    eventually("events still wait", || matches!(counts(&server, &receiver), [3, (1..), 0, 0, 0]));
    assert_eq!(receiver.requests().len(), 3, "an event was sent twice");
}

#[test]
fn response_status_determines_retries() {
    let receiver = Receiver::responding_with(|request, before| {
        let first = match request.subject() {
            "poison" | "moved" if before > 0 => status(204),
            "poison" => status(500),
            "moved" => {
                "HTTP/1.1 307 Moved\r\nLocation: /elsewhere\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".into()
            }
            "gone" => status(410),
            "talkative" => format!("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{}", "x".repeat(1 << 20)),
            "interrupted" => "HTTP/1.1 201 Created\r\nContent-Length: 1000\r\n\r\nx".into(),
            _ => status(200),
        };
        Some(first)
    });
    let mut server = start(&[receiver.url("/")], &[]);
    let subjects = ["poison", "moved", "gone", "talkative", "interrupted", "plain"];
    for subject in subjects {
        send(&server, "james", subject);
    }
    eventually("the deliveries are not complete", || counts(&server, &receiver) == [5, 2, 1, 0, 0]);
    server.wait_for_log("webhook events could not be delivered and are given up");
    let requests = receiver.requests();
    assert!(requests.iter().all(|request| request.request_line == "POST /"), "a redirect was followed: {requests:?}");
    for subject in subjects {
        let names: Vec<&str> =
            requests.iter().filter(|request| request.subject() == subject).map(WebhookRequest::webhook_id).collect();
        let attempts = if ["poison", "moved"].contains(&subject) { 2 } else { 1 };
        assert_eq!(names, vec![names[0]; attempts], "{subject}");
    }
}

#[test]
fn unresponsive_target_delays_neither_deliveries_nor_other_targets() {
    let (unresponsive, other) = (Receiver::responding_with(|_, _| None), Receiver::start());
    let mut server =
        start(&[unresponsive.url("/"), other.url("/")], &["--webhook-queue", "10", "--webhook-timeout", "10m"]);
    for number in 0..30 {
        send(&server, "james", &number.to_string());
        // The queue of this target is as short.
        other.wait_for(number + 1);
    }
    eventually("the excess events are not dropped", || counts(&server, &unresponsive) == [0, 0, 0, 20, 10]);
    server.wait_for_log("webhook queue is full (webhook.queue); new events are dropped");
    eventually("the other target does not receive the events", || counts(&server, &other) == [30, 0, 0, 0, 0]);
    assert!(stop(&mut server).contains("undelivered webhook events are lost at shutdown"));
}

#[test]
fn undeliverable_event_is_dropped_after_the_time_limit() {
    let receiver = Receiver::responding_with(|_, _| Some(status(503)));
    let server = start(&[receiver.url("/")], &["--webhook-giveup", "1s"]);
    send(&server, "james", "x");
    eventually("the event is not dropped", || matches!(counts(&server, &receiver), [0, _, 1, 0, 0]));
}

#[test]
fn waiting_events_survive_a_restart() {
    let disk = Disk::new("webhooks-restart");
    let receiver = Receiver::stopped(|_, _| Some(status(204)));
    let (kept, left) = (receiver.url("/kept"), receiver.url("/left"));
    let both = format!("{kept},{left}");
    let arguments = |urls| ["--webhook-private", "--webhook-urls", urls];
    let mut server = disk.server(&arguments(&both));
    for subject in ["one", "two"] {
        send(&server, "james", subject);
    }
    delete(&server, "james");
    eventually("the events do not wait", || counts(&server, &receiver)[4] == 8);
    assert!(stop(&mut server).contains("undelivered webhook events are kept for the next start"));

    receiver.listen();
    let mut server = disk.server(&arguments(&kept));
    server.wait_for_log("dropped events for webhooks that are no longer configured");
    eventually("events still wait", || counts(&server, &receiver) == [4, 0, 0, 0, 0]);
    stop(&mut server);
    // No event is sent twice.
    let mut server = disk.server(&arguments(&kept));
    send(&server, "james", "three");
    receiver.wait_for(5);
    stop(&mut server);
    let events =
        ["deleted james one", "deleted james two", "stored james one", "stored james three", "stored james two"];
    assert_eq!(short(&receiver.requests()), events.map(|event| format!("POST /kept message-{event}")));
}

#[test]
fn events_of_acknowledged_messages_survive_sigkill() {
    let disk = Disk::new("webhooks-killed");
    let (state, acknowledged) = (ExpectedState::default(), Mutex::new(BTreeSet::new()));
    let receivers = [Receiver::stopped(|_, _| Some(status(204))), Receiver::start()];
    let urls = receivers.each_ref().map(|receiver| receiver.url("/ events=stored")).join(",");
    let arguments = ["--webhook-private", "--webhook-queue", "1000000", "--webhook-urls", &urls];
    for round in 0..3_u64 {
        let mut server = disk.server(&arguments);
        let clients: Vec<_> = (0..4).map(|_| Client::new(&server, &state).unwrap()).collect();
        std::thread::scope(|scope| {
            for (number, mut client) in clients.into_iter().enumerate() {
                let acknowledged = &acknowledged;
                scope.spawn(move || -> io::Result<()> {
                    for message in 0.. {
                        let subject = format!("{round}-{number}-{message}");
                        assert_eq!(client.send(&subject, &["anna", "bert"], 500)?, 250);
                        acknowledged.lock().unwrap().insert(subject);
                    }
                    Ok(())
                });
            }
            let deadline = Instant::now() + TEST_TIMEOUT;
            let before = acknowledged.lock().unwrap().len();
            while acknowledged.lock().unwrap().len() < before + 20 && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(50 + 50 * round));
            }
            // The clients stop when the server is killed, so this must happen even after a failure.
            server.kill();
        });
    }
    receivers[0].listen();
    let server = disk.server(&arguments);
    state.check(&server);
    let event = |subject: &String, mailbox| format!("POST / message-stored {mailbox} {subject}");
    let acknowledged = acknowledged.into_inner().unwrap();
    assert!(!acknowledged.is_empty());
    for receiver in &receivers {
        eventually("a webhook does not receive all events", || {
            let requests: BTreeSet<_> = receiver.requests().iter().map(WebhookRequest::short).collect();
            acknowledged
                .iter()
                .all(|subject| ["anna", "bert"].into_iter().all(|mailbox| requests.contains(&event(subject, mailbox))))
        });
        assert_eq!(counts(&server, receiver)[2..4], [0, 0]);
    }
}

/// Also for failing targets and with debug logging.
#[test]
fn only_scheme_host_and_port_of_a_target_are_shown() {
    let disk = Disk::new("webhooks-secrets");
    let running = Receiver::responding_with(|request, _| {
        Some(status(if request.request_line.contains("gone") { 410 } else { 500 }))
    });
    let stopped = Receiver::stopped(|_, _| None);
    // Every secret starts with the same word.
    let at =
        |scheme: &str, receiver: &Receiver, path: &str| format!("{scheme}://hush1:hush2@{}{path}", receiver.address);
    let urls = [
        at("http", &running, "/hush3"),
        at("http", &running, "/hush-gone?token=hush4#hush5"),
        at("https", &running, "?hush6"),
        at("http", &stopped, "/%68/../hush7"),
        // An unusually long URL. The program adds a slash before the question mark.
        at("http", &stopped, &format!("?hush8={}", "x".repeat(60_000))),
        "http://hush9@x.invalid/hush10".to_owned(),
    ];
    for private in ["--webhook-private", "--webhook-private=false"] {
        let mut command = command();
        command.args([private, "--loglevel", "debug", "--data"]).arg(disk.data());
        command.env("RESTANTE_WEBHOOK_URLS", urls.join(",")).env("RESTANTE_WEBHOOK_SECRET", "hush11, and some more");
        let mut server = Server::spawn(&mut command);
        send(&server, "james", "x");
        let is_tried = |receiver| {
            let [ok, retried, failed, ..] = counts(&server, receiver);
            ok == 0 && retried + failed > 1
        };
        eventually("no delivery fails", || is_tried(&running) && is_tried(&stopped));
        let pages = [
            "/metrics",
            "/serve/status",
            "/debug/vars",
            "/api/v2/server",
            "/api/v2/webhooks",
            "/api/v2/webhooks/entries",
            "/api/v2/webhooks/entries/1",
        ];
        let mut shown = pages.map(|path| String::from_utf8(server.bytes(path)).unwrap()).join("\n");
        shown.push_str(&stop(&mut server));
        for secret in ["hush", &STANDARD.encode("hush1:"), &"x".repeat(100)] {
            assert!(!shown.contains(secret), "{secret} is shown: {shown}");
        }
    }
    for file in std::fs::read_dir(disk.data()).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file())
    {
        let bytes = std::fs::read(&file).unwrap();
        assert!(!bytes.windows(4).any(|window| window == b"hush"), "{}", file.display());
    }
}

/// A script can delete messages after the last session has ended.
#[test]
fn deletions_by_a_script_during_shutdown_are_sent() {
    let disk = Disk::new("webhooks-script");
    let script = disk.data().with_file_name("last.lua");
    std::fs::create_dir_all(script.parent().unwrap()).unwrap();
    std::fs::write(
        &script,
        "function inbucket.after.message_stored(message)
            restante.sleep(0.2)
            restante.store.delete(message.mailbox, message.id)
        end",
    )
    .unwrap();
    let receiver = Receiver::start();
    let urls = receiver.url("/ events=deleted");
    let mut server =
        disk.server(&["--lua-path", script.to_str().unwrap(), "--webhook-private", "--webhook-urls", &urls]);
    send(&server, "james", "x");
    let log = stop(&mut server);
    assert!(!log.contains("webhook events are dropped"), "{log}");
    // The event is sent now, or, if it was only persisted, at the next start.
    let _server = disk.server(&["--webhook-private", "--webhook-urls", &urls]);
    assert_eq!(short(&receiver.wait_for(1)), ["POST / message-deleted james x"]);
}

#[test]
fn purge_of_a_large_mailbox_sends_an_event_per_message() {
    let receiver = Receiver::start();
    let mut server = start(&[receiver.url("/ events=deleted")], &["--storage-mailboxmsgcap", "0"]);
    let mut connection = LineConnection::new(connect(server.address_of("SMTP listening on tcp4 ")));
    connection.line();
    let mail = "MAIL FROM:<a@x.org>\r\nRCPT TO:<james@x.org>\r\nDATA\r\nSubject: x\r\n\r\n.\r\n";
    connection.send("HELO x\r\n");
    connection.line();
    for _ in 0..5000 {
        connection.send(mail);
        for _ in 0..4 {
            connection.line();
        }
    }
    delete(&server, "james");
    // Together the deliveries may take longer than the timeout of one wait.
    for delivered in (500..=5000).step_by(500) {
        eventually("not all events are sent", || counts(&server, &receiver)[0] >= delivered);
    }
    eventually("not all events are sent", || counts(&server, &receiver) == [5000, 0, 0, 0, 0]);
}
