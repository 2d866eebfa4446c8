//! The pages, the files that they load, the icon and `robots.txt`. All pages are the same document, which reads its URL.
//! The build script renders it once for each depth of a path; the variants differ only in the relative path to the root.
//! So the pages work under every base path.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderName, HeaderValue, Uri, header};
use axum::response::{IntoResponse as _, Response};
use restante_http_connection::clean_path::path_and_query;
use restante_http_core::response::encoding::AcceptEncoding;
use restante_http_core::response::etag::IfNoneMatch;
use restante_http_core::response::problem::Problem;
use restante_http_core::response::success::{self, permanent_redirect};
use restante_http_core::server::Server;

use crate::embedded_assets::{self, EmbeddedFile};

const CONTENT_POLICY: HeaderValue = HeaderValue::from_static(embedded_assets::POLICY);
const PERMISSIONS: HeaderName = HeaderName::from_static("permissions-policy");
/// The web interface needs none of these.
const NO_PERMISSIONS: HeaderValue = HeaderValue::from_static(
    "accelerometer=(), camera=(), display-capture=(), geolocation=(), gyroscope=(), magnetometer=(), microphone=(), \
     midi=(), payment=(), usb=()",
);
const ONE_DAY: HeaderValue = HeaderValue::from_static("public, max-age=86400");
/// For files that never change under their path (RFC 8246).
const IMMUTABLE: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");

/// Returns the page for paths of this depth: 0 for a page such as `/monitor`, 1 for one such as `/messages/{id}`.
pub(crate) async fn page<const DEPTH: usize>(accept_encoding: AcceptEncoding, if_none_match: IfNoneMatch) -> Response {
    let mut response = embedded_assets::PAGES[DEPTH].response(&accept_encoding, &if_none_match);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, CONTENT_POLICY);
    headers.insert(header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    headers.insert(header::REFERRER_POLICY, success::NO_REFERRER);
    headers.insert(PERMISSIONS, NO_PERMISSIONS);
    headers.insert(header::CACHE_CONTROL, success::NO_CACHE);
    response
}

/// Redirects from the base path without a slash to the inbox, because its relative links need a base
/// path that ends in a slash.
pub async fn redirect_to_home(State(server): State<Arc<Server>>) -> Result<Response, Problem> {
    permanent_redirect(format!("{}/", server.settings.base_path))
}

/// Redirects from a page with a trailing slash to the page. The location is relative, so it is also correct with a
/// proxy that removes the base path.
pub(crate) async fn redirect_without_slash(uri: Uri) -> Result<Response, Problem> {
    let last = uri.path().strip_suffix('/').and_then(|path| path.rsplit('/').next()).unwrap_or_default();
    permanent_redirect(path_and_query(&uri, &format!("../{last}")))
}

/// Returns the icon of the web interface. It is SVG, also at `/favicon.ico`: browsers accept that.
pub(crate) async fn icon(accept_encoding: AcceptEncoding, if_none_match: IfNoneMatch) -> Response {
    let mut response = embedded_assets::ICON.response(&accept_encoding, &if_none_match);
    response.headers_mut().insert(header::CACHE_CONTROL, ONE_DAY);
    response
}

/// Excludes search engines.
pub(crate) async fn robots() -> Response {
    let headers = [(header::CONTENT_TYPE, success::UTF8_TEXT), (header::CACHE_CONTROL, success::NO_CACHE)];
    (headers, Body::from("User-agent: *\nDisallow: /\n")).into_response()
}

/// Returns a file that pages load. Its path contains a hash of all files. A request with the hash of another version
/// gets 404, so that caches do not store the wrong file.
pub(crate) async fn asset(
    path: Result<Path<(String, String)>, PathRejection>,
    accept_encoding: AcceptEncoding,
    if_none_match: IfNoneMatch,
) -> Result<Response, Problem> {
    let Ok(Path((hash, path))) = path else { return Err(Problem::NoSuchPath) };
    let file = find(&path).filter(|_| hash == embedded_assets::HASH).ok_or(Problem::NoSuchPath)?;
    let mut response = file.response(&accept_encoding, &if_none_match);
    response.headers_mut().insert(header::CACHE_CONTROL, IMMUTABLE);
    Ok(response)
}

fn find(path: &str) -> Option<&'static EmbeddedFile> {
    let at = embedded_assets::ASSETS.binary_search_by_key(&path, |(path, _)| path).ok()?;
    Some(&embedded_assets::ASSETS[at].1)
}
