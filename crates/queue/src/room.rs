//! The room for entries that are queued again by hand.

use std::collections::HashMap;

use crate::entry::StateCount;
use crate::queue::TargetLimits;

/// The number of entries that can be queued.
pub(crate) struct Room {
    free: usize,
    limits: TargetLimits,
    /// The number of waiting entries and the size of their payloads, by target.
    waiting: HashMap<String, (usize, u64)>,
}

impl Room {
    pub(crate) fn new(max_waiting: usize, limits: TargetLimits, counts: &[StateCount]) -> Self {
        let mut room = Self { free: max_waiting, limits, waiting: HashMap::new() };
        for StateCount { target, count, bytes, .. } in counts.iter().filter(|count| !count.state.is_final()) {
            let count = usize::try_from(*count).unwrap_or(usize::MAX);
            room.free = room.free.saturating_sub(count);
            let waiting = room.waiting.entry(target.clone()).or_default();
            *waiting = (waiting.0.saturating_add(count), waiting.1.saturating_add(*bytes));
        }
        room
    }

    /// Returns whether there is room for an entry, and takes it.
    pub(crate) fn take(&mut self, target: &str, bytes: usize) -> bool {
        let (count, total) = self.waiting.get(target).copied().unwrap_or_default();
        let total = total.saturating_add(bytes as u64);
        let has_room = self.free > 0 && count < self.limits.max_waiting && total <= self.limits.max_bytes;
        if has_room {
            self.free -= 1;
            self.waiting.insert(target.to_owned(), (count + 1, total));
        }
        has_room
    }
}
