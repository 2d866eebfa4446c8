//! Parts of several examples.

use serde_json::{Value, json};

/// The id of the message in the examples.
pub(super) const ID: &str = "1794711170123456";

/// The record of the message in the examples.
pub(super) fn record() -> Value {
    json!({
        "mailbox": "bob",
        "id": ID,
        "from": "Ann <ann@example.org>",
        "to": ["<bob@example.org>"],
        "subject": "Your code",
        "date": "2026-11-15T02:52:50.123456+00:00",
        "posix-millis": 1_794_711_170_123_i64,
        "size": 512,
        "seen": false,
    })
}

/// The entry of the message in the examples.
pub(super) fn entry() -> Value {
    json!({
        "id": ID,
        "from": "Ann <ann@example.org>",
        "to": ["<bob@example.org>"],
        "cc": [],
        "recipients": ["bob@example.org"],
        "mailboxes": ["bob"],
        "subject": "Your code",
        "snippet": "Your code is 482913.",
        "received": "2026-11-15T02:52:50.123456+00:00",
        "size": 512,
        "attachments": 0,
        "seen": false,
        "tags": ["run 7"],
    })
}

/// Returns the record of the message with additional members.
pub(super) fn record_and(more: Value) -> Value {
    with_members(record(), more)
}

/// Returns the entry of the message with additional members.
pub(super) fn entry_and(more: Value) -> Value {
    with_members(entry(), more)
}

/// Returns an object with additional members.
pub(super) fn with_members(mut whole: Value, more: Value) -> Value {
    if let (Value::Object(whole), Value::Object(more)) = (&mut whole, more) {
        whole.extend(more);
    }
    whole
}
