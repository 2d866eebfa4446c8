//! What a response or an error means for the event that was sent and for its target.

use std::time::Duration;

use jiff::Timestamp;
use restante_http_client::{HttpError, Response};
use restante_queue::EntryState;

use crate::backoff::parse_retry_after;

/// The result of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AttemptResult {
    /// Delivered, or failed if further attempts cannot succeed. Otherwise the event must be sent again.
    pub(crate) state: EntryState,
    /// Whether other events would fail now, too. Otherwise the failure applies to this event only.
    pub(crate) is_target_failure: bool,
    /// The delay that the target requested.
    pub(crate) retry_after: Option<Duration>,
    /// The response, or why there is none. It contains no part of the target's URL except the host.
    pub(crate) text: String,
}

impl AttemptResult {
    fn new(state: EntryState, text: impl Into<String>) -> Self {
        Self { state, is_target_failure: false, retry_after: None, text: text.into() }
    }
}

/// Classifies the result of a request.
pub(crate) fn classify(response: Result<Response, HttpError>, now: Timestamp) -> AttemptResult {
    match response {
        Ok(response) => classify_response(&response, now),
        Err(HttpError::ForbiddenAddress(cause)) => {
            let text = format!("{cause} (webhook.private=true allows targets that are not public)");
            AttemptResult::new(EntryState::Failed, text)
        }
        // The error may repeat the URL, which may be a secret.
        Err(HttpError::InvalidRequest(_)) => {
            AttemptResult::new(EntryState::Failed, "the request to the target is invalid")
        }
        Err(
            error @ (HttpError::Timeout
            | HttpError::ResponseTooLarge
            | HttpError::ConnectionRefused
            | HttpError::Network(_)),
        ) => AttemptResult { is_target_failure: true, ..AttemptResult::new(EntryState::Queued, error.to_string()) },
    }
}

fn classify_response(response: &Response, now: Timestamp) -> AttemptResult {
    let text = format!("the target responded {}", response.status);
    match response.status {
        200..=299 => AttemptResult::new(EntryState::Delivered, text),
        410 => AttemptResult::new(EntryState::Failed, format!("{text} Gone")),
        status => AttemptResult {
            state: EntryState::Queued,
            is_target_failure: matches!(status, 429 | 503),
            retry_after: parse_retry_after(&response.headers, now),
            text,
        },
    }
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
        assert!(!result.text.contains("secret"), "{result:?}");
    }

    fn short(result: &AttemptResult) -> String {
        let retry_after = result.retry_after.map(|delay| format!(" {}", delay.as_secs())).unwrap_or_default();
        match result.state {
            EntryState::Delivered => "accepted".to_owned(),
            EntryState::Failed => "permanent".to_owned(),
            _ if result.is_target_failure => format!("target{retry_after}"),
            _ => format!("event{retry_after}"),
        }
    }
}
