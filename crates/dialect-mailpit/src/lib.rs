//! The API of Mailpit 1.30: [`api`] describes it.
//!
//! Each message is one entry with all of its recipients. The id of a message is the same as in our API.
//!
//! - `body`: request bodies, read like the JSON decoder of Go
//! - `changes`: changes of many messages
//! - `chaos`: simulated failures of SMTP
//! - `content_type`: detection of content types
//! - `error`: errors as Mailpit reports them
//! - `events`: live events over WebSocket
//! - `info`: the version and the counters of the server
//! - `html_check`: the support of the HTML of a message in mail clients
//! - `link_check`: the links of a message
//! - `list`: the list of all messages
//! - `paging`: the parameters of lists
//! - `query`: the query language
//! - `search`: the messages that match a query
//! - `release`: sending a message to other addresses
//! - `send`: sending a message
//! - `success`: the common successful responses
//! - `summary`: a message in a list
//! - `target`: the message that a request is about
//! - `message`: one message; `content`: its texts and files; `list_unsubscribe`, `date`: header fields of it
//! - `source`, `parts`, `thumbnail`: the source, the header and the files of a message
//! - `view`: the body of a message as a page; `view_html`: the changes of its HTML
//! - `tags`: the tags of all messages, and changes of them
//! - `webui`: the configuration of the web interface

mod body;
mod changes;
mod chaos;
mod content;
mod content_type;
mod date;
mod error;
mod events;
mod html_check;
mod info;
mod link_check;
mod list;
mod list_unsubscribe;
mod message;
mod paging;
mod parts;
mod query;
mod release;
mod search;
mod send;
mod source;
mod success;
mod summary;
mod tags;
mod target;
mod thumbnail;
mod view;
mod view_html;
mod webui;

use std::sync::Arc;

use axum::extract::Request;
use axum::routing::{MethodRouter, get, post, put};
use restante_http_core::api::Api;
use restante_http_core::credentials::Credentials;
use restante_http_core::extractors::parameters::RequestGrant;
use restante_http_core::server::Server;

use error::Error;

/// The path of the WebSocket. A browser cannot set headers for it.
const EVENTS: &str = "/api/events";

/// The version that clients get: that of the API, and after the plus sign that of this program, as semantic versioning has
/// it for builds. Clients compare the version with those of Mailpit.
pub const VERSION: &str = concat!("v1.30.5+restante.", env!("CARGO_PKG_VERSION"));

/// Returns the API. All paths respond to OPTIONS.
pub fn api() -> Api {
    let routes = routes().into_iter().map(|(path, handlers)| (path.to_owned(), handlers.options(success::empty)));
    Api { credentials, error_form: error::text_form, ..Api::new("mailpit", routes.collect()) }
}

fn credentials(template: &str, request: &Request) -> Credentials {
    if template == EVENTS { Credentials::from_headers_or_query(request) } else { Credentials::from_headers(request) }
}

fn routes() -> Vec<(&'static str, MethodRouter<Arc<Server>>)> {
    vec![
        ("/api/v1/messages", get(list::list).put(changes::mark).delete(changes::delete)),
        ("/api/v1/search", get(search::search).delete(search::delete)),
        ("/api/v1/send", post(send::send)),
        ("/api/v1/message/{id}", get(message::message)),
        ("/api/v1/message/{id}/headers", get(source::headers)),
        ("/api/v1/message/{id}/html-check", get(html_check::html_check)),
        ("/api/v1/message/{id}/raw", get(source::raw)),
        ("/api/v1/message/{id}/part/{part}", get(parts::part)),
        ("/api/v1/message/{id}/part/{part}/thumb", get(thumbnail::thumbnail)),
        ("/view/{file}", get(view::view)),
        (EVENTS, get(events::events)),
        ("/api/v1/tags", get(tags::list).put(tags::set)),
        ("/api/v1/tags/{tag}", put(tags::rename).delete(tags::delete)),
        ("/api/v1/message/{id}/release", post(release::release)),
        ("/api/v1/message/{id}/link-check", get(link_check::link_check)),
        // As Mailpit without SpamAssassin.
        ("/api/v1/message/{id}/sa-check", get(async |_: RequestGrant| Error::NotFound("File not found\n"))),
        ("/api/v1/chaos", get(chaos::get).put(chaos::set)),
        ("/api/v1/info", get(info::info)),
        ("/api/v1/webui", get(webui::webui)),
    ]
}
