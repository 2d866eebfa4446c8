//! Detects that the writer is blocked. A call to a disk that does not respond returns no error; it does not return at
//! all. So the writer records when it starts a unit of work, and the check compares that with the current time.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::{Result, StoreError};

/// The time after which a unit of work counts as blocked. A unit is one transaction with its maintenance, or one step
/// of reclaiming space. It takes milliseconds on a good disk, and a second or two on a slow one under load.
pub(super) const STALL_TIMEOUT: Duration = Duration::from_secs(5);

/// The value of `busy_since` while the writer has no work.
const IDLE: u64 = u64::MAX;

/// The start of the writer's current unit of work.
pub(super) struct Watchdog {
    epoch: Instant,
    /// In milliseconds since `epoch`.
    busy_since: AtomicU64,
}

impl Watchdog {
    pub(super) fn new() -> Self {
        Self { epoch: Instant::now(), busy_since: AtomicU64::new(IDLE) }
    }

    /// Records that the writer starts a unit of work.
    pub(super) fn set_busy(&self, now: Instant) {
        self.busy_since.store(self.milliseconds(now), Ordering::Relaxed);
    }

    /// Records that the writer waits for work.
    pub(super) fn set_idle(&self) {
        self.busy_since.store(IDLE, Ordering::Relaxed);
    }

    /// Fails while the writer is blocked. Changes are not refused for that reason: the writer can continue at any
    /// moment, and the callers have their own timeouts.
    pub(super) fn check(&self, now: Instant) -> Result<()> {
        let busy_since = self.busy_since.load(Ordering::Relaxed);
        // If the writer is idle, this is zero.
        let busy = Duration::from_millis(self.milliseconds(now).saturating_sub(busy_since));
        if busy < STALL_TIMEOUT {
            return Ok(());
        }
        Err(StoreError::Unavailable(format!("the disk has not responded for {} s", busy.as_secs())))
    }

    fn milliseconds(&self, now: Instant) -> u64 {
        u64::try_from(now.saturating_duration_since(self.epoch).as_millis()).unwrap_or(IDLE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_only_work_that_exceeds_timeout() {
        let watchdog = Watchdog::new();
        let at = |seconds| watchdog.epoch + Duration::from_secs(seconds);
        watchdog.check(at(100)).expect("it had no work");

        watchdog.set_busy(at(100));
        watchdog.check(at(104)).expect("it is within the timeout");
        let error = watchdog.check(at(107)).expect_err("it is blocked").to_string();
        assert_eq!(error, "store unavailable: the disk has not responded for 7 s");

        watchdog.set_busy(at(107));
        watchdog.check(at(108)).expect("it started other work");
        watchdog.set_idle();
        watchdog.check(at(200)).expect("it has no work");
    }
}
