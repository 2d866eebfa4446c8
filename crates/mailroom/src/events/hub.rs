//! The hub: what happens is put in order here, and who wants to know comes here. The telling itself is in `fan_out`.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use jiff::Timestamp;
use restante_mail::message::{MessageId, Summary};
use restante_mail::naming::MailboxName;
use tokio::runtime::Handle;
use tokio::sync::Notify;

use super::fan_out::{self, Round, Topics};
use super::ring::Ring;
use super::{Event, Lagged, Position, Subscription, Told};

/// How many deletions are remembered for messages that are not announced yet. Under load some delivery is always under
/// way, so this is how many usually are.
const MAX_EARLY: usize = 1024;
/// How many events a listener who is behind looks at while delivery waits for it.
const PIECE: u64 = 256;

pub(crate) struct Hub {
    run: u64,
    history: usize,
    /// Guards the order too: history and ring always agree about what comes first. Never held while listeners are told.
    state: Mutex<State>,
    topics: Mutex<Topics>,
    /// Wakes the one task that tells the listeners.
    pub(super) news: Notify,
}

/// Between the store's change and its announcement another task can overtake: a message may be deleted by the one before
/// it is announced by the other. So as long as deliveries are under way, deletions are remembered.
#[derive(Default)]
struct State {
    ring: Ring,
    /// The last stored messages that are still there, oldest first.
    history: VecDeque<Arc<Told>>,
    /// Up to where listeners were told.
    fanned: u64,
    listeners: usize,
    /// Whether there is a task that tells them.
    is_fanning: bool,
    underway: usize,
    /// By id, because it is the newest messages that may not be announced yet: the lowest ids are forgotten first.
    early: BTreeSet<(MessageId, MailboxName)>,
}

/// A delivery between its way into the store and its announcement.
pub(crate) struct Underway<'a>(&'a Hub);

/// What a listener who is behind gets of the ring at once.
pub(super) struct Piece {
    pub(super) events: VecDeque<Weak<Told>>,
    /// Where it goes on.
    pub(super) cursor: u64,
    /// Whether there is more to get in this way.
    pub(super) is_more: bool,
}

impl Hub {
    pub(crate) fn new(history: usize) -> Arc<Self> {
        let run = Timestamp::now().as_microsecond().unsigned_abs();
        Arc::new(Self { run, history, state: Mutex::default(), topics: Mutex::default(), news: Notify::new() })
    }

    /// Begins a delivery; what it stores is announced before the returned value is dropped.
    pub(crate) fn begin(&self) -> Underway<'_> {
        self.state().underway += 1;
        Underway(self)
    }

    pub(crate) fn stored(&self, summary: Summary) {
        let mut state = self.state();
        let gone = !state.early.is_empty() && state.early.remove(&key(&summary));
        let told = state.ring.push(self.run, Event::Stored(summary.clone()));
        if gone {
            state.ring.push(self.run, Event::Deleted(summary));
        } else {
            state.history.push_back(told);
            if state.history.len() > self.history {
                state.history.pop_front();
            }
        }
        self.tell(state);
    }

    pub(crate) fn deleted(&self, summary: Summary) {
        let mut state = self.state();
        state.history.retain(|kept| !is_same(kept.event().summary(), &summary));
        if state.underway > 0 {
            state.early.insert(key(&summary));
            if state.early.len() > MAX_EARLY {
                state.early.pop_first();
            }
        }
        state.ring.push(self.run, Event::Deleted(summary));
        self.tell(state);
    }

    /// A listener for the events of one mailbox or of all. It first hears the history, or what came behind `resume` when
    /// that is still known, and then what happens from now on.
    pub(crate) fn subscribe(self: &Arc<Self>, topic: Option<MailboxName>, resume: Option<Position>) -> Subscription {
        // The channel comes first: what it says twice is known by its number, what it does not say would be missed.
        let channel = self.topics().join(topic.as_ref());
        let mut state = self.state();
        let next = state.ring.next();
        if state.listeners == 0 {
            state.fanned = next;
        }
        state.listeners += 1;
        if !state.is_fanning
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn(fan_out::run(self.clone()));
            state.is_fanning = true;
        }
        let resume =
            resume.filter(|position| position.run == self.run).and_then(|position| position.seq.checked_add(1));
        if let Some(from) = resume.filter(|from| (state.ring.oldest()..=next).contains(from)) {
            drop(state);
            return Subscription::resumed(self.clone(), topic, channel, from);
        }
        let history = state.history.iter().filter(|told| told.event().concerns(topic.as_ref()));
        let history = history.map(Arc::downgrade).collect();
        drop(state);
        Subscription::new(self.clone(), topic, channel, history, next)
    }

    /// What listeners are told next.
    pub(super) fn round(&self) -> Round {
        let mut state = self.state();
        if state.listeners == 0 {
            state.is_fanning = false;
            return Round::Over;
        }
        let (from, next) = (state.fanned, state.ring.next());
        if from < state.ring.oldest() {
            state.fanned = next;
            return Round::Overtaken;
        }
        Round::Tell(state.ring.range(from, from + fan_out::MAX_BATCH).cloned().collect())
    }

    /// Notes that these events are told.
    pub(super) fn advance_behind(&self, told: &[Arc<Told>]) {
        let Some(last) = told.last() else { return };
        let mut state = self.state();
        // Everybody may have left meanwhile, and somebody else have come, who does not wait for these.
        state.fanned = state.fanned.max(last.position().seq + 1);
    }

    /// What was told from here on, for a listener who is not told any more.
    pub(super) fn piece(&self, topic: Option<&MailboxName>, from: u64) -> Result<Piece, Lagged> {
        let state = self.state();
        if from < state.ring.oldest() {
            return Err(Lagged);
        }
        let to = state.fanned.min(from + PIECE).max(from);
        let events = state.ring.range(from, to).filter(|told| told.event().concerns(topic));
        Ok(Piece { events: events.map(Arc::downgrade).collect(), cursor: to, is_more: to < state.fanned })
    }

    /// Called behind the last use of a listener's channel.
    pub(super) fn leave(&self, topic: Option<&MailboxName>) {
        self.topics().prune(topic);
        let mut state = self.state();
        state.listeners -= 1;
        if state.listeners == 0 {
            self.news.notify_one();
        }
    }

    pub(super) fn topics(&self) -> MutexGuard<'_, Topics> {
        self.topics.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, state: MutexGuard<'_, State>) {
        let is_heard = state.listeners > 0;
        drop(state);
        if is_heard {
            self.news.notify_one();
        }
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
    use super::super::tests::message;
    use super::*;

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
