//! The server as a process: start, signals, log file, pid file, and startup errors.

use std::io::Write as _;
use std::net::TcpStream;
use std::process::Stdio;

use restante_testdir::TestDir;

use crate::support::durability::eventually;
use crate::support::{LineConnection, Server, command, connect};

/// Returns the status line of a response on a new connection, or `None` if the server does not respond.
fn status(server: &Server, path: &str) -> Option<String> {
    let mut connection = LineConnection::new(connect(server.http));
    connection.send(format!("GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n"));
    connection.line()
}

#[test]
fn readiness_fails_during_shutdown_while_a_message_is_received() {
    let mut server = Server::start(&[]);
    let mut sender = server.connect_smtp();
    sender.start_message("james@x.org");
    sender.command("DATA", "354");
    sender.send("Subject: slow\r\n");
    server.signal("TERM");
    server.wait_for_log("shutting down");

    // The sender delays the shutdown, and HTTP is served until then.
    for (path, expected) in [("/readyz", " 503 "), ("/livez", " 200 ")] {
        let status = status(&server, path);
        assert!(status.as_ref().is_some_and(|line| line.contains(expected)), "{path}: {status:?}");
    }
    eventually("new senders are accepted", || TcpStream::connect(server.smtp).is_err());
    assert!(server.is_running());

    sender.send("\r\nHi\r\n.\r\n");
    sender.expect("250");
    sender.expect("421");
    assert_eq!(server.wait().code(), Some(0));
    assert!(!server.full_log().contains("in time"));
}

#[test]
fn inbucket_environment_variables_work() {
    let mut command = command();
    command.env("INBUCKET_MAILBOXNAMING", "full").env("INBUCKET_SMTP_MAXRECIPIENTS", "1");
    command.env("INBUCKET_SMTP_REJECTDOMAINS", "*.deny.org").env("RESTANTE_SMTP_MAXRECIPIENTS", "2");
    let server = Server::spawn(&mut command);
    let mut connection = server.connect_smtp();
    connection.start_message("bob@x.org");
    connection.command("RCPT TO:<a@b.deny.org>", "550");
    connection.command("RCPT TO:<c@x.org>", "250");
    connection.command("RCPT TO:<d@x.org>", "452");
    connection.command("DATA", "354");
    connection.command("Subject: hi\r\n\r\nhello\r\n.", "250");
    assert_eq!((server.count("bob@x.org"), server.count("bob")), (1, 0));
}

#[test]
fn sigterm_completes_the_current_message_and_closes_idle_sessions() {
    let mut server = Server::start(&[]);
    let (mut idle, mut busy) = (server.connect_smtp(), server.connect_smtp());
    idle.expect("220");
    busy.start_message("bob@x.org");
    busy.command("DATA", "354");
    server.signal("TERM");
    idle.expect("421");
    assert_eq!(idle.line(), None);
    busy.command("Subject: last\r\n\r\nhello\r\n.", "250");
    busy.expect("421");
    assert_eq!(server.wait().code(), Some(0));
    assert!(std::net::TcpStream::connect(server.smtp).is_err());
}

#[test]
fn closed_log_pipe_has_no_effect() {
    let mut server = Server::spawn(command().arg("--netdebug"));
    server.close_log_pipe();
    let mut connection = server.connect_smtp();
    connection.start_message("bob@x.org");
    connection.command("QUIT", "221");
    assert_eq!(server.count("bob"), 0);
    server.signal("TERM");
    assert_eq!(server.wait().code(), Some(0));
}

#[test]
fn sigterm_is_handled_from_the_start() {
    for _ in 0..20 {
        let mut child = command().spawn().unwrap();
        let mut line = String::new();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stderr.take().unwrap()), &mut line).unwrap();
        assert!(line.contains("INFO"), "{line}");
        let sent = std::process::Command::new("sh").args(["-c", &format!("kill -TERM {}", child.id())]).status();
        assert!(sent.unwrap().success());
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
}

