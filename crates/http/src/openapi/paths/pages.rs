//! Messages for web interfaces.

use restante_api_types::patterns;
use serde_json::{Value, json};
use utoipa::openapi::Required;
use utoipa::openapi::path::ParameterBuilder;
use utoipa::openapi::schema::Type;

use crate::api::v2::attachment_counts::AttachmentCounts;
use crate::api::v2::message::MessageDetails;
use crate::openapi::operation::{Operation, choice, get, query};
use crate::openapi::paths::examples::{ID, record_and};
use crate::openapi::refusals::NOT_FOUND;
use crate::web::message::CompatMessage;

pub(super) fn operations() -> Vec<Operation> {
    vec![
        get("/api/v2/mailbox/{name}/{id}", "readDetails")
            .describe("Get everything about a message", "Except its HTML, which the preview shows.")
            .json_response::<MessageDetails<'_>>("The message.", details())
            .cacheable()
            .refusals(&[&NOT_FOUND]),
        get("/api/v2/mailbox/{name}/attachments", "countAttachments")
            .describe("Count the attachments of messages", "Without the inline ones, which belong to the HTML.")
            .parameter(
                query("ids", Type::String, "The ids of at most 200 messages, separated by commas.")
                    .required(Required::True),
            )
            .parameter_pattern("ids", patterns::IDS)
            .json_response::<AttachmentCounts>("The numbers by message id. Messages that do not exist are left out.", json!({ (ID): 2 }))
            .cacheable(),
        get("/api/v2/mailbox/{name}/{id}/body", "readBody")
            .describe(
                "Get the decoded body of a message",
                "In UTF-8. The HTML is not sanitized; without `download` it has the type `text/plain`, so that browsers do not \
                 render it. The text of a message without a text part is made from its HTML.",
            )
            .parameter(choice("format", &["html", "text"], "Which body.").required(Required::True))
            .parameter(download())
            .content("text/plain", "The body.")
            .other_content("text/html")
            .cacheable()
            .refusals(&[&NOT_FOUND]),
        get("/serve/mailbox/{name}/{id}/html", "previewMessage")
            .describe(
                "Get a message as an HTML document for a frame",
                "Contains the sanitized HTML or, for a message without HTML, the text. The `Content-Security-Policy` is a \
                 sandbox: no scripts, no forms, an opaque origin. Only pages of the same origin may frame it.",
            )
            .parameter(choice("remote", &["0", "1"], "`1` allows images and fonts from other hosts."))
            .parameter(choice("scheme", &["light", "dark"], "Forces a color scheme."))
            .content("text/html", "The document.")
            .cacheable()
            .refusals(&[&NOT_FOUND]),
        get("/serve/mailbox/{name}/{id}", "readCompat")
            .describe("Get a message in the form of Inbucket's web interface", "Text and HTML are truncated after 2 MiB.")
            .json_response::<CompatMessage<'_>>("The message.", compat())
            .cacheable()
            .refusals(&[&NOT_FOUND]),
        get("/serve/mailbox/{name}/{id}/source", "serveSource")
            .describe("Get the source of a message", "The same as in version 1.")
            .content("text/plain", "The source.")
            .cacheable()
            .refusals(&[&NOT_FOUND]),
    ]
}

/// Returns the parameter `download`.
pub(super) fn download() -> ParameterBuilder {
    let about =
        "`true` adds a `Content-Disposition` with a file name, so that browsers save the response. Default: `false`.";
    choice("download", &["true", "false"], about)
}

fn details() -> Value {
    record_and(json!({
        "text": "Your code is 482913.\n",
        "html": true,
        "remote": ["tracker.example"],
        "headers": [{ "name": "Subject", "value": "=?utf-8?q?Your_code?=", "decoded": "Your code" }],
        "attachments": [{
            "index": 0,
            "filename": "terms.pdf",
            "content-type": "application/pdf",
            "size": 3,
            "md5": "900150983cd24fb0d6963f7d28e17f72",
            "content-id": null,
            "inline": false,
        }],
        "parts": [{
            "depth": 0,
            "content-type": "text/html",
            "charset": "utf-8",
            "encoding": "7bit",
            "disposition": null,
            "filename": null,
            "content-id": null,
            "size": 38,
            "role": "html",
            "attachment": null,
        }],
        "defects": [],
    }))
}

fn compat() -> Value {
    record_and(json!({
        "header": { "From": ["Ann <ann@example.org>"], "Subject": ["Your code"] },
        "text": "Your code is 482913.<br/>\n",
        "html": "<p>Your code is <b>482913</b>.</p>\n",
        "attachments": [{ "id": "0", "filename": "terms.pdf", "content-type": "application/pdf" }],
        "errors": [],
    }))
}
