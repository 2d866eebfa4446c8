//! Groups of subscribers. Subscribers to all mailboxes and subscribers to single mailboxes are separate groups, so that
//! neither delays the other. A group is divided into shards of a few dozen subscribers, which get events one after the
//! other: waking a thousand tasks at once would occupy the processors for too long.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use restante_mail::naming::MailboxName;
use tokio::sync::{Notify, broadcast};

use super::PublishedEvent;

/// The largest number of subscribers in a shard.
const MAX_SHARD_SUBSCRIBERS: usize = 64;
/// The capacity of the channel for all mailboxes. A subscriber that needs older events reads them from the ring.
const ALL_CHANNEL_CAPACITY: usize = 512;
/// The capacity of the channel for one mailbox. There may be very many of these, and the capacity is allocated at once.
const MAILBOX_CHANNEL_CAPACITY: usize = 32;
/// The number of sends to a shard in one round: the sum of the receivers of each event.
const MAX_SENDS_PER_ROUND: usize = 1 << 14;

/// The estimated cost of waking a subscriber and writing to it, measured on a common machine.
const WAKE_COST: Duration = Duration::from_micros(80);
/// The cost of rendering an event, which is done once for all subscribers.
const RENDER_COST: Duration = Duration::from_micros(3);
/// The cost of one event for one subscriber.
const SEND_COST: Duration = Duration::from_nanos(1500);
/// The cost of disconnecting a subscriber, which reconnects at once and gets the history.
const DISCONNECT_COST: Duration = Duration::from_millis(1);

pub(super) type EventReceiver = broadcast::Receiver<ChannelItem>;

/// An item of a channel.
#[derive(Clone)]
pub(super) struct ChannelItem {
    pub(super) seq: u64,
    pub(super) event: Weak<PublishedEvent>,
}

/// The subscribers to all mailboxes, or those to single mailboxes.
#[derive(Default)]
pub(super) struct SubscriberGroup {
    state: Mutex<GroupState>,
    subscriber_count: AtomicUsize,
    /// Wakes the dispatcher of this group.
    pub(super) dispatcher_wakeup: Notify,
}

#[derive(Default)]
struct GroupState {
    /// No shard in it is empty.
    shards: Vec<Arc<Shard>>,
    /// Whether a dispatcher task runs for this group.
    has_dispatcher: bool,
}

impl SubscriberGroup {
    /// Adds a subscriber. It will get all events from the sequence number `next` on.
    pub(super) fn join(&self, topic: Option<&MailboxName>, next: u64) -> (Arc<Shard>, EventReceiver) {
        let mut state = self.lock_state();
        let found = state.shards.iter().find_map(|shard| Some((shard.clone(), shard.try_join(topic)?)));
        let joined = found.unwrap_or_else(|| {
            let (shard, receiver) = Shard::with_subscriber(topic, next);
            let shard = Arc::new(shard);
            state.shards.push(shard.clone());
            (shard, receiver)
        });
        self.subscriber_count.fetch_add(1, Ordering::Relaxed);
        joined
    }

    /// Removes a subscriber. Its receiver must have been dropped before.
    pub(super) fn leave(&self, shard: &Arc<Shard>, topic: Option<&MailboxName>) {
        let mut state = self.lock_state();
        self.subscriber_count.fetch_sub(1, Ordering::Relaxed);
        if shard.leave(topic) == 0 {
            state.shards.retain(|other| !Arc::ptr_eq(other, shard));
        }
        if state.shards.is_empty() {
            self.dispatcher_wakeup.notify_one();
        }
    }

    /// Returns true if the group has no dispatcher. The caller must then start one.
    pub(super) fn claim_dispatcher(&self) -> bool {
        !std::mem::replace(&mut self.lock_state().has_dispatcher, true)
    }

    /// Returns the shards. Returns `None` if there are none: the calling dispatcher must then end.
    pub(super) fn shards(&self) -> Option<Vec<Arc<Shard>>> {
        let mut state = self.lock_state();
        state.has_dispatcher = !state.shards.is_empty();
        state.has_dispatcher.then(|| state.shards.clone())
    }

    /// Records that the dispatcher has ended.
    pub(super) fn dispatcher_stopped(&self) {
        self.lock_state().has_dispatcher = false;
    }

    /// Returns the sequence number of the first event that some shard has not received. Returns `None` if there are no
    /// subscribers.
    pub(super) fn dispatched_up_to(&self) -> Option<u64> {
        self.lock_state().shards.iter().map(|shard| shard.dispatched_up_to()).min()
    }

