//! The opening handshake of a WebSocket (RFC 6455 section 4.2), and the way from HTTP to it.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Version, header};
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use crate::response::problem::Problem;
use crate::state::Server;

/// The length of a key, base64 undone.
const NONCE_BYTES: usize = 16;

/// A valid request for a WebSocket.
pub(crate) struct Handshake {
    key: HeaderValue,
    upgrade: OnUpgrade,
}

impl FromRequestParts<Arc<Server>> for Handshake {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<Server>) -> Result<Self, Problem> {
        let headers = &parts.headers;
        let wanted = parts.method == Method::GET
            && parts.version == Version::HTTP_11
            && has_token(headers, header::CONNECTION, "upgrade")
            && has_token(headers, header::UPGRADE, "websocket")
            && headers.get(header::SEC_WEBSOCKET_VERSION).is_some_and(|version| version == "13");
        if !wanted {
            return Err(Problem::WebSocketRequired);
        }
        if has_body(headers) {
            return Err(Problem::Malformed("A request for a WebSocket has no body.".to_owned()));
        }
        let key = single_key(headers)
            .ok_or_else(|| Problem::Malformed("The Sec-WebSocket-Key is missing or malformed.".to_owned()))?;
        let upgrade = parts.extensions.remove().ok_or(Problem::WebSocketRequired)?;
        Ok(Self { key, upgrade })
    }
}

impl Handshake {
    /// The answer that changes the protocol. When the client has it, `serve` gets the connection, in a task of its own.
    pub(crate) fn accept<F>(self, serve: impl FnOnce(TokioIo<Upgraded>) -> F + Send + 'static) -> Response
    where
        F: Future<Output = ()> + Send,
    {
        let Self { key, upgrade } = self;
        tokio::spawn(async move {
            match upgrade.await {
                Ok(stream) => serve(TokioIo::new(stream)).await,
                Err(error) => tracing::debug!(%error, "a WebSocket did not come about"),
            }
        });
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let headers = response.headers_mut();
        headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        if let Ok(accepted) = HeaderValue::try_from(derive_accept_key(key.as_bytes())) {
            headers.insert(header::SEC_WEBSOCKET_ACCEPT, accepted);
        }
        response
    }
}

/// The key, when there is just one and it is one (RFC 6455 sections 4.2.1 and 11.3.1).
fn single_key(headers: &HeaderMap) -> Option<HeaderValue> {
    let mut keys = headers.get_all(header::SEC_WEBSOCKET_KEY).into_iter();
    let (Some(key), None) = (keys.next(), keys.next()) else { return None };
    let nonce = STANDARD.decode(key.as_bytes()).ok()?;
    (nonce.len() == NONCE_BYTES).then(|| key.clone())
}

/// What follows the head of such a request would be taken for frames.
fn has_body(headers: &HeaderMap) -> bool {
    let is_empty = |length: &HeaderValue| length == "0";
    headers.contains_key(header::TRANSFER_ENCODING) || !headers.get(header::CONTENT_LENGTH).is_none_or(is_empty)
}

/// Whether a header that is a list has this token, in any case.
fn has_token(headers: &HeaderMap, name: HeaderName, token: &str) -> bool {
    let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|value| value.trim().eq_ignore_ascii_case(token))
}
