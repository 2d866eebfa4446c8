//! An estimate of how busy the server is with deliveries. While it is very busy, messages are forwarded and sent more
//! slowly, so that deliveries keep their rate. What waits is sent afterwards.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

/// The number of copies over which the rate is measured.
const BLOCK: u64 = 32;
/// The server is busy if it stores a block in less time: 1,000 copies per second.
const BUSY_MICROS: u64 = BLOCK * 1000;

/// See the module documentation.
pub(crate) struct DeliveryLoad {
    start: Instant,
    /// The number of copies that were stored.
    stored: AtomicU64,
    /// When the last complete block ended, in microseconds since the start.
    block_end: AtomicU64,
    /// How long it took.
    block_micros: AtomicU64,
}

impl DeliveryLoad {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            start: now,
            stored: AtomicU64::new(0),
            block_end: AtomicU64::new(0),
            block_micros: AtomicU64::new(u64::MAX),
        }
    }

    /// Counts a copy that was stored. Called for every delivery, so it reads the clock only once per block.
    pub(crate) fn count(&self, now: impl FnOnce() -> Instant) {
        if (self.stored.fetch_add(1, Relaxed) + 1).is_multiple_of(BLOCK) {
            let end = self.micros(now());
            self.block_micros.store(end.saturating_sub(self.block_end.swap(end, Relaxed)), Relaxed);
        }
    }

    /// Returns whether the server is busy.
    pub(crate) fn is_busy(&self, now: Instant) -> bool {
        let since_block = self.micros(now).saturating_sub(self.block_end.load(Relaxed));
        self.block_micros.load(Relaxed).max(since_block) < BUSY_MICROS
    }

    fn micros(&self, now: Instant) -> u64 {
        u64::try_from(now.saturating_duration_since(self.start).as_micros()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn server_is_busy_above_a_rate() {
        let start = Instant::now();
        let load = DeliveryLoad::new(start);
        let at = |millis: u64| start + Duration::from_millis(millis);
        // The copies that are stored until a time in milliseconds, and whether the server is busy then.
        let table = [
            (1000, 1, false),
            (1001, 31, false),
            (1010, 32, true),
            (1041, 0, true),
            (1042, 0, false),
            (1100, 32, false),
            (1131, 32, true),
            (5000, 0, false),
        ];
        for (millis, stored, expected) in table {
            (0..stored).for_each(|_| load.count(|| at(millis)));
            assert_eq!(load.is_busy(at(millis)), expected, "{millis}");
        }
    }
}
