//! Log lines about store errors. While a database is unreachable, every client causes an error; the log gets one line per kind
//! of error and interval. The reply to the client is up to each protocol.

use std::time::Instant;

use restante_logging::LogThrottle;
use restante_store::StoreError;

/// Logs the store errors that the clients of one protocol cause, throttled per kind of error.
#[derive(Debug, Default)]
pub struct StoreErrorLog {
    no_space: LogThrottle,
    unavailable: LogThrottle,
    broken: LogThrottle,
}

impl StoreErrorLog {
    /// Logs an error with the name of the session, unless an error of the same kind was logged just before. `message` says
    /// what failed.
    pub fn log(&self, message: &str, session: Option<&str>, error: &StoreError) {
        if let Some(count) = self.record(error, Instant::now()) {
            let count = (count > 1).then_some(count);
            tracing::error!(session, %error, count, "{message}");
        }
    }

    /// Returns the number of errors of this kind since the last logged one, if a line is due. The kinds are throttled
    /// separately: damage must be logged even if the store was unreachable just before.
    fn record(&self, error: &StoreError, now: Instant) -> Option<u64> {
        let throttle = match error {
            StoreError::NoSpace(_) => &self.no_space,
            StoreError::Unavailable(_) => &self.unavailable,
            StoreError::Broken(_) => &self.broken,
        };
        throttle.record(now)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn each_kind_of_error_is_throttled_separately() {
        let (log, start) = (StoreErrorLog::default(), Instant::now());
        let unavailable = || StoreError::Unavailable("connection refused".to_owned());
        let broken = StoreError::Broken("a row is missing".to_owned());
        let table = [
            (0, unavailable(), Some(1)),
            (1, unavailable(), None),
            (2, broken, Some(1)),
            (3, StoreError::NoSpace("disk full".to_owned()), Some(1)),
            (4, unavailable(), None),
            (11, unavailable(), Some(3)),
        ];
        for (second, error, expected) in table {
            assert_eq!(log.record(&error, start + Duration::from_secs(second)), expected, "{second}: {error}");
        }
    }
}
