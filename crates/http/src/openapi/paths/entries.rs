//! What the operations of the relay queue and the webhook queue have in common.

use utoipa::openapi::schema::Type;

use crate::openapi::operation::{Operation, choice, limit, number, query};

/// Describes a list of entries.
pub(super) const ENTRIES: &str = "The newest first. Only entries of messages in mailboxes that the credentials allow are \
    listed. A page can have fewer entries than requested even if `next` is not null.";
/// Describes a body that selects entries.
pub(super) const SELECTION: &str = "The entries: exactly one of the members, at most 64 KiB.";

/// Adds the parameters of a list of entries.
pub(super) fn with_filters(operation: Operation) -> Operation {
    operation
        .requires_scope("relay")
        .parameter(number("message", "Only entries of the message with this id."))
        .parameter(query("target", Type::String, "Only entries of the target with this name."))
        .parameter(choice(
            "state",
            &["queued", "sending", "delivered", "failed", "cancelled"],
            "Only entries in this state.",
        ))
        .parameter(number("before", "Only entries with ids below this one: the `next` of the previous page."))
        .parameter(limit("entries", 50, 1000))
}
