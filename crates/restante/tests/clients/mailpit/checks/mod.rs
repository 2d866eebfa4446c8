//! What the tests of Mailpit check, as far as a user can see it: replies, stored messages, answers of the API and exit codes. The
//! checks run against Restante as Mailpit, and against Mailpit if `MAILPIT_BIN` is set.
//!
//! A check in which Restante differs has both answers and a reason. The reason is a text of `docs/from-mailpit.md`. A difference
//! that no longer occurs fails the test.

mod conversation;
mod cors;
mod html_check;
mod html_to_text;
mod link_check;
mod messages;
mod pop3;
mod readyz;
mod search;
mod send;
mod sendmail;
mod smtp;
mod tags;
mod thumbnails;

use std::fmt::Display;
use std::io::{BufRead as _, BufReader, Write as _};

use serde_json::Value;

use crate::mailpit::differential::answer::{self, Request};
use crate::mailpit::differential::side::Side;
use crate::mailpit::server::{Program, Server};
use crate::support::connect;

/// The documentation of the differences.
const DOCUMENTATION: &str = include_str!("../../../../../../docs/from-mailpit.md");

/// A PNG file of one pixel, as base64.
const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII=";

/// The checks of a topic, run against one program.
pub(crate) struct Checks {
    program: Program,
    /// The number of answers that are equal in both programs, and of those that differ as documented.
    equal: usize,
    differences: usize,
    failures: Vec<String>,
}

impl Checks {
    /// Checks an answer that both programs give.
    pub(crate) fn equal(&mut self, what: impl Display, actual: impl Into<Value>, expected: impl Into<Value>) {
        self.check(&what.to_string(), &actual.into(), &expected.into(), None);
    }

    /// Checks an answer that Restante gives differently. The reason is a text of the documentation.
    pub(crate) fn differs<V: Into<Value>>(
        &mut self,
        what: impl Display,
        actual: impl Into<Value>,
        [mailpit, restante]: [V; 2],
        reason: &str,
    ) {
        self.check(&what.to_string(), &actual.into(), &mailpit.into(), Some((&restante.into(), reason)));
    }

    /// Checks an answer. Returns whether it is the expected one.
    fn check(&mut self, what: &str, actual: &Value, mailpit: &Value, restante: Option<(&Value, &str)>) -> bool {
        if let Some((restante, reason)) = restante {
            assert_ne!(mailpit, restante, "{what}: the answers are equal");
            assert!(is_documented(reason), "{what}: the documentation does not contain {reason:?}");
        }
        let (expected, count) = match (restante, &self.program) {
            (Some((restante, _)), Program::Restante) => (restante, &mut self.differences),
            _ => (mailpit, &mut self.equal),
        };
        if actual == expected {
            *count += 1;
        } else {
            self.failures.push(format!("{} {what}: {actual} instead of {expected}", self.program));
        }
        actual == expected
    }
}

/// Returns whether the documentation contains a text, in any arrangement of lines.
fn is_documented(text: &str) -> bool {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    words(DOCUMENTATION).contains(&words(text))
}

/// Runs the checks of a topic against all programs, and prints their numbers.
fn run(topic: &str, checks_of_topic: fn(&mut Checks)) {
    let mut summary = Vec::new();
    let mut failures = Vec::new();
    for program in Program::mailpit().into_iter().chain([Program::Restante]) {
        let mut checks = Checks { program, equal: 0, differences: 0, failures: Vec::new() };
        checks_of_topic(&mut checks);
        let Checks { program, equal, differences, failures: failed } = checks;
        let count = equal + differences + failed.len();
        summary.push(format!("{program} {count} checks, {equal} equal, {differences} documented differences"));
        failures.extend(failed);
    }
    println!("{topic}: {}", summary.join("; "));
    assert!(failures.is_empty(), "{} checks failed:\n{}", failures.len(), failures.join("\n"));
}

/// Returns the body of the answer to a GET.
fn get(side: &Side, path: &str) -> Value {
    answer::send(side, &Request::get(path))["body"].take()
}

/// Returns the number of all messages and that of unread ones.
fn totals(side: &Side) -> Value {
    let list = get(side, "/api/v1/messages?limit=0");
    serde_json::json!([list["total"], list["unread"]])
}

/// Encodes a text as a part of a URL.
fn encode(text: &str) -> String {
    let encoded = text.bytes().map(|byte| match byte {
        byte if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    });
    encoded.collect()
}

/// Sends a request with these header lines, of which `Host` is the first. Returns the status of the answer.
fn status(server: &Server, request: &str, headers: &[String], body: &str) -> u16 {
    let mut stream = connect(server.http());
    let headers = headers.join("\r\n");
    let length = body.len();
    let head = format!("{request} HTTP/1.1\r\n{headers}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
    // The server may refuse a request before it has read all of it.
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes()));
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    line.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or_else(|| panic!("{request}: {line:?}"))
}
