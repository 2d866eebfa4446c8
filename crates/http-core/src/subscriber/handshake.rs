//! The opening handshake of a WebSocket (RFC 6455 section 4.2), and the upgrade of the HTTP connection.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{FromRequestParts, OptionalFromRequestParts};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Version, header};
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use crate::response::problem::Problem;
use crate::server::Server;

/// The length of a decoded key.
const NONCE_BYTES: usize = 16;

/// A valid WebSocket handshake request.
pub struct Handshake {
    key: HeaderValue,
    upgrade: OnUpgrade,
}

impl FromRequestParts<Arc<Server>> for Handshake {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<Server>) -> Result<Self, Problem> {
        let headers = &parts.headers;
        let is_version_supported = headers.get(header::SEC_WEBSOCKET_VERSION).is_some_and(|version| version == "13");
        if !is_upgrade(parts) || !is_version_supported {
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

/// On paths that also have responses without WebSocket: `None` if the client does not request a WebSocket.
impl OptionalFromRequestParts<Arc<Server>> for Handshake {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, server: &Arc<Server>) -> Result<Option<Self>, Problem> {
        if !is_upgrade(parts) {
            return Ok(None);
        }
        <Self as FromRequestParts<_>>::from_request_parts(parts, server).await.map(Some)
    }
}

impl Handshake {
    /// Returns the response that switches the protocol. After it is sent, `serve` gets the connection, in its own task.
    pub fn accept<F>(self, serve: impl FnOnce(TokioIo<Upgraded>) -> F + Send + 'static) -> Response
    where
        F: Future<Output = ()> + Send,
    {
        let Self { key, upgrade } = self;
        tokio::spawn(async move {
            match upgrade.await {
                Ok(stream) => serve(TokioIo::new(stream)).await,
                Err(error) => tracing::debug!(%error, "WebSocket upgrade failed"),
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

/// Returns whether the client requests a WebSocket of any version. Over HTTP/2 it cannot.
fn is_upgrade(parts: &Parts) -> bool {
    parts.method == Method::GET
        && parts.version == Version::HTTP_11
        && has_token(&parts.headers, header::CONNECTION, "upgrade")
        && has_token(&parts.headers, header::UPGRADE, "websocket")
}

/// Returns the key if there is exactly one and it is valid (RFC 6455 sections 4.2.1 and 11.3.1).
fn single_key(headers: &HeaderMap) -> Option<HeaderValue> {
    let mut keys = headers.get_all(header::SEC_WEBSOCKET_KEY).into_iter();
    let (Some(key), None) = (keys.next(), keys.next()) else { return None };
    let nonce = STANDARD.decode(key.as_bytes()).ok()?;
    (nonce.len() == NONCE_BYTES).then(|| key.clone())
}

/// Returns whether the request has a body. It would be read as WebSocket frames.
fn has_body(headers: &HeaderMap) -> bool {
    let is_empty = |length: &HeaderValue| length == "0";
    headers.contains_key(header::TRANSFER_ENCODING) || !headers.get(header::CONTENT_LENGTH).is_none_or(is_empty)
}

/// Returns whether a header that is a list contains this token, in any case.
fn has_token(headers: &HeaderMap, name: HeaderName, token: &str) -> bool {
    let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|value| value.trim().eq_ignore_ascii_case(token))
}
