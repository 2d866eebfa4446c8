//! The host of a request and whether its origin is allowed, as middleware has determined them, and what the headers of a
//! browser say about it.

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::{FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap, HeaderName, Method, header};
use restante_mail::naming::Project;

use crate::paths::{self, PROJECTS};
use crate::response::problem::Problem;
use crate::response::viewer::{FETCH_DEST, accepts_html};
use crate::server::{Server, Settings};

/// The header in which newer browsers send whether the requesting page has the same origin, the same site or another
/// site.
pub const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The header in which newer browsers send whether a page is opened, or something is loaded for a page.
pub const FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");

/// The scheme and host under which the client sees the server. Every accepted request carries it as an extension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestHost {
    /// `http` or `https`.
    pub scheme: &'static str,
    /// The host and, if given, the port. It contains no characters that need escapes in a link.
    pub authority: Box<str>,
}

/// Marks requests of web pages whose origin CORS allows. The checks of requests accept them.
#[derive(Clone, Copy, Debug)]
pub struct AllowedOrigin;

/// The project in the path of a request, below `/p/`. The grant of the request is limited to it.
#[derive(Clone, Debug)]
pub struct RequestProject(pub Project);

/// Returns the path of the project of a request below that of the server, such as `/p/shop`. Empty if there is none.
pub fn project_path(extensions: &Extensions) -> String {
    let project = extensions.get::<RequestProject>();
    project.map(|RequestProject(project)| format!("{PROJECTS}/{project}")).unwrap_or_default()
}

/// Returns the path of a request as its client sees it: in the project of the request, and below the public path of the server
/// if it is below the base path.
pub fn client_path(settings: &Settings, extensions: &Extensions, path: &str) -> String {
    let project = project_path(extensions);
    match path.strip_prefix(&settings.base_path) {
        Some(below) if below.starts_with('/') => format!("{}{project}{below}", settings.public_path()),
        _ => format!("{project}{path}"),
    }
}

/// The prefix of links to resources of this server. It does not depend on the host name that a client uses.
#[derive(Clone, Debug)]
pub struct LinkRoot(pub String);

impl FromRequestParts<Arc<Server>> for LinkRoot {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, server: &Arc<Server>) -> Result<Self, Infallible> {
        Ok(Self(format!("{}{}", server.settings.link_root(), project_path(&parts.extensions))))
    }
}

/// The URL under which the client sees the server: the configured one, otherwise the one in the request. Below `/p/`, it has
/// the path of the project.
#[derive(Clone, Debug)]
pub struct BaseUrl(pub Arc<str>);

impl FromRequestParts<Arc<Server>> for BaseUrl {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, server: &Arc<Server>) -> Result<Self, Problem> {
        let project = project_path(&parts.extensions);
        if let Some(url) = &server.settings.public_url {
            return Ok(Self(format!("{url}{project}").into()));
        }
        let RequestHost { scheme, authority } = parts.extensions.get().ok_or(Problem::BadHost)?;
        Ok(Self(format!("{scheme}://{authority}{}{project}", server.settings.base_path).into()))
    }
}

/// Returns whether a browser sent the origin of the request. It was checked then.
pub fn has_origin(headers: &HeaderMap) -> bool {
    headers.contains_key(header::ORIGIN) || headers.contains_key(FETCH_SITE)
}

/// Returns whether a browser requests a path that could be a page.
pub fn is_page_request(settings: &Settings, request: &Request) -> bool {
    let below = paths::below_base(&settings.base_path, request.uri().path());
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    is_read && is_page_navigation(request.method(), request.headers()) && !paths::is_program_path(below)
}

/// Returns whether a browser opens a page, so that a redirect or a page is useful.
pub fn is_page_navigation(method: &Method, headers: &HeaderMap) -> bool {
    // Older browsers do not send these headers.
    let is_absent_or = |name, expected: &str| headers.get(name).is_none_or(|value| value == expected);
    method.is_safe()
        && accepts_html(headers)
        && is_absent_or(FETCH_MODE, "navigate")
        && is_absent_or(FETCH_DEST, "document")
}
