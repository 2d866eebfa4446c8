//! What an answer, or the lack of one, means for the event that was told and for its target.

use std::time::Duration;

use jiff::Timestamp;
use restante_http_client::{HttpError, Response};

use crate::backoff::parse_retry_after;

/// What becomes of an event after an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AttemptResult {
    /// The target has taken it.
    Delivered,
    /// No further attempt can help.
    PermanentFailure(String),
    /// It is to be tried again.
    Retry {
        /// Whose trouble it is.
        scope: FailureScope,
        /// How long the target asks to be left alone.
        retry_after: Option<Duration>,
        /// What happened, for the log.
        cause: String,
    },
}

impl AttemptResult {
    /// What happened, for the log; nothing of a target's URL is in it but the host. Empty when all went well.
    pub(crate) fn cause(&self) -> &str {
        match self {
            Self::Delivered => "",
            Self::PermanentFailure(cause) | Self::Retry { cause, .. } => cause,
        }
    }
}

/// Whose trouble a failure is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailureScope {
    /// The target's: no other event would fare better now.
    Target,
    /// The event's: another one may well be taken.
    Event,
}

/// Judges the end of an attempt.
pub(crate) fn classify(ended: Result<Response, HttpError>, now: Timestamp) -> AttemptResult {
    match ended {
        Ok(response) => classify_response(&response, now),
        Err(HttpError::ForbiddenAddress(cause)) => AttemptResult::PermanentFailure(format!(
            "{cause} (webhook.private=true allows targets that are not public)"
        )),
        // The failure may repeat the URL, which may be a secret.
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
