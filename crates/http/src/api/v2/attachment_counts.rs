//! The numbers of attachments of several messages, for lists of messages.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use axum::response::Response;
use restante_mail::message::MessageId;
use serde::{Serialize, Serializer};
use utoipa::ToSchema;

use crate::extractors::parameters::{PathMailbox, query_pairs, text_parameter};
use crate::response::etag::IfNoneMatch;
use crate::response::problem::Problem;
use crate::response::{json, success};
use crate::state::Server;

/// The maximum number of messages in one request.
const MAX_IDS: usize = 200;
/// The ids in the query.
#[derive(Debug)]
pub(crate) struct Ids(BTreeSet<MessageId>);

impl<S: Sync> FromRequestParts<S> for Ids {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let pairs = query_pairs(parts)?;
        let list = text_parameter(&pairs, "ids")?
            .ok_or_else(|| Problem::Malformed("The parameter ids is missing.".to_owned()))?;
        let ids: Vec<&str> = list.split(',').filter(|id| !id.is_empty()).take(MAX_IDS + 1).collect();
        if ids.len() > MAX_IDS {
            return Err(Problem::Malformed(format!(
                "The parameter ids must not contain more than {MAX_IDS} messages."
            )));
        }
        let ids: Result<_, _> = ids.into_iter().map(str::parse).collect();
        ids.map(Self)
            .map_err(|_| Problem::Malformed("The parameter ids must be a list of ids separated by commas.".to_owned()))
    }
}

/// Returns the number of attachments of each existing message, by id.
pub(crate) async fn counts(
    State(server): State<Arc<Server>>,
    PathMailbox(mailbox): PathMailbox,
    Ids(ids): Ids,
    if_none_match: IfNoneMatch,
) -> Result<Response, Problem> {
    let tag = server.etags.of(&("attachment counts", server.mailroom.version(&mailbox).await?));
    if if_none_match.matches(&tag) {
        return Ok(success::not_modified(success::JSON, tag));
    }
    let mut counts = Vec::with_capacity(ids.len());
    // One after the other, so that only one message is in memory.
    for id in ids {
        if let Some(count) = server.attachment_count(&mailbox, id).await? {
            counts.push((id, count));
        }
    }
    Ok(success::json(json::body(&AttachmentCounts(counts))?, tag))
}

/// The number of attachments of messages, by message id.
#[derive(ToSchema)]
#[schema(value_type = BTreeMap<String, u64>)]
pub(crate) struct AttachmentCounts(Vec<(MessageId, usize)>);

impl Serialize for AttachmentCounts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(id, count)| (id.to_string(), count)))
    }
}
