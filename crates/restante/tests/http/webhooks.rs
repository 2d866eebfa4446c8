//! The real program tells other programs of its mail: who hears what, what happens when nobody is there to hear it, and
//! what outlives the program.

use std::collections::BTreeSet;
use std::io;
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

use crate::support::disk::Disk;
use crate::support::durability::{Client, Promises, eventually};
use crate::support::exposition::Exposition;
use crate::support::webhook_receiver::{Receiver, Told, status};
use crate::support::{LONG, Server, Talk, command, connect};

/// A server that tells these.
fn start(entries: &[String], arguments: &[&str]) -> Server {
    Server::start(&[&["--webhook-private", "--webhook-urls", &entries.join(",")], arguments].concat())
}

fn send(server: &Server, mailbox: &str, subject: &str) {
    server.deliver(&format!("{mailbox}@x.org"), format!("Subject: {subject}\r\n\r\nHello\r\n").as_bytes());
}

fn delete(server: &Server, path: &str) {
    assert_eq!(ureq::delete(server.url(&format!("/api/v1/mailbox/{path}"))).call().unwrap().status(), 200);
}

fn end(server: &mut Server) -> String {
    server.signal("TERM");
    assert!(server.wait().success());
    server.whole_log()
}

/// The metrics of all targets at this address: delivered, retried, failed, dropped and waiting.
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

fn short(told: &[Told]) -> Vec<String> {
    let mut short: Vec<String> = told.iter().map(Told::short).collect();
    short.sort();
    short
}

/// HMAC as RFC 2104 writes it, so that nothing of the program's own is used to check it.
fn signature(key: &[u8], told: &Told) -> String {
    let pad = |with: u8| (0..64).map(|at| key.get(at).unwrap_or(&0) ^ with).collect::<Vec<u8>>();
    let signed = format!("{}.{}.{}", told.name(), told.header("webhook-timestamp"), told.text);
    let inner = Sha256::digest([pad(0x36), signed.into_bytes()].concat());
    let outer = Sha256::digest([pad(0x5c), inner.to_vec()].concat());
    format!("v1,{}", STANDARD.encode(outer))
}

#[test]
fn what_is_stored_and_deleted_is_told_and_signed() {
    let key = b"a secret of thirty-two letters..";
    for secret in [format!("whsec_{}", STANDARD.encode(key)), String::from_utf8_lossy(key).into_owned()] {
        let receiver = Receiver::start();
        let url = receiver.url("/hook?a=b").replace("http://", "http://ann:p%40ss@");
        let server = start(&[url], &["--webhook-secret", &secret]);
        server.deliver("James+Spam@x.org", b"From: Ann <ann@x.org>\r\nSubject: =?utf-8?q?gr=C3=BCn?=\r\n\r\nHello\r\n");
        receiver.wait_for(1);
        let record = server.json("/api/v1/mailbox/james")[0].clone();
        delete(&server, &format!("james/{}", record["id"].as_str().unwrap()));

        let told = receiver.wait_for(2);
        for (told, event) in told.iter().zip(["stored", "deleted"]) {
            assert_eq!(told.what, "POST /hook?a=b");
            assert_eq!(told.header("content-type"), "application/json");
            assert_eq!(told.header("user-agent"), concat!("Restante/", env!("CARGO_PKG_VERSION")));
            assert_eq!(told.header("authorization"), format!("Basic {}", STANDARD.encode("ann:p@ss")));
            assert_eq!(told.body["event"], format!("message-{event}"));
            assert_eq!(told.body["message"], record);
            assert_eq!(told.subject(), "grün");
            assert_eq!(told.header("webhook-signature"), signature(key, told));
            assert_ne!(told.header("webhook-signature"), signature(b"another key", told));
            let sent = SystemTime::UNIX_EPOCH + Duration::from_secs(told.header("webhook-timestamp").parse().unwrap());
            assert!(sent.elapsed().is_ok_and(|age| age < Duration::from_hours(1)), "{told:?}");
        }
        assert_ne!(told[0].name(), told[1].name());
        eventually("it is not counted", || counts(&server, &receiver) == [2, 0, 0, 0, 0]);
    }
}

