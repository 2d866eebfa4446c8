//! What goes wrong between a command and its server, and who asks.

use clap::Command;

use super::fake::{CannedResponse, FakeServer, run};
use crate::output::OutputStyle;

#[test]
fn refusals_are_told_in_the_words_of_the_server() {
    const ANSWERS: &[CannedResponse] = &[
        ("GET /api/v1/mailbox/locked?after=0&limit=1000", 401, r#"{"detail":"Log in first."}"#),
        ("GET /api/v1/mailbox/other?after=0&limit=1000", 403, r#"{"detail":"Not this mailbox."}"#),
        ("GET /api/v1/mailbox/a%20b?after=0&limit=1000", 400, r#"{"detail":"That is no mailbox."}"#),
        ("GET /api/v1/mailbox/full?after=0&limit=1000", 503, r#"{"detail":"The store is full."}"#),
        ("GET /api/v1/mailbox/odd?after=0&limit=1000", 200, r#"{"surprise":1}"#),
        ("GET /api/v1/mailbox/html?after=0&limit=1000", 200, "<html>"),
        ("GET /api/v1/mailbox/moved?after=0&limit=1000", 302, ""),
    ];
    let fake = FakeServer::new(ANSWERS);
    let table = [
        ("locked", 4, "Log in first."),
        ("other", 4, "Not this mailbox."),
        ("a b", 2, "That is no mailbox."),
        ("full", 5, "The store is full."),
        ("odd", 5, "The answer of the server cannot be understood: "),
        ("html", 5, "The answer of the server cannot be understood: "),
        ("moved", 5, "The server answers with status 302."),
    ];
    for (mailbox, code, sentence) in table {
        let (out, ended) = fake.run(OutputStyle::pipe(), &["list", mailbox]);
        let failure = ended.unwrap_err();
        assert_eq!((out.as_str(), failure.exit_code()), ("", code), "{mailbox}");
        assert!(failure.to_string().starts_with(sentence), "{failure}");
    }
}

#[test]
fn nobody_is_there() {
    // Only root could listen on this port, and nothing does.
    let gone = "127.0.0.1:1";
    let (_, ended) = run(OutputStyle::pipe(), &["list", "--server", &format!("http://{gone}")]);
    let failure = ended.unwrap_err();
    assert_eq!(failure.exit_code(), 3, "{failure}");
    assert!(failure.to_string().starts_with(&format!("The server http://{gone}/ cannot be reached: ")), "{failure}");
    let (_, ended) = run(OutputStyle::pipe(), &["list", "--server", "localhost:9000"]);
    assert_eq!(ended.unwrap_err().exit_code(), 2, "a URL has a scheme");
}

#[test]
fn credentials_are_sent_along() {
    const ANSWERS: &[CannedResponse] = &[("GET /base/api/v1/mailbox/ann?limit=1", 200, "[]")];
    let list = |fake: &FakeServer, host: &str, more: &[&str]| {
        let server = format!("{}/base/", fake.url.replace("http://", host));
        run(OutputStyle::pipe(), &[&["list", "ann", "--limit", "1", "--server", &server], more].concat())
    };
    let table: &[(&str, &[&str], &str)] = &[
        ("http://", &["--token", "rst_secret"], "bearer rst_secret\r\n"),
        // ann:s:cret
        ("http://ann:s%3Acret@", &[], "basic YW5uOnM6Y3JldA==\r\n"),
        ("http://ann:x@", &["--token", "wins"], "bearer wins\r\n"),
    ];
    for (host, args, expected) in table {
        let fake = FakeServer::new(ANSWERS);
        let (_, ended) = list(&fake, host, args);
        assert_eq!(ended.unwrap_err().exit_code(), 1, "the mailbox is empty");
        let head = fake.requests();
        let (_, value) = head.split_once("uthorization: ").unwrap();
        assert!(value.to_lowercase().starts_with(&expected.to_lowercase()), "{value}");
    }
    let fake = FakeServer::new(ANSWERS);
    let _ = list(&fake, "http://", &[]);
    assert!(!fake.requests().to_lowercase().contains("authorization"));
}

#[test]
fn latest_is_never_deleted() {
    let fake = FakeServer::new(&[]);
    let (_, ended) = fake.run(OutputStyle::pipe(), &["delete", "ann", "1", "latest"]);
    assert_eq!(ended.unwrap_err().exit_code(), 2);
    assert_eq!(fake.requests(), "");
}

/// The path of the request would be that of something else.
#[test]
fn names_that_lead_elsewhere_are_no_names() {
    let table: &[&[&str]] = &[
        &["list", ""],
        &["get", "."],
        &["get", "ann", ".."],
        &["source", "ann", ""],
        &["delete", "ann", "1", "."],
        &["purge", ".."],
        &["purge"],
        &["purge", "ann", "--all"],
        &["wait", "", "--timeout", "0"],
        &["codes", "ann", "--after", "latest"],
        &["client", "mbox", ""],
    ];
    for args in table {
        let command = Command::new("restante").subcommands(crate::commands());
        let told = command.try_get_matches_from(["restante"].iter().chain(*args));
        assert_eq!(told.map(|_| ()).map_err(|error| error.exit_code()), Err(2), "{args:?}");
    }
}
