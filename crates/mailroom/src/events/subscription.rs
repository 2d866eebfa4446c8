//! The listener's end: first what it missed, then what happens, each event once and in order.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use restante_mail::naming::MailboxName;
use tokio::runtime::Handle;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};

use super::fan_out::{self, Service};
use super::hall::{Channel, Note, Wing};
use super::hub::{Beginning, Hub, Kind, Piece};
use super::{Lagged, Position, Told};

/// Somebody who listens to one mailbox or to all of them.
pub struct Subscription {
    /// What comes first. A message of it that is gone meanwhile is history no more.
    history: VecDeque<Weak<Told>>,
    /// What comes before the channel: a piece of the ring.
    ready: VecDeque<Weak<Told>>,
    /// Everything below this place was told, or is in `ready`, or is not wanted.
    cursor: u64,
    /// Everything up to here was heard before. Where another node has told it, it may still be to come here.
    heard: Option<Position>,
    /// Whether something behind the cursor is in the ring only.
    is_behind: bool,
    has_gap: bool,
    channel: Channel,
    // Behind the channel, because fields are dropped in this order: the hub counts who still listens.
    place: Place,
}

/// Where a listener sits.
struct Place {
    hub: Arc<Hub>,
    wing: Arc<Wing>,
    topic: Option<MailboxName>,
}

impl Hub {
    /// A listener for the events of one mailbox or of all. It first hears the history, or what came behind `resume` when
    /// that is still known, and then what happens from now on.
    pub(crate) fn subscribe(self: &Arc<Self>, topic: Option<MailboxName>, resume: Option<Position>) -> Subscription {
        let kind = Kind::of(topic.as_ref());
        let hall = self.hall(kind);
        // The channel comes first: what it says twice is known by its number, what it does not say would be missed.
        let (wing, channel) = hall.join(topic.as_ref(), self.next());
        let place = Place { hub: self.clone(), wing, topic };
        if let Ok(runtime) = Handle::try_current()
            && hall.wants_service()
        {
            runtime.spawn(fan_out::run(Service::new(self.clone(), kind)));
        }
        // Something may have happened before the seat was taken, which the new wing is still to be told.
        hall.news.notify_one();
        let (history, cursor, is_behind) = match self.beginning(place.topic.as_ref(), resume) {
            Beginning::From(seq) => (VecDeque::new(), seq, true),
            Beginning::History { messages, next } => (messages, next, false),
        };
        let has_gap = resume.is_some() && !is_behind;
        let heard = resume.filter(|_| is_behind);
        Subscription { history, ready: VecDeque::new(), cursor, heard, is_behind, has_gap, channel, place }
    }
}

impl Subscription {
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
                let told = told.upgrade().ok_or(Lagged)?;
                if self.heard.is_some_and(|heard| told.position() <= heard) {
                    continue;
                }
                return Ok(Some(told));
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
        let position = || self.heard.max(self.place.hub.position_before(self.cursor));
        is_all_heard.then(position).flatten()
    }

    fn catch_up(&mut self) -> Result<(), Lagged> {
        let Piece { events, cursor, is_more } = self.place.piece(self.cursor)?;
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

impl Place {
    fn piece(&self, from: u64) -> Result<Piece, Lagged> {
        self.hub.piece(&self.wing, self.topic.as_ref(), from)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let topic = self.topic.as_ref();
        self.hub.hall(Kind::of(topic)).leave(&self.wing, topic);
    }
}
