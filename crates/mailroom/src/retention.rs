//! Mail does not stay for ever: a task that lets go what is too old, a batch at a time.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::Mailroom;

/// How often the oldest mail is looked at, which bounds how late it goes.
const INTERVAL: Duration = Duration::from_secs(1);
/// How much goes at once; delivery takes its turn in between.
const BATCH: usize = 500;

impl Mailroom {
    /// Removes mail older than `period`, within about a second of its time, for as long as the future is polled.
    pub async fn keep_retention(&self, period: Duration) {
        let period = SignedDuration::try_from(period).unwrap_or(SignedDuration::MAX);
        let mut ticks = tokio::time::interval(INTERVAL);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            // A period longer than history itself removes nothing.
            let Ok(deadline) = Timestamp::now().checked_sub(period) else { continue };
            self.expire(deadline).await;
        }
    }

    async fn expire(&self, deadline: Timestamp) {
        loop {
            match self.store.expire(deadline, BATCH).await {
                Ok(removed) => {
                    let count = removed.len();
                    self.announce_deleted(removed);
                    if count < BATCH {
                        return;
                    }
                }
                Err(error) => {
                    tracing::error!(%error, "retention could not remove old mail; trying again");
                    return;
                }
            }
            tokio::task::yield_now().await;
        }
    }
}
