//! Retention: deletes messages that are too old, in batches.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use restante_store::Result;
use tokio::time::Instant;

use crate::run_to_completion::run_to_completion;
use crate::{DeletionCause, Mailroom};

/// How often the oldest messages and the number of messages are checked. A message is deleted at most about this late.
const ROUND_INTERVAL: Duration = Duration::from_secs(1);
/// The number of messages that are deleted at once. A store with one writer delays deliveries during a batch, so it is
/// small. The next batch follows after a pause of the same duration.
const BATCH_SIZE: usize = 100;
/// How long one round waits in total for subscribers, so that they get every event.
const MAX_SUBSCRIBER_WAIT: Duration = Duration::from_secs(1);
/// How often a lasting error is logged.
const LOG_INTERVAL: Duration = Duration::from_mins(1);

impl Mailroom {
    /// Deletes messages older than `period`, about a second after they expire, for as long as the future is polled.
    pub async fn run_retention(&self, period: Duration) {
        let period = SignedDuration::try_from(period).unwrap_or(SignedDuration::MAX);
        let messages = RoundMessages {
            resumed: "retention works again",
            failed: "retention cannot delete expired messages, retrying every second",
        };
        run_every_second(messages, || self.expire(period)).await;
    }

    /// Deletes the messages that are older than `period` now.
    async fn expire(&self, period: SignedDuration) -> Result<()> {
        // A period that reaches before the first representable time deletes nothing.
        let Ok(deadline) = Timestamp::now().checked_sub(period) else { return Ok(()) };
        if let Some(journal) = &self.journal {
            journal.expire_before(deadline);
        }
        let (mut any_expired, mut wait_budget) = (false, MAX_SUBSCRIBER_WAIT);
        loop {
            let started = Instant::now();
            let inner = self.inner.clone();
            let operation = async move {
                let removed = inner.store.expire(deadline, BATCH_SIZE).await?;
                let count = removed.len();
                if let Some(oldest) = removed.first() {
                    let lag = Timestamp::now().duration_since(oldest.received).saturating_sub(period);
                    inner.counters.set_retention_lag(lag.try_into().unwrap_or_default());
                }
                inner.publish_deleted(DeletionCause::Age, removed);
                Ok(count)
            };
            let count = run_to_completion(operation).await?;
            any_expired |= count > 0;
            if count < BATCH_SIZE {
                break;
            }
            wait_budget = self.inner.hub.wait_for_subscribers(wait_budget).await;
            tokio::time::sleep(started.elapsed()).await;
        }
        if !any_expired {
            self.inner.counters.set_retention_lag(Duration::ZERO);
        }
        self.inner.counters.set_retention_completed(Timestamp::now());
        Ok(())
    }
}

/// What is logged about rounds that fail.
pub(crate) struct RoundMessages {
    /// After the first round that succeeds again.
    pub(crate) resumed: &'static str,
    pub(crate) failed: &'static str,
}

/// Runs a round of deletions every second, for as long as the future is polled.
pub(crate) async fn run_every_second<R: Future<Output = Result<()>>>(messages: RoundMessages, round: impl Fn() -> R) {
    let mut reminder = ErrorReminder::default();
    let mut ticks = tokio::time::interval(ROUND_INTERVAL);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        match round().await {
            Ok(()) if reminder.clear() => tracing::info!("{}", messages.resumed),
            Err(error) if reminder.is_log_due(Instant::now()) => tracing::error!(%error, "{}", messages.failed),
            Ok(()) | Err(_) => {}
        }
    }
}

/// When a store error was last logged, until the store works again.
#[derive(Default)]
struct ErrorReminder(Option<Instant>);

impl ErrorReminder {
    /// Returns whether an error should be logged now: the first one, and then once per [`LOG_INTERVAL`].
    fn is_log_due(&mut self, now: Instant) -> bool {
        if self.0.is_some_and(|logged| now.duration_since(logged) < LOG_INTERVAL) {
            return false;
        }
        self.0 = Some(now);
        true
    }

    /// Resets the state after a success. Returns true if errors were logged before.
    fn clear(&mut self) -> bool {
        self.0.take().is_some()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use restante_mail::details::Details;
    use restante_mail::message::Headline;
    use restante_mail::tags::Tags;
    use restante_store::memory::MemoryStore;
    use restante_store::{Limits, NewCopy, NewMessage, Store as _};

    use super::*;
    use crate::Settings;
    use crate::hooks::Extensions;

    #[tokio::test]
    async fn retention_lag_is_reported_until_nothing_is_overdue() {
        let store = Arc::new(MemoryStore::new(Limits::default()));
        let received = Timestamp::now() - SignedDuration::from_hours(1);
        let copies = vec![NewCopy {
            mailbox: "bob".to_owned().into(),
            tags: Tags::default(),
            details: Details::default(),
            trace: Some(Bytes::new()),
        }];
        let message = NewMessage { received, headline: Headline::new("", [], ""), body: Bytes::new(), copies };
        store.append(message).await.unwrap();
        let mailroom = Mailroom::new(Settings::default(), store, Extensions::default());
        let period = SignedDuration::from_mins(10);
        mailroom.expire(period).await.unwrap();
        let counts = mailroom.counts();
        assert_eq!(counts.deleted_by(DeletionCause::Age), 1);
        assert_eq!(counts.retention_lag.as_secs() / 60, 50);
        assert!(counts.retention_completed.is_some());
        mailroom.expire(period).await.unwrap();
        assert_eq!(mailroom.counts().retention_lag, Duration::ZERO);
    }

    #[test]
    fn errors_are_logged_once_per_interval_until_cleared() {
        let start = Instant::now();
        let mut reminder = ErrorReminder::default();
        assert!(!reminder.clear());
        let logged: Vec<u64> =
            (0..150).filter(|second| reminder.is_log_due(start + Duration::from_secs(*second))).collect();
        assert_eq!(logged, [0, 60, 120]);
        assert!(reminder.clear());
        assert!(!reminder.clear());
        assert!(reminder.is_log_due(start + Duration::from_secs(151)), "a new error is logged at once");
    }
}
