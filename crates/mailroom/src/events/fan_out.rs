//! The task that tells a hall. It is there while somebody listens, and it rests after every round for a multiple of the
//! work that the round made, which grows with the rate at which mail comes: all listeners together take a tenth of one
//! processor when it comes fast, however many they are, and more of it when hardly anything else is to be done. After a
//! quiet time it tells at once.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::hub::{Hub, Kind};

/// How much longer than its work a round's rest is when mail comes fast.
const MAX_REST: f64 = 9.0;
/// With so many deliveries a second the rest is as long as the work, with twice as many twice as long.
const SLOW: f64 = 1000.0;
/// The shortest rest, so that events that come one by one are told together.
const MIN_REST: Duration = Duration::from_millis(1);

/// Tells the listeners of a hall, wing by wing, until there are none.
pub(super) async fn run(mut service: Service) {
    let (hub, kind) = (service.hub.clone(), service.kind);
    let mut pace = Pace::new(hub.deliveries());
    let mut first = 0;
    while let Some(mut wings) = hub.hall(kind).wings() {
        // Nobody is always the last to be told.
        first = (first + 1) % wings.len();
        wings.rotate_left(first);
        let mut is_idle = true;
        for wing in wings {
            let Some(work) = hub.tell(&wing) else { continue };
            is_idle = false;
            // Also behind those who were cut off, who come again at once: without this rest, mail that comes too fast for a
            // thousand listeners would have them all come and go a thousand times a second.
            if !work.is_zero() {
                sleep(work.mul_f64(pace.rest(hub.deliveries()))).await;
            }
        }
        if is_idle {
            hub.hall(kind).news.notified().await;
        } else {
            sleep(MIN_REST).await;
        }
    }
    // The hall knows already, and somebody may have come and started another task since.
    service.is_over = true;
}

/// A hall that is being served. When the task is dropped or panics, or never begins, it is known to be served no more.
pub(super) struct Service {
    hub: Arc<Hub>,
    kind: Kind,
    is_over: bool,
}

impl Service {
    pub(super) fn new(hub: Arc<Hub>, kind: Kind) -> Self {
        Self { hub, kind, is_over: false }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        if !self.is_over {
            self.hub.hall(self.kind).is_left_alone();
        }
    }
}

/// How fast mail comes.
struct Pace {
    since: Instant,
    deliveries: u64,
    rest: f64,
}

impl Pace {
    /// How often the rate is looked at anew.
    const PERIOD: Duration = Duration::from_millis(20);

    fn new(deliveries: u64) -> Self {
        Self { since: Instant::now(), deliveries, rest: 1.0 }
    }

    /// How much longer than the work a rest is, when there have been so many deliveries.
    fn rest(&mut self, deliveries: u64) -> f64 {
        let elapsed = self.since.elapsed();
        if elapsed >= Self::PERIOD {
            let fresh = u32::try_from(deliveries - self.deliveries).unwrap_or(u32::MAX);
            self.rest = (f64::from(fresh) / elapsed.as_secs_f64() / SLOW).clamp(1.0, MAX_REST);
            (self.since, self.deliveries) = (Instant::now(), deliveries);
        }
        self.rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn rests_grow_with_the_rate_of_deliveries() {
        let mut pace = Pace::new(0);
        let mut deliveries = 0;
        for (rate, expected) in [(0, 1.0), (100, 1.0), (4000, 4.0), (40_000, 9.0), (2000, 2.0)] {
            deliveries += rate / 10;
            sleep(Duration::from_millis(100)).await;
            let rest = pace.rest(deliveries);
            assert!((rest - expected).abs() < 0.1, "{rate}: {rest}");
        }
        assert!((pace.rest(deliveries + 1000) - 2.0).abs() < 0.1, "a moment is not enough to tell");
    }
}
