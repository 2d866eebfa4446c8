//! What a browser finds where a person would look: the pages, an icon, and a word to robots. All pages are the same one,
//! which looks at its address; it differs only in the way from there to the root, so that it is the same under every base
//! path. The build has made it.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderName, HeaderValue, Uri, header};
use axum::response::Response;

use crate::response::embedded_assets::Packed;
use crate::response::encoding::AcceptEncoding;
use crate::response::etag::IfNoneMatch;
use crate::response::problem::Problem;
use crate::response::success::permanent_redirect;
use crate::response::{embedded_assets, success};
use crate::state::Server;

const CONTENT_POLICY: HeaderValue = HeaderValue::from_static(embedded_assets::POLICY);
const PERMISSIONS: HeaderName = HeaderName::from_static("permissions-policy");
/// A page that shows mail needs none of these.
const NO_PERMISSIONS: HeaderValue = HeaderValue::from_static(
    "accelerometer=(), camera=(), display-capture=(), geolocation=(), gyroscope=(), magnetometer=(), microphone=(), \
     midi=(), payment=(), usb=()",
);
const ONE_DAY: HeaderValue = HeaderValue::from_static("public, max-age=86400");

/// A page at the root, such as `/monitor`.
pub(crate) async fn root_page(accepted: AcceptEncoding, known: IfNoneMatch) -> Response {
    page(&embedded_assets::PAGES[0], &accepted, &known)
}

/// A page one step below, such as `/m/{name}`.
pub(crate) async fn page_one_below(accepted: AcceptEncoding, known: IfNoneMatch) -> Response {
    page(&embedded_assets::PAGES[1], &accepted, &known)
}

/// A page two steps below, such as `/m/{name}/{id}`.
pub(crate) async fn page_two_below(accepted: AcceptEncoding, known: IfNoneMatch) -> Response {
    page(&embedded_assets::PAGES[2], &accepted, &known)
}

/// Leads from the bare base path to the page: its relative links start at a slash.
pub(crate) async fn redirect_to_home(State(server): State<Arc<Server>>) -> Result<Response, Problem> {
    permanent_redirect(format!("{}/", server.settings.base_path))
}

/// Leads from `/m/`, where no mailbox is named, to the page where one can be.
pub(crate) async fn redirect_up() -> Result<Response, Problem> {
    permanent_redirect("../".to_owned())
}

/// Leads from the path of a page with a slash at its end to the page. The way is relative, so that it is the right one
/// also behind a proxy that takes the base path away.
pub(crate) async fn redirect_without_slash(uri: Uri) -> Result<Response, Problem> {
    let last = uri.path().strip_suffix('/').and_then(|path| path.rsplit('/').next()).unwrap_or_default();
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    permanent_redirect(format!("../{last}{query}"))
}

/// The icon of the web interface; browsers do not mind that it is no ICO file.
pub(crate) async fn icon(accepted: AcceptEncoding, known: IfNoneMatch) -> Response {
    let mut response = embedded_assets::ICON.answer(&accepted, &known);
    response.headers_mut().insert(header::CACHE_CONTROL, ONE_DAY);
    response
}

/// Somebody's test mail belongs in no search engine.
pub(crate) async fn robots() -> Response {
    let mut response = Response::new(Body::from("User-agent: *\nDisallow: /\n"));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response.headers_mut().insert(header::CACHE_CONTROL, success::NO_CACHE);
    response
}

fn page(page: &'static Packed, accepted: &AcceptEncoding, known: &IfNoneMatch) -> Response {
    let mut response = page.answer(accepted, known);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, CONTENT_POLICY);
    headers.insert(header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    headers.insert(header::REFERRER_POLICY, success::NO_REFERRER);
    headers.insert(PERMISSIONS, NO_PERMISSIONS);
    headers.insert(header::CACHE_CONTROL, success::NO_CACHE);
    response
}
