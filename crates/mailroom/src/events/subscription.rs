//! The listener's end: first what it missed, then what happens, each event once and in order.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use restante_mail::naming::MailboxName;
use tokio::runtime::Handle;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};

use super::dispatcher::{self, DispatcherGuard};
use super::hub::{CatchUpBatch, GroupKind, Hub, StartPoint};
use super::subscriber_group::{ChannelItem, EventReceiver, Shard};
use super::{Lagged, Position, PublishedEvent};

/// Somebody who listens to one mailbox or to all of them.
pub struct Subscription {
    /// What comes first. A message of it that is gone meanwhile is history no more.
    history: VecDeque<Weak<PublishedEvent>>,
    /// What comes before the channel: a piece of the ring.
    ready: VecDeque<Weak<PublishedEvent>>,
    /// Everything below this place was told, or is in `ready`, or is not wanted.
    cursor: u64,
    /// Everything up to here was heard before. Where another node has told it, it may still be to come here.
    resumed_from: Option<Position>,
    /// Whether something behind the cursor is in the ring only.
    is_catching_up: bool,
    has_gap: bool,
    receiver: EventReceiver,
    // Behind the channel, because fields are dropped in this order: the hub counts who still listens.
    membership: GroupMembership,
}

/// Where a listener sits.
struct GroupMembership {
    hub: Arc<Hub>,
    shard: Arc<Shard>,
    topic: Option<MailboxName>,
}

impl Hub {
    /// A listener for the events of one mailbox or of all. It first hears the history, or what came behind `resume` when
    /// that is still known, and then what happens from now on.
    pub(crate) fn subscribe(self: &Arc<Self>, topic: Option<MailboxName>, resume: Option<Position>) -> Subscription {
        let kind = GroupKind::for_topic(topic.as_ref());
        let hall = self.group(kind);
        // The channel comes first: what it says twice is known by its number, what it does not say would be missed.
        let (wing, channel) = hall.join(topic.as_ref(), self.next_seq());
        let place = GroupMembership { hub: self.clone(), shard: wing, topic };
        if let Ok(runtime) = Handle::try_current()
            && hall.claim_dispatcher()
        {
            runtime.spawn(dispatcher::run(DispatcherGuard::new(self.clone(), kind)));
        }
        // Something may have happened before the seat was taken, which the new wing is still to be told.
        hall.dispatcher_wakeup.notify_one();
        let (history, cursor, is_behind) = match self.start_point(place.topic.as_ref(), resume) {
            StartPoint::From(seq) => (VecDeque::new(), seq, true),
            StartPoint::History { messages, next } => (messages, next, false),
        };
        let has_gap = resume.is_some() && !is_behind;
        let heard = resume.filter(|_| is_behind);
        Subscription {
            history,
            ready: VecDeque::new(),
            cursor,
            resumed_from: heard,
            is_catching_up: is_behind,
            has_gap,
            receiver: channel,
            membership: place,
        }
    }
}

impl Subscription {
    /// The next event, when there is one. Nothing is lost when the future is dropped before it is ready. After an error
    /// the listener should subscribe again.
    pub async fn next(&mut self) -> Result<Arc<PublishedEvent>, Lagged> {
        loop {
            if let Some(told) = self.try_next()? {
                return Ok(told);
            }
            match self.receiver.recv().await {
                Ok(note) => self.receive(note),
                Err(RecvError::Lagged(_)) => self.is_catching_up = true,
                Err(RecvError::Closed) => self.rejoin(),
            }
        }
    }

    /// The next event, if it is there already.
    pub fn try_next(&mut self) -> Result<Option<Arc<PublishedEvent>>, Lagged> {
        while let Some(told) = self.history.pop_front() {
            if let Some(told) = told.upgrade() {
                return Ok(Some(told));
            }
        }
        loop {
            if let Some(told) = self.ready.pop_front() {
                let told = told.upgrade().ok_or(Lagged)?;
                if self.resumed_from.is_some_and(|heard| told.position() <= heard) {
                    continue;
                }
                return Ok(Some(told));
            }
            if self.is_catching_up {
                self.catch_up()?;
                continue;
            }
            // Asked for before the channel, which holds everything up to there that concerns this listener.
            let told = self.membership.shard.dispatched_up_to();
            match self.receiver.try_recv() {
                Ok(note) => self.receive(note),
                Err(TryRecvError::Empty) => {
                    self.cursor = self.cursor.max(told);
                    return Ok(None);
                }
                Err(TryRecvError::Lagged(_)) => self.is_catching_up = true,
                Err(TryRecvError::Closed) => self.rejoin(),
            }
        }
    }

    /// Whether something may have happened between the position that was given and what is told here.
    pub fn has_gap(&self) -> bool {
        self.has_gap
    }

    /// Up to where this listener has heard what concerns it, so that it can go on from there another time. What
    /// [`Subscription::try_next`] would give now is not included.
    pub fn position(&self) -> Option<Position> {
        let is_all_heard = self.history.is_empty() && self.ready.is_empty();
        let position = || self.resumed_from.max(self.membership.hub.position_before(self.cursor));
        is_all_heard.then(position).flatten()
    }

    fn catch_up(&mut self) -> Result<(), Lagged> {
        let CatchUpBatch { events, cursor, has_more: is_more } = self.membership.catch_up_batch(self.cursor)?;
        self.ready = events;
        self.cursor = cursor;
        self.is_catching_up = is_more;
        Ok(())
    }

    /// The channel ended because events were lost before they could be told. Whether any that this listener waits for is
    /// among them, the ring knows.
    fn rejoin(&mut self) {
        self.receiver = self.membership.shard.rejoin(self.membership.topic.as_ref());
        self.is_catching_up = true;
    }

    /// Takes an event from the channel, unless it came in another way before.
    fn receive(&mut self, ChannelItem { seq, event: told }: ChannelItem) {
        if seq >= self.cursor {
            self.cursor = seq + 1;
            self.ready.push_back(told);
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
