//! Extractors for the entries of the relay queue and the webhook queue. The message to be released is in `messages`.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use restante_auth::{Grant, Scope};
use restante_queue::{EntryFilter, EntryId, EntryState};

use crate::extractors::parameters::{
    number_parameter, parse_limit, path_values, query_pairs, request_grant, text_parameter,
};
use crate::response::problem::Problem;
use crate::state::Server;

/// The default number of entries in a list, and the maximum.
const DEFAULT_ENTRIES: usize = 50;
const MAX_ENTRIES: usize = 1000;

/// The grant of the request, which allows the scope `relay` for at least one mailbox. Entries of other mailboxes must not be
/// shown or changed.
#[derive(Debug)]
pub(crate) struct QueueGrant(pub(crate) Grant);

/// An entry, from `{id}`, or `None` if that is not an id. The handler has to check that the grant allows its mailbox.
#[derive(Debug)]
pub(crate) struct PathEntry(pub(crate) Option<EntryId>);

/// The requested page of the list of entries, from the query. Its limit is at least one.
#[derive(Debug)]
pub(crate) struct EntryQuery(pub(crate) EntryFilter);

impl<S: Sync> FromRequestParts<S> for QueueGrant {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let grant = request_grant(parts)?;
        let is_allowed = grant.allows_somewhere(Scope::Relay);
        if is_allowed { Ok(Self(grant.clone())) } else { Err(Problem::MissingScope(Scope::Relay)) }
    }
}

impl FromRequestParts<Arc<Server>> for PathEntry {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, server: &Arc<Server>) -> Result<Self, Problem> {
        let id: String = path_values(parts, server).await?;
        Ok(Self(id.parse().ok()))
    }
}

impl<S: Sync> FromRequestParts<S> for EntryQuery {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let pairs = query_pairs(parts)?;
        let state = text_parameter(&pairs, "state")?.map(str::parse::<EntryState>).transpose();
        let state = state.map_err(|states| Problem::Malformed(format!("The parameter state must be {states}.")))?;
        Ok(Self(EntryFilter {
            message: number_parameter::<u64>(&pairs, "message")?.map(Into::into),
            target: text_parameter(&pairs, "target")?.map(ToOwned::to_owned),
            state,
            before: number_parameter(&pairs, "before")?.map(EntryId),
            omits_payloads: false,
            limit: parse_limit(&pairs, DEFAULT_ENTRIES, MAX_ENTRIES)?,
        }))
    }
}
