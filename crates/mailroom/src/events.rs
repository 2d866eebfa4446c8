//! The hub that tells readers what happened. It keeps a short history for those who come late, and a bounded queue for
//! those who listen: a reader who falls behind is told so and never slows anybody else.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use restante_mail::message::Summary;
use tokio::sync::broadcast;

/// How many events a listener may be behind before it loses some.
const QUEUE: usize = 1024;

/// A change of what the store holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A message was stored.
    Stored(Summary),
    /// A message was deleted: by a reader, by age, by the cap or by the bound.
    Deleted(Summary),
}

/// What a new listener gets.
pub struct Subscription {
    /// The last stored messages that are still there, oldest first.
    pub history: Vec<Summary>,
    /// Everything that happens after them. A lagging receiver gets `RecvError::Lagged`.
    pub events: broadcast::Receiver<Event>,
}

pub(crate) struct Hub {
    capacity: usize,
    /// Guards the order too: history and queue always agree about what comes first.
    history: Mutex<VecDeque<Summary>>,
    queue: broadcast::Sender<Event>,
}

impl Hub {
    pub(crate) fn new(history: usize) -> Self {
        Self { capacity: history, history: Mutex::default(), queue: broadcast::Sender::new(QUEUE) }
    }

    pub(crate) fn publish(&self, event: Event) {
        let mut history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        match &event {
            Event::Stored(_) if self.capacity == 0 => {}
            Event::Stored(summary) => {
                if history.len() == self.capacity {
                    history.pop_front();
                }
                history.push_back(summary.clone());
            }
            Event::Deleted(gone) => history.retain(|kept| kept.id != gone.id || kept.mailbox != gone.mailbox),
        }
        // An error says that nobody listens.
        let _ = self.queue.send(event);
    }

    pub(crate) fn subscribe(&self) -> Subscription {
        let history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        Subscription { history: history.iter().cloned().collect(), events: self.queue.subscribe() }
    }
}
