//! Replaces values that differ between two runs of the same program, and gives lists a form in which a difference has one place.

use std::collections::BTreeMap;

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
    if request.path.contains("/raw")
        && let Value::String(source) = &answer["body"]
        && answer["status"] == 200
    {
        answer["body"] = without_added_fields(source);
    }
    if request.path.contains("embed=1")
        && let Value::String(html) = &answer["body"]
    {
        answer["body"] = without_style_of_writer(html);
    }
    if let Some(Value::String(methods)) = answer.get_mut("allow") {
        *methods = sorted_list(methods);
    }
    without_volatile_values(answer)
}

/// Replaces values that differ between two runs of the same program.
pub(crate) fn without_volatile_values(mut answer: Value) -> Value {
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

/// Returns the words of a list with commas in alphabetical order.
fn sorted_list(list: &str) -> String {
    let mut words: Vec<_> = list.split(',').map(str::trim).collect();
    words.sort_unstable();
    words.join(", ")
}

/// The header fields that a server adds.
const ADDED_FIELDS: [&str; 4] = ["return-path", "received", "message-id", "bcc"];

/// Returns the header fields of a source that a server may have added, by name, and the rest of the source.
fn without_added_fields(source: &str) -> Value {
    let (header, body) = source.split_once("\r\n\r\n").unwrap_or((source, ""));
    let mut added: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    let mut rest = String::new();
    let header = header.replace("\r\n ", "\n ").replace("\r\n\t", "\n\t");
    for field in header.split("\r\n") {
        let name = field.split(':').next().unwrap_or_default().to_ascii_lowercase();
        if ADDED_FIELDS.contains(&name.as_str()) {
            added.entry(name).or_default().push(field);
        } else {
            rest.push_str(field);
            rest.push_str("\r\n");
        }
    }
    json!({"added": added, "rest": format!("{rest}\r\n{body}")})
}

/// The script that Mailpit adds to an embedded page.
const SCRIPT_START: &str = "<script nonce=";
const SCRIPT_END: &str = "</script>";
/// Tags that a parser adds.
const IMPLIED_TAGS: [&str; 8] = ["<html>", "<head>", "</head>", "<body>", "</body>", "</html>", "<tbody>", "</tbody>"];

/// Returns whether the page has Mailpit's script, and the rest of the page in a form that does not depend on whether a parser has
/// read and written it.
fn without_style_of_writer(html: &str) -> Value {
    let script =
        html.split_once(SCRIPT_START).and_then(|(before, script)| Some((before, script.split_once(SCRIPT_END)?.1)));
    let rest = script.map_or_else(|| html.to_owned(), |(before, after)| format!("{before}{after}"));
    let rest = IMPLIED_TAGS.iter().fold(rest, |rest, tag| rest.replace(tag, ""));
    let rest = rest.replace("/>", ">").replace("&nbsp;", "\u{a0}").replace(['\r', '\n'], "");
    json!({"has script": script.is_some(), "html": rest})
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
