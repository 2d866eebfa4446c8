//! Delays between attempts of background work.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

/// Delays that double with each failure, up to a maximum.
#[derive(Clone, Copy, Debug)]
pub struct RetryDelay {
    /// The delay after the first failure.
    pub first: Duration,
    /// The maximum delay.
    pub max: Duration,
}

impl RetryDelay {
    /// Returns the delay after this number of failures. `jitter` shortens it by up to a quarter, so that work that failed
    /// together is not retried together.
    pub fn after(self, failures: u32, jitter: u8) -> Duration {
        let factor = 2_u32.saturating_pow(failures.saturating_sub(1));
        let delay = self.first.saturating_mul(factor).min(self.max);
        delay.saturating_sub(delay / 1024 * u32::from(jitter))
    }
}

/// Returns a random byte. Others may be able to guess it.
pub fn random_jitter() -> u8 {
    RandomState::new().hash_one(()).to_le_bytes()[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_a_maximum() {
        let delays = RetryDelay { first: Duration::from_secs(10), max: Duration::from_mins(15) };
        for (failures, seconds) in [(0, 10), (1, 10), (2, 20), (3, 40), (7, 640), (8, 900), (u32::MAX, 900)] {
            let longest = Duration::from_secs(seconds);
            assert_eq!(delays.after(failures, 0), longest);
            let shortest = delays.after(failures, u8::MAX);
            assert!(shortest < longest && shortest > longest * 74 / 100, "{shortest:?}");
        }
    }
}
