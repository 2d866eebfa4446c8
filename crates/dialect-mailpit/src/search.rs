//! Messages that match a query: `/api/v1/search`, and `latest` with the parameter `query`.

use std::ops::ControlFlow;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use restante_auth::Grant;
use restante_http_core::extractors::access::Access;
use restante_http_core::extractors::cancellation::Cancellation;
use restante_http_core::extractors::query::QueryPairs;
use restante_http_core::messages::MAX_PAGE_COPIES;
use restante_http_core::messages::changes::Change;
use restante_http_core::response::problem::Problem;
use restante_http_core::server::Server;
use restante_mail::message::Message;

use crate::changes::change_matches;
use crate::error::{Error, HandlerResult};
use crate::list::render_list;
use crate::list::{ListCounts, ListPage};
use crate::paging::Paging;
use crate::query::Query;
use crate::query::find::visit_matches;
use crate::success::{self, json_body};

/// The parameters `query` and `tz`.
pub(crate) struct SearchParameters {
    /// The query, not parsed yet. It is not blank.
    text: String,
    /// The time zone of dates in the query.
    zone: Option<String>,
}

impl<S: Sync> FromRequestParts<S> for SearchParameters {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Error> {
        Self::optional(parts)?.ok_or_else(|| Error::text("Error: no search query"))
    }
}

impl SearchParameters {
    /// Returns the parameters, or `None` if there is no query.
    pub(crate) fn optional(parts: &Parts) -> Result<Option<Self>, Error> {
        let query = QueryPairs::parse(parts)?;
        let text = query.first("query").map(str::trim).filter(|text| !text.is_empty());
        let zone = query.first("tz").map(|zone| zone.trim().to_owned());
        Ok(text.map(|text| Self { text: text.to_owned(), zone }))
    }

    fn parse(&self) -> Result<Arc<Query>, Error> {
        Query::parse(&self.text, self.zone.as_deref()).map(Arc::new)
    }
}

/// Lists the messages that match a query, the newest first.
pub(crate) async fn search(
    Access { server, grant, cancellation }: Access,
    parameters: SearchParameters,
    paging: Paging,
) -> HandlerResult {
    let query = parameters.parse()?;
    // Canceled if the client disconnects, so that it does not delay other searches.
    let page = cancellation.run_until_cancelled(search_page(&server, &grant, &query, paging)).await?;
    let overview = server.messages.overview(&grant).await?;
    let work = server.renderer.list_permit(paging.limit()).await?;
    Ok(json_body(render_list(&server, &overview, page, work).await?))
}

/// Deletes the messages that match a query.
pub(crate) async fn delete(
    Access { server, grant, cancellation }: Access,
    SearchParameters { text, zone }: SearchParameters,
) -> HandlerResult {
    change_matches(&server, grant, &text, zone.as_deref(), Change::Delete, &cancellation).await?;
    Ok(success::ok())
}

/// Returns a page of the messages that match a query, and their number. All messages are visited to count them, but
/// only those of the page are kept.
async fn search_page(server: &Server, grant: &Grant, query: &Arc<Query>, paging: Paging) -> Result<ListPage, Problem> {
    // Unlike in the list of all messages, a limit of zero selects none.
    let limit = if paging.has_zero_limit() { 0 } else { paging.limit() };
    let (mut messages, mut copies) = (Vec::new(), 0);
    let mut counts = ListCounts { messages: 0, unread: 0 };
    let visit = |message: Message| {
        let is_on_page = counts.messages >= paging.start as u64 && messages.len() < limit;
        counts.messages += 1;
        counts.unread += u64::from(!message.is_seen());
        if is_on_page && copies < MAX_PAGE_COPIES {
            copies += message.copies().len();
            messages.push(message);
        }
        ControlFlow::Continue(())
    };
    visit_matches(server, grant, query, paging.before, visit).await?;
    Ok(ListPage { start: paging.start, messages, counts: Some(counts) })
}

/// Returns the newest message that matches a query.
pub(crate) async fn latest_match(
    server: &Server,
    grant: &Grant,
    parameters: &SearchParameters,
    cancellation: &Cancellation,
) -> Result<Option<Message>, Error> {
    let (query, mut latest) = (parameters.parse()?, None);
    let visit = |message: Message| {
        latest = Some(message);
        ControlFlow::Break(())
    };
    let find = visit_matches(server, grant, &query, None, visit);
    cancellation.run_until_cancelled(find).await?;
    Ok(latest)
}
