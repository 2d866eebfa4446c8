//! Search: runs a query on the index and returns the matching messages in pages, with an excerpt around each match. The
//! query language is in the crate `restante_search`.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::State;
use axum::response::Response;
use jiff::Timestamp;
use restante_api_types::{FoundMessage, SnippetFragment};
use restante_http_connection::memory::{MemoryPermit, SMALL_BYTES};
use restante_search::{Hit, Query, SearchRequest, SearchResults};
use serde::Serialize;
use utoipa::ToSchema;

use crate::extractors::cancellation::Cancellation;
use crate::extractors::parameters::{RequestGrant, SearchParameters};
use crate::response::problem::Problem;
use crate::response::{json, message_json, success};
use crate::state::Server;

/// The usual maximum size of an excerpt.
const SNIPPET_BYTES: usize = 512;

/// Searches messages.
pub(crate) async fn search(
    State(server): State<Arc<Server>>,
    RequestGrant(grant): RequestGrant,
    SearchParameters { text, mailbox, before, limit }: SearchParameters,
    attendance: Cancellation,
) -> Result<Response, Problem> {
    let search = server.settings.extensions.search.as_ref().ok_or(Problem::SearchDisabled)?;
    let query = Query::parse(&text, Timestamp::now()).map_err(Problem::InvalidQuery)?;
    let is_permitted = Box::new(move |mailbox: &_| grant.covers(mailbox));
    let begun = Instant::now();
    let question = SearchRequest { query, mailbox, is_permitted, before, limit };
    // Canceled if the client disconnects, so that it does not delay other searches.
    let asked = async {
        let answer = search.find(&server.mailroom, question).await;
        server.settings.metrics.observe_search(begun.elapsed());
        Ok(Arc::new(answer?))
    };
    let answer = attendance.run_until_cancelled(asked).await?;
    let (this, answer) = (&server, &answer);
    let make = |allowance: MemoryPermit| async move {
        let turn = this.work_permit(estimated_size(answer), SMALL_BYTES).await?;
        let answer = answer.clone();
        let write = move || {
            let body = json::body_with_capacity(&Found::from(&*answer), estimated_size(&answer))?;
            Ok::<_, Problem>(allowance.charge(body)?)
        };
        turn.run(write).await?
    };
    Ok(success::no_store_body(server.within_budget(make).await?))
}

/// Messages found by a search, the newest first.
#[derive(Serialize, ToSchema)]
pub(crate) struct Found<'a> {
    messages: Vec<FoundMessage<'a>>,
    /// The value of `before` for the next page, or null on the last page.
    #[schema(required)]
    next: Option<String>,
    /// Whether the search covered everything that was stored before the request.
    complete: bool,
}

impl<'a> From<&'a SearchResults> for Found<'a> {
    fn from(SearchResults { hits, next, is_complete }: &'a SearchResults) -> Self {
        let messages = hits.iter().map(found_message).collect();
        Self { messages, next: next.map(|id| id.to_string()), complete: *is_complete }
    }
}

fn found_message(Hit { summary, snippet }: &Hit) -> FoundMessage<'_> {
    let pieces = snippet.iter().map(|piece| SnippetFragment { text: piece.text.as_str().into(), hit: piece.is_hit });
    FoundMessage { record: summary.into(), snippet: pieces.collect() }
}

/// Returns the approximate size of the response.
fn estimated_size(answer: &SearchResults) -> usize {
    answer.hits.iter().map(|hit| message_json::record_size(&hit.summary) + SNIPPET_BYTES).sum()
}
