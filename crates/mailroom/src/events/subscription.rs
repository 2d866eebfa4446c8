//! The listener's end: first what it missed, then what happens, each event once and in order.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use restante_mail::naming::MailboxName;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};

use super::hall::{Channel, Note, Wing};
use super::hub::{Hub, Kind, Piece};
use super::{Lagged, Position, Told};

/// Somebody who listens to one mailbox or to all of them.
pub struct Subscription {
    /// What comes first. A message of it that is gone meanwhile is history no more.
    history: VecDeque<Weak<Told>>,
    /// What comes before the channel: a piece of the ring.
    ready: VecDeque<Weak<Told>>,
    /// Everything below this number was told, or is in `ready`, or is not wanted.
    cursor: u64,
    /// Whether something behind the cursor is in the ring only.
    is_behind: bool,
    has_gap: bool,
    channel: Channel,
    // Behind the channel, because fields are dropped in this order: the hub counts who still listens.
    place: Place,
}

/// Where a listener sits.
pub(super) struct Place {
    pub(super) hub: Arc<Hub>,
    pub(super) wing: Arc<Wing>,
    pub(super) topic: Option<MailboxName>,
}

impl Subscription {
    /// A listener that starts with history, and goes on with the event of this number. It has a gap when it wanted to go on
    /// from elsewhere.
    pub(super) fn new(place: Place, channel: Channel, history: VecDeque<Weak<Told>>, next: u64, has_gap: bool) -> Self {
        Self { history, ready: VecDeque::new(), cursor: next, is_behind: false, has_gap, channel, place }
    }

    /// A listener that goes on with the event of this number, which is in the ring.
    pub(super) fn resumed(place: Place, channel: Channel, from: u64) -> Self {
        let (history, ready) = (VecDeque::new(), VecDeque::new());
        Self { history, ready, cursor: from, is_behind: true, has_gap: false, channel, place }
    }

    /// The next event, when there is one. Nothing is lost when the future is dropped before it is ready. After an error
    /// the listener should subscribe again.
    pub async fn next(&mut self) -> Result<Arc<Told>, Lagged> {
        loop {
            if let Some(told) = self.try_next()? {
                return Ok(told);
            }
            match self.channel.recv().await {
                Ok(note) => self.hear(note),
                Err(RecvError::Lagged(_)) => self.is_behind = true,
                Err(RecvError::Closed) => self.join_again(),
            }
        }
    }

    /// The next event, if it is there already.
    pub fn try_next(&mut self) -> Result<Option<Arc<Told>>, Lagged> {
        while let Some(told) = self.history.pop_front() {
            if let Some(told) = told.upgrade() {
                return Ok(Some(told));
            }
        }
        loop {
            if let Some(told) = self.ready.pop_front() {
                return told.upgrade().map(Some).ok_or(Lagged);
            }
            if self.is_behind {
                self.catch_up()?;
                continue;
            }
            // Asked for before the channel, which holds everything up to there that concerns this listener.
            let told = self.place.wing.told();
            match self.channel.try_recv() {
                Ok(note) => self.hear(note),
                Err(TryRecvError::Empty) => {
                    self.cursor = self.cursor.max(told);
                    return Ok(None);
                }
                Err(TryRecvError::Lagged(_)) => self.is_behind = true,
                Err(TryRecvError::Closed) => self.join_again(),
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
        let seq = self.cursor.checked_sub(1).filter(|_| is_all_heard)?;
        Some(self.place.hub.position(seq))
    }

    fn catch_up(&mut self) -> Result<(), Lagged> {
        let Piece { events, cursor, is_more } = self.place.hub.piece(&self.place, self.cursor)?;
        self.ready = events;
        self.cursor = cursor;
        self.is_behind = is_more;
        Ok(())
    }

    /// The channel ended because events were lost before they could be told. Whether any that this listener waits for is
    /// among them, the ring knows.
    fn join_again(&mut self) {
        self.channel = self.place.wing.join(self.place.topic.as_ref());
        self.is_behind = true;
    }

    /// Takes an event from the channel, unless it came in another way before.
    fn hear(&mut self, Note { seq, told }: Note) {
        if seq >= self.cursor {
            self.cursor = seq + 1;
            self.ready.push_back(told);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let topic = self.topic.as_ref();
        self.hub.hall(Kind::of(topic)).leave(&self.wing, topic);
    }
}
