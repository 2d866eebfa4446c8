//! The API of Mailpit 1.30.
//!
//! Each message is one entry with all of its recipients. The id of a message is the same as in our API.
//!
//! - `body`: request bodies, read like the JSON decoder of Go
//! - `error`: errors as Mailpit reports them
//! - `success`: the common successful responses
//! - `summary`: a message in a list

mod body;
mod error;
mod success;
mod summary;

use std::sync::Arc;

use axum::routing::MethodRouter;

use crate::state::Server;

/// A path and its handlers.
pub(crate) type Route = (&'static str, MethodRouter<Arc<Server>>);

/// Returns the routes, without the base path.
pub(crate) fn routes() -> Vec<Route> {
    vec![]
}
