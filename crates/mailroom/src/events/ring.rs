//! The last events within bounds of number and of memory. Their places are counted without gaps; their positions, by which those
//! who come back say how far they got, ascend and may have gaps.

use std::collections::VecDeque;
use std::sync::Arc;

use super::{Event, Position, PublishedEvent};

/// How many events are kept while somebody listens. This is how far behind a listener can be.
pub(super) const CAPACITY_WITH_SUBSCRIBERS: usize = 16 * 1024;
/// How many are kept otherwise, for listeners who come back.
pub(super) const CAPACITY_WITHOUT_SUBSCRIBERS: usize = 4 * 1024;
/// How many go at once where there are too many, so that nobody waits for it.
const MAX_EVICTIONS_PER_PUSH: usize = 2;
/// How much memory they may take, roughly. Only mails with very long headers ever come near it.
const MAX_BYTES: usize = 16 << 20;
/// What an event takes beside its texts, roughly.
const EVENT_OVERHEAD_BYTES: usize = 512;

#[derive(Default)]
pub(super) struct Ring {
    events: VecDeque<Arc<PublishedEvent>>,
    next_seq: u64,
    bytes: usize,
    /// The position behind which every event is here; none as long as none is gone.
    dropped_up_to: Option<Position>,
}

impl Ring {
    /// Appends an event, and lets go what has no room beside it.
    pub(super) fn push(&mut self, position: Position, event: Event, capacity: usize) -> Arc<PublishedEvent> {
        self.bytes += event_bytes(&event);
        let crowd = (self.events.len() + 1).saturating_sub(capacity).min(MAX_EVICTIONS_PER_PUSH);
        for _ in 0..crowd {
            self.drop_oldest();
        }
        while self.bytes > MAX_BYTES && !self.events.is_empty() {
            self.drop_oldest();
        }
        let told = Arc::new(PublishedEvent::new(self.next_seq, position, event));
        self.next_seq += 1;
        self.events.push_back(told.clone());
        told
    }

    fn drop_oldest(&mut self) {
        if let Some(oldest) = self.events.pop_front() {
            self.bytes -= event_bytes(oldest.event());
            self.dropped_up_to = self.dropped_up_to.max(Some(oldest.position()));
        }
    }

    /// Notes that not everything is known up to this position, unless that is known of another one.
    pub(super) fn set_dropped_up_to(&mut self, position: Position) {
        self.dropped_up_to.get_or_insert(position);
    }

    /// Forgets everything, and leaves a place for what is not known: whoever has not come to the place behind it has missed
    /// something.
    pub(super) fn clear_with_gap(&mut self) {
        *self = Self { next_seq: self.next_seq + 1, ..Self::default() };
    }

    /// The place of the oldest event that is here, or of the next one when none is.
    pub(super) fn oldest_seq(&self) -> u64 {
        self.next_seq - self.events.len() as u64
    }

    /// The place that the next event gets.
    pub(super) fn next_seq(&self) -> u64 {
        self.next_seq
    }

    /// The position of the last event, if there was any.
    pub(super) fn last_position(&self) -> Option<Position> {
        self.position_before(self.next_seq)
    }

    /// The position of the event before this place, if it is still known.
    pub(super) fn position_before(&self, place: u64) -> Option<Position> {
        let count = usize::try_from(place.checked_sub(self.oldest_seq())?).ok()?;
        match count.checked_sub(1) {
            Some(index) => self.events.get(index).map(|told| told.position()),
            None => self.dropped_up_to,
        }
    }

    /// The place of the first event behind this position; none when there may have been others that are not here.
    pub(super) fn first_seq_after(&self, position: Position) -> Option<u64> {
        let is_known = self.dropped_up_to.map_or(!self.events.is_empty(), |gone| gone <= position);
        let count = self.events.partition_point(|told| told.position() <= position);
        is_known.then(|| self.oldest_seq() + count as u64)
    }

    /// The events from one place up to another, as far as they are here.
    pub(super) fn range(&self, from: u64, to: u64) -> impl Iterator<Item = &Arc<PublishedEvent>> {
        let index = |place: u64| {
            let index = place.clamp(self.oldest_seq(), self.next_seq) - self.oldest_seq();
            usize::try_from(index).unwrap_or(self.events.len())
        };
        let (from, to) = (index(from), index(to));
        self.events.range(from..to.max(from))
    }
}

/// The texts count twice, because there is the rendered form as well.
fn event_bytes(event: &Event) -> usize {
    EVENT_OVERHEAD_BYTES + 2 * event.summary().headline.text_len()
}
