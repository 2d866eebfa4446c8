//! Counters of the connections of a protocol.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::{Admission, ProxyHeaderOutcome, TooMany};

/// The connection counters of one protocol.
#[derive(Debug, Default)]
pub struct ConnectionCounters {
    open: AtomicU64,
    accepted: AtomicU64,
    refused: AtomicU64,
    proxy_headers: [AtomicU64; ProxyHeaderOutcome::ALL.len()],
}

/// Counts a connection as open until this guard is dropped.
#[derive(Debug)]
pub(super) struct OpenGuard(Arc<ConnectionCounters>);

impl ConnectionCounters {
    /// Counts a new connection: as accepted and, until its admission is dropped, as open; or as refused.
    pub fn count_admission(self: &Arc<Self>, admission: Result<Admission, TooMany>) -> Result<Admission, TooMany> {
        match admission {
            Ok(mut admission) => {
                self.accepted.fetch_add(1, Relaxed);
                self.open.fetch_add(1, Relaxed);
                admission.open_guard = Some(OpenGuard(self.clone()));
                Ok(admission)
            }
            Err(too_many) => {
                self.count_refused();
                Err(too_many)
            }
        }
    }

    /// Counts a connection or request above the limits.
    pub fn count_refused(&self) {
        self.refused.fetch_add(1, Relaxed);
    }

    /// Counts a required PROXY header by its outcome.
    pub(super) fn count_proxy_header(&self, outcome: ProxyHeaderOutcome) {
        self.proxy_headers[outcome as usize].fetch_add(1, Relaxed);
    }

    /// Returns the number of open connections.
    pub fn open_now(&self) -> u64 {
        self.open.load(Relaxed)
    }

    /// Returns the number of connections accepted since the start.
    pub fn accepted_total(&self) -> u64 {
        self.accepted.load(Relaxed)
    }

    /// Returns the number of connections refused since the start.
    pub fn refused_total(&self) -> u64 {
        self.refused.load(Relaxed)
    }

    /// Returns the number of required PROXY headers with this outcome since the start.
    pub fn proxy_headers_total(&self, outcome: ProxyHeaderOutcome) -> u64 {
        self.proxy_headers[outcome as usize].load(Relaxed)
    }
}

impl Drop for OpenGuard {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ConnectionLimits;

    #[test]
    fn counts_open_accepted_and_refused_connections() {
        let counters = Arc::new(ConnectionCounters::default());
        let limits = ConnectionLimits::new(2, None);
        let (first, second) = (counters.count_admission(limits.admit()), counters.count_admission(limits.admit()));
        assert!(counters.count_admission(limits.admit()).is_err());
        assert_eq!((counters.open_now(), counters.accepted_total(), counters.refused_total()), (2, 2, 1));
        drop((first, second));
        assert_eq!((counters.open_now(), counters.accepted_total(), counters.refused_total()), (0, 2, 1));
    }
}
