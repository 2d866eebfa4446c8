//! Finds messages as a whole with the search, which finds copies.

use std::time::Instant;

use restante_auth::Grant;
use restante_mail::message::{Message, MessageId};
use restante_search::{Hit, Query, Search, SearchRequest, SearchResults};
use restante_store::MessageSelector;

use crate::response::problem::Problem;
use crate::state::Server;
use crate::state::messages::{MessagePage, MessageRange, permitted_copies};

/// The maximum number of searches for one page. More than one is needed if messages have several matching copies.
const MAX_SEARCHES: usize = 10;

/// The messages that a search has found.
pub(super) struct FoundMessages {
    pub(super) page: MessagePage,
    /// Whether the search covered everything that was stored before the request.
    pub(super) is_complete: bool,
}

impl Server {
    /// Returns a page of the messages of which a permitted copy matches. A page can have fewer messages than requested
    /// even if it is not the last one.
    pub(super) async fn search_messages(
        &self,
        grant: &Grant,
        query: &Query,
        range: MessageRange,
    ) -> Result<FoundMessages, Problem> {
        let search = self.settings.extensions.search.as_ref().ok_or(Problem::SearchDisabled)?;
        let (mut messages, mut is_complete, mut cursor) = (Vec::new(), true, range.before);
        for _ in 0..MAX_SEARCHES {
            // One more than requested, to know whether this is the last page.
            let limit = range.limit.saturating_add(1) - messages.len();
            let results = self.search_copies(search, grant, query, cursor, limit).await?;
            is_complete &= results.is_complete;
            let found = distinct_messages(&results.hits);
            for id in found.iter().copied().take_while(|id| !range.ends_before(*id)) {
                let message = self.mailroom.find_message(MessageSelector::Id(id)).await?;
                messages.extend(message.and_then(|message| permitted_copies(grant, message)));
            }
            if messages.len() > range.limit {
                messages.truncate(range.limit);
                let next = messages.last().map(Message::id);
                return Ok(FoundMessages { page: MessagePage { messages, next }, is_complete });
            }
            // The copies of a message have ids from that of the message on. So no further copy of it is found.
            cursor = results.next.map(|next| found.last().map_or(next, |last| next.min(*last)));
            if cursor.is_none_or(|next| range.ends_before(next)) {
                cursor = None;
                break;
            }
        }
        Ok(FoundMessages { page: MessagePage { messages, next: cursor }, is_complete })
    }

    async fn search_copies(
        &self,
        search: &Search,
        grant: &Grant,
        query: &Query,
        before: Option<MessageId>,
        limit: usize,
    ) -> Result<SearchResults, Problem> {
        let (grant, start) = (grant.clone(), Instant::now());
        let is_permitted = Box::new(move |mailbox: &_| grant.covers(mailbox));
        let request = SearchRequest { query: query.clone(), mailbox: None, is_permitted, before, limit };
        let results = search.find(&self.mailroom, request).await;
        self.settings.metrics.observe_search(start.elapsed());
        Ok(results?)
    }
}

/// Returns the messages of these copies, the newest first. The copies of a message are adjacent.
fn distinct_messages(hits: &[Hit]) -> Vec<MessageId> {
    let mut messages: Vec<MessageId> = hits.iter().map(|hit| hit.summary.message).collect();
    messages.dedup();
    messages
}
