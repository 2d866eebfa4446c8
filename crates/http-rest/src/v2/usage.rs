//! The number and the size of the messages that a client may read.

use axum::response::Response;
use restante_http_core::extractors::access::Access;
use restante_http_core::response::problem::Problem;
use restante_http_core::response::success;
use restante_store::Usage;
use serde::Serialize;
use utoipa::ToSchema;

/// Returns the usage of the mailboxes that the client may read. If these are not all mailboxes, the whole list of them is
/// read.
pub(crate) async fn usage(Access { server, grant, cancellation }: Access) -> Result<Response, Problem> {
    if grant.covers_all_mailboxes() {
        let Usage { messages, copies, mailboxes, bytes } = server.mailroom.usage().await?;
        return success::no_store_json(&UsageRecord { messages: Some(messages), copies, bytes, mailboxes });
    }
    let mut usage = UsageRecord { messages: None, copies: 0, bytes: 0, mailboxes: 0 };
    let visit = server.messages.visit_mailboxes(&grant, |mailbox| {
        usage.copies += mailbox.messages;
        usage.bytes += mailbox.bytes;
        usage.mailboxes += 1;
    });
    cancellation.run_until_cancelled(visit).await?;
    success::no_store_json(&usage)
}

/// The messages that the credentials allow, as numbers.
#[derive(Serialize, ToSchema)]
#[schema(as = Usage)]
pub(crate) struct UsageRecord {
    /// The number of messages. A message in several mailboxes is counted once. Null if the credentials allow only some
    /// mailboxes: then this number is not known.
    #[schema(required)]
    messages: Option<u64>,
    /// The number of copies: messages, counted once per mailbox.
    copies: u64,
    /// The size of the messages in bytes. If the credentials allow all mailboxes, the text of a message in several
    /// mailboxes is counted once.
    bytes: u64,
    /// The number of mailboxes that contain messages.
    mailboxes: u64,
}
