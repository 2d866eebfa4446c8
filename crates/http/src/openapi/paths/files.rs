//! Attachments, under the URLs that message records contain, and the archive of all of them.

use crate::openapi::operation::{Operation, get};
use crate::openapi::refusals::NOT_FOUND;

pub(super) fn operations() -> Vec<Operation> {
    vec![
        file("/mailbox/dattach/{name}/{id}/{index}/{file}", "downloadAttachment", "Download an attachment"),
        file("/mailbox/vattach/{name}/{id}/{index}/{file}", "viewAttachment", "Show an attachment"),
        file("/serve/mailbox/{name}/{id}/attach/{index}/{file}", "serveAttachment", "Show an attachment")
            .describe_parameter("index", "The `id` of the attachment in the form of the message for Inbucket's web interface."),
        get("/api/v2/mailbox/{name}/{id}/attachments.zip", "downloadAttachments")
            .describe(
                "Download all attachments in a ZIP archive",
                "Without the inline ones, which belong to the HTML. Files are not compressed, and their names are unique.",
            )
            .content("application/zip", "The archive.")
            .cacheable()
            .refusals(&[&NOT_FOUND]),
    ]
}

fn file(path: &'static str, name: &str, summary: &str) -> Operation {
    get(path, name)
        .describe(summary, "")
        .content("*/*", "The decoded content, with the content type from the message.")
        .cacheable()
        .refusals(&[&NOT_FOUND])
}
