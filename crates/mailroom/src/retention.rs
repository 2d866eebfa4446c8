//! Mail does not stay for ever: a task that lets go what is too old, a batch at a time.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use restante_store::Result;
use tokio::time::Instant;

use crate::Mailroom;
use crate::to_the_end::to_the_end;

/// How often the oldest mail is looked at, which bounds how late it goes.
const INTERVAL: Duration = Duration::from_secs(1);
/// How much goes at once. A store with one writer makes deliveries wait for a batch, so it is small; the next one follows
/// at once, behind the deliveries that came meanwhile.
const BATCH: usize = 100;
/// How often trouble that lasts is told.
const REMINDER: Duration = Duration::from_mins(1);

impl Mailroom {
    /// Removes mail older than `period`, within about a second of its time, for as long as the future is polled.
    pub async fn keep_retention(&self, period: Duration) {
        let period = SignedDuration::try_from(period).unwrap_or(SignedDuration::MAX);
        let mut trouble = Trouble::default();
        let mut ticks = tokio::time::interval(INTERVAL);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            // A period longer than history itself removes nothing.
            let Ok(deadline) = Timestamp::now().checked_sub(period) else { continue };
            match self.expire(deadline).await {
                Ok(()) if trouble.is_over() => tracing::info!("retention removes old mail again"),
                Err(error) if trouble.is_worth_telling(Instant::now()) => {
                    tracing::error!(%error, "retention could not remove old mail; trying again every second");
                }
                Ok(()) | Err(_) => {}
            }
        }
    }

    async fn expire(&self, deadline: Timestamp) -> Result<()> {
        loop {
            let desk = self.desk.clone();
            let change = async move {
                let removed = desk.store.expire(deadline, BATCH).await?;
                let count = removed.len();
                desk.announce_deleted(removed);
                Ok(count)
            };
            if to_the_end(change).await? < BATCH {
                return Ok(());
            }
            tokio::task::yield_now().await;
        }
    }
}

/// Trouble with the store that was told, and when.
#[derive(Default)]
struct Trouble(Option<Instant>);

impl Trouble {
    /// At its beginning, and from time to time while it lasts.
    fn is_worth_telling(&mut self, now: Instant) -> bool {
        if self.0.is_some_and(|told| now.duration_since(told) < REMINDER) {
            return false;
        }
        self.0 = Some(now);
        true
    }

    /// True once, when there was any.
    fn is_over(&mut self) -> bool {
        self.0.take().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trouble_is_told_once_a_minute_and_so_is_its_end() {
        let start = Instant::now();
        let mut trouble = Trouble::default();
        assert!(!trouble.is_over());
        let told: Vec<u64> =
            (0..150).filter(|second| trouble.is_worth_telling(start + Duration::from_secs(*second))).collect();
        assert_eq!(told, [0, 60, 120]);
        assert!(trouble.is_over());
        assert!(!trouble.is_over());
        assert!(trouble.is_worth_telling(start + Duration::from_secs(151)), "the next trouble is a new one");
    }
}
