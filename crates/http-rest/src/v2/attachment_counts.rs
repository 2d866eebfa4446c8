//! The numbers of attachments of several messages, for lists of messages.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use restante_http_core::extractors::parameters::PathMailbox;
use restante_http_core::extractors::query::{FromQuery, Parsed, QueryPairs};
use restante_http_core::response::etag::IfNoneMatch;
use restante_http_core::response::problem::Problem;
use restante_http_core::response::{json, success};
use restante_http_core::server::Server;
use restante_mail::message::MessageId;
use restante_store::MessageSelector;
use serde::{Serialize, Serializer};
use utoipa::ToSchema;

/// The maximum number of messages in one request.
const MAX_IDS: usize = 200;
/// The ids in the query.
#[derive(Debug)]
pub(crate) struct Ids(BTreeSet<MessageId>);

impl FromQuery for Ids {
    fn from_query(query: &QueryPairs) -> Result<Self, Problem> {
        let list = query.text("ids")?.ok_or_else(|| Problem::Malformed("The parameter ids is missing.".to_owned()))?;
        let ids: Vec<&str> = list.split(',').filter(|id| !id.is_empty()).take(MAX_IDS + 1).collect();
        if ids.len() > MAX_IDS {
            let sentence = format!("The parameter ids must not contain more than {MAX_IDS} messages.");
            return Err(Problem::Malformed(sentence));
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
    Parsed(Ids(ids)): Parsed<Ids>,
    if_none_match: IfNoneMatch,
) -> Result<Response, Problem> {
    let tag = server.renderer.etags.of(&("attachment counts", server.mailroom.version(&mailbox).await?));
    let count = async {
        let mut counts = Vec::with_capacity(ids.len());
        for id in ids {
            let copy = server.mailroom.find(&mailbox, MessageSelector::Id(id)).await?;
            counts.extend(copy.map(|copy| (id, copy.details.attachments())));
        }
        json::body(&AttachmentCounts(counts))
    };
    success::json_unless_match(&if_none_match, tag, count).await
}

/// The number of attachments of messages, by message id.
#[derive(ToSchema)]
#[schema(value_type = BTreeMap<String, u64>)]
pub(crate) struct AttachmentCounts(Vec<(MessageId, u32)>);

impl Serialize for AttachmentCounts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(id, count)| (id.to_string(), count)))
    }
}
