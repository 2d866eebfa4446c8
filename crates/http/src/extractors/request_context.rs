//! What is known of a request before anybody answers it: the marks that the door leaves on it, and what can be read off it.
//! Whether it may pass is not decided here.

use std::sync::Arc;

use axum::extract::{FromRequestParts, MatchedPath, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, header};

use crate::response::problem::Problem;
use crate::state::{Server, Settings};

/// Where the page is that asks, as newer browsers say it.
pub(crate) const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// How the client sees the server; every admitted request carries it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RequestHost {
    /// `http` or `https`.
    pub(crate) scheme: &'static str,
    /// The host and, where it was given, the port. Harmless in a link: it holds nothing that needs escapes.
    pub(crate) authority: Box<str>,
}

/// A mark on requests of pages that the operator has allowed; `middleware::request_checks` lets them pass.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AllowedOrigin;

/// The URL under which the client sees the service: the configured one, otherwise as the request names it.
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

/// Which of our paths a request is for, without the base path and with names in the place of values; empty when it is none.
pub(crate) fn route_template<'r>(settings: &Settings, request: &'r Request) -> &'r str {
    let path = request.extensions().get::<MatchedPath>().map_or("", MatchedPath::as_str);
    let below = path.strip_prefix(&settings.base_path).filter(|rest| rest.is_empty() || rest.starts_with('/'));
    below.unwrap_or(path)
}

/// Whether a request says where it comes from, which `middleware::request_checks` has then found to be here.
pub(crate) fn has_origin(headers: &HeaderMap) -> bool {
    headers.contains_key(header::ORIGIN) || headers.contains_key(FETCH_SITE)
}
