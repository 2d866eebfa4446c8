//! Version 1: the messages of a mailbox.

use restante_api_types::{MessageRecord, patterns};
use serde_json::json;
use utoipa::openapi::Required;
use utoipa::openapi::path::ParameterBuilder;

use crate::openapi::operation::{Operation, delete, get, number, patch, text_matching};
use crate::openapi::paths::examples::{record, record_and};
use crate::openapi::refusals::NOT_FOUND;
use crate::openapi::request_bodies::OptionalMark;
use crate::response::message_json::Message;
use crate::response::success::Done;

const MAILBOX: &str = "/api/v1/mailbox/{name}";
const MESSAGE: &str = "/api/v1/mailbox/{name}/{id}";
const SOURCE: &str = "/api/v1/mailbox/{name}/{id}/source";
const NO_LATEST: &str = "`latest` is not accepted: another message could have become the latest.";

pub(super) fn operations() -> Vec<Operation> {
    vec![
        get(MAILBOX, "listMessages")
            .describe(
                "List the messages of a mailbox",
                "Ascending by id. The list of an empty mailbox is empty. A parameter that is not a number of 64 bits, or is given \
                 twice, is ignored.",
            )
            .parameter(number("after", "Only messages with a greater id."))
            .parameter(number("before", "Only messages with a smaller id."))
            .parameter(number("limit", "The maximum number of messages: the first ones with `after`, otherwise the last ones."))
            .json_list::<MessageRecord<'_>>("The messages.", json!([record()]))
            .cacheable(),
        delete(MAILBOX, "purgeMailbox")
            .describe("Delete all messages of a mailbox", "")
            .json_response::<Done>("The messages are deleted. An empty mailbox is not an error.", json!("OK")),
        get(MESSAGE, "readMessage")
            .describe("Get a message", "A malformed message is returned as far as it can be parsed.")
            .parameter(wait_parameter())
            .json_response::<Message<'_>>("The message.", message())
            .cacheable()
            .refusals(&[&NOT_FOUND]),
        patch(MESSAGE, "markMessage")
            .describe(
                "Mark a message as seen or unseen",
                "A request without a body marks the message as seen. A body without `seen`, or `null`, changes nothing. The body \
                 may have any content type.",
            )
            .json_body::<OptionalMark>(Required::False, "The mark, at most 64 KiB.", json!({ "seen": true }))
            .any_content_type()
            .json_response::<Done>("The message is marked.", json!("OK"))
            .refusals(&[&NOT_FOUND]),
        delete(MESSAGE, "deleteMessage")
            .describe("Delete a message", NO_LATEST)
            .json_response::<Done>("The message is deleted.", json!("OK"))
            .refusals(&[&NOT_FOUND]),
        get(SOURCE, "readSource")
            .describe(
                "Get the source of a message",
                "The `Return-Path` and `Received` lines that were added on delivery, followed by the message as it was \
                 received, byte for byte.",
            )
            .parameter(wait_parameter())
            .content("text/plain", "The source.")
            .cacheable()
            .refusals(&[&NOT_FOUND]),
        delete(SOURCE, "deleteMessageBySource")
            .describe("Delete a message", &format!("The same as without `/source`. Some clients use this path. {NO_LATEST}"))
            .json_response::<Done>("The message is deleted.", json!("OK"))
            .refusals(&[&NOT_FOUND]),
    ]
}

/// Returns the parameter `wait`.
fn wait_parameter() -> ParameterBuilder {
    text_matching(
        "wait",
        patterns::DURATION,
        "With `latest`: the time to wait for the first message of an empty mailbox, as `30s`, `1m30s` or a number of \
         seconds, at most `10m`.",
    )
}

fn message() -> serde_json::Value {
    record_and(json!({
        "body": { "text": "Your code is 482913.\n", "html": "<p>Your code is <b>482913</b>.</p>\n" },
        "header": { "From": ["Ann <ann@example.org>"], "Subject": ["Your code"], "Content-Type": ["multipart/mixed; boundary=b"] },
        "attachments": [{
            "filename": "terms.pdf",
            "content-type": "application/pdf",
            "download-link": "http://localhost:9000/mailbox/dattach/bob/1794711170123456/0/terms.pdf",
            "view-link": "http://localhost:9000/mailbox/vattach/bob/1794711170123456/0/terms.pdf",
            "md5": "900150983cd24fb0d6963f7d28e17f72",
        }],
    }))
}
