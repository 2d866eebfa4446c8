//! How much a call may write to the log.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::services::{Field, Level, Log};

/// How many lines a call may write that the log takes. Warnings and errors are counted apart: they are what matters, and no
/// chatter uses up their room.
const LINES: u32 = 1000;

/// The log as the calls of one state may use it.
pub(super) struct Quota {
    log: Arc<dyn Log>,
    chatter: AtomicU32,
    warnings: AtomicU32,
}

impl Quota {
    pub(super) fn new(log: Arc<dyn Log>) -> Self {
        Self { log, chatter: AtomicU32::new(0), warnings: AtomicU32::new(0) }
    }

    /// A call begins.
    pub(super) fn renew(&self) {
        self.chatter.store(0, Ordering::Relaxed);
        self.warnings.store(0, Ordering::Relaxed);
    }
}

impl Log for Quota {
    fn takes(&self, level: Level) -> bool {
        self.log.takes(level)
    }

    fn write(&self, level: Level, text: &str, fields: &[Field]) {
        if !self.log.takes(level) {
            return;
        }
        let (written, kinds) = match level {
            Level::Debug | Level::Info => (&self.chatter, "debug and info"),
            Level::Warn | Level::Error => (&self.warnings, "warn and error"),
        };
        // A state is used by one thread at a time, and far too slowly to come around.
        match written.fetch_add(1, Ordering::Relaxed) {
            ..LINES => self.log.write(level, text, fields),
            LINES => self.log.write(Level::Warn, &format!("further {kinds} lines of this call are left out"), &[]),
            _ => written.store(LINES + 1, Ordering::Relaxed),
        }
    }
}
