//! The event hub: puts events in order, keeps the last ones, and notifies their subscribers and the requests that wait for
//! messages.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Weak};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use restante_mail::message::{MessageId, Summary};
use restante_mail::naming::MailboxName;
use tokio::time::sleep;

use super::ring::{self, Ring};
use super::topic::{Notifiers, Topic, TopicReceiver};
use super::{Event, Lagged, MessageCopies, Position, PublishedEvent};

/// The number of deletions that are remembered while the stored events of their messages may not be published yet.
/// Under load some delivery is always in progress, so this limit is usually reached.
const MAX_EARLY_DELETIONS: usize = 1024;
/// The number of events that a subscriber reads at once. Deliveries wait meanwhile.
const READ_BATCH_SIZE: usize = 512;
/// The number of unread events above which bulk operations wait for subscribers. It is smaller than the capacity of the
/// ring.
const MAX_BACKLOG: usize = 4096;
/// How often a waiting bulk operation checks the backlog, and how long it waits for a subscriber that reads nothing.
const BACKLOG_POLL_INTERVAL: Duration = Duration::from_millis(5);
const MAX_STALL: Duration = Duration::from_millis(200);
/// The run number of all nodes of a shared store; see [`Position`].
const SHARED_RUN: u64 = 0;
/// The largest difference between the clock of a shared store and the local clock.
const MAX_CLOCK_SKEW: SignedDuration = SignedDuration::from_mins(1);

/// Orders the events and keeps the last ones for subscribers.
pub(crate) struct Hub {
    run: u64,
    history: usize,
    /// Also guards the order: history and ring always agree about it.
    pub(super) state: Mutex<State>,
}

/// The state of the hub. Between a change of the store and its publication another task can overtake: the deletion of a
/// message may be published before the message itself. So while deliveries are in progress, deletions are remembered.
/// The changes of a shared store are already in order.
#[derive(Default)]
pub(super) struct State {
    ring: Ring,
    /// What subscribers and waiting requests listen to: single mailboxes, or all if the key is `None`.
    pub(super) topics: HashMap<Option<MailboxName>, Topic>,
    /// The number of subscribers of all topics.
    subscriber_count: usize,
    /// The number of the last listener.
    last_listener: u64,
    /// The last stored messages that still exist.
    history: BTreeMap<MessageKey, Arc<PublishedEvent>>,
    deliveries_in_progress: usize,
    /// Ordered by id. The newest messages may not be published yet, so the lowest ids are dropped first.
    early_deletions: BTreeSet<MessageKey>,
}

/// What notifies the listeners of a topic, and whether a message was stored.
type Notice = (Notifiers, bool);

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

/// A batch of events for a subscriber.
pub(super) struct ReadBatch {
    pub(super) events: VecDeque<Weak<PublishedEvent>>,
    /// The sequence number to continue at.
    pub(super) cursor: u64,
    /// The sequence number of the next event of any topic.
    pub(super) published: u64,
    /// The number of subscribers of the topic.
    pub(super) subscribers: usize,
}

impl Hub {
    /// Creates a hub. The events of a shared store are numbered by the store, others by this process.
    pub(crate) fn new(history: usize, is_shared: bool) -> Arc<Self> {
        let run = if is_shared { SHARED_RUN } else { to_micros(Timestamp::now()) };
        Arc::new(Self { run, history, state: Mutex::default() })
    }

