//! Requests that wait for messages, for several commands.

use std::time::Duration;

use serde_json::Value;

use super::scope::Scope;
use crate::error::CommandError;
use crate::server::{ApiRequest, Server, json_body};

/// The maximum number of messages that one request can wait for.
const MAX_COUNT: &str = "1000";

/// Waits until there is a message after this one, or until the time limit.
pub(super) fn wait_for_more(server: &Server, scope: &Scope, after: u64, timeout: Duration) -> Result<(), CommandError> {
    let (path, limit) = (&scope.wait_path(), milliseconds(timeout));
    let parameters = &[("timeout", limit.as_str()), ("after", &after.to_string())];
    let response = server.send("GET", ApiRequest { path, parameters, wait: timeout }, None)?;
    if response.status == 408 {
        return Ok(());
    }
    json_body(&response).map(|_| ())
}

/// Returns the id of the newest matching message. The response in `found` has only as many messages as were requested,
/// and there may be newer ones.
pub(super) fn newest_match(
    server: &Server,
    scope: &Scope,
    query: Option<&str>,
    found: &Value,
) -> Result<Option<String>, CommandError> {
    let path = &scope.wait_path();
    let mut newest = last_id(found).map(ToOwned::to_owned);
    while let Some(after) = &newest {
        let mut parameters = vec![("timeout", "0"), ("count", MAX_COUNT), ("after", after.as_str())];
        parameters.extend(query.map(|query| ("match", query)));
        let response =
            server.send("GET", ApiRequest { path, parameters: &parameters, ..ApiRequest::default() }, None)?;
        // A page that is not full is a timeout, but it lists the messages that exist.
        let is_last = response.status == 408;
        let page =
            if is_last { serde_json::from_slice(&response.body).unwrap_or_default() } else { json_body(&response)? };
        let Some(id) = last_id(&page) else { break };
        newest = Some(id.to_owned());
        if is_last {
            break;
        }
    }
    Ok(newest)
}

/// Returns the id of the oldest message of the server after this one that matches, if there is one now.
pub(super) fn first_match(server: &Server, query: &str, after: u64) -> Result<Option<u64>, CommandError> {
    let parameters = &[("timeout", "0"), ("after", &after.to_string()), ("match", query)];
    let request = ApiRequest { path: &Scope::All.wait_path(), parameters, ..ApiRequest::default() };
    let response = server.send("GET", request, None)?;
    if response.status == 408 {
        return Ok(None);
    }
    let found = json_body(&response)?;
    Ok(found["messages"][0]["id"].as_str().and_then(|id| id.parse().ok()))
}

fn last_id(found: &Value) -> Option<&str> {
    found["messages"].as_array()?.last()?["id"].as_str()
}

/// Formats a duration for the API.
pub(super) fn milliseconds(duration: Duration) -> String {
    format!("{}ms", duration.as_millis())
}
