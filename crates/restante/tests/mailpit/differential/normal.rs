//! Replaces values that differ between two runs of the same program, and gives lists a form in which a difference has one place.

use serde_json::{Value, json};

use super::answer::Request;

/// The request whose summaries are compared. In other lists only ids, read marks and tags are.
pub(crate) const ALL: &str = "/api/v1/messages?limit=1000";

/// The length of the random part of the ids that Mailpit adds to messages without one.
const RANDOM_CHARS: usize = 22;
/// The domain of these ids.
const DOMAIN: &str = "@mailpit";

/// Returns an answer in its normal form.
pub(crate) fn normal(request: &Request, mut answer: Value) -> Value {
    if let Some(messages) = answer["body"].get_mut("messages") {
        *messages = keyed_by_id(messages, request.path == ALL);
    }
    // The HTML check of Mailpit has a random order.
    if let Some(warnings) = answer["body"].get_mut("Warnings") {
        for warning in warnings.as_array_mut().into_iter().flatten() {
            warning["Results"] = keyed_by(&warning["Results"], "Name");
        }
        *warnings = keyed_by(warnings, "Slug");
    }
    if request.path.ends_with("/raw")
        && let Value::String(source) = &mut answer["body"]
    {
        *source = without_trace(source);
    }
    let mut values = vec![("", &mut answer)];
    while let Some((key, value)) = values.pop() {
        match value {
            Value::Object(fields) => values.extend(fields.iter_mut().map(|(key, value)| (key.as_str(), value))),
            Value::Array(items) => values.extend(items.iter_mut().map(|value| (key, value))),
            Value::String(text) if key == "Created" => "TIME".clone_into(text),
            // The time of arrival has fractions of a second, a Date header has not.
            Value::String(text) if key == "Date" && text.contains('.') => "TIME".clone_into(text),
            Value::String(text) => *text = without_random_ids(text),
            Value::Number(_) if ["Uptime", "Memory", "DatabaseSize"].contains(&key) => *value = "NUMBER".into(),
            _ => {}
        }
    }
    answer
}

/// Returns the order of the messages of a list, and the messages by id.
fn keyed_by_id(messages: &Value, with_summaries: bool) -> Value {
    let Value::Array(messages) = messages else { return messages.clone() };
    let order: Vec<_> = messages.iter().map(|message| message["ID"].clone()).collect();
    let mut by_id = json!({});
    for message in messages {
        let id = message["ID"].as_str().unwrap_or_default();
        by_id[id] =
            if with_summaries { message.clone() } else { json!({"Read": message["Read"], "Tags": message["Tags"]}) };
    }
    json!({"order": order, "by id": by_id})
}

/// Returns the items of a list by the value of a field.
fn keyed_by(items: &Value, field: &str) -> Value {
    let Value::Array(items) = items else { return items.clone() };
    items.iter().map(|item| (item[field].as_str().unwrap_or_default().to_owned(), item.clone())).collect()
}

/// Removes the header fields that a server adds: Return-Path, Received, and in Mailpit also Message-ID and Bcc.
fn without_trace(source: &str) -> String {
    let (header, body) = source.split_once("\r\n\r\n").unwrap_or((source, ""));
    let mut kept = String::new();
    let mut is_kept = true;
    for line in header.split("\r\n") {
        if !line.starts_with([' ', '\t']) {
            let name = line.split(':').next().unwrap_or_default().to_ascii_lowercase();
            is_kept = !["return-path", "received", "message-id", "bcc"].contains(&name.as_str());
        }
        if is_kept {
            kept.push_str(line);
            kept.push_str("\r\n");
        }
    }
    format!("{kept}\r\n{body}")
}

/// Replaces ids that Mailpit has made.
fn without_random_ids(text: &str) -> String {
    let mut pieces = text.split(DOMAIN);
    let mut result = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let start = result.len().saturating_sub(RANDOM_CHARS);
        if result
            .get(start..)
            .is_some_and(|id| id.len() == RANDOM_CHARS && id.bytes().all(|b| b.is_ascii_alphanumeric()))
        {
            result.replace_range(start.., "RANDOM");
        }
        result.push_str(DOMAIN);
        result.push_str(piece);
    }
    result
}
