//! The feed of a store that several nodes share: every change once, in the same order on all nodes. A store that only
//! this process changes has no feed, because the caller of a change gets its result.

use std::time::Duration;

use restante_mail::message::{Marks, MessageId, Summary};
use restante_mail::naming::MailboxName;
use tokio::sync::mpsc;

use crate::{ChangedMarks, CopyKey, CopyUpdate, UpdateOutcome};

/// How long a shared store keeps the history of deletions and marks. If a backlog contains older messages, their
/// deletions may be missing.
pub const HISTORY_DURATION: Duration = Duration::from_mins(15);

/// A change of a shared store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Ascends from change to change, and is the same on every node. For a stored message it is the id.
    pub position: u64,
    /// What happened.
    pub event: CopyEvent,
}

/// What can happen to a copy of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CopyEvent {
    /// It was stored.
    Stored(Summary),
    /// It was deleted, for any reason.
    Deleted(Summary),
    /// Its marks were changed.
    Marked(MarkChange),
}

/// A change of the marks of a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkChange {
    /// The mailbox of the copy.
    pub mailbox: MailboxName,
    /// The id of the copy.
    pub id: MessageId,
    /// The marks that have changed. There is at least one.
    pub changed: ChangedMarks,
    /// All marks after the change. Changes can arrive in another order than they were made in; those with the highest
    /// MODSEQ are the latest.
    pub marks: Marks,
}

impl MarkChange {
    /// Returns the change that an update has made, or `None` if it has changed nothing.
    pub fn of_update(update: &CopyUpdate, outcome: &UpdateOutcome) -> Option<Self> {
        let CopyKey { mailbox, id } = &update.copy;
        match outcome {
            UpdateOutcome::Updated(marks, changed) if !changed.is_empty() => {
                Some(Self { mailbox: mailbox.clone(), id: *id, changed: *changed, marks: marks.clone() })
            }
            UpdateOutcome::Updated(..) | UpdateOutcome::Conflict | UpdateOutcome::Missing => None,
        }
    }
}

/// An item of a [`Feed`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FeedItem {
    /// Recent changes, so that a node that has just started has the same history as the others. It is the first item,
    /// and the only one of its kind.
    Backlog {
        /// All changes after this position are included.
        after: u64,
        /// The changes, in order. Can be empty, and can include earlier ones.
        changes: Vec<Change>,
    },
    /// The changes since the last item, in order. Never empty.
    Changes(Vec<Change>),
    /// The node was disconnected for so long that the changes since the last item are not known any more.
    Gap,
}

/// The changes of a shared store, for the one subscriber that publishes them. The first item is [`FeedItem::Backlog`].
#[derive(Debug)]
pub struct Feed(mpsc::Receiver<FeedItem>);

impl Feed {
    /// Creates a feed and its sender. Sending waits while `capacity` items are unread.
    pub fn new(capacity: usize) -> (mpsc::Sender<FeedItem>, Self) {
        let (sender, receiver) = mpsc::channel(capacity);
        (sender, Self(receiver))
    }

    /// Waits for the next item. Returns `None` after the store was closed.
    pub async fn next(&mut self) -> Option<FeedItem> {
        self.0.recv().await
    }
}
