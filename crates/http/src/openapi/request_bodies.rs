//! The shapes of request bodies. Handlers read them more leniently than they are described, so no handler has these types.
#![expect(dead_code, reason = "the fields are read by the macro only")]

use std::collections::BTreeMap;

use utoipa::ToSchema;

/// How a message shall be marked.
#[derive(ToSchema)]
pub(super) struct Mark {
    seen: bool,
}

/// Messages of a mailbox.
#[derive(ToSchema)]
pub(super) struct Ids {
    /// Their ids. Those of messages that are not there do no harm.
    ids: Vec<String>,
}

/// Messages of a mailbox, and how they shall be marked.
#[derive(ToSchema)]
pub(super) struct IdsAndMark {
    /// Their ids. Those of messages that are not there do no harm.
    ids: Vec<String>,
    seen: bool,
}

/// A mail in pieces.
#[derive(ToSchema)]
pub(super) struct NewMail {
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
struct NewAttachment {
    filename: Option<String>,
    content_type: Option<String>,
    /// In base64.
    content: String,
    /// The name by which the HTML calls it.
    content_id: Option<String>,
}
