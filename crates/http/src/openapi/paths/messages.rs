//! Version 1: the messages of a mailbox.

use restante_api_types::MessageRecord;
use serde_json::json;
use utoipa::openapi::Required;
use utoipa::openapi::path::ParameterBuilder;
use utoipa::openapi::schema::Type;

use crate::openapi::operation::{Operation, delete, get, patch, query};
use crate::openapi::paths::examples::{record, record_and};
use crate::openapi::refusals::NOT_FOUND;
use crate::openapi::request_bodies::Mark;
use crate::response::message_json::Message;
use crate::response::success::Done;

const MAILBOX: &str = "/api/v1/mailbox/{name}";
const MESSAGE: &str = "/api/v1/mailbox/{name}/{id}";
const SOURCE: &str = "/api/v1/mailbox/{name}/{id}/source";
const NO_LATEST: &str = "`latest` is not taken: it could be another message by then.";

pub(super) fn operations() -> Vec<Operation> {
    vec![
        get(MAILBOX, "listMessages")
            .does("The messages of a mailbox", "Ascending by id. A mailbox that holds nothing is an empty list.")
            .takes(query("after", Type::Integer, "Only messages whose id is greater."))
            .takes(query("before", Type::Integer, "Only messages whose id is smaller."))
            .takes(query("limit", Type::Integer, "At most so many: the first ones with `after`, otherwise the last ones."))
            .lists::<MessageRecord<'_>>("The messages.", json!([record()]))
            .can_be_known(),
        delete(MAILBOX, "purgeMailbox")
            .does("Delete all messages of a mailbox", "")
            .tells::<Done>("They are gone. It is no error if there were none.", json!("OK")),
        get(MESSAGE, "readMessage")
            .does("A message", "A message that is broken gives what can be read of it.")
            .takes(patience())
            .tells::<Message<'_>>("The message.", message())
            .can_be_known()
            .refuses(&[&NOT_FOUND]),
        patch(MESSAGE, "markMessage")
            .does(
                "Mark a message as seen, or as not seen",
                "Without a body, as seen. Without `seen` in the body, nothing changes. The body may have any content type.",
            )
            .takes_json::<Mark>(Required::False, "How to mark it, in at most 64 KiB.", json!({ "seen": true }))
            .of_any_content_type()
            .tells::<Done>("The message is marked.", json!("OK"))
            .refuses(&[&NOT_FOUND]),
        delete(MESSAGE, "deleteMessage")
            .does("Delete a message", NO_LATEST)
            .tells::<Done>("The message is gone.", json!("OK"))
            .refuses(&[&NOT_FOUND]),
        get(SOURCE, "readSource")
            .does(
                "The source of a message",
                "The `Return-Path` and `Received` lines that were added on delivery, then the message as it was received, \
                 byte for byte.",
            )
            .takes(patience())
            .sends("text/plain", "The source.")
            .can_be_known()
            .refuses(&[&NOT_FOUND]),
        delete(SOURCE, "deleteMessageBySource")
            .does("Delete a message", &format!("The same as without `/source`; some clients do it here. {NO_LATEST}"))
            .tells::<Done>("The message is gone.", json!("OK"))
            .refuses(&[&NOT_FOUND]),
    ]
}

/// How long `latest` may take to be there.
fn patience() -> ParameterBuilder {
    query(
        "wait",
        Type::String,
        "With `latest`: how long to wait for the first message of an empty mailbox, as `30s`, `1m30s` or a number of seconds, \
         at most `10m`.",
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
