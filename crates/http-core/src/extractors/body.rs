//! Reads request bodies, with limits on size and time. Most of them are JSON.

use std::error::Error as _;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, header};
use bytes::Bytes;
use http_body::Body as _;
use http_body_util::{BodyExt as _, LengthLimitError};
use restante_http_connection::memory::SMALL_BYTES;
use restante_net::{Deadline, Reservation};
use serde::de::DeserializeOwned;
use tokio::time::{Instant, timeout, timeout_at};

use crate::response::problem::Problem;

/// The time that a body may take to arrive.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// The maximum number of bytes of a too large body that are discarded, and the time for that.
const MAX_DRAIN_BYTES: usize = 64 * 1024 * 1024;
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);
/// The time that the next part of a large body may take to arrive.
const IDLE_TIMEOUT: Duration = Duration::from_secs(5);
/// The minimum average rate of a large body.
const MIN_BYTES_PER_SECOND: u64 = 64 * 1024;
/// The time that a large body waits for memory.
const RESERVE_TIMEOUT: Duration = Duration::from_secs(5);

/// Reads a JSON body of at most `max_bytes` bytes. Returns `None` if the body is empty.
pub async fn read_json<T: DeserializeOwned>(request: Request, max_bytes: usize) -> Result<Option<T>, Problem> {
    let (parts, body) = request.into_parts();
    let body = read(&parts.headers, body, max_bytes).await?;
    if body.is_empty() {
        return Ok(None);
    }
    if !is_json(&parts.headers) {
        return Err(Problem::NotJson);
    }
    serde_json::from_slice(&body).map(Some).map_err(Problem::InvalidJson)
}

/// Reads a body of at most `max_bytes` bytes.
pub async fn read(headers: &HeaderMap, body: Body, max_bytes: usize) -> Result<Bytes, Problem> {
    let body = check_announced_length(headers, body, max_bytes).await?;
    let read = timeout(BODY_TIMEOUT, to_bytes(body, max_bytes)).await.map_err(|_| Problem::BodyTimeout)?;
    read.map_err(|error| match error.source() {
        Some(cause) if cause.is::<LengthLimitError>() => Problem::BodyTooLarge,
        _ => unreadable(),
    })
}

/// Reads a body that may be large. Memory is reserved as the bytes arrive: an announced length reserves nothing, and
/// slow clients do not hold memory for long.
pub async fn read_upload(
    headers: &HeaderMap,
    body: Body,
    max_bytes: usize,
    reservation: &mut Reservation,
) -> Result<Vec<u8>, Problem> {
    let mut body = check_announced_length(headers, body, max_bytes).await?;
    let (mut read, mut final_deadline) = (Vec::new(), Instant::now() + BODY_TIMEOUT);
    let mut progress_deadline = Deadline::new(IDLE_TIMEOUT, MIN_BYTES_PER_SECOND, Instant::now());
    loop {
        let deadline = progress_deadline.expires_at(Instant::now(), read.len() as u64).min(final_deadline);
        let frame = timeout_at(deadline, body.frame()).await.map_err(|_| Problem::BodyTimeout)?;
        let Some(frame) = frame else { return Ok(read) };
        let Ok(chunk) = frame.map_err(|_| unreadable())?.into_data() else { continue };
        if chunk.len() > max_bytes.saturating_sub(read.len()) {
            drain(body).await;
            return Err(Problem::BodyTooLarge);
        }
        let wait_started = Instant::now();
        reserve_memory(reservation, read.len() + chunk.len()).await?;
        read.extend_from_slice(&chunk);
        // The client is not responsible for the time spent waiting for memory.
        progress_deadline.extend(wait_started.elapsed());
        final_deadline += wait_started.elapsed();
    }
}

/// Reserves memory for this number of bytes. Waits up to five seconds. Small bodies are not counted: the limit on
/// connections limits them sufficiently.
pub async fn reserve_memory(reservation: &mut Reservation, bytes: usize) -> Result<(), Problem> {
    if bytes <= SMALL_BYTES {
        return Ok(());
    }
    timeout(RESERVE_TIMEOUT, reservation.adjust_to(bytes)).await.map_err(|_| Problem::TooManyUploads)
}

/// Refuses a body whose announced length is above the limit. A client that sent `Expect` waits for permission and need
/// not send the body. Other clients send it in any case, and many read the response only after that, so the body is
/// discarded first.
async fn check_announced_length(headers: &HeaderMap, body: Body, max_bytes: usize) -> Result<Body, Problem> {
    if body.size_hint().lower() <= max_bytes as u64 {
        return Ok(body);
    }
    if !headers.contains_key(header::EXPECT) {
        drain(body).await;
    }
    Err(Problem::BodyTooLarge)
}

/// Discards the rest of a body, within limits.
async fn drain(mut body: Body) {
    let rest = async {
        let mut remaining = MAX_DRAIN_BYTES;
        while let Some(Ok(frame)) = body.frame().await {
            let length = frame.data_ref().map_or(0, Bytes::len);
            let Some(rest_bytes) = remaining.checked_sub(length) else { return };
            remaining = rest_bytes;
        }
    };
    // The response is the same in any case.
    drop(timeout(DRAIN_TIMEOUT, rest).await);
}

fn unreadable() -> Problem {
    Problem::Malformed("The body of the request cannot be read.".to_owned())
}

/// Returns whether the body is JSON by its content type. A body without a content type is treated as JSON.
fn is_json(headers: &HeaderMap) -> bool {
    let is_json = |essence: String| {
        essence == "application/json" || (essence.starts_with("application/") && essence.ends_with("+json"))
    };
    media_type(headers).is_none_or(is_json)
}

/// Returns the content type of a body in lower case, without its parameters, if the request has one.
pub fn media_type(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(header::CONTENT_TYPE)?.to_str().unwrap_or_default();
    Some(value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase())
}
