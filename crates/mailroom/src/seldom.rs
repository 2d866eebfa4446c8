//! What is said seldom, however often there is reason to: the log must not be filled by whoever connects, nor by a script or a
//! webhook that fails. It lives here because this is the crate that all who watch over others have in common.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long nothing more is said.
const QUIET: Duration = Duration::from_secs(10);

/// When something was last said, and how often there was reason to since.
#[derive(Debug, Default)]
pub struct Seldom(Mutex<(Option<Instant>, u64)>);

impl Seldom {
    /// There is reason to say it. Whether it may be said; it is then taken for said.
    pub fn is_due(&self) -> bool {
        self.due(Instant::now()).is_some()
    }

    /// There is reason to say it. When it may be said, how often there was since it was said last.
    pub fn due(&self, now: Instant) -> Option<u64> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (last, unsaid) = &mut *state;
        *unsaid += 1;
        if last.is_some_and(|last| now.saturating_duration_since(last) <= QUIET) {
            return None;
        }
        *last = Some(now);
        Some(std::mem::take(unsaid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_the_beginning_and_then_once_in_a_while() {
        let (seldom, start) = (Seldom::default(), Instant::now());
        let said = [0, 1, 5, 10, 11, 12, 30].map(|second| seldom.due(start + Duration::from_secs(second)));
        assert_eq!(said, [Some(1), None, None, None, Some(4), None, Some(2)]);
        assert!(Seldom::default().is_due());
    }
}
