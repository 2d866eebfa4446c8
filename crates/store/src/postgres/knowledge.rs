//! When each mailbox has last changed, as far as it is known here, within a fixed amount of memory: mailboxes share marks, and one
//! that has not changed may seem to have.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

use restante_mail::naming::MailboxName;

/// How many marks there are, one for every number of two bytes; half a megabyte of them.
const MARKS: usize = 1 << 16;

/// See the file's documentation.
pub(super) struct Knowledge {
    marks: Box<[AtomicU64]>,
    /// Counts what has happened.
    moments: AtomicU64,
    hasher: RandomState,
}

impl Default for Knowledge {
    fn default() -> Self {
        let marks = (0..MARKS).map(|_| AtomicU64::new(0)).collect();
        Self { marks, moments: AtomicU64::new(0), hasher: RandomState::new() }
    }
}

impl Knowledge {
    /// A number that is another one after the mailbox has changed.
    pub(super) fn mark(&self, mailbox: &MailboxName) -> u64 {
        self.place(mailbox).load(Ordering::Acquire)
    }

    pub(super) fn changed(&self, mailbox: &MailboxName) {
        let moment = self.moments.fetch_add(1, Ordering::Relaxed) + 1;
        self.place(mailbox).store(moment, Ordering::Release);
    }

    pub(super) fn everything_changed(&self) {
        let moment = self.moments.fetch_add(1, Ordering::Relaxed) + 1;
        self.marks.iter().for_each(|mark| mark.store(moment, Ordering::Release));
    }

    fn place(&self, mailbox: &MailboxName) -> &AtomicU64 {
        let [first, second, ..] = self.hasher.hash_one(mailbox).to_le_bytes();
        &self.marks[usize::from(u16::from_le_bytes([first, second]))]
    }
}