    /// Wakes the dispatcher if there are subscribers.
    pub(super) fn wake_dispatcher(&self) {
        if self.has_subscribers() {
            self.dispatcher_wakeup.notify_one();
        }
    }

    /// Returns whether there are subscribers.
    pub(super) fn has_subscribers(&self) -> bool {
        self.subscriber_count.load(Ordering::Relaxed) > 0
    }

    fn lock_state(&self) -> MutexGuard<'_, GroupState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Subscribers that get events at the same time.
pub(super) struct Shard(Mutex<ShardState>);

struct ShardState {
    subscriber_count: usize,
    /// The sequence number of the next event to send.
    next_seq: u64,
    topics: Topics,
}

impl Shard {
    /// Creates a shard with its first subscriber.
    fn with_subscriber(topic: Option<&MailboxName>, next: u64) -> (Self, EventReceiver) {
        let mut topics = Topics::default();
        let receiver = topics.join(topic);
        (Self(Mutex::new(ShardState { subscriber_count: 1, next_seq: next, topics })), receiver)
    }

    /// Adds a subscriber. Returns `None` if the shard is full.
    fn try_join(&self, topic: Option<&MailboxName>) -> Option<EventReceiver> {
        let mut state = self.lock_state();
        if state.subscriber_count >= MAX_SHARD_SUBSCRIBERS {
            return None;
        }
        state.subscriber_count += 1;
        Some(state.topics.join(topic))
    }

    /// Returns a new receiver for a subscriber of this shard.
    pub(super) fn rejoin(&self, topic: Option<&MailboxName>) -> EventReceiver {
        self.lock_state().topics.join(topic)
    }

    /// Removes a subscriber. Returns how many are left.
    fn leave(&self, topic: Option<&MailboxName>) -> usize {
        let mut state = self.lock_state();
        state.topics.prune(topic);
        state.subscriber_count -= 1;
        state.subscriber_count
    }

    /// Returns the sequence number of the next event to send.
    pub(super) fn dispatched_up_to(&self) -> u64 {
        self.lock_state().next_seq
    }

    /// Sends as many of these events as one round allows. They must follow the events that were sent before. Returns
    /// the estimated cost.
    pub(super) fn dispatch(&self, events: &[Arc<PublishedEvent>]) -> Duration {
        let mut state = self.lock_state();
        let mut round = DispatchRound::default();
        for event in events {
            if round.sends >= MAX_SENDS_PER_ROUND {
                break;
            }
            state.topics.send(event, &mut round);
            state.next_seq = event.seq + 1;
        }
        round.cost()
    }

    /// Closes all channels, because the events before `next` are lost. Every subscriber then knows that it may have
    /// missed something. Returns the estimated cost.
    pub(super) fn disconnect_all(&self, next: u64) -> Duration {
        let mut state = self.lock_state();
        state.next_seq = next;
        state.topics = Topics::default();
        DISCONNECT_COST * saturating_u32(state.subscriber_count)
    }

    fn lock_state(&self) -> MutexGuard<'_, ShardState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The channels of a shard: one for all mailboxes and one for each single mailbox.
#[derive(Default)]
struct Topics {
    all: Option<broadcast::Sender<ChannelItem>>,
    mailboxes: HashMap<MailboxName, broadcast::Sender<ChannelItem>>,
}

impl Topics {
    fn join(&mut self, topic: Option<&MailboxName>) -> EventReceiver {
        match topic {
            None => self.all.get_or_insert_with(|| broadcast::Sender::new(ALL_CHANNEL_CAPACITY)).subscribe(),
            Some(mailbox) => {
                let new_sender = || broadcast::Sender::new(MAILBOX_CHANNEL_CAPACITY);
                self.mailboxes.entry(mailbox.clone()).or_insert_with(new_sender).subscribe()
            }
        }
    }

    /// Removes the channel of a topic without receivers.
    fn prune(&mut self, topic: Option<&MailboxName>) {
        match topic {
            None => {
                self.all.take_if(|sender| sender.receiver_count() == 0);
            }
            Some(mailbox) => {
                if let Entry::Occupied(sender) = self.mailboxes.entry(mailbox.clone())
                    && sender.get().receiver_count() == 0
                {
                    sender.remove();
                }
            }
        }
    }

