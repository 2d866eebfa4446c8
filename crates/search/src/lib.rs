//! The language of searches, and the index that answers them.
//!
//! A [`Query`] is a question about messages. It can be put to a single message, by whoever has it at hand ([`Query::matches`]).
//! Both ways give the same answer, because both look at the same `document`: what of a message can be searched, as `words`
//! without regard to case and accents.

mod document;
mod query;
mod words;

pub use query::{Query, QueryError};
