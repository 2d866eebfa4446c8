//! The host of a request, its route and whether its origin is allowed, as middleware has determined them. The checks
//! are in `middleware::request_checks`.

use std::sync::Arc;

use axum::extract::{FromRequestParts, MatchedPath, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, header};

use crate::response::problem::Problem;
use crate::state::{Server, Settings};

/// The header in which newer browsers send whether the requesting page has the same origin, the same site or another
/// site.
pub(crate) const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The scheme and host under which the client sees the server. Every accepted request carries it as an extension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RequestHost {
    /// `http` or `https`.
    pub(crate) scheme: &'static str,
    /// The host and, if given, the port. It contains no characters that need escapes in a link.
    pub(crate) authority: Box<str>,
}

/// Marks requests of web pages whose origin CORS allows. `middleware::request_checks` accepts them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AllowedOrigin;

/// The URL under which the client sees the server: the configured one, otherwise the one in the request.
#[derive(Clone, Debug)]
pub(crate) struct BaseUrl(pub(crate) Arc<str>);

impl FromRequestParts<Arc<Server>> for BaseUrl {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, server: &Arc<Server>) -> Result<Self, Problem> {
        if let Some(url) = &server.settings.public_url {
            return Ok(Self(url.as_str().into()));
        }
        let RequestHost { scheme, authority } = parts.extensions.get().ok_or(Problem::BadHost)?;
        Ok(Self(format!("{scheme}://{authority}{}", server.settings.base_path).into()))
    }
}

/// Returns the route template of a request without the base path, such as `/m/{name}`. It is empty if no route matches.
pub(crate) fn route_template<'r>(settings: &Settings, request: &'r Request) -> &'r str {
    let path = request.extensions().get::<MatchedPath>().map_or("", MatchedPath::as_str);
    let below = path.strip_prefix(&settings.base_path).filter(|rest| rest.is_empty() || rest.starts_with('/'));
    below.unwrap_or(path)
}

/// Returns whether a browser sent the origin of the request. `middleware::request_checks` has then checked it.
pub(crate) fn has_origin(headers: &HeaderMap) -> bool {
    headers.contains_key(header::ORIGIN) || headers.contains_key(FETCH_SITE)
}
