//! A limit on the log lines of a call.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::services::{Level, Log, LogField};

/// How many lines a call may log. Warnings and errors are counted separately, so that less important lines do not use
/// up their quota.
const MAX_LINES: u32 = 1000;

/// The log with the quota of a call.
pub(super) struct LogQuota {
    log: Arc<dyn Log>,
    debug_info_lines: AtomicU32,
    warn_error_lines: AtomicU32,
}

impl LogQuota {
    pub(super) fn new(log: Arc<dyn Log>) -> Self {
        Self { log, debug_info_lines: AtomicU32::new(0), warn_error_lines: AtomicU32::new(0) }
    }

    /// Resets the quota at the start of a call.
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
        let (count, levels) = match level {
            Level::Debug | Level::Info => (&self.debug_info_lines, "debug and info"),
            Level::Warn | Level::Error => (&self.warn_error_lines, "warn and error"),
        };
        // A state is used by one thread at a time, and calls are too short for the counter to wrap around.
        match count.fetch_add(1, Ordering::Relaxed) {
            ..MAX_LINES => self.log.write(level, text, fields),
            MAX_LINES => self.log.write(Level::Warn, &format!("further {levels} lines of this call are left out"), &[]),
            _ => count.store(MAX_LINES + 1, Ordering::Relaxed),
        }
    }
}
