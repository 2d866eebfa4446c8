//! Errors of the server and of the connection, and the credentials of requests.

use clap::Command;

use super::fake::{CannedResponse, FakeServer, run};
use crate::output::OutputStyle;

#[test]
fn reports_errors_with_the_text_of_the_server() {
    const RESPONSES: &[CannedResponse] = &[
        ("GET /api/v1/mailbox/locked?after=0&limit=1000", 401, r#"{"detail":"Log in first."}"#),
        ("GET /api/v1/mailbox/other?after=0&limit=1000", 403, r#"{"detail":"Not this mailbox."}"#),
        ("GET /api/v1/mailbox/a%20b?after=0&limit=1000", 400, r#"{"detail":"That is no mailbox."}"#),
        ("GET /api/v1/mailbox/full?after=0&limit=1000", 503, r#"{"detail":"The store is full."}"#),
        ("GET /api/v1/mailbox/odd?after=0&limit=1000", 200, r#"{"surprise":1}"#),
        ("GET /api/v1/mailbox/html?after=0&limit=1000", 200, "<html>"),
        ("GET /api/v1/mailbox/moved?after=0&limit=1000", 302, ""),
    ];
    let server = FakeServer::new(RESPONSES);
    let table = [
        ("locked", 4, "Log in first."),
        ("other", 4, "Not this mailbox."),
        ("a b", 2, "That is no mailbox."),
        ("full", 5, "The store is full."),
        ("odd", 5, "The response of the server is not as expected: "),
        ("html", 5, "The response of the server is not as expected: "),
        ("moved", 5, "The server responded with status 302."),
    ];
    for (mailbox, code, message) in table {
        let (out, result) = server.run(OutputStyle::pipe(), &["list", mailbox]);
        let error = result.unwrap_err();
        assert_eq!((out.as_str(), error.exit_code()), ("", code), "{mailbox}");
        assert!(error.to_string().starts_with(message), "{error}");
    }
}

#[test]
fn reports_an_unreachable_server() {
    // Only root could listen on this port, and nothing does.
    let addr = "127.0.0.1:1";
    let message = "The server http://127.0.0.1:1/ cannot be reached: connection refused. Is it running? Start a server with \
                   `restante`, or choose another one with --server.";
    for server in [&format!("http://{addr}"), addr] {
        let error = run(OutputStyle::pipe(), &["list", "--server", server]).1.unwrap_err();
        assert_eq!((error.exit_code(), error.to_string().as_str()), (3, message), "{server}");
    }
    let message = "The mail server 127.0.0.1:1 cannot be reached: Connection refused (os error 111). Is a server \
                   running? Start one with `restante`, or choose another one with --server or --smtp.";
    for args in [&["send", "--smtp", addr, "--to", "ann@x.org"][..], &["demo", "--smtp", addr]] {
        let error = run(OutputStyle::pipe(), args).1.unwrap_err();
        assert_eq!((error.exit_code(), error.to_string().as_str()), (3, message), "{args:?}");
    }
}

#[test]
fn reports_invalid_addresses_of_servers() {
    let table: &[(&[&str], &str)] = &[
        (
            &["list", "--server", "localhost:90000"],
            "The address of the server is invalid: invalid port number. Use HOST:PORT or a URL, for example \
             localhost:9000 or https://mail.example.org.",
        ),
        (
            &["demo", "--smtp", "smtp://localhost:2500"],
            "The address of the SMTP server \"smtp://localhost:2500\" is invalid: it must not be a URL. Use HOST or \
             HOST:PORT, for example localhost:2500.",
        ),
    ];
    for (args, message) in table {
        let error = run(OutputStyle::pipe(), args).1.unwrap_err();
        assert_eq!((error.exit_code(), error.to_string().as_str()), (2, *message), "{args:?}");
    }
}

#[test]
fn sends_credentials() {
    const RESPONSES: &[CannedResponse] = &[("GET /base/api/v1/mailbox/ann?limit=1", 200, "[]")];
    let list = |server: &FakeServer, host: &str, more: &[&str]| {
        let server = format!("{}/base/", server.url.replace("http://", host));
        run(OutputStyle::pipe(), &[&["list", "ann", "--limit", "1", "--server", &server], more].concat())
    };
    let table: &[(&str, &[&str], &str)] = &[
        ("http://", &["--token", "rst_secret"], "bearer rst_secret\r\n"),
        // ann:s:cret
        ("http://ann:s%3Acret@", &[], "basic YW5uOnM6Y3JldA==\r\n"),
        // ann:a%zz+%
        ("http://ann:a%zz+%@", &[], "basic YW5uOmElenorJQ==\r\n"),
        ("http://ann:x@", &["--token", "wins"], "bearer wins\r\n"),
    ];
    for (host, args, expected) in table {
        let server = FakeServer::new(RESPONSES);
        let (_, result) = list(&server, host, args);
        assert_eq!(result.unwrap_err().exit_code(), 1, "the mailbox is empty");
        let head = server.requests();
        let (_, value) = head.split_once("uthorization: ").unwrap();
        assert!(value.to_lowercase().starts_with(&expected.to_lowercase()), "{value}");
    }
    let server = FakeServer::new(RESPONSES);
    let _ = list(&server, "http://", &[]);
    assert!(!server.requests().to_lowercase().contains("authorization"));
}

#[test]
fn delete_rejects_latest() {
    let server = FakeServer::new(&[]);
    for args in [&["delete", "ann", "1", "latest"][..], &["delete", "--message", "1", "latest"]] {
        let (_, result) = server.run(OutputStyle::pipe(), args);
        assert_eq!(result.unwrap_err().exit_code(), 2, "{args:?}");
    }
    assert_eq!(server.requests(), "");
}

/// Names that would change the path of the request, and arguments that do not fit together.
#[test]
fn rejects_wrong_arguments() {
    let table: &[&[&str]] = &[
        &["list", ""],
        &["get", "."],
        &["get", "--message", ".."],
        &["get", "ann", "--message", "1"],
        &["get", "ann", ".."],
        &["source", "ann", ""],
        &["delete", "ann", "1", "."],
        &["purge", ".."],
        &["purge"],
        &["purge", "ann", "--all"],
        &["wait", "", "--timeout", "0"],
        &["list", "ann", "--query", "x"],
        &["list", "ann", "--tag", "x"],
        &["list", "--query", " "],
        &["list", "--limit", "0"],
        &["list", "--tag", "a,b"],
        &["list", "--tag", ""],
        &["codes", "--message", "1", "--wait", "1s"],
        &["watch", "ann"],
        &["watch", "--mailbox", ".."],
        &["watch", "--count", "0"],
        &["watch", "--timeout", "soon"],
        &["tag"],
        &["tag", "1", "a/b"],
        &["tag", "1", "--add"],
        &["tag", "1", "a", "--clear"],
        &["tag", "1", "a", "--add", "--remove"],
        &["delete"],
        &["delete", "ann"],
        &["delete", "--yes"],
        &["delete", "--message"],
        &["delete", "ann", "1", "--yes"],
        &["delete", "ann", "1", "--query", "x"],
        &["delete", "--message", "1", "--tag", "x"],
        &["codes", "ann", "--after", "latest"],
        &["client", "mbox", ""],
    ];
    for args in table {
        let command = Command::new("restante").subcommands(crate::commands());
        let result = command.try_get_matches_from(["restante"].iter().chain(*args));
        assert_eq!(result.map(|_| ()).map_err(|error| error.exit_code()), Err(2), "{args:?}");
    }
}
