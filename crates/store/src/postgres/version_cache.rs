//! When each mailbox has last changed, as far as it is known here, within a fixed amount of memory: mailboxes share marks, and one
//! that has not changed may seem to have.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

use restante_mail::naming::MailboxName;

/// How many marks there are, one for every number of two bytes; half a megabyte of them.
const SLOTS: usize = 1 << 16;

/// See the file's documentation.
pub(super) struct VersionCache {
    slots: Box<[AtomicU64]>,
    /// Counts what has happened.
    last_generation: AtomicU64,
    hasher: RandomState,
}

impl Default for VersionCache {
    fn default() -> Self {
        let marks = (0..SLOTS).map(|_| AtomicU64::new(0)).collect();
        Self { slots: marks, last_generation: AtomicU64::new(0), hasher: RandomState::new() }
    }
}

impl VersionCache {
    /// A number that is another one after the mailbox has changed.
    pub(super) fn generation(&self, mailbox: &MailboxName) -> u64 {
        self.slot(mailbox).load(Ordering::Acquire)
    }

    pub(super) fn invalidate(&self, mailbox: &MailboxName) {
        let moment = self.last_generation.fetch_add(1, Ordering::Relaxed) + 1;
        self.slot(mailbox).store(moment, Ordering::Release);
    }

    pub(super) fn invalidate_all(&self) {
        let moment = self.last_generation.fetch_add(1, Ordering::Relaxed) + 1;
        self.slots.iter().for_each(|mark| mark.store(moment, Ordering::Release));
    }

    fn slot(&self, mailbox: &MailboxName) -> &AtomicU64 {
        let [first, second, ..] = self.hasher.hash_one(mailbox).to_le_bytes();
        &self.slots[usize::from(u16::from_le_bytes([first, second]))]
    }
}
