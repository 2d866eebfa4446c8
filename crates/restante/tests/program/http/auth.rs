//! Authentication of the real program over HTTP, SMTP and POP3: users, tokens and login sessions.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use restante_testdir::TestDir;
use serde_json::{Value, json};

use crate::support::exposition::Exposition;
use crate::support::monitor::{EventStream, SocketMessage, WebSocketClient};
use crate::support::pop3::{Pop3, digest};
use crate::support::{Server, TEST_TIMEOUT, command, connect};

const MAIL: &[u8] = b"Subject: Hello\r\n\r\nHi\r\n";

/// A folder for the user and token files. It is removed when dropped.
struct AuthFiles(TestDir);

impl AuthFiles {
    fn new() -> Self {
        Self(TestDir::new())
    }

    fn users(&self) -> String {
        self.0.path().join("users").display().to_string()
    }

    fn tokens(&self) -> String {
        self.0.path().join("tokens.toml").display().to_string()
    }

    /// Runs a command of the program with this standard input.
    fn run(&self, arguments: &[&str], input: &str) -> Output {
        let mut child = Command::new(env!("CARGO_BIN_EXE_restante"))
            .args(arguments)
            .env("RESTANTE_AUTH_USERS", self.users())
            .env("RESTANTE_AUTH_TOKENS", self.tokens())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A command that reads nothing may have exited already.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        child.wait_with_output().unwrap()
    }

    fn add_user(&self, name: &str, password: &str) {
        let output = self.run(&["user", "add", name], &format!("{password}\n"));
        assert!(output.status.success(), "{output:?}");
    }

    fn token(&self, arguments: &[&str]) -> String {
        let output = self.run(&[&["token", "create"], arguments].concat(), "");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    }

    /// Starts a server with the user `ann`, the password `secret`, and more arguments.
    fn server(&self, arguments: &[&str]) -> Server {
        self.add_user("ann", "secret");
        let (users, tokens) = (self.users(), self.tokens());
        Server::start(&[&["--auth-users", &users, "--auth-tokens", &tokens], arguments].concat())
    }
}

fn basic(user: &str, password: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))
}

/// A response: status, head and body.
pub(crate) struct Response {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: String,
}

/// Sends a request on a new connection, with further header lines, each terminated by CRLF.
pub(crate) fn send(http: SocketAddr, request: &str, headers: &str, body: &str) -> Response {
    let mut stream = connect(http);
    stream.set_read_timeout(Some(TEST_TIMEOUT * 2)).unwrap();
    let length = body.len();
    let head = format!("{request} HTTP/1.0\r\nHost: {http}\r\nContent-Length: {length}\r\n{headers}\r\n");
    stream.write_all([head.as_bytes(), body.as_bytes()].concat().as_slice()).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Response { status, head: head.to_owned(), body: body.to_owned() }
}

fn status(http: SocketAddr, request: &str, authorization: &str) -> u16 {
    let header = if authorization.is_empty() { String::new() } else { format!("Authorization: {authorization}\r\n") };
    send(http, request, &header, "").status
}

pub(crate) fn plain(identity: &str, user: &str, password: &str) -> String {
    format!("AUTH PLAIN {}", STANDARD.encode(format!("{identity}\0{user}\0{password}")))
}

