//! Mail that was waited for, and mail that a client brings.

use std::collections::BTreeMap;

use utoipa::ToSchema;

use crate::openapi::schemas::{MessageRecord, Problem};

/// Messages that are there now.
#[derive(ToSchema)]
pub(in crate::openapi) struct Arrived {
    /// Ascending by id.
    messages: Vec<MessageRecord>,
}

/// Why what was waited for is not so, and what came.
#[derive(ToSchema)]
pub(in crate::openapi) struct WaitProblem {
    #[serde(flatten)]
    problem: Problem,
    /// The messages that match, as far as they came.
    messages: Vec<MessageRecord>,
}

/// A mail in pieces.
#[derive(ToSchema)]
pub(in crate::openapi) struct NewMail {
    /// The author, with a name or without.
    from: String,
    /// The recipients of the header; without any, the mailbox that it is for.
    to: Option<Vec<String>>,
    cc: Option<Vec<String>>,
    subject: Option<String>,
    text: Option<String>,
    html: Option<String>,
    /// Further fields of the header.
    headers: Option<BTreeMap<String, String>>,
    attachments: Option<Vec<NewAttachment>>,
    /// The date of the header; without it, now.
    #[schema(format = DateTime)]
    date: Option<String>,
}

/// A file for a mail.
#[derive(ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(in crate::openapi) struct NewAttachment {
    filename: Option<String>,
    content_type: Option<String>,
    /// In base64.
    content: String,
    /// The name by which the HTML calls it.
    content_id: Option<String>,
}
