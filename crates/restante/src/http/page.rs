//! What a browser finds at the root: a short page that says what this is and how to read mail, and a word to robots.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use bytes::Bytes;

use super::Server;

/// Where robots look.
pub(super) const ROBOTS: &str = "/robots.txt";

const HTML: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

/// The page has nothing but text and links, and nobody frames it.
const CONTENT_POLICY: HeaderValue =
    HeaderValue::from_static("default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'");

/// The home page, made once.
pub(super) struct Page(Bytes);

impl Page {
    /// The page with links under this base path, which holds nothing that HTML would have to escape.
    pub(super) fn new(base: &str) -> Self {
        Self(include_str!("home.html").replace("{base}", base).into())
    }
}

/// The home page.
pub(super) async fn home(State(server): State<Arc<Server>>) -> Response {
    let mut response = page(HTML, server.home.0.clone());
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, CONTENT_POLICY);
    response.headers_mut().insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}

/// Somebody's test mail belongs in no search engine.
pub(super) async fn robots() -> Response {
    page(TEXT, Bytes::from_static(b"User-agent: *\nDisallow: /\n"))
}

fn page(content_type: HeaderValue, body: Bytes) -> Response {
    let mut response = Response::new(Body::from(body));
    response.headers_mut().insert(header::CONTENT_TYPE, content_type);
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}
