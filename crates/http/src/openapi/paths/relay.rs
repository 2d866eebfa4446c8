//! Release of messages, and the relay queue.

use restante_api_types::{RelayEntry, patterns};
use serde_json::{Value, json};
use utoipa::openapi::Required;

use crate::api::v2::queue::{Cancelled, Retried};
use crate::api::v2::relay::{RelayEntries, RelayEntryDetails, RelayTargets};
use crate::openapi::operation::{Operation, get, post};
use crate::openapi::paths::entries::{ENTRIES, SELECTION, with_filters};
use crate::openapi::paths::examples::{ID, with_members};
use crate::openapi::refusals::{LOOP, NOT_FOUND};
use crate::openapi::request_bodies::{EntrySelection, Release};

pub(super) fn operations() -> Vec<Operation> {
    vec![
        post("/api/v2/messages/{id}/release", "releaseMessage")
            .requires_scopes(&["read", "relay"])
            .describe(
                "Send a message to other servers",
                "Adds the message to the relay queue. The source of its first copy that the credentials allow is sent. 403 if \
                 the target does not allow a recipient, 422 if the target or a recipient is not valid, 503 if the queue is \
                 full.",
            )
            .json_body::<Release>(
                Required::True,
                "The target and the recipients, at most 64 KiB.",
                json!({ "target": "main", "to": ["qa@example.org"] }),
            )
            .accepted::<RelayEntry<'_>>("The message is in the queue.", relay_entry())
            .refusals(&[&NOT_FOUND, &LOOP]),
        get("/api/v2/relay", "listRelayTargets")
            .requires_scope("relay")
            .describe("List the relay targets", "In the order of the settings.")
            .json_response::<RelayTargets<'_>>("The targets.", json!({ "targets": [target()] })),
        with_filters(
            get("/api/v2/relay/entries", "listRelayEntries").describe("List the entries of the relay queue", ENTRIES),
        )
        .json_response::<RelayEntries<'_>>("A page of the list.", json!({ "entries": [relay_entry()], "next": null })),
        get("/api/v2/relay/entries/{id}", "readRelayEntry")
            .requires_scope("relay")
            .describe("Get an entry of the relay queue", "With the transcript of its last attempt.")
            .describe_parameter("id", "The id of an entry.")
            .parameter_pattern("id", patterns::ID)
            .json_response::<RelayEntryDetails<'_>>("The entry.", details())
            .refusals(&[&NOT_FOUND]),
        post("/api/v2/relay/retry", "retryRelayEntries")
            .requires_scope("relay")
            .describe(
                "Send entries of the relay queue now",
                "Entries that wait, have failed or were cancelled are sent to the recipients for which the message was not \
                 accepted yet. `target` and `all` need credentials for all mailboxes.",
            )
            .json_body::<EntrySelection>(Required::True, SELECTION, json!({ "ids": ["7"] }))
            .json_response::<Retried>("The number of entries that are sent.", json!({ "retried": 1 })),
        post("/api/v2/relay/cancel", "cancelRelayEntries")
            .requires_scope("relay")
            .describe(
                "Cancel entries of the relay queue",
                "A message that is being sent may still be accepted. `target` and `all` need credentials for all mailboxes.",
            )
            .json_body::<EntrySelection>(Required::True, SELECTION, json!({ "ids": ["7"] }))
            .json_response::<Cancelled>("The number of cancelled entries.", json!({ "cancelled": 1 })),
    ]
}

fn target() -> Value {
    json!({
        "name": "main",
        "host": "smtp.example.org",
        "port": 587,
        "allowed": ["*@example.org"],
        "blocked": [],
        "state": "ready",
        "paused-until": null,
        "last-error": null,
        "entries": { "queued": 1, "sending": 0, "delivered": 12, "failed": 0, "cancelled": 0 },
    })
}

fn relay_entry() -> Value {
    json!({
        "id": "7",
        "message": ID,
        "mailbox": "bob",
        "target": "main",
        "sender": "ann@example.org",
        "recipients": [{ "address": "qa@example.org", "state": "waiting", "reply": "450 4.2.0 Try again later" }],
        "origin": "release",
        "by": null,
        "state": "queued",
        "attempts": 1,
        "created": "2026-11-15T02:52:50.123456+00:00",
        "expires": "2026-11-16T02:52:50.123456+00:00",
        "next-attempt": "2026-11-15T02:53:00.500000+00:00",
        "last-attempt": "2026-11-15T02:52:50.500000+00:00",
        "last-reply": "450 4.2.0 Try again later",
    })
}

fn details() -> Value {
    let line = json!({
        "at": "2026-11-15T02:52:50.512000+00:00",
        "posix-millis": 1_794_711_170_512_i64,
        "after-millis": 12,
        "from": "server",
        "text": "220 smtp.example.org ESMTP",
    });
    with_members(relay_entry(), json!({ "transcript": [line] }))
}
