//! Mailboxes, and changes of many messages in one request.

use serde_json::json;
use utoipa::openapi::Required;
use utoipa::openapi::schema::Type;

use crate::api::v2::batch::{Deleted, Marked};
use crate::api::v2::mailboxes::Mailboxes;
use crate::openapi::operation::{Operation, delete, get, post, query};
use crate::openapi::paths::examples::ID;
use crate::openapi::request_bodies::{Ids, IdsAndMark};

pub(super) fn operations() -> Vec<Operation> {
    vec![
        get("/api/v2/mailboxes", "listMailboxes")
            .describe(
                "The mailboxes that hold something",
                "Ascending by name. Only those that the credentials reach are told; there may be more behind a page that \
                 is short of them, or empty.",
            )
            .parameter(query("prefix", Type::String, "Only mailboxes whose names begin with this, in upper or lower case."))
            .parameter(query("after", Type::String, "Only mailboxes behind this name: the `next` of the page before."))
            .parameter(query("limit", Type::Integer, "At most so many, and never more than 1000; otherwise 100."))
            .json_response::<Mailboxes<'_>>(
                "Some of the mailboxes.",
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
            .describe("Delete all messages of all mailboxes", "Of those that the credentials reach. Any other parameter is refused.")
            .parameter(query("prefix", Type::String, "Only in mailboxes whose names begin with this, in upper or lower case."))
            .json_response::<Deleted>("How many there were.", json!({ "deleted": 4711 })),
        post("/api/v2/mailbox/{name}/delete", "deleteMessages")
            .describe("Delete many messages", "If the store fails half-way, some of them are gone.")
            .json_body::<Ids>(Required::True, "The messages, in at most 1 MiB.", json!({ "ids": [ID, "17"] }))
            .json_response::<Deleted>("How many of them were there.", json!({ "deleted": 1 })),
        post("/api/v2/mailbox/{name}/mark", "markMessages")
            .describe("Mark many messages as seen, or as not seen", "If the store fails half-way, some of them are marked.")
            .json_body::<IdsAndMark>(
                Required::True,
                "The messages, and how to mark them, in at most 1 MiB.",
                json!({ "ids": [ID, "17"], "seen": true }),
            )
            .json_response::<Marked>("How many of them were there.", json!({ "marked": 1 })),
    ]
}