#[test]
fn failed_start_keeps_the_pid_file_of_a_running_server() {
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
fn sigint_stops_the_server_and_removes_the_pid_file() {
    let dir = TestDir::new();
    let pidfile = dir.path().join("pid");
    let mut server = Server::start(&["--pidfile", pidfile.to_str().unwrap()]);
    assert_eq!(std::fs::read_to_string(&pidfile).unwrap().trim(), server.pid().to_string());
    server.signal("INT");
    assert_eq!(server.wait().code(), Some(0));
    assert!(!pidfile.exists());
}

#[test]
fn sighup_reopens_the_log_file() {
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
fn all_configuration_errors_are_reported_at_once() {
    let arguments = ["--smtp-timeout", "soon", "--web-addr", "nowhere", "--loglevel", "loud"];
    let output = command().args(arguments).stderr(Stdio::piped()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8(output.stderr).unwrap();
    for word in ["smtp-timeout", "soon", "web-addr", "nowhere", "loglevel", "loud"] {
        assert!(text.contains(word), "{word} is missing: {text}");
    }
}

#[test]
fn port_in_use_stops_the_start_with_an_error() {
    let server = Server::start(&[]);
    let taken = ["--smtp-addr", &server.smtp.to_string(), "--web-addr", &server.http.to_string()];
    let output = command().args(taken).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stderr).unwrap();
    let problems = [
        (
            format!("cannot listen on {} for SMTP: Address already in use", server.smtp),
            "--smtp-addr or RESTANTE_SMTP_ADDR",
        ),
        (
            format!("cannot listen on {} for HTTP: Address already in use", server.http),
            "--web-addr or RESTANTE_WEB_ADDR",
        ),
    ];
    for (problem, option) in problems {
        assert!(text.contains(&problem), "{text}");
        assert!(text.contains(&format!(". Use {option} to choose another address.")), "{text}");
    }
}

#[test]
fn second_signal_stops_the_server_at_once() {
    let mut server = Server::start(&[]);
    let mut connection = server.connect_smtp();
    connection.start_message("bob@x.org");
    server.signal("INT");
    server.wait_for_log("shutting down");
    // By then a signal is no longer taken for a repetition of the first one.
    server.wait_for_log("waiting for 1 SMTP connection, at most 1");
    eventually("the second signal has an effect", || {
        server.signal("INT");
        server.has_logged("second signal received")
    });
    assert_eq!(server.wait().code(), Some(0));
}

/// `timeout` sends the signal to the server and then to its process group.
#[test]
fn signals_at_the_same_time_are_one_request() {
    let mut server = Server::start(&["--loglevel", "debug"]);
    let mut sender = server.connect_smtp();
    sender.start_message("bob@x.org");
    sender.command("DATA", "354");
    // Two different signals, because the system merges equal ones.
    let both = format!("kill -TERM {pid}; kill -INT {pid}", pid = server.pid());
    assert!(std::process::Command::new("sh").args(["-c", &both]).status().unwrap().success());
    server.wait_for_any_log(&["signal ignored", "second signal received"]);
    sender.command("Subject: last\r\n\r\nhello\r\n.", "250");
    sender.expect("421");
    assert_eq!(server.wait().code(), Some(0));
    assert!(!server.full_log().contains("second signal received"));
}

#[test]
fn closed_standard_input_stops_the_server_if_this_is_set() {
    let mut server = Server::spawn(command().arg("--stopwithstdin").stdin(Stdio::piped()));
    let mut sender = server.connect_smtp();
    sender.start_message("bob@x.org");
    sender.command("DATA", "354");
    server.close_stdin();
    server.wait_for_log("shutting down");
    // The shutdown is that of a first signal.
    sender.command("Subject: last\r\n\r\nhello\r\n.", "250");
    sender.expect("421");
    assert_eq!(server.wait().code(), Some(0));
    assert!(!server.full_log().contains("second signal"));
}

#[test]
fn closed_standard_input_is_not_a_second_signal() {
    let mut server = Server::spawn(command().arg("--stopwithstdin").stdin(Stdio::piped()));
    let mut sender = server.connect_smtp();
    sender.start_message("bob@x.org");
    sender.command("DATA", "354");
    server.signal("TERM");
    server.wait_for_log("shutting down");
    server.close_stdin();
    sender.command("Subject: last\r\n\r\nhello\r\n.", "250");
    sender.expect("421");
    assert_eq!(server.wait().code(), Some(0));
    assert!(!server.full_log().contains("second signal"));
}

#[test]
fn http_survives_invalid_requests() {
    let server = Server::start(&[]);
    for invalid in [&b"\0\0\0\0\r\n\r\n"[..], b"GET\r\n\r\n", b"EHLO x\r\n", b"GET / HTTP/1.1\r\nHost: \xff\r\n\r\n"] {
        let mut stream = connect(server.http);
        stream.write_all(invalid).unwrap();
    }
    assert_eq!(server.count("bob"), 0);
}

#[test]
fn server_information_has_the_bound_ports() {
    let mut server = Server::start(&["--smtp-requireauth", "--smtp-credentials=a:b", "--web-monitorvisible=false"]);
    let about = server.json("/api/v2/server");
    assert_eq!(about["smtp"]["port"], server.smtp.port());
    assert_eq!(about["pop3"]["port"], server.address_of("POP3 listening on tcp4 ").port());
    assert_eq!(about["imap"]["port"], server.address_of("IMAP listening on tcp4 ").port());
    assert_eq!((&about["smtp"]["domain"], &about["smtp"]["auth-required"]), (&"mx.test".into(), &true.into()));
    assert_eq!(about["monitor-visible"], false);
    assert_eq!(about["started-millis"], server.json("/debug/vars")["startMillis"]);
    assert_eq!((&about["script"], &about["webhooks"]), (&serde_json::Value::Null, &0.into()));

    let secure = ["--smtp-tlsenabled", "--smtp-tlscert=self-signed", "--smtp-forcetls", "--pop3-addr=", "--imap-addr="];
    let secure = [&secure[..], &["--webhook-urls=http://a.test,http://b.test"]].concat();
    let about = Server::start(&secure).json("/api/v2/server");
    assert_eq!(about["smtp"]["tls"], "implicit");
    for protocol in ["pop3", "imap"] {
        assert_eq!(about[protocol], serde_json::json!({ "port": null, "tls": "off" }), "{protocol}");
    }
    assert_eq!(about["webhooks"], 2);
}
