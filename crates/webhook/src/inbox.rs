//! Events that wait to be added to the queue. The mailroom puts events into it and never waits. The size is limited.

use std::mem::size_of;

use parking_lot::Mutex;
use restante_mail::message::Summary;
use restante_worker::BoundedQueue;
use tokio::sync::Notify;

use crate::EventKind;

/// The maximum size of all events in the inbox. The writer empties it immediately. It fills only if the disk stalls or a
/// large mailbox is deleted.
const MAX_INBOX_BYTES: usize = 64 << 20;

/// An event.
#[derive(Clone, Debug)]
pub(crate) struct InboxEvent {
    pub(crate) event: EventKind,
    pub(crate) summary: Summary,
    /// The indexes of the targets that it is sent to.
    pub(crate) targets: Vec<usize>,
}

/// The reason why an event is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DropReason {
    /// The queue or the inbox is full.
    Full,
    /// The server is shutting down.
    Closed,
}

/// See the module documentation.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    contents: Mutex<Contents>,
    /// Notified when there is something to do for the writer.
    pub(crate) changed: Notify,
}

#[derive(Debug)]
struct Contents {
    /// The size of an item is its memory use in bytes.
    events: BoundedQueue<InboxEvent>,
    is_closed: bool,
    /// Whether the shutdown is clean: no event was or will be lost.
    is_clean: bool,
}

impl Default for Contents {
    fn default() -> Self {
        Self { events: BoundedQueue::new(MAX_INBOX_BYTES), is_closed: false, is_clean: false }
    }
}

impl Inbox {
    /// Adds an event, unless the inbox is full or closed.
    pub(crate) fn push(&self, event: InboxEvent) -> Result<(), DropReason> {
        let mut contents = self.contents.lock();
        if contents.is_closed {
            contents.is_clean = false;
            return Err(DropReason::Closed);
        }
        let bytes = size_of::<InboxEvent>() + event.summary.text_len();
        contents.events.push(event, bytes).map_err(|_| DropReason::Full)?;
        drop(contents);
        self.changed.notify_one();
        Ok(())
    }

    /// Takes all events.
    pub(crate) fn take(&self) -> Vec<InboxEvent> {
        self.contents.lock().events.take(usize::MAX, usize::MAX).0
    }

    /// Rejects further events.
    pub(crate) fn close(&self, is_clean: bool) {
        let mut contents = self.contents.lock();
        (contents.is_closed, contents.is_clean) = (true, is_clean);
        drop(contents);
        self.changed.notify_one();
    }

    /// Returns whether the inbox is closed and empty.
    pub(crate) fn is_finished(&self) -> bool {
        let contents = self.contents.lock();
        contents.is_closed && contents.events.is_empty()
    }

    /// Returns whether the shutdown is clean. An event that comes late ends that.
    pub(crate) fn is_clean(&self) -> bool {
        self.contents.lock().is_clean
    }
}

#[cfg(test)]
mod tests {
    use restante_mail::message::Headline;

    use super::*;
    use crate::tests::support::message;

    fn event(subject: &str) -> InboxEvent {
        let summary = Summary { headline: Headline::new("", [""; 0], subject), ..message("james") };
        InboxEvent { event: EventKind::Stored, summary, targets: vec![0] }
    }

    #[test]
    fn inbox_is_limited_in_bytes() {
        let (inbox, long) = (Inbox::default(), "x".repeat(1 << 20));
        let accepted = (0..100).filter(|_| inbox.push(event(&long)).is_ok()).count();
        assert_eq!(accepted, 63);
        assert_eq!(inbox.push(event(&long)), Err(DropReason::Full));
        assert_eq!(inbox.take().len(), accepted);
        assert_eq!(inbox.push(event(&long)), Ok(()));
    }

    #[test]
    fn shutdown_is_not_clean_if_an_event_came_late() {
        for is_clean in [true, false] {
            let inbox = Inbox::default();
            inbox.push(event("")).unwrap();
            inbox.close(is_clean);
            assert!(inbox.is_clean() == is_clean && !inbox.is_finished());
            assert_eq!(inbox.take().len(), 1);
            assert!(inbox.is_finished());
            assert_eq!(inbox.push(event("")), Err(DropReason::Closed));
            assert!(!inbox.is_clean());
        }
    }
}
