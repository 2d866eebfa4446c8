//! What all APIs over HTTP share. It knows none of them.
//!
//! The folders are layers. Each imports only those above it in this list:
//!
//! - `paths`: paths that several crates need
//! - `response`: problem documents, entity tags, content coding, JSON
//! - `messages`: queries of messages, as far as a grant allows them
//! - `render`: rendered responses and their cache
//! - `uploads`: messages from requests; `parsed_mail_cache`: messages that waiting requests compare with their queries
//! - `server`: the server as its APIs use it
//! - `extractors`: path, query and body of a request as typed values, with the check of the grant
//! - `tag_changes`: changes of a tag in all messages
//! - `credentials`: the credentials of a request
//! - `subscriber`: subscribers of live events
//! - `api`: the description of an API

pub mod api;
pub mod credentials;
pub mod extractors;
pub mod messages;
pub mod parsed_mail_cache;
pub mod paths;
pub mod render;
pub mod response;
pub mod server;
pub mod subscriber;
mod tag_changes;
pub mod uploads;

#[cfg(test)]
mod layers;
