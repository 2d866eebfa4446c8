//! The last events, numbered without gaps, within bounds of number and of memory.

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
}

impl Ring {
    /// Appends an event of this run of the server, and lets go what has no room beside it.
    pub(super) fn push(&mut self, run: u64, event: Event, capacity: usize) -> Arc<Told> {
        self.bytes += weight(&event);
        let crowd = (self.events.len() + 1).saturating_sub(capacity).min(STEP);
        for _ in 0..crowd {
            self.drop_oldest();
        }
        while self.bytes > BYTES && !self.events.is_empty() {
            self.drop_oldest();
        }
        let told = Arc::new(Told::new(Position { run, seq: self.next }, event));
        self.next += 1;
        self.events.push_back(told.clone());
        told
    }

    fn drop_oldest(&mut self) {
        if let Some(oldest) = self.events.pop_front() {
            self.bytes -= weight(oldest.event());
        }
    }

    /// The number of the oldest event that is here, or of the next one when none is.
    pub(super) fn oldest(&self) -> u64 {
        self.next - self.events.len() as u64
    }

    /// The number that the next event gets.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// The events from one number up to another, as far as they are here.
    pub(super) fn range(&self, from: u64, to: u64) -> impl Iterator<Item = &Arc<Told>> {
        let place = |number: u64| {
            let place = number.clamp(self.oldest(), self.next) - self.oldest();
            usize::try_from(place).unwrap_or(self.events.len())
        };
        let (from, to) = (place(from), place(to));
        self.events.range(from..to.max(from))
    }
}

/// The texts count twice, because there is the rendered form as well.
fn weight(event: &Event) -> usize {
    RECORD + 2 * event.summary().headline.text_len()
}