    fn send<'a>(&self, event: &'a Arc<PublishedEvent>, round: &mut DispatchRound<'a>) {
        let mailbox = &event.event().summary().mailbox;
        let mailbox_sender = self.mailboxes.get(mailbox);
        let item = || ChannelItem { seq: event.seq, event: Arc::downgrade(event) };
        // An error means that there are no receivers.
        let send = |sender: &broadcast::Sender<ChannelItem>| sender.send(item()).unwrap_or(0);
        round.add_sends(None, self.all.as_ref().map_or(0, send));
        round.add_sends(Some(mailbox), mailbox_sender.map_or(0, send));
    }
}

/// The sends of one round, for the estimate of their cost.
#[derive(Default)]
struct DispatchRound<'a> {
    topics: HashSet<Option<&'a MailboxName>>,
    woken: usize,
    events: usize,
    sends: usize,
}

impl<'a> DispatchRound<'a> {
    fn add_sends(&mut self, topic: Option<&'a MailboxName>, receivers: usize) {
        if receivers == 0 {
            return;
        }
        self.events += 1;
        self.sends += receivers;
        if self.topics.insert(topic) {
            self.woken += receivers;
        }
    }

    fn cost(&self) -> Duration {
        WAKE_COST * saturating_u32(self.woken)
            + RENDER_COST * saturating_u32(self.events)
            + SEND_COST * saturating_u32(self.sends)
    }
}

fn saturating_u32(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{message, name};
    use super::super::{Event, MessageCopies, Position};
    use super::*;

    fn events(count: u64) -> Vec<Arc<PublishedEvent>> {
        let event = |seq| {
            Arc::new(PublishedEvent::new(
                seq,
                Position { run: 7, number: seq },
                Event::Stored(message(seq), MessageCopies::default()),
            ))
        };
        (0..count).map(event).collect()
    }

    #[test]
    fn round_is_limited_by_its_sends() {
        let events = events(1000);
        // subscribers to all mailboxes, to the mailbox of the events, and to another mailbox
        let table = [(0, 0, 0, 1000), (1, 1, 1, 1000), (0, 0, 63, 1000), (63, 0, 0, 261), (32, 31, 0, 261)];
        for (all, bob, ann, expected) in table {
            let (shard, _eve) = Shard::with_subscriber(Some(&name("eve")), 0);
            let join = |topic: Option<MailboxName>, count: usize| -> Vec<EventReceiver> {
                (0..count).map(|_| shard.try_join(topic.as_ref()).expect("the shard is not full")).collect()
            };
            let _receivers = [join(None, all), join(Some(name("bob")), bob), join(Some(name("ann")), ann)];
            shard.dispatch(&events);
            assert_eq!(shard.dispatched_up_to(), expected, "{all} {bob} {ann}");
            shard.dispatch(&events[..3]);
            assert_eq!(shard.dispatched_up_to(), 3, "{all} {bob} {ann}");
        }
    }

    #[test]
    fn cost_grows_with_the_receivers() {
        let events = events(10);
        let (shard, _eve) = Shard::with_subscriber(Some(&name("eve")), 0);
        assert_eq!(shard.dispatch(&events), Duration::ZERO);
        let join = |topic: Option<MailboxName>, count: usize| -> Vec<EventReceiver> {
            (0..count).map(|_| shard.try_join(topic.as_ref()).expect("the shard is not full")).collect()
        };
        let _bob = join(Some(name("bob")), 10);
        let _ann = join(Some(name("ann")), 10);
        let ten = shard.dispatch(&events);
        assert_eq!(ten, WAKE_COST * 10 + RENDER_COST * 10 + SEND_COST * 100);
        let _all = join(None, 40);
        let fifty = shard.dispatch(&events);
        assert_eq!(fifty, WAKE_COST * 50 + RENDER_COST * 20 + SEND_COST * 500);
        assert_eq!(shard.disconnect_all(10), DISCONNECT_COST * 61);
        assert_eq!(shard.dispatch(&events), Duration::ZERO, "disconnected subscribers get nothing before they rejoin");
    }

    #[test]
    fn shards_are_created_and_removed_with_their_subscribers() {
        let group = SubscriberGroup::default();
        assert!(group.shards().is_none());
        let members: Vec<_> = (0..=MAX_SHARD_SUBSCRIBERS).map(|_| group.join(None, 7)).collect();
        let shards = group.shards().expect("there are subscribers");
        assert_eq!(shards.len(), 2);
        assert!(shards.iter().all(|shard| shard.dispatched_up_to() == 7));
        for (shard, receiver) in members {
            drop(receiver);
            group.leave(&shard, None);
        }
        assert!(group.shards().is_none());
        assert!(shards.iter().all(|shard| shard.lock_state().topics.all.is_none()));
    }
}
