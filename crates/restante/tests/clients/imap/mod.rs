//! IMAP clients against the program. `run.py` delivers messages and runs one client, which reads and changes them. `install` downloads
//! clients that are not packages; if one is missing its test is skipped, or fails if `REQUIRE_IMAP_CLIENTS` is set (for Go:
//! `REQUIRE_GO`), as in CI.

use std::path::Path;
use std::process::{Command, Output};

use restante_testdir::skip;

use crate::support::Server;

/// The exit code of `run.py` if the client is not installed.
const NOT_INSTALLED: i32 = 3;

/// Starts a server with these settings, and runs a client. Its output is shown if it fails.
fn run(client: &str, settings: &[&str], with_tls: bool, required: &str) {
    // Clients append messages of earlier years, which would expire after a second.
    let mut server = Server::start(&[settings, &["--storage-retentionperiod=0"]].concat());
    let mut command = Command::new("python3");
    command.arg("-B").arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/imap/run.py"));
    if with_tls {
        command.arg("--tls");
        for text in ["IMAP with TLS listening on tcp4 ", "SMTP with TLS listening on tcp4 "] {
            command.arg(server.address_of(text).port().to_string());
        }
    }
    let imap = server.address_of("IMAP listening on tcp4 ");
    command.arg(imap.ip().to_string());
    command.args([imap, server.smtp, server.http].map(|address| address.port().to_string()));
    let Output { status, stdout, stderr } = command.arg(client).output().unwrap();
    let report = [stdout, stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).join("\n");
    if status.code() == Some(NOT_INSTALLED) {
        return skip(report.trim(), required);
    }
    assert!(status.success(), "{report}");
}

/// Runs a client with a server that has no other settings.
fn test(client: &str) {
    run(client, &[], false, "REQUIRE_IMAP_CLIENTS");
}

/// The tests of Python's `IMAPClient`.
#[test]
fn livetest_of_imapclient() {
    test("livetest");
}

/// The tests of the crate `imap`. They use TLS from the first byte and STARTTLS, and log in to SMTP.
#[test]
fn tests_of_the_crate_imap() {
    let tls = ["--imap-tlsenabled", "--imap-tlscert=self-signed", "--imap-tlsaddr=127.0.0.1:0"];
    let smtp_tls = ["--smtp-tlsenabled", "--smtp-tlscert=self-signed", "--smtp-tlsaddr=127.0.0.1:0"];
    run("rust", &[tls, smtp_tls].concat(), true, "REQUIRE_IMAP_CLIENTS");
}

#[test]
fn imaplib() {
    test("imaplib");
}

#[test]
fn imap_tools() {
    test("imap_tools");
}

#[test]
fn imapflow() {
    test("imapflow");
}

#[test]
fn angus_mail() {
    test("angus");
}

#[test]
fn go_imap() {
    run("go-imap", &[], false, "REQUIRE_GO");
}

#[test]
fn curl() {
    test("curl");
}

#[test]
fn mbsync() {
    test("mbsync");
}

#[test]
fn offlineimap() {
    test("offlineimap");
}

#[test]
fn fetchmail() {
    test("fetchmail");
}

#[test]
fn getmail() {
    test("getmail");
}

#[test]
fn neomutt() {
    test("neomutt");
}
