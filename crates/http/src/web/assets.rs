//! The files that the pages ask for. Their paths hold a hash over all of them, so that a browser may keep them for ever.

use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::http::{HeaderValue, header};
use axum::response::Response;

use crate::response::embedded_assets;
use crate::response::embedded_assets::Packed;
use crate::response::encoding::AcceptEncoding;
use crate::response::etag::IfNoneMatch;
use crate::response::problem::Problem;

/// What never changes under its path (RFC 8246).
const IMMUTABLE: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");

/// A file. The hash of another version is unknown: what it stood for is not here, and no cache may believe otherwise.
pub(crate) async fn asset(
    path: Result<Path<(String, String)>, PathRejection>,
    accepted: AcceptEncoding,
    known: IfNoneMatch,
) -> Result<Response, Problem> {
    let Ok(Path((hash, path))) = path else { return Err(Problem::NoSuchPath) };
    let file = find(&path).filter(|_| hash == embedded_assets::HASH).ok_or(Problem::NoSuchPath)?;
    let mut response = file.answer(&accepted, &known);
    response.headers_mut().insert(header::CACHE_CONTROL, IMMUTABLE);
    Ok(response)
}

fn find(path: &str) -> Option<&'static Packed> {
    let at = embedded_assets::ASSETS.binary_search_by_key(&path, |(path, _)| path).ok()?;
    Some(&embedded_assets::ASSETS[at].1)
}
