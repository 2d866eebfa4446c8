//! The HTTP server: REST API, live events, web interface, health checks and metrics.
//!
//! [`router()`] returns the service, [`serve_connection`] serves it on one connection. The folders are layers. Each
//! imports only those above it in this list:
//!
//! - `paths`: paths that several layers need
//! - `response`: problem documents, entity tags, content coding, JSON
//! - `state`: the state that all requests share: settings, mailroom, caches
//! - `extractors`: path, query and body of a request as typed values, with the check of the grant
//! - `middleware`: host and origin checks, forwarded headers, CORS, authentication, request metrics
//! - `api::v1`, `api::v2`, `dialects::mailpit`, `live`, `web`, `operations`: the handlers, next to the types of their
//!   responses. They do not import each other
//! - `openapi`, `router`: the description of the API, and the table of routes
//!
//! HTTP/1.1 and HTTP/2 connections are in `restante_http_connection`, listening and TLS in `restante_net`.

mod api;
mod dialects;
mod extractors;
mod live;
mod middleware;
mod openapi;
mod operations;
mod paths;
mod response;
mod router;
mod state;
#[cfg(test)]
mod tests;
mod web;

pub use openapi::openapi;
pub use operations::about::{About, Port};
pub use operations::status::Status;
pub use response::problem::refuse_connection;
pub use restante_http_connection::context::{ConnectionGuard, Peer};
pub use restante_http_connection::http1::{ALPN_PROTOCOLS, Version, refuse_plaintext, serve_connection};
pub use router::{ServerInfo, router};
pub use state::{Services, Settings};
