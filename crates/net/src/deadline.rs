//! How long to wait for a peer. A silent session is closed, and so is a slow one: a command must be complete within the
//! timeout, however many bytes of it arrive, and a message, in either direction, must keep a minimum rate.

use std::time::Duration;

use tokio::time::Instant;

/// The deadline of the current command or message.
#[derive(Debug)]
pub struct Deadline {
    timeout: Duration,
    /// The average number of bytes per second that a message must reach.
    min_rate: u64,
    started: Instant,
}

impl Deadline {
    /// Starts a deadline for a peer that has just connected. `min_rate` is the minimum rate of messages in
    /// bytes per second.
    pub fn new(timeout: Duration, min_rate: u64, now: Instant) -> Self {
        Self { timeout, min_rate: min_rate.max(1), started: now }
    }

    /// Restarts the deadline for the next command or message.
    pub fn restart(&mut self, now: Instant) {
        self.started = now;
    }

    /// Extends the deadline by a time during which the server kept the peer waiting.
    pub fn extend(&mut self, waited: Duration) {
        self.started += waited;
    }

    /// Returns the instant until which to wait, given the bytes of a message transferred so far. The bytes of a command
    /// do not count.
    pub fn expires_at(&self, now: Instant, transferred: u64) -> Instant {
        let granted = Duration::from_secs(transferred / self.min_rate);
        (self.started + self.timeout + granted).min(now + self.timeout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const RATE: u64 = 1024;

    #[test]
    fn slow_command_does_not_extend_the_deadline() {
        let start = Instant::now();
        let mut deadline = Deadline::new(10 * SECOND, RATE, start);
        assert_eq!(deadline.expires_at(start, 0), start + 10 * SECOND);
        assert_eq!(deadline.expires_at(start + 9 * SECOND, 0), start + 10 * SECOND);
        deadline.restart(start + 9 * SECOND);
        assert_eq!(deadline.expires_at(start + 9 * SECOND, 0), start + 19 * SECOND);
    }

    #[test]
    fn message_must_keep_the_minimum_rate() {
        let start = Instant::now();
        let mut deadline = Deadline::new(10 * SECOND, RATE, start);
        assert_eq!(deadline.expires_at(start, 1), start + 10 * SECOND);
        // A transfer below the minimum rate does not extend the deadline.
        assert_eq!(deadline.expires_at(start + 9 * SECOND, 9), start + 10 * SECOND);
        // A fast transfer restarts the timeout with each byte.
        let now = start + 9 * SECOND;
        assert_eq!(deadline.expires_at(now, 20 * RATE), now + 10 * SECOND);
        // Messages without a pause between them do not share their time.
        deadline.restart(now);
        assert_eq!(deadline.expires_at(now, 1), now + 10 * SECOND);
        // A peer does not lose the time that it had to wait for the server.
        deadline.extend(5 * SECOND);
        assert_eq!(deadline.expires_at(now + 5 * SECOND, 2), now + 15 * SECOND);
    }
}
