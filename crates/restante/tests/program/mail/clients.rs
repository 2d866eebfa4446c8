//! Common clients against the real program: POP3 of Python and curl, and the clients in `clients/` with their own tests. If a program
//! is missing, the test is skipped, or fails if `REQUIRE_CLIENTS` is set, as in CI.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::support::Server;
use crate::support::disk::Disk;
use crate::support::installed::{is_installed, skip};

/// Contains dots at the start of lines, a character that is not ASCII, and an empty line.
const MAIL: &[u8] = "Subject: Grüße\r\n\r\nfirst\r\n.second\r\n..\r\n\r\nlast\r\n".as_bytes();
/// The environment variable that makes a missing client an error.
const REQUIRED: &str = "REQUIRE_CLIENTS";

/// Starts a server with STLS and implicit TLS, and returns its two addresses.
fn server() -> (Server, SocketAddr, SocketAddr) {
    let tls = ["--pop3-tlsenabled", "--pop3-tlscert=self-signed", "--pop3-tlsaddr=127.0.0.1:0"];
    let mut server = Server::start(&[&tls[..], &["--pop3-credentials=*:s3cret"]].concat());
    for _ in 0..2 {
        server.deliver("james@x.org", MAIL);
    }
    let plain = server.address_of("POP3 listening on tcp4 ");
    let encrypted = server.address_of("POP3 with TLS listening on tcp4 ");
    (server, plain, encrypted)
}

#[test]
fn python_poplib() {
    if !is_installed("python3", &["-c", "import poplib; print(poplib.__name__)"], "poplib", REQUIRED) {
        return;
    }
    let (server, plain, encrypted) = server();
    let disk = Disk::new("clients-python");
    let source = disk.data().with_extension("eml");
    let id = &server.ids("james")[0];
    std::fs::write(&source, server.bytes(&format!("/api/v1/mailbox/james/{id}/source"))).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/program/mail/clients/pop3.py");
    let ports = [plain.port().to_string(), encrypted.port().to_string()];
    let output = Command::new("python3").arg(script).args(ports).arg(&source).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(server.ids("james").len(), 1);
}

/// Python's client prefers this mechanism.
#[test]
fn python_smtplib_logs_in_by_cram_md5() {
    if !is_installed("python3", &["-c", "import smtplib; print(smtplib.__name__)"], "smtplib", REQUIRED) {
        return;
    }
    let log_in = "import smtplib, sys\n\
                  smtp = smtplib.SMTP('127.0.0.1', int(sys.argv[1]))\n\
                  smtp.ehlo()\n\
                  assert 'CRAM-MD5' in smtp.esmtp_features['auth'].split()\n\
                  smtp.user, smtp.password = 'tim', sys.argv[2]\n\
                  smtp.auth('CRAM-MD5', smtp.auth_cram_md5)\n\
                  smtp.sendmail('a@x.org', ['james@x.org'], 'Subject: x\\r\\n\\r\\nx\\r\\n')\n";
    for (settings, password, is_right) in [
        (&[][..], "anything", true),
        (&["--smtp-credentials=tim:secret", "--smtp-requireauth=true"], "secret", true),
        (&["--smtp-credentials=tim:secret", "--smtp-requireauth=true"], "wrong", false),
    ] {
        let server = Server::start(settings);
        let port = server.smtp.port().to_string();
        let output = Command::new("python3").args(["-c", log_in, &port, password]).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.success(), is_right, "{password}: {stderr}");
        assert!(is_right || stderr.contains("535"), "{stderr}");
        assert_eq!(server.count("james"), usize::from(is_right));
    }
}

