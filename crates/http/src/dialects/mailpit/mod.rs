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
//! - `search`: the messages that match a query
//! - `send`: sending a message
//! - `success`: the common successful responses
//! - `summary`: a message in a list
//! - `target`: the message that a request is about
//! - `message`: one message; `content`: its texts and files; `list_unsubscribe`, `date`: header fields of it
//! - `headers`, `raw`, `parts`, `thumbnail`: the header, the source and the files of a message
//! - `view`: the body of a message as a page; `view_html`: the changes of its HTML

mod body;
mod changes;
mod content;
mod content_type;
mod date;
mod error;
mod headers;
mod list;
mod list_unsubscribe;
mod message;
mod paging;
mod parts;
mod query;
mod raw;
mod search;
mod send;
mod success;
mod summary;
mod target;
mod thumbnail;
mod view;
mod view_html;

use std::sync::Arc;

use axum::routing::{MethodRouter, get, post};

use crate::state::Server;

/// A path and its handlers.
pub(crate) type Route = (&'static str, MethodRouter<Arc<Server>>);

/// Returns the routes, without the base path.
pub(crate) fn routes() -> Vec<Route> {
    vec![
        ("/api/v1/messages", get(list::list).put(changes::mark).delete(changes::delete)),
        ("/api/v1/search", get(search::search).delete(search::delete)),
        ("/api/v1/send", post(send::send)),
        ("/api/v1/message/{id}", get(message::message)),
        ("/api/v1/message/{id}/headers", get(headers::headers)),
        ("/api/v1/message/{id}/raw", get(raw::raw)),
        ("/api/v1/message/{id}/part/{part}", get(parts::part)),
        ("/api/v1/message/{id}/part/{part}/thumb", get(thumbnail::thumbnail)),
        ("/view/{file}", get(view::view)),
    ]
}