#[test]
fn user_and_token_commands() {
    let files = AuthFiles::new();
    let stderr = |output: &Output| String::from_utf8_lossy(&output.stderr).into_owned();
    let output = files.run(&["user", "add", "ann"], "secret\n");
    assert!(output.status.success() && stderr(&output).contains("Added user ann to "), "{output:?}");
    assert!(stderr(&files.run(&["user", "add", "ann"], "other\n")).contains("Changed the password of user ann in "));
    assert!(fs::read_to_string(files.users()).unwrap().starts_with("ann:$argon2id$v=19$m=19456,t=2,p=1$"));
    // The flags, the note, and the rights of ann after it.
    let rights: [(&[&str], &str, &str, Value); 6] = [
        (&["--project=shop"], "the password and the rights", "read", json!(["shop:*"])),
        (&[], "the password", "read", json!(["shop:*"])),
        (
            &["--project=shop", "--project=acme", "--mailbox=b*", "--scope=read,write"],
            "the password and the rights",
            "read,write",
            json!(["shop:b*", "acme:b*"]),
        ),
        (&["--mailbox=ci-*"], "the password and the rights", "read", json!(["ci-*"])),
        (&["--scope=read,relay"], "the password and the rights", "read,relay", json!([])),
        (&["--all-rights"], "the password and the rights", "read,write,admin,relay", json!([])),
    ];
    for (flags, changed, scopes, mailboxes) in rights {
        let output = files.run(&[&["user", "add", "ann"], flags].concat(), "secret\n");
        assert!(stderr(&output).contains(&format!("Changed {changed} of user ann in ")), "{flags:?} {output:?}");
        let list: Value = serde_json::from_slice(&files.run(&["user", "list", "--json"], "").stdout).unwrap();
        let scopes: Vec<&str> = scopes.split(',').collect();
        assert_eq!(list, json!([{ "name": "ann", "scopes": scopes, "mailboxes": mailboxes }]), "{flags:?}");
    }
    assert!(!fs::read_to_string(files.users()).unwrap().contains('#'));
    files.run(&["user", "add", "bo", "--project=shop"], "secret\n");
    let table = String::from_utf8(files.run(&["user", "list"], "").stdout).unwrap();
    let expected = "NAME  SCOPES                  MAILBOXES\nann   read,write,admin,relay  all\nbo    read                    shop:*\n";
    assert_eq!(table, expected);
    for (arguments, input, expected) in [
        (&["user", "add", "a:b"][..], "secret\n", "must not begin with # or contain a colon"),
        (&["user", "add", "bob"], "\n", "the password must not be empty"),
        (&["user", "add", "bob", "--mailbox="], "", "a mailbox pattern is empty"),
        (&["user", "add", "bob", "--mailbox=a b"], "secret\n", "a mailbox pattern must not contain a space"),
        (&["token", "revoke", "ci"], "", "no token has the id or name ci"),
    ] {
        let output = files.run(arguments, input);
        assert!(output.status.code() == Some(1) && stderr(&output).contains(expected), "{output:?}");
    }
    for arguments in [
        &["token", "create"][..],
        &["token", "create", "x", "--scope", "all"],
        &["user", "add"],
        &["user", "add", "x", "--project", "Shop"],
        &["user", "add", "x", "--all-rights", "--project", "shop"],
    ] {
        assert_eq!(files.run(arguments, "").status.code(), Some(2), "{arguments:?}");
    }

    let output = files.run(&["token", "list"], "");
    assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
    let token = files.token(&["ci", "--scope=read,write", "--mailbox=ci-*", "--mailbox=bob", "--expires=30d"]);
    assert!(token.starts_with("rst_") && token.len() == 47, "{token}");
    let list = files.run(&["token", "list", "--json"], "").stdout;
    let list: Value = serde_json::from_slice(&list).unwrap();
    assert_eq!(list[0]["scopes"], json!(["read", "write"]));
    assert_eq!((&list[0]["mailboxes"], &list[0]["expired"]), (&json!(["ci-*", "bob"]), &false.into()));
    let table = String::from_utf8(files.run(&["token", "list"], "").stdout).unwrap();
    assert!(table.starts_with("ID ") && table.contains("read,write  ci-*,bob   20"), "{table}");
    assert!(!fs::read_to_string(files.tokens()).unwrap().contains(&token[4..]));
    assert!(files.run(&["token", "revoke", "ci"], "").status.success());
    let nowhere = Command::new(env!("CARGO_BIN_EXE_restante")).args(["token", "list"]).output().unwrap();
    assert!(nowhere.status.code() == Some(1) && stderr(&nowhere).contains("--auth-tokens"), "{nowhere:?}");
}

