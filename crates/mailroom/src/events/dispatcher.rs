//! The task that sends events to one group of subscribers. It runs while the group has subscribers. After each shard it
//! rests for a multiple of the estimated cost of the sends. The multiple grows with the delivery rate: if messages
//! arrive fast, all subscribers together use a tenth of one processor, however many they are. If messages arrive slowly
//! they may use more. After an idle time an event is sent at once.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::hub::{GroupKind, Hub};

/// The rest after a round as a multiple of its cost, at a high delivery rate.
const MAX_REST_FACTOR: f64 = 9.0;
/// At this number of deliveries per second the rest is as long as the cost, at twice the rate twice as long.
const BASE_DELIVERY_RATE: f64 = 1000.0;
/// The shortest rest, so that events in quick succession are sent together.
const MIN_REST: Duration = Duration::from_millis(1);

/// Sends events to the subscribers of a group, shard by shard, until it has none.
pub(super) async fn run(mut guard: DispatcherGuard) {
    let (hub, kind) = (guard.hub.clone(), guard.kind);
    let mut rest_factor = RestFactor::new(hub.deliveries());
    let mut first = 0;
    while let Some(mut shards) = hub.group(kind).shards() {
        // Start with another shard each time, so that none is always the last.
        first = (first + 1) % shards.len();
        shards.rotate_left(first);
        let mut is_idle = true;
        for shard in shards {
            let Some(cost) = hub.dispatch(&shard) else { continue };
            is_idle = false;
            // Rest also after subscribers were disconnected. They reconnect at once: if messages arrive too fast for a
            // thousand subscribers, they would otherwise all reconnect a thousand times per second.
            if !cost.is_zero() {
                sleep(cost.mul_f64(rest_factor.update(hub.deliveries()))).await;
            }
        }
        if is_idle {
            hub.group(kind).dispatcher_wakeup.notified().await;
        } else {
            sleep(MIN_REST).await;
        }
    }
    // `shards` has recorded that the group has no dispatcher, and another one may already run.
    guard.is_finished = true;
}

/// Marks a group as served by a dispatcher. If the task is dropped, panics or never starts, the group is marked as not
/// served.
pub(super) struct DispatcherGuard {
    hub: Arc<Hub>,
    kind: GroupKind,
    is_finished: bool,
}

impl DispatcherGuard {
    pub(super) fn new(hub: Arc<Hub>, kind: GroupKind) -> Self {
        Self { hub, kind, is_finished: false }
    }
}

impl Drop for DispatcherGuard {
    fn drop(&mut self) {
        if !self.is_finished {
            self.hub.group(self.kind).dispatcher_stopped();
        }
    }
}

/// Computes the length of the rests from the delivery rate.
struct RestFactor {
    since: Instant,
    deliveries: u64,
    factor: f64,
}

impl RestFactor {
    /// How often the rate is measured.
    const SAMPLE_PERIOD: Duration = Duration::from_millis(20);

    fn new(deliveries: u64) -> Self {
        Self { since: Instant::now(), deliveries, factor: 1.0 }
    }

    /// Returns the rest as a multiple of the cost, given the total number of deliveries.
    fn update(&mut self, deliveries: u64) -> f64 {
        let elapsed = self.since.elapsed();
        if elapsed >= Self::SAMPLE_PERIOD {
            let new_deliveries = u32::try_from(deliveries - self.deliveries).unwrap_or(u32::MAX);
            self.factor =
                (f64::from(new_deliveries) / elapsed.as_secs_f64() / BASE_DELIVERY_RATE).clamp(1.0, MAX_REST_FACTOR);
            (self.since, self.deliveries) = (Instant::now(), deliveries);
        }
        self.factor
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn rest_grows_with_the_delivery_rate() {
        let mut rest_factor = RestFactor::new(0);
        let mut deliveries = 0;
        for (rate, expected) in [(0, 1.0), (100, 1.0), (4000, 4.0), (40_000, 9.0), (2000, 2.0)] {
            deliveries += rate / 10;
            sleep(Duration::from_millis(100)).await;
            let factor = rest_factor.update(deliveries);
            assert!((factor - expected).abs() < 0.1, "{rate}: {factor}");
        }
        assert!(
            (rest_factor.update(deliveries + 1000) - 2.0).abs() < 0.1,
            "not measured again within the sample period"
        );
    }
}
