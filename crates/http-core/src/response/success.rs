//! Successful responses: their headers, and bodies that are not a single run of bytes.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use restante_mail::message::Source;
use serde::Serialize;
use utoipa::ToSchema;

use crate::response::etag::IfNoneMatch;
use crate::response::json;
use crate::response::problem::{Problem, internal_error};

/// The content type of JSON responses.
pub const JSON: HeaderValue = HeaderValue::from_static("application/json; charset=utf-8");
/// The content type of HTML documents.
pub const HTML: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");
/// The content type of texts in UTF-8.
pub const UTF8_TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
/// The content type of the source of a message.
pub const PLAIN: HeaderValue = HeaderValue::from_static("text/plain");
/// The response must not be cached.
pub const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
/// The response may be cached, but must be validated before it is reused.
pub const NO_CACHE: HeaderValue = HeaderValue::from_static("no-cache");

/// Only the browser may cache the response, and it must validate it, so that a deleted message is not shown.
pub const PRIVATE: HeaderValue = HeaderValue::from_static("private, no-cache");
/// Forbids browsers to send the URL of the page to the target of a link.
pub const NO_REFERRER: HeaderValue = HeaderValue::from_static("no-referrer");
/// The value of policies that allow only the own origin.
pub const SAME_ORIGIN: HeaderValue = HeaderValue::from_static("same-origin");

/// The result of an operation without data.
#[derive(Serialize, ToSchema)]
pub enum Done {
    /// The only value.
    #[serde(rename = "OK")]
    Ok,
}

/// Returns the response of an operation without data.
pub fn done() -> Result<Response, Problem> {
    Ok(api_response(JSON, Body::from(json::body(&Done::Ok)?)))
}

/// Returns a JSON response with an entity tag.
pub fn json(body: Bytes, tag: HeaderValue) -> Response {
    with_etag(api_response(JSON, Body::from(body)), tag)
}

/// Returns a JSON response with an entity tag, unless the client has it already. `body` is polled only if it is needed.
pub async fn json_unless_match(
    if_none_match: &IfNoneMatch,
    tag: HeaderValue,
    body: impl Future<Output = Result<Bytes, Problem>>,
) -> Result<Response, Problem> {
    if if_none_match.matches(&tag) { Ok(not_modified(JSON, tag)) } else { Ok(json(body.await?, tag)) }
}

/// Returns a value as a JSON response that must not be cached.
pub fn no_store_json(value: &impl Serialize) -> Result<Response, Problem> {
    Ok(no_store_body(json::body(value)?))
}

/// Returns a JSON object with one member as a response that must not be cached.
pub fn no_store_member(name: &str, value: impl Serialize) -> Result<Response, Problem> {
    no_store_json(&BTreeMap::from([(name, value)]))
}

/// Returns a JSON response that must not be cached.
pub fn no_store_body(body: Bytes) -> Response {
    let mut response = api_response(JSON, Body::from(body));
    response.headers_mut().insert(header::CACHE_CONTROL, NO_STORE);
    response
}

/// Returns the source of a message. Does not copy it.
pub fn source(source: Source, tag: HeaderValue) -> Response {
    with_etag(api_response(PLAIN, Body::new(TwoPartBody { first: source.trace, second: source.body })), tag)
}

/// Returns the response that the client has the current version already. It has the headers of the complete response.
pub fn not_modified(content_type: HeaderValue, tag: HeaderValue) -> Response {
    let mut response = with_etag(api_response(content_type, Body::new(NoBody)), tag);
    *response.status_mut() = StatusCode::NOT_MODIFIED;
    response
}

/// The number of headers of most responses, with the headers that are added to every response. A map with this capacity does not grow, which would
/// copy all headers.
const HEADER_COUNT: usize = 10;

fn api_response(content_type: HeaderValue, body: Body) -> Response {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    *headers = HeaderMap::with_capacity(HEADER_COUNT);
    headers.insert(header::CONTENT_TYPE, content_type);
    // Inbucket's way to prevent caching.
    headers.insert(header::EXPIRES, HeaderValue::from_static("-1"));
    response
}

fn with_etag(mut response: Response, tag: HeaderValue) -> Response {
    response.headers_mut().insert(header::ETAG, tag);
    response
}

/// Redirects a GET to another path. Some existing clients support 301 but not 308.
pub fn moved_permanently(location: String) -> Result<Response, Problem> {
    redirect_with(StatusCode::MOVED_PERMANENTLY, location, NO_CACHE)
}

/// Redirects to another path, with the same method.
pub fn permanent_redirect(location: String) -> Result<Response, Problem> {
    redirect_with(StatusCode::PERMANENT_REDIRECT, location, NO_CACHE)
}

/// Redirects a GET to another path, for now.
pub fn found(location: String) -> Result<Response, Problem> {
    redirect_with(StatusCode::FOUND, location, NO_STORE)
}

/// Redirects to another path, with GET.
pub fn see_other(location: String) -> Result<Response, Problem> {
    redirect_with(StatusCode::SEE_OTHER, location, NO_STORE)
}

fn redirect_with(status: StatusCode, location: String, cache_control: HeaderValue) -> Result<Response, Problem> {
    let location = HeaderValue::try_from(location).map_err(|error| internal_error(&error))?;
    Ok((status, [(header::LOCATION, location), (header::CACHE_CONTROL, cache_control)]).into_response())
}

/// A body of two parts.
pub struct TwoPartBody {
    /// The first part.
    pub first: Bytes,
    /// The second part.
    pub second: Bytes,
}

impl http_body::Body for TwoPartBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let mut part = std::mem::take(&mut self.first);
        if part.is_empty() {
            part = std::mem::take(&mut self.second);
        }
        Poll::Ready(if part.is_empty() { None } else { Some(Ok(Frame::data(part))) })
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_empty() && self.second.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact((self.first.len() + self.second.len()) as u64)
    }
}

/// No body. This is not the same as a body of length zero: a 304 may only have the length of the complete response (RFC
/// 9110 section 8.6).
pub struct NoBody;

impl http_body::Body for NoBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(None)
    }

    fn is_end_stream(&self) -> bool {
        true
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::new()
    }
}
