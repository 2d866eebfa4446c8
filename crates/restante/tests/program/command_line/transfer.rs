//! `restante export` and `restante import` with the real program, real folders and a real server.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use restante_testdir::TestDir;

use crate::support::{Server, TEST_TIMEOUT, command};

/// A directory that is removed when the test ends.
struct Scratch(TestDir);

impl Scratch {
    fn new() -> Self {
        Self(TestDir::new())
    }

    fn file(&self, name: &str, content: &str) {
        let path = self.0.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// Runs the program in this directory. Returns its exit code and its standard error.
    fn run(&self, arguments: &[&str]) -> (i32, String) {
        let Output { status, stderr, .. } = command().args(arguments).current_dir(self.0.path()).output().unwrap();
        (status.code().unwrap(), String::from_utf8(stderr).unwrap())
    }

    /// Runs the program, which must succeed, and returns its standard error.
    #[track_caller]
    fn run_successfully(&self, arguments: &[&str]) -> String {
        let (code, stderr) = self.run(arguments);
        assert_eq!(code, 0, "{stderr}");
        stderr
    }

    fn server(&self, data: &str) -> Server {
        Server::spawn(command().args(["--storage-retentionperiod", "0", "--data", data]).current_dir(self.0.path()))
    }
}

fn deliver(server: &Server, to: &str, text: &str) {
    let mut connection = server.connect_smtp();
    connection.start_message(to);
    connection.command("DATA", "354");
    connection.command(&format!("To: {to}\r\nSubject: {text}\r\n\r\n{text}\r\nFrom here on\r\n."), "250");
    connection.command("QUIT", "221");
}

/// Returns the messages of a mailbox without their ids, which differ in every directory.
fn listed(server: &Server, mailbox: &str) -> Vec<serde_json::Value> {
    let list = server.json(&format!("/api/v1/mailbox/{mailbox}"));
    let without_id = |mut message: serde_json::Value| {
        message.as_object_mut().unwrap().remove("id");
        message
    };
    list.as_array().unwrap().iter().cloned().map(without_id).collect()
}

/// Returns the sources of a mailbox in order.
fn sources(server: &Server, mailbox: &str) -> Vec<Vec<u8>> {
    let list = server.json(&format!("/api/v1/mailbox/{mailbox}"));
    let id = |message: &serde_json::Value| message["id"].as_str().unwrap().to_owned();
    let ids: Vec<String> = list.as_array().unwrap().iter().map(id).collect();
    ids.iter().map(|id| server.bytes(&format!("/api/v1/mailbox/{mailbox}/{id}/source"))).collect()
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn exports_from_a_running_server_and_imports_into_another() {
    let scratch = Scratch::new();
    let one = scratch.server("one");
    for (to, text) in [("bob@x.org", "first"), ("ann@x.org", "second"), ("bob@x.org", "third"), ("a/b@x.org", "fourth")]
    {
        deliver(&one, to, text);
    }
    ureq::patch(one.url("/api/v1/mailbox/bob/latest"))
        .header("content-type", "application/json")
        .send(r#"{"seen":true}"#)
        .unwrap();

    let stderr = scratch.run_successfully(&["export", "--data", "one", "out"]);
    assert!(
        stderr.starts_with("restante: exported 4 messages of 3 mailboxes (") && stderr.ends_with(") to out\n"),
        "{stderr}"
    );
    assert_eq!(names(&scratch.0.path().join("out")), ["a%2Fb", "ann", "bob"]);
    let (cur, new) = (names(&scratch.0.path().join("out/bob/cur")), names(&scratch.0.path().join("out/bob/new")));
    assert!(cur[0].ends_with(".restante:2,S") && new[0].ends_with(".restante"), "{cur:?} {new:?}");
    assert_eq!(fs::read(scratch.0.path().join("out/bob/new").join(&new[0])).unwrap(), sources(&one, "bob")[0]);

    scratch.run_successfully(&["import", "--data", "two", "out"]);
    let two = scratch.server("two");
    for mailbox in ["bob", "ann", "a%2Fb"] {
        assert_eq!(listed(&one, mailbox), listed(&two, mailbox));
        assert_eq!(sources(&one, mailbox), sources(&two, mailbox));
    }

    // The same with the other formats, for some mailboxes.
    scratch.run_successfully(&["export", "--data", "one", "--format", "eml", "--mailbox", "Bob@x.org", "eml"]);
    scratch.run_successfully(&["export", "--data", "one", "--mailbox", "ann", "ann.mbox"]);
    scratch.run_successfully(&["import", "--data", "three", "eml", "ann.mbox"]);
    let three = scratch.server("three");
    for mailbox in ["bob", "ann"] {
        assert_eq!(sources(&one, mailbox), sources(&three, mailbox));
    }
    assert_eq!(three.count("a%2Fb"), 0);
}

/// Mailboxes before and after the position of the export are filled and emptied. The export succeeds and contains the others.
#[test]
fn export_during_deliveries_and_deletions() {
    let scratch = Scratch::new();
    let server = scratch.server("data");
    deliver(&server, "a-stays@x.org", "first");
    deliver(&server, "z-stays@x.org", "last");
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for worker in 0..2 {
            let (mut connection, web, stop) = (server.connect_smtp(), server.url("/api/v1/mailbox"), &stop);
            scope.spawn(move || {
                let mailboxes = || (0..50).map(|number| format!("m{worker}{number:02}"));
                connection.expect("220");
                connection.command("EHLO client.test", "250");
                while !stop.load(Ordering::Relaxed) {
                    for mailbox in mailboxes() {
                        connection.command("MAIL FROM:<ann@x.org>", "250");
                        connection.command(&format!("RCPT TO:<{mailbox}@x.org>"), "250");
                        connection.command("DATA", "354");
                        connection.command("Subject: short\r\n\r\n.", "250");
                    }
                    // From the end, so that they are deleted before the export reaches them.
                    for mailbox in mailboxes().rev() {
                        ureq::delete(format!("{web}/{mailbox}")).call().unwrap();
                    }
                }
            });
        }
        let exports: Vec<_> =
            (0..10).map(|turn| (turn, scratch.run(&["export", "--data", "data", &format!("out{turn}")]))).collect();
        // The workers must stop even if an export failed.
        stop.store(true, Ordering::Relaxed);
        for (turn, (code, stderr)) in exports {
            assert_eq!((code, stderr.lines().count()), (0, 1), "{stderr}");
            let folders = names(&scratch.0.path().join(format!("out{turn}")));
            assert!(folders.starts_with(&["a-stays".to_owned()]) && folders.ends_with(&["z-stays".to_owned()]));
        }
    });
}

#[test]
fn mbox_through_a_pipe() {
    let scratch = Scratch::new();
    let one = scratch.server("one");
    deliver(&one, "bob@x.org", "first");
    deliver(&one, "ann@x.org", "second");
    let mut out = command()
        .args(["export", "--data", "one", "-"])
        .current_dir(scratch.0.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let piped = out.stdout.take().unwrap();
    let import =
        command().args(["import", "--data", "two", "-"]).current_dir(scratch.0.path()).stdin(piped).output().unwrap();
    assert!(out.wait().unwrap().success() && import.status.success());
    let two = scratch.server("two");
    for mailbox in ["bob", "ann"] {
        assert_eq!(sources(&one, mailbox), sources(&two, mailbox));
    }
}

/// A tree as written by Inbucket: the SHA-1 of the mailbox name, below directories of its first three and first six digits.
#[test]
fn imports_from_inbucket() {
    const BOB: &str = "storage/mail/481/48181a/48181acd22b3edaebc8a447868a7df7ce629920a";
    const ANN: &str = "storage/mail/ad2/ad2729/ad272981b3f98a38804a5c7e59dbe198bc67738e";
    let received =
        "Received: from client ([192.0.2.7]) by inbucket\r\n  for <bob>; Thu, 15 Jan 2026 12:00:00 +0000 (UTC)\r\n";
    let first = format!("{received}Subject: first\r\nFrom: Ann <ann@x.org>\r\n\r\nhello\r\n");
    let second = format!("Return-Path: <ann@x.org>\r\n{received}\r\nno header\r\n").replace("12:00", "12:01");
    let full = first.replace("<bob>", "<Ann@X.org>");
    let scratch = Scratch::new();
    scratch.file(&format!("{BOB}/20260115T120100-0001.raw"), &second);
    scratch.file(&format!("{BOB}/20260115T120000-0000.raw"), &first);
    scratch.file(&format!("{BOB}/index.gob"), "\x07\x7f\x03\x01");
    scratch.file(&format!("{ANN}/20260115T120000-0002.raw"), &full);

    let stderr = scratch.run_successfully(&["import", "--data", "data", "--storage-retentionperiod", "24h", "storage"]);
    let lines: Vec<&str> = stderr.lines().collect();
    assert!(lines[0].starts_with("restante: imported 3 messages ("), "{stderr}");
    assert_eq!(
        lines[1..],
        [
            "restante: 3 messages are older than the retention period of 24h and will be deleted when the server starts; \
          use --received-now to keep them"
        ]
    );
    let server = scratch.server("data");
    assert_eq!(sources(&server, "bob"), [first.as_bytes(), second.as_bytes()]);
    let list = listed(&server, "bob");
    assert_eq!(
        (&list[0]["from"], &list[0]["date"]),
        (&"Ann <ann@x.org>".into(), &"2026-01-15T12:00:00.000000+00:00".into())
    );
    assert_eq!((&list[1]["from"], &list[1]["to"]), (&"<ann@x.org>".into(), &serde_json::json!(["<bob>"])));
    assert_eq!(sources(&server, "ann"), [full.as_bytes()]);

    scratch.run_successfully(&[
        "import",
        "--data",
        "full",
        "--mailboxnaming",
        "full",
        "--format",
        "inbucket",
        "storage",
    ]);
    scratch.run_successfully(&["export", "--data", "full", "out"]);
    assert_eq!(names(&scratch.0.path().join("out")), ["ann@x.org", "bob"]);
}

/// Each message fills the memory budget, so the next one is read after it was stored.
#[test]
fn large_messages_wait_for_the_memory_budget() {
    let scratch = Scratch::new();
    let mail = format!("Subject: x\r\n\r\n{}", "0123456789abcde\n".repeat(17 << 16));
    for number in 1..=3 {
        scratch.file(&format!("bob/{number}.eml"), &mail);
    }
    let stderr = scratch.run_successfully(&["import", "--data", "data", "--received-now", "bob"]);
    assert_eq!(stderr, "restante: imported 3 messages (51.0 MiB)\n");
}

#[test]
fn message_cap_is_enforced_and_reported() {
    let scratch = Scratch::new();
    let mail = |number| format!("From a Thu Jan 15 12:00:0{number} 2026\nSubject: {number}\n\n\n");
    scratch.file("bob.mbox", &[0, 1, 2, 3, 4].map(mail).concat());
    let stderr = scratch.run_successfully(&[
        "import",
        "--data",
        "data",
        "--received-now",
        "--storage-mailboxmsgcap",
        "2",
        "bob.mbox",
    ]);
    assert!(
        stderr.contains("imported 5 messages") && stderr.contains("3 messages evicted because of the limits"),
        "{stderr}"
    );
    assert!(!stderr.contains("retention"), "{stderr}");
    let server = scratch.server("data");
    let subjects: Vec<_> = listed(&server, "bob").iter().map(|message| message["subject"].clone()).collect();
    assert_eq!(subjects, ["3", "4"]);
}

#[test]
fn valid_messages_are_imported_and_invalid_ones_reported() {
    let scratch = Scratch::new();
    scratch.file("in/bob/1.eml", "Subject: good\r\n\r\n");
    scratch.file("in/not a name/2.eml", "Subject: lost\r\n\r\n");
    let (code, stderr) = scratch.run(&["import", "--data", "data", "in"]);
    assert_eq!(code, 1);
    assert!(stderr.contains("restante: in/not a name/2.eml: \"not a name\" is not a valid mailbox name: "), "{stderr}");
    assert!(stderr.contains("; use --mailbox to set the mailbox\n"), "{stderr}");
    assert!(stderr.ends_with("restante: imported 1 message (17 bytes), 1 could not be imported\n"), "{stderr}");
}

#[test]
fn interrupted_import_keeps_the_imported_messages() {
    let scratch = Scratch::new();
    let mut import = command();
    import
        .args(["import", "--data", "data", "--mailbox", "bob", "-"])
        .current_dir(scratch.0.path())
        .stdin(Stdio::piped());
    let mut import = import.spawn().unwrap();
    // A message is complete when the next one starts. The last one stays open.
    let mut input = import.stdin.take().unwrap();
    input.write_all("From a Thu Jan 15 12:00:00 2026\nSubject: x\n\n".repeat(3).as_bytes()).unwrap();
    let deadline = Instant::now() + TEST_TIMEOUT;
    let stored =
        |turn| scratch.run(&["export", "--data", "data", &format!("out{turn}")]).1.contains("exported 2 messages");
    let turns = (0..).take_while(|_| Instant::now() < deadline);
    assert!(turns.into_iter().any(stored), "nothing is stored before the input ends");
    let sent = Command::new("sh").args(["-c", &format!("kill -INT {}", import.id())]).status().unwrap();
    assert!(sent.success());
    let Output { status, stderr, .. } = import.wait_with_output().unwrap();
    let stderr = String::from_utf8(stderr).unwrap();
    assert_eq!(status.code(), Some(130), "{stderr}");
    assert!(stderr.contains("interrupted: the rest was not imported\nrestante: imported 2 messages ("), "{stderr}");
    assert_eq!(scratch.server("data").count("bob"), 2);
}

#[test]
fn export_ends_quietly_if_its_reader_closes_the_pipe() {
    let scratch = Scratch::new();
    scratch.file("bob.mbox", &format!("From a\n{}\n", "x".repeat(1 << 20)));
    scratch.run_successfully(&["import", "--data", "data", "bob.mbox"]);
    let mut export = command();
    export.args(["export", "--data", "data", "-"]).current_dir(scratch.0.path()).stdout(Stdio::piped());
    let mut export = export.spawn().unwrap();
    drop(export.stdout.take());
    let Output { status, stderr, .. } = export.wait_with_output().unwrap();
    assert_eq!((status.code(), stderr), (Some(0), Vec::new()));
}

#[test]
fn rejects_invalid_arguments() {
    let scratch = Scratch::new();
    scratch.file("full/file", "precious");
    scratch.file("bob.mbox", "");
    let _server = scratch.server("data");
    let table: &[(&[&str], i32, &str)] = &[
        (&["export"], 2, "<OUT>"),
        (&["import", "--data", "data"], 2, "<PATH>"),
        (&["export", "out"], 2, "there is no data directory or database: set --data DIR"),
        (&["import", "bob.mbox"], 2, "there is no data directory or database"),
        (&["export", "--data", "nowhere", "out"], 2, "there is no store in nowhere"),
        (&["export", "--data", "bob.mbox", "out"], 2, "bob.mbox"),
        (&["export", "--data", "data", "full"], 2, "full is not empty"),
        (&["export", "--data", "data", "bob.mbox"], 2, "cannot write bob.mbox"),
        (&["export", "--data", "data", "--format", "eml", "-"], 2, "only mbox can be written to standard output"),
        (&["export", "--data", "data", "--format", "zip", "out"], 2, "[possible values: maildir, eml, mbox]"),
        (&["export", "--data", "data", "--mailbox", "a b", "out"], 2, "--mailbox a b: "),
        (&["export", "--data", "data", "--mailbox", "nobody", "out"], 1, "mailbox nobody is empty"),
        (&["import", "--data", "data", "bob.mbox"], 1, "data is in use"),
        (&["import", "--data", "other", "missing"], 1, "missing: No such file"),
    ];
    for (arguments, expected, text) in table {
        let (code, stderr) = scratch.run(arguments);
        assert_eq!(code, *expected, "{arguments:?} {stderr}");
        assert!(stderr.contains(text), "{arguments:?} {stderr}");
    }
    assert_eq!(names(&scratch.0.path().join("full")), ["file"]);
    assert_eq!(fs::read(scratch.0.path().join("bob.mbox")).unwrap(), b"");
}

#[test]
fn help_shows_only_relevant_flags() {
    let scratch = Scratch::new();
    for (name, flags) in [("export", 6), ("import", 11)] {
        let shown = command().args([name, "-h"]).current_dir(scratch.0.path()).stdout(Stdio::piped()).output().unwrap();
        let help = String::from_utf8(shown.stdout).unwrap();
        assert!(shown.status.success() && help.contains("--data <DIR>"), "{help}");
        assert_eq!(help.lines().filter(|line| line.trim_start().starts_with("--")).count(), flags, "{help}");
    }
}
