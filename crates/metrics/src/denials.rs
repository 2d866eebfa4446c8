//! Counters of denied requests and logins, by reason.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

pub(super) use restante_auth::DenialReason;

/// The denials of one protocol.
#[derive(Debug, Default)]
pub(super) struct Denials([AtomicU64; DenialReason::ALL.len()]);

impl Denials {
    pub(super) fn count(&self, reason: DenialReason) {
        self.0[reason as usize].fetch_add(1, Relaxed);
    }

    pub(super) fn total(&self, reason: DenialReason) -> u64 {
        self.0[reason as usize].load(Relaxed)
    }
}

/// Returns the label of a reason.
pub(super) fn reason_label(reason: DenialReason) -> &'static str {
    match reason {
        DenialReason::NoCredentials => "none",
        DenialReason::WrongPassword => "password",
        DenialReason::UnknownToken => "token",
        DenialReason::Expired => "expired",
        DenialReason::TooMany => "busy",
        DenialReason::Scope => "scope",
        DenialReason::Mailbox => "mailbox",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_each_reason_separately() {
        let denials = Denials::default();
        for (index, reason) in DenialReason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, index);
            denials.count(reason);
        }
        assert!(DenialReason::ALL.iter().all(|reason| denials.total(*reason) == 1));
    }
}
