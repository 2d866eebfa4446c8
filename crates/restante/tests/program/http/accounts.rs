//! Accounts with the real program: the commands that write the account files, the throttle for failed logins that all protocols
//! share, and the end of streams whose login has ended.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use restante_testdir::TestDir;

use crate::support::imap::Imap;
use crate::support::monitor::EventStream;
use crate::support::pop3::{Pop3, digest};
use crate::support::{LineConnection, Server, TEST_TIMEOUT, connect};

/// Runs a command with the user and token files in this directory, and this standard input.
fn run(dir: &Path, arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_restante"))
        .args(arguments)
        .env("RESTANTE_AUTH_USERS", dir.join("users"))
        .env("RESTANTE_AUTH_TOKENS", dir.join("tokens.toml"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that reads nothing may have exited already.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

fn succeed(dir: &Path, arguments: &[&str], input: &str) -> String {
    let output = run(dir, arguments, input);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

/// Sends a request on a new connection and returns the response.
fn request(server: &Server, request_line: &str, headers: &str, body: &str) -> String {
    let mut stream = connect(server.http);
    let head = format!("{request_line} HTTP/1.0\r\nHost: {}\r\nContent-Length: {}\r\n", server.http, body.len());
    stream.write_all(format!("{head}{headers}\r\n{body}").as_bytes()).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    response
}

#[test]
fn server_reads_symbolic_links_and_commands_refuse_to_write_them() {
    let (mount, data) = (TestDir::new(), TestDir::new());
    succeed(mount.path(), &["user", "add", "ann"], "secret\n");
    let token = succeed(mount.path(), &["token", "create", "ci"], "");
    for name in ["users", "tokens.toml"] {
        symlink(mount.path().join(name), data.path().join(name)).unwrap();
    }
    let before = (fs::read(mount.path().join("users")).unwrap(), fs::read(mount.path().join("tokens.toml")).unwrap());
    for arguments in [&["user", "add", "bob"][..], &["token", "create", "qa"], &["token", "revoke", "ci"]] {
        let output = run(data.path(), arguments, "secret\n");
        let problem = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{problem}");
        assert!(problem.contains("is a symbolic link") && problem.contains("give the path of the file"), "{problem}");
    }
    let after = (fs::read(mount.path().join("users")).unwrap(), fs::read(mount.path().join("tokens.toml")).unwrap());
    assert_eq!(before, after);
    assert!(data.path().join("users").is_symlink() && data.path().join("tokens.toml").is_symlink());
    assert!(succeed(data.path(), &["token", "list"], "").contains("ci"));

    let file = |name: &str| data.path().join(name).display().to_string();
    let server = Server::start(&["--auth-users", &file("users"), "--auth-tokens", &file("tokens.toml")]);
    let bearer = format!("Authorization: Bearer {token}\r\n");
    assert!(request(&server, "GET /api/v1/mailbox/bob", &bearer, "").starts_with("HTTP/1.0 200 "));
}

#[test]
fn symbolic_link_as_lock_file_is_not_followed() {
    let (data, elsewhere) = (TestDir::new(), TestDir::new());
    symlink(elsewhere.path().join("created"), data.path().join("tokens.toml.lock")).unwrap();
    let output = run(data.path(), &["token", "create", "ci"], "");
    let problem = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(1) && problem.contains("tokens.toml.lock"), "{problem}");
    assert!(!elsewhere.path().join("created").exists() && !data.path().join("tokens.toml").exists());
}

/// Tries a password over SMTP on a new connection, and returns the reply.
fn try_smtp(server: &Server, user: &str, password: &str) -> String {
    let mut connection = server.connect_smtp();
    connection.expect("220");
    connection.command("EHLO client.test", "250");
    connection.send(format!("AUTH PLAIN {}\r\n", STANDARD.encode(format!("\0{user}\0{password}"))));
    connection.line().unwrap()
}

#[test]
fn wrong_passwords_are_throttled_across_protocols() {
    let arguments = ["--smtp-credentials=app:right", "--pop3-credentials=bob:right"];
    let mut server = Server::start(&arguments);
    for _ in 0..50 {
        assert!(try_smtp(&server, "app", "right").starts_with("235 "));
    }
    let start = Instant::now();
    thread::scope(|scope| {
        for number in 0..5 {
            let smtp = server.smtp;
            scope.spawn(move || assert!(guess(smtp, number).starts_with("535 ")));
        }
    });
    // The attempts are delayed one after the other: by 0.2, 0.4, 0.8 and 1.6 seconds.
    assert!(start.elapsed() >= Duration::from_secs(3), "{:?}", start.elapsed());
    // POP3 logins from this address are delayed too, also by APOP.
    let start = Instant::now();
    let mut pop3 = Pop3::connect(&mut server);
    let apop = format!("APOP bob {}", digest(&pop3.greeting, "wrong"));
    assert!(pop3.err(&apop).starts_with("-ERR [AUTH] "));
    assert!(start.elapsed() >= Duration::from_millis(3200), "{:?}", start.elapsed());
    assert!(try_smtp(&server, "app", "right").starts_with("235 "));
    server.wait_for_log("access denied protocol=SMTP client=127.0.0.1 request=AUTH reason=\"wrong password\" user=app");
    server.wait_for_log("access denied protocol=POP3 client=127.0.0.1 request=APOP reason=\"wrong password\" user=bob");
    let metrics = request(&server, "GET /metrics", "", "");
    for (protocol, reason) in [("smtp", "password"), ("pop3", "password")] {
        let series = format!("restante_denials_total{{protocol=\"{protocol}\",reason=\"{reason}\"}}");
        assert!(metrics.lines().any(|line| line.starts_with(&series) && !line.ends_with(" 0")), "{series}");
    }
}

/// Tries a wrong password over SMTP, and returns the reply.
fn guess(smtp: SocketAddr, number: usize) -> String {
    let mut connection = LineConnection::new(connect(smtp));
    connection.expect("220");
    connection.command("EHLO client.test", "250");
    connection.send(format!("AUTH PLAIN {}\r\n", STANDARD.encode(format!("\0app\0{number}"))));
    connection.line().unwrap()
}

#[test]
fn without_credentials_every_login_is_accepted_at_once() {
    let mut server = Server::start(&[]);
    let start = Instant::now();
    for number in 0..50 {
        assert!(try_smtp(&server, "anyone", &number.to_string()).starts_with("235 "));
        let mut pop3 = Pop3::connect(&mut server);
        pop3.ok("USER anyone");
        pop3.ok(&format!("PASS {number}"));
        Imap::connect(&mut server).ok(&format!("LOGIN anyone {number}"));
    }
    assert!(start.elapsed() < TEST_TIMEOUT);
}

/// Logs in by the form, and returns the cookie header.
fn log_in(server: &Server) -> String {
    let form = format!("Origin: http://{}\r\nContent-Type: application/x-www-form-urlencoded\r\n", server.http);
    let response = request(server, "POST /login", &form, "user=ann&password=secret");
    let (_, cookie) = response.split_once("\r\nset-cookie: ").unwrap();
    format!("Cookie: {}\r\nOrigin: http://{}\r\n", cookie.split(';').next().unwrap(), server.http)
}

/// Opens a WebSocket with these headers.
fn open_socket(server: &Server, headers: &str) -> TcpStream {
    let mut stream = connect(server.http);
    let request = format!(
        "GET /api/v2/monitor/messages HTTP/1.1\r\nHost: {}\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{headers}\r\n",
        server.http
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.extend_from_slice(&byte);
    }
    assert!(head.starts_with(b"HTTP/1.1 101 "), "{}", String::from_utf8_lossy(&head));
    stream
}

/// Returns the code and the reason of the next close frame.
fn closed(stream: &mut TcpStream) -> (u16, String) {
    let mut head = [0; 4];
    stream.read_exact(&mut head).unwrap();
    assert_eq!(head[0], 0x88, "not a close frame");
    let mut reason = vec![0; usize::from(head[1]) - 2];
    stream.read_exact(&mut reason).unwrap();
    (u16::from_be_bytes([head[2], head[3]]), String::from_utf8(reason).unwrap())
}

#[test]
fn streams_end_with_the_logout_of_their_login() {
    let dir = TestDir::new();
    succeed(dir.path(), &["user", "add", "ann"], "secret\n");
    let users = dir.path().join("users").display().to_string();
    let expected = (1008, "the credentials are no longer valid".to_owned());
    let open = |server: &Server, cookie: &str| {
        (open_socket(server, cookie), EventStream::open(server, "/api/v2/events", cookie))
    };
    // Streams of another login continue.
    let server = Server::start(&["--auth-users", &users]);
    let (first, second) = (log_in(&server), log_in(&server));
    let (mut socket, mut events) = open(&server, &first);
    let (_, mut others) = open(&server, &second);
    let start = Instant::now();
    assert!(request(&server, "POST /logout", &first, "").starts_with("HTTP/1.0 303 "));
    assert_eq!(closed(&mut socket), expected);
    assert!(events.next().is_none());
    assert!(start.elapsed() < Duration::from_secs(8), "{:?}", start.elapsed());
    server.deliver("bob@x.org", b"Subject: Hello\r\n\r\n");
    assert_eq!(others.next().unwrap().name, "message-stored");
}
