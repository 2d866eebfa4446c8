//! Extractors for the entries of the relay queue and the webhook queue. The message to be released is in `messages`.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use restante_auth::{Grant, Scope};
use restante_queue::{EntryFilter, EntryId, EntryState};

use crate::extractors::parameters::{path_values, request_grant, require_scope};
use crate::extractors::query::{FromQuery, QueryPairs};
use crate::response::problem::Problem;
use crate::server::Server;

/// The default number of entries in a list, and the maximum.
const DEFAULT_ENTRIES: usize = 50;
const MAX_ENTRIES: usize = 1000;

/// The grant of the request, which allows the scope `relay` for at least one mailbox. Entries of other mailboxes must not be
/// shown or changed.
#[derive(Debug)]
pub struct QueueGrant(pub Grant);

/// An entry, from `{id}`, or `None` if that is not an id. The handler has to check that the grant allows its mailbox.
#[derive(Debug)]
pub struct PathEntry(pub Option<EntryId>);

impl<S: Sync> FromRequestParts<S> for QueueGrant {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let grant = request_grant(parts)?;
        require_scope(grant, Scope::Relay)?;
        Ok(Self(grant.clone()))
    }
}

impl FromRequestParts<Arc<Server>> for PathEntry {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, server: &Arc<Server>) -> Result<Self, Problem> {
        let id: String = path_values(parts, server).await?;
        Ok(Self(id.parse().ok()))
    }
}

/// A page of the list of entries. Its limit is at least one.
impl FromQuery for EntryFilter {
    fn from_query(query: &QueryPairs) -> Result<Self, Problem> {
        let state = query.text("state")?.map(str::parse::<EntryState>).transpose();
        let state = state.map_err(|states| Problem::Malformed(format!("The parameter state must be {states}.")))?;
        Ok(Self {
            message: query.number::<u64>("message")?.map(Into::into),
            target: query.text("target")?.map(ToOwned::to_owned),
            state,
            before: query.number("before")?.map(EntryId),
            omits_payloads: false,
            limit: query.limit(DEFAULT_ENTRIES, MAX_ENTRIES)?,
        })
    }
}
