//! The last events within bounds of number and of memory. Their places are counted without gaps; their positions, by which those
//! who come back say how far they got, ascend and may have gaps.

use std::collections::VecDeque;
use std::sync::Arc;

use super::{Event, Position, Told};

/// How many events are kept while somebody listens. This is how far behind a listener can be.
pub(super) const HEARD: usize = 16 * 1024;
/// How many are kept otherwise, for listeners who come back.
pub(super) const UNHEARD: usize = 4 * 1024;
/// How many go at once where there are too many, so that nobody waits for it.
const STEP: usize = 2;
/// How much memory they may take, roughly. Only mails with very long headers ever come near it.
const BYTES: usize = 16 << 20;
/// What an event takes beside its texts, roughly.
const RECORD: usize = 512;

#[derive(Default)]
pub(super) struct Ring {
    events: VecDeque<Arc<Told>>,
    next: u64,
    bytes: usize,
    /// The position behind which every event is here; none as long as none is gone.
    gone: Option<Position>,
}

impl Ring {
    /// Appends an event, and lets go what has no room beside it.
    pub(super) fn push(&mut self, position: Position, event: Event, capacity: usize) -> Arc<Told> {
        self.bytes += weight(&event);
        let crowd = (self.events.len() + 1).saturating_sub(capacity).min(STEP);
        for _ in 0..crowd {
            self.drop_oldest();
        }
        while self.bytes > BYTES && !self.events.is_empty() {
            self.drop_oldest();
        }
        let told = Arc::new(Told::new(self.next, position, event));
        self.next += 1;
        self.events.push_back(told.clone());
        told
    }

    fn drop_oldest(&mut self) {
        if let Some(oldest) = self.events.pop_front() {
            self.bytes -= weight(oldest.event());
            self.gone = self.gone.max(Some(oldest.position()));
        }
    }

    /// Notes that not everything is known up to this position, unless that is known of another one.
    pub(super) fn begin_behind(&mut self, position: Position) {
        self.gone.get_or_insert(position);
    }

    /// Forgets everything, and leaves a place for what is not known: whoever has not come to the place behind it has missed
    /// something.
    pub(super) fn lose(&mut self) {
        *self = Self { next: self.next + 1, ..Self::default() };
    }

    /// The place of the oldest event that is here, or of the next one when none is.
    pub(super) fn oldest(&self) -> u64 {
        self.next - self.events.len() as u64
    }

    /// The place that the next event gets.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// The position of the last event, if there was any.
    pub(super) fn last(&self) -> Option<Position> {
        self.before(self.next)
    }

    /// The position of the event before this place, if it is still known.
    pub(super) fn before(&self, place: u64) -> Option<Position> {
        let count = usize::try_from(place.checked_sub(self.oldest())?).ok()?;
        match count.checked_sub(1) {
            Some(index) => self.events.get(index).map(|told| told.position()),
            None => self.gone,
        }
    }

    /// The place of the first event behind this position; none when there may have been others that are not here.
    pub(super) fn behind(&self, position: Position) -> Option<u64> {
        let is_known = self.gone.map_or(!self.events.is_empty(), |gone| gone <= position);
        let count = self.events.partition_point(|told| told.position() <= position);
        is_known.then(|| self.oldest() + count as u64)
    }

    /// The events from one place up to another, as far as they are here.
    pub(super) fn range(&self, from: u64, to: u64) -> impl Iterator<Item = &Arc<Told>> {
        let index = |place: u64| {
            let index = place.clamp(self.oldest(), self.next) - self.oldest();
            usize::try_from(index).unwrap_or(self.events.len())
        };
        let (from, to) = (index(from), index(to));
        self.events.range(from..to.max(from))
    }
}

/// The texts count twice, because there is the rendered form as well.
fn weight(event: &Event) -> usize {
    RECORD + 2 * event.summary().headline.text_len()
}
