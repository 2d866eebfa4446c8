//! Mail does not stay for ever: a task that lets go what is too old, a batch at a time.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use restante_store::Result;
use tokio::time::Instant;

use crate::run_to_completion::run_to_completion;
use crate::{DeletionCause, Mailroom};

/// How often the oldest mail is looked at, which bounds how late it goes.
const SCAN_INTERVAL: Duration = Duration::from_secs(1);
/// How much goes at once. A store with one writer makes deliveries wait for a batch, so it is small; the next one follows
/// at once, behind the deliveries that came meanwhile.
const BATCH_SIZE: usize = 100;
/// How long a round waits in all, so that those who listen can hear of everything that goes.
const MAX_SUBSCRIBER_WAIT: Duration = Duration::from_secs(1);
/// How often trouble that lasts is told.
const LOG_INTERVAL: Duration = Duration::from_mins(1);

impl Mailroom {
    /// Removes mail older than `period`, within about a second of its time, for as long as the future is polled.
    pub async fn run_retention(&self, period: Duration) {
        let period = SignedDuration::try_from(period).unwrap_or(SignedDuration::MAX);
        let mut trouble = ErrorReminder::default();
        let mut ticks = tokio::time::interval(SCAN_INTERVAL);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            match self.expire(period).await {
                Ok(()) if trouble.clear() => tracing::info!("retention removes old mail again"),
                Err(error) if trouble.is_log_due(Instant::now()) => {
                    tracing::error!(%error, "retention could not remove old mail; trying again every second");
                }
                Ok(()) | Err(_) => {}
            }
        }
    }

    /// Removes what is older than the period now.
    async fn expire(&self, period: SignedDuration) -> Result<()> {
        // A period longer than history itself removes nothing.
        let Ok(deadline) = Timestamp::now().checked_sub(period) else { return Ok(()) };
        if let Some(journal) = &self.journal {
            journal.expire_before(deadline);
        }
        let (mut late, mut patience) = (false, MAX_SUBSCRIBER_WAIT);
        loop {
            let desk = self.inner.clone();
            let change = async move {
                let removed = desk.store.expire(deadline, BATCH_SIZE).await?;
                let count = removed.len();
                if let Some(oldest) = removed.first() {
                    let lag = Timestamp::now().duration_since(oldest.received).saturating_sub(period);
                    desk.counters.set_retention_lag(lag.try_into().unwrap_or_default());
                }
                desk.publish_deleted(DeletionCause::Age, removed);
                Ok(count)
            };
            let count = run_to_completion(change).await?;
            late |= count > 0;
            if count < BATCH_SIZE {
                break;
            }
            patience = self.inner.hub.wait_for_subscribers(patience).await;
            tokio::task::yield_now().await;
        }
        if !late {
            self.inner.counters.set_retention_lag(Duration::ZERO);
        }
        self.inner.counters.set_retention_completed(Timestamp::now());
        Ok(())
    }
}

/// Trouble with the store that was told, and when.
#[derive(Default)]
struct ErrorReminder(Option<Instant>);

impl ErrorReminder {
    /// At its beginning, and from time to time while it lasts.
    fn is_log_due(&mut self, now: Instant) -> bool {
        if self.0.is_some_and(|told| now.duration_since(told) < LOG_INTERVAL) {
            return false;
        }
        self.0 = Some(now);
        true
    }

    /// True once, when there was any.
    fn clear(&mut self) -> bool {
        self.0.take().is_some()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use restante_mail::message::Headline;
    use restante_store::memory::MemoryStore;
    use restante_store::{Limits, NewCopy, NewMessage, Store as _};

    use super::*;
    use crate::Settings;
    use crate::hooks::Extensions;

    #[tokio::test]
    async fn how_late_mail_goes_is_told_until_nothing_is_overdue() {
        let store = Arc::new(MemoryStore::new(Limits::default()));
        let received = Timestamp::now() - SignedDuration::from_hours(1);
        let copies = vec![NewCopy { mailbox: "bob".to_owned().into(), trace: Bytes::new() }];
        let message = NewMessage { received, headline: Headline::new("", [], ""), body: Bytes::new(), copies };
        store.append(message).await.unwrap();
        let room = Mailroom::new(Settings::default(), store, Extensions::default());
        let period = SignedDuration::from_mins(10);
        room.expire(period).await.unwrap();
        let counts = room.counts();
        assert_eq!(counts.deleted_by(DeletionCause::Age), 1);
        assert_eq!(counts.retention_lag.as_secs() / 60, 50);
        assert!(counts.retention_completed.is_some());
        room.expire(period).await.unwrap();
        assert_eq!(room.counts().retention_lag, Duration::ZERO);
    }

    #[test]
    fn trouble_is_told_once_a_minute_and_so_is_its_end() {
        let start = Instant::now();
        let mut trouble = ErrorReminder::default();
        assert!(!trouble.clear());
        let told: Vec<u64> =
            (0..150).filter(|second| trouble.is_log_due(start + Duration::from_secs(*second))).collect();
        assert_eq!(told, [0, 60, 120]);
        assert!(trouble.clear());
        assert!(!trouble.clear());
        assert!(trouble.is_log_due(start + Duration::from_secs(151)), "the next trouble is a new one");
    }
}
