//! Request bodies as Mailpit reads them, with the JSON decoder of Go. The content type does not matter. Requests of other sites
//! are refused before.

use axum::extract::Request;
use restante_go_json::parse;
use restante_http_core::extractors::body;
use serde::de::DeserializeOwned;

use crate::error::Error;

/// The content types of forms.
const FORM_TYPES: [&str; 2] = ["application/x-www-form-urlencoded", "multipart/form-data"];

/// Reads a JSON body of at most `max_bytes` bytes. Give `T` the attribute `#[serde(default)]`.
pub(crate) async fn read<T: DeserializeOwned>(request: Request, max_bytes: usize) -> Result<T, Error> {
    let (parts, body) = request.into_parts();
    parse(&body::read(&parts.headers, body, max_bytes).await?).map_err(Error::text)
}

/// Reads a JSON body of at most `max_bytes` bytes. Returns `None` if there is none, or if it is a form.
pub(crate) async fn read_unless_form<T>(request: Request, max_bytes: usize) -> Result<Option<T>, Error>
where
    T: DeserializeOwned,
{
    let (parts, body) = request.into_parts();
    let body = body::read(&parts.headers, body, max_bytes).await?;
    let is_form = body::media_type(&parts.headers).is_some_and(|kind| FORM_TYPES.contains(&kind.as_str()));
    if body.trim_ascii().is_empty() || is_form {
        return Ok(None);
    }
    parse(&body).map(Some).map_err(Error::text)
}
