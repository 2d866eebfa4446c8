//! The command `send`, also under the name `sendmail`.

use std::fs;
use std::os::unix::fs::symlink;

use restante_testdir::TestDir;

use super::{program, restante, run, run_successfully, run_with};
use crate::support::Server;

#[test]
fn composed_message_is_delivered() {
    let server = Server::start(&[]);
    let folder = TestDir::new();
    let (page, report) = (folder.path().join("page.html"), folder.path().join("report.csv"));
    fs::write(&page, "<p>Grüße</p>").unwrap();
    fs::write(&report, "a,b\n1,2\n").unwrap();
    let (page, report) = (format!("@{}", page.display()), report.display().to_string());
    let mut send = restante(&server);
    send.args(["send", "--from", "Shöp <shop@x.org>", "--to", "Ann <ann@x.org>, bob@x.org", "--cc", "carl@x.org"]);
    send.args(["--bcc", "dora@x.org", "--subject", "Grüße 日本", "--text", "-", "--html", &page, "--attach", &report]);
    let result = run_with(send.args(["--header", "X-Test: yes"]), "Dear Ann,\n.\nbye\n".as_bytes());
    assert_eq!(result, (0, String::new(), String::new()));

    for mailbox in ["ann", "bob", "carl", "dora"] {
        let mail = server.json(&format!("/api/v1/mailbox/{mailbox}/latest"));
        assert_eq!(mail["from"], "Shöp <shop@x.org>");
        assert_eq!(mail["to"], serde_json::json!(["Ann <ann@x.org>", "<bob@x.org>"]));
        assert_eq!((&mail["subject"], &mail["body"]["html"]), (&"Grüße 日本".into(), &"<p>Grüße</p>".into()));
        assert_eq!(mail["body"]["text"], "Dear Ann,\n.\nbye\n");
        assert_eq!((&mail["header"]["X-Test"][0], &mail["header"]["Bcc"]), (&"yes".into(), &serde_json::Value::Null));
        let attachment = &mail["attachments"][0];
        assert_eq!((&attachment["filename"], &attachment["content-type"]), (&"report.csv".into(), &"text/csv".into()));
    }
}

#[test]
fn smtp_server_can_be_set() {
    let server = Server::start(&[]);
    let smtp = server.smtp.to_string();
    let elsewhere = |more: &[&str]| {
        let mut command = restante(&server);
        command.env("RESTANTE_SERVER", "http://127.0.0.1:1").args(["send", "--to", "ann@x.org", "--text", "x"]);
        command.args(more);
        command
    };
    assert_eq!(run(&mut elsewhere(&["--smtp", &smtp])).0, 0);
    assert_eq!(run(elsewhere(&[]).env("RESTANTE_SMTP", &smtp)).0, 0);
    assert_eq!(server.count("ann"), 2);
    let (code, _, stderr) = run(&mut elsewhere(&["--smtp", "127.0.0.1:1"]));
    assert_eq!(code, 3, "{stderr}");
    let (code, _, stderr) = run(&mut elsewhere(&[]));
    assert!(code == 3 && stderr.contains("http://127.0.0.1:1/"), "{code} {stderr}");
    // The server requires no login, so the token is not checked.
    let mut send = restante(&server);
    send.args(["send", "--to", "ann@x.org", "--text", "x", "--token", "rst_unknown"]);
    assert_eq!(run(&mut send).0, 0);
}

#[test]
fn sendmail_name_uses_sendmail_options() {
    let server = Server::start(&["--smtp-rejectorigindomains", "spam.test", "--smtp-rejectdomains", "closed.test"]);
    let folder = TestDir::new();
    let sendmail = folder.path().join("sendmail");
    symlink(env!("CARGO_BIN_EXE_restante"), &sendmail).unwrap();
    let call = |args: &[&str], input: &str| run_with(program(&sendmail, &server.url("")).args(args), input.as_bytes());

    let mail = "From: app@x.org\nTo: Ann <ann@x.org>\nBcc: bob@x.org\nSubject: Hi\n\none\n.\ntwo\n";
    assert_eq!(call(&["-t", "-i", "-f", "bounces@x.org"], mail), (0, String::new(), String::new()));
    for mailbox in ["ann", "bob"] {
        let source = String::from_utf8(server.bytes(&format!("/api/v1/mailbox/{mailbox}/latest/source"))).unwrap();
        assert!(source.starts_with("Return-Path: <bounces@x.org>\r\n"), "{source}");
        assert!(source.contains("\r\nDate: ") && source.contains("\r\nMessage-ID: <"), "{source}");
        assert!(
            source.ends_with("\r\nFrom: app@x.org\r\nTo: Ann <ann@x.org>\r\nSubject: Hi\r\n\r\none\r\n.\r\ntwo\r\n")
        );
    }
    // As cron does it: no header, a name without a domain, and options without effect.
    assert_eq!(call(&["-FCron Daemon", "-odi", "-oem", "-oi", "root"], "job done\n").0, 0);
    let root = server.json("/api/v1/mailbox/root/latest");
    assert!(root["from"].as_str().unwrap().starts_with("Cron Daemon <tester@"), "{root}");
    assert_eq!(root["body"]["text"], "job done\n");
    // Without -i, a line with a dot ends the message.
    assert_eq!(call(&["-bm", "-Am", "-h", "3", "--", "carl@x.org"], "Subject: x\n\none\n.\ntwo\n").0, 0);
    assert_eq!(server.json("/api/v1/mailbox/carl/latest")["body"]["text"], "one\n");

    let table: &[(&[&str], i32)] = &[
        (&[], 64),
        (&["-t"], 64),
        (&["-bd"], 64),
        (&["-q"], 64),
        (&["--unknown"], 64),
        (&["ann@x.org", "bad <>", ""], 64),
        (&["ann@x.org", ""], 64),
        (&["--server", "http://127.0.0.1:1", "ann@x.org"], 75),
        (&["-f", "x@spam.test", "ann@x.org"], 69),
        (&["ann@closed.test"], 67),
        (&["--smtp", "127.0.0.1:1", "ann@x.org"], 75),
    ];
    for (args, expected) in table {
        let (code, _, stderr) = call(args, "Subject: x\n\nx\n");
        assert_eq!(code, *expected, "{args:?} {stderr}");
        assert!(!stderr.is_empty());
    }
    assert_eq!(server.count("ann"), 1, "a refused message was stored");
}

#[test]
fn send_accepts_sendmail_options() {
    let server = Server::start(&[]);
    let mail = b"To: ann@x.org\r\nSubject: Hi\r\n\r\n..\r\n";
    assert_eq!(run_with(restante(&server).args(["send", "-ti"]), mail).0, 0);
    assert!(run_successfully(&server, &["source", "ann"]).ends_with("\r\n\r\n..\r\n"));
}
