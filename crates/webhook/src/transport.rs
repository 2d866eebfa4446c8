//! How an event is sent to a target: one HTTP request.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use jiff::Timestamp;
use restante_http_client::{HttpError, HttpService};
use restante_queue::{Attempt, AttemptOutcome, Contact, Entry, EntryState, Transport};
use restante_store::Result;
use restante_worker::random_jitter;
use tokio::task::spawn_blocking;

use crate::Key;
use crate::attempt_result::{AttemptResult, classify};
use crate::backoff::Backoff;
use crate::payload;
use crate::target::ConfiguredTarget;

/// See the module documentation.
pub(crate) struct HttpTransport {
    pub(crate) target: Arc<ConfiguredTarget>,
    pub(crate) http: Arc<dyn HttpService>,
    pub(crate) key: Option<Key>,
    pub(crate) timeout: Duration,
    pub(crate) backoff: Backoff,
}

#[async_trait]
impl Transport for HttpTransport {
    async fn send(&mut self, entry: &Entry) -> Result<Attempt> {
        let request =
            payload::to_request(entry, &self.target.endpoint, self.key.as_ref(), Timestamp::now(), self.timeout);
        let http = self.http.clone();
        // The response is untrusted input. If the HTTP client panics over it, the attempt has failed.
        let response = spawn_blocking(move || http.send(&request))
            .await
            .unwrap_or_else(|_| Err(HttpError::Network("the HTTP client panicked".to_owned())));
        let now = Timestamp::now();
        let mut result = classify(response, now);
        // The target is not paused beyond the deadline of the event, so that its last attempt can be made.
        let remaining = Duration::try_from(self.deadline(entry).duration_since(now)).unwrap_or_default();
        result.retry_after = result.retry_after.map(|delay| delay.min(remaining));
        let outcome = self.outcome(entry, &result, now);
        self.log_retry(&outcome, &result);
        let contact = if result.is_target_failure {
            Contact::Failed { error: result.text, retry_after: result.retry_after }
        } else {
            Contact::Reached
        };
        Ok(Attempt { outcome, contact })
    }

    fn pause_delay(&self, failures: u32, retry_after: Option<Duration>) -> Duration {
        self.backoff.delay(failures, random_jitter(), retry_after)
    }

    fn log_pause(&self, cause: &str, _: Duration) {
        let throttles = &self.target.log_throttles;
        if throttles.paused.record(Instant::now()).is_some() {
            throttles.is_pause_logged.store(true, Relaxed);
            let webhook = &self.target.endpoint.label;
            tracing::warn!(webhook, cause, "webhook target is unavailable; its events wait");
        }
    }

    fn log_resumption(&self) {
        if self.target.log_throttles.is_pause_logged.swap(false, Relaxed) {
            tracing::info!(webhook = self.target.endpoint.label, "webhook target is available again");
        }
    }
}

impl HttpTransport {
    /// Returns the outcome of an attempt. An attempt at or after the deadline of the event is its last. It is not delayed
    /// beyond the deadline, even if the target asks for it.
    fn outcome(&self, entry: &Entry, result: &AttemptResult, now: Timestamp) -> AttemptOutcome {
        let deadline = self.deadline(entry);
        let (state, next_attempt) = match result.state {
            EntryState::Queued if now >= deadline => (EntryState::Failed, None),
            EntryState::Queued => {
                let delay = self.backoff.delay(entry.attempts.saturating_add(1), random_jitter(), result.retry_after);
                (EntryState::Queued, Some(now.checked_add(delay).map_or(deadline, |next| next.min(deadline))))
            }
            state => (state, None),
        };
        let payload = if state == EntryState::Delivered { Vec::new() } else { entry.payload.clone() };
        let reply = result.text.clone();
        AttemptOutcome::Attempted { state, next_attempt, at: now, payload, reply, log: Vec::new() }
    }

    /// Returns when an event is given up.
    fn deadline(&self, entry: &Entry) -> Timestamp {
        entry.expires.checked_sub(self.backoff.expiry_grace(self.timeout)).unwrap_or(entry.expires)
    }

    /// Logs an attempt after which the event is retried.
    fn log_retry(&self, outcome: &AttemptOutcome, result: &AttemptResult) {
        let AttemptOutcome::Attempted { state: EntryState::Queued, .. } = outcome else { return };
        let (webhook, cause) = (&self.target.endpoint.label, &result.text);
        tracing::debug!(webhook, cause, "webhook request failed; the event is retried");
        if !result.is_target_failure
            && let Some(count) = self.target.log_throttles.rejected.record(Instant::now())
        {
            tracing::warn!(webhook, count, cause, "webhook target rejects events; they are retried");
        }
    }
}

#[cfg(test)]
mod tests {
    use restante_http_client::{Request, Response};
    use restante_queue::EntryId;

    use super::*;
    use crate::tests::support::target;

    struct Busy;

    impl HttpService for Busy {
        fn send(&self, _: &Request) -> Result<Response, HttpError> {
            let headers = vec![("retry-after".to_owned(), "3600".to_owned())];
            Ok(Response { status: 503, headers, ..Response::default() })
        }
    }

    #[tokio::test]
    async fn retry_after_does_not_pause_the_target_beyond_the_deadline_of_the_event() {
        let target = ConfiguredTarget::merge(&[target("http://x.org/")], "").unwrap().remove(0);
        let backoff = Backoff::DEFAULT;
        let timeout = Duration::from_secs(5);
        let mut transport = HttpTransport { target: target.into(), http: Arc::new(Busy), key: None, timeout, backoff };
        let now = Timestamp::now();
        for (remaining, expected) in [(-100, 0..=0), (1800, 1..=1800), (7200, 3600..=3600)] {
            let entry = Entry {
                id: EntryId(1),
                message: 1.into(),
                mailbox: "james".to_owned().into(),
                target: "x".to_owned(),
                key: None,
                payload: Vec::new(),
                created: now,
                expires: now + backoff.expiry_grace(timeout) + jiff::SignedDuration::from_secs(remaining),
                state: EntryState::Sending,
                attempts: 0,
                next_attempt: None,
                last_attempt: None,
                last_reply: String::new(),
                claim: 1,
            };
            let Contact::Failed { retry_after, .. } = transport.send(&entry).await.unwrap().contact else {
                panic!("the target is busy");
            };
            let seconds = retry_after.unwrap().as_secs();
            assert!(expected.contains(&seconds), "{remaining} {seconds}");
        }
    }
}
