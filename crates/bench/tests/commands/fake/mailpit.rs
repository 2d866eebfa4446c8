//! The API of Mailpit.

use super::{State, chunked, sized};

/// Returns the response to a request of this API. Returns `None` for other requests.
pub(super) fn respond(method: &str, path: &str, state: &mut State) -> Option<String> {
    let (path, _) = path.split_once('?').unwrap_or((path, ""));
    let mut messages = state.mailboxes.values().flatten();
    match (method, path) {
        ("DELETE", "/api/v1/messages") => {
            state.mailboxes.clear();
            Some(sized("200 OK", "ok"))
        }
        ("GET", "/api/v1/messages" | "/api/v1/search") => {
            let entries: Vec<_> = messages.map(|message| format!(r#"{{"ID":"{}"}}"#, message.id)).collect();
            Some(chunked(&format!(r#"{{"total":{},"messages":[{}]}}"#, entries.len(), entries.join(","))))
        }
        ("GET", path) => {
            let id = path.strip_prefix("/api/v1/message/")?;
            let found = messages.find(|message| message.id.to_string() == id);
            Some(found.map_or_else(|| sized("404 Not Found", ""), |message| sized("200 OK", &message.source)))
        }
        _ => None,
    }
}
