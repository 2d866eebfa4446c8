//! The hub: what happens is put in order here, and who wants to know comes here. The telling itself is in `fan_out`.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use restante_mail::message::{MessageId, Summary};
use restante_mail::naming::MailboxName;
use tokio::time::sleep;

use super::hall::{Hall, Wing};
use super::ring::{self, Ring};
use super::{Event, Lagged, Position, Told};

/// How many deletions are remembered for messages that are not announced yet. Under load some delivery is always under
/// way, so this is how many usually are.
const MAX_EARLY: usize = 1024;
/// How many events a listener who is behind looks at while delivery waits for it.
const PIECE: u64 = 256;
/// How many events are looked at in one round of telling.
const ROUND: u64 = 8192;
/// How many events listeners may be behind before those who can wait do so; less than the ring has room for.
const BACKLOG: u64 = 4096;
/// How long they wait at once.
const PAUSE: Duration = Duration::from_millis(5);
/// The run of all nodes of a shared store; see [`Position`].
const SHARED: u64 = 0;
/// How far the clock of a shared store may be from the one here.
const SKEW: SignedDuration = SignedDuration::from_mins(1);

pub(crate) struct Hub {
    run: u64,
    history: usize,
    /// Guards the order too: history and ring always agree about what comes first. Never held while listeners are told.
    state: Mutex<State>,
    everything: Hall,
    mailboxes: Hall,
}

/// What a hall listens to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// All events.
    Everything,
    /// Those of single mailboxes.
    Mailboxes,
}

impl Kind {
    pub(super) fn of(topic: Option<&MailboxName>) -> Self {
        if topic.is_some() { Self::Mailboxes } else { Self::Everything }
    }
}

/// Between the store's change and its announcement another task can overtake: a message may be deleted by the one before
/// it is announced by the other. So as long as deliveries are under way, deletions are remembered. What a shared store tells
/// is in order.
#[derive(Default)]
struct State {
    ring: Ring,
    /// How many messages were stored.
    deliveries: u64,
    /// The last stored messages that are still there.
    history: BTreeMap<Key, Arc<Told>>,
    underway: usize,
    /// By id, because it is the newest messages that may not be announced yet: the lowest ids are forgotten first.
    early: BTreeSet<Key>,
}

/// A message, ordered by its time of arrival.
type Key = (MessageId, MailboxName);

/// A delivery between its way into the store and its announcement.
pub(crate) struct Underway<'a>(&'a Hub);

/// Where a new listener begins.
pub(super) enum Beginning {
    /// With the event of this place.
    From(u64),
    /// With these messages, oldest first, and then with the event of this place.
    History { messages: VecDeque<Weak<Told>>, next: u64 },
}

/// What a listener who is behind gets of the ring at once.
pub(super) struct Piece {
    pub(super) events: VecDeque<Weak<Told>>,
    /// Where it goes on.
    pub(super) cursor: u64,
    /// Whether there is more to get in this way.
    pub(super) is_more: bool,
}

impl Hub {
    /// For events that are announced here, and numbered by this run of the server.
    pub(crate) fn new(history: usize) -> Arc<Self> {
        Self::of_run(microseconds(Timestamp::now()), history)
    }

    /// For the events of a shared store, which numbers them.
    pub(crate) fn of_shared_store(history: usize) -> Arc<Self> {
        Self::of_run(SHARED, history)
    }

    fn of_run(run: u64, history: usize) -> Arc<Self> {
        Arc::new(Self {
            run,
            history,
            state: Mutex::default(),
            everything: Hall::default(),
            mailboxes: Hall::default(),
        })
    }

