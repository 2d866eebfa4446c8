//! The targets of webhooks, and their queue.

use restante_api_types::patterns;
use serde_json::{Value, json};
use utoipa::openapi::Required;

use crate::api::v2::queue::{Cancelled, Retried};
use crate::api::v2::webhooks::{Paused, Resumed, WebhookEntries, WebhookEntryDetails, WebhookTargets};
use crate::openapi::operation::{Operation, get, post};
use crate::openapi::paths::entries::{ENTRIES, SELECTION, with_filters};
use crate::openapi::paths::examples::{ID, with_members};
use crate::openapi::refusals::NOT_FOUND;
use crate::openapi::request_bodies::{EntrySelection, TargetSelection};

pub(super) fn operations() -> Vec<Operation> {
    vec![
        get("/api/v2/webhooks", "listWebhookTargets")
            .requires_scope("relay")
            .describe("List the targets of webhooks", "In the order of the settings.")
            .json_response::<WebhookTargets<'_>>("The targets.", json!({ "targets": [target()] })),
        with_filters(
            get("/api/v2/webhooks/entries", "listWebhookEntries")
                .describe("List the entries of the webhook queue", ENTRIES),
        )
        .json_response::<WebhookEntries<'_>>("A page of the list.", json!({ "entries": [entry()], "next": null })),
        get("/api/v2/webhooks/entries/{id}", "readWebhookEntry")
            .requires_scope("relay")
            .describe("Get an entry of the webhook queue", "With the body of its request.")
            .describe_parameter("id", "The id of an entry.")
            .parameter_pattern("id", patterns::ID)
            .json_response::<WebhookEntryDetails<'_>>("The entry.", details())
            .refusals(&[&NOT_FOUND]),
        post("/api/v2/webhooks/retry", "retryWebhookEntries")
            .requires_scope("relay")
            .describe(
                "Send entries of the webhook queue now",
                "Entries that wait, have failed or were cancelled are sent, unless the target is paused. `target` and `all` \
                 need credentials for all mailboxes.",
            )
            .json_body::<EntrySelection>(Required::True, SELECTION, json!({ "ids": ["7"] }))
            .json_response::<Retried>("The number of entries that are sent.", json!({ "retried": 1 })),
        post("/api/v2/webhooks/cancel", "cancelWebhookEntries")
            .requires_scope("relay")
            .describe(
                "Cancel entries of the webhook queue",
                "An event that is being sent may still be accepted. `target` and `all` need credentials for all mailboxes.",
            )
            .json_body::<EntrySelection>(Required::True, SELECTION, json!({ "ids": ["7"] }))
            .json_response::<Cancelled>("The number of cancelled entries.", json!({ "cancelled": 1 })),
        post("/api/v2/webhooks/pause", "pauseWebhookTargets")
            .requires_scope("relay")
            .describe(
                "Pause targets of webhooks",
                "Their entries wait until they are resumed, also after a restart. Needs credentials for all mailboxes.",
            )
            .json_body::<TargetSelection>(Required::True, TARGETS, json!({ "target": TARGET }))
            .json_response::<Paused>("The number of paused targets.", json!({ "paused": 1 })),
        post("/api/v2/webhooks/resume", "resumeWebhookTargets")
            .requires_scope("relay")
            .describe("Resume targets of webhooks", "Needs credentials for all mailboxes.")
            .json_body::<TargetSelection>(Required::True, TARGETS, json!({ "target": TARGET }))
            .json_response::<Resumed>("The number of resumed targets.", json!({ "resumed": 1 })),
    ]
}

const TARGETS: &str = "The targets: exactly one of the members, at most 64 KiB.";
const TARGET: &str = "9f86d081884c7d65";

fn target() -> Value {
    json!({
        "name": TARGET,
        "url": "https://ci.example.org",
        "filters": [{ "events": ["stored"], "mailboxes": ["ci-*"] }],
        "state": "active",
        "next-attempt": null,
        "last-error": null,
        "entries": { "queued": 1, "sending": 0, "delivered": 12, "failed": 0, "cancelled": 0 },
    })
}

fn entry() -> Value {
    json!({
        "id": "7",
        "message": ID,
        "mailbox": "bob",
        "target": TARGET,
        "event": "stored",
        "webhook-id": format!("stored-{ID}-119c9ae6f9ca741b"),
        "state": "queued",
        "attempts": 1,
        "created": "2026-11-15T02:52:50.123456+00:00",
        "expires": "2026-11-16T02:52:50.123456+00:00",
        "next-attempt": "2026-11-15T02:53:00.500000+00:00",
        "last-attempt": "2026-11-15T02:52:50.500000+00:00",
        "last-reply": "the target responded 500",
    })
}

fn details() -> Value {
    let payload = json!({ "event": "message-stored", "message": { "mailbox": "bob", "id": ID } });
    with_members(entry(), json!({ "payload": payload.to_string() }))
}
