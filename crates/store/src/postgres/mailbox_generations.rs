//! A generation number for every mailbox, which changes with the mailbox, so that outdated cached results are
//! detected. The memory is fixed: mailboxes share slots, so a change of one mailbox can also invalidate cached results of others.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

use restante_mail::naming::MailboxName;

/// The number of slots: one for every value of two bytes of a hash. They take half a megabyte.
const SLOTS: usize = 1 << 16;

/// See the module documentation.
pub(super) struct MailboxGenerations {
    slots: Box<[AtomicU64]>,
    /// The number of changes so far.
    last_generation: AtomicU64,
    hasher: RandomState,
}

impl Default for MailboxGenerations {
    fn default() -> Self {
        let slots = (0..SLOTS).map(|_| AtomicU64::new(0)).collect();
        Self { slots, last_generation: AtomicU64::new(0), hasher: RandomState::new() }
    }
}

impl MailboxGenerations {
    /// Returns a number that is different after the mailbox has changed.
    pub(super) fn generation(&self, mailbox: &MailboxName) -> u64 {
        self.slot(mailbox).load(Ordering::Acquire)
    }

    /// Returns a number that is different after any mailbox has changed. The generation of a mailbox that has changed
    /// since is higher.
    pub(super) fn last_generation(&self) -> u64 {
        self.last_generation.load(Ordering::Acquire)
    }

    pub(super) fn invalidate(&self, mailbox: &MailboxName) {
        let generation = self.last_generation.fetch_add(1, Ordering::AcqRel) + 1;
        self.slot(mailbox).store(generation, Ordering::Release);
    }

    pub(super) fn invalidate_all(&self) {
        let generation = self.last_generation.fetch_add(1, Ordering::AcqRel) + 1;
        self.slots.iter().for_each(|slot| slot.store(generation, Ordering::Release));
    }

    fn slot(&self, mailbox: &MailboxName) -> &AtomicU64 {
        let [first, second, ..] = self.hasher.hash_one(mailbox).to_le_bytes();
        &self.slots[usize::from(u16::from_le_bytes([first, second]))]
    }
}
