//! Changes of the marks of copies: whether they are read, their flags and their tags. They are separate from other events, because they
//! are not repeated: a subscriber gets those from now on, and one that falls behind misses some.

pub use restante_store::feed::{Mark, MarkChange};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};

use super::Lagged;

/// The number of changes that are kept for subscribers.
pub(crate) const MARK_CAPACITY: usize = 1024;

/// A subscription to the changes of marks.
pub struct MarkSubscription(pub(crate) Receiver<MarkChange>);

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

#[cfg(test)]
mod tests {
    use restante_mail::message::Marks;
    use tokio::sync::broadcast::Sender;

    use super::*;

    #[tokio::test]
    async fn slow_subscriber_misses_changes() {
        let channel = Sender::new(MARK_CAPACITY);
        let send = |id: usize| {
            let (mailbox, id) = ("bob".to_owned().into(), (id as u64).into());
            let _ = channel.send(MarkChange { mailbox, id, mark: Mark::Seen(true), marks: Marks::default() });
        };
        send(0);
        let mut subscription = MarkSubscription(channel.subscribe());
        assert_eq!(subscription.try_next(), Ok(None));
        send(1);
        assert_eq!(subscription.next().await.map(|change| change.id), Ok(1.into()));
        (0..=MARK_CAPACITY).for_each(send);
        assert_eq!(subscription.next().await, Err(Lagged));
        assert_eq!(subscription.try_next().map(|change| change.map(|change| change.id)), Ok(Some(1.into())));
    }
}
