//! The clock of the database, which all nodes use.

use std::sync::atomic::{AtomicI64, Ordering};

use jiff::{SignedDuration, Timestamp};

/// Converts between the clocks of this machine and of the database.
#[derive(Debug, Default)]
pub struct DatabaseClock {
    /// How far the clock of this machine is ahead, in microseconds. Zero if the difference is small.
    error: AtomicI64,
}

impl DatabaseClock {
    /// Converts a time of this machine to a time of the database.
    pub fn to_database(&self, time: Timestamp) -> Timestamp {
        time.checked_sub(self.error()).unwrap_or(time)
    }

    /// Converts a time of the database to a time of this machine.
    pub fn to_machine(&self, time: Timestamp) -> Timestamp {
        time.checked_add(self.error()).unwrap_or(time)
    }

    /// Returns whether times are corrected.
    pub(super) fn is_wrong(&self) -> bool {
        !self.error().is_zero()
    }

    /// Sets how far the clock of this machine is ahead. Returns whether it was corrected before.
    pub fn set_error(&self, error: SignedDuration) -> bool {
        let micros = i64::try_from(error.as_micros()).unwrap_or(0);
        self.error.swap(micros, Ordering::Relaxed) != 0
    }

    fn error(&self) -> SignedDuration {
        SignedDuration::from_micros(self.error.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_converted() {
        let (clock, noon) = (DatabaseClock::default(), Timestamp::from_second(1000).unwrap());
        assert_eq!(clock.to_database(noon), noon);
        assert!(!clock.set_error(SignedDuration::from_secs(90)), "it was not corrected before");
        assert_eq!(clock.to_database(noon), Timestamp::from_second(910).unwrap());
        assert_eq!(clock.to_machine(clock.to_database(noon)), noon);
        assert!(clock.set_error(SignedDuration::ZERO));
        assert_eq!(clock.to_database(noon), noon);
    }
}
