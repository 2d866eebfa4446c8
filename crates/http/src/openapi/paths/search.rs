//! Search.

use restante_api_types::patterns;
use serde_json::json;
use utoipa::openapi::schema::Type;

use crate::api::v2::search::Found;
use crate::openapi::operation::{Operation, get, query};
use crate::openapi::paths::examples::{ID, record_and};
use crate::openapi::refusals::NOT_FOUND;

const LANGUAGE: &str = "\
Words and `\"phrases\"` are looked for in subject, text, sender and recipients; all of them must be there. Neither case nor \
accents matter. `word*` is the beginning of a word.

`from:` `to:` `cc:` `subject:` `body:` `filename:` `mailbox:` take a word, a phrase or a beginning. `header:Name` and \
`header:Name=value` look at one field. `has:attachment`, `is:seen` and `is:unseen` say what a message is like. `before:` and \
`after:` take a day (`2026-11-15`), a time (`2026-11-15T10:00Z`), `today`, `yesterday`, or how long ago (`2h`, `7d`). \
`larger:` and `smaller:` take a size (`10k`, `2M`).

`-` before a term negates it, `or` between terms takes either side, and parentheses group.";

pub(super) fn operations() -> Vec<Operation> {
    vec![
        get("/api/v2/search", "search")
            .describe("Look for messages", LANGUAGE)
            .parameter(query("q", Type::String, "What to look for; without it, everything is found."))
            .parameter(query("mailbox", Type::String, "Only in this mailbox, by name or address."))
            .parameter_pattern("mailbox", patterns::NAME_OR_ADDRESS)
            .parameter(query("limit", Type::Integer, "At most so many, and never more than 200; otherwise 50."))
            .parameter(query(
                "before",
                Type::Integer,
                "Only messages behind this place: the `next` of the page before.",
            ))
            .json_response::<Found<'_>>(
                "Some of the messages, of those that the credentials reach.",
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
