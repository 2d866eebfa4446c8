//! Messages as a whole, each with its copies in mailboxes.

use restante_api_types::{MessageEntry, WholeMessage, patterns};
use serde_json::{Value, json};
use utoipa::openapi::Required;
use utoipa::openapi::path::{HttpMethod, ParameterBuilder};
use utoipa::openapi::schema::{ArrayBuilder, Type};

use crate::api::v2::batch::{Deleted, Marked};
use crate::api::v2::messages::MessageEntries;
use crate::openapi::operation::{
    Operation, delete, get, limit, number, patch, post, query, string_matching, text_matching,
};
use crate::openapi::paths::examples::{ID, entry, entry_and};
use crate::openapi::paths::{extract, files, messages, pages, sessions};
use crate::openapi::refusals::NOT_FOUND;
use crate::openapi::request_bodies::{Mark, MessageChanges, MessageIds, MessageIdsAndMark};
use crate::response::success::Done;

const LIST: &str = "/api/v2/messages";
const MESSAGE: &str = "/api/v2/messages/{id}";

/// Matches a text that is not blank.
const NOT_BLANK: &str = r"\S";

/// The resources below a message, which are those of one of its copies: the path of the resource of a copy, the path of the
/// resource of the message, and its operation id.
const RESOURCES: &[(&str, &str, &str)] = &[
    ("/api/v2/mailbox/{name}/{id}", "/api/v2/messages/{id}/details", "getMessageDetails"),
    ("/api/v1/mailbox/{name}/{id}/source", "/api/v2/messages/{id}/source", "getMessageSource"),
    ("/serve/mailbox/{name}/{id}/html", "/api/v2/messages/{id}/html", "getMessageHtml"),
    ("/api/v2/mailbox/{name}/{id}/links", "/api/v2/messages/{id}/links", "getMessageLinks"),
    ("/api/v2/mailbox/{name}/{id}/codes", "/api/v2/messages/{id}/codes", "getMessageCodes"),
    ("/api/v2/mailbox/{name}/{id}/unsubscribe", "/api/v2/messages/{id}/unsubscribe", "getMessageUnsubscribe"),
    ("/api/v2/mailbox/{name}/{id}/html-check", "/api/v2/messages/{id}/html-check", "checkMessageHtml"),
    ("/api/v2/mailbox/{name}/{id}/parts", "/api/v2/messages/{id}/parts", "getMessageParts"),
    ("/api/v2/mailbox/{name}/{id}/parts/{index}", "/api/v2/messages/{id}/parts/{index}", "getMessagePart"),
    (
        "/mailbox/vattach/{name}/{id}/{index}/{file}",
        "/api/v2/messages/{id}/attachments/{index}",
        "getMessageAttachment",
    ),
    ("/api/v2/mailbox/{name}/{id}/body", "/api/v2/messages/{id}/body", "getMessageBody"),
    ("/api/v2/mailbox/{name}/{id}/attachments.zip", "/api/v2/messages/{id}/attachments.zip", "getMessageAttachments"),
    ("/api/v2/mailbox/{name}/{id}/transcript", "/api/v2/messages/{id}/transcript", "getMessageTranscript"),
];