    /// Marks a delivery as in progress. Its messages must be published before the guard is dropped.
    pub(crate) fn begin_delivery(&self) -> DeliveryGuard<'_> {
        self.state.lock().deliveries_in_progress += 1;
        DeliveryGuard(self)
    }

    pub(crate) fn publish_stored(&self, summary: Summary, copies: MessageCopies) {
        self.update(|state| {
            let is_deleted = state.early_deletions.remove(&message_key(&summary));
            let mut notices = self.append(state, None, Event::Stored(summary.clone(), copies));
            if is_deleted {
                notices.extend(self.append(state, None, Event::Deleted(summary)));
            }
            notices
        });
    }

    pub(crate) fn publish_deleted(&self, summary: Summary) {
        self.update(|state| {
            if state.deliveries_in_progress > 0 {
                state.early_deletions.insert(message_key(&summary));
                if state.early_deletions.len() > MAX_EARLY_DELETIONS {
                    state.early_deletions.pop_first();
                }
            }
            self.append(state, None, Event::Deleted(summary))
        });
    }

    /// Sets the number in the feed of a shared store after which all events are published. Events before it may be
    /// incomplete.
    pub(crate) fn set_history_start(&self, number: u64) {
        self.state.lock().ring.set_dropped_up_to(self.position(number));
    }

    /// Publishes an event of a shared store, which reports each event once and in the order of these numbers.
    pub(crate) fn publish_numbered(&self, number: u64, event: Event) {
        self.update(|state| {
            state.ring.set_dropped_up_to(self.position(number.saturating_sub(1)));
            self.append(state, Some(number), event)
        });
    }

    /// Records that events of a shared store were lost. All subscribers have missed something, and it is not known
    /// which messages of the history still exist.
    pub(crate) fn events_missed(&self) {
        self.update(|State { ring, topics, history, .. }| {
            ring.clear_with_gap();
            history.clear();
            topics.values_mut().map(|topic| (topic.publish_missed(ring), true)).collect()
        });
    }

    /// Changes the state, and notifies listeners after the lock is released.
    fn update(&self, change: impl FnOnce(&mut State) -> Vec<Notice>) {
        let notices = change(&mut self.state.lock());
        for (notifiers, is_stored) in notices {
            notifiers.notify(is_stored);
        }
    }

    /// Makes a listener a subscriber. Returns where it starts: after `resume` if all events since then are still known,
    /// otherwise with the history.
    pub(super) fn start_point(&self, listener: &TopicReceiver, resume: Option<Position>) -> StartPoint {
        let State { ring, topics, history, subscriber_count, .. } = &mut *self.state.lock();
        let next = ring.next_seq();
        let resume = resume.filter(|position| self.is_valid_position(ring, *position));
        let from = resume.and_then(|position| ring.first_seq_after(position));
        if let Some(topic) = topics.get_mut(&listener.topic) {
            topic.subscribe(ring, listener.number, from.unwrap_or(next));
            *subscriber_count += 1;
        }
        if let Some(from) = from {
            return StartPoint::From(from);
        }
        let topic = listener.topic.as_ref();
        let history = history.values().filter(|published| published.event().matches_topic(topic));
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

    /// Waits until the subscribers have almost no unsent events, at most for `budget`, and not for subscribers that read
    /// nothing. Returns the rest of `budget`. Operations that publish many events call it; deliveries cannot wait.
    pub(crate) async fn wait_for_subscribers(&self, mut budget: Duration) -> Duration {
        let (mut smallest, mut stalled) = (usize::MAX, Duration::ZERO);
        while !budget.is_zero() && stalled < MAX_STALL {
            let backlog = self.backlog();
            if backlog <= MAX_BACKLOG {
                break;
            }
            if backlog < smallest {
                (smallest, stalled) = (backlog, Duration::ZERO);
            }
            let pause = BACKLOG_POLL_INTERVAL.min(budget);
            sleep(pause).await;
            budget -= pause;
            stalled += pause;
        }
        budget
    }

    /// Returns the number of events that the slowest subscriber has not read.
    fn backlog(&self) -> usize {
        let State { ring, topics, .. } = &*self.state.lock();
        topics.values().map(|topic| topic.backlog(ring)).max().unwrap_or(0)
    }

    /// Returns the position of the event before this sequence number, if it is still known.
    pub(super) fn position_before(&self, seq: u64) -> Option<Position> {
        self.state.lock().ring.position_before(seq)
    }

    /// Starts to listen to a mailbox, or to all.
    pub(crate) fn listen(self: &Arc<Self>, topic: Option<MailboxName>) -> TopicReceiver {
        let State { topics, last_listener, .. } = &mut *self.state.lock();
        *last_listener += 1;
        let found = topics.entry(topic.clone()).or_insert_with(|| Topic::new(topic.clone()));
        let (stored, changed) = found.listen();
        TopicReceiver { hub: self.clone(), topic, number: *last_listener, stored, changed }
    }

    /// Ends what [`Hub::listen`] started.
    pub(super) fn stop_listening(&self, listener: &TopicReceiver) {
        let State { topics, subscriber_count, .. } = &mut *self.state.lock();
        let Some(topic) = topics.get_mut(&listener.topic) else { return };
        *subscriber_count -= usize::from(topic.stop_listening(listener.number));
        if !topic.has_listeners() {
            topics.remove(&listener.topic);
        }
    }

    /// Reads the events of a subscriber from the sequence number `from` on. Fails if some of them were dropped.
    pub(super) fn read(&self, listener: &TopicReceiver, from: u64) -> Result<ReadBatch, Lagged> {
        let State { ring, topics, .. } = &mut *self.state.lock();
        let topic = topics.get_mut(&listener.topic).ok_or(Lagged)?;
        let events = topic.read(ring, from, READ_BATCH_SIZE)?;
        let last = events.back().filter(|_| events.len() == READ_BATCH_SIZE).and_then(Weak::upgrade);
        let cursor = last.map_or(ring.next_seq(), |last| last.seq + 1);
        topic.set_cursor(listener.number, cursor);
        Ok(ReadBatch { events, cursor, published: ring.next_seq(), subscribers: topic.subscriber_count() })
    }

    /// Appends an event. Without a number it gets its sequence number. Returns what notifies the listeners, after the lock
    /// is released.
    fn append(&self, state: &mut State, number: Option<u64>, event: Event) -> Vec<Notice> {
        let (key, is_stored) = (message_key(event.summary()), matches!(event, Event::Stored(..)));
        let position = self.position(number.unwrap_or(state.ring.next_seq()));
        let has_subscribers = state.subscriber_count > 0;
        let capacity =
            if has_subscribers { ring::CAPACITY_WITH_SUBSCRIBERS } else { ring::CAPACITY_WITHOUT_SUBSCRIBERS };
        let published = state.ring.push(position, event, capacity);
        let mut notices = Vec::new();
        if !state.topics.is_empty() {
            for topic in [None, Some(key.1.clone())] {
                if let Some(topic) = state.topics.get_mut(&topic) {
                    notices.push((topic.publish(&state.ring, &published), is_stored));
                }
            }
        }
        if is_stored {
            state.history.insert(key, published);
        } else {
            state.history.remove(&key);
        }
        if state.history.len() > self.history {
            state.history.pop_first();
        }
        notices
    }

    fn position(&self, number: u64) -> Position {
        Position { run: self.run, number }
    }
}

impl Drop for DeliveryGuard<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
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
        let hub = Hub::new(10, false);
        hub.publish_deleted(message(1));
        assert!(hub.state.lock().early_deletions.is_empty());
        let delivery = hub.begin_delivery();
        let newest = 10 * MAX_EARLY_DELETIONS as u64;
        hub.publish_deleted(message(newest));
        for id in 0..newest {
            hub.publish_deleted(message(id));
        }
        assert_eq!(hub.state.lock().early_deletions.len(), MAX_EARLY_DELETIONS);
        assert!(
            hub.state.lock().early_deletions.contains(&message_key(&message(newest))),
            "the newest message is dropped last"
        );
        drop(delivery);
        assert!(hub.state.lock().early_deletions.is_empty());
    }
}
