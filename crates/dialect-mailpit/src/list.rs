//! The list of all messages, the newest first: `GET /api/v1/messages`.
//!
//! A response has at most [`MAX_LIMIT`](crate::paging::MAX_LIMIT) messages. The first page is cached until
//! the store changes.

use std::sync::Arc;

use axum::extract::State;
use bytes::Bytes;
use restante_http_connection::work::WorkPermit;
use restante_http_core::extractors::parameters::RequestGrant;
use restante_http_core::render::CacheKey;
use restante_http_core::response::problem::Problem;
use restante_http_core::response::{json, message_json};
use restante_http_core::server::Server;
use restante_mail::message::Message;
use restante_mail::naming::Project;
use restante_store::overview::Overview;
use serde::Serialize;

use crate::error::HandlerResult;
use crate::paging::Paging;
use crate::success::json_body;
use crate::summary::MessageSummary;

/// A page of a list of messages.
#[derive(Debug, Serialize)]
pub(crate) struct MessageList<'a> {
    /// The number of all messages.
    pub(crate) total: u64,
    /// The number of all unread messages.
    pub(crate) unread: u64,
    /// The number of messages on this page.
    pub(crate) count: usize,
    /// The number of messages in the list.
    pub(crate) messages_count: u64,
    /// The number of unread messages in the list.
    pub(crate) messages_unread: u64,
    /// The number of messages before this page.
    pub(crate) start: usize,
    /// The tags of all messages.
    pub(crate) tags: Vec<&'a str>,
    pub(crate) messages: Vec<MessageSummary<'a>>,
}

/// The messages of a page, and what is known about their list.
pub(crate) struct ListPage {
    /// The number of messages before the page.
    pub(crate) start: usize,
    pub(crate) messages: Vec<Message>,
    /// The numbers of messages in the list, or `None` if it has all messages.
    pub(crate) counts: Option<ListCounts>,
}

/// The numbers of messages in a list.
#[derive(Clone, Copy)]
pub(crate) struct ListCounts {
    pub(crate) messages: u64,
    pub(crate) unread: u64,
}

impl<'a> MessageList<'a> {
    /// Creates a page of a list. The overview is that of all messages.
    fn new(overview: &'a Overview, page: &'a ListPage) -> Self {
        let all = ListCounts { messages: overview.messages, unread: overview.unread };
        let listed = page.counts.unwrap_or(all);
        Self {
            total: all.messages,
            unread: all.unread,
            count: page.messages.len(),
            messages_count: listed.messages,
            messages_unread: listed.unread,
            start: page.start,
            tags: overview.tags.iter().map(|count| count.tag.as_str()).collect(),
            messages: page.messages.iter().map(MessageSummary::new).collect(),
        }
    }
}

/// Lists the messages that the client may read.
pub(crate) async fn list(
    State(server): State<Arc<Server>>,
    RequestGrant(grant): RequestGrant,
    paging: Paging,
) -> HandlerResult {
    if grant.covers_home() {
        return Ok(json_body(page_of_all(&server, grant.home(), paging).await?));
    }
    let work = server.renderer.list_permit(paging.limit()).await?;
    // The messages are read once, for the overview and for the page.
    let mut messages = server.messages.all_permitted_messages(&grant).await?;
    let overview = Arc::new(Overview::of_messages(&messages));
    if let Some(before) = paging.before_id() {
        messages.retain(|message| message.id() < before);
    }
    let messages = messages.into_iter().skip(paging.offset()).take(paging.limit()).collect();
    let page = ListPage { start: paging.start, messages, counts: None };
    Ok(json_body(render_list(&server, &overview, page, work).await?))
}

/// Returns a page of the list of all messages, or of those in a project.
async fn page_of_all(server: &Server, home: Option<&Project>, paging: Paging) -> Result<Bytes, Problem> {
    let is_cacheable = paging.offset() == 0 && paging.start == 0 && paging.before.is_none();
    let (name, limit) = ("mailpit messages", paging.limit());
    let key = CacheKey::List { name, home: home.cloned(), mailbox: None, limit };
    if is_cacheable && let Some(body) = server.renderer.cache.get(&key, server.mailroom.store_version().await?.0) {
        return Ok(body);
    }
    let work = server.renderer.list_permit(paging.limit()).await?;
    let (version, overview) = server.messages.complete_overview(home).await?;
    let is_beyond_end = paging.before.is_none() && paging.offset() as u64 >= overview.messages;
    let (page_version, messages) = if is_beyond_end {
        (version, Vec::new())
    } else {
        server.messages.messages_from_offset(home, paging.offset(), paging.before_id(), paging.limit()).await?
    };
    let page = ListPage { start: paging.start, messages, counts: None };
    let body = render_list(server, &overview, page, work).await?;
    // If a message arrived between the two queries, the next request queries again.
    if is_cacheable && page_version == version {
        server.renderer.cache.insert(key, version.0, body.clone());
    }
    Ok(body)
}

/// Renders a list within the memory budget, outside of the network threads if it is large. `work` is the permit with
/// which it was read.
pub(super) async fn render_list(
    server: &Server,
    overview: &Arc<Overview>,
    page: ListPage,
    work: Option<WorkPermit>,
) -> Result<Bytes, Problem> {
    let size = message_json::entries_size(&page.messages);
    let write = |(overview, page): &(Arc<Overview>, ListPage), size| {
        json::body_with_capacity(&MessageList::new(overview, page), size)
    };
    server.renderer.render_value((overview.clone(), page), size, work, write).await
}
