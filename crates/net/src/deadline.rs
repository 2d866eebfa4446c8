//! How long to wait for a peer. Silence ends a session, and so does dripping: a command must be complete within the
//! time limit however many bytes of it come, and a message, in either direction, must keep up a minimal rate.

use std::time::Duration;

use tokio::time::Instant;

/// Since when a peer is waited for, and how long at most.
#[derive(Debug)]
pub struct Deadline {
    timeout: Duration,
    /// The bytes per second that a message must keep up on average.
    min_rate: u64,
    started: Instant,
}

impl Deadline {
    /// Patience with a peer that has just connected, and whose messages go at so many bytes per second at least.
    pub fn new(limit: Duration, rate: u64, now: Instant) -> Self {
        Self { timeout: limit, min_rate: rate.max(1), started: now }
    }

    /// Starts anew: what comes next is another command or message.
    pub fn restart(&mut self, now: Instant) {
        self.started = now;
    }

    /// Takes note that we let the peer wait for so long, which is not its fault.
    pub fn extend(&mut self, waited: Duration) {
        self.started += waited;
    }

    /// Until when to wait for more, when so many bytes of a message have come or gone. Those of a command do not count.
    pub fn expires_at(&self, now: Instant, transferred: u64) -> Instant {
        let earned = Duration::from_secs(transferred / self.min_rate);
        (self.started + self.timeout + earned).min(now + self.timeout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const RATE: u64 = 1024;

    #[test]
    fn a_command_that_drips_in_gains_no_time() {
        let start = Instant::now();
        let mut patience = Deadline::new(10 * SECOND, RATE, start);
        assert_eq!(patience.expires_at(start, 0), start + 10 * SECOND);
        assert_eq!(patience.expires_at(start + 9 * SECOND, 0), start + 10 * SECOND);
        patience.restart(start + 9 * SECOND);
        assert_eq!(patience.expires_at(start + 9 * SECOND, 0), start + 19 * SECOND);
    }

    #[test]
    fn a_message_must_keep_up_a_rate() {
        let start = Instant::now();
        let mut patience = Deadline::new(10 * SECOND, RATE, start);
        assert_eq!(patience.expires_at(start, 1), start + 10 * SECOND);
        // Dripping: what is below the rate gains no time.
        assert_eq!(patience.expires_at(start + 9 * SECOND, 9), start + 10 * SECOND);
        // Streaming: the time limit counts from the last byte.
        let at = start + 9 * SECOND;
        assert_eq!(patience.expires_at(at, 20 * RATE), at + 10 * SECOND);
        // Mails that follow each other without a pause do not share their time.
        patience.restart(at);
        assert_eq!(patience.expires_at(at, 1), at + 10 * SECOND);
        // Nor does a peer lose the time that it had to wait for us.
        patience.extend(5 * SECOND);
        assert_eq!(patience.expires_at(at + 5 * SECOND, 2), at + 15 * SECOND);
    }
}
