//! Whether the writer gets on. A call to a disk that is stuck does not fail, it never returns, so time is the only sign of
//! it: the writer notes when it takes up a piece of work, and whoever wants to know looks how long ago that was.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::{Result, StoreError};

/// A piece of work that takes longer is stuck. It is one transaction and what has to be tidied up after it, or one step of
/// reclaiming space: some milliseconds for a good disk, and a second or two for a slow one under load.
pub(super) const STALL_TIMEOUT: Duration = Duration::from_secs(5);

/// Instead of a time: there is no work.
const IDLE: u64 = u64::MAX;

/// Since when the writer has been at its work.
pub(super) struct Watchdog {
    epoch: Instant,
    /// In milliseconds from the epoch.
    busy_since: AtomicU64,
}

impl Watchdog {
    pub(super) fn new() -> Self {
        Self { epoch: Instant::now(), busy_since: AtomicU64::new(IDLE) }
    }

    /// The writer takes up the next piece of work.
    pub(super) fn set_busy(&self, now: Instant) {
        self.busy_since.store(self.milliseconds(now), Ordering::Relaxed);
    }

    /// The writer waits for work.
    pub(super) fn set_idle(&self) {
        self.busy_since.store(IDLE, Ordering::Relaxed);
    }

    /// Fails while the writer is stuck. Nothing is refused for that: it may get on at any moment, and whoever waits for it
    /// knows best how long that is worth while.
    pub(super) fn check(&self, now: Instant) -> Result<()> {
        let busy_since = self.busy_since.load(Ordering::Relaxed);
        // While it rests, this is zero.
        let busy = Duration::from_millis(self.milliseconds(now).saturating_sub(busy_since));
        if busy < STALL_TIMEOUT {
            return Ok(());
        }
        Err(StoreError::Unavailable(format!("the disk has not answered for {} s", busy.as_secs())))
    }

    fn milliseconds(&self, now: Instant) -> u64 {
        u64::try_from(now.saturating_duration_since(self.epoch).as_millis()).unwrap_or(IDLE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_work_that_does_not_end_is_stuck() {
        let pulse = Watchdog::new();
        let at = |seconds| pulse.epoch + Duration::from_secs(seconds);
        pulse.check(at(100)).expect("it has had no work");

        pulse.set_busy(at(100));
        pulse.check(at(104)).expect("it may take that long");
        let stuck = pulse.check(at(107)).expect_err("it does not get on").to_string();
        assert_eq!(stuck, "store unavailable: the disk has not answered for 7 s");

        pulse.set_busy(at(107));
        pulse.check(at(108)).expect("it got on");
        pulse.set_idle();
        pulse.check(at(200)).expect("it has no work");
    }
}
