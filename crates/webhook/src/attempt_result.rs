//! What a response or an error means for the event that was sent and for its target.

use std::time::Duration;

use jiff::Timestamp;
use restante_http_client::{HttpError, Response};

use crate::backoff::parse_retry_after;

/// The result of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AttemptResult {
    /// The target accepted the event.
    Delivered,
    /// Further attempts cannot succeed.
    PermanentFailure(String),
    /// The event is to be sent again.
    Retry {
        /// What failed.
        scope: FailureScope,
        /// The delay that the target requested.
        retry_after: Option<Duration>,
        /// The cause for the log.
        cause: String,
    },
}

impl AttemptResult {
    /// Returns the cause for the log. It contains nothing of the target's URL but the host. Empty on success.
    pub(crate) fn cause(&self) -> &str {
        match self {
            Self::Delivered => "",
            Self::PermanentFailure(cause) | Self::Retry { cause, .. } => cause,
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
pub(crate) fn classify(ended: Result<Response, HttpError>, now: Timestamp) -> AttemptResult {
    match ended {
        Ok(response) => classify_response(&response, now),
        Err(HttpError::ForbiddenAddress(cause)) => AttemptResult::PermanentFailure(format!(
            "{cause} (webhook.private=true allows targets that are not public)"
        )),
        // The error may repeat the URL, which may be a secret.
        Err(HttpError::InvalidRequest(_)) => {
            AttemptResult::PermanentFailure("no request can be sent to its URL".to_owned())
        }
        Err(failure @ (HttpError::Timeout | HttpError::ResponseTooLarge | HttpError::Network(_))) => {
            AttemptResult::Retry { scope: FailureScope::Target, retry_after: None, cause: failure.to_string() }
        }
    }
}

fn classify_response(response: &Response, now: Timestamp) -> AttemptResult {
    let whose = match response.status {
        200..=299 => return AttemptResult::Delivered,
        410 => return AttemptResult::PermanentFailure("the target answered 410: it is gone".to_owned()),
        429 | 503 => FailureScope::Target,
        _ => FailureScope::Event,
    };
    let wish = parse_retry_after(&response.headers, now);
    AttemptResult::Retry { scope: whose, retry_after: wish, cause: format!("the target answered {}", response.status) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_judged_by_their_status() {
        let table = [
            (200, None, "taken"),
            (204, None, "taken"),
            (302, None, "event"),
            (400, None, "event"),
            (410, None, "hopeless"),
            (429, Some("7"), "target 7"),
            (500, Some("7"), "event 7"),
            (503, None, "target"),
        ];
        for (status, wish, expected) in table {
            let headers = wish.map(|wish| ("retry-after".to_owned(), wish.to_owned())).into_iter().collect();
            let response = Response { status, headers, ..Response::default() };
            assert_eq!(short(&classify(Ok(response), Timestamp::UNIX_EPOCH)), expected, "{status}");
        }
    }

    #[test]
    fn failures_are_judged_by_their_kind() {
        let table = [
            (HttpError::InvalidRequest("x".to_owned()), "hopeless"),
            (HttpError::ForbiddenAddress("x".to_owned()), "hopeless"),
            (HttpError::Timeout, "target"),
            (HttpError::ResponseTooLarge, "target"),
            (HttpError::Network("x".to_owned()), "target"),
        ];
        for (failure, expected) in table {
            assert_eq!(short(&classify(Err(failure.clone()), Timestamp::UNIX_EPOCH)), expected, "{failure:?}");
        }
    }

    #[test]
    fn what_the_log_is_told_does_not_repeat_the_url() {
        let failure = HttpError::InvalidRequest("http://x.org/?secret is no URL".to_owned());
        let verdict = classify(Err(failure), Timestamp::UNIX_EPOCH);
        assert!(matches!(&verdict, AttemptResult::PermanentFailure(cause) if !cause.contains("secret")), "{verdict:?}");
    }

    fn short(verdict: &AttemptResult) -> String {
        match verdict {
            AttemptResult::Delivered => "taken".to_owned(),
            AttemptResult::PermanentFailure(_) => "hopeless".to_owned(),
            AttemptResult::Retry { scope: whose, retry_after: wish, .. } => {
                let wish = wish.map(|wish| format!(" {}", wish.as_secs())).unwrap_or_default();
                format!("{whose:?}{wish}").to_lowercase()
            }
        }
    }
}
