//! Extracts of a message for tests.

use serde_json::json;

use crate::api::v2::extract::{Codes, Links, Parts, Unsubscribe};
use crate::api::v2::html_check::HtmlCheck;
use crate::openapi::operation::{Operation, get};
use crate::openapi::refusals::NOT_FOUND;

pub(super) fn operations() -> Vec<Operation> {
    vec![
        get("/api/v2/mailbox/{name}/{id}/links", "extractLinks")
            .describe("Extract the links of a message", "From its HTML, its text and its header.")
            .json_response::<Links>(
                "The links.",
                json!({ "links": [{
                    "href": "https://example.org/confirm?token=x",
                    "text": "Confirm",
                    "image-alt": null,
                    "where": "html",
                    "kind": "http",
                    "main": true,
                }] }),
            )
            .cacheable()
            .refusals(&[&NOT_FOUND]),
        get("/api/v2/mailbox/{name}/{id}/codes", "extractCodes")
            .describe("Extract the one-time codes of a message", "All candidates, with a score.")
            .json_response::<Codes>(
                "The codes.",
                json!({ "codes": [
                    { "code": "482913", "score": 0.97, "before": "Your code is", "after": ".", "where": "text" },
                ] }),
            )
            .cacheable()
            .refusals(&[&NOT_FOUND]),
        get("/api/v2/mailbox/{name}/{id}/unsubscribe", "extractUnsubscribe")
            .describe("Extract the unsubscribe links of a message", "")
            .json_response::<Unsubscribe>(
                "The unsubscribe links.",
                json!({
                    "one-click": true,
                    "links": [{ "href": "https://example.org/unsubscribe?u=x", "kind": "https" }],
                    "list-id": "news.example.org",
                }),
            )
            .cacheable()
            .refusals(&[&NOT_FOUND]),
        get("/api/v2/mailbox/{name}/{id}/html-check", "checkHtml")
            .describe(
                "Check which mail clients support the HTML and CSS of a message",
                "The facts are those of caniemail. The response is 404 if the message has no HTML.",
            )
            .json_response::<HtmlCheck>(
                "The features that the message uses.",
                json!({
                    "score": { "supported": 95.43, "partial": 1.2, "unsupported": 3.37 },
                    "elements": 25,
                    "truncated": false,
                    "data-date": "2026-06-29",
                    "features": [{
                        "slug": "css-border-radius",
                        "title": "border-radius",
                        "category": "css",
                        "tags": [],
                        "url": "https://www.caniemail.com/features/css-border-radius/",
                        "count": 2,
                        "lines": [12, 40],
                        "score": { "supported": 69.81, "partial": 5.66, "unsupported": 24.53 },
                        "clients": [
                            { "family": "outlook", "platform": "windows", "version": "2019", "support": "no", "note": null },
                        ],
                    }],
                    "clients": [{
                        "family": "outlook",
                        "family-name": "Outlook",
                        "platform": "windows",
                        "platform-name": "Windows",
                        "supported": 3,
                        "partial": 0,
                        "unsupported": 1,
                    }],
                }),
            )
            .cacheable()
            .refusals(&[&NOT_FOUND]),
        get("/api/v2/mailbox/{name}/{id}/parts", "listParts")
            .describe("Get the MIME structure of a message", "")
            .json_response::<Parts<'_>>(
                "The parts.",
                json!({ "parts": [{
                    "index": 0,
                    "parent": null,
                    "depth": 0,
                    "content-type": "text/plain",
                    "charset": "utf-8",
                    "encoding": "7bit",
                    "disposition": null,
                    "filename": null,
                    "content-id": null,
                    "size": 21,
                    "role": "text",
                }] }),
            )
            .cacheable()
            .refusals(&[&NOT_FOUND]),
        get("/api/v2/mailbox/{name}/{id}/parts/{index}", "readPart")
            .describe("Get the content of a part", "With the same headers as an attachment that is shown.")
            .describe_parameter("index", "The index of the part in the list of parts, from 0.")
            .content("*/*", "The decoded content, with the content type from the message.")
            .cacheable()
            .refusals(&[&NOT_FOUND]),
    ]
}
