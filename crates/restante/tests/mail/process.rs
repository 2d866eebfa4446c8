//! The server as a process: its start, signals, log file and pid file, and what fails the start.

use std::io::Write as _;
use std::net::TcpStream;
use std::process::Stdio;

use restante_testdir::TestDir;

use crate::support::durability::eventually;
use crate::support::{Server, Talk, command, connect};

/// The status line of an answer on a connection of its own; nothing when nobody answers.
fn status(server: &Server, path: &str) -> Option<String> {
    let mut talk = Talk::new(connect(server.http));
    talk.send(format!("GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n"));
    talk.line()
}

#[test]
fn whoever_watches_is_told_of_the_end_while_a_mail_is_under_way() {
    let mut server = Server::start(&[]);
    let mut sender = server.talk();
    sender.open_mail("james@x.org");
    sender.say("DATA", "354");
    sender.send("Subject: slow\r\n");
    server.signal("TERM");
    server.logged("shutting down");

    // Who holds the end up is the sender, so that HTTP is there for as long as it takes.
    for (path, expected) in [("/readyz", " 503 "), ("/livez", " 200 ")] {
        let status = status(&server, path);
        assert!(status.as_ref().is_some_and(|line| line.contains(expected)), "{path}: {status:?}");
    }
    eventually("new senders are let in", || TcpStream::connect(server.smtp).is_err());
    assert!(server.lives());

    sender.send("\r\nHi\r\n.\r\n");
    sender.expect("250");
    sender.expect("421");
    assert_eq!(server.wait().code(), Some(0));
    assert!(!server.whole_log().contains("cut off"));
}

#[test]
fn the_environment_of_an_inbucket_installation_works() {
    let mut command = command();
    command.env("INBUCKET_MAILBOXNAMING", "full").env("INBUCKET_SMTP_MAXRECIPIENTS", "1");
    command.env("INBUCKET_SMTP_REJECTDOMAINS", "*.deny.org").env("RESTANTE_SMTP_MAXRECIPIENTS", "2");
    let server = Server::spawn(&mut command);
    let mut talk = server.talk();
    talk.open_mail("bob@x.org");
    talk.say("RCPT TO:<a@b.deny.org>", "550");
    talk.say("RCPT TO:<c@x.org>", "250");
    talk.say("RCPT TO:<d@x.org>", "452");
    talk.say("DATA", "354");
    talk.say("Subject: hi\r\n\r\nhello\r\n.", "250");
    assert_eq!((server.count("bob@x.org"), server.count("bob")), (1, 0));
}

#[test]
fn sigterm_lets_a_mail_under_way_finish_and_sends_idle_sessions_away() {
    let mut server = Server::start(&[]);
    let (mut idle, mut busy) = (server.talk(), server.talk());
    idle.expect("220");
    busy.open_mail("bob@x.org");
    busy.say("DATA", "354");
    server.signal("TERM");
    idle.expect("421");
    assert_eq!(idle.line(), None);
    busy.say("Subject: last\r\n\r\nhello\r\n.", "250");
    busy.expect("421");
    assert_eq!(server.wait().code(), Some(0));
    assert!(std::net::TcpStream::connect(server.smtp).is_err());
}

#[test]
fn a_log_that_nobody_reads_any_more_changes_nothing() {
    let mut server = Server::spawn(command().arg("--netdebug"));
    server.stop_reading_the_log();
    let mut talk = server.talk();
    talk.open_mail("bob@x.org");
    talk.say("QUIT", "221");
    assert_eq!(server.count("bob"), 0);
    server.signal("TERM");
    assert_eq!(server.wait().code(), Some(0));
}

#[test]
fn sigterm_is_heard_from_the_first_moment_on() {
    for _ in 0..20 {
        let mut child = command().spawn().unwrap();
        let mut line = String::new();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stderr.take().unwrap()), &mut line).unwrap();
        assert!(line.contains("INFO"), "{line}");
        let told = std::process::Command::new("sh").args(["-c", &format!("kill -TERM {}", child.id())]).status();
        assert!(told.unwrap().success());
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
}

#[test]
fn a_start_that_fails_leaves_the_pid_file_of_a_running_server_alone() {
    let dir = TestDir::new();
    let pidfile = dir.path().join("pid");
    let mut server = Server::start(&["--pidfile", pidfile.to_str().unwrap()]);
    let again = ["--pidfile", pidfile.to_str().unwrap(), "--smtp-addr", &server.smtp.to_string()];
    assert_eq!(command().args(again).output().unwrap().status.code(), Some(1));
    assert_eq!(std::fs::read_to_string(&pidfile).unwrap().trim(), server.pid().to_string());
    server.signal("TERM");
    server.wait();
}

