//! The language of searches, and the index that answers them.
//!
//! A [`Query`] is a question about messages. It can be put to a single message, by whoever has it at hand ([`Query::matches`], [`Query::matches_contents`]), or
//! to all of them, by [`Search`]. Both ways give the same answer, because both look at the same `document`: what of a message can
//! be searched, as `words` without regard to case and accents.
//!
//! A stored message goes through three hands. [`Search`] hears of it from the mailroom and leaves its id in the `intake`. The
//! `librarian`, a thread, reads the message from the store and puts it into the `index`, which stands on its `shelf`. Delivery waits
//! for none of them, everything that waits is bounded, and after a crash or too much mail at once `catch_up` asks the store.

mod catch_up;
mod document;
mod index;
mod index_file;
mod index_operations;
mod index_queue;
mod indexer;
mod query;
mod request;
mod search;
mod snippet;
mod words;

pub use document::Contents;
pub use query::{Query, QueryError};
pub use request::{Hit, SearchError, SearchRequest, SearchResults};
pub use search::{Counts, Search};
pub use snippet::SnippetPart;
