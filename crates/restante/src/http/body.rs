//! The bodies of requests: of a bounded size, arrived in bounded time, and JSON for most.

use std::error::Error as _;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, header};
use bytes::Bytes;
use http_body::Body as _;
use http_body_util::LengthLimitError;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use super::problem::Problem;

/// How long a body may take to arrive.
const TIMEOUT: Duration = Duration::from_secs(30);

/// What a request says in JSON, in at most so many bytes; nothing when its body is empty.
pub(super) async fn json<T: DeserializeOwned>(request: Request, most: usize) -> Result<Option<T>, Problem> {
    let (parts, body) = request.into_parts();
    let body = read(body, most).await?;
    if body.is_empty() {
        return Ok(None);
    }
    if !is_json(&parts.headers) {
        return Err(Problem::NotJson);
    }
    serde_json::from_slice(&body).map(Some).map_err(Problem::BrokenJson)
}

/// How long a body becomes that may have at most so many bytes: what the client announces, or all of that. The length that
/// it announces is enough to say no; it need not send all that.
pub(super) fn announced(body: &Body, most: usize) -> Result<usize, Problem> {
    let hint = body.size_hint();
    if hint.lower() > most as u64 {
        return Err(Problem::TooLarge);
    }
    Ok(hint.exact().and_then(|length| length.try_into().ok()).unwrap_or(most))
}

/// The whole body, in at most so many bytes.
pub(super) async fn read(body: Body, most: usize) -> Result<Bytes, Problem> {
    announced(&body, most)?;
    let read = timeout(TIMEOUT, to_bytes(body, most)).await.map_err(|_| Problem::TooSlow)?;
    read.map_err(|error| match error.source() {
        Some(cause) if cause.is::<LengthLimitError>() => Problem::TooLarge,
        _ => Problem::Malformed("The body of the request cannot be read.".to_owned()),
    })
}

/// Whether the body is JSON by its content type; without one it is given the benefit of the doubt.
fn is_json(headers: &HeaderMap) -> bool {
    let Some(value) = headers.get(header::CONTENT_TYPE) else { return true };
    let essence = value.to_str().unwrap_or_default().split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    essence == "application/json" || (essence.starts_with("application/") && essence.ends_with("+json"))
}
