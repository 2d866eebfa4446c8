//! Delays between attempts.

use std::time::Duration;

use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;
use restante_worker::RetryDelay;

/// Delays of delivery.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Backoff {
    /// The delay after the first failure. It doubles with each further failure.
    pub(crate) first_delay: Duration,
    /// The maximum delay.
    pub(crate) max_delay: Duration,
    /// The maximum delay that a target can request with `Retry-After`.
    pub(crate) max_retry_after: Duration,
    /// How often events expire, the events are counted and the checkpoint is recorded, and the maximum delay after an error
    /// of the queue.
    pub(crate) maintenance_interval: Duration,
    /// How long missed events wait for room in the queue.
    pub(crate) max_room_wait: Duration,
}

impl Backoff {
    pub(crate) const DEFAULT: Self = Self {
        first_delay: Duration::from_secs(1),
        max_delay: Duration::from_mins(10),
        max_retry_after: Duration::from_hours(1),
        maintenance_interval: Duration::from_secs(5),
        max_room_wait: Duration::from_mins(10),
    };

    /// Returns the delay after the given number of failures. `jitter` shortens it by up to a quarter, so that events
    /// that failed together are not retried together. A longer delay requested by the target is respected up to
    /// `max_retry_after`.
    pub(crate) fn delay(&self, failures: u32, jitter: u8, retry_after: Option<Duration>) -> Duration {
        let delay = RetryDelay { first: self.first_delay, max: self.max_delay }.after(failures, jitter);
        delay.max(retry_after.unwrap_or_default().min(self.max_retry_after))
    }

    /// Returns how long after its deadline an event expires, so that its last attempt can be made first. At the deadline all
    /// senders may wait for responses, as long as `timeout`.
    pub(crate) fn expiry_grace(&self, timeout: Duration) -> Duration {
        timeout + self.maintenance_interval
    }
}

/// Parses the `Retry-After` header field (RFC 9110 section 10.2.3): a number of seconds or a date.
pub(crate) fn parse_retry_after(headers: &[(String, String)], now: Timestamp) -> Option<Duration> {
    let (_, value) = headers.iter().find(|(name, _)| name == "retry-after")?;
    let value = value.trim();
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = DateTimeParser::new().parse_timestamp(value).ok()?;
    Some(Duration::try_from(date.duration_since(now)).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn delays_double_up_to_a_maximum() {
        let table = [(1, 1), (2, 2), (3, 4), (10, 512), (11, 600), (12, 600), (u32::MAX, 600)];
        for (failures, seconds) in table {
            assert_eq!(Backoff::DEFAULT.delay(failures, 0, None), SECOND * seconds);
            let shortest = Backoff::DEFAULT.delay(failures, u8::MAX, None);
            assert!(shortest < SECOND * seconds && shortest > SECOND * seconds * 74 / 100, "{shortest:?}");
        }
    }

    #[test]
    fn retry_after_never_shortens_the_delay() {
        let table = [(1, 30, 30), (6, 30, 32), (1, 10_000, 3600)];
        for (failures, retry_after, seconds) in table {
            assert_eq!(Backoff::DEFAULT.delay(failures, 0, Some(SECOND * retry_after)), SECOND * seconds);
        }
    }

    #[test]
    fn parses_retry_after_seconds_and_dates() {
        let now = Timestamp::from_second(784_111_777).unwrap();
        let table = [
            ("120", Some(120)),
            (" 0 ", Some(0)),
            ("Sun, 06 Nov 1994 08:50:37 GMT", Some(60)),
            ("Sun, 06 Nov 1994 08:00:00 GMT", Some(0)),
            ("soon", None),
            ("-1", None),
            ("99999999999999999999", None),
        ];
        for (value, expected) in table {
            let headers = [("date".to_owned(), "x".to_owned()), ("retry-after".to_owned(), value.to_owned())];
            assert_eq!(parse_retry_after(&headers, now), expected.map(Duration::from_secs), "{value}");
        }
        assert_eq!(parse_retry_after(&[], now), None);
    }
}
