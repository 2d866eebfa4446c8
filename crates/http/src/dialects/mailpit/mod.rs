//! The API of Mailpit 1.30.
//!
//! Each message is one entry with all of its recipients. The id of a message is the same as in our API.
//!
//! - `body`: request bodies, read like the JSON decoder of Go
//! - `changes`: changes of many messages
//! - `content_type`: detection of content types
//! - `error`: errors as Mailpit reports them
//! - `list`: the list of all messages
//! - `paging`: the parameters of lists
//! - `query`: the query language
//! - `send`: sending a message
//! - `success`: the common successful responses
//! - `summary`: a message in a list

mod body;
mod changes;
mod content_type;
mod error;
mod list;
mod paging;
mod query;
mod send;
mod success;
mod summary;

use std::sync::Arc;

use axum::routing::{MethodRouter, get, post};

use crate::state::Server;

/// A path and its handlers.
pub(crate) type Route = (&'static str, MethodRouter<Arc<Server>>);

/// Returns the routes, without the base path.
pub(crate) fn routes() -> Vec<Route> {
    vec![
        ("/api/v1/messages", get(list::list).put(changes::mark).delete(changes::delete)),
        ("/api/v1/send", post(send::send)),
    ]
}
