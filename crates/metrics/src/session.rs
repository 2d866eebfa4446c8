//! How sessions end, for those protocols that have sessions: SMTP, LMTP and POP3.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Why a session is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The client said QUIT.
    Quit,
    /// The client closed, or the connection broke.
    Left,
    /// The client was silent, or too slow.
    Timeout,
    /// The client made too many mistakes.
    Errors,
    /// The TLS handshake failed.
    Tls,
    /// There were too many connections, or no memory was left.
    Refused,
    /// The server ended.
    Shutdown,
}

impl Ending {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Quit, Self::Left, Self::Timeout, Self::Errors, Self::Tls, Self::Refused, Self::Shutdown];

    /// What it is called, in labels and elsewhere.
    pub fn label(self) -> &'static str {
        match self {
            Self::Quit => "quit",
            Self::Left => "left",
            Self::Timeout => "timeout",
            Self::Errors => "errors",
            Self::Tls => "tls",
            Self::Refused => "refused",
            Self::Shutdown => "shutdown",
        }
    }
}

/// The sessions of one protocol that have ended.
#[derive(Debug, Default)]
pub(super) struct Endings([AtomicU64; Ending::ALL.len()]);

impl Endings {
    pub(super) fn count(&self, ending: Ending) {
        self.0[ending as usize].fetch_add(1, Relaxed);
    }

    pub(super) fn total(&self, ending: Ending) -> u64 {
        self.0[ending as usize].load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_ending_is_counted_in_a_place_of_its_own() {
        let endings = Endings::default();
        for (index, ending) in Ending::ALL.into_iter().enumerate() {
            assert_eq!(ending as usize, index);
            endings.count(ending);
        }
        assert!(Ending::ALL.iter().all(|ending| endings.total(*ending) == 1));
    }
}
