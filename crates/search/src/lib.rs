//! The query language and the index of messages.
//!
//! A [`Query`] selects messages. It can be applied to one message ([`Query::matches`], [`Query::matches_contents`]), or
//! to all of them by [`Search`]. Both give the same result, because both use the same `document`: the searchable text
//! of a message as `words`, without regard to case and accents.
//!
//! [`Search`] observes the mailroom and pushes every stored message to the `index_queue`. The `indexer`, a thread of low
//! priority, adds it to the `index`, which `index_file` opens. It reads the message from the store if the queue is too
//! long to keep it.
//! Delivery does not wait for indexing, and the queue is bounded. After a crash or an overflow of the queue, `catch_up`
//! compares the index with the store.

mod catch_up;
mod document;
mod excerpt;
mod index;
mod index_file;
mod index_operations;
mod index_queue;
mod indexer;
mod query;
mod request;
mod search;
#[cfg(test)]
mod tests;
mod words;

pub use document::Contents;
pub use excerpt::ExcerptPart;
pub use query::{Query, QueryError};
pub use request::{FoundIds, Hit, SearchError, SearchRequest, SearchResults};
pub use search::{Counts, Search};
