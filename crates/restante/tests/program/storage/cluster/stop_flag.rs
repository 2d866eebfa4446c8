//! A flag that stops the loops of several threads.

use std::sync::atomic::{AtomicBool, Ordering};

/// A flag that can be set once.
#[derive(Default)]
pub(crate) struct StopFlag(AtomicBool);

/// Sets the flag when it is dropped, also by a panic.
pub(crate) struct SetOnDrop<'a>(&'a StopFlag);

impl StopFlag {
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Returns a guard that sets the flag.
    pub(crate) fn set_on_drop(&self) -> SetOnDrop<'_> {
        SetOnDrop(self)
    }
}

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}
