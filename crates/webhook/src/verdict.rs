//! What an answer, or the lack of one, means for the event that was told and for its target.

use std::time::Duration;

use jiff::Timestamp;
use restante_http_client::{HttpError, Response};

use crate::pace::retry_after;

/// What becomes of an event after an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The target has taken it.
    Delivered,
    /// No further attempt can help.
    Hopeless(String),
    /// It is to be tried again.
    Again {
        /// Whose trouble it is.
        whose: Whose,
        /// How long the target asks to be left alone.
        wish: Option<Duration>,
        /// What happened, for the log.
        cause: String,
    },
}

impl Verdict {
    /// What happened, for the log; nothing of a target's URL is in it but the host. Empty when all went well.
    pub(crate) fn cause(&self) -> &str {
        match self {
            Self::Delivered => "",
            Self::Hopeless(cause) | Self::Again { cause, .. } => cause,
        }
    }
}

/// Whose trouble a failure is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    /// The target's: no other event would fare better now.
    Target,
    /// The event's: another one may well be taken.
    Event,
}

/// Judges the end of an attempt.
pub(crate) fn judge(ended: Result<Response, HttpError>, now: Timestamp) -> Verdict {
    match ended {
        Ok(response) => judge_answer(&response, now),
        Err(HttpError::ForbiddenAddress(cause)) => {
            Verdict::Hopeless(format!("{cause} (webhook.private=true allows targets that are not public)"))
        }
        // The failure may repeat the URL, which may be a secret.
        Err(HttpError::InvalidRequest(_)) => Verdict::Hopeless("no request can be sent to its URL".to_owned()),
        Err(failure @ (HttpError::Timeout | HttpError::ResponseTooLarge | HttpError::Network(_))) => {
            Verdict::Again { whose: Whose::Target, wish: None, cause: failure.to_string() }
        }
    }
}

fn judge_answer(response: &Response, now: Timestamp) -> Verdict {
    let whose = match response.status {
        200..=299 => return Verdict::Delivered,
        410 => return Verdict::Hopeless("the target answered 410: it is gone".to_owned()),
        429 | 503 => Whose::Target,
        _ => Whose::Event,
    };
    let wish = retry_after(&response.headers, now);
    Verdict::Again { whose, wish, cause: format!("the target answered {}", response.status) }
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
            assert_eq!(short(&judge(Ok(response), Timestamp::UNIX_EPOCH)), expected, "{status}");
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
            assert_eq!(short(&judge(Err(failure.clone()), Timestamp::UNIX_EPOCH)), expected, "{failure:?}");
        }
    }

    #[test]
    fn what_the_log_is_told_does_not_repeat_the_url() {
        let failure = HttpError::InvalidRequest("http://x.org/?secret is no URL".to_owned());
        let verdict = judge(Err(failure), Timestamp::UNIX_EPOCH);
        assert!(matches!(&verdict, Verdict::Hopeless(cause) if !cause.contains("secret")), "{verdict:?}");
    }

    fn short(verdict: &Verdict) -> String {
        match verdict {
            Verdict::Delivered => "taken".to_owned(),
            Verdict::Hopeless(_) => "hopeless".to_owned(),
            Verdict::Again { whose, wish, .. } => {
                let wish = wish.map(|wish| format!(" {}", wish.as_secs())).unwrap_or_default();
                format!("{whose:?}{wish}").to_lowercase()
            }
        }
    }
}
