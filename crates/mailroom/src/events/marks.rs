//! Changes of the marks of copies: whether they are read, and their tags. They are separate from other events, because they
//! are not repeated: a subscriber gets those from now on, and one that falls behind misses some.

use restante_mail::message::MessageId;
use restante_mail::naming::MailboxName;
use restante_mail::tags::Tags;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::broadcast::{Receiver, Sender, channel};

use super::Lagged;

/// The number of changes that are kept for subscribers.
const CAPACITY: usize = 1024;

/// A change of a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkChange {
    /// The mailbox of the copy.
    pub mailbox: MailboxName,
    /// The id of the copy.
    pub id: MessageId,
    /// What has changed.
    pub mark: Mark,
}

/// The new value of a mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Whether the copy is read.
    Seen(bool),
    /// The tags.
    Tags(Tags),
}

/// A subscription to the changes of marks.
pub struct MarkSubscription(Receiver<MarkChange>);

impl MarkSubscription {
    /// Waits for the next change. Cancel safe. After an error the following changes can still be received.
    pub async fn next(&mut self) -> Result<MarkChange, Lagged> {
        match self.0.recv().await {
            Ok(change) => Ok(change),
            Err(RecvError::Lagged(_)) => Err(Lagged),
            // The mailroom is gone.
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }

    /// Returns the next change if there is one now.
    pub fn try_next(&mut self) -> Result<Option<MarkChange>, Lagged> {
        match self.0.try_recv() {
            Ok(change) => Ok(Some(change)),
            Err(TryRecvError::Lagged(_)) => Err(Lagged),
            Err(TryRecvError::Empty | TryRecvError::Closed) => Ok(None),
        }
    }
}

/// Sends changes to all subscribers.
pub(crate) struct MarkChannel(Sender<MarkChange>);

impl MarkChannel {
    pub(crate) fn new() -> Self {
        Self(channel(CAPACITY).0)
    }

    pub(crate) fn subscribe(&self) -> MarkSubscription {
        MarkSubscription(self.0.subscribe())
    }

    /// Sends a change. `mark` is called only if there are subscribers.
    pub(crate) fn send(&self, mailbox: &MailboxName, id: MessageId, mark: impl FnOnce() -> Mark) {
        if self.0.receiver_count() > 0 {
            // Without subscribers the change is dropped.
            let _ = self.0.send(MarkChange { mailbox: mailbox.clone(), id, mark: mark() });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn slow_subscriber_misses_changes() {
        let channel = MarkChannel::new();
        let name = MailboxName::from("bob".to_owned());
        let send = |id: usize| channel.send(&name, (id as u64).into(), || Mark::Seen(true));
        send(0);
        let mut subscription = channel.subscribe();
        assert_eq!(subscription.try_next(), Ok(None));
        send(1);
        assert_eq!(subscription.next().await.map(|change| change.id), Ok(1.into()));
        (0..=CAPACITY).for_each(send);
        assert_eq!(subscription.next().await, Err(Lagged));
        assert_eq!(subscription.try_next().map(|change| change.map(|change| change.id)), Ok(Some(1.into())));
    }
}
