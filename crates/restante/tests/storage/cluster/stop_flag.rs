//! The end of work that several threads do until one of them says so.

use std::sync::atomic::{AtomicBool, Ordering};

#[derive(Default)]
pub(crate) struct End(AtomicBool);

/// When it is dropped, also by a panic, the end has come.
pub(crate) struct Until<'a>(&'a End);

impl End {
    pub(crate) fn has_come(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Lets the end come with the end of what is returned.
    pub(crate) fn comes_behind(&self) -> Until<'_> {
        Until(self)
    }
}

impl Drop for Until<'_> {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}
