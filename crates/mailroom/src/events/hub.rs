//! The hub: what happens is put in order here, and who wants to know comes here. The telling itself is in `fan_out`.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use restante_mail::message::{MessageId, Summary};
use restante_mail::naming::MailboxName;
use tokio::time::sleep;

use super::ring::{self, Ring};
use super::subscriber_group::{Shard, SubscriberGroup};
use super::{Event, Lagged, Position, PublishedEvent};

/// How many deletions are remembered for messages that are not announced yet. Under load some delivery is always under
/// way, so this is how many usually are.
const MAX_EARLY_DELETIONS: usize = 1024;
/// How many events a listener who is behind looks at while delivery waits for it.
const CATCH_UP_BATCH: u64 = 256;
/// How many events are looked at in one round of telling.
const DISPATCH_BATCH: u64 = 8192;
/// How many events listeners may be behind before those who can wait do so; less than the ring has room for.
const MAX_BACKLOG: u64 = 4096;
/// How long they wait at once.
const BACKLOG_POLL_INTERVAL: Duration = Duration::from_millis(5);
/// The run of all nodes of a shared store; see [`Position`].
const SHARED_RUN: u64 = 0;
/// How far the clock of a shared store may be from the one here.
const MAX_CLOCK_SKEW: SignedDuration = SignedDuration::from_mins(1);

pub(crate) struct Hub {
    run: u64,
    history: usize,
    /// Guards the order too: history and ring always agree about what comes first. Never held while listeners are told.
    state: Mutex<State>,
    everything: SubscriberGroup,
    mailboxes: SubscriberGroup,
}

/// What a hall listens to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GroupKind {
    /// All events.
    Everything,
    /// Those of single mailboxes.
    Mailboxes,
}

impl GroupKind {
    pub(super) fn for_topic(topic: Option<&MailboxName>) -> Self {
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
    history: BTreeMap<MessageKey, Arc<PublishedEvent>>,
    deliveries_in_progress: usize,
    /// By id, because it is the newest messages that may not be announced yet: the lowest ids are forgotten first.
    early_deletions: BTreeSet<MessageKey>,
}

/// A message, ordered by its time of arrival.
type MessageKey = (MessageId, MailboxName);

/// A delivery between its way into the store and its announcement.
pub(crate) struct DeliveryGuard<'a>(&'a Hub);

/// Where a new listener begins.
pub(super) enum StartPoint {
    /// With the event of this place.
    From(u64),
    /// With these messages, oldest first, and then with the event of this place.
    History { messages: VecDeque<Weak<PublishedEvent>>, next: u64 },
}

/// What a listener who is behind gets of the ring at once.
pub(super) struct CatchUpBatch {
    pub(super) events: VecDeque<Weak<PublishedEvent>>,
    /// Where it goes on.
    pub(super) cursor: u64,
    /// Whether there is more to get in this way.
    pub(super) has_more: bool,
}

impl Hub {
    /// For events that are announced here, and numbered by this run of the server.
    pub(crate) fn new(history: usize) -> Arc<Self> {
        Self::with_run(to_micros(Timestamp::now()), history)
    }

    /// For the events of a shared store, which numbers them.
    pub(crate) fn for_shared_store(history: usize) -> Arc<Self> {
        Self::with_run(SHARED_RUN, history)
    }

    fn with_run(run: u64, history: usize) -> Arc<Self> {
        Arc::new(Self {
            run,
            history,
            state: Mutex::default(),
            everything: SubscriberGroup::default(),
            mailboxes: SubscriberGroup::default(),
        })
    }

