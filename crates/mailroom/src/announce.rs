//! Whoever wants to know of a change is told from here, once it is made.

use restante_mail::message::{MessageId, Summary};
use restante_mail::naming::MailboxName;

use crate::{Cause, Desk};

impl Desk {
    pub(crate) fn announce_stored(&self, stored: impl IntoIterator<Item = Summary>) {
        for summary in stored {
            for observer in &self.extensions.observers {
                observer.message_stored(&summary);
            }
            self.waiters.wake(&summary.mailbox);
            self.hub.stored(summary);
        }
    }

    pub(crate) fn announce_seen(&self, mailbox: &MailboxName, id: MessageId, seen: bool) {
        for observer in &self.extensions.observers {
            observer.seen_changed(mailbox, id, seen);
        }
    }

    pub(crate) fn announce_deleted(&self, cause: Cause, deleted: impl IntoIterator<Item = Summary>) {
        let mut count = 0;
        for summary in deleted {
            count += 1;
            for observer in &self.extensions.observers {
                observer.message_deleted(&summary);
            }
            self.hub.deleted(summary);
        }
        self.tally.deleted(cause, count);
    }
}
