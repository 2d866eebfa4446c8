//! The task that tells a hall. It is there while somebody listens, and it rests after every round for a multiple of the
//! work that the round made, which grows with the rate at which mail comes: all listeners together take a tenth of one
//! processor when it comes fast, however many they are, and more of it when hardly anything else is to be done. After a
//! quiet time it tells at once.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::hub::{GroupKind, Hub};

/// How much longer than its work a round's rest is when mail comes fast.
const MAX_REST_FACTOR: f64 = 9.0;
/// With so many deliveries a second the rest is as long as the work, with twice as many twice as long.
const BASE_DELIVERY_RATE: f64 = 1000.0;
/// The shortest rest, so that events that come one by one are told together.
const MIN_REST: Duration = Duration::from_millis(1);

/// Tells the listeners of a hall, wing by wing, until there are none.
pub(super) async fn run(mut service: DispatcherGuard) {
    let (hub, kind) = (service.hub.clone(), service.kind);
    let mut pace = RestFactor::new(hub.deliveries());
    let mut first = 0;
    while let Some(mut wings) = hub.group(kind).shards() {
        // Nobody is always the last to be told.
        first = (first + 1) % wings.len();
        wings.rotate_left(first);
        let mut is_idle = true;
        for wing in wings {
            let Some(work) = hub.dispatch(&wing) else { continue };
            is_idle = false;
            // Also behind those who were cut off, who come again at once: without this rest, mail that comes too fast for a
            // thousand listeners would have them all come and go a thousand times a second.
            if !work.is_zero() {
                sleep(work.mul_f64(pace.update(hub.deliveries()))).await;
            }
        }
        if is_idle {
            hub.group(kind).dispatcher_wakeup.notified().await;
        } else {
            sleep(MIN_REST).await;
        }
    }
    // The hall knows already, and somebody may have come and started another task since.
    service.is_finished = true;
}

/// A hall that is being served. When the task is dropped or panics, or never begins, it is known to be served no more.
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

/// How fast mail comes.
struct RestFactor {
    since: Instant,
    deliveries: u64,
    factor: f64,
}

impl RestFactor {
    /// How often the rate is looked at anew.
    const SAMPLE_PERIOD: Duration = Duration::from_millis(20);

    fn new(deliveries: u64) -> Self {
        Self { since: Instant::now(), deliveries, factor: 1.0 }
    }

    /// How much longer than the work a rest is, when there have been so many deliveries.
    fn update(&mut self, deliveries: u64) -> f64 {
        let elapsed = self.since.elapsed();
        if elapsed >= Self::SAMPLE_PERIOD {
            let fresh = u32::try_from(deliveries - self.deliveries).unwrap_or(u32::MAX);
            self.factor = (f64::from(fresh) / elapsed.as_secs_f64() / BASE_DELIVERY_RATE).clamp(1.0, MAX_REST_FACTOR);
            (self.since, self.deliveries) = (Instant::now(), deliveries);
        }
        self.factor
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn rests_grow_with_the_rate_of_deliveries() {
        let mut pace = RestFactor::new(0);
        let mut deliveries = 0;
        for (rate, expected) in [(0, 1.0), (100, 1.0), (4000, 4.0), (40_000, 9.0), (2000, 2.0)] {
            deliveries += rate / 10;
            sleep(Duration::from_millis(100)).await;
            let rest = pace.update(deliveries);
            assert!((rest - expected).abs() < 0.1, "{rate}: {rest}");
        }
        assert!((pace.update(deliveries + 1000) - 2.0).abs() < 0.1, "a moment is not enough to tell");
    }
}
