//! The successful responses that several requests have in common.

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use serde::Serialize;

use crate::dialects::mailpit::error::Error;
use crate::response::success;

/// The content type of texts.
pub(crate) const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

/// The result of a handler.
pub(crate) type HandlerResult = Result<Response, Error>;

/// Returns the response of a change: the text `ok`.
pub(crate) fn ok() -> Response {
    let mut response = Response::new(Body::from("ok"));
    response.headers_mut().insert(header::CONTENT_TYPE, success::PLAIN);
    response.headers_mut().insert(header::CACHE_CONTROL, success::NO_STORE);
    response
}

/// Returns a value as JSON.
pub(crate) fn json(value: &impl Serialize) -> HandlerResult {
    Ok(success::no_store_json(value)?)
}