#[test]
fn sigint_ends_too_and_the_pid_file_goes() {
    let dir = TestDir::new();
    let pidfile = dir.path().join("pid");
    let mut server = Server::start(&["--pidfile", pidfile.to_str().unwrap()]);
    assert_eq!(std::fs::read_to_string(&pidfile).unwrap().trim(), server.pid().to_string());
    server.signal("INT");
    assert_eq!(server.wait().code(), Some(0));
    assert!(!pidfile.exists());
}

#[test]
fn sighup_opens_the_log_file_again() {
    let dir = TestDir::new();
    let log = dir.path().join("log");
    let moved = log.with_extension("old");
    let mut child = command().args(["--logfile", log.to_str().unwrap(), "--logjson"]).spawn().unwrap();
    let wait_for = |path: &std::path::Path, text: &str| {
        eventually(&format!("{text:?} is not in {}", path.display()), || {
            std::fs::read_to_string(path).is_ok_and(|content| content.contains(text))
        });
    };
    wait_for(&log, "\"HTTP listening on tcp4 127.0.0.1:");
    std::fs::rename(&log, &moved).unwrap();
    let hangup = std::process::Command::new("sh").args(["-c", &format!("kill -HUP {}", child.id())]).status();
    assert!(hangup.unwrap().success());
    wait_for(&log, "reloaded log file");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_bad_configuration_is_told_at_once_and_as_a_whole() {
    let arguments = ["--smtp-timeout", "soon", "--web-addr", "nowhere", "--loglevel", "loud"];
    let output = command().args(arguments).stderr(Stdio::piped()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8(output.stderr).unwrap();
    for word in ["smtp-timeout", "soon", "web-addr", "nowhere", "loglevel", "loud"] {
        assert!(text.contains(word), "{word} is missing: {text}");
    }
}

#[test]
fn a_port_in_use_stops_the_start_with_a_sentence() {
    let server = Server::start(&[]);
    let taken = ["--smtp-addr", &server.smtp.to_string(), "--web-addr", &server.http.to_string()];
    let output = command().args(taken).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains(&format!("SMTP cannot listen on {}", server.smtp)), "{text}");
    assert!(text.contains(&format!("HTTP cannot listen on {}", server.http)), "{text}");
}

#[test]
fn who_asks_twice_wants_the_end_now() {
    let mut server = Server::start(&[]);
    let mut talk = server.talk();
    talk.open_mail("bob@x.org");
    server.signal("INT");
    server.logged("shutting down");
    server.signal("INT");
    server.logged("told twice");
    assert_eq!(server.wait().code(), Some(0));
}

#[test]
fn http_lives_on_after_garbage() {
    let server = Server::start(&[]);
    for garbage in [&b"\0\0\0\0\r\n\r\n"[..], b"GET\r\n\r\n", b"EHLO x\r\n", b"GET / HTTP/1.1\r\nHost: \xff\r\n\r\n"] {
        let mut stream = connect(server.http);
        stream.write_all(garbage).unwrap();
    }
    assert_eq!(server.count("bob"), 0);
}

#[test]
fn a_script_that_does_not_exist_is_told_of() {
    let mut server = Server::start(&["--lua-path", "/no/such/rules.lua"]);
    server.logged("there is no script: no such file: /no/such/rules.lua");
}

#[test]
fn the_page_is_told_the_ports_that_were_really_bound() {
    let mut server = Server::start(&["--smtp-requireauth", "--smtp-credentials=a:b", "--web-monitorvisible=false"]);
    let about = server.json("/api/v2/server");
    assert_eq!(about["smtp"]["port"], server.smtp.port());
    assert_eq!(about["pop3"]["port"], server.address_of("POP3 listening on tcp4 ").port());
    assert_eq!((&about["smtp"]["domain"], &about["smtp"]["auth-required"]), (&"mx.test".into(), &true.into()));
    assert_eq!(about["monitor-visible"], false);
    assert_eq!(about["started-millis"], server.json("/debug/vars")["startMillis"]);
    assert_eq!((&about["script"], &about["webhooks"]), (&serde_json::Value::Null, &0.into()));

    let secure = ["--smtp-tlsenabled", "--smtp-tlscert=self-signed", "--smtp-forcetls", "--pop3-addr="];
    let secure = [&secure[..], &["--webhook-urls=http://a.test,http://b.test"]].concat();
    let about = Server::start(&secure).json("/api/v2/server");
    assert_eq!(about["smtp"]["tls"], "implicit");
    assert_eq!(about["pop3"], serde_json::json!({ "port": null, "tls": "off" }));
    assert_eq!(about["webhooks"], 2);
}