#[test]
fn curl() {
    if !is_installed("curl", &["--version"], " pop3 ", REQUIRED) {
        return;
    }
    let (server, plain, encrypted) = server();
    let ids = server.ids("james");
    let source = server.bytes(&format!("/api/v1/mailbox/james/{}/source", ids[0]));
    let head = source.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
    let uidl = format!("1 {}\r\n2 {}\r\n", ids[0], ids[1]);
    let list = format!("1 {0}\r\n2 {0}\r\n", source.len());
    let (plain, encrypted) = (format!("pop3://{plain}/"), format!("pop3s://{encrypted}/"));
    let cases: [(&str, &str, &[&str], &[u8]); 9] = [
        (&plain, "", &[], list.as_bytes()),
        (&plain, "1", &[], &source),
        (&plain, "1", &["--login-options", "AUTH=+APOP"], &source),
        (&plain, "1", &["--login-options", "AUTH=PLAIN"], &source),
        (&plain, "1", &["--ssl-reqd"], &source),
        (&encrypted, "1", &[], &source),
        (&plain, "", &["-X", "TOP 1 0"], &source[..head]),
        (&plain, "", &["-X", "UIDL"], uidl.as_bytes()),
        (&plain, "2", &["--head", "-X", "DELE"], b""),
    ];
    for (server, message, options, expected) in cases {
        let url = format!("{server}{message}");
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--show-error", "--insecure", "--max-time", "20", "--user", "james:s3cret"]);
        let Output { status, stdout, stderr } = curl.args(options).arg(&url).output().unwrap();
        let problem = String::from_utf8_lossy(&stderr);
        assert!(status.success(), "{url} {options:?}: {problem}");
        let (got, expected) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(expected));
        assert_eq!(got, expected, "{url} {options:?}");
    }
    assert_eq!(server.ids("james"), ids[..1]);
}

/// The directory of our clients.
fn clients() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../clients")
}

#[test]
fn our_python_client() {
    // Another Python may lack the packages of the system's Python.
    let can_test = |python: &&str| {
        let output = Command::new(python).args(["-c", "import pytest"]).output();
        output.is_ok_and(|output| output.status.success())
    };
    let Some(python) = ["python3", "/usr/bin/python3"].into_iter().find(can_test) else {
        return skip("pytest is not installed", REQUIRED);
    };
    let mut tests = Command::new(python);
    tests.args(["-m", "pytest", "-q", "-p", "no:cacheprovider", "--restante-program", env!("CARGO_BIN_EXE_restante")]);
    tests.env("PYTHONDONTWRITEBYTECODE", "1").env_remove("RESTANTE_SERVER");
    assert_succeeds(tests.arg(clients().join("python/tests")));
}

#[test]
fn our_typescript_client() {
    let folder = clients().join("typescript");
    if !folder.join("dist/index.js").exists() {
        return skip("clients/typescript is not built", REQUIRED);
    }
    let server = Server::start(&[]);
    let mut tests = Command::new("node");
    tests.args(["--test", "test/client.test.mjs", "test/server.test.mjs"]).current_dir(&folder);
    tests.env("RESTANTE_SERVER", server.url("")).env("RESTANTE_SMTP", server.smtp.to_string());
    tests.env("RESTANTE_PROGRAM", env!("CARGO_BIN_EXE_restante"));
    assert_succeeds(&mut tests);
}

#[test]
fn our_playwright_fixtures() {
    let folder = clients().join("typescript");
    let playwright = folder.join("node_modules/.bin/playwright");
    if !folder.join("dist/playwright.js").exists() || !playwright.exists() {
        return skip("clients/typescript is not built", REQUIRED);
    }
    if !is_installed("chromium", &["--version"], "Chromium", "REQUIRE_BROWSER") {
        return;
    }
    let server = Server::start(&[]);
    let disk = Disk::new("clients-playwright");
    let mut tests = Command::new(playwright);
    tests.arg("test").arg("--output").arg(disk.data()).current_dir(&folder);
    tests.env("RESTANTE_SERVER", server.url("")).env("RESTANTE_PROGRAM", env!("CARGO_BIN_EXE_restante"));
    assert_succeeds(&mut tests);
}

/// Runs another test program. Its output is shown if it fails.
fn assert_succeeds(tests: &mut Command) {
    let Output { status, stdout, stderr } = tests.output().unwrap();
    let report = [stdout, stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).join("\n");
    assert!(status.success(), "{report}");
}
