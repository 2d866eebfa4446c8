//! The last events, limited in number and memory. Their sequence numbers have no gaps. Their positions, which a
//! subscriber gives to resume, ascend and may have gaps.

use std::collections::VecDeque;
use std::sync::Arc;

use super::{Event, Position, PublishedEvent};

/// The number of events that are kept while there are subscribers. A subscriber can be this far behind.
pub(super) const CAPACITY_WITH_SUBSCRIBERS: usize = 16 * 1024;
/// The number that is kept without subscribers, for those that reconnect.
pub(super) const CAPACITY_WITHOUT_SUBSCRIBERS: usize = 4 * 1024;
/// The number of events that one push removes if there are too many, so that a push stays short.
const MAX_EVICTIONS_PER_PUSH: usize = 2;
/// The approximate limit of their memory. Only messages with very long headers come near it.
const MAX_BYTES: usize = 16 << 20;
/// The approximate size of an event without its texts.
const EVENT_OVERHEAD_BYTES: usize = 512;

#[derive(Default)]
pub(super) struct Ring {
    events: VecDeque<Arc<PublishedEvent>>,
    next_seq: u64,
    bytes: usize,
    /// All events after this position are in the ring. `None` if no event was dropped.
    dropped_up_to: Option<Position>,
}

impl Ring {
    /// Appends an event and drops old ones above the limits.
    pub(super) fn push(&mut self, position: Position, event: Event, capacity: usize) -> Arc<PublishedEvent> {
        self.bytes += event_bytes(&event);
        let excess = (self.events.len() + 1).saturating_sub(capacity).min(MAX_EVICTIONS_PER_PUSH);
        for _ in 0..excess {
            self.drop_oldest();
        }
        while self.bytes > MAX_BYTES && !self.events.is_empty() {
            self.drop_oldest();
        }
        let event = Arc::new(PublishedEvent::new(self.next_seq, position, event));
        self.next_seq += 1;
        self.events.push_back(event.clone());
        event
    }

    fn drop_oldest(&mut self) {
        if let Some(oldest) = self.events.pop_front() {
            self.bytes -= event_bytes(oldest.event());
            self.dropped_up_to = self.dropped_up_to.max(Some(oldest.position()));
        }
    }

    /// Records that events up to this position may be missing. Has no effect if a position is already recorded.
    pub(super) fn set_dropped_up_to(&mut self, position: Position) {
        self.dropped_up_to.get_or_insert(position);
    }

    /// Drops all events and skips one sequence number for those that are not known. A subscriber that has not reached
    /// the number after it has missed something.
    pub(super) fn clear_with_gap(&mut self) {
        *self = Self { next_seq: self.next_seq + 1, ..Self::default() };
    }

    /// Returns the sequence number of the oldest event in the ring, or of the next event if the ring is empty.
    pub(super) fn oldest_seq(&self) -> u64 {
        self.next_seq - self.events.len() as u64
    }

    /// Returns the sequence number of the next event.
    pub(super) fn next_seq(&self) -> u64 {
        self.next_seq
    }

    /// Returns the position of the last event, if there was one.
    pub(super) fn last_position(&self) -> Option<Position> {
        self.position_before(self.next_seq)
    }

    /// Returns the position of the event before this sequence number, if it is still known.
    pub(super) fn position_before(&self, seq: u64) -> Option<Position> {
        let count = usize::try_from(seq.checked_sub(self.oldest_seq())?).ok()?;
        match count.checked_sub(1) {
            Some(index) => self.events.get(index).map(|event| event.position()),
            None => self.dropped_up_to,
        }
    }

    /// Returns the sequence number of the first event after this position. Returns `None` if events after it may be
    /// missing from the ring.
    pub(super) fn first_seq_after(&self, position: Position) -> Option<u64> {
        let is_known = self.dropped_up_to.map_or(!self.events.is_empty(), |dropped| dropped <= position);
        let count = self.events.partition_point(|event| event.position() <= position);
        is_known.then(|| self.oldest_seq() + count as u64)
    }

    /// Returns the events from the sequence number `from` up to `to`, exclusive, as far as they are in the ring.
    pub(super) fn range(&self, from: u64, to: u64) -> impl Iterator<Item = &Arc<PublishedEvent>> {
        let index = |seq: u64| {
            let index = seq.clamp(self.oldest_seq(), self.next_seq) - self.oldest_seq();
            usize::try_from(index).unwrap_or(self.events.len())
        };
        let (from, to) = (index(from), index(to));
        self.events.range(from..to.max(from))
    }
}

/// Returns the approximate size of an event. The texts count twice because of the rendered form.
fn event_bytes(event: &Event) -> usize {
    EVENT_OVERHEAD_BYTES + 2 * event.summary().text_len()
}
