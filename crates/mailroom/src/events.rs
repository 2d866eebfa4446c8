//! The hub that tells readers what happened. It keeps a short history for those who come late, and a bounded queue for
//! those who listen: a reader who falls behind is told so and never slows anybody else.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use restante_mail::message::{MessageId, Summary};
use restante_mail::naming::MailboxName;
use tokio::sync::broadcast;

/// How many events a listener may be behind before it loses some.
const QUEUE: usize = 1024;
/// How many deletions are remembered for messages that are not announced yet. Under load some delivery is always under
/// way, so this is how many usually are.
const MAX_EARLY: usize = 1024;

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
    state: Mutex<State>,
    queue: broadcast::Sender<Event>,
}

/// Between the store's change and its announcement another task can overtake: a message may be deleted by the one before
/// it is announced by the other. So as long as deliveries are under way, deletions are remembered.
#[derive(Default)]
struct State {
    history: VecDeque<Summary>,
    underway: usize,
    /// By id, because it is the newest messages that may not be announced yet: the lowest ids are forgotten first.
    early: BTreeSet<(MessageId, MailboxName)>,
}

/// A delivery between its way into the store and its announcement.
pub(crate) struct Underway<'a>(&'a Hub);

impl Hub {
    pub(crate) fn new(history: usize) -> Self {
        Self { capacity: history, state: Mutex::default(), queue: broadcast::Sender::new(QUEUE) }
    }

    /// Begins a delivery; what it stores is announced before the returned value is dropped.
    pub(crate) fn begin(&self) -> Underway<'_> {
        self.state().underway += 1;
        Underway(self)
    }

    pub(crate) fn stored(&self, summary: Summary) {
        let mut state = self.state();
        let gone = !state.early.is_empty() && state.early.remove(&key(&summary));
        self.send(Event::Stored(summary.clone()));
        if gone {
            self.send(Event::Deleted(summary));
            return;
        }
        state.history.push_back(summary);
        if state.history.len() > self.capacity {
            state.history.pop_front();
        }
    }

    pub(crate) fn deleted(&self, summary: Summary) {
        let mut state = self.state();
        state.history.retain(|kept| !is_same(kept, &summary));
        if state.underway > 0 {
            state.early.insert(key(&summary));
            if state.early.len() > MAX_EARLY {
                state.early.pop_first();
            }
        }
        self.send(Event::Deleted(summary));
    }

    pub(crate) fn subscribe(&self) -> Subscription {
        let state = self.state();
        Subscription { history: state.history.iter().cloned().collect(), events: self.queue.subscribe() }
    }

    fn send(&self, event: Event) {
        // An error says that nobody listens.
        let _ = self.queue.send(event);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Underway<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.underway -= 1;
        if state.underway == 0 {
            state.early.clear();
        }
    }
}

fn key(summary: &Summary) -> (MessageId, MailboxName) {
    (summary.id, summary.mailbox.clone())
}

fn is_same(one: &Summary, other: &Summary) -> bool {
    one.id == other.id && one.mailbox == other.mailbox
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use restante_mail::message::Headline;
    use restante_mail::naming::Naming;

    use super::*;

    fn message(id: u64) -> Summary {
        Summary {
            mailbox: Naming::Local.mailbox_named("bob").unwrap(),
            id: MessageId::from(id),
            headline: Headline::new("", [], ""),
            received: Timestamp::UNIX_EPOCH,
            size: 0,
            seen: false,
        }
    }

    #[test]
    fn a_deletion_that_overtakes_its_message_is_told_again_behind_it() {
        let hub = Hub::new(10);
        let mut events = hub.subscribe().events;
        let delivery = hub.begin();
        hub.deleted(message(1));
        hub.stored(message(1));
        hub.stored(message(2));
        drop(delivery);
        let told = [
            Event::Deleted(message(1)),
            Event::Stored(message(1)),
            Event::Deleted(message(1)),
            Event::Stored(message(2)),
        ];
        for event in told {
            assert_eq!(events.try_recv(), Ok(event));
        }
        assert_eq!(hub.subscribe().history, [message(2)]);
        assert!(hub.state().early.is_empty());
    }

    #[test]
    fn deletions_are_remembered_within_bounds_and_only_while_it_matters() {
        let hub = Hub::new(10);
        hub.deleted(message(1));
        assert!(hub.state().early.is_empty());
        let delivery = hub.begin();
        let newest = 10 * MAX_EARLY as u64;
        hub.deleted(message(newest));
        for id in 0..newest {
            hub.deleted(message(id));
        }
        assert_eq!(hub.state().early.len(), MAX_EARLY);
        assert!(hub.state().early.contains(&key(&message(newest))), "the newest message's is the last to be forgotten");
        drop(delivery);
        assert!(hub.state().early.is_empty());
    }
}
