//! The successful responses that several requests have in common.

use axum::body::Body;
use axum::http::header;
use axum::response::Response;
use bytes::Bytes;
use serde::Serialize;

use crate::dialects::mailpit::error::{Error, JSON};
use crate::response::{json, success};

/// The result of a handler.
pub(crate) type HandlerResult = Result<Response, Error>;

/// Returns the response of a change: the text `ok`.
pub(crate) fn ok() -> Response {
    let mut response = Response::new(Body::from("ok"));
    response.headers_mut().insert(header::CONTENT_TYPE, success::PLAIN);
    response.headers_mut().insert(header::CACHE_CONTROL, success::NO_STORE);
    response
}

/// Returns an empty text, as a response to OPTIONS.
pub(crate) async fn empty() -> Response {
    let mut response = ok();
    *response.body_mut() = Body::empty();
    response
}

/// Returns a value as JSON.
pub(crate) fn json(value: &impl Serialize) -> HandlerResult {
    Ok(json_body(json::body(value)?))
}

/// Returns a rendered value as JSON.
pub(crate) fn json_body(body: Bytes) -> Response {
    let mut response = success::no_store_body(body);
    response.headers_mut().insert(header::CONTENT_TYPE, JSON);
    response
}
