//! What all APIs over HTTP share. It knows none of them.
//!
//! The folders are layers. Each imports only those above it in this list:
//!
//! - `paths`: paths that several crates need
//! - `response`: problem documents, entity tags, content coding, JSON
//! - `state`: the state that all requests share: settings, mailroom, caches
//! - `extractors`: path, query and body of a request as typed values, with the check of the grant
//! - `credentials`: the credentials of a request
//! - `subscriber`: subscribers of live events
//! - `api`: the description of an API

pub mod api;
pub mod credentials;
pub mod extractors;
pub mod paths;
pub mod response;
pub mod state;
pub mod subscriber;

#[cfg(test)]
mod layers;
