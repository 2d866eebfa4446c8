//! The reasons why sessions of SMTP, LMTP and POP3 end, and their counters.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Why a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionEndReason {
    /// The client sent QUIT.
    Quit,
    /// The client disconnected, or the connection broke.
    Disconnected,
    /// The client was silent or too slow.
    Timeout,
    /// The session was closed because of errors of the client.
    Errors,
    /// The TLS handshake failed.
    TlsFailed,
    /// There were too many connections, or no memory was left.
    Refused,
    /// The server was shut down.
    Shutdown,
}

impl SessionEndReason {
    /// All reasons.
    pub const ALL: [Self; 7] =
        [Self::Quit, Self::Disconnected, Self::Timeout, Self::Errors, Self::TlsFailed, Self::Refused, Self::Shutdown];

    /// Returns the name used in labels and transcripts.
    pub fn label(self) -> &'static str {
        match self {
            Self::Quit => "quit",
            Self::Disconnected => "left",
            Self::Timeout => "timeout",
            Self::Errors => "errors",
            Self::TlsFailed => "tls",
            Self::Refused => "refused",
            Self::Shutdown => "shutdown",
        }
    }
}

/// The ended sessions of one protocol.
#[derive(Debug, Default)]
pub(super) struct SessionEndCounters([AtomicU64; SessionEndReason::ALL.len()]);

impl SessionEndCounters {
    pub(super) fn count(&self, reason: SessionEndReason) {
        self.0[reason as usize].fetch_add(1, Relaxed);
    }

    pub(super) fn total(&self, reason: SessionEndReason) -> u64 {
        self.0[reason as usize].load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_each_reason_separately() {
        let counters = SessionEndCounters::default();
        for (index, reason) in SessionEndReason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, index);
            counters.count(reason);
        }
        assert!(SessionEndReason::ALL.iter().all(|reason| counters.total(*reason) == 1));
    }
}
