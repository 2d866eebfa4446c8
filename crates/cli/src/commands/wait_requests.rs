//! How the server is asked to wait for mail, which several commands do.

use std::time::Duration;

use clap::{Arg, value_parser};
use serde_json::Value;

use crate::error::CommandError;
use crate::server::{ApiRequest, Server, json_body};

/// The most messages that can be waited for at once.
const MAX_COUNT: &str = "1000";

/// `--after ID`.
pub(super) fn after_arg() -> Arg {
    Arg::new("after")
        .long("after")
        .value_name("ID")
        .value_parser(value_parser!(u64))
        .help("Only messages that came after the one with this id")
}

/// Waits until there is a message behind this one, or until the time is over.
pub(super) fn wait_for_more(server: &Server, mailbox: &str, after: u64, timeout: Duration) -> Result<(), CommandError> {
    let (path, limit) = (&["api", "v2", "mailbox", mailbox, "wait"], milliseconds(timeout));
    let parameters = &[("timeout", limit.as_str()), ("after", &after.to_string())];
    let answer = server.send("GET", ApiRequest { path, parameters, wait: timeout }, None)?;
    if answer.status == 408 {
        return Ok(());
    }
    json_body(&answer).map(|_| ())
}

/// The id of the newest of the messages that match and were waited for: the answer has just as many as were asked for, and
/// there may be newer ones.
pub(super) fn newest_match(
    server: &Server,
    mailbox: &str,
    query: Option<&str>,
    found: &Value,
) -> Result<Option<String>, CommandError> {
    let path = &["api", "v2", "mailbox", mailbox, "wait"];
    let mut newest = last_id(found).map(ToOwned::to_owned);
    while let Some(after) = &newest {
        let mut parameters = vec![("timeout", "0"), ("count", MAX_COUNT), ("after", after.as_str())];
        parameters.extend(query.map(|query| ("match", query)));
        let answer = server.send("GET", ApiRequest { path, parameters: &parameters, ..ApiRequest::default() }, None)?;
        // Fewer than a page is too few in time, and they are told all the same.
        let is_last = answer.status == 408;
        let page = if is_last { serde_json::from_slice(&answer.body).unwrap_or_default() } else { json_body(&answer)? };
        let Some(id) = last_id(&page) else { break };
        newest = Some(id.to_owned());
        if is_last {
            break;
        }
    }
    Ok(newest)
}

fn last_id(found: &Value) -> Option<&str> {
    found["messages"].as_array()?.last()?["id"].as_str()
}

/// A length of time as the server takes it.
pub(super) fn milliseconds(time: Duration) -> String {
    format!("{}ms", time.as_millis())
}
