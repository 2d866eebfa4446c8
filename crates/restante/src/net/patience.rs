//! How long to wait for a peer. Silence ends a session, and so does dripping: a command must be complete within the
//! time limit however many bytes of it come, and a message, in either direction, must keep up a minimal rate.

use std::time::Duration;

use tokio::time::Instant;

/// What a peer is waited for, and since when.
#[derive(Debug)]
pub struct Patience {
    limit: Duration,
    /// The bytes per second that a message must keep up on average.
    rate: u64,
    since: Instant,
    in_message: bool,
}

impl Patience {
    /// Patience with a peer that has just connected, and whose messages go at so many bytes per second at least.
    pub fn new(limit: Duration, rate: u64, now: Instant) -> Self {
        Self { limit, rate: rate.max(1), since: now, in_message: false }
    }

    /// Starts anew: what comes next is another mail or command.
    pub fn restart(&mut self, now: Instant) {
        self.since = now;
    }

    /// Takes note that we let the peer wait for so long, which is not its fault.
    pub fn forgive(&mut self, waited: Duration) {
        self.since += waited;
    }

    /// Takes note that the peer was answered, which only a complete command is. A line that is too long and never ends is
    /// none, although it is read and thrown away all the time.
    pub fn answered(&mut self, now: Instant) {
        if !self.in_message {
            self.since = now;
        }
    }

    /// Until when to wait for more, when so many bytes of a message have come or gone, or a command is due.
    pub fn deadline(&mut self, now: Instant, transferred: Option<u64>) -> Instant {
        if transferred.is_some() != self.in_message {
            self.in_message = transferred.is_some();
            self.since = now;
        }
        let earned = Duration::from_secs(transferred.unwrap_or(0) / self.rate);
        (self.since + self.limit + earned).min(now + self.limit)
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
        let mut patience = Patience::new(10 * SECOND, RATE, start);
        assert_eq!(patience.deadline(start, None), start + 10 * SECOND);
        assert_eq!(patience.deadline(start + 9 * SECOND, None), start + 10 * SECOND);
        patience.answered(start + 9 * SECOND);
        assert_eq!(patience.deadline(start + 9 * SECOND, None), start + 19 * SECOND);
    }

    #[test]
    fn a_message_must_keep_up_a_rate() {
        let start = Instant::now();
        let mut patience = Patience::new(10 * SECOND, RATE, start);
        let data = start + 5 * SECOND;
        assert_eq!(patience.deadline(data, Some(1)), data + 10 * SECOND);
        // Dripping: no answer within a message gains time.
        patience.answered(data + 9 * SECOND);
        assert_eq!(patience.deadline(data + 9 * SECOND, Some(9)), data + 10 * SECOND);
        // Streaming: the time limit counts from the last byte.
        let at = data + 9 * SECOND;
        assert_eq!(patience.deadline(at, Some(20 * RATE)), at + 10 * SECOND);
        // Mails that follow each other without a pause do not share their time.
        patience.restart(at);
        assert_eq!(patience.deadline(at, Some(1)), at + 10 * SECOND);
        // Nor does a peer lose the time that it had to wait for us.
        patience.forgive(5 * SECOND);
        assert_eq!(patience.deadline(at + 5 * SECOND, Some(2)), at + 15 * SECOND);
        // The next command has its whole time again.
        assert_eq!(patience.deadline(at + SECOND, None), at + 11 * SECOND);
    }
}
