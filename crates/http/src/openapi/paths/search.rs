//! Search.

use restante_api_types::patterns;
use serde_json::json;
use utoipa::openapi::schema::Type;

use crate::api::v2::search::SearchResponse;
use crate::openapi::operation::{Operation, get, limit, number, query, text_matching};
use crate::openapi::paths::examples::{ID, record_and};
use crate::openapi::refusals::NOT_FOUND;

const LANGUAGE: &str = "\
Words and `\"phrases\"` are searched in subject, text, sender and recipients. A message must contain all of them. Case and \
accents are ignored. A word also matches the beginning of longer words; quoted text matches only whole words.

`from:` `to:` `cc:` `subject:` `body:` `filename:` are followed by a word or a phrase. `mailbox:` is followed by a name, or by \
the beginning of one and `*`. \
`tag:` is followed by a tag, in quotes if it contains spaces. `header:Name` and `header:Name=value` search one header field. \
`has:attachment`, `is:seen` and `is:unseen` match properties of a message. `before:` and `after:` are followed by a day \
(`2026-11-15`), a time (`2026-11-15T10:00Z`), `today`, `yesterday`, or an age (`2h`, `7d`). `larger:` and `smaller:` are \
followed by a size (`10k`, `2M`).

`-` before a term negates it, `or` between terms matches either side, and parentheses group.";

pub(super) fn operations() -> Vec<Operation> {
    vec![
        get("/api/v2/search", "search")
            .describe("Search messages", LANGUAGE)
            .parameter(query("q", Type::String, "The query. Without it, all messages match."))
            .parameter(text_matching(
                "mailbox",
                patterns::NAME_OR_ADDRESS,
                "Only in this mailbox: a name or an address.",
            ))
            .parameter(limit("messages", 50, 200))
            .parameter(number(
                "before",
                "Only messages with positions below this one: the `next` of the previous page.",
            ))
            .json_response::<SearchResponse<'_>>(
                "A page of the matching messages, in mailboxes that the credentials allow.",
                json!({
                    "messages": [record_and(json!({
                        "snippet": [{ "text": "Your ", "hit": false }, { "text": "code", "hit": true }],
                    }))],
                    "next": ID,
                    "complete": true,
                }),
            )
            // If the search is disabled.
            .refusals(&[&NOT_FOUND]),
    ]
}
