//! The messages that contain the words of a query, as the index of the server's own search knows them.

use std::collections::{HashSet, VecDeque};

use jiff::Timestamp;
use restante_auth::Grant;
use restante_http_core::response::problem::Problem;
use restante_http_core::server::Server;
use restante_mail::message::{Message, MessageId};
use restante_search::{FoundIds, Query as IndexQuery};

use crate::query::Query;

/// The maximum number of messages that the index finds.
const MAX_MATCHES: usize = 2000;
/// The number of copies that are requested from the index at once, and the maximum number of such requests.
const MAX_COPIES: usize = 2000;
const MAX_REQUESTS: usize = 20;

/// The copies of a message have ids in this range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CopyRange {
    /// The id of the message.
    pub(super) message: MessageId,
    last: MessageId,
}

impl CopyRange {
    pub(super) fn new(message: &Message) -> Self {
        let last = message.copies().iter().map(|copy| copy.id).max();
        Self { message: message.id(), last: last.unwrap_or(message.id()) }
    }
}

/// The messages that match. They are requested from the index as they are needed.
pub(super) struct IndexedMatches<'s> {
    server: &'s Server,
    grant: Grant,
    /// `None` if the index cannot be asked: it is disabled, or the query has a text without words.
    query: Option<IndexQuery>,
    /// The ids of matching copies, descending.
    found: VecDeque<MessageId>,
    /// Where the next request starts. `None` after the last one.
    before: Option<MessageId>,
    requests: usize,
    matches: usize,
}

impl<'s> IndexedMatches<'s> {
    /// Creates the matches among `newest` and older messages.
    pub(super) fn new(server: &'s Server, grant: &Grant, query: &Query, newest: &Message) -> Self {
        let phrase = |(text, is_excluded)| format!("{}\"{text}\"*", if is_excluded { "-" } else { "" });
        let phrases: Vec<String> = query.texts().map(phrase).collect();
        let query = IndexQuery::parse(&phrases.join(" "), Timestamp::now()).ok();
        Self {
            server,
            grant: grant.clone(),
            query: query.filter(|_| !phrases.is_empty() && server.settings.services.search.is_some()),
            found: VecDeque::new(),
            before: Some(CopyRange::new(newest).last.number().saturating_add(1).into()),
            requests: 0,
            matches: 0,
        }
    }

    /// Returns those of these messages that match. Call it with all messages, descending by id.
    pub(super) async fn select(&mut self, messages: &[CopyRange]) -> Result<HashSet<MessageId>, Problem> {
        let mut selected = HashSet::new();
        for &CopyRange { message, last } in messages {
            if self.matches < MAX_MATCHES && self.has_copy(message, last).await? {
                self.matches += 1;
                selected.insert(message);
            }
        }
        Ok(selected)
    }

    /// Returns whether a copy with one of these ids was found. Drops the copies down to the first of them.
    async fn has_copy(&mut self, first: MessageId, last: MessageId) -> Result<bool, Problem> {
        let mut is_found = false;
        loop {
            while let Some(&found) = self.found.front() {
                if found < first {
                    return Ok(is_found);
                }
                is_found |= found <= last;
                self.found.pop_front();
            }
            if is_found || self.before.is_none_or(|before| before <= first) || !self.request().await? {
                return Ok(is_found);
            }
        }
    }

    /// Requests further copies. Returns whether there may be some.
    async fn request(&mut self) -> Result<bool, Problem> {
        let (Some(query), Some(_)) = (&self.query, self.before) else { return Ok(false) };
        if self.requests == MAX_REQUESTS {
            return Ok(false);
        }
        self.requests += 1;
        let FoundIds { ids, next, is_complete } =
            self.server.messages.find_copy_ids(&self.grant, query, self.before, MAX_COPIES).await?;
        self.found.extend(ids);
        self.before = next.filter(|_| is_complete);
        Ok(true)
    }
}
