//! Changes of many messages of a mailbox in one request. Those of messages as a whole are in `message_changes`.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use restante_http_core::extractors::body;
use restante_http_core::extractors::parameters::PathMailbox;
use restante_http_core::messages::changes::MAX_IDS_BODY_BYTES;
use restante_http_core::response::problem::Problem;
use restante_http_core::response::success;
use restante_http_core::server::Server;
use restante_mail::message::MessageId;
use restante_mailroom::{CopyKey, DeletionCause};
use serde_json::Value;

const IDS_SHAPE: &str = "{\"ids\": [\"…\"]}, with ids as strings";
const MARK_SHAPE: &str = "{\"ids\": [\"…\"], \"seen\": true} or false, with ids as strings";

/// Deletes the messages in the request. Messages that do not exist do not count.
pub(crate) async fn delete(
    State(server): State<Arc<Server>>,
    PathMailbox(mailbox): PathMailbox,
    request: Request,
) -> Result<Response, Problem> {
    let value = body::read_json::<Value>(request, MAX_IDS_BODY_BYTES).await?;
    let ids = parse_ids(value.as_ref()).ok_or(Problem::WrongShape(IDS_SHAPE))?;
    let deleted = server.mailroom.remove_all(&mailbox, ids, DeletionCause::Request).await?;
    success::no_store_member("deleted", deleted)
}

/// Marks the messages in the request as seen or unseen.
pub(crate) async fn mark(
    State(server): State<Arc<Server>>,
    PathMailbox(mailbox): PathMailbox,
    request: Request,
) -> Result<Response, Problem> {
    let value = body::read_json::<Value>(request, MAX_IDS_BODY_BYTES).await?;
    let (ids, seen) = parse_mark(value.as_ref()).ok_or(Problem::WrongShape(MARK_SHAPE))?;
    let copies = ids.into_iter().map(|id| CopyKey { mailbox: mailbox.clone(), id });
    let marked = server.mailroom.mark_copies(copies.collect(), seen).await?;
    success::no_store_member("marked", marked)
}

/// Returns the ids and the mark in a request.
pub(super) fn parse_mark(value: Option<&Value>) -> Option<(Vec<MessageId>, bool)> {
    Some((parse_ids(value)?, value?.get("seen")?.as_bool()?))
}

/// Returns the ids in a request. Text that is not an id is ignored, like the id of a message that does not exist.
pub(super) fn parse_ids(value: Option<&Value>) -> Option<Vec<MessageId>> {
    let texts = value?.get("ids")?.as_array()?.iter().map(Value::as_str).collect::<Option<Vec<_>>>()?;
    let mut ids: Vec<MessageId> = texts.into_iter().filter_map(|text| text.parse().ok()).collect();
    ids.sort_unstable();
    ids.dedup();
    Some(ids)
}
