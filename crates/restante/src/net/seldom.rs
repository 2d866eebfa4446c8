//! What is said seldom, however often there is reason to: the log must not be filled by whoever connects.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// How long nothing more is said.
const QUIET: Duration = Duration::from_secs(10);

/// When something was last said.
#[derive(Debug, Default)]
pub struct Seldom(Mutex<Option<Instant>>);

impl Seldom {
    /// Whether it may be said again; it is then taken for said.
    pub fn is_due(&self) -> bool {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let due = last.is_none_or(|last| last.elapsed() > QUIET);
        if due {
            *last = Some(Instant::now());
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn once_in_a_while() {
        let seldom = Seldom::default();
        assert!(seldom.is_due());
        for _ in 0..10 {
            tokio::time::advance(Duration::from_secs(1)).await;
            assert!(!seldom.is_due());
        }
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(seldom.is_due());
    }
}
