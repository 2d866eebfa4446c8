//! Waiting for messages, and delivering them.

use serde_json::{Value, json};
use utoipa::openapi::Required;
use utoipa::openapi::response::ResponseBuilder;
use utoipa::openapi::schema::Type;

use crate::api::v2::wait::{Arrived, WaitProblem};
use crate::openapi::operation::{Operation, choice, get, post, query};
use crate::openapi::paths::examples::record;
use crate::openapi::request_bodies::NewMail;

pub(super) fn operations() -> Vec<Operation> {
    vec![
        get("/api/v2/mailbox/{name}/wait", "waitForMessages")
            .describe(
                "Wait until messages are there",
                "The answer comes as soon as they are; messages that are there already count too. What a message must be \
                 like is said in the language of the search.",
            )
            .parameter(query("timeout", Type::String, "How long to wait: `30s`, `1m30s` or a number of seconds, at most `10m`; otherwise `30s`."))
            .parameter(query("after", Type::Integer, "Only messages whose id is greater."))
            .parameter(query("count", Type::Integer, "How many messages to wait for, at most 1000; otherwise 1."))
            .parameter(query("match", Type::String, "Only messages that a search for this would find."))
            .parameter(choice("expect", &["some", "none"], "With `none` it is good when no such message comes."))
            .json_response::<Arrived<'_>>("The messages.", json!({ "messages": [record()] }))
            .response("204", ResponseBuilder::new().description("None was expected, and none came in time."))
            .problem::<WaitProblem<'_>>(
                "408",
                "Not all of them came in time.",
                problem(408, "Request Timeout", "0 of 1 matching messages came in time.", &json!([])),
            )
            .problem::<WaitProblem<'_>>(
                "409",
                "None was expected, and one came.",
                problem(409, "Conflict", "A matching message came, and none was expected.", &json!([record()])),
            ),
        post("/api/v2/mailbox/{name}", "addMessage")
            .describe(
                "Add a message to a mailbox",
                "A whole mail, which is stored byte for byte behind the lines of its delivery, or its pieces as JSON. It goes \
                 the way of any mail: through hooks, and told to those who listen.",
            )
            .parameter(query("from", Type::String, "The sender of the envelope, or nothing for that of bounces; otherwise the author."))
            .json_body::<NewMail>(Required::True, "The mail, as large as by SMTP.", new_mail())
            .message_body()
            .json_response::<Arrived<'_>>("A hook has discarded it.", json!({ "messages": [] }))
            .created::<Arrived<'_>>("Where it is now.", json!({ "messages": [record()] })),
    ]
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
