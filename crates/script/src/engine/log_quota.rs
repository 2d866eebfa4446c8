//! How much a call may write to the log.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::services::{Level, Log, LogField};

/// How many lines a call may write that the log takes. Warnings and errors are counted apart: they are what matters, and no
/// chatter uses up their room.
const MAX_LINES: u32 = 1000;

/// The log as the calls of one state may use it.
pub(super) struct LogQuota {
    log: Arc<dyn Log>,
    debug_info_lines: AtomicU32,
    warn_error_lines: AtomicU32,
}

impl LogQuota {
    pub(super) fn new(log: Arc<dyn Log>) -> Self {
        Self { log, debug_info_lines: AtomicU32::new(0), warn_error_lines: AtomicU32::new(0) }
    }

    /// A call begins.
    pub(super) fn reset(&self) {
        self.debug_info_lines.store(0, Ordering::Relaxed);
        self.warn_error_lines.store(0, Ordering::Relaxed);
    }
}

impl Log for LogQuota {
    fn is_enabled(&self, level: Level) -> bool {
        self.log.is_enabled(level)
    }

    fn write(&self, level: Level, text: &str, fields: &[LogField]) {
        if !self.log.is_enabled(level) {
            return;
        }
        let (written, kinds) = match level {
            Level::Debug | Level::Info => (&self.debug_info_lines, "debug and info"),
            Level::Warn | Level::Error => (&self.warn_error_lines, "warn and error"),
        };
        // A state is used by one thread at a time, and far too slowly to come around.
        match written.fetch_add(1, Ordering::Relaxed) {
            ..MAX_LINES => self.log.write(level, text, fields),
            MAX_LINES => self.log.write(Level::Warn, &format!("further {kinds} lines of this call are left out"), &[]),
            _ => written.store(MAX_LINES + 1, Ordering::Relaxed),
        }
    }
}
