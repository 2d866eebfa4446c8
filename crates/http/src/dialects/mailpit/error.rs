//! Errors as Mailpit reports them: a status and a text.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use crate::response::problem::Problem;
use crate::response::{json, success};

/// The content type of texts.
pub(crate) const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

/// The content type of JSON, without a charset as Mailpit has it.
pub(crate) const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// The text of the status 404, whatever is missing.
const NOT_FOUND: &str = "404 page not found";

/// The reason why a request fails.
#[derive(Debug)]
pub(crate) enum Error {
    /// The request cannot be carried out; the client gets this text.
    Text(String),
    /// The same, as the member `Error` of a JSON object.
    Json(String),
    /// What is requested does not exist; the client gets this text.
    NotFound(&'static str),
    /// A problem that is not specific to this API.
    Problem(Problem),
    /// The same, as the member `Error` of a JSON object.
    JsonProblem(Problem),
}

/// The body of [`Error::Json`].
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct ErrorDocument<'a> {
    error: &'a str,
}

impl Error {
    /// The message or part does not exist.
    pub(crate) const NOT_FOUND: Self = Self::Problem(Problem::NoSuchMessage);

    /// Returns an error with the status 400 and this text.
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// Returns the same error as a JSON object.
    pub(crate) fn into_json(self) -> Self {
        match self {
            Self::Text(text) => Self::Json(text),
            Self::Problem(problem) => Self::JsonProblem(problem),
            json => json,
        }
    }
}

impl<T: Into<Problem>> From<T> for Error {
    fn from(problem: T) -> Self {
        Self::Problem(problem.into())
    }
}

impl IntoResponse for Error {
    fn into_response(self) -> Response {
        match self {
            Self::Text(text) => response(StatusCode::BAD_REQUEST, success::PLAIN, text.into()),
            Self::Json(text) => match error_json(&text) {
                Ok(body) => response(StatusCode::BAD_REQUEST, JSON, body),
                Err(problem) => problem.into_response(),
            },
            Self::NotFound(text) => response(StatusCode::NOT_FOUND, TEXT, text.into()),
            Self::Problem(problem) => {
                let text = match problem.status() {
                    StatusCode::NOT_FOUND => NOT_FOUND.to_owned(),
                    _ => problem.detail().into_owned(),
                };
                with_body(problem, success::PLAIN, text.into())
            }
            Self::JsonProblem(problem) => match error_json(&problem.detail()) {
                Ok(body) => with_body(problem, JSON, body),
                Err(problem) => problem.into_response(),
            },
        }
    }
}

fn error_json(text: &str) -> Result<Body, Problem> {
    Ok(json::body(&ErrorDocument { error: text })?.into())
}

/// Returns the response to a problem with another body.
fn with_body(problem: Problem, content_type: HeaderValue, body: Body) -> Response {
    let mut response = problem.into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, content_type);
    *response.body_mut() = body;
    response
}

fn response(status: StatusCode, content_type: HeaderValue, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, content_type);
    response.headers_mut().insert(header::CACHE_CONTROL, success::NO_STORE);
    response
}
