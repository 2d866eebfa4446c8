//! The event hub: puts events in order and registers subscribers. Sending them is in `dispatcher`.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use restante_mail::message::{MessageId, Summary};
use restante_mail::naming::MailboxName;
use tokio::time::sleep;

use super::ring::{self, Ring};
use super::subscriber_group::{Shard, SubscriberGroup};
use super::{Event, Lagged, MessageCopies, Position, PublishedEvent};

/// The number of deletions that are remembered while the stored events of their messages may not be published yet.
/// Under load some delivery is always in progress, so this limit is usually reached.
const MAX_EARLY_DELETIONS: usize = 1024;
/// The number of events that a subscriber reads from the ring at once while it catches up. Deliveries wait meanwhile.
const CATCH_UP_BATCH: u64 = 256;
/// The number of events that are read for one round of a dispatcher.
const DISPATCH_BATCH: u64 = 8192;
/// The number of unsent events above which bulk operations wait for subscribers. It is smaller than the capacity of the
/// ring.
const MAX_BACKLOG: u64 = 4096;
/// How often a waiting bulk operation checks the backlog.
const BACKLOG_POLL_INTERVAL: Duration = Duration::from_millis(5);
/// The run number of all nodes of a shared store; see [`Position`].
const SHARED_RUN: u64 = 0;
/// The largest difference between the clock of a shared store and the local clock.
const MAX_CLOCK_SKEW: SignedDuration = SignedDuration::from_mins(1);

/// Orders the events and keeps the last ones for subscribers.
pub(crate) struct Hub {
    run: u64,
    history: usize,
    /// Also guards the order: history and ring always agree about it. Never held while events are sent.
    state: Mutex<State>,
    everything: SubscriberGroup,
    mailboxes: SubscriberGroup,
}

/// The mailboxes that the subscribers of a group listen to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GroupKind {
    /// All mailboxes.
    Everything,
    /// Single mailboxes.
    Mailboxes,
}

impl GroupKind {
    pub(super) fn for_topic(topic: Option<&MailboxName>) -> Self {
        if topic.is_some() { Self::Mailboxes } else { Self::Everything }
    }
}

/// The state of the hub. Between a change of the store and its publication another task can overtake: the deletion of a
/// message may be published before the message itself. So while deliveries are in progress, deletions are remembered.
/// The changes of a shared store are already in order.
#[derive(Default)]
struct State {
    ring: Ring,
    /// The number of stored messages.
    deliveries: u64,
    /// The last stored messages that still exist.
    history: BTreeMap<MessageKey, Arc<PublishedEvent>>,
    deliveries_in_progress: usize,
    /// Ordered by id. The newest messages may not be published yet, so the lowest ids are dropped first.
    early_deletions: BTreeSet<MessageKey>,
}

/// A message, ordered by its time of arrival.
type MessageKey = (MessageId, MailboxName);

/// Marks a delivery as in progress until its messages are published.
pub(crate) struct DeliveryGuard<'a>(&'a Hub);

/// Where a new subscriber starts.
pub(super) enum StartPoint {
    /// At the event with this sequence number.
    From(u64),
    /// With these messages, oldest first, and then at the event with the sequence number `next`.
    History { messages: VecDeque<Weak<PublishedEvent>>, next: u64 },
}

/// A batch of events from the ring, for a subscriber that catches up.
pub(super) struct CatchUpBatch {
    pub(super) events: VecDeque<Weak<PublishedEvent>>,
    /// The sequence number to continue at.
    pub(super) cursor: u64,
    /// Whether the ring has more events to catch up with.
    pub(super) has_more: bool,
}

impl Hub {
    /// Creates a hub for events that are published by this process and numbered by it.
    pub(crate) fn new(history: usize) -> Arc<Self> {
        Self::with_run(to_micros(Timestamp::now()), history)
    }

    /// Creates a hub for the events of a shared store, which numbers them.
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

