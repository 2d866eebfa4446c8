//! The subscriber's end: first the history or the missed events, then new events, each once and in order.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use restante_mail::naming::MailboxName;
use tokio::runtime::Handle;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};

use super::dispatcher::{self, DispatcherGuard};
use super::hub::{CatchUpBatch, GroupKind, Hub, StartPoint};
use super::subscriber_group::{ChannelItem, EventReceiver, Shard};
use super::{Lagged, Position, PublishedEvent};

/// A subscription to the events of one mailbox or of all.
pub struct Subscription {
    /// The history, which comes first. A message that is deleted meanwhile is skipped.
    history: VecDeque<Weak<PublishedEvent>>,
    /// Events to return before the receiver is read.
    ready: VecDeque<Weak<PublishedEvent>>,
    /// All events below this sequence number were returned, or are in `ready`, or do not match the topic.
    cursor: u64,
    /// Events up to this position were received before. If the subscriber comes from another node, they may still
    /// arrive here.
    resumed_from: Option<Position>,
    /// Whether events after the cursor are only in the ring.
    is_catching_up: bool,
    has_gap: bool,
    receiver: EventReceiver,
    // After the receiver, because fields are dropped in this order and the group counts the remaining receivers.
    membership: GroupMembership,
}

/// The membership of a subscriber in a group. Dropping it removes the subscriber from the group.
struct GroupMembership {
    hub: Arc<Hub>,
    shard: Arc<Shard>,
    topic: Option<MailboxName>,
}

impl Hub {
    /// Subscribes to the events of one mailbox or of all. The subscriber first gets the history, or the events after
    /// `resume` if they are still known, and then new events.
    pub(crate) fn subscribe(self: &Arc<Self>, topic: Option<MailboxName>, resume: Option<Position>) -> Subscription {
        let kind = GroupKind::for_topic(topic.as_ref());
        let group = self.group(kind);
        // Join before the start point is determined: events that arrive twice are recognized by their number, but
        // others would be missed.
        let (shard, receiver) = group.join(topic.as_ref(), self.next_seq());
        let membership = GroupMembership { hub: self.clone(), shard, topic };
        if let Ok(runtime) = Handle::try_current()
            && group.claim_dispatcher()
        {
            runtime.spawn(dispatcher::run(DispatcherGuard::new(self.clone(), kind)));
        }
        // An event may have been published before the join, which a new shard still has to send.
        group.dispatcher_wakeup.notify_one();
        let (history, cursor, is_catching_up) = match self.start_point(membership.topic.as_ref(), resume) {
            StartPoint::From(seq) => (VecDeque::new(), seq, true),
            StartPoint::History { messages, next } => (messages, next, false),
        };
        let has_gap = resume.is_some() && !is_catching_up;
        let resumed_from = resume.filter(|_| is_catching_up);
        Subscription {
            history,
            ready: VecDeque::new(),
            cursor,
            resumed_from,
            is_catching_up,
            has_gap,
            receiver,
            membership,
        }
    }
}

impl Subscription {
    /// Skips the history. Only events from now on follow.
    #[must_use]
    pub fn without_history(mut self) -> Self {
        self.history.clear();
        self
    }

    /// Waits for the next event. Cancel safe. After an error the caller should subscribe again.
    pub async fn next(&mut self) -> Result<Arc<PublishedEvent>, Lagged> {
        loop {
            if let Some(event) = self.try_next()? {
                return Ok(event);
            }
            match self.receiver.recv().await {
                Ok(item) => self.receive(item),
                Err(RecvError::Lagged(_)) => self.is_catching_up = true,
                Err(RecvError::Closed) => self.rejoin(),
            }
        }
    }

    /// Returns the next event if there is one now.
    pub fn try_next(&mut self) -> Result<Option<Arc<PublishedEvent>>, Lagged> {
        while let Some(event) = self.history.pop_front() {
            if let Some(event) = event.upgrade() {
                return Ok(Some(event));
            }
        }
        loop {
            if let Some(event) = self.ready.pop_front() {
                let event = event.upgrade().ok_or(Lagged)?;
                if self.resumed_from.is_some_and(|resumed_from| event.position() <= resumed_from) {
                    continue;
                }
                return Ok(Some(event));
            }
            if self.is_catching_up {
                self.catch_up()?;
                continue;
            }
            // Read before the receiver, which has all matching events up to this number.
            let sent_up_to = self.membership.shard.dispatched_up_to();
            match self.receiver.try_recv() {
                Ok(item) => self.receive(item),
                Err(TryRecvError::Empty) => {
                    self.cursor = self.cursor.max(sent_up_to);
                    return Ok(None);
                }
                Err(TryRecvError::Lagged(_)) => self.is_catching_up = true,
                Err(TryRecvError::Closed) => self.rejoin(),
            }
        }
    }

    /// Returns whether events may be missing between the given position and those of this subscription.
    pub fn has_gap(&self) -> bool {
        self.has_gap
    }

    /// Returns the position up to which all matching events were returned, to resume from later. Events that
    /// [`Subscription::try_next`] would return now are not included.
    pub fn position(&self) -> Option<Position> {
        let is_all_returned = self.history.is_empty() && self.ready.is_empty();
        let position = || self.resumed_from.max(self.membership.hub.position_before(self.cursor));
        is_all_returned.then(position).flatten()
    }

    fn catch_up(&mut self) -> Result<(), Lagged> {
        let CatchUpBatch { events, cursor, has_more } = self.membership.catch_up_batch(self.cursor)?;
        self.ready = events;
        self.cursor = cursor;
        self.is_catching_up = has_more;
        Ok(())
    }

    /// Handles a closed channel: events were lost before they were sent. The ring shows whether any of them matches
    /// this subscription.
    fn rejoin(&mut self) {
        self.receiver = self.membership.shard.rejoin(self.membership.topic.as_ref());
        self.is_catching_up = true;
    }

    /// Handles an item of the channel. Ignores an event that was already received from the ring or the history.
    fn receive(&mut self, ChannelItem { seq, event }: ChannelItem) {
        if seq >= self.cursor {
            self.cursor = seq + 1;
            self.ready.push_back(event);
        }
    }
}

impl GroupMembership {
    fn catch_up_batch(&self, from: u64) -> Result<CatchUpBatch, Lagged> {
        self.hub.catch_up_batch(&self.shard, self.topic.as_ref(), from)
    }
}

impl Drop for GroupMembership {
    fn drop(&mut self) {
        let topic = self.topic.as_ref();
        self.hub.group(GroupKind::for_topic(topic)).leave(&self.shard, topic);
    }
}
