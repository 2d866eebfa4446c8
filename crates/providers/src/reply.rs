//! Responses in the forms of the providers.

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use restante_http_core::response::success::NO_STORE;
use serde::Serialize;

/// A response that is completely in memory, so that it can be recorded in a transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    pub(crate) body: Bytes,
}

impl Reply {
    /// Returns a response without a body.
    pub(crate) fn empty(status: StatusCode) -> Self {
        Self { status, headers: Vec::new(), body: Bytes::new() }
    }

    /// Returns a response with a value as JSON.
    pub(crate) fn json(status: StatusCode, value: &impl Serialize) -> Self {
        match serde_json::to_vec(value) {
            Ok(body) => Self::empty(status).with_body("application/json", body),
            // Maps with keys that are not texts. No reply has them.
            Err(_) => Self::empty(StatusCode::INTERNAL_SERVER_ERROR),
        }
    }

    /// Adds a body of this content type.
    pub(crate) fn with_body(self, content_type: &'static str, body: impl Into<Bytes>) -> Self {
        Self { body: body.into(), ..self.with(header::CONTENT_TYPE, content_type) }
    }

    /// Adds a header field. A value that cannot be in a header is left out.
    pub(crate) fn with(mut self, name: HeaderName, value: impl TryInto<HeaderValue>) -> Self {
        if let Ok(value) = value.try_into() {
            self.headers.push((name, value));
        }
        self
    }
}

impl IntoResponse for Reply {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::from(self.body));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(header::CACHE_CONTROL, NO_STORE);
        headers.extend(self.headers);
        response
    }
}
