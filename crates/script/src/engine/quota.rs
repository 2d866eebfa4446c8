//! How much a call may write to the log.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::services::{Field, Level, Log};

/// How many lines a call may write.
const LINES: u32 = 1000;

/// The log as the calls of one state may use it.
pub(super) struct Quota {
    log: Arc<dyn Log>,
    written: AtomicU32,
}

impl Quota {
    pub(super) fn new(log: Arc<dyn Log>) -> Self {
        Self { log, written: AtomicU32::new(0) }
    }

    /// A call begins.
    pub(super) fn renew(&self) {
        self.written.store(0, Ordering::Relaxed);
    }
}

impl Log for Quota {
    fn write(&self, level: Level, text: &str, fields: &[Field]) {
        // A state is used by one thread at a time, and far too slowly to come around.
        match self.written.fetch_add(1, Ordering::Relaxed) {
            ..LINES => self.log.write(level, text, fields),
            LINES => self.log.write(Level::Warn, "further lines of this call are left out", &[]),
            _ => self.written.store(LINES + 1, Ordering::Relaxed),
        }
    }
}
