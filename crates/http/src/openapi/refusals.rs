//! The error responses that several operations have. `response::problem` produces the real responses.

use axum::http::StatusCode;
use serde_json::json;
use utoipa::openapi::content::ContentBuilder;
use utoipa::openapi::response::{Response, ResponseBuilder};

use crate::openapi::reference::{NamedSchema, header, reference, schemas_of};
use crate::response::problem::ProblemDocument;

/// An error response.
pub(super) struct Refusal {
    /// The name of the component.
    pub(super) name: &'static str,
    /// The status. It is different for each error response.
    pub(super) status: StatusCode,
    /// When the response is sent.
    description: &'static str,
    /// An example of the detail.
    detail: &'static str,
}

/// Error responses of all operations.
pub(super) const COMMON: &[&Refusal] =
    &[&MALFORMED, &UNAUTHORISED, &FORBIDDEN, &MISDIRECTED, &TOO_MANY, &INTERNAL, &UNAVAILABLE];
/// Error responses of operations with a JSON body.
pub(super) const JSON_BODY: &[&Refusal] = &[&TOO_SLOW, &TOO_LARGE, &WRONG_TYPE, &WRONG_SHAPE];
/// Error responses of only some operations.
const OTHERS: &[&Refusal] = &[&NOT_FOUND, &LOOP, &WEBSOCKET_REQUIRED];

/// A parameter cannot be parsed.
pub(super) const MALFORMED: Refusal = Refusal {
    name: "Malformed",
    status: StatusCode::BAD_REQUEST,
    description: "A name, a path or a parameter is invalid, or the `Host` header is missing or invalid.",
    detail: "The parameter limit must be a whole number.",
};
/// Authentication failed.
pub(super) const UNAUTHORISED: Refusal = Refusal {
    name: "Unauthorised",
    status: StatusCode::UNAUTHORIZED,
    description: "The server requires credentials, and they are missing or wrong.",
    detail: "This server requires credentials: a token, or a user name and a password.",
};
/// The request is not allowed.
pub(super) const FORBIDDEN: Refusal = Refusal {
    name: "Forbidden",
    status: StatusCode::FORBIDDEN,
    description: "The credentials do not allow this, the request comes from a web page of another origin, a page loads something \
            that may be a message as a script, style or plugin, the message would be refused over SMTP, or a relay target does \
            not allow a recipient.",
    detail: "The credentials do not allow this: it needs the scope write.",
};
/// The resource does not exist.
pub(super) const NOT_FOUND: Refusal = Refusal {
    name: "NotFound",
    status: StatusCode::NOT_FOUND,
    description: "The message or the entry of a queue does not exist, or the message has no such part; or the search is disabled.",
    detail: "The mailbox has no such message.",
};
/// The message is in a loop.
pub(super) const LOOP: Refusal = Refusal {
    name: "Loop",
    status: StatusCode::CONFLICT,
    description: "The message was sent in a loop.",
    detail: "The message is in a loop: it has 5 header fields X-Restante-Relay.",
};
/// The body did not arrive in time.
pub(super) const TOO_SLOW: Refusal = Refusal {
    name: "TooSlow",
    status: StatusCode::REQUEST_TIMEOUT,
    description: "The body of the request did not arrive within 30 seconds, or a message was uploaded too slowly.",
    detail: "The body of the request did not arrive in time.",
};
/// The body is too large.
pub(super) const TOO_LARGE: Refusal = Refusal {
    name: "TooLarge",
    status: StatusCode::PAYLOAD_TOO_LARGE,
    description: "The body of the request is too large.",
    detail: "The body of the request is too large.",
};
/// The content type of the body is not supported.
pub(super) const WRONG_TYPE: Refusal = Refusal {
    name: "WrongType",
    status: StatusCode::UNSUPPORTED_MEDIA_TYPE,
    description: "The content type of the request body is not supported.",
    detail: "The body of the request must be application/json.",
};
/// The body is not of the expected shape.
pub(super) const WRONG_SHAPE: Refusal = Refusal {
    name: "WrongShape",
    status: StatusCode::UNPROCESSABLE_ENTITY,
    description: "The body of the request is not valid JSON, or does not match the schema.",
    detail: "The body of the request must be {\"seen\": true} or {\"seen\": false}.",
};
/// The host is not one of this server.
pub(super) const MISDIRECTED: Refusal = Refusal {
    name: "Misdirected",
    status: StatusCode::MISDIRECTED_REQUEST,
    description: "The request is for a public host name that is not configured (`web.hosts`).",
    detail: "This server does not serve the host name of the request. Add the name to the setting web.hosts.",
};
/// The request is not a WebSocket handshake.
pub(super) const WEBSOCKET_REQUIRED: Refusal = Refusal {
    name: "NoWebSocket",
    status: StatusCode::UPGRADE_REQUIRED,
    description: "The request is not a WebSocket handshake.",
    detail: "This path requires a WebSocket handshake, version 13. /api/v2/events has the same events without WebSocket.",
};
/// The client has reached a limit.
pub(super) const TOO_MANY: Refusal = Refusal {
    name: "TooMany",
    status: StatusCode::TOO_MANY_REQUESTS,
    description: "The client behind a trusted proxy has too many open requests, or too many of its logins have failed.",
    detail: "This client has too many connections or requests open.",
};
/// A bug of the server.
pub(super) const INTERNAL: Refusal = Refusal {
    name: "Fault",
    status: StatusCode::INTERNAL_SERVER_ERROR,
    description: "A bug of the server. Its log contains the cause.",
    detail: "Internal error. The log of the server contains the cause.",
};
/// The server cannot process the request now.
pub(super) const UNAVAILABLE: Refusal = Refusal {
    name: "Unavailable",
    status: StatusCode::SERVICE_UNAVAILABLE,
    description: "The store is not available; the relay queue is full; there are too many connections, subscribers or waiting requests; or too many \
            large responses or uploads are in progress.",
    detail: "The store cannot be reached at the moment.",
};

/// Returns all error responses.
pub(super) fn all() -> impl Iterator<Item = &'static Refusal> {
    [COMMON, JSON_BODY, OTHERS].into_iter().flatten().copied()
}

/// Returns the schemas of error responses.
pub(super) fn schemas() -> Vec<NamedSchema> {
    schemas_of::<ProblemDocument>()
}

impl Refusal {
    /// Returns the response component.
    pub(super) fn response(&self) -> Response {
        let Self { status, description: about, detail, .. } = self;
        let title = status.canonical_reason();
        let example = json!({ "type": "about:blank", "title": title, "status": status.as_u16(), "detail": detail });
        let content = ContentBuilder::new().schema(Some(reference::<ProblemDocument>())).example(Some(example)).build();
        let response = ResponseBuilder::new().description(*about).content("application/problem+json", content);
        match *status {
            StatusCode::UNAUTHORIZED => response.header("WWW-Authenticate", header("How to send credentials.")),
            StatusCode::UPGRADE_REQUIRED => response.header("Upgrade", header("Always `websocket`.")),
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                response.header("Retry-After", header("The number of seconds after which to try again, if known."))
            }
            _ => response,
        }
        .build()
    }
}
