//! The reason why a request fails. Each provider writes it in its own form.

use axum::http::StatusCode;
use restante_auth::DenialReason;
use restante_http_core::response::problem::Problem;
use restante_mail::compose::DraftError;

/// The field of a failure if a request has no key. It has none if its key is wrong.
pub(crate) const MISSING_KEY: &str = "Authorization";

/// The reason why a request fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// The kind of the failure.
    pub(crate) kind: FailureKind,
    /// The member or parameter of the request that is wrong, if it is known: `to[0]`, `attachments[1].content`.
    pub(crate) field: Option<String>,
    /// A sentence for people.
    pub(crate) message: String,
}

/// The kind of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailureKind {
    /// The body of the request cannot be parsed.
    Malformed,
    /// A required value is missing.
    Missing,
    /// A value is invalid.
    Invalid,
    /// The API key is missing or wrong.
    Unauthorized,
    /// The API key does not permit the request.
    Forbidden,
    /// What the request names does not exist, or the path does not.
    NotFound,
    /// A template with this name exists already.
    Exists,
    /// The body or the message is too large.
    TooLarge,
    /// The server has too much work, or this client sends too much.
    RateLimited,
    /// The server cannot store the message now.
    Unavailable,
    /// A bug of the server.
    Internal,
}

impl FailureKind {
    /// Returns the usual status of the response.
    pub(crate) fn status(self) -> StatusCode {
        match self {
            Self::Malformed | Self::Missing | Self::Invalid => StatusCode::BAD_REQUEST,
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::Forbidden => StatusCode::FORBIDDEN,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::Exists => StatusCode::CONFLICT,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::RateLimited => StatusCode::TOO_MANY_REQUESTS,
            Self::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

impl Failure {
    /// Creates a failure that concerns no single member.
    pub(crate) fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, field: None, message: message.into() }
    }

    /// A required member is missing or empty.
    pub(crate) fn missing(field: impl Into<String>) -> Self {
        let field = field.into();
        Self { kind: FailureKind::Missing, message: format!("{field} is required."), field: Some(field) }
    }

    /// A member is invalid. `problem` is a clause such as `is not base64`.
    pub(crate) fn invalid(field: impl Into<String>, problem: &str) -> Self {
        let field = field.into();
        Self { kind: FailureKind::Invalid, message: format!("{field} {problem}."), field: Some(field) }
    }

    /// Returns the field with indices as members: `to.0.email`.
    pub(crate) fn dotted_field(&self) -> Option<String> {
        self.field.as_ref().map(|field| field.replace('[', ".").replace(']', ""))
    }

    /// The body cannot be parsed, for this reason.
    pub(crate) fn malformed(reason: impl std::fmt::Display) -> Self {
        Self::new(FailureKind::Malformed, format!("The body of the request cannot be parsed: {reason}."))
    }
}

impl From<DraftError> for Failure {
    fn from(DraftError { field, problem }: DraftError) -> Self {
        Self::invalid(field, &problem)
    }
}

impl From<&Problem> for Failure {
    fn from(problem: &Problem) -> Self {
        let kind = match problem.status() {
            StatusCode::UNAUTHORIZED => FailureKind::Unauthorized,
            StatusCode::FORBIDDEN => FailureKind::Forbidden,
            StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED => FailureKind::NotFound,
            StatusCode::PAYLOAD_TOO_LARGE => FailureKind::TooLarge,
            StatusCode::TOO_MANY_REQUESTS => FailureKind::RateLimited,
            StatusCode::SERVICE_UNAVAILABLE => FailureKind::Unavailable,
            StatusCode::INTERNAL_SERVER_ERROR => FailureKind::Internal,
            _ => FailureKind::Invalid,
        };
        let is_missing = problem.denial().is_some_and(|denied| denied.reason == DenialReason::NoCredentials);
        Self { field: is_missing.then(|| MISSING_KEY.to_owned()), ..Self::new(kind, problem.to_string()) }
    }
}
