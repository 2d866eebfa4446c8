//! Search: runs a query on the index and returns the matching messages in pages, with an excerpt around each match. The
//! query language is in the crate `restante_search`.

use axum::response::Response;
use restante_api_types::{ExcerptPart, FoundMessage};
use restante_http_core::extractors::access::Access;
use restante_http_core::extractors::messages::parse_query;
use restante_http_core::extractors::parameters::SearchParameters;
use restante_http_core::response::problem::Problem;
use restante_http_core::response::{json, message_json, success};
use restante_search::{Hit, SearchResults};
use serde::Serialize;
use utoipa::ToSchema;

/// The usual maximum size of an excerpt.
const EXCERPT_BYTES: usize = 512;

/// Searches messages.
pub(crate) async fn search(
    Access { server, grant, cancellation }: Access,
    SearchParameters { text, mailbox, before, limit }: SearchParameters,
) -> Result<Response, Problem> {
    if server.settings.services.search.is_none() {
        return Err(Problem::SearchDisabled);
    }
    let query = parse_query(&grant, &text)?;
    let find = server.messages.find_copies(&grant, &query, mailbox.as_ref(), before, limit, false);
    // Canceled if the client disconnects, so that it does not delay other searches.
    let results = cancellation.run_until_cancelled(find).await?;
    let size = estimated_size(&results);
    let write = |results: &SearchResults, size| json::body_with_capacity(&SearchResponse::from(results), size);
    Ok(success::no_store_body(server.renderer.render_value(results, size, None, write).await?))
}

/// Messages found by a search, the newest first.
#[derive(Serialize, ToSchema)]
#[schema(as = Found)]
pub(crate) struct SearchResponse<'a> {
    messages: Vec<FoundMessage<'a>>,
    /// The value of `before` for the next page, or null on the last page.
    #[schema(required)]
    next: Option<String>,
    /// Whether the search covered everything that was stored before the request.
    complete: bool,
}

impl<'a> From<&'a SearchResults> for SearchResponse<'a> {
    fn from(SearchResults { hits, next, is_complete }: &'a SearchResults) -> Self {
        let messages = hits.iter().map(found_message).collect();
        Self { messages, next: next.map(|id| id.to_string()), complete: *is_complete }
    }
}

fn found_message(Hit { summary, excerpt }: &Hit) -> FoundMessage<'_> {
    let parts = excerpt.iter().map(|part| ExcerptPart { text: part.text.as_str().into(), hit: part.is_hit });
    FoundMessage { record: summary.into(), excerpt: parts.collect() }
}

/// Returns the approximate size of the response.
fn estimated_size(results: &SearchResults) -> usize {
    results.hits.iter().map(|hit| message_json::record_size(&hit.summary) + EXCERPT_BYTES).sum()
}
