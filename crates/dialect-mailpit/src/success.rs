//! The successful responses that several requests have in common.

use axum::body::Body;
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use restante_http_core::response::{json, success};
use serde::Serialize;

use crate::error::{HandlerResult, JSON};

/// Returns the response of a change: the text `ok`.
pub(crate) fn ok() -> Response {
    text("ok".into())
}

/// Returns an empty text, as a response to OPTIONS.
pub(crate) async fn empty() -> Response {
    text(Body::empty())
}

fn text(body: Body) -> Response {
    ([(header::CONTENT_TYPE, success::PLAIN), (header::CACHE_CONTROL, success::NO_STORE)], body).into_response()
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
