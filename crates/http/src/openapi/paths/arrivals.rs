//! Waiting for messages, and delivering them.

use restante_api_types::patterns;
use serde_json::{Value, json};
use utoipa::openapi::Required;
use utoipa::openapi::response::ResponseBuilder;
use utoipa::openapi::schema::Type;

use crate::api::v2::wait::{EntryList, EntryWaitProblem, MessageList, WaitProblem};
use crate::openapi::operation::{Operation, choice, get, number, post, query, ranged_number, text_matching};
use crate::openapi::paths::examples::{entry, record};
use crate::openapi::request_bodies::NewMail;

const WAIT: &str = "The response is sent as soon as enough matching messages exist. Messages that exist already count. \
                    `match` uses the query language of the search.";
const TOO_FEW: &str = "Fewer messages than requested arrived in time.";
const UNEXPECTED: &str = "No message was expected, but one arrived.";

pub(super) fn operations() -> Vec<Operation> {
    vec![
        wait_operation("/api/v2/mailbox/{name}/wait", "waitForMessages")
            .describe("Wait for messages", WAIT)
            .json_response::<MessageList<'_>>("The messages.", json!({ "messages": [record()] }))
            .problem::<WaitProblem<'_>>("408", TOO_FEW, too_few())
            .problem::<WaitProblem<'_>>("409", UNEXPECTED, unexpected(&record())),
        wait_operation("/api/v2/wait", "waitForAnyMessages")
            .describe(
                "Wait for messages of all mailboxes",
                &format!("{WAIT} A message matches if one of its copies does. Only copies that the credentials allow count."),
            )
            .json_response::<EntryList<'_>>("The messages.", json!({ "messages": [entry()] }))
            .problem::<EntryWaitProblem<'_>>("408", TOO_FEW, too_few())
            .problem::<EntryWaitProblem<'_>>("409", UNEXPECTED, unexpected(&entry())),
        post("/api/v2/mailbox/{name}", "addMessage")
            .describe(
                "Add a message to a mailbox",
                "The body is a complete message, which is stored byte for byte after the lines added on delivery, or its \
                 fields as JSON. The delivery is the same as over SMTP: hooks run, and events are published.",
            )
            .parameter(text_matching("from", patterns::ADDRESS_OR_EMPTY, "The sender of the envelope; empty for the null sender of bounces. Default: the author of the message."))
            .json_body::<NewMail>(Required::True, "The message. The maximum size is the same as over SMTP.", new_mail())
            .message_body()
            .json_response::<MessageList<'_>>("The message was discarded.", json!({ "messages": [] }))
            .created::<MessageList<'_>>("The stored copies of the message.", json!({ "messages": [record()] })),
    ]
}

/// Creates an operation that waits, with its parameters.
fn wait_operation(path: &'static str, name: &str) -> Operation {
    get(path, name)
        .parameter(text_matching(
            "timeout",
            patterns::DURATION,
            "The time to wait: `30s`, `1m30s` or a number of seconds, at most `10m`. Default: `30s`.",
        ))
        .parameter(number("after", "Only messages with a greater id."))
        .parameter(ranged_number(
            "count",
            1,
            1000,
            "The number of messages to wait for; for one mailbox, at most as many as it keeps (`storage.mailboxmsgcap`). \
             Default: 1. Not with `expect=none`.",
        ))
        .parameter(query("match", Type::String, "Only messages that match this query."))
        .parameter(choice(
            "expect",
            &["some", "none"],
            "With `none`, the request succeeds if no matching message arrives.",
        ))
        .response("204", ResponseBuilder::new().description("No message was expected, and none arrived in time."))
}

fn too_few() -> Value {
    problem(408, "Request Timeout", "0 of 1 matching messages arrived in time.", &json!([]))
}

fn unexpected(message: &Value) -> Value {
    problem(409, "Conflict", "A matching message arrived, but none was expected.", &json!([message]))
}

fn problem(status: u16, title: &str, detail: &str, messages: &Value) -> Value {
    json!({ "type": "about:blank", "title": title, "status": status, "detail": detail, "messages": messages })
}

fn new_mail() -> Value {
    json!({
        "from": "Ann <ann@example.org>",
        "subject": "Your code",
        "text": "Your code is 482913.",
        "headers": { "X-Campaign": "welcome" },
        "attachments": [{ "filename": "terms.txt", "content-type": "text/plain", "content": "YWJj" }],
    })
}
