//! The claims of a node that have failed. Their entries may be claimed nevertheless.

use std::sync::atomic::{AtomicI64, Ordering};

use parking_lot::Mutex;

/// Numbers the claims of this node, from 1, and remembers those that failed.
#[derive(Default)]
pub(super) struct Claims {
    last: AtomicI64,
    failed: Mutex<Vec<i64>>,
}

impl Claims {
    /// Starts a claim.
    pub(super) fn start(&self) -> Claim<'_> {
        Claim { claims: self, number: self.last.fetch_add(1, Ordering::Relaxed) + 1, is_failed: true }
    }

    /// Returns the numbers of claims that have failed.
    pub(super) fn failed(&self) -> Vec<i64> {
        self.failed.lock().clone()
    }

    /// Forgets failed claims, because their entries were returned to the queue.
    pub(super) fn forget(&self, numbers: &[i64]) {
        self.failed.lock().retain(|number| !numbers.contains(number));
    }
}

/// A claim. It has failed if it is dropped before it succeeds, also because the caller was cancelled.
pub(super) struct Claim<'a> {
    claims: &'a Claims,
    number: i64,
    is_failed: bool,
}

impl Claim<'_> {
    pub(super) fn number(&self) -> i64 {
        self.number
    }

    pub(super) fn succeed(mut self) {
        self.is_failed = false;
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        if self.is_failed {
            self.claims.failed.lock().push(self.number);
        }
    }
}
