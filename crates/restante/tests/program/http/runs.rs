//! Leased runs of the real program, over HTTP, SMTP, POP3 and IMAP, without and with authentication.

use restante_testdir::TestDir;
use serde_json::{Value, json};

use super::auth::{plain, send};
use crate::support::Server;
use crate::support::durability::eventually;
use crate::support::imap::Imap;
use crate::support::pop3::Pop3;

const MAIL: &[u8] = b"Subject: Hello\r\n\r\nHi\r\n";

/// A run, with its token.
struct Run {
    project: String,
    token: String,
    domain: String,
}

fn bearer(token: &str) -> String {
    format!("Authorization: Bearer {token}\r\n")
}

/// Leases a run. `headers` are further header lines.
fn lease(server: &Server, headers: &str, expires_in: &str) -> Run {
    let headers = format!("Content-Type: application/json\r\n{headers}");
    let body = json!({ "expires-in": expires_in }).to_string();
    let response = send(server.http, "POST /api/v2/runs", &headers, &body);
    assert_eq!(response.status, 201, "{}", response.body);
    let run: Value = serde_json::from_str(&response.body).unwrap();
    let text = |name: &str| run[name].as_str().unwrap().to_owned();
    let smtp = &run["smtp"];
    assert_eq!((&smtp["host"], &smtp["port"]), (&"127.0.0.1".into(), &server.smtp.port().into()));
    assert_eq!((&smtp["username"], &smtp["password"]), (&run["project"], &run["token"]));
    Run { project: text("project"), token: text("token"), domain: text("domain") }
}

/// Delivers a message after a login. Returns the reply to RCPT that was not accepted.
fn deliver(server: &Server, login: Option<&str>, to: &str, code: &str) {
    let mut smtp = server.connect_smtp();
    smtp.expect("220");
    smtp.command("EHLO client.test", "250");
    if let Some(token) = login {
        smtp.command(&plain("", "any", token), "235");
    }
    smtp.command("MAIL FROM:<a@x.org>", "250");
    smtp.command(&format!("RCPT TO:<{to}>"), code);
    if code == "250" {
        smtp.send([format!("BDAT {} LAST\r\n", MAIL.len()).as_bytes(), MAIL].concat());
        smtp.expect("250");
    }
}

/// Returns the number of messages in a mailbox, or the status of the refusal.
fn count(server: &Server, mailbox: &str, headers: &str) -> Result<usize, u16> {
    let response = send(server.http, &format!("GET /api/v1/mailbox/{mailbox}"), headers, "");
    match response.status {
        200 => Ok(serde_json::from_str::<Vec<Value>>(&response.body).unwrap().len()),
        status => Err(status),
    }
}

#[test]
fn runs_are_separate_without_authentication() {
    let mut server = Server::start(&[]);
    let (first, second) = (lease(&server, "", "10m"), lease(&server, "", "10m"));
    deliver(&server, Some(&first.token), "bob@x.org", "250");
    deliver(&server, None, &format!("bob@{}", first.domain), "250");
    deliver(&server, None, &format!("bob@{}", second.domain), "250");
    deliver(&server, None, "bob@x.org", "250");
    let boxes = [format!("{}:bob", first.project), format!("{}:bob", second.project), "bob".to_owned()];
    for (header, expected) in [
        (bearer(&first.token), [Ok(2), Err(403), Ok(2)]),
        (bearer(&second.token), [Err(403), Ok(1), Ok(1)]),
        (String::new(), [Ok(2), Ok(1), Ok(1)]),
    ] {
        let counts = [0, 1, 2].map(|index: usize| count(&server, &boxes[index], &header));
        assert_eq!(counts, expected, "{header}");
    }

    let open = |server: &mut Server, user: &str, password: &str| {
        let mut pop3 = Pop3::connect(server);
        pop3.ok(&format!("USER {user}"));
        pop3.command(&format!("PASS {password}"))
    };
    let forged = format!("{}x", first.token);
    for (user, password, expected) in [
        ("bob", first.token.as_str(), "+OK 2 messages"),
        ("bob", "x", "+OK 1 message"),
        (&boxes[1], &first.token, "-ERR [AUTH] The login does not allow this"),
        ("bob", &forged, "-ERR [AUTH] Wrong user name or password"),
    ] {
        let reply = open(&mut server, user, password);
        assert!(reply.starts_with(expected), "{user} {password}: {reply}");
    }
    for (password, count) in [(first.token.as_str(), 2), ("x", 1)] {
        let mut imap = Imap::connect(&mut server);
        imap.ok(&format!("LOGIN bob {password}"));
        assert_eq!(imap.ok("STATUS INBOX (MESSAGES)"), [format!("* STATUS \"INBOX\" (MESSAGES {count})")]);
    }
    let refused = Imap::connect(&mut server).no(&format!("LOGIN bob {forged}"));
    assert!(refused.starts_with("NO [AUTHENTICATIONFAILED] "), "{refused}");
    let mut smtp = server.connect_smtp();
    smtp.expect("220");
    smtp.command("EHLO client.test", "250");
    smtp.command(&plain("", "any", &forged), "535 5.7.8");
    drop(smtp);

    let end = send(server.http, "DELETE /api/v2/runs/current", &bearer(&first.token), "");
    assert_eq!(end.status, 200, "{}", end.body);
    let counts = [0, 1, 2].map(|index: usize| count(&server, &boxes[index], ""));
    assert_eq!(counts, [Ok(0), Ok(1), Ok(1)]);
}

#[test]
fn run_ends_at_its_expiry() {
    let mut server = Server::start(&[]);
    let run = lease(&server, "", "3s");
    deliver(&server, Some(&run.token), "bob@x.org", "250");
    let mailbox = format!("{}:bob", run.project);
    assert_eq!(count(&server, &mailbox, ""), Ok(1));
    eventually("the token is still accepted", || count(&server, &mailbox, &bearer(&run.token)) == Err(401));
    deliver(&server, None, &format!("bob@{}", run.domain), "550 5.1.1 The run of this domain has expired");
    eventually("the mail of the run is not deleted", || count(&server, &mailbox, "") == Ok(0));
    server.wait_for_log("reason=expired");
}

/// Servers with the same secret accept each other's runs. A server with another one refuses their tokens and domains.
#[test]
fn runs_are_known_to_servers_with_the_same_secret() {
    let dir = TestDir::new();
    let tokens = dir.path().join("tokens.toml").display().to_string();
    let secret = |letter: &str| letter.repeat(32);
    let start = |secret: &str, arguments: &[&str]| {
        let secret = format!("--auth-secret={secret}");
        Server::start(&[&[secret.as_str()], arguments].concat())
    };
    let (open, locked) =
        (start(&secret("a"), &[]), start(&secret("a"), &["--auth-tokens", &tokens, "--smtp-requireauth"]));
    let other = start(&secret("b"), &[]);
    let run = lease(&open, "", "10m");
    let (header, mailbox) = (bearer(&run.token), format!("{}:bob", run.project));
    deliver(&locked, Some(&run.token), "bob@x.org", "250");
    assert_eq!((count(&locked, &mailbox, &header), count(&locked, &mailbox, "")), (Ok(1), Err(401)));
    // With the token, another run can be leased, although the server requires credentials.
    assert_ne!(lease(&locked, &header, "10m").project, run.project);
    assert_eq!(send(locked.http, "POST /api/v2/runs", "", "").status, 401);
    deliver(&other, None, &format!("bob@{}", run.domain), "550 5.1.1");
    assert_eq!(count(&other, &mailbox, &header), Err(401));
}
