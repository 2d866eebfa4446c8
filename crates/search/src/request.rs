//! What is asked of a search, and what it says to that.

use std::fmt;

use restante_mail::message::{MessageId, Summary};
use restante_mail::naming::MailboxName;
use restante_mailroom::StoreError;

use crate::query::Query;
use crate::snippet::SnippetPart;

/// Something to look for.
pub struct SearchRequest {
    /// What is asked for.
    pub query: Query,
    /// Only in this mailbox.
    pub mailbox: Option<MailboxName>,
    /// Only in mailboxes of which this is true.
    pub is_permitted: Box<dyn Fn(&MailboxName) -> bool + Send>,
    /// Only messages with lower ids than this one.
    pub before: Option<MessageId>,
    /// At most so many messages.
    pub limit: usize,
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchResults {
    /// The newest first. There can be fewer of them than there is room for, also when there are more.
    pub hits: Vec<Hit>,
    /// When there are more, the id below which they are.
    pub next: Option<MessageId>,
    /// Whether everything that was stored before the question was looked at.
    pub is_complete: bool,
}

/// A message that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    /// The message.
    pub summary: Summary,
    /// A few words of its text. Messages that are very large, or whose turn did not come in time, have none.
    pub snippet: Vec<SnippetPart>,
}

/// Why there is no answer.
#[derive(Debug)]
pub enum SearchError {
    /// It took too long.
    Timeout,
    /// Others are asking, and it was not this one's turn in time.
    Busy,
    /// There is no index at the moment; the sentence is for the operator.
    Unavailable(String),
    /// The store did not say what it has.
    Store(StoreError),
}

impl fmt::Display for SearchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Timeout => f.write_str("the search took too long"),
            Self::Busy => f.write_str("too many searches are under way"),
            Self::Unavailable(why) => write!(f, "the search index cannot be used: {why}"),
            Self::Store(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for SearchError {}

impl From<StoreError> for SearchError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}
