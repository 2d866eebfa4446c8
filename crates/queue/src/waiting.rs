//! An upper bound of the number of waiting entries, so that they need not be counted for every addition.

use std::time::{Duration, Instant};

/// An upper bound of the number of entries that are queued or being sent. It grows with every addition, and is exact
/// after they were counted.
#[derive(Debug, Default)]
pub(super) struct WaitingBound {
    /// When they were counted, and the bound.
    counted: Option<(Instant, usize)>,
}

impl WaitingBound {
    /// Returns whether this number of entries can be added for sure, if the bound is valid for `max_age`.
    pub(super) fn has_room(&self, added: usize, max_waiting: usize, max_age: Duration) -> bool {
        let is_enough = |bound: usize| bound.saturating_add(added) <= max_waiting;
        self.counted.is_some_and(|(at, bound)| is_enough(bound) && at.elapsed() <= max_age)
    }

    /// Sets the bound to a number that was just counted.
    pub(super) fn set(&mut self, waiting: usize) {
        self.counted = Some((Instant::now(), waiting));
    }

    /// Raises the bound, before entries are added. It stays raised if they are not.
    pub(super) fn raise(&mut self, added: usize) {
        if let Some((_, bound)) = &mut self.counted {
            *bound = bound.saturating_add(added);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bound_is_raised_until_entries_are_counted() {
        let mut bound = WaitingBound::default();
        let has_room = |bound: &WaitingBound, added| bound.has_room(added, 10, Duration::MAX);
        assert!(!has_room(&bound, 1), "they were never counted");
        bound.raise(1);
        assert!(!has_room(&bound, 1));
        bound.set(7);
        assert!(has_room(&bound, 3) && !has_room(&bound, 4));
        bound.raise(2);
        assert!(has_room(&bound, 1) && !has_room(&bound, 2) && !has_room(&bound, usize::MAX));
        bound.set(0);
        assert!(has_room(&bound, 10));
    }
}
