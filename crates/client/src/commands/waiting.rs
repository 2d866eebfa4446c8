//! How the server is asked to wait for mail, which several commands do.

use std::time::Duration;

use clap::Arg;
use serde_json::Value;

use crate::failure::Failure;
use crate::server::{Question, Server, document};

/// `--after ID`.
pub(super) fn after_arg() -> Arg {
    Arg::new("after").long("after").value_name("ID").help("Only messages that came after the one with this id")
}

/// Waits for the next message behind this one, and returns its id; none when the time is over.
pub(super) fn next(server: &Server, mailbox: &str, after: &str, timeout: Duration) -> Result<Option<String>, Failure> {
    let (path, limit) = (&["api", "v2", "mailbox", mailbox, "wait"], milliseconds(timeout));
    let parameters = &[("timeout", limit.as_str()), ("after", after)];
    let answer = server.ask("GET", Question { path, parameters, wait: timeout }, None)?;
    if answer.status == 408 {
        return Ok(None);
    }
    Ok(newest(&document(&answer)?).map(ToOwned::to_owned))
}

/// The id of the newest message in an answer.
pub(super) fn newest(found: &Value) -> Option<&str> {
    found["messages"].as_array()?.last()?["id"].as_str()
}

/// A length of time as the server takes it.
pub(super) fn milliseconds(time: Duration) -> String {
    format!("{}ms", time.as_millis())
}
