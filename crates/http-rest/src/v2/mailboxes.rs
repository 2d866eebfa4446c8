//! The list of mailboxes with their newest messages, in pages; and deleting all messages.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use restante_api_types::{Mailbox, Newest, Time};
use restante_http_core::extractors::parameters::{MailboxPrefix, RequestGrant};
use restante_http_core::extractors::query::Parsed;
use restante_http_core::response::problem::Problem;
use restante_http_core::response::{json, success};
use restante_http_core::server::Server;
use restante_mail::naming::{MailboxName, Project};
use restante_store::{MailboxPage, MailboxState};
use serde::Serialize;
use utoipa::ToSchema;

/// The usual maximum size of a mailbox record, without the name.
const RECORD_BYTES: usize = 192;

/// Lists mailboxes.
pub(crate) async fn list(
    State(server): State<Arc<Server>>,
    RequestGrant(grant): RequestGrant,
    Parsed(page): Parsed<MailboxPage>,
) -> Result<Response, Problem> {
    // One more than requested, to know whether this is the last page.
    let mut mailboxes = server.messages.scan_mailboxes(&grant, &page, page.limit.saturating_add(1), &mut None).await?;
    let is_last = mailboxes.len() <= page.limit;
    mailboxes.truncate(page.limit);
    let next = mailboxes.last().filter(|_| !is_last).map(|last| last.name.clone());
    let size = estimated_size(&mailboxes);
    let write = |(mailboxes, next): &(Vec<MailboxState>, Option<MailboxName>), size| {
        let mailboxes = mailboxes.iter().map(mailbox_record).collect();
        json::body_with_capacity(&Mailboxes { mailboxes, next: next.as_ref().map(MailboxName::shown) }, size)
    };
    Ok(success::no_store_body(server.renderer.render_value((mailboxes, next), size, None, write).await?))
}

/// Deletes all messages in the mailboxes that the client may change, or in those whose names begin with the prefix.
pub(crate) async fn purge(
    State(server): State<Arc<Server>>,
    RequestGrant(grant): RequestGrant,
    Parsed(MailboxPrefix(prefix)): Parsed<MailboxPrefix>,
) -> Result<Response, Problem> {
    let prefix = grant.home().map(Project::prefix).unwrap_or_default() + &prefix;
    let deleted = server.mailroom.purge_mailboxes(prefix, move |mailbox| grant.covers(mailbox)).await?;
    success::no_store_member("deleted", deleted)
}

/// A page of the list of mailboxes, ascending by name.
#[derive(Serialize, ToSchema)]
pub(crate) struct Mailboxes<'a> {
    mailboxes: Vec<Mailbox<'a>>,
    /// The value of `after` for the next page, or null on the last page.
    #[schema(required)]
    next: Option<&'a str>,
}

fn mailbox_record(state: &MailboxState) -> Mailbox<'_> {
    let MailboxState { name, messages, unseen, bytes, newest } = state;
    let newest = Newest {
        id: newest.id.to_string().into(),
        date: Time(newest.received).to_string().into(),
        posix_millis: newest.received.as_millisecond(),
    };
    Mailbox { name: name.shown().into(), messages: *messages, unseen: *unseen, bytes: *bytes, newest }
}

/// Returns the approximate size of the list of these mailboxes.
fn estimated_size(mailboxes: &[MailboxState]) -> usize {
    mailboxes.iter().map(|mailbox| RECORD_BYTES + mailbox.name.as_str().len()).sum::<usize>() + RECORD_BYTES
}
