//! What a response or an error means for the event that was sent and for its target.

use std::time::Duration;

use jiff::Timestamp;
use restante_http_client::{HttpError, Response};

use crate::backoff::parse_retry_after;

/// The result of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AttemptResult {
    /// The target accepted the event. Contains its response.
    Delivered(String),
    /// Further attempts cannot succeed.
    PermanentFailure(String),
    /// The event must be sent again.
    Retry {
        /// What the failure applies to.
        scope: FailureScope,
        /// The delay that the target requested.
        retry_after: Option<Duration>,
        /// The cause for the log.
        cause: String,
    },
}

impl AttemptResult {
    /// Returns the response, or why there is none. It contains no part of the target's URL except the host.
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Delivered(text) | Self::PermanentFailure(text) | Self::Retry { cause: text, .. } => text,
        }
    }
}

/// What a failure applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailureScope {
    /// The target: other events would fail now, too.
    Target,
    /// The event: others may be accepted.
    Event,
}

/// Classifies the result of a request.
pub(crate) fn classify(response: Result<Response, HttpError>, now: Timestamp) -> AttemptResult {
    match response {
        Ok(response) => classify_response(&response, now),
        Err(HttpError::ForbiddenAddress(cause)) => AttemptResult::PermanentFailure(format!(
            "{cause} (webhook.private=true allows targets that are not public)"
        )),
        // The error may repeat the URL, which may be a secret.
        Err(HttpError::InvalidRequest(_)) => {
            AttemptResult::PermanentFailure("the request to the target is invalid".to_owned())
        }
        Err(
            error @ (HttpError::Timeout
            | HttpError::ResponseTooLarge
            | HttpError::ConnectionRefused
            | HttpError::Network(_)),
        ) => AttemptResult::Retry { scope: FailureScope::Target, retry_after: None, cause: error.to_string() },
    }
}

fn classify_response(response: &Response, now: Timestamp) -> AttemptResult {
    let text = format!("the target responded {}", response.status);
    let scope = match response.status {
        200..=299 => return AttemptResult::Delivered(text),
        410 => return AttemptResult::PermanentFailure("the target responded 410 Gone".to_owned()),
        429 | 503 => FailureScope::Target,
        _ => FailureScope::Event,
    };
    let retry_after = parse_retry_after(&response.headers, now);
    AttemptResult::Retry { scope, retry_after, cause: text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classifies_responses_by_status() {
        let table = [
            (200, None, "accepted"),
            (204, None, "accepted"),
            (302, None, "event"),
            (400, None, "event"),
            (410, None, "permanent"),
            (429, Some("7"), "target 7"),
            (500, Some("7"), "event 7"),
            (503, None, "target"),
        ];
        for (status, retry_after, expected) in table {
            let headers =
                retry_after.map(|retry_after| ("retry-after".to_owned(), retry_after.to_owned())).into_iter().collect();
            let response = Response { status, headers, ..Response::default() };
            assert_eq!(short(&classify(Ok(response), Timestamp::UNIX_EPOCH)), expected, "{status}");
        }
    }

    #[test]
    fn classifies_request_errors() {
        let table = [
            (HttpError::InvalidRequest("x".to_owned()), "permanent"),
            (HttpError::ForbiddenAddress("x".to_owned()), "permanent"),
            (HttpError::Timeout, "target"),
            (HttpError::ResponseTooLarge, "target"),
            (HttpError::ConnectionRefused, "target"),
            (HttpError::Network("x".to_owned()), "target"),
        ];
        for (error, expected) in table {
            assert_eq!(short(&classify(Err(error.clone()), Timestamp::UNIX_EPOCH)), expected, "{error:?}");
        }
    }

    #[test]
    fn cause_does_not_contain_the_url() {
        let error = HttpError::InvalidRequest("http://x.org/?secret is no URL".to_owned());
        let result = classify(Err(error), Timestamp::UNIX_EPOCH);
        assert!(matches!(&result, AttemptResult::PermanentFailure(cause) if !cause.contains("secret")), "{result:?}");
    }

    fn short(result: &AttemptResult) -> String {
        match result {
            AttemptResult::Delivered(_) => "accepted".to_owned(),
            AttemptResult::PermanentFailure(_) => "permanent".to_owned(),
            AttemptResult::Retry { scope, retry_after, .. } => {
                let retry_after =
                    retry_after.map(|retry_after| format!(" {}", retry_after.as_secs())).unwrap_or_default();
                format!("{scope:?}{retry_after}").to_lowercase()
            }
        }
    }
}
