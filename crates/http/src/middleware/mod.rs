//! Middleware: processes every request before it reaches its handler, and every response. [`process`] runs the parts, each of
//! which calls the next one. They are one layer of the router, because a layer costs as much as a tenth of a small response.
//!
//! - `response`: the form of errors, security headers, request metrics
//! - `request_checks`: host and origin checks
//! - `forwarded`: clients of trusted proxies
//! - `authentication`: the identity of the client
//! - `cors`: cross-origin requests of permitted web pages

mod authentication;
pub(crate) mod cors;
mod forwarded;
mod request_checks;
mod response;

use std::sync::Arc;

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use restante_http_core::credentials::Credentials;
use restante_http_core::response::problem::Problem;
use restante_http_core::server::Server;

use response::OpenRequest;

/// An API below a prefix.
pub(crate) struct Mount {
    pub(crate) server: Arc<Server>,
    /// Empty, or `/x/y` without a trailing slash.
    pub(crate) prefix: String,
    /// Whether the listener has the login page.
    pub(crate) has_login_page: bool,
    pub(crate) credentials: fn(&str, &Request) -> Credentials,
    pub(crate) error_form: fn(&Problem, Response) -> Response,
}

impl Mount {
    /// Returns the route template of a request without the prefix, such as `/m/{name}`. It is empty if no route matches.
    fn route_template<'r>(&self, request: &'r Request) -> &'r str {
        let path = request.extensions().get::<MatchedPath>().map_or("", MatchedPath::as_str);
        path.strip_prefix(&self.prefix).unwrap_or(path)
    }
}

/// Processes a request of an API: `response`, then `request_checks`, then `authentication`, then its handler.
pub(crate) async fn process(State(mount): State<Arc<Mount>>, request: Request, next: Next) -> Response {
    let mount = &*mount;
    let open = OpenRequest::new(mount, &request);
    let authenticate = async |request| authentication::authenticate(mount, request, next).await;
    let response = request_checks::check_request(mount, request, authenticate).await;
    open.complete(mount, response)
}
