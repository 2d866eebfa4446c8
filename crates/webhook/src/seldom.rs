//! What is said seldom, however often there is reason to: the log must not be filled by a target that fails.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long nothing more is said.
const QUIET: Duration = Duration::from_secs(10);

/// When something was last said, and how often there was reason to since.
#[derive(Debug, Default)]
pub(crate) struct Seldom(Mutex<(Option<Instant>, u64)>);

impl Seldom {
    /// There is reason to say it. When it may be said, how often there was since it was said last.
    pub(crate) fn is_due(&self, now: Instant) -> Option<u64> {
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
    fn once_in_a_while() {
        let (seldom, start) = (Seldom::default(), Instant::now());
        let after = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(seldom.is_due(start), Some(1));
        assert_eq!([1, 5, 10].map(|second| seldom.is_due(after(second))), [None; 3]);
        assert_eq!(seldom.is_due(after(11)), Some(4));
    }
}
