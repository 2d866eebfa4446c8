//! Requests to both servers, and answers in a form that can be compared.

use std::fmt;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::side::Side;

/// A request in which `{name}` stands for the id of the mail with this name.
pub(crate) struct Request {
    pub(crate) method: &'static str,
    pub(crate) path: String,
    pub(crate) body: Option<String>,
}

impl Request {
    pub(crate) fn get(path: impl Into<String>) -> Self {
        Self { method: "GET", path: path.into(), body: None }
    }

    pub(crate) fn with_body(method: &'static str, path: impl Into<String>, body: impl Into<String>) -> Self {
        Self { method, path: path.into(), body: Some(body.into()) }
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let body = self.body.as_deref().filter(|body| !body.is_empty()).map(|body| format!(" {body}"));
        write!(f, "{} {}{}", self.method, self.path, body.unwrap_or_default())
    }
}

/// The headers that are compared.
const HEADERS: [&str; 4] = ["content-type", "content-disposition", "location", "allow"];

/// The longest body of an answer.
pub(crate) const MAX_BODY_BYTES: u64 = 64 << 20;

/// Sends a request and returns its answer: the status, headers, and the body as JSON or as text; of thumbnails the dimensions;
/// of other bodies the length and a hash.
pub(crate) fn send(side: &Side, request: &Request) -> Value {
    let url = format!("{}{}", side.server.url(""), side.with_ids(&request.path));
    let body = request.body.as_deref().map(|body| side.with_ids(body));
    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).max_redirects(0).build().into();
    let builder = ureq::http::Request::builder().method(request.method).uri(url);
    let response = match body {
        Some(body) => agent.run(builder.header("content-type", "application/json").body(body).unwrap()),
        None => agent.run(builder.body(()).unwrap()),
    };
    let mut response = response.unwrap();
    let mut answer = json!({"status": response.status().as_u16()});
    for name in HEADERS {
        if let Some(value) = response.headers().get(name) {
            answer[name] = side.with_names(&String::from_utf8_lossy(value.as_bytes())).into();
        }
    }
    let content_type = answer["content-type"].as_str().unwrap_or_default().to_owned();
    let bytes = response.body_mut().with_config().limit(MAX_BODY_BYTES).read_to_vec().unwrap();
    answer["body"] = match jpeg_dimensions(&bytes).filter(|_| request.path.ends_with("/thumb")) {
        // The content depends on the encoder.
        Some((width, height)) => json!({"width": width, "height": height}),
        None => body_of(side, &content_type, bytes),
    };
    answer
}

fn body_of(side: &Side, content_type: &str, bytes: Vec<u8>) -> Value {
    match String::from_utf8(bytes) {
        // An answer to HEAD is empty.
        Ok(text) if content_type.starts_with("application/json") && !text.is_empty() => {
            serde_json::from_str(&side.with_names(&text)).unwrap_or_else(|error| panic!("{error}: {text}"))
        }
        Ok(text) => side.with_names(&text).into(),
        // The source of a message: every byte is a character.
        Err(error) if content_type.starts_with("text/plain") => {
            error.into_bytes().into_iter().map(char::from).collect::<String>().into()
        }
        Err(error) => {
            let bytes = error.into_bytes();
            let hash = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat();
            json!({"bytes": bytes.len(), "sha256": hash})
        }
    }
}

/// Returns the width and the height of a JPEG image, from its frame header.
fn jpeg_dimensions(bytes: &[u8]) -> Option<(u16, u16)> {
    let number = |at: usize| Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
    // Each segment has a marker of two bytes and its length.
    let mut segment = bytes.starts_with(&[0xff, 0xd8]).then_some(2)?;
    loop {
        match number(segment)? {
            0xffc0..=0xffc2 => return Some((number(segment + 7)?, number(segment + 5)?)),
            _ => segment += 2 + usize::from(number(segment + 2)?),
        }
    }
}
