//! What happens in a store that several nodes share, as it is told to each of them: every change once, in one order for
//! all. A store that only this process changes has no feed; whoever made a change knows of it.

use std::time::Duration;

use restante_mail::message::{MessageId, Summary};
use restante_mail::naming::MailboxName;
use tokio::sync::mpsc;

/// For how long a shared store can tell everything that happened. Where a feed begins with messages that are older, deletions may
/// be missing among them.
pub const HISTORY_DURATION: Duration = Duration::from_mins(15);

/// A change of what a shared store holds, in its place among all changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Ascends from change to change, and is the same on every node. A stored message has its own id.
    pub position: u64,
    /// What happened.
    pub event: Event,
}

/// What can happen to a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// It was stored.
    Stored(Summary),
    /// It was deleted, whatever the cause.
    Deleted(Summary),
    /// It was marked as read, or as unread.
    Seen {
        /// The mailbox.
        mailbox: MailboxName,
        /// The message.
        id: MessageId,
        /// What it is now.
        seen: bool,
    },
}

/// What a node is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FeedItem {
    /// What is not quite new, so that a node that has just started knows what the others know. It comes first, and once.
    Backlog {
        /// Of what happened behind this number, nothing is left out.
        after: u64,
        /// What happened, in order; perhaps nothing, and perhaps some that is older.
        changes: Vec<Change>,
    },
    /// What happened since the last time, in order; never nothing.
    Changes(Vec<Change>),
    /// The node was cut off for so long that nobody knows any more what happened meanwhile.
    Gap,
}

/// The news of a shared store, for the one who tells others of them. It begins with [`News::Lately`].
#[derive(Debug)]
pub struct Feed(mpsc::Receiver<FeedItem>);

impl Feed {
    /// A feed of what is put into it. It holds only so many news; whoever puts in more than that waits.
    pub fn new(capacity: usize) -> (mpsc::Sender<FeedItem>, Self) {
        let (sender, receiver) = mpsc::channel(capacity);
        (sender, Self(receiver))
    }

    /// Waits for the next news; none when the store is gone.
    pub async fn next(&mut self) -> Option<FeedItem> {
        self.0.recv().await
    }
}