#[test]
fn targets_hear_what_they_ask_for_and_without_a_key_nothing_is_signed() {
    let receiver = Receiver::start();
    let url = |path| receiver.url(path);
    let entries = [
        url("/all"),
        url("/stored events=stored"),
        url("/ci events=deleted mailboxes=CI-*|qa?"),
        // One target, which is told once of what either asks for.
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
    // What else there was to tell would be told at the end.
    end(&mut server);
    let told = receiver.told();
    assert_eq!(short(&told), expected);
    assert!(told.iter().all(|told| !told.headers.contains_key("webhook-signature")));
}

#[test]
fn every_way_to_lose_mail_is_told() {
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
    let mut talk = Talk::new(connect(server.address_of("POP3 listening on tcp4 ")));
    for line in ["", "USER collected", "PASS x", "DELE 1", "QUIT"] {
        if !line.is_empty() {
            talk.send(format!("{line}\r\n"));
        }
        assert!(talk.line().is_some_and(|reply| reply.starts_with("+OK")), "{line}");
    }
    receiver.wait_for(4);
    let server = start(&[entry], &["--storage-retentionperiod", "1s"]);
    send(&server, "old", "age");
    let subjects: Vec<String> = receiver.wait_for(5).iter().map(|told| told.subject().to_owned()).collect();
    assert_eq!((&subjects[0], &subjects[3], &subjects[4]), (&"cap".into(), &"pop3".into(), &"age".into()));
    assert_eq!(subjects[1..3].iter().collect::<BTreeSet<_>>(), BTreeSet::from([&"two".into(), &"three".into()]));
}

#[test]
fn targets_that_are_not_public_are_refused_by_default_and_mail_goes_on() {
    let receiver = Receiver::start();
    let port = receiver.address.port();
    let entries = ["127.0.0.1", "localhost", "[::ffff:7f00:1]", "0x7f.1"].map(|host| format!("http://{host}:{port}/"));
    let mut server = Server::start(&["--webhook-urls", &entries.join(",")]);
    server.logged("are not told of anything without webhook.private: webhook.urls, entry 1, 2, 3, 4");
    send(&server, "james", "one");
    eventually("it is not counted", || counts(&server, &receiver) == [0, 0, 1, 0, 0]);
    server.logged("127.0.0.1 is not a public address (webhook.private=true allows targets that are not public)");
    send(&server, "james", "two");
    assert_eq!(server.count("james"), 2);
    end(&mut server);
    assert!(receiver.told().is_empty());
}

#[test]
fn a_target_that_was_not_there_is_told_when_it_is_back() {
    let receiver = Receiver::asleep(|_, _| Some(status(200)));
    let mut server = start(&[receiver.url("/")], &[]);
    for subject in ["one", "two", "three"] {
        send(&server, "james", subject);
    }
    server.logged("a webhook is in trouble; its events wait");
    eventually("they do not wait", || matches!(counts(&server, &receiver), [0, (1..), 0, 0, 3]));
    receiver.wake();
    server.logged("a webhook answers again");
    eventually("they still wait", || matches!(counts(&server, &receiver), [3, (1..), 0, 0, 0]));
    assert_eq!(receiver.told().len(), 3, "nothing is told twice");
}

#[test]
fn answers_decide_what_follows() {
    let receiver = Receiver::answering(|told, before| {
        let first = match told.subject() {
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
    eventually("they are not done", || counts(&server, &receiver) == [5, 2, 1, 0, 0]);
    server.logged("a webhook was not told of events; they are given up");
    let told = receiver.told();
    assert!(told.iter().all(|told| told.what == "POST /"), "redirects are not followed: {told:?}");
    for subject in subjects {
        let names: Vec<&str> = told.iter().filter(|told| told.subject() == subject).map(Told::name).collect();
        let attempts = if ["poison", "moved"].contains(&subject) { 2 } else { 1 };
        assert_eq!(names, vec![names[0]; attempts], "{subject}");
    }
}

#[test]
fn a_target_that_never_answers_delays_neither_mail_nor_others() {
    let (deaf, other) = (Receiver::answering(|_, _| None), Receiver::start());
    let mut server = start(&[deaf.url("/"), other.url("/")], &["--webhook-queue", "10", "--webhook-timeout", "10m"]);
    for number in 0..30 {
        send(&server, "james", &number.to_string());
        // Its own queue is as short.
        other.wait_for(number + 1);
    }
    eventually("the rest is not dropped", || counts(&server, &deaf) == [0, 0, 0, 20, 10]);
    server.logged("too many events wait for a webhook, new ones are dropped");
    eventually("the other is not told", || counts(&server, &other) == [30, 0, 0, 0, 0]);
    assert!(end(&mut server).contains("webhooks were not told of some events, which are lost"));
}

#[test]
fn what_nobody_takes_is_given_up() {
    let receiver = Receiver::answering(|_, _| Some(status(503)));
    let server = start(&[receiver.url("/")], &["--webhook-giveup", "1s"]);
    send(&server, "james", "x");
    eventually("it is not given up", || matches!(counts(&server, &receiver), [0, _, 1, 0, 0]));
}

#[test]
fn what_waits_outlives_a_restart() {
    let disk = Disk::new("webhooks-restart");
    let receiver = Receiver::asleep(|_, _| Some(status(204)));
    let (kept, left) = (receiver.url("/kept"), receiver.url("/left"));
    let both = format!("{kept},{left}");
    let arguments = |urls| ["--webhook-private", "--webhook-urls", urls];
    let mut server = disk.server(&arguments(&both));
    for subject in ["one", "two"] {
        send(&server, "james", subject);
    }
    delete(&server, "james");
    eventually("they do not wait", || counts(&server, &receiver)[4] == 8);
    assert!(end(&mut server).contains("events wait for webhooks until the next start"));

    receiver.wake();
    let mut server = disk.server(&arguments(&kept));
    server.logged("dropped events for webhooks that are no longer configured");
    eventually("they still wait", || counts(&server, &receiver) == [4, 0, 0, 0, 0]);
    end(&mut server);
    // And nothing of it is told once more.
    let mut server = disk.server(&arguments(&kept));
    send(&server, "james", "three");
    receiver.wait_for(5);
    end(&mut server);
    let events =
        ["deleted james one", "deleted james two", "stored james one", "stored james three", "stored james two"];
    assert_eq!(short(&receiver.told()), events.map(|event| format!("POST /kept message-{event}")));
}

#[test]
fn every_acknowledged_mail_is_told_although_the_server_was_killed() {
    let disk = Disk::new("webhooks-killed");
    let (promises, acknowledged) = (Promises::default(), Mutex::new(BTreeSet::new()));
    let receivers = [Receiver::asleep(|_, _| Some(status(204))), Receiver::start()];
    let urls = receivers.each_ref().map(|receiver| receiver.url("/ events=stored")).join(",");
    let arguments = ["--webhook-private", "--webhook-queue", "1000000", "--webhook-urls", &urls];
    for round in 0..3_u64 {
        let mut server = disk.server(&arguments);
        let clients: Vec<_> = (0..4).map(|_| Client::new(&server, &promises).unwrap()).collect();
        std::thread::scope(|scope| {
            for (number, mut client) in clients.into_iter().enumerate() {
                let acknowledged = &acknowledged;
                scope.spawn(move || -> io::Result<()> {
                    for letter in 0.. {
                        let subject = format!("{round}-{number}-{letter}");
                        assert_eq!(client.send(&subject, &["anna", "bert"], 500)?, 250);
                        acknowledged.lock().unwrap().insert(subject);
                    }
                    Ok(())
                });
            }
            let deadline = Instant::now() + LONG;
            let before = acknowledged.lock().unwrap().len();
            while acknowledged.lock().unwrap().len() < before + 20 && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(50 + 50 * round));
            }
            // Whatever has happened, everybody waits for the end.
            server.kill();
        });
    }
    receivers[0].wake();
    let server = disk.server(&arguments);
    promises.check(&server);
    let event = |subject: &String, mailbox| format!("POST / message-stored {mailbox} {subject}");
    let acknowledged = acknowledged.into_inner().unwrap();
    assert!(!acknowledged.is_empty());
    for receiver in &receivers {
        eventually("a webhook is not told of everything", || {
            let told: BTreeSet<_> = receiver.told().iter().map(Told::short).collect();
            acknowledged
                .iter()
                .all(|subject| ["anna", "bert"].into_iter().all(|mailbox| told.contains(&event(subject, mailbox))))
        });
        assert_eq!(counts(&server, receiver)[2..4], [0, 0]);
    }
}

/// Whatever goes wrong with a target, and however much is logged.
#[test]
fn of_a_target_nothing_but_scheme_host_and_port_is_shown() {
    let disk = Disk::new("webhooks-secrets");
    let awake = Receiver::answering(|told, _| Some(status(if told.what.contains("gone") { 410 } else { 500 })));
    let asleep = Receiver::asleep(|_, _| None);
    // Everything that must not be shown begins with the same word.
    let at =
        |scheme: &str, receiver: &Receiver, path: &str| format!("{scheme}://hush1:hush2@{}{path}", receiver.address);
    let urls = [
        at("http", &awake, "/hush3"),
        at("http", &awake, "/hush-gone?token=hush4#hush5"),
        at("https", &awake, "?hush6"),
        at("http", &asleep, "/%68/../hush7"),
        // Hardly any request is this long; and whoever understands it puts a slash before the question mark.
        at("http", &asleep, &format!("?hush8={}", "x".repeat(60_000))),
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
        eventually("nothing goes wrong", || is_tried(&awake) && is_tried(&asleep));
        let pages = ["/metrics", "/serve/status", "/debug/vars", "/api/v2/server"];
        let mut shown = pages.map(|path| String::from_utf8(server.bytes(path)).unwrap()).join("\n");
        shown.push_str(&end(&mut server));
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

/// What the script does after the last session has ended is something to tell of.
#[test]
fn what_a_script_does_last_is_told_too() {
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
    let log = end(&mut server);
    assert!(!log.contains("too late"), "{log}");
    // Now or, when it was written down only, at the next start.
    let _server = disk.server(&["--webhook-private", "--webhook-urls", &urls]);
    assert_eq!(short(&receiver.wait_for(1)), ["POST / message-deleted james x"]);
}

#[test]
fn a_large_mailbox_that_goes_is_told_message_by_message() {
    let receiver = Receiver::start();
    let mut server = start(&[receiver.url("/ events=deleted")], &["--storage-mailboxmsgcap", "0"]);
    let mut talk = Talk::new(connect(server.address_of("SMTP listening on tcp4 ")));
    talk.line();
    let mail = "MAIL FROM:<a@x.org>\r\nRCPT TO:<james@x.org>\r\nDATA\r\nSubject: x\r\n\r\n.\r\n";
    talk.send("HELO x\r\n");
    talk.line();
    for _ in 0..5000 {
        talk.send(mail);
        for _ in 0..4 {
            talk.line();
        }
    }
    delete(&server, "james");
    // All of them together may take longer than one may take.
    for delivered in (500..=5000).step_by(500) {
        eventually("not all are told", || counts(&server, &receiver)[0] >= delivered);
    }
    eventually("not all are told", || counts(&server, &receiver) == [5000, 0, 0, 0, 0]);
}