    /// Begins a delivery; what it stores is announced before the returned value is dropped.
    pub(crate) fn begin_delivery(&self) -> DeliveryGuard<'_> {
        self.lock_state().deliveries_in_progress += 1;
        DeliveryGuard(self)
    }

    pub(crate) fn publish_stored(&self, summary: Summary) {
        let mut state = self.lock_state();
        let is_gone = state.early_deletions.remove(&message_key(&summary));
        self.append(&mut state, None, Event::Stored(summary.clone()));
        if is_gone {
            self.append(&mut state, None, Event::Deleted(summary));
        }
        self.notify_dispatchers(state);
    }

    pub(crate) fn publish_deleted(&self, summary: Summary) {
        let mut state = self.lock_state();
        if state.deliveries_in_progress > 0 {
            state.early_deletions.insert(message_key(&summary));
            if state.early_deletions.len() > MAX_EARLY_DELETIONS {
                state.early_deletions.pop_first();
            }
        }
        self.append(&mut state, None, Event::Deleted(summary));
        self.notify_dispatchers(state);
    }

    /// Everything will be told that happened in a shared store behind this number; of what was before, not all is known.
    pub(crate) fn set_history_start(&self, number: u64) {
        self.lock_state().ring.set_dropped_up_to(self.position(number));
    }

    /// Something happened in a shared store, which tells everything once and in the order of these numbers.
    pub(crate) fn publish_numbered(&self, number: u64, event: Event) {
        let mut state = self.lock_state();
        state.ring.set_dropped_up_to(self.position(number.saturating_sub(1)));
        self.append(&mut state, Some(number), event);
        self.notify_dispatchers(state);
    }

    /// Something happened in a shared store that cannot be told any more. So everybody who listens has missed something, and
    /// nobody knows which messages of the history are still there.
    pub(crate) fn events_missed(&self) {
        let mut state = self.lock_state();
        state.ring.clear_with_gap();
        state.history.clear();
        self.notify_dispatchers(state);
    }

    /// The place that the next event gets.
    pub(super) fn next_seq(&self) -> u64 {
        self.lock_state().ring.next_seq()
    }

    /// What a new listener hears first: what came behind `resume` when that is still known, and otherwise the history.
    pub(super) fn start_point(&self, topic: Option<&MailboxName>, resume: Option<Position>) -> StartPoint {
        let state = self.lock_state();
        let next = state.ring.next_seq();
        let resume = resume.filter(|position| self.is_valid_position(&state.ring, *position));
        if let Some(from) = resume.and_then(|position| state.ring.first_seq_after(position)) {
            return StartPoint::From(from);
        }
        let history = state.history.values().filter(|told| told.event().matches_topic(topic));
        let mut history: Vec<&Arc<PublishedEvent>> = history.collect();
        history.sort_unstable_by_key(|told| told.seq);
        StartPoint::History { messages: history.into_iter().map(Arc::downgrade).collect(), next }
    }

    /// Whether a listener can have got this position from here, or from another node that shares the store, which may have
    /// heard of more.
    fn is_valid_position(&self, ring: &Ring, position: Position) -> bool {
        let elsewhere = (self.run == SHARED_RUN).then(|| self.position(to_micros(Timestamp::now() + MAX_CLOCK_SKEW)));
        position.run == self.run && Some(position) <= ring.last_position().max(elsewhere)
    }

    /// Waits until the listeners were told almost everything, as long as there is patience; returns what is left of it. For
    /// those who make many events at once and can wait, which deliveries cannot.
    pub(crate) async fn wait_for_subscribers(&self, mut patience: Duration) -> Duration {
        while self.backlog() > MAX_BACKLOG && !patience.is_zero() {
            let pause = BACKLOG_POLL_INTERVAL.min(patience);
            sleep(pause).await;
            patience -= pause;
        }
        patience
    }

    /// How far behind those are who were told the least.
    fn backlog(&self) -> u64 {
        let next = self.lock_state().ring.next_seq();
        let told = [&self.everything, &self.mailboxes].into_iter().filter_map(SubscriberGroup::dispatched_up_to).min();
        told.map_or(0, |told| next.saturating_sub(told))
    }

    /// Tells a wing what is new, or cuts it off when that is gone already; returns the work that this makes, or nothing when
    /// there is nothing new.
    pub(super) fn dispatch(&self, wing: &Shard) -> Option<Duration> {
        let from = wing.dispatched_up_to();
        let state = self.lock_state();
        if from < state.ring.oldest_seq() {
            let next = state.ring.next_seq();
            drop(state);
            return Some(wing.disconnect_all(next));
        }
        let events: Vec<Arc<PublishedEvent>> = state.ring.range(from, from + DISPATCH_BATCH).cloned().collect();
        drop(state);
        (!events.is_empty()).then(|| wing.dispatch(&events))
    }

    /// How many messages were stored since the start.
    pub(super) fn deliveries(&self) -> u64 {
        self.lock_state().deliveries
    }

    /// The position of the event before this place, if it is still known.
    pub(super) fn position_before(&self, place: u64) -> Option<Position> {
        self.lock_state().ring.position_before(place)
    }

    pub(super) fn group(&self, kind: GroupKind) -> &SubscriberGroup {
        match kind {
            GroupKind::Everything => &self.everything,
            GroupKind::Mailboxes => &self.mailboxes,
        }
    }

    /// What a wing was told from here on, for a listener who did not hear it.
    pub(super) fn catch_up_batch(
        &self,
        wing: &Shard,
        topic: Option<&MailboxName>,
        from: u64,
    ) -> Result<CatchUpBatch, Lagged> {
        let told = wing.dispatched_up_to();
        let state = self.lock_state();
        if from < state.ring.oldest_seq() {
            return Err(Lagged);
        }
        let to = told.min(from + CATCH_UP_BATCH).max(from);
        let events = state.ring.range(from, to).filter(|told| told.event().matches_topic(topic));
        Ok(CatchUpBatch { events: events.map(Arc::downgrade).collect(), cursor: to, has_more: to < told })
    }

    /// Puts an event behind all others. Without a number it gets that of its place.
    fn append(&self, state: &mut State, number: Option<u64>, event: Event) {
        let (key, is_stored) = (message_key(event.summary()), matches!(event, Event::Stored(_)));
        let position = self.position(number.unwrap_or(state.ring.next_seq()));
        let told = state.ring.push(position, event, self.ring_capacity());
        if is_stored {
            state.deliveries += 1;
            state.history.insert(key, told);
        } else {
            state.history.remove(&key);
        }
    }

    /// Lets those know who tell the listeners.
    fn notify_dispatchers(&self, mut state: MutexGuard<'_, State>) {
        if state.history.len() > self.history {
            state.history.pop_first();
        }
        drop(state);
        self.everything.wake_dispatcher();
        self.mailboxes.wake_dispatcher();
    }

    fn position(&self, number: u64) -> Position {
        Position { run: self.run, number }
    }

    fn ring_capacity(&self) -> usize {
        if self.everything.has_subscribers() || self.mailboxes.has_subscribers() {
            ring::CAPACITY_WITH_SUBSCRIBERS
        } else {
            ring::CAPACITY_WITHOUT_SUBSCRIBERS
        }
    }

    fn lock_state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for DeliveryGuard<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock_state();
        state.deliveries_in_progress -= 1;
        if state.deliveries_in_progress == 0 {
            state.early_deletions.clear();
        }
    }
}

fn message_key(summary: &Summary) -> MessageKey {
    (summary.id, summary.mailbox.clone())
}

fn to_micros(time: Timestamp) -> u64 {
    time.as_microsecond().unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::super::tests::message;
    use super::*;

    #[test]
    fn deletions_are_remembered_within_bounds_and_only_while_it_matters() {
        let hub = Hub::new(10);
        hub.publish_deleted(message(1));
        assert!(hub.lock_state().early_deletions.is_empty());
        let delivery = hub.begin_delivery();
        let newest = 10 * MAX_EARLY_DELETIONS as u64;
        hub.publish_deleted(message(newest));
        for id in 0..newest {
            hub.publish_deleted(message(id));
        }
        assert_eq!(hub.lock_state().early_deletions.len(), MAX_EARLY_DELETIONS);
        assert!(
            hub.lock_state().early_deletions.contains(&message_key(&message(newest))),
            "the newest message's is the last to be forgotten"
        );
        drop(delivery);
        assert!(hub.lock_state().early_deletions.is_empty());
    }
}
