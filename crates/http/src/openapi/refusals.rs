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
const OTHERS: &[&Refusal] = &[&NOT_FOUND, &WEBSOCKET_REQUIRED];

/// A parameter cannot be parsed.
pub(super) const MALFORMED: Refusal = Refusal {
    name: "Malformed",
    status: StatusCode::BAD_REQUEST,
    description: "A name, a path or a parameter cannot be understood, or the request has no proper `Host`.",
    detail: "The parameter limit must be a whole number.",
};
/// Authentication failed.
pub(super) const UNAUTHORISED: Refusal = Refusal {
    name: "Unauthorised",
    status: StatusCode::UNAUTHORIZED,
    description: "The server asks for credentials, and there are none, or wrong ones.",
    detail: "This server asks for credentials: a token, or a user name and a password.",
};
/// The request is not allowed.
pub(super) const FORBIDDEN: Refusal = Refusal {
    name: "Forbidden",
    status: StatusCode::FORBIDDEN,
    description: "The credentials do not allow this, the request comes from a web page of another origin, a page wants what may \
            be mail as its own script, style or plugin, or mail is handed in that would be refused over SMTP.",
    detail: "The credentials do not allow this: it needs the scope write.",
};
/// The resource does not exist.
pub(super) const NOT_FOUND: Refusal = Refusal {
    name: "NotFound",
    status: StatusCode::NOT_FOUND,
    description: "There is no such message, or nothing of the kind in it.",
    detail: "The mailbox has no such message.",
};
/// The body did not arrive in time.
pub(super) const TOO_SLOW: Refusal = Refusal {
    name: "TooSlow",
    status: StatusCode::REQUEST_TIMEOUT,
    description: "The body of the request did not arrive within 30 seconds, or a mail came too slowly.",
    detail: "The body of the request did not arrive in time.",
};
/// The body is too large.
pub(super) const TOO_LARGE: Refusal = Refusal {
    name: "TooLarge",
    status: StatusCode::PAYLOAD_TOO_LARGE,
    description: "The body of the request is longer than is taken here.",
    detail: "The body of the request is too large.",
};
/// The content type of the body is not supported.
pub(super) const WRONG_TYPE: Refusal = Refusal {
    name: "WrongType",
    status: StatusCode::UNSUPPORTED_MEDIA_TYPE,
    description: "The body of the request has a content type that is not taken here.",
    detail: "The body of the request must be application/json.",
};
/// The body is not of the expected shape.
pub(super) const WRONG_SHAPE: Refusal = Refusal {
    name: "WrongShape",
    status: StatusCode::UNPROCESSABLE_ENTITY,
    description: "The body of the request is no valid JSON, or not of the shape that is wanted.",
    detail: "The body of the request must be {\"seen\": true} or {\"seen\": false}.",
};
/// The host is not one of this server.
pub(super) const MISDIRECTED: Refusal = Refusal {
    name: "Misdirected",
    status: StatusCode::MISDIRECTED_REQUEST,
    description: "The request is for a host name that is public and not configured (`web.hosts`).",
    detail: "This server does not answer for the host name of the request. Add the name to the setting web.hosts.",
};
/// The request is not a WebSocket handshake.
pub(super) const WEBSOCKET_REQUIRED: Refusal = Refusal {
    name: "NoWebSocket",
    status: StatusCode::UPGRADE_REQUIRED,
    description: "The request does not ask for a WebSocket.",
    detail: "This path speaks WebSocket, version 13, only. The same events without it are at /api/v2/events.",
};
/// The client has reached a limit.
pub(super) const TOO_MANY: Refusal = Refusal {
    name: "TooMany",
    status: StatusCode::TOO_MANY_REQUESTS,
    description: "The client has too many requests open, by the word of a trusted proxy, or has failed to log in too often.",
    detail: "This client has too many connections or requests open.",
};
/// A bug of the server.
pub(super) const INTERNAL: Refusal = Refusal {
    name: "Fault",
    status: StatusCode::INTERNAL_SERVER_ERROR,
    description: "The server made a mistake. Its log says which.",
    detail: "The server made a mistake.",
};
/// The server cannot process the request now.
pub(super) const UNAVAILABLE: Refusal = Refusal {
    name: "Unavailable",
    status: StatusCode::SERVICE_UNAVAILABLE,
    description: "The store is not available, there are too many connections or listeners, too many wait for mail, or other \
            clients hold too many large answers or hand in too many large mails.",
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
            StatusCode::UNAUTHORIZED => response.header("WWW-Authenticate", header("How to give credentials.")),
            StatusCode::UPGRADE_REQUIRED => response.header("Upgrade", header("Always `websocket`.")),
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                response.header("Retry-After", header("In how many seconds to ask again, where that is known."))
            }
            _ => response,
        }
        .build()
    }
}
