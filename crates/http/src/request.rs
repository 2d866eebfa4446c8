//! What is known of a request before anybody answers it: the marks that the door leaves on it, and what can be read off it.
//! Whether it may pass is not decided here.

use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderMap, HeaderName, header};

use super::Settings;

/// Where the page is that asks, as newer browsers say it.
pub(super) const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// How the client sees the server; every admitted request carries it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Visit {
    /// `http` or `https`.
    pub(super) scheme: &'static str,
    /// The host and, where it was given, the port. Harmless in a link: it holds nothing that needs escapes.
    pub(super) authority: Box<str>,
}

/// A mark on requests of pages that the operator has allowed; `guard` lets them pass.
#[derive(Clone, Copy, Debug)]
pub(super) struct Welcome;

/// Which of our paths a request is for, without the base path and with names in the place of values; empty when it is none.
pub(super) fn template<'r>(settings: &Settings, request: &'r Request) -> &'r str {
    let path = request.extensions().get::<MatchedPath>().map_or("", MatchedPath::as_str);
    let below = path.strip_prefix(&settings.base_path).filter(|rest| rest.is_empty() || rest.starts_with('/'));
    below.unwrap_or(path)
}

/// Whether a request says where it comes from, which `guard` has then found to be here.
pub(super) fn has_origin(headers: &HeaderMap) -> bool {
    headers.contains_key(header::ORIGIN) || headers.contains_key(FETCH_SITE)
}
