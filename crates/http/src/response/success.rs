//! Successful answers: their headers, and the bodies that need more than a run of bytes.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use restante_mail::message::Source;
use serde::Serialize;
use utoipa::ToSchema;

use crate::response::json;
use crate::response::problem::{Problem, internal_error};

/// The type of everything that the REST API says in JSON.
pub(crate) const JSON: HeaderValue = HeaderValue::from_static("application/json; charset=utf-8");
/// The type of what a browser shows as a document.
pub(crate) const HTML: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");
/// The type of a message's source.
pub(crate) const PLAIN: HeaderValue = HeaderValue::from_static("text/plain");
/// How to say that an old answer is no answer.
pub(crate) const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
/// How to say that an old answer may be kept, but not be used before it was asked whether it is still good.
pub(crate) const NO_CACHE: HeaderValue = HeaderValue::from_static("no-cache");

/// What is deleted shall be gone: a browser may keep its copy of mail only to ask whether it is still good.
pub(crate) const PRIVATE: HeaderValue = HeaderValue::from_static("private, no-cache");
/// Forbids browsers to send the address of the page to the target of a link.
pub(crate) const NO_REFERRER: HeaderValue = HeaderValue::from_static("no-referrer");
/// The value of a policy that allows the own origin only.
pub(crate) const SAME_ORIGIN: HeaderValue = HeaderValue::from_static("same-origin");

/// That it was done.
#[derive(Serialize, ToSchema)]
pub(crate) enum Done {
    #[serde(rename = "OK")]
    Ok,
}

/// The answer of an operation that only has to say that it was done.
pub(crate) fn done() -> Result<Response, Problem> {
    Ok(api_response(JSON, Body::from(json::body(&Done::Ok)?)))
}

/// JSON that the client can ask for again by its tag.
pub(crate) fn json(body: Bytes, tag: HeaderValue) -> Response {
    with_etag(api_response(JSON, Body::from(body)), tag)
}

/// A value as JSON without a tag, which is never to be kept.
pub(crate) fn no_store_json(value: &impl Serialize) -> Result<Response, Problem> {
    Ok(no_store_body(json::body(value)?))
}

/// JSON without a tag, which is never to be kept.
pub(crate) fn no_store_body(body: Bytes) -> Response {
    let mut response = api_response(JSON, Body::from(body));
    response.headers_mut().insert(header::CACHE_CONTROL, NO_STORE);
    response
}

/// The source of a message, which is sent without being copied.
pub(crate) fn source(source: Source, tag: HeaderValue) -> Response {
    with_etag(api_response(PLAIN, Body::new(TwoPartBody { first: source.trace, second: source.body })), tag)
}

/// The client has the answer already; the headers are those it would have got with it.
pub(crate) fn not_modified(content_type: HeaderValue, tag: HeaderValue) -> Response {
    let mut response = with_etag(api_response(content_type, Body::new(NoBody)), tag);
    *response.status_mut() = StatusCode::NOT_MODIFIED;
    response
}

fn api_response(content_type: HeaderValue, body: Body) -> Response {
    let mut response = Response::new(body);
    response.headers_mut().insert(header::CONTENT_TYPE, content_type);
    // The specification's way to say that every answer is already old.
    response.headers_mut().insert(header::EXPIRES, HeaderValue::from_static("-1"));
    response
}

fn with_etag(mut response: Response, tag: HeaderValue) -> Response {
    response.headers_mut().insert(header::ETAG, tag);
    response
}

/// Redirects a read to another path. Some clients in use know 301 and not 308.
pub(crate) fn moved_permanently(location: String) -> Result<Response, Problem> {
    redirect_with(StatusCode::MOVED_PERMANENTLY, location, NO_CACHE)
}

/// Redirects to another path, with the same method.
pub(crate) fn permanent_redirect(location: String) -> Result<Response, Problem> {
    redirect_with(StatusCode::PERMANENT_REDIRECT, location, NO_CACHE)
}

/// Redirects to another path, with GET.
pub(crate) fn see_other(location: String) -> Result<Response, Problem> {
    redirect_with(StatusCode::SEE_OTHER, location, NO_STORE)
}

fn redirect_with(status: StatusCode, location: String, cache_control: HeaderValue) -> Result<Response, Problem> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response.headers_mut().insert(header::LOCATION, location.try_into().map_err(|error| internal_error(&error))?);
    response.headers_mut().insert(header::CACHE_CONTROL, cache_control);
    Ok(response)
}

/// A body of two pieces.
struct TwoPartBody {
    first: Bytes,
    second: Bytes,
}

impl http_body::Body for TwoPartBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let mut piece = std::mem::take(&mut self.first);
        if piece.is_empty() {
            piece = std::mem::take(&mut self.second);
        }
        Poll::Ready(if piece.is_empty() { None } else { Some(Ok(Frame::data(piece))) })
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_empty() && self.second.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact((self.first.len() + self.second.len()) as u64)
    }
}

/// No body at all, which is not the same as a body of length zero: a 304 may only tell the length of the answer that it
/// stands for (RFC 9110 section 8.6).
pub(crate) struct NoBody;

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
