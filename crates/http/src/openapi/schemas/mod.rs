//! The shapes of what goes over the wire. Most of it is written by hand where it is answered, field by field, and is
//! never a value of a type; these types are the words for it, and nobody makes one. What is serialised from a type is
//! described by that type.
#![expect(dead_code, reason = "the fields are read by the macro only")]

mod arrivals;
mod changes;
mod extract;
mod mailboxes;
mod messages;
mod pages;
mod search;
mod sessions;

use utoipa::ToSchema;

pub(super) use arrivals::{Arrived, NewMail, WaitProblem};
pub(super) use changes::{Change, Deleted, Ids, IdsAndMark, Mark, Marked};
pub(super) use extract::{Codes, Links, Parts, Unsubscribe};
pub(super) use mailboxes::Mailboxes;
pub(super) use messages::{Message, MessageRecord};
pub(super) use pages::{AttachmentCounts, CompatMessage, MessageDetails};
pub(super) use search::Found;
pub(super) use sessions::{Sessions, Transcript};

/// That it was done.
#[derive(ToSchema)]
pub(super) enum Done {
    #[serde(rename = "OK")]
    Ok,
}

/// A description of an API (OpenAPI 3.1).
#[derive(ToSchema)]
#[schema(value_type = Object)]
pub(super) struct Document(serde_json::Value);

/// Why a request is not answered as asked (RFC 9457).
#[derive(ToSchema)]
pub(super) struct Problem {
    /// Always `about:blank`: the status says what kind of problem it is.
    #[serde(rename = "type")]
    kind: String,
    /// The phrase of the status.
    title: String,
    /// The status.
    #[schema(minimum = 400, maximum = 599)]
    status: u16,
    /// A sentence for people.
    detail: String,
    /// Of a query that cannot be understood, how many characters stand before the place.
    #[schema(nullable = false)]
    position: Option<u32>,
}
