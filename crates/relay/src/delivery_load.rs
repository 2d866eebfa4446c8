//! An estimate of how busy the server is with deliveries. While it is very busy, messages are forwarded and sent more
//! slowly, so that deliveries keep their rate. What waits is sent afterwards.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The number of stored copies per second above which the server is busy.
const BUSY_RATE: u64 = 1000;
/// The time over which the rate is measured.
const WINDOW: Duration = Duration::from_millis(100);

/// See the module documentation.
pub(crate) struct DeliveryLoad {
    /// The number of copies that were stored.
    stored: AtomicU64,
    window: Mutex<Window>,
}

struct Window {
    start: Instant,
    stored_at_start: u64,
    /// Whether the server was busy in the last complete window.
    is_busy: bool,
}

impl DeliveryLoad {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            stored: AtomicU64::new(0),
            window: Mutex::new(Window { start: now, stored_at_start: 0, is_busy: false }),
        }
    }

    /// Counts a copy that was stored. Called for every delivery.
    pub(crate) fn count(&self) {
        self.stored.fetch_add(1, Relaxed);
    }

    /// Returns whether the server is busy.
    pub(crate) fn is_busy(&self, now: Instant) -> bool {
        let mut window = self.window.lock().unwrap_or_else(PoisonError::into_inner);
        let elapsed = now.saturating_duration_since(window.start);
        if elapsed >= WINDOW {
            let stored = self.stored.load(Relaxed);
            let limit = u128::from(BUSY_RATE) * elapsed.as_millis() / 1000;
            let is_busy = u128::from(stored - window.stored_at_start) > limit;
            *window = Window { start: now, stored_at_start: stored, is_busy };
        }
        window.is_busy
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_is_busy_above_a_rate() {
        let start = Instant::now();
        let load = DeliveryLoad::new(start);
        let table = [
            (50, 1000, false),
            (100, 0, true),
            (150, 0, true),
            (200, 100, false),
            (300, 101, true),
            (5300, 4000, false),
        ];
        for (millis, stored, expected) in table {
            (0..stored).for_each(|_| load.count());
            assert_eq!(load.is_busy(start + Duration::from_millis(millis)), expected, "{millis}");
        }
    }
}