pub(super) fn operations() -> Vec<Operation> {
    let mut operations = vec![
        get(LIST, "listAllMessages")
            .describe(
                "List the messages of all mailboxes, or of one",
                "The newest first. Only messages with a copy that the credentials allow are listed. With `mailbox` there is one \
                 entry for each copy in that mailbox: its `id` is that of the copy, and its recipients, mailboxes, read mark and \
                 tags are those of the copy. If the credentials allow only some mailboxes, or with `q` or `tag`, a page can have \
                 fewer messages than requested even if `next` is not null.",
            )
            .parameter(limit("messages", 50, 1000))
            .parameter(number("before", "Only messages with ids below this one: the `next` of the previous page."))
            .parameter(number("after", "Only messages with a greater id."))
            .parameter(mailbox_parameter())
            .parameter(query("q", Type::String, "Only messages of which a copy matches this query, in the language of the search."))
            .parameter(tag_parameter())
            .json_response::<MessageEntries<'_>>("A page of the list.", json!({ "messages": [entry()], "next": ID }))
            .cacheable()
            // If the search is disabled.
            .refusals(&[&NOT_FOUND]),
        patch(LIST, "markMatchingMessages")
            .requires_scopes(&["read", "write"])
            .describe(
                "Mark all messages, or those that match a query",
                "Marks each message of which a copy matches, with all of its copies that the credentials allow; with `mailbox`, \
                 only the copies in that mailbox. Unknown parameters are refused. Messages that arrive during the operation are \
                 not marked. If an error occurs during the operation, some of the messages are marked.",
            )
            .parameter(mailbox_parameter())
            .parameter(text_matching("q", NOT_BLANK, "The query, in the language of the search. It must not be blank."))
            .parameter(tag_parameter())
            .json_body::<Mark>(Required::True, "The mark, at most 64 KiB.", json!({ "seen": true }))
            .json_response::<Marked>("The number of marked messages.", json!({ "marked": 7 }))
            // If the search is disabled.
            .refusals(&[&NOT_FOUND]),
        delete(LIST, "deleteMatchingMessages")
            .requires_scopes(&["read", "write"])
            .describe(
                "Delete the messages of a mailbox, or those that match a query",
                "Deletes each message of which a copy matches, with all of its copies that the credentials allow; with \
                 `mailbox`, only the copies in that mailbox. One of the parameters is required, and unknown parameters are \
                 refused. Messages that arrive during the operation stay.",
            )
            .parameter(mailbox_parameter())
            .parameter(text_matching("q", NOT_BLANK, "The query, in the language of the search. It must not be blank."))
            .parameter(tag_parameter())
            .json_response::<Deleted>("The number of deleted messages.", json!({ "deleted": 7 }))
            // If the search is disabled.
            .refusals(&[&NOT_FOUND]),
        post("/api/v2/messages/mark", "markMessagesById")
            .describe(
                "Mark many messages as seen or unseen",
                "Marks the copies that the credentials allow. If the store fails during the operation, some of the messages are \
                 marked.",
            )
            .json_body::<MessageIdsAndMark>(
                Required::True,
                "The ids of the messages and the mark, at most 1 MiB.",
                json!({ "ids": [ID, "17"], "seen": true }),
            )
            .json_response::<Marked>("The number of marked messages.", json!({ "marked": 1 })),
        post("/api/v2/messages/delete", "deleteMessagesById")
            .describe(
                "Delete many messages",
                "Deletes the copies that the credentials allow. If the store fails during the operation, some of the messages \
                 are deleted.",
            )
            .json_body::<MessageIds>(
                Required::True,
                "The ids of the messages, at most 1 MiB.",
                json!({ "ids": [ID, "17"] }),
            )
            .json_response::<Deleted>("The number of deleted messages.", json!({ "deleted": 1 })),
        get(MESSAGE, "getMessage")
            .describe(
                "Get a message with its envelope and its copies",
                "The id of a copy stands for its message. The resources below a message are those of its first copy that the \
                 credentials allow, or of the copy with this id.",
            )
            .json_response::<WholeMessage<'_>>("The message.", whole_message())
            .cacheable()
            .refusals(&[&NOT_FOUND]),
        patch(MESSAGE, "changeMessage")
            .describe(
                "Mark a message, or replace its tags",
                "Changes the copies that the credentials allow. Credentials without the scope `read` get `\"OK\"` instead of \
                 the message.",
            )
            .json_body::<MessageChanges>(
                Required::True,
                "The new state: at least one member, at most 64 KiB.",
                json!({ "seen": true, "tags": ["run 7"] }),
            )
            .json_response::<MessageEntry<'_>>("The message after the change.", entry())
            .refusals(&[&NOT_FOUND]),
        delete(MESSAGE, "removeMessage")
            .describe(
                "Delete a message",
                "Deletes the copies that the credentials allow. `latest` is not accepted: another message could have become \
                 the latest.",
            )
            .json_response::<Done>("The message is deleted.", json!("OK"))
            .refusals(&[&NOT_FOUND]),
    ];
    operations.extend(resources());
    operations
}

/// Returns the operations of the resources below a message.
fn resources() -> Vec<Operation> {
    let chapters = [messages::operations(), pages::operations(), extract::operations()];
    let chapters = chapters.into_iter().chain([files::operations(), sessions::operations()]);
    let resource = |operation: Operation| {
        let same_path = |(copy, _, _): &&(&str, _, _)| *copy == operation.path && operation.method == HttpMethod::Get;
        let (_, path, name) = RESOURCES.iter().find(same_path)?;
        let operation = operation.moved_to(path, name);
        Some(match *path {
            "/api/v2/messages/{id}/source" => operation.parameter(pages::download()).other_content("message/rfc822"),
            "/api/v2/messages/{id}/attachments/{index}" => operation.parameter(pages::download()),
            _ => operation,
        })
    };
    chapters.flatten().filter_map(resource).collect()
}

/// Returns the parameter `mailbox`.
fn mailbox_parameter() -> ParameterBuilder {
    text_matching("mailbox", patterns::NAME_OR_ADDRESS, "Only the copies in this mailbox: a name or an address.")
}

/// Returns the parameter `tag`, which may be repeated.
fn tag_parameter() -> ParameterBuilder {
    let about = "Only messages of which a copy has this tag. If the parameter is repeated, it must have all of them: at most 20.";
    let tags = ArrayBuilder::new().items(string_matching(patterns::TAG)).max_items(Some(20));
    query("tag", Type::String, about).schema(Some(tags))
}

fn whole_message() -> Value {
    entry_and(json!({
        "sender": "ann@example.org",
        "client": { "ip": "192.0.2.1", "helo": "app.example.org", "login": null },
        "copies": [{
            "mailbox": "bob",
            "id": ID,
            "number": 1,
            "recipients": ["bob@example.org"],
            "seen": false,
            "tags": ["run 7"],
        }],
    }))
}
