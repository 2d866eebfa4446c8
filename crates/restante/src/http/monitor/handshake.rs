//! The opening handshake of a WebSocket (RFC 6455 section 4.2), and the way from HTTP to it.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Version, header};
use axum::response::Response;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use crate::http::Server;
use crate::http::problem::Problem;

/// The length of a key: sixteen bytes in base64.
const KEY: usize = 24;

/// A valid request for a WebSocket.
pub(in crate::http) struct Handshake {
    key: HeaderValue,
    upgrade: OnUpgrade,
}

impl FromRequestParts<Arc<Server>> for Handshake {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<Server>) -> Result<Self, Problem> {
        let headers = &parts.headers;
        let wanted = parts.method == Method::GET
            && parts.version == Version::HTTP_11
            && lists(headers, header::CONNECTION, "upgrade")
            && lists(headers, header::UPGRADE, "websocket")
            && headers.get(header::SEC_WEBSOCKET_VERSION).is_some_and(|version| version == "13");
        if !wanted {
            return Err(Problem::NoWebSocket);
        }
        let key = headers.get(header::SEC_WEBSOCKET_KEY).filter(|key| key.len() == KEY).cloned();
        let key = key.ok_or_else(|| Problem::Malformed("The Sec-WebSocket-Key is missing or malformed.".to_owned()))?;
        let upgrade = parts.extensions.remove().ok_or(Problem::NoWebSocket)?;
        Ok(Self { key, upgrade })
    }
}

impl Handshake {
    /// The answer that changes the protocol. When the client has it, `serve` gets the connection, in a task of its own.
    pub(super) fn accept<F>(self, serve: impl FnOnce(TokioIo<Upgraded>) -> F + Send + 'static) -> Response
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

/// Whether a header that is a list has this token, in any case.
fn lists(headers: &HeaderMap, name: HeaderName, token: &str) -> bool {
    let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|value| value.trim().eq_ignore_ascii_case(token))
}
