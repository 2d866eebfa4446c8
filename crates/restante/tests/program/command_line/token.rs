//! `restante token create --key-file`, and logins with such a token over HTTP, SMTP, POP3 and IMAP.

use std::fs;
use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use restante_testdir::TestDir;

use crate::support::imap::Imap;
use crate::support::{LineConnection, Server, connect};

const KEY: &str = "SG.abcdefghijklmnop";

/// Creates a token with the text in a file, or with `input` if the file is `-`.
fn create(dir: &TestDir, name: &str, file: &str, input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_restante"))
        .args(["token", "create", name, "--scope=read,write", "--auth-tokens=tokens.toml", "--key-file", file])
        .env_clear()
        .current_dir(dir.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The command may have exited without reading it.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

#[test]
fn key_files_are_checked() {
    let dir = TestDir::new();
    let length = "the text of a token must have 12 to 512 printable ASCII characters and no spaces";
    let long = "x".repeat(5000);
    // The content of the file, and the end of the output. The name of a token is its index.
    let table: [(&str, i32, &str); 10] = [
        ("  SG.abcdefghijklmnop\r\n", 0, "Warning: a text of less than 20 characters may be guessed.\n"),
        ("AKIAIOSFODNN7EXAMPLE", 0, "Only a hash of its text is stored.\n"),
        ("AKIAIOSFODNN7EXAMPLE\n", 1, "the token 1 has the same text\n"),
        ("SG.short", 1, length),
        ("", 1, length),
        ("SG.abcdefgh ijklmnop", 1, length),
        ("SG.abcdefgh\nijklmnop", 1, length),
        ("SG.abcdefghüijklmnop", 1, length),
        (&long, 1, length),
        ("rst_abcdefghijklmnop", 1, "the text of a token must not begin with rst_, as random tokens do\n"),
    ];
    for (index, (content, code, expected)) in table.into_iter().enumerate() {
        fs::write(dir.path().join("key"), content).unwrap();
        let output = create(&dir, &index.to_string(), "key", "");
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(code) && text.contains(expected), "{content:?} {output:?}");
        assert!(output.stdout.is_empty() && (content.is_empty() || !text.contains(content.trim())), "{output:?}");
    }
    let piped = create(&dir, "piped", "-", "AKIAIOSFODNN7EXAMPL2\n");
    assert!(piped.status.success(), "{piped:?}");
    let missing = create(&dir, "x", "missing", "");
    assert!(String::from_utf8_lossy(&missing.stderr).starts_with("restante: missing: "), "{missing:?}");
    fs::write(dir.path().join("key"), b"\xff\xfe").unwrap();
    let binary = create(&dir, "x", "key", "");
    assert!(String::from_utf8_lossy(&binary.stderr).starts_with("restante: key: "), "{binary:?}");
    let stored = fs::read_to_string(dir.path().join("tokens.toml")).unwrap();
    assert!(
        stored.matches("[[token]]").count() == 3 && !stored.contains("AKIA") && !stored.contains("SG."),
        "{stored}"
    );
}

#[test]
fn a_key_is_a_token_over_all_protocols() {
    let dir = TestDir::new();
    assert!(create(&dir, "shop", "-", KEY).status.success());
    let tokens = dir.path().join("tokens.toml").display().to_string();
    let mut server = Server::start(&["--auth-tokens", &tokens, "--smtp-requireauth"]);
    let basic = |user: &str, password: &str| format!("Basic {}", STANDARD.encode(format!("{user}:{password}")));
    let table = [
        (format!("Bearer {KEY}"), "200 OK"),
        (basic("api", KEY), "200 OK"),
        (basic("", KEY), "200 OK"),
        (basic(KEY, ""), "401 Unauthorized"),
        (format!("Bearer {KEY}x"), "401 Unauthorized"),
        (basic("api", &KEY.to_lowercase()), "401 Unauthorized"),
    ];
    for (authorization, expected) in table {
        let mut connection = LineConnection::new(connect(server.http));
        connection.send(format!(
            "GET /api/v1/mailbox/x HTTP/1.1\r\nHost: localhost\r\nAuthorization: {authorization}\r\n\r\n"
        ));
        assert_eq!(connection.line().unwrap(), format!("HTTP/1.1 {expected}"), "{authorization}");
    }
    let mut smtp = server.connect_smtp();
    smtp.expect("220");
    smtp.command("EHLO client.test", "250");
    smtp.command(&format!("AUTH PLAIN {}", STANDARD.encode(format!("\0apikey\0{KEY}"))), "235");
    smtp.command("MAIL FROM:<a@x.org>", "250");
    let mut pop3 = LineConnection::new(connect(server.address_of("POP3 listening on tcp4 ")));
    pop3.expect("+OK");
    pop3.command("USER bob", "+OK");
    pop3.command(&format!("PASS {KEY}"), "+OK");
    Imap::connect(&mut server).ok(&format!("LOGIN bob {KEY}"));
    server.kill();
    assert!(!server.full_log().contains(KEY));
}
