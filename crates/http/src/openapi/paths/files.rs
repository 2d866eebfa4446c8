//! Attachments, under the URLs that message records contain.

use crate::openapi::operation::{Operation, get};
use crate::openapi::refusals::NOT_FOUND;

pub(super) fn operations() -> Vec<Operation> {
    vec![
        file("/mailbox/dattach/{name}/{id}/{index}/{file}", "downloadAttachment", "Download an attachment"),
        file("/mailbox/vattach/{name}/{id}/{index}/{file}", "viewAttachment", "Show an attachment"),
        file("/serve/mailbox/{name}/{id}/attach/{index}/{file}", "serveAttachment", "Show an attachment"),
    ]
}

fn file(path: &'static str, name: &str, summary: &str) -> Operation {
    get(path, name)
        .describe(summary, "")
        .content("*/*", "The decoded content, with the content type from the message.")
        .cacheable()
        .refusals(&[&NOT_FOUND])
}
