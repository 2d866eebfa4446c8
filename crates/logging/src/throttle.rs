//! A limit on how often one log line is written. Peers, scripts and webhook targets can cause errors at any rate; they must
//! not fill the log.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// The shortest time between two lines.
const MIN_INTERVAL: Duration = Duration::from_secs(10);

/// Decides for one kind of log line whether it is written now, and counts the occurrences in between.
#[derive(Debug, Default)]
pub struct LogThrottle(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    last_written: Option<Instant>,
    /// Occurrences since the last written line.
    count: u64,
}

impl LogThrottle {
    /// Counts an occurrence. Returns true if the caller must write the line now.
    pub fn should_log(&self) -> bool {
        self.record(Instant::now()).is_some()
    }

    /// Counts an occurrence at the time `now`. If the line is due, returns the number of occurrences since the last one.
    pub fn record(&self, now: Instant) -> Option<u64> {
        let mut state = self.0.lock();
        state.count += 1;
        if state.last_written.is_some_and(|last| now.saturating_duration_since(last) <= MIN_INTERVAL) {
            return None;
        }
        state.last_written = Some(now);
        Some(std::mem::take(&mut state.count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_line_is_due_at_once_and_next_after_interval() {
        let (throttle, start) = (LogThrottle::default(), Instant::now());
        let counts = [0, 1, 5, 10, 11, 12, 30].map(|second| throttle.record(start + Duration::from_secs(second)));
        assert_eq!(counts, [Some(1), None, None, None, Some(4), None, Some(2)]);
        assert!(LogThrottle::default().should_log());
    }
}
