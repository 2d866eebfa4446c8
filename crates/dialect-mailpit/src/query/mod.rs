//! The query language of Mailpit. All terms of a query must match: words, phrases in quotes, and terms with a prefix such
//! as `from:`. A `-` or `!` before a term excludes what it matches.
//!
//! - `parse`: the terms of a query
//! - `date`: points in time
//! - `evaluate`: whether a message matches
//! - `header_values`: the values that terms compare
//! - `search_text`: the text of a message in which words are searched
//! - `find`: finds the messages that match
//! - `indexed`: messages that are too old to be read for a search

pub(crate) mod date;
mod evaluate;
pub(crate) mod find;
mod header_values;
mod indexed;
mod parse;
mod search_text;

pub(crate) use parse::Query;

#[cfg(test)]
mod tests;
