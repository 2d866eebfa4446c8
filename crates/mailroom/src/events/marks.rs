//! Changes of the marks of copies: whether they are read, their flags and their tags. They are separate from other events, because they
//! are not repeated: a subscriber gets those from now on, and one that falls behind misses some.

use std::sync::Arc;

pub use restante_store::ChangedMarks;
pub use restante_store::feed::MarkChange;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::broadcast::{Receiver, Sender};

use super::Lagged;

/// The number of groups of changes that are kept for subscribers.
const GROUP_CAPACITY: usize = 1024;
/// The maximum number of changes in a group. Together with the number of groups it limits the memory for subscribers that
/// read nothing.
const MAX_GROUP_SIZE: usize = 64;

/// Sends the changes of marks to their subscribers. Changes that are made together are sent in groups, so that subscribers
/// wake less often and do not fall behind because of one large change.
pub(crate) struct MarkPublisher(Sender<Arc<[MarkChange]>>);

impl Default for MarkPublisher {
    fn default() -> Self {
        Self(Sender::new(GROUP_CAPACITY))
    }
}

impl MarkPublisher {
    /// Sends changes in this order. Without subscribers they are dropped.
    pub(crate) fn send(&self, changes: &[MarkChange]) {
        if self.0.receiver_count() > 0 {
            for group in changes.chunks(MAX_GROUP_SIZE) {
                let _ = self.0.send(group.into());
            }
        }
    }

    /// Subscribes to the changes from now on.
    pub(crate) fn subscribe(&self) -> MarkSubscription {
        MarkSubscription { groups: self.0.subscribe(), current: None }
    }
}

/// A subscription to the changes of marks.
pub struct MarkSubscription {
    groups: Receiver<Arc<[MarkChange]>>,
    /// The group that is being read, and the index of its next change.
    current: Option<(Arc<[MarkChange]>, usize)>,
}

impl MarkSubscription {
    /// Waits for the next change. Cancel safe. After an error the following changes can still be received.
    pub async fn next(&mut self) -> Result<MarkChange, Lagged> {
        loop {
            if let Some(change) = self.next_in_group() {
                return Ok(change);
            }
            match self.groups.recv().await {
                Ok(group) => self.current = Some((group, 0)),
                Err(RecvError::Lagged(_)) => return Err(Lagged),
                // The mailroom is gone.
                Err(RecvError::Closed) => std::future::pending().await,
            }
        }
    }

    /// Returns the next change if there is one now.
    pub fn try_next(&mut self) -> Result<Option<MarkChange>, Lagged> {
        loop {
            if let Some(change) = self.next_in_group() {
                return Ok(Some(change));
            }
            match self.groups.try_recv() {
                Ok(group) => self.current = Some((group, 0)),
                Err(TryRecvError::Lagged(_)) => return Err(Lagged),
                Err(TryRecvError::Empty | TryRecvError::Closed) => return Ok(None),
            }
        }
    }

    fn next_in_group(&mut self) -> Option<MarkChange> {
        let (group, index) = self.current.as_mut()?;
        let change = group.get(*index).cloned();
        *index += 1;
        if change.is_none() {
            self.current = None;
        }
        change
    }
}

#[cfg(test)]
mod tests {
    use restante_mail::message::Marks;

    use super::*;

    fn changes(ids: std::ops::Range<usize>) -> Vec<MarkChange> {
        let change = |id: usize| MarkChange {
            mailbox: "bob".to_owned().into(),
            id: (id as u64).into(),
            changed: ChangedMarks { seen: true, ..ChangedMarks::default() },
            marks: Marks::default(),
        };
        ids.map(change).collect()
    }

    /// Returns the ids of the changes up to now.
    fn received(subscription: &mut MarkSubscription) -> Result<Vec<u64>, Lagged> {
        let changes = std::iter::from_fn(|| subscription.try_next().transpose());
        changes.map(|change| change.map(|change| change.id.number())).collect()
    }

    #[tokio::test]
    async fn slow_subscriber_misses_changes() {
        let publisher = MarkPublisher::default();
        publisher.send(&changes(0..1));
        let mut subscription = publisher.subscribe();
        assert_eq!(subscription.try_next(), Ok(None));
        publisher.send(&changes(1..3));
        assert_eq!(subscription.next().await.map(|change| change.id), Ok(1.into()));
        assert_eq!(subscription.next().await.map(|change| change.id), Ok(2.into()));
        (0..=GROUP_CAPACITY).for_each(|id| publisher.send(&changes(id..id + 1)));
        assert_eq!(subscription.next().await, Err(Lagged));
        assert_eq!(subscription.try_next().map(|change| change.map(|change| change.id)), Ok(Some(1.into())));
    }

    /// Also if the subscriber reads nothing meanwhile.
    #[test]
    fn subscriber_gets_all_changes_of_large_batches() {
        let publisher = MarkPublisher::default();
        let mut subscription = publisher.subscribe();
        let batches = [0..500, 500..1500, 1500..1501, 1501..1501, 1501..20_000];
        for batch in batches {
            publisher.send(&changes(batch));
        }
        assert_eq!(received(&mut subscription), Ok((0..20_000).collect()));
        assert_eq!(subscription.try_next(), Ok(None));
    }
}
