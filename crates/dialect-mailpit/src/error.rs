//! Errors as Mailpit reports them: a status and a text.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use restante_http_core::response::problem::Problem;
use restante_http_core::response::{json, success};
use serde_json::json;

/// The content type of JSON, without a charset as Mailpit has it.
pub(crate) const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// The text of the status 404, whatever is missing.
const NOT_FOUND: &str = "404 page not found";

/// The result of a handler.
pub(crate) type HandlerResult = Result<Response, Error>;

/// The reason why a request fails.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The request cannot be carried out; the client gets this text.
    #[error("{0}")]
    Text(String),
    /// What is requested does not exist; the client gets this text.
    #[error("{0}")]
    NotFound(&'static str),
    /// A problem that is not specific to this API.
    #[error("{0}")]
    Problem(Problem),
    /// Another error, whose text is the member `Error` of a JSON object.
    #[error("{0}")]
    Json(Box<Self>),
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
        Self::Json(Box::new(self))
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
            Self::NotFound(text) => response(StatusCode::NOT_FOUND, success::UTF8_TEXT, text.into()),
            // `text_form` writes the text.
            Self::Problem(problem) => problem.into_response(),
            Self::Json(error) => match json::body(&json!({ "Error": error.to_string() })) {
                Ok(body) => with_body(error.into_response(), JSON, body.into()),
                Err(problem) => problem.into_response(),
            },
        }
    }
}

/// Writes a problem that is not specific to this API, unless it was written as JSON.
pub(crate) fn text_form(problem: &Problem, response: Response) -> Response {
    if response.headers().get(header::CONTENT_TYPE) == Some(&JSON) {
        return response;
    }
    let text = match problem.status() {
        StatusCode::NOT_FOUND => NOT_FOUND.to_owned(),
        _ => problem.to_string(),
    };
    with_body(response, success::PLAIN, text.into())
}

/// Returns the response with another body.
fn with_body(mut response: Response, content_type: HeaderValue, body: Body) -> Response {
    response.headers_mut().insert(header::CONTENT_TYPE, content_type);
    *response.body_mut() = body;
    response
}

fn response(status: StatusCode, content_type: HeaderValue, body: Body) -> Response {
    let headers = [(header::CONTENT_TYPE, content_type), (header::CACHE_CONTROL, success::NO_STORE)];
    (status, headers, body).into_response()
}
