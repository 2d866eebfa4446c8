//! The messages that contain the words of a query, as the index of the server's own search knows them.

use std::collections::VecDeque;

use jiff::Timestamp;
use restante_auth::Grant;
use restante_mail::message::{Message, MessageId};
use restante_search::Query as IndexQuery;

use crate::dialects::mailpit::query::Query;
use crate::response::problem::Problem;
use crate::state::Server;

/// The number of messages that are requested from the index at once, and the maximum number of such requests.
const MAX_HITS: usize = 200;
const MAX_REQUESTS: usize = 10;

/// The ids of matching messages, descending. They are requested from the index as they are needed.
pub(super) struct IndexedMatches<'s> {
    server: &'s Server,
    grant: Grant,
    /// `None` if the index cannot be asked: it is disabled, or the query has a text without words.
    query: Option<IndexQuery>,
    found: VecDeque<MessageId>,
    /// Where the next request starts. `None` after the last one.
    before: Option<MessageId>,
    requests: usize,
}

impl<'s> IndexedMatches<'s> {
    /// Creates the matches among `newest` and older messages.
    pub(super) fn new(server: &'s Server, grant: &Grant, query: &Query, newest: &Message) -> Self {
        let phrase = |(text, is_excluded)| format!("{}\"{text}\"*", if is_excluded { "-" } else { "" });
        let phrases: Vec<String> = query.texts().map(phrase).collect();
        let query = IndexQuery::parse(&phrases.join(" "), Timestamp::now()).ok();
        // The index has one entry per copy.
        let last_copy = newest.copies().iter().map(|copy| copy.id).max();
        Self {
            server,
            grant: grant.clone(),
            query: query.filter(|_| !phrases.is_empty() && server.settings.services.search.is_some()),
            found: VecDeque::new(),
            before: last_copy.map(|id| id.number().saturating_add(1).into()),
            requests: 0,
        }
    }

    /// Returns whether a message matches. Call it with descending ids.
    pub(super) async fn contains(&mut self, id: MessageId) -> Result<bool, Problem> {
        loop {
            while let Some(&found) = self.found.front() {
                if found <= id {
                    return Ok(found == id);
                }
                self.found.pop_front();
            }
            if !self.request().await? {
                return Ok(false);
            }
        }
    }

    /// Requests further matches. Returns whether there may be some.
    async fn request(&mut self) -> Result<bool, Problem> {
        let (Some(query), Some(_)) = (&self.query, self.before) else { return Ok(false) };
        if self.requests == MAX_REQUESTS {
            return Ok(false);
        }
        self.requests += 1;
        let results = self.server.find_copies(&self.grant, query, None, self.before, MAX_HITS, true).await?;
        self.found.extend(results.hits.iter().map(|hit| hit.summary.message));
        // Further copies of the last message are skipped.
        let last = self.found.back().copied();
        self.before = results.next.filter(|_| results.is_complete).map(|next| last.map_or(next, |last| next.min(last)));
        Ok(true)
    }
}