#[test]
fn rest_with_users_and_tokens_until_a_token_is_revoked() {
    let files = AuthFiles::new();
    let mut server = files.server(&[]);
    server.deliver("bob@x.org", MAIL);
    server.deliver("ci-1@x.org", MAIL);
    let token = files.token(&["ci", "--mailbox", "ci-*"]);
    let list = |mailbox: &str| format!("GET /api/v1/mailbox/{mailbox}");
    let bearer = format!("Bearer {token}");
    assert_eq!(status(server.http, &list("bob"), ""), 401);
    assert_eq!(status(server.http, &list("bob"), &basic("ann", "secret")), 200);
    assert_eq!(status(server.http, &list("bob"), &basic("ann", "wrong")), 401);
    // The server reads a new token within a second.
    let deadline = Instant::now() + TEST_TIMEOUT;
    while status(server.http, &list("ci-1"), &bearer) != 200 {
        assert!(Instant::now() < deadline, "the token is not accepted");
        thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(status(server.http, &list("bob"), &bearer), 403);
    assert_eq!(status(server.http, "DELETE /api/v1/mailbox/ci-1", &bearer), 403);
    assert_eq!(status(server.http, "GET /metrics", &bearer), 403);
    assert!(files.run(&["token", "revoke", "ci"], "").status.success());
    while status(server.http, &list("ci-1"), &bearer) == 200 {
        assert!(Instant::now() < deadline, "the token is still accepted");
        thread::sleep(Duration::from_millis(100));
    }
    let metrics = send(server.http, "GET /metrics", &format!("Authorization: {}\r\n", basic("ann", "secret")), "").body;
    let metrics = Exposition::parse(&metrics);
    for (reason, least) in [("none", 1.0), ("password", 1.0), ("scope", 2.0), ("mailbox", 1.0), ("token", 1.0)] {
        let series = format!("restante_denials_total{{protocol=\"http\",reason=\"{reason}\"}}");
        assert!(metrics.value(&series) >= least, "{reason}");
    }

    server.wait_for_log(
        "access denied protocol=HTTP client=127.0.0.1 request=\"GET /api/v1/mailbox/bob\" reason=\"no credentials\"",
    );
    server.wait_for_log("request=\"GET /api/v1/mailbox/bob\" reason=\"wrong password\" user=ann");
    server.wait_for_log("request=\"GET /api/v1/mailbox/bob\" reason=\"mailbox not granted\" user=ci");
    server.wait_for_log("request=\"GET /metrics\" reason=\"scope not granted\" user=ci");
    server.signal("TERM");
    server.wait();
    let log = server.full_log();
    for secret in ["secret", "wrong\"", token.as_str(), "YW5u"] {
        assert!(!log.contains(secret), "{secret}: {log}");
    }
}

#[test]
fn login_session_ends_by_logout_or_password_change() {
    let files = AuthFiles::new();
    let mut server = files.server(&[]);
    let origin = format!("Origin: http://{}\r\nContent-Type: application/x-www-form-urlencoded\r\n", server.http);
    let redirect = send(server.http, "GET /m/bob", "Accept: text/html\r\n", "");
    assert!(
        redirect.status == 303 && redirect.head.contains("\r\nlocation: ./../login?next=m%2Fbob"),
        "{}",
        redirect.head
    );
    assert_eq!(send(server.http, "POST /login", &origin, "user=ann&password=wrong").status, 403);
    server.wait_for_log("request=\"POST /login\" reason=\"wrong password\" user=ann");
    let foreign = "Origin: http://evil.example\r\n";
    assert_eq!(send(server.http, "POST /login", foreign, "user=ann&password=secret").status, 403);
    let log_in = |password: &str| {
        let response = send(server.http, "POST /login", &origin, &format!("user=ann&password={password}&next=m%2Fbob"));
        assert!(response.status == 303 && response.head.contains("\r\nlocation: ./m/bob\r\n"), "{}", response.head);
        let (_, cookie) = response.head.split_once("\r\nset-cookie: ").unwrap();
        format!("Cookie: {}\r\n", cookie.split(';').next().unwrap())
    };
    let page = |cookie: &str| send(server.http, "GET /", cookie, "").status;
    let (first, second) = (log_in("secret"), log_in("secret"));
    assert_eq!((page(&first), page(&second), page("")), (200, 200, 401));
    assert_eq!(send(server.http, "DELETE /api/v1/mailbox/bob", &first, "").status, 403);
    assert_eq!(send(server.http, "DELETE /api/v1/mailbox/bob", &format!("{first}{origin}"), "").status, 200);
    assert_eq!(send(server.http, "POST /logout", &format!("{first}{origin}"), "").status, 303);
    assert_eq!((page(&first), page(&second)), (401, 200));
    files.add_user("ann", "another");
    server.signal("HUP");
    let deadline = Instant::now() + TEST_TIMEOUT;
    while page(&second) == 200 {
        assert!(Instant::now() < deadline, "the login session is still valid");
        thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(page(&log_in("another")), 200);
}

#[test]
fn smtp_accepts_users_tokens_and_configured_credentials() {
    let files = AuthFiles::new();
    let (writer, reader) =
        (files.token(&["w", "--scope=write", "--mailbox=ci-*"]), files.token(&["r", "--scope=read"]));
    let mut server = files.server(&["--smtp-requireauth", "--smtp-credentials=old:0ld"]);
    let rcpt = |login: &str, to: &str, code: &str| {
        let mut connection = server.connect_smtp();
        connection.expect("220");
        connection.command("EHLO client.test", "250");
        connection.command(login, "235");
        connection.command("MAIL FROM:<a@x.org>", "250");
        connection.command(&format!("RCPT TO:<{to}@x.org>"), code);
    };
    let refused = |login: &str, why: &str| {
        let mut connection = server.connect_smtp();
        connection.expect("220");
        connection.command("EHLO client.test", "250");
        connection.command(login, &format!("535 5.7.8 {why}"));
        connection.command("MAIL FROM:<a@x.org>", "530");
    };
    rcpt(&plain("", "old", "0ld"), "bob", "250");
    rcpt(&plain("", "ann", "secret"), "bob", "250");
    rcpt(&plain("", "any", &writer), "ci-1", "250");
    rcpt(&plain("", "any", &writer), "bob", "550 5.7.1");
    refused(&plain("", "any", &reader), "The login does not allow this");
    refused(&plain("", "ann", "wrong"), "Wrong user name or password");
    refused(&plain("", "old", "secret"), "Wrong user name or password");
    server
        .wait_for_log("access denied protocol=SMTP client=127.0.0.1 request=AUTH reason=\"scope not granted\" user=r");
    server.wait_for_log(
        "access denied protocol=SMTP client=127.0.0.1 request=RCPT reason=\"mailbox not granted\" user=w",
    );
    server.wait_for_log("access denied protocol=SMTP client=127.0.0.1 request=AUTH reason=\"wrong password\" user=ann");
}

#[test]
fn script_is_not_called_for_recipients_outside_of_the_token() {
    let files = AuthFiles::new();
    let writer = files.token(&["w", "--scope=write", "--mailbox=ci-*"]);
    let script = files.0.path().join("deny.lua");
    let deny = "function restante.before.rcpt_to_accepted(session) return smtp.deny(421, 'Says the script') end";
    fs::write(&script, deny).unwrap();
    let server = files.server(&["--lua-path", &script.display().to_string(), "--smtp-rejectdomains=closed.org"]);
    let mut connection = server.connect_smtp();
    connection.expect("220");
    connection.command("EHLO client.test", "250");
    connection.command(&plain("", "any", &writer), "235");
    connection.command("MAIL FROM:<a@x.org>", "250");
    for recipient in ["bob@x.org", "bob@closed.org"] {
        connection.command(&format!("RCPT TO:<{recipient}>"), "550 5.7.1 The credentials are not for this mailbox");
    }
    connection.command("RCPT TO:<ci-1@x.org>", "421 Says the script");
}

#[test]
fn pop3_opens_mailboxes_within_the_grant() {
    let files = AuthFiles::new();
    let (reader, writer) = (files.token(&["r", "--mailbox=bob"]), files.token(&["w", "--scope=read,write"]));
    let only_writes = files.token(&["o", "--scope=write"]);
    let mut server = files.server(&["--pop3-credentials=carol:c4rol"]);
    for mailbox in ["ann", "bob", "carol"] {
        server.deliver(&format!("{mailbox}@x.org"), MAIL);
    }
    let mut user_and_password = |user: &str, password: &str| {
        let mut pop3 = Pop3::connect(&mut server);
        pop3.ok(&format!("USER {user}"));
        let response = pop3.command(&format!("PASS {password}"));
        (response, pop3)
    };
    let (opens, wrong) = ("+OK 1 message", "-ERR [AUTH] Wrong user name or password");
    let not_allowed = "-ERR [AUTH] The login does not allow this";
    for (user, password, expected) in [
        ("ann", "secret", opens),
        ("bob*ann", "secret", opens),
        ("bob@x.org*ann", "secret", opens),
        ("bob", &reader, opens),
        ("carol", &writer, opens),
        ("carol", "c4rol", opens),
        ("bob", "secret", wrong),
        ("bob*eve", "secret", wrong),
        ("carol", &reader, not_allowed),
        ("bob", &only_writes, not_allowed),
        ("bob", "c4rol", wrong),
        ("bob", "", wrong),
    ] {
        let response = user_and_password(user, password).0;
        assert!(response.starts_with(expected), "{user} {password}: {response}");
    }
    // A read-only login cannot delete.
    let (_, mut pop3) = user_and_password("bob", &reader);
    assert_eq!(pop3.err("DELE 1"), "-ERR The login allows to read only");
    pop3.ok("RETR 1");
    drop(pop3);
    let (_, mut pop3) = user_and_password("bob*ann", "secret");
    pop3.ok("DELE 1");
    pop3.quit();

    let mut pop3 = Pop3::connect(&mut server);
    pop3.err(&plain("carol", "eve", "secret"));
    pop3.ok(&plain("carol", "ann", "secret"));
    // APOP cannot be verified with a hashed password.
    let mut pop3 = Pop3::connect(&mut server);
    let apop = |greeting: &str, password: &str| digest(greeting, password);
    pop3.err(&format!("APOP ann {}", apop(&pop3.greeting, "secret")));
    pop3.ok(&format!("APOP carol {}", apop(&pop3.greeting, "c4rol")));
    server.wait_for_log(
        "access denied protocol=POP3 client=127.0.0.1 request=PASS reason=\"mailbox not granted\" user=r",
    );
}

/// A name without a project means the mailbox in the home of a user or token. Rights limit both in the same way.
#[test]
fn pop3_opens_mailboxes_in_the_home() {
    let files = AuthFiles::new();
    let (data, mail) = (files.0.path().join("data").display().to_string(), files.0.path().join("mail.eml"));
    fs::write(&mail, MAIL).unwrap();
    for mailbox in ["bob", "shop:bob", "acme:bob", "shop:ann"] {
        let import = ["import", "--data", &data, "--mailbox", mailbox, &mail.display().to_string()];
        assert!(files.run(&import, "").status.success(), "{mailbox}");
    }
    let add_user = |name: &str, flags: &[&str]| {
        let output = files.run(&[&["user", "add", name], flags].concat(), "secret\n");
        assert!(output.status.success(), "{output:?}");
    };
    add_user("shopper", &["--project=shop"]);
    add_user("writer", &["--project=shop", "--scope=read,write"]);
    add_user("both", &["--project=shop", "--project=acme"]);
    add_user("sender", &["--scope=write"]);
    let token = files.token(&["t", "--project=acme"]);
    let mut server = files.server(&["--data", &data]);
    let mut user_and_password = |user: &str, password: &str| {
        let mut pop3 = Pop3::connect(&mut server);
        pop3.ok(&format!("USER {user}"));
        let response = pop3.command(&format!("PASS {password}"));
        (response, pop3)
    };
    let (opens, is_empty) = ("+OK 1 message", "+OK 0 messages");
    let not_allowed = "-ERR [AUTH] The login does not allow this";
    for (user, password, expected) in [
        ("ann", "secret", is_empty),
        ("shop:ann*ann", "secret", opens),
        ("shopper", "secret", is_empty),
        ("bob*shopper", "secret", opens),
        ("bob@x.org*shopper", "secret", opens),
        ("shop:bob*shopper", "secret", opens),
        ("acme:bob*shopper", "secret", not_allowed),
        ("bob*both", "secret", not_allowed),
        ("acme:bob*both", "secret", opens),
        ("bob*sender", "secret", not_allowed),
        ("bob", &token, opens),
        ("ann", &token, is_empty),
        ("shop:bob", &token, not_allowed),
    ] {
        let response = user_and_password(user, password).0;
        assert!(response.starts_with(expected), "{user} {password}: {response}");
    }
    assert_eq!(user_and_password("bob*shopper", "secret").1.err("DELE 1"), "-ERR The login allows to read only");
    let mut pop3 = user_and_password("bob*writer", "secret").1;
    pop3.ok("DELE 1");
    pop3.quit();
    let ann = basic("ann", "secret");
    for (mailbox, count) in [("bob", 1), ("shop:bob", 0), ("acme:bob", 1)] {
        let list =
            send(server.http, &format!("GET /api/v1/mailbox/{mailbox}"), &format!("Authorization: {ann}\r\n"), "");
        assert_eq!(serde_json::from_str::<Vec<Value>>(&list.body).unwrap().len(), count, "{mailbox}");
    }
}

/// The rights of a user apply to SMTP and REST as those of a token, and a change of them ends event streams.
#[test]
fn users_are_limited_to_their_rights() {
    let files = AuthFiles::new();
    let add_user = |flags: &[&str]| files.run(&[&["user", "add", "eve"], flags].concat(), "secret\n");
    assert!(add_user(&["--mailbox=ci-*", "--scope=read,write"]).status.success());
    let server = files.server(&["--smtp-requireauth"]);
    let mut smtp = server.connect_smtp();
    smtp.expect("220");
    smtp.command("EHLO client.test", "250");
    smtp.command(&plain("", "eve", "secret"), "235");
    smtp.command("MAIL FROM:<a@x.org>", "250");
    smtp.command("RCPT TO:<bob@x.org>", "550 5.7.1 The credentials are not for this mailbox");
    smtp.command("RCPT TO:<ci-1@x.org>", "250");
    let eve = basic("eve", "secret");
    for (request, expected) in [
        ("GET /api/v1/mailbox/ci-1", 200),
        ("DELETE /api/v1/mailbox/ci-1", 200),
        ("GET /api/v1/mailbox/bob", 403),
        ("GET /metrics", 403),
    ] {
        assert_eq!(status(server.http, request, &eve), expected, "{request}");
    }
    let mut events = EventStream::open(&server, "/api/v2/events", &format!("Authorization: {eve}\r\n"));
    assert!(add_user(&["--mailbox=ci-*", "--scope=write"]).status.success());
    assert!(events.next().is_none());
    assert_eq!(status(server.http, "GET /api/v1/mailbox/ci-1", &eve), 403);
}

#[test]
fn monitors_are_limited_to_the_mailboxes_of_the_token_and_end_with_it() {
    let files = AuthFiles::new();
    let token = files.token(&["ci", "--mailbox=ci-*"]);
    let server = files.server(&[]);
    let with_token = |path: &str| format!("{path}?access_token={token}");
    let header = format!("Authorization: Bearer {token}\r\n");
    let mut socket = WebSocketClient::open(&server, &with_token("/api/v2/monitor/messages"));
    let mut by_header = EventStream::open(&server, "/api/v2/events", &header);
    let mut by_query = EventStream::open(&server, &with_token("/api/v2/events/ci-1"), "");
    server.deliver("bob@x.org", MAIL);
    server.deliver("ci-1@x.org", MAIL);
    assert_eq!(socket.text()["header"]["mailbox"], "ci-1");
    for stream in [&mut by_header, &mut by_query] {
        assert_eq!(stream.next().unwrap().data["header"]["mailbox"], "ci-1");
    }
    for path in ["/api/v2/events", "/api/v2/events/bob", "/api/v1/monitor/messages"] {
        assert_eq!(status(server.http, &format!("GET {path}"), "Bearer rst_x"), 401, "{path}");
    }
    assert_eq!(send(server.http, "GET /api/v2/events/bob", &header, "").status, 403);
    assert!(files.run(&["token", "revoke", "ci"], "").status.success());
    assert_eq!(socket.next(), SocketMessage::Closed(1008));
    assert!(by_header.next().is_none() && by_query.next().is_none());
}

#[test]
fn many_wrong_passwords_do_not_block_other_clients() {
    let files = AuthFiles::new();
    let token = files.token(&["ci"]);
    let server = files.server(&[]);
    let request = "GET /api/v1/mailbox/bob";
    assert_eq!(status(server.http, request, &basic("ann", "secret")), 200);
    let statuses: Vec<u16> = thread::scope(|scope| {
        let guess = |number: usize| {
            let http = server.http;
            scope.spawn(move || status(http, request, &basic("eve", &number.to_string())))
        };
        let guesses: Vec<_> = (0..100).map(guess).collect();
        // Cached logins and tokens are accepted while the wrong passwords wait.
        for _ in 0..20 {
            assert_eq!(status(server.http, request, &basic("ann", "secret")), 200);
            assert_eq!(status(server.http, request, &format!("Bearer {token}")), 200);
        }
        guesses.into_iter().map(|guess| guess.join().unwrap()).collect()
    });
    assert!(statuses.iter().all(|status| [401, 429].contains(status)), "{statuses:?}");
    let refused = statuses.iter().filter(|status| **status == 429).count();
    assert!(refused >= 50, "only {refused} were refused without a check");
}

#[test]
fn authentication_is_required_once_users_or_tokens_are_configured() {
    let files = AuthFiles::new();
    let data = files.0.path().join("data");
    fs::create_dir_all(&data).unwrap();
    let data_flag = format!("--data={}", data.display());
    let list = "GET /api/v1/mailbox/bob";
    let open = Server::start(&[&data_flag]);
    assert_eq!(status(open.http, list, ""), 200);
    drop(open);
    let create =
        Command::new(env!("CARGO_BIN_EXE_restante")).args(["token", "create", "ci", &data_flag]).output().unwrap();
    let token = String::from_utf8(create.stdout).unwrap();
    assert!(Path::new(&data).join("tokens.toml").exists());
    let locked = Server::start(&[&data_flag]);
    assert_eq!(status(locked.http, list, ""), 401);
    assert_eq!(status(locked.http, list, &format!("Bearer {}", token.trim_end())), 200);
    drop(locked);
    // A configured file requires authentication even if it does not exist.
    let locked = Server::start(&["--auth-tokens", &files.tokens()]);
    assert_eq!(status(locked.http, list, ""), 401);
    drop(locked);
    fs::write(files.users(), "ann:plain text\n").unwrap();
    let (code, log) = Server::try_spawn(command().args(["--auth-users", &files.users()])).err().unwrap();
    assert!(code.code() == Some(2) && log.contains("line 1: the hash must begin with"), "{log}");
}
