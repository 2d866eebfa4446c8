//! How long to wait for a peer. Silence ends a session, and so does dripping: a command must be complete within the
//! time limit however many bytes of it come, and a message must keep up a minimal rate.

use std::time::Duration;

use tokio::time::Instant;

/// The rate that a message must keep up on average, in bytes per second; any real link is faster.
const MIN_RATE: usize = 1024;

/// What a peer is waited for, and since when.
#[derive(Debug)]
pub(super) struct Patience {
    limit: Duration,
    since: Instant,
    in_message: bool,
}

impl Patience {
    /// Patience with a peer that has just connected.
    pub(super) fn new(limit: Duration, now: Instant) -> Self {
        Self { limit, since: now, in_message: false }
    }

    /// Takes note that the session has used some of its input.
    pub(super) fn progress(&mut self, now: Instant) {
        if !self.in_message {
            self.since = now;
        }
    }

    /// Until when to wait for more, while so many bytes of a message are held.
    pub(super) fn deadline(&mut self, now: Instant, receiving: usize) -> Instant {
        let in_message = receiving > 0;
        if in_message != self.in_message {
            self.in_message = in_message;
            self.since = now;
        }
        let earned = Duration::from_secs((receiving / MIN_RATE) as u64);
        (self.since + self.limit + earned).min(now + self.limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_command_that_drips_in_gains_no_time() {
        let start = Instant::now();
        let mut patience = Patience::new(10 * SECOND, start);
        assert_eq!(patience.deadline(start, 0), start + 10 * SECOND);
        assert_eq!(patience.deadline(start + 9 * SECOND, 0), start + 10 * SECOND);
        patience.progress(start + 9 * SECOND);
        assert_eq!(patience.deadline(start + 9 * SECOND, 0), start + 19 * SECOND);
    }

    #[test]
    fn a_message_must_keep_up_a_rate() {
        let start = Instant::now();
        let mut patience = Patience::new(10 * SECOND, start);
        let data = start + 5 * SECOND;
        assert_eq!(patience.deadline(data, 1), data + 10 * SECOND);
        // Dripping: every byte is progress to the session, and none to us.
        patience.progress(data + 9 * SECOND);
        assert_eq!(patience.deadline(data + 9 * SECOND, 9), data + 10 * SECOND);
        // Streaming: the time limit counts from the last byte.
        let at = data + 9 * SECOND;
        assert_eq!(patience.deadline(at, 20 * MIN_RATE), at + 10 * SECOND);
        // The next command has its whole time again.
        assert_eq!(patience.deadline(at + SECOND, 0), at + 11 * SECOND);
    }
}
