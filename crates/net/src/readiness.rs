//! Readiness: whether every listener accepts connections and the server is not shutting down. Listeners report it, the
//! readiness endpoint reads it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The readiness of all listeners.
#[derive(Debug, Default)]
pub struct Readiness {
    /// The number of listeners that cannot accept.
    failing_listeners: AtomicUsize,
    is_shutting_down: AtomicBool,
}

/// Why the server is not ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotReady {
    /// The server is shutting down.
    ShuttingDown,
    /// At least one listener cannot accept connections.
    NotAccepting,
}

impl Readiness {
    /// Returns an error if the server is not ready.
    pub fn check(&self) -> Result<(), NotReady> {
        if self.is_shutting_down.load(Ordering::Relaxed) {
            return Err(NotReady::ShuttingDown);
        }
        if self.failing_listeners.load(Ordering::Relaxed) > 0 { Err(NotReady::NotAccepting) } else { Ok(()) }
    }

    /// Marks the server as shutting down.
    pub fn start_shutdown(&self) {
        self.is_shutting_down.store(true, Ordering::Relaxed);
    }

    /// Registers a listener.
    pub(super) fn register_listener(self: &Arc<Self>) -> ListenerStatus {
        ListenerStatus { readiness: self.clone(), is_failing: false }
    }
}

/// The status of one listener. On drop it no longer counts as failing.
pub(super) struct ListenerStatus {
    readiness: Arc<Readiness>,
    is_failing: bool,
}

impl ListenerStatus {
    pub(super) fn is_failing(&self) -> bool {
        self.is_failing
    }

    /// Sets whether the listener fails. Returns true if this is a change.
    pub(super) fn set_failing(&mut self, is_failing: bool) -> bool {
        let is_changed = std::mem::replace(&mut self.is_failing, is_failing) != is_failing;
        match (is_changed, is_failing) {
            (true, true) => _ = self.readiness.failing_listeners.fetch_add(1, Ordering::Relaxed),
            (true, false) => _ = self.readiness.failing_listeners.fetch_sub(1, Ordering::Relaxed),
            (false, _) => {}
        }
        is_changed
    }
}

impl Drop for ListenerStatus {
    fn drop(&mut self) {
        self.set_failing(false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_failing_listener_makes_the_server_not_ready() {
        let readiness = Arc::new(Readiness::default());
        let (mut first, mut second) = (readiness.register_listener(), readiness.register_listener());
        assert_eq!(readiness.check(), Ok(()));
        assert!(first.set_failing(true));
        assert!(!first.set_failing(true));
        assert!(second.set_failing(true));
        assert!(first.set_failing(false));
        assert_eq!(readiness.check(), Err(NotReady::NotAccepting));
        drop(second);
        assert_eq!(readiness.check(), Ok(()));
        readiness.start_shutdown();
        assert_eq!(readiness.check(), Err(NotReady::ShuttingDown));
    }
}
