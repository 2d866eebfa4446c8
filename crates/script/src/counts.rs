//! Statistics of scripts since the start of the server.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use restante_mail::named_enum;

use crate::event::ScriptEvent;

named_enum! {
    /// The outcome of a call.
    pub enum Outcome {
        /// The function returned.
        Ok = "ok",
        /// The function raised an error or returned an invalid value.
        Error = "error",
        /// The function exceeded a limit of time, memory or call depth.
        Limit = "limit",
        /// The function was not called, because no thread was free in time.
        Busy = "busy",
    }
}

/// Statistics of scripts since the start of the server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Whether a script is loaded.
    pub loaded: bool,
    pub(crate) calls: [[u64; Outcome::ALL.len()]; ScriptEvent::ALL.len()],
    /// Events in the queue of `after` hooks.
    pub waiting: u64,
    /// Events that were dropped because that queue was full or the server shut down.
    pub dropped: u64,
    /// Threads whose call or load was abandoned and is still running.
    pub abandoned: u64,
    /// Successful reloads.
    pub reloads: u64,
    /// Failed reloads, after which the old script stayed in use.
    pub failed_reloads: u64,
}

impl Counts {
    /// Returns the number of calls for `event` with `outcome`.
    pub fn calls(&self, event: ScriptEvent, outcome: Outcome) -> u64 {
        self.calls[event as usize][outcome as usize]
    }
}

/// The counters.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    calls: [[AtomicU64; Outcome::ALL.len()]; ScriptEvent::ALL.len()],
    dropped: AtomicU64,
    reloads: AtomicU64,
    failed_reloads: AtomicU64,
}

impl Counters {
    pub(crate) fn count_call(&self, event: ScriptEvent, outcome: Outcome) {
        self.calls[event as usize][outcome as usize].fetch_add(1, Relaxed);
    }

    pub(crate) fn count_dropped(&self) {
        self.dropped.fetch_add(1, Relaxed);
    }

    pub(crate) fn count_reload(&self, is_ok: bool) {
        let count = if is_ok { &self.reloads } else { &self.failed_reloads };
        count.fetch_add(1, Relaxed);
    }

    /// Returns a snapshot. Fields that are not counted here are zero.
    pub(crate) fn snapshot(&self) -> Counts {
        Counts {
            calls: std::array::from_fn(|event| std::array::from_fn(|outcome| self.calls[event][outcome].load(Relaxed))),
            dropped: self.dropped.load(Relaxed),
            reloads: self.reloads.load(Relaxed),
            failed_reloads: self.failed_reloads.load(Relaxed),
            ..Counts::default()
        }
    }
}
