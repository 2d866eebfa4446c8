//! Mailboxes, and changes of many messages in one request.

use serde_json::json;
use utoipa::openapi::Required;
use utoipa::openapi::schema::Type;

use crate::api::v2::batch::{Deleted, Marked};
use crate::api::v2::mailboxes::Mailboxes;
use crate::api::v2::usage::UsageRecord;
use crate::openapi::operation::{Operation, delete, get, limit, post, query};
use crate::openapi::paths::examples::ID;
use crate::openapi::request_bodies::{Ids, IdsAndMark};

pub(super) fn operations() -> Vec<Operation> {
    vec![
        get("/api/v2/mailboxes", "listMailboxes")
            .describe(
                "List the mailboxes that contain messages",
                "Ascending by name. Only mailboxes that the credentials allow are listed.",
            )
            .parameter(query("prefix", Type::String, "Only mailboxes whose names begin with this text, ignoring case."))
            .parameter(query("after", Type::String, "Only mailboxes after this name: the `next` of the previous page."))
            .parameter(limit("mailboxes", 100, 1000))
            .json_response::<Mailboxes<'_>>(
                "A page of the list.",
                json!({
                    "mailboxes": [{
                        "name": "bob",
                        "messages": 3,
                        "unseen": 1,
                        "bytes": 4711,
                        "newest": {
                            "id": ID,
                            "date": "2026-11-15T02:52:50.123456+00:00",
                            "posix-millis": 1_794_711_170_123_i64,
                        },
                    }],
                    "next": null,
                }),
            ),
        delete("/api/v2/mailboxes", "deleteEverything")
            .describe(
                "Delete all messages of all mailboxes",
                "Only in mailboxes that the credentials allow. Unknown parameters are refused.",
            )
            .parameter(query(
                "prefix",
                Type::String,
                "Only in mailboxes whose names begin with this text, ignoring case.",
            ))
            .json_response::<Deleted>("The number of deleted messages.", json!({ "deleted": 4711 })),
        get("/api/v2/usage", "getUsage")
            .describe("Get the number and the size of all messages", "Only of messages that the credentials allow.")
            .json_response::<UsageRecord>(
                "The usage.",
                json!({ "messages": 3, "copies": 4, "bytes": 4711, "mailboxes": 2 }),
            ),
        post("/api/v2/mailbox/{name}/delete", "deleteMessages")
            .describe(
                "Delete many messages",
                "If the store fails during the operation, some of the messages are deleted.",
            )
            .json_body::<Ids>(Required::True, "The ids of the messages, at most 1 MiB.", json!({ "ids": [ID, "17"] }))
            .json_response::<Deleted>("The number of deleted messages.", json!({ "deleted": 1 })),
        post("/api/v2/mailbox/{name}/mark", "markMessages")
            .describe(
                "Mark many messages as seen or unseen",
                "If the store fails during the operation, some of the messages are marked.",
            )
            .json_body::<IdsAndMark>(
                Required::True,
                "The ids of the messages and the mark, at most 1 MiB.",
                json!({ "ids": [ID, "17"], "seen": true }),
            )
            .json_response::<Marked>("The number of marked messages.", json!({ "marked": 1 })),
    ]
}
