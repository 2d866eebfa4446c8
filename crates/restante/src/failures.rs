//! What the operator is told when the store fails its clients, each kind of trouble at once and then seldom: while a database is
//! away, every client has reason to complain, and a line for each of them would fill the log. What a client is told is each
//! protocol's own.

use std::time::Instant;

use restante_mailroom::seldom::Seldom;
use restante_store::StoreError;

/// When the log was told of failures that the clients of one protocol have met.
#[derive(Debug, Default)]
pub struct Failures {
    no_space: Seldom,
    unavailable: Seldom,
    broken: Seldom,
}

impl Failures {
    /// Tells what the store failed at, with the session that met it where it has a name, unless that was told only just now.
    pub fn tell(&self, what: &str, session: Option<&str>, error: &StoreError) {
        if let Some(count) = self.due(error, Instant::now()) {
            let count = (count > 1).then_some(count);
            tracing::error!(session, %error, count, "{what}");
        }
    }

    /// When one more failure may be told of, how many there were of its kind since one was. They do not silence each other:
    /// damage must be seen, however often the store was away before.
    fn due(&self, error: &StoreError, now: Instant) -> Option<u64> {
        let kind = match error {
            StoreError::NoSpace(_) => &self.no_space,
            StoreError::Unavailable(_) => &self.unavailable,
            StoreError::Broken(_) => &self.broken,
        };
        kind.due(now)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn each_kind_is_told_at_once_and_then_seldom() {
        let (failures, start) = (Failures::default(), Instant::now());
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
            assert_eq!(failures.due(&error, start + Duration::from_secs(second)), expected, "{second}: {error}");
        }
    }
}
