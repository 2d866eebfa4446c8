//! The HTTP server: which API is on which listener, request checks, health checks and metrics.
//!
//! [`Service`] has the router of each listener, [`serve_stream`] serves it on one connection.
//!
//! - `middleware`: host and origin checks, forwarded headers, CORS, authentication, request metrics
//! - `operations`: health checks and metrics
//! - `apis`: which APIs a listener serves
//! - `router`: the service of a listener
//! - `project_paths`: the same paths below `/p/PROJECT`
//!
//! What all APIs share is in `restante_http_core`, the REST API in `restante_http_rest`, its description in
//! `restante_http_openapi`, the pages in `restante_http_web`.
//! HTTP/1.1 and HTTP/2 connections are in `restante_http_connection`, listening and TLS in `restante_net`.

// The test support of the APIs uses the name of the crate.
#[cfg(test)]
extern crate self as restante_http;

mod apis;
mod middleware;
mod operations;
mod project_paths;
mod router;
#[cfg(test)]
mod tests;

pub use apis::{Collision, ListenerApis, ServerInfo, openapi};
pub use restante_http_connection::context::{ConnectionGuard, Peer};
pub use restante_http_connection::http1::{ALPN_PROTOCOLS, Version, refuse_plaintext, serve_connection, serve_stream};
pub use restante_http_core::response::problem::refuse_connection;
pub use restante_http_core::server::{Services, Settings};
pub use restante_http_rest::{About, Port, Status};
pub use router::Service;
