//! What scripts have done since the start, in numbers. How they are shown is not known here.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::event::Event;

/// How a call has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The function returned.
    Ok,
    /// It raised an error, or returned something that makes no sense.
    Error,
    /// It took too long, needed too much memory, or nested its calls too deeply.
    Limit,
    /// There was no free thread in time, so it was not called.
    Busy,
}

impl Outcome {
    /// Every outcome.
    pub const ALL: [Self; 4] = [Self::Ok, Self::Error, Self::Limit, Self::Busy];
}

/// What scripts have done since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Whether there is a script.
    pub loaded: bool,
    pub(crate) calls: [[u64; Outcome::ALL.len()]; Event::ALL.len()],
    /// Events that wait for `after` hooks.
    pub waiting: u64,
    /// Events that found that queue full, or were still in it when the server ended.
    pub dropped: u64,
    /// Threads that are busy with a call, or with loading a script, that nobody waits for any more.
    pub abandoned: u64,
    /// Reloads that worked.
    pub reloads: u64,
    /// Reloads that failed, so that the old script stayed.
    pub failed_reloads: u64,
}

impl Counts {
    /// How many calls for this event have ended so.
    pub fn calls(&self, event: Event, outcome: Outcome) -> u64 {
        self.calls[event as usize][outcome as usize]
    }
}

/// The numbers while they are counted.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    calls: [[AtomicU64; Outcome::ALL.len()]; Event::ALL.len()],
    dropped: AtomicU64,
    reloads: AtomicU64,
    failed_reloads: AtomicU64,
}

impl Counters {
    pub(crate) fn count_call(&self, event: Event, outcome: Outcome) {
        self.calls[event as usize][outcome as usize].fetch_add(1, Relaxed);
    }

    pub(crate) fn count_dropped(&self) {
        self.dropped.fetch_add(1, Relaxed);
    }

    pub(crate) fn count_reload(&self, worked: bool) {
        let count = if worked { &self.reloads } else { &self.failed_reloads };
        count.fetch_add(1, Relaxed);
    }

    /// The numbers at this moment; those that are not counted here are zero.
    pub(crate) fn snapshot(&self) -> Counts {
        Counts {
            calls: std::array::from_fn(|event| std::array::from_fn(|how| self.calls[event][how].load(Relaxed))),
            dropped: self.dropped.load(Relaxed),
            reloads: self.reloads.load(Relaxed),
            failed_reloads: self.failed_reloads.load(Relaxed),
            ..Counts::default()
        }
    }
}
