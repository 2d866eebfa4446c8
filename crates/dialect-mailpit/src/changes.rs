//! Changes of many messages: those with the ids in the body, those that match a query, or all. They apply to the copies
//! that the client may access.
//!
//! Differences from Mailpit:
//!
//! - A deletion with damaged JSON is an error. Mailpit deletes all messages then. A form counts as no body, as in
//!   Mailpit, because a client of Mailpit sends its ids as a form.
//! - A query with an invalid term is an error, for example `to:`, `-has:atachment` or a date that cannot be parsed. Mailpit
//!   ignores the term or searches it as a text, and changes more messages.
//! - If there are too many messages to search for words in all of them, nothing is changed.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::extract::Request;
use restante_auth::{Grant, Scope};
use restante_http_core::extractors::access::Access;
use restante_http_core::extractors::cancellation::Cancellation;
use restante_http_core::extractors::parameters::require_scope;
use restante_http_core::extractors::query::QueryPairs;
use restante_http_core::messages::MessageRange;
use restante_http_core::messages::changes::{CHANGE_BATCH, Change, MAX_IDS, MAX_IDS_BODY_BYTES};
use restante_http_core::server::Server;
use restante_mail::message::MessageId;
use restante_mail::naming::Project;
use serde::Deserialize;

use crate::body;
use crate::error::{Error, HandlerResult};
use crate::query::Query;
use crate::query::find::all_matches;
use crate::success;

/// The body of a request that marks messages.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct MarkRequest {
    read: bool,
    #[serde(rename = "IDs")]
    ids: Vec<String>,
    search: String,
}

/// The body of a request that deletes messages.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct DeleteRequest {
    #[serde(rename = "IDs")]
    ids: Vec<String>,
}

/// Marks messages as read or unread.
pub(crate) async fn mark(Access { server, grant, cancellation }: Access, request: Request) -> HandlerResult {
    let (parts, body) = request.into_parts();
    let query = QueryPairs::parse(&parts)?;
    let zone = query.first("tz");
    let MarkRequest { read, ids, search } = body::read(Request::from_parts(parts, body), MAX_IDS_BODY_BYTES).await?;
    let change = Change::Mark { seen: read };
    match (ids.is_empty(), search.is_empty()) {
        (false, false) => return Err(Error::text("You may specify either IDs or a search query, not both")),
        (true, false) => change_matches(&server, grant, &search, zone, change, &cancellation).await?,
        (false, true) => change_by_ids(&server, grant, &ids, change, &cancellation).await?,
        (true, true) => change_all(&server, &grant, change, &cancellation).await?,
    }
    Ok(success::ok())
}

/// Deletes the messages with the ids in the body, or all if there are none.
pub(crate) async fn delete(Access { server, grant, cancellation }: Access, request: Request) -> HandlerResult {
    let ids = body::read_unless_form::<DeleteRequest>(request, MAX_IDS_BODY_BYTES).await?.unwrap_or_default().ids;
    if ids.is_empty() {
        cancellation.check().await?;
        let prefix = grant.home().map(Project::prefix).unwrap_or_default();
        server.mailroom.purge_mailboxes(prefix, move |mailbox| grant.covers(mailbox)).await?;
    } else {
        change_by_ids(&server, grant, &ids, Change::Delete, &cancellation).await?;
    }
    Ok(success::ok())
}

/// Changes the messages that match a query and exist now. Whether the messages match reveals what they contain, so the
/// scope `read` is required too.
pub(super) async fn change_matches(
    server: &Server,
    grant: Grant,
    search: &str,
    zone: Option<&str>,
    change: Change,
    cancellation: &Cancellation,
) -> Result<(), Error> {
    require_scope(&grant, Scope::Read)?;
    let query = Arc::new(Query::parse(search, zone)?);
    query.check_for_change()?;
    let ids = cancellation.run_until_cancelled(all_matches(server, &grant, &query)).await?;
    server.messages.change_ids(grant, ids, change).await?;
    Ok(())
}

/// Changes the messages with these ids. Text that is not an id is ignored, like the id of a message that does not
/// exist.
async fn change_by_ids(
    server: &Server,
    grant: Grant,
    ids: &[String],
    change: Change,
    cancellation: &Cancellation,
) -> Result<(), Error> {
    if ids.len() > MAX_IDS {
        return Err(Error::text(format!("Error: a request may have at most {MAX_IDS} IDs")));
    }
    let ids: BTreeSet<MessageId> = ids.iter().filter_map(|id| id.parse().ok()).collect();
    cancellation.check().await?;
    server.messages.change_ids(grant, ids.into_iter().collect(), change).await?;
    Ok(())
}

/// Changes all messages that exist now, in batches. Ends after the current batch if the client disconnects.
async fn change_all(server: &Server, grant: &Grant, change: Change, cancellation: &Cancellation) -> Result<(), Error> {
    let last = server.mailroom.last_id().await?;
    let before = Some(last.number().saturating_add(1).into());
    let mut range = MessageRange { before, after: None, limit: CHANGE_BATCH };
    while range.before.is_some() {
        let page = cancellation.run_until_cancelled(server.messages.permitted_messages(grant, range)).await?;
        server.messages.change_messages(page.messages, change).await?;
        range.before = page.next;
    }
    Ok(())
}
