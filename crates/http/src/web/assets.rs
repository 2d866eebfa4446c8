//! The files that the pages load. Their paths contain a hash of all files, so browsers may cache them forever.

use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::http::{HeaderValue, header};
use axum::response::Response;

use crate::response::embedded_assets;
use crate::response::embedded_assets::EmbeddedFile;
use crate::response::encoding::AcceptEncoding;
use crate::response::etag::IfNoneMatch;
use crate::response::problem::Problem;

/// For files that never change under their path (RFC 8246).
const IMMUTABLE: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");

/// Returns a file. A request with the hash of another version gets 404, so that caches do not store the wrong file.
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