    /// Marks a delivery as in progress. Its messages must be published before the guard is dropped.
    pub(crate) fn begin_delivery(&self) -> DeliveryGuard<'_> {
        self.lock_state().deliveries_in_progress += 1;
        DeliveryGuard(self)
    }

    pub(crate) fn publish_stored(&self, summary: Summary, copies: MessageCopies) {
        let mut state = self.lock_state();
        let is_deleted = state.early_deletions.remove(&message_key(&summary));
        self.append(&mut state, None, Event::Stored(summary.clone(), copies));
        if is_deleted {
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

    /// Sets the number in the feed of a shared store after which all events are published. Events before it may be
    /// incomplete.
    pub(crate) fn set_history_start(&self, number: u64) {
        self.lock_state().ring.set_dropped_up_to(self.position(number));
    }

    /// Publishes an event of a shared store, which reports each event once and in the order of these numbers.
    pub(crate) fn publish_numbered(&self, number: u64, event: Event) {
        let mut state = self.lock_state();
        state.ring.set_dropped_up_to(self.position(number.saturating_sub(1)));
        self.append(&mut state, Some(number), event);
        self.notify_dispatchers(state);
    }

    /// Records that events of a shared store were lost. All subscribers have missed something, and it is not known
    /// which messages of the history still exist.
    pub(crate) fn events_missed(&self) {
        let mut state = self.lock_state();
        state.ring.clear_with_gap();
        state.history.clear();
        self.notify_dispatchers(state);
    }

    /// Returns the sequence number of the next event.
    pub(super) fn next_seq(&self) -> u64 {
        self.lock_state().ring.next_seq()
    }

    /// Returns where a new subscriber starts: after `resume` if all events since then are still known, otherwise with
    /// the history.
    pub(super) fn start_point(&self, topic: Option<&MailboxName>, resume: Option<Position>) -> StartPoint {
        let state = self.lock_state();
        let next = state.ring.next_seq();
        let resume = resume.filter(|position| self.is_valid_position(&state.ring, *position));
        if let Some(from) = resume.and_then(|position| state.ring.first_seq_after(position)) {
            return StartPoint::From(from);
        }
        let history = state.history.values().filter(|published| published.event().matches_topic(topic));
        let mut history: Vec<&Arc<PublishedEvent>> = history.collect();
        history.sort_unstable_by_key(|published| published.seq);
        StartPoint::History { messages: history.into_iter().map(Arc::downgrade).collect(), next }
    }

    /// Returns whether this hub can have issued this position, or another node of the shared store, which may know
    /// later events.
    fn is_valid_position(&self, ring: &Ring, position: Position) -> bool {
        let max_on_other_nodes =
            (self.run == SHARED_RUN).then(|| self.position(to_micros(Timestamp::now() + MAX_CLOCK_SKEW)));
        position.run == self.run && Some(position) <= ring.last_position().max(max_on_other_nodes)
    }

    /// Waits until the subscribers have almost no unsent events, at most for `budget`. Returns the rest of
    /// `budget`. Operations that publish many events call it; deliveries cannot wait.
    pub(crate) async fn wait_for_subscribers(&self, mut budget: Duration) -> Duration {
        while self.backlog() > MAX_BACKLOG && !budget.is_zero() {
            let pause = BACKLOG_POLL_INTERVAL.min(budget);
            sleep(pause).await;
            budget -= pause;
        }
        budget
    }

    /// Returns the number of events that the slowest group has not received.
    fn backlog(&self) -> u64 {
        let next = self.lock_state().ring.next_seq();
        let sent = [&self.everything, &self.mailboxes].into_iter().filter_map(SubscriberGroup::dispatched_up_to).min();
        sent.map_or(0, |seq| next.saturating_sub(seq))
    }

    /// Sends new events to a shard, or disconnects its subscribers if the events are no longer in the ring. Returns the
    /// estimated cost, or `None` if there are no new events.
    pub(super) fn dispatch(&self, shard: &Shard) -> Option<Duration> {
        let from = shard.dispatched_up_to();
        let state = self.lock_state();
        if from < state.ring.oldest_seq() {
            let next = state.ring.next_seq();
            drop(state);
            return Some(shard.disconnect_all(next));
        }
        let events: Vec<Arc<PublishedEvent>> = state.ring.range(from, from + DISPATCH_BATCH).cloned().collect();
        drop(state);
        (!events.is_empty()).then(|| shard.dispatch(&events))
    }

    /// Returns the number of messages stored since the start.
    pub(super) fn deliveries(&self) -> u64 {
        self.lock_state().deliveries
    }

    /// Returns the position of the event before this sequence number, if it is still known.
    pub(super) fn position_before(&self, seq: u64) -> Option<Position> {
        self.lock_state().ring.position_before(seq)
    }

    pub(super) fn group(&self, kind: GroupKind) -> &SubscriberGroup {
        match kind {
            GroupKind::Everything => &self.everything,
            GroupKind::Mailboxes => &self.mailboxes,
        }
    }

    /// Returns events that the shard has already sent, from the sequence number `from` on, for a subscriber that did
    /// not receive them.
    pub(super) fn catch_up_batch(
        &self,
        shard: &Shard,
        topic: Option<&MailboxName>,
        from: u64,
    ) -> Result<CatchUpBatch, Lagged> {
        let sent = shard.dispatched_up_to();
        let state = self.lock_state();
        if from < state.ring.oldest_seq() {
            return Err(Lagged);
        }
        let to = sent.min(from + CATCH_UP_BATCH).max(from);
        let events = state.ring.range(from, to).filter(|published| published.event().matches_topic(topic));
        Ok(CatchUpBatch { events: events.map(Arc::downgrade).collect(), cursor: to, has_more: to < sent })
    }

    /// Appends an event. Without a number it gets its sequence number.
    fn append(&self, state: &mut State, number: Option<u64>, event: Event) {
        let (key, is_stored) = (message_key(event.summary()), matches!(event, Event::Stored(..)));
        let position = self.position(number.unwrap_or(state.ring.next_seq()));
        let published = state.ring.push(position, event, self.ring_capacity());
        if is_stored {
            state.deliveries += 1;
            state.history.insert(key, published);
        } else {
            state.history.remove(&key);
        }
    }

    /// Wakes the dispatchers and limits the history.
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
    fn early_deletions_are_limited_and_kept_only_during_deliveries() {
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
            "the newest message is dropped last"
        );
        drop(delivery);
        assert!(hub.lock_state().early_deletions.is_empty());
    }
}
