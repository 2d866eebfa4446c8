//! Whether new work is welcome: every listener accepts, and the end has not begun. Listeners report it, a supervisor asks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// What all listeners together have to report.
#[derive(Debug, Default)]
pub struct Readiness {
    /// How many listeners cannot accept.
    failing: AtomicUsize,
    ending: AtomicBool,
}

/// Why no new work is welcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotReady {
    /// The server is about to end.
    Ending,
    /// At least one listener cannot accept connections.
    NotAccepting,
}

impl Readiness {
    /// Says whether new work is welcome.
    pub fn check(&self) -> Result<(), NotReady> {
        if self.ending.load(Ordering::Relaxed) {
            return Err(NotReady::Ending);
        }
        if self.failing.load(Ordering::Relaxed) > 0 { Err(NotReady::NotAccepting) } else { Ok(()) }
    }

    /// From now on there is no new work.
    pub fn end(&self) {
        self.ending.store(true, Ordering::Relaxed);
    }

    /// One listener's part.
    pub(super) fn report(self: &Arc<Self>) -> Report {
        Report { readiness: self.clone(), failing: false }
    }
}

/// How one listener does. When it is gone, it does not fail any more.
pub(super) struct Report {
    readiness: Arc<Readiness>,
    failing: bool,
}

impl Report {
    pub(super) fn is_failing(&self) -> bool {
        self.failing
    }

    /// Reports that the listener fails or works. Whether that is news.
    pub(super) fn set(&mut self, failing: bool) -> bool {
        let news = std::mem::replace(&mut self.failing, failing) != failing;
        match (news, failing) {
            (true, true) => _ = self.readiness.failing.fetch_add(1, Ordering::Relaxed),
            (true, false) => _ = self.readiness.failing.fetch_sub(1, Ordering::Relaxed),
            (false, _) => {}
        }
        news
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        self.set(false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_failing_listener_is_enough() {
        let readiness = Arc::new(Readiness::default());
        let (mut one, mut other) = (readiness.report(), readiness.report());
        assert_eq!(readiness.check(), Ok(()));
        assert!(one.set(true));
        assert!(!one.set(true));
        assert!(other.set(true));
        assert!(one.set(false));
        assert_eq!(readiness.check(), Err(NotReady::NotAccepting));
        drop(other);
        assert_eq!(readiness.check(), Ok(()));
        readiness.end();
        assert_eq!(readiness.check(), Err(NotReady::Ending));
    }
}
