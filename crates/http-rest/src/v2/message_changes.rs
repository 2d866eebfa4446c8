//! Changes of many messages as a whole in one request: of those whose ids are in the body, and of those that match a query.
//! They apply to the copies that the client may access. Messages are found and changed in batches. After an error, the
//! messages of earlier batches are changed. If the client disconnects, a change by ids completes, and a change by a query
//! ends after the current batch.

use axum::extract::Request;
use axum::response::Response;
use restante_auth::Grant;
use restante_http_core::extractors::access::Access;
use restante_http_core::extractors::body;
use restante_http_core::extractors::cancellation::Cancellation;
use restante_http_core::extractors::messages::MessageFilter;
use restante_http_core::messages::changes::{CHANGE_BATCH, Change, MAX_IDS, MAX_IDS_BODY_BYTES};
use restante_http_core::messages::{MessagePage, MessageRange};
use restante_http_core::response::problem::Problem;
use restante_http_core::response::success;
use restante_http_core::server::Server;
use serde_json::Value;

use crate::v2::batch::{parse_ids, parse_mark};
use crate::v2::message_search::search_messages;

/// The maximum size of a request body without ids.
const MAX_SMALL_BODY_BYTES: usize = 64 * 1024;

const SEEN_SHAPE: &str = "{\"seen\": true} or {\"seen\": false}";
const IDS_SHAPE: &str = "{\"ids\": [\"…\"]}, with at most 20,000 ids as strings";
const MARK_SHAPE: &str = "{\"ids\": [\"…\"], \"seen\": true} or false, with at most 20,000 ids as strings";

type HandlerResult = Result<Response, Problem>;

/// Marks the messages that match a query, and that existed when the request arrived.
pub(crate) async fn mark_matching(
    Access { server, grant, cancellation }: Access,
    filter: MessageFilter,
    request: Request,
) -> HandlerResult {
    let value = body::read_json::<Value>(request, MAX_SMALL_BODY_BYTES).await?;
    let seen = parse_seen(value.as_ref()).ok_or(Problem::WrongShape(SEEN_SHAPE))?;
    let marked = change_matching(&server, &grant, &filter, Change::Mark { seen }, &cancellation).await?;
    success::no_store_member("marked", marked)
}

/// Deletes the messages that match a query, and that existed when the request arrived.
pub(crate) async fn delete_matching(
    Access { server, grant, cancellation }: Access,
    filter: MessageFilter,
) -> HandlerResult {
    let deleted = match &filter {
        MessageFilter { mailbox: Some(mailbox), query: None } => server.mailroom.purge(mailbox).await?,
        filter => change_matching(&server, &grant, filter, Change::Delete, &cancellation).await?,
    };
    success::no_store_member("deleted", deleted)
}

/// Marks the messages in the request. Messages that do not exist do not count.
pub(crate) async fn mark(Access { server, grant, cancellation }: Access, request: Request) -> HandlerResult {
    let value = body::read_json::<Value>(request, MAX_IDS_BODY_BYTES).await?;
    let parsed = parse_mark(value.as_ref()).filter(|_| has_few_ids(value.as_ref()));
    let (ids, seen) = parsed.ok_or(Problem::WrongShape(MARK_SHAPE))?;
    cancellation.check().await?;
    let marked = server.messages.change_ids(grant, ids, Change::Mark { seen }).await?;
    success::no_store_member("marked", marked)
}

/// Deletes the messages in the request. Messages that do not exist do not count.
pub(crate) async fn delete(Access { server, grant, cancellation }: Access, request: Request) -> HandlerResult {
    let value = body::read_json::<Value>(request, MAX_IDS_BODY_BYTES).await?;
    let parsed = parse_ids(value.as_ref()).filter(|_| has_few_ids(value.as_ref()));
    let ids = parsed.ok_or(Problem::WrongShape(IDS_SHAPE))?;
    cancellation.check().await?;
    let deleted = server.messages.change_ids(grant, ids, Change::Delete).await?;
    success::no_store_member("deleted", deleted)
}

/// Changes the messages that match a filter, and that exist now. Returns their number.
async fn change_matching(
    server: &Server,
    grant: &Grant,
    filter: &MessageFilter,
    change: Change,
    cancellation: &Cancellation,
) -> Result<usize, Problem> {
    let last = server.mailroom.last_id().await?;
    let before = Some(last.number().saturating_add(1).into());
    let (mut range, mut count) = (MessageRange { before, after: None, limit: CHANGE_BATCH }, 0);
    loop {
        let find = matching_messages(server, grant, filter, range);
        let MessagePage { messages, next } = cancellation.run_until_cancelled(find).await?;
        count += server.messages.change_messages(messages, change).await?;
        if next.is_none() {
            return Ok(count);
        }
        range.before = next;
    }
}

/// Returns a page of the messages that match a filter. With a mailbox these are its copies, each as a message of its
/// own.
async fn matching_messages(
    server: &Server,
    grant: &Grant,
    MessageFilter { mailbox, query }: &MessageFilter,
    range: MessageRange,
) -> Result<MessagePage, Problem> {
    match (query, mailbox) {
        (Some(query), mailbox) => {
            let found = search_messages(server, grant, mailbox.as_ref(), query, range).await?;
            if found.is_complete { Ok(found.page) } else { Err(Problem::IncompleteIndex) }
        }
        (None, Some(mailbox)) => Ok(server.messages.list_copies(mailbox, range).await?.1),
        (None, None) => server.messages.permitted_messages(grant, range).await,
    }
}

/// Returns the mark in a request that has no other member.
fn parse_seen(value: Option<&Value>) -> Option<bool> {
    let members = value?.as_object().filter(|members| members.len() == 1)?;
    members.get("seen")?.as_bool()
}

/// Returns whether the number of ids in a request is within the limit.
fn has_few_ids(value: Option<&Value>) -> bool {
    value.and_then(|value| value.get("ids")?.as_array()).is_some_and(|ids| ids.len() <= MAX_IDS)
}
