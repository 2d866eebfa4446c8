//! The pages, the icon and `robots.txt`. All pages are the same document, which reads its URL. The build script renders
//! it once for each depth of a path; the variants differ only in the relative path to the root. So the pages work under
//! every base path.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderName, HeaderValue, Uri, header};
use axum::response::Response;

use crate::response::embedded_assets::EmbeddedFile;
use crate::response::encoding::AcceptEncoding;
use crate::response::etag::IfNoneMatch;
use crate::response::problem::Problem;
use crate::response::success::permanent_redirect;
use crate::response::{embedded_assets, success};
use crate::state::Server;

const CONTENT_POLICY: HeaderValue = HeaderValue::from_static(embedded_assets::POLICY);
const PERMISSIONS: HeaderName = HeaderName::from_static("permissions-policy");
/// The web interface needs none of these.
const NO_PERMISSIONS: HeaderValue = HeaderValue::from_static(
    "accelerometer=(), camera=(), display-capture=(), geolocation=(), gyroscope=(), magnetometer=(), microphone=(), \
     midi=(), payment=(), usb=()",
);
const ONE_DAY: HeaderValue = HeaderValue::from_static("public, max-age=86400");

/// Returns a page at the root, such as `/monitor`.
pub(crate) async fn root_page(accept_encoding: AcceptEncoding, if_none_match: IfNoneMatch) -> Response {
    page(&embedded_assets::PAGES[0], &accept_encoding, &if_none_match)
}

/// Returns a page one level below the root, such as `/messages/{id}`.
pub(crate) async fn page_one_below(accept_encoding: AcceptEncoding, if_none_match: IfNoneMatch) -> Response {
    page(&embedded_assets::PAGES[1], &accept_encoding, &if_none_match)
}

/// Returns a page two levels below the root, such as `/m/{name}/{id}`.
pub(crate) async fn page_two_below(accept_encoding: AcceptEncoding, if_none_match: IfNoneMatch) -> Response {
    page(&embedded_assets::PAGES[2], &accept_encoding, &if_none_match)
}

/// Redirects from the base path without a slash to the inbox, because its relative links need a base
/// path that ends in a slash.
pub(crate) async fn redirect_to_home(State(server): State<Arc<Server>>) -> Result<Response, Problem> {
    permanent_redirect(format!("{}/", server.settings.base_path))
}

/// Redirects from `/m` and `/messages`, which name nothing, to the inbox.
pub(crate) async fn redirect_to_sibling_home() -> Result<Response, Problem> {
    permanent_redirect("./".to_owned())
}

/// Redirects from `/m/` and `/messages/`, which name nothing, to the inbox.
pub(crate) async fn redirect_to_parent() -> Result<Response, Problem> {
    permanent_redirect("../".to_owned())
}

/// Redirects from a page with a trailing slash to the page. The location is relative, so it is also correct with a
/// proxy that removes the base path.
pub(crate) async fn redirect_without_slash(uri: Uri) -> Result<Response, Problem> {
    let last = uri.path().strip_suffix('/').and_then(|path| path.rsplit('/').next()).unwrap_or_default();
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    permanent_redirect(format!("../{last}{query}"))
}

/// Returns the icon of the web interface. It is SVG, also at `/favicon.ico`: browsers accept that.
pub(crate) async fn icon(accept_encoding: AcceptEncoding, if_none_match: IfNoneMatch) -> Response {
    let mut response = embedded_assets::ICON.response(&accept_encoding, &if_none_match);
    response.headers_mut().insert(header::CACHE_CONTROL, ONE_DAY);
    response
}

/// Excludes search engines.
pub(crate) async fn robots() -> Response {
    let mut response = Response::new(Body::from("User-agent: *\nDisallow: /\n"));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response.headers_mut().insert(header::CACHE_CONTROL, success::NO_CACHE);
    response
}

fn page(page: &'static EmbeddedFile, accept_encoding: &AcceptEncoding, if_none_match: &IfNoneMatch) -> Response {
    let mut response = page.response(accept_encoding, if_none_match);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, CONTENT_POLICY);
    headers.insert(header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    headers.insert(header::REFERRER_POLICY, success::NO_REFERRER);
    headers.insert(PERMISSIONS, NO_PERMISSIONS);
    headers.insert(header::CACHE_CONTROL, success::NO_CACHE);
    response
}
