//! The request and the result of a search.

use restante_mail::message::{MessageId, Summary};
use restante_mail::naming::MailboxName;
use restante_mailroom::StoreError;
use thiserror::Error;

use crate::excerpt::ExcerptPart;
use crate::query::Query;

/// A search request.
pub struct SearchRequest {
    /// The query.
    pub query: Query,
    /// Restricts the search to this mailbox.
    pub mailbox: Option<MailboxName>,
    /// Restricts the search to mailboxes for which this returns true.
    pub is_permitted: Box<dyn Fn(&MailboxName) -> bool + Send>,
    /// Restricts the search to ids below this one.
    pub before: Option<MessageId>,
    /// The maximum number of results.
    pub limit: usize,
    /// Returns only one of the matching copies of a message, the one with the highest id.
    pub one_per_message: bool,
}

/// The result of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchResults {
    /// The matching messages, newest first. There may be fewer than the limit even if there are more matches.
    pub hits: Vec<Hit>,
    /// If there are more matches, they have ids below this one.
    pub next: Option<MessageId>,
    /// True if the index contained every message that was stored before the request.
    pub is_complete: bool,
}

/// The ids that a search has found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundIds {
    /// The ids of matching copies, newest first. There may be fewer than the limit even if there are more matches.
    pub ids: Vec<MessageId>,
    /// See [`SearchResults::next`].
    pub next: Option<MessageId>,
    /// See [`SearchResults::is_complete`].
    pub is_complete: bool,
}

/// A matching message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    /// The summary of the message.
    pub summary: Summary,
    /// A short extract of its text. It is empty for very large messages, and if the time limit was reached.
    pub excerpt: Vec<ExcerptPart>,
}

/// The reason why a search failed.
#[derive(Debug, Error)]
pub enum SearchError {
    /// The search took too long.
    #[error("the search took too long")]
    Timeout,
    /// Too many searches are running, and none ended in time.
    #[error("too many searches are running")]
    Busy,
    /// The index cannot be used; the text gives the reason.
    #[error("the search index cannot be used: {0}")]
    Unavailable(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}
