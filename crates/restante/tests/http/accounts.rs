//! Accounts from the outside: the commands that write their files, the throttle for failed logins that all protocols share, and
//! the end of streams that were opened with a login.

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

use crate::support::monitor::EventStream;
use crate::support::pop3::{Pop3, digest};
use crate::support::{LONG, Server, Talk, connect};

/// Runs a command with the files of users and tokens in this directory, and this on its standard input.
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
    // A command that reads nothing may have ended already.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

fn succeed(dir: &Path, arguments: &[&str], input: &str) -> String {
    let output = run(dir, arguments, input);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

/// The answer to a request, on a connection of its own.
fn ask(server: &Server, request: &str, headers: &str, body: &str) -> String {
    let mut stream = connect(server.http);
    let head = format!("{request} HTTP/1.0\r\nHost: {}\r\nContent-Length: {}\r\n", server.http, body.len());
    stream.write_all(format!("{head}{headers}\r\n{body}").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn files_behind_links_are_read_by_the_server_and_not_written_by_commands() {
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
        assert!(problem.contains("is a symbolic link") && problem.contains("name the file"), "{problem}");
    }
    let after = (fs::read(mount.path().join("users")).unwrap(), fs::read(mount.path().join("tokens.toml")).unwrap());
    assert_eq!(before, after);
    assert!(data.path().join("users").is_symlink() && data.path().join("tokens.toml").is_symlink());
    assert!(succeed(data.path(), &["token", "list"], "").contains("ci"));

    let file = |name: &str| data.path().join(name).display().to_string();
    let server = Server::start(&["--auth-users", &file("users"), "--auth-tokens", &file("tokens.toml")]);
    let bearer = format!("Authorization: Bearer {token}\r\n");
    assert!(ask(&server, "GET /api/v1/mailbox/bob", &bearer, "").starts_with("HTTP/1.0 200 "));
}

#[test]
fn a_link_in_the_place_of_the_lock_file_is_not_followed() {
    let (data, elsewhere) = (TestDir::new(), TestDir::new());
    symlink(elsewhere.path().join("created"), data.path().join("tokens.toml.lock")).unwrap();
    let output = run(data.path(), &["token", "create", "ci"], "");
    let problem = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(1) && problem.contains("tokens.toml.lock"), "{problem}");
    assert!(!elsewhere.path().join("created").exists() && !data.path().join("tokens.toml").exists());
}

/// Tries a password over SMTP on a connection of its own, and returns the reply.
fn try_smtp(server: &Server, user: &str, password: &str) -> String {
    let mut talk = server.talk();
    talk.expect("220");
    talk.say("EHLO client.test", "250");
    talk.send(format!("AUTH PLAIN {}\r\n", STANDARD.encode(format!("\0{user}\0{password}"))));
    talk.line().unwrap()
}

#[test]
fn guesses_of_passwords_in_the_settings_are_slowed_down_over_all_protocols() {
    let arguments = ["--smtp-credentials=app:right", "--pop3-credentials=bob:right"];
    let mut server = Server::start(&arguments);
    for _ in 0..50 {
        assert!(try_smtp(&server, "app", "right").starts_with("235 "));
    }
    let begun = Instant::now();
    thread::scope(|scope| {
        for number in 0..5 {
            let smtp = server.smtp;
            scope.spawn(move || assert!(guess(smtp, number).starts_with("535 ")));
        }
    });
    // They wait for each other: 0.2, 0.4, 0.8 and 1.6 seconds.
    assert!(begun.elapsed() >= Duration::from_secs(3), "{:?}", begun.elapsed());
    // POP3 is as slow from this address, also by APOP.
    let begun = Instant::now();
    let mut pop3 = Pop3::connect(&mut server);
    let apop = format!("APOP bob {}", digest(&pop3.greeting, "wrong"));
    assert!(pop3.err(&apop).starts_with("-ERR [AUTH] "));
    assert!(begun.elapsed() >= Duration::from_millis(3200), "{:?}", begun.elapsed());
    assert!(try_smtp(&server, "app", "right").starts_with("235 "));
    server.logged("denied protocol=SMTP client=127.0.0.1 asked=AUTH why=\"wrong password\" user=app");
    server.logged("denied protocol=POP3 client=127.0.0.1 asked=APOP why=\"wrong password\" user=bob");
    let metrics = ask(&server, "GET /metrics", "", "");
    for (protocol, reason) in [("smtp", "password"), ("pop3", "password")] {
        let series = format!("restante_denials_total{{protocol=\"{protocol}\",reason=\"{reason}\"}}");
        assert!(metrics.lines().any(|line| line.starts_with(&series) && !line.ends_with(" 0")), "{series}");
    }
}

/// Tries a wrong password over SMTP, and returns the reply.
fn guess(smtp: SocketAddr, number: usize) -> String {
    let mut talk = Talk::new(connect(smtp));
    talk.expect("220");
    talk.say("EHLO client.test", "250");
    talk.send(format!("AUTH PLAIN {}\r\n", STANDARD.encode(format!("\0app\0{number}"))));
    talk.line().unwrap()
}

#[test]
fn without_credentials_every_login_is_accepted_at_once() {
    let mut server = Server::start(&[]);
    let begun = Instant::now();
    for number in 0..50 {
        assert!(try_smtp(&server, "anybody", &number.to_string()).starts_with("235 "));
        let mut pop3 = Pop3::connect(&mut server);
        pop3.ok("USER anybody");
        pop3.ok(&format!("PASS {number}"));
    }
    assert!(begun.elapsed() < LONG);
}

/// Logs in by the form, and returns the header with the cookie.
fn log_in(server: &Server) -> String {
    let form = format!("Origin: http://{}\r\nContent-Type: application/x-www-form-urlencoded\r\n", server.http);
    let answer = ask(server, "POST /login", &form, "user=ann&password=secret");
    let (_, cookie) = answer.split_once("\r\nset-cookie: ").unwrap();
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

/// The code and the reason of the close frame that comes next.
fn closed(stream: &mut TcpStream) -> (u16, String) {
    let mut head = [0; 4];
    stream.read_exact(&mut head).unwrap();
    assert_eq!(head[0], 0x88, "a close frame");
    let mut reason = vec![0; usize::from(head[1]) - 2];
    stream.read_exact(&mut reason).unwrap();
    (u16::from_be_bytes([head[2], head[3]]), String::from_utf8(reason).unwrap())
}

#[test]
fn streams_end_with_the_logout_of_the_login_that_they_were_opened_with() {
    let dir = TestDir::new();
    succeed(dir.path(), &["user", "add", "ann"], "secret\n");
    let users = dir.path().join("users").display().to_string();
    let over = (1008, "the credentials are not good any more".to_owned());
    let open = |server: &Server, cookie: &str| {
        (open_socket(server, cookie), EventStream::open(server, "/api/v2/events", cookie))
    };
    // Streams of another login go on.
    let server = Server::start(&["--auth-users", &users]);
    let (first, second) = (log_in(&server), log_in(&server));
    let (mut socket, mut events) = open(&server, &first);
    let (_, mut others) = open(&server, &second);
    let begun = Instant::now();
    assert!(ask(&server, "POST /logout", &first, "").starts_with("HTTP/1.0 303 "));
    assert_eq!(closed(&mut socket), over);
    assert!(events.next().is_none());
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
    server.deliver("bob@x.org", b"Subject: Hello\r\n\r\n");
    assert_eq!(others.next().unwrap().name, "message-stored");
}