    /// Begins a delivery; what it stores is announced before the returned value is dropped.
    pub(crate) fn begin(&self) -> Underway<'_> {
        self.state().underway += 1;
        Underway(self)
    }

    pub(crate) fn stored(&self, summary: Summary) {
        let mut state = self.state();
        let is_gone = state.early.remove(&key(&summary));
        self.add(&mut state, None, Event::Stored(summary.clone()));
        if is_gone {
            self.add(&mut state, None, Event::Deleted(summary));
        }
        self.publish(state);
    }

    pub(crate) fn deleted(&self, summary: Summary) {
        let mut state = self.state();
        if state.underway > 0 {
            state.early.insert(key(&summary));
            if state.early.len() > MAX_EARLY {
                state.early.pop_first();
            }
        }
        self.add(&mut state, None, Event::Deleted(summary));
        self.publish(state);
    }

    /// Everything will be told that happened in a shared store behind this number; of what was before, not all is known.
    pub(crate) fn begin_behind(&self, number: u64) {
        self.state().ring.begin_behind(self.position(number));
    }

    /// Something happened in a shared store, which tells everything once and in the order of these numbers.
    pub(crate) fn happened(&self, number: u64, event: Event) {
        let mut state = self.state();
        state.ring.begin_behind(self.position(number.saturating_sub(1)));
        self.add(&mut state, Some(number), event);
        self.publish(state);
    }

    /// Something happened in a shared store that cannot be told any more. So everybody who listens has missed something, and
    /// nobody knows which messages of the history are still there.
    pub(crate) fn missed(&self) {
        let mut state = self.state();
        state.ring.lose();
        state.history.clear();
        self.publish(state);
    }

    /// The place that the next event gets.
    pub(super) fn next(&self) -> u64 {
        self.state().ring.next()
    }

    /// What a new listener hears first: what came behind `resume` when that is still known, and otherwise the history.
    pub(super) fn beginning(&self, topic: Option<&MailboxName>, resume: Option<Position>) -> Beginning {
        let state = self.state();
        let next = state.ring.next();
        let resume = resume.filter(|position| self.can_have_told(&state.ring, *position));
        if let Some(from) = resume.and_then(|position| state.ring.behind(position)) {
            return Beginning::From(from);
        }
        let history = state.history.values().filter(|told| told.event().concerns(topic));
        let mut history: Vec<&Arc<Told>> = history.collect();
        history.sort_unstable_by_key(|told| told.seq);
        Beginning::History { messages: history.into_iter().map(Arc::downgrade).collect(), next }
    }

    /// Whether a listener can have got this position from here, or from another node that shares the store, which may have
    /// heard of more.
    fn can_have_told(&self, ring: &Ring, position: Position) -> bool {
        let elsewhere = (self.run == SHARED).then(|| self.position(microseconds(Timestamp::now() + SKEW)));
        position.run == self.run && Some(position) <= ring.last().max(elsewhere)
    }

    /// Waits until the listeners were told almost everything, as long as there is patience; returns what is left of it. For
    /// those who make many events at once and can wait, which deliveries cannot.
    pub(crate) async fn let_listeners_follow(&self, mut patience: Duration) -> Duration {
        while self.backlog() > BACKLOG && !patience.is_zero() {
            let pause = PAUSE.min(patience);
            sleep(pause).await;
            patience -= pause;
        }
        patience
    }

    /// How far behind those are who were told the least.
    fn backlog(&self) -> u64 {
        let next = self.state().ring.next();
        let told = [&self.everything, &self.mailboxes].into_iter().filter_map(Hall::told).min();
        told.map_or(0, |told| next.saturating_sub(told))
    }

    /// Tells a wing what is new, or cuts it off when that is gone already; returns the work that this makes, or nothing when
    /// there is nothing new.
    pub(super) fn tell(&self, wing: &Wing) -> Option<Duration> {
        let from = wing.told();
        let state = self.state();
        if from < state.ring.oldest() {
            let next = state.ring.next();
            drop(state);
            return Some(wing.cut_off(next));
        }
        let events: Vec<Arc<Told>> = state.ring.range(from, from + ROUND).cloned().collect();
        drop(state);
        (!events.is_empty()).then(|| wing.tell(&events))
    }

    /// How many messages were stored since the start.
    pub(super) fn deliveries(&self) -> u64 {
        self.state().deliveries
    }

    /// The position of the event before this place, if it is still known.
    pub(super) fn position_before(&self, place: u64) -> Option<Position> {
        self.state().ring.before(place)
    }

    pub(super) fn hall(&self, kind: Kind) -> &Hall {
        match kind {
            Kind::Everything => &self.everything,
            Kind::Mailboxes => &self.mailboxes,
        }
    }

    /// What a wing was told from here on, for a listener who did not hear it.
    pub(super) fn piece(&self, wing: &Wing, topic: Option<&MailboxName>, from: u64) -> Result<Piece, Lagged> {
        let told = wing.told();
        let state = self.state();
        if from < state.ring.oldest() {
            return Err(Lagged);
        }
        let to = told.min(from + PIECE).max(from);
        let events = state.ring.range(from, to).filter(|told| told.event().concerns(topic));
        Ok(Piece { events: events.map(Arc::downgrade).collect(), cursor: to, is_more: to < told })
    }

    /// Puts an event behind all others. Without a number it gets that of its place.
    fn add(&self, state: &mut State, number: Option<u64>, event: Event) {
        let (key, is_stored) = (key(event.summary()), matches!(event, Event::Stored(_)));
        let position = self.position(number.unwrap_or(state.ring.next()));
        let told = state.ring.push(position, event, self.capacity());
        if is_stored {
            state.deliveries += 1;
            state.history.insert(key, told);
        } else {
            state.history.remove(&key);
        }
    }

    /// Lets those know who tell the listeners.
    fn publish(&self, mut state: MutexGuard<'_, State>) {
        if state.history.len() > self.history {
            state.history.pop_first();
        }
        drop(state);
        self.everything.ring_the_bell();
        self.mailboxes.ring_the_bell();
    }

    fn position(&self, number: u64) -> Position {
        Position { run: self.run, number }
    }

    fn capacity(&self) -> usize {
        if self.everything.is_heard() || self.mailboxes.is_heard() { ring::HEARD } else { ring::UNHEARD }
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

fn key(summary: &Summary) -> Key {
    (summary.id, summary.mailbox.clone())
}

fn microseconds(time: Timestamp) -> u64 {
    time.as_microsecond().unsigned_abs()
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
