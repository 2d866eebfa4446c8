//! Where listeners sit. Those who listen to everything and those who listen to single mailboxes have a hall each, so that
//! the ones cannot be late because of the others. A hall has wings of a few dozen listeners, which are told one after the
//! other: to wake a thousand at once would keep the processors from the mail for too long.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use restante_mail::naming::MailboxName;
use tokio::sync::{Notify, broadcast};

use super::PublishedEvent;

/// How many listeners a wing has at most.
const MAX_SHARD_SUBSCRIBERS: usize = 64;
/// How many events the channel of everything holds; a listener who needs older ones looks for them in the ring.
const ALL_CHANNEL_CAPACITY: usize = 512;
/// How many the channel of a mailbox holds. There may be very many of these, and all of it is allocated at once.
const MAILBOX_CHANNEL_CAPACITY: usize = 32;
/// How often something is told to a wing in one round: the listeners of each event, added up.
const MAX_SENDS_PER_ROUND: usize = 1 << 14;

/// What it takes to wake a listener and to write to it, measured on a common machine.
const WAKE_COST: Duration = Duration::from_micros(80);
/// What it takes to render an event, which is done once for all who hear it.
const RENDER_COST: Duration = Duration::from_micros(3);
/// What an event takes on its way through one listener.
const SEND_COST: Duration = Duration::from_nanos(1500);
/// What it takes to cut a listener off, which connects again at once and hears the history.
const DISCONNECT_COST: Duration = Duration::from_millis(1);

pub(super) type EventReceiver = broadcast::Receiver<ChannelItem>;

/// What goes through a channel.
#[derive(Clone)]
pub(super) struct ChannelItem {
    pub(super) seq: u64,
    pub(super) event: Weak<PublishedEvent>,
}

/// See the file's documentation.
#[derive(Default)]
pub(super) struct SubscriberGroup {
    state: Mutex<GroupState>,
    subscriber_count: AtomicUsize,
    /// Wakes the task that tells this hall.
    pub(super) dispatcher_wakeup: Notify,
}

#[derive(Default)]
struct GroupState {
    /// None of them is empty.
    shards: Vec<Arc<Shard>>,
    /// Whether there is a task that tells them.
    has_dispatcher: bool,
}

impl SubscriberGroup {
    /// A seat for one more listener. It will be told everything from the event of the place `next` on.
    pub(super) fn join(&self, topic: Option<&MailboxName>, next: u64) -> (Arc<Shard>, EventReceiver) {
        let mut seats = self.lock_state();
        let found = seats.shards.iter().find_map(|wing| Some((wing.clone(), wing.try_join(topic)?)));
        let seat = found.unwrap_or_else(|| {
            let (wing, channel) = Shard::with_subscriber(topic, next);
            let wing = Arc::new(wing);
            seats.shards.push(wing.clone());
            (wing, channel)
        });
        self.subscriber_count.fetch_add(1, Ordering::Relaxed);
        seat
    }

    /// Gives a seat back, behind the last use of its channel.
    pub(super) fn leave(&self, wing: &Arc<Shard>, topic: Option<&MailboxName>) {
        let mut seats = self.lock_state();
        self.subscriber_count.fetch_sub(1, Ordering::Relaxed);
        if wing.leave(topic) == 0 {
            seats.shards.retain(|other| !Arc::ptr_eq(other, wing));
        }
        if seats.shards.is_empty() {
            self.dispatcher_wakeup.notify_one();
        }
    }

    /// Whether the task that tells this hall is still to be started, which is then up to the caller.
    pub(super) fn claim_dispatcher(&self) -> bool {
        !std::mem::replace(&mut self.lock_state().has_dispatcher, true)
    }

    /// The wings; when there are none, the task that asks is no longer wanted.
    pub(super) fn shards(&self) -> Option<Vec<Arc<Shard>>> {
        let mut seats = self.lock_state();
        seats.has_dispatcher = !seats.shards.is_empty();
        seats.has_dispatcher.then(|| seats.shards.clone())
    }

    /// Notes that the task has ended, in whatever way.
    pub(super) fn dispatcher_stopped(&self) {
        self.lock_state().has_dispatcher = false;
    }

    /// The place of the first event that some wing was not told; none when nobody listens.
    pub(super) fn dispatched_up_to(&self) -> Option<u64> {
        self.lock_state().shards.iter().map(|wing| wing.dispatched_up_to()).min()
    }

    /// Tells the task that there is something to tell, if anybody listens.
    pub(super) fn wake_dispatcher(&self) {
        if self.has_subscribers() {
            self.dispatcher_wakeup.notify_one();
        }
    }

    /// Whether anybody sits here.
    pub(super) fn has_subscribers(&self) -> bool {
        self.subscriber_count.load(Ordering::Relaxed) > 0
    }

    fn lock_state(&self) -> MutexGuard<'_, GroupState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Listeners who are told at the same time.
pub(super) struct Shard(Mutex<ShardState>);

struct ShardState {
    subscriber_count: usize,
    /// Up to where they were told.
    next_seq: u64,
    topics: Topics,
}

impl Shard {
    /// A wing, and the seat of its first listener.
    fn with_subscriber(topic: Option<&MailboxName>, next: u64) -> (Self, EventReceiver) {
        let mut topics = Topics::default();
        let channel = topics.join(topic);
        (Self(Mutex::new(ShardState { subscriber_count: 1, next_seq: next, topics })), channel)
    }

    /// A seat, if there is one.
    fn try_join(&self, topic: Option<&MailboxName>) -> Option<EventReceiver> {
        let mut state = self.lock_state();
        if state.subscriber_count >= MAX_SHARD_SUBSCRIBERS {
            return None;
        }
        state.subscriber_count += 1;
        Some(state.topics.join(topic))
    }

    /// A new channel for one who has a seat.
    pub(super) fn rejoin(&self, topic: Option<&MailboxName>) -> EventReceiver {
        self.lock_state().topics.join(topic)
    }

    /// Returns how many are left.
    fn leave(&self, topic: Option<&MailboxName>) -> usize {
        let mut state = self.lock_state();
        state.topics.prune(topic);
        state.subscriber_count -= 1;
        state.subscriber_count
    }

    /// The place of the first event that these listeners were not told.
    pub(super) fn dispatched_up_to(&self) -> u64 {
        self.lock_state().next_seq
    }

    /// Tells the first of these events, which follow those that were told before, and as many as are enough for one round.
    /// Returns the work that this makes.
    pub(super) fn dispatch(&self, events: &[Arc<PublishedEvent>]) -> Duration {
        let mut state = self.lock_state();
        let mut round = DispatchRound::default();
        for told in events {
            if round.sends >= MAX_SENDS_PER_ROUND {
                break;
            }
            state.topics.send(told, &mut round);
            state.next_seq = told.seq + 1;
        }
        round.cost()
    }

    /// Ends all channels, because the events before `next` cannot be told any more: everybody then knows that something
    /// may have been missed. Returns the work that this makes.
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

/// The channels of a wing, one for everything and one for each mailbox.
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
                let channel = || broadcast::Sender::new(MAILBOX_CHANNEL_CAPACITY);
                self.mailboxes.entry(mailbox.clone()).or_insert_with(channel).subscribe()
            }
        }
    }

    /// Forgets a topic that nobody listens to any more.
    fn prune(&mut self, topic: Option<&MailboxName>) {
        match topic {
            None => {
                self.all.take_if(|channel| channel.receiver_count() == 0);
            }
            Some(mailbox) => {
                if let Entry::Occupied(channel) = self.mailboxes.entry(mailbox.clone())
                    && channel.get().receiver_count() == 0
                {
                    channel.remove();
                }
            }
        }
    }

    fn send<'a>(&self, told: &'a Arc<PublishedEvent>, round: &mut DispatchRound<'a>) {
        let mailbox = &told.event().summary().mailbox;
        let here = self.mailboxes.get(mailbox);
        let note = || ChannelItem { seq: told.seq, event: Arc::downgrade(told) };
        // An error says that nobody listens any more.
        let tell = |channel: &broadcast::Sender<ChannelItem>| channel.send(note()).unwrap_or(0);
        round.add_sends(None, self.all.as_ref().map_or(0, tell));
        round.add_sends(Some(mailbox), here.map_or(0, tell));
    }
}

/// What was told at once.
#[derive(Default)]
struct DispatchRound<'a> {
    topics: HashSet<Option<&'a MailboxName>>,
    woken: usize,
    events: usize,
    sends: usize,
}

impl<'a> DispatchRound<'a> {
    fn add_sends(&mut self, topic: Option<&'a MailboxName>, listeners: usize) {
        if listeners == 0 {
            return;
        }
        self.events += 1;
        self.sends += listeners;
        if self.topics.insert(topic) {
            self.woken += listeners;
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
    use super::super::{Event, Position};
    use super::*;

    fn events(count: u64) -> Vec<Arc<PublishedEvent>> {
        let told =
            |seq| Arc::new(PublishedEvent::new(seq, Position { run: 7, number: seq }, Event::Stored(message(seq))));
        (0..count).map(told).collect()
    }

    #[test]
    fn rounds_shrink_as_listeners_come() {
        let events = events(1000);
        // listeners to everything, to the mailbox of the events, and to another one
        let table = [(0, 0, 0, 1000), (1, 1, 1, 1000), (0, 0, 63, 1000), (63, 0, 0, 261), (32, 31, 0, 261)];
        for (all, bob, ann, expected) in table {
            let (wing, _eve) = Shard::with_subscriber(Some(&name("eve")), 0);
            let join = |topic: Option<MailboxName>, count: usize| -> Vec<EventReceiver> {
                (0..count).map(|_| wing.try_join(topic.as_ref()).expect("a seat")).collect()
            };
            let _listeners = [join(None, all), join(Some(name("bob")), bob), join(Some(name("ann")), ann)];
            wing.dispatch(&events);
            assert_eq!(wing.dispatched_up_to(), expected, "{all} {bob} {ann}");
            wing.dispatch(&events[..3]);
            assert_eq!(wing.dispatched_up_to(), 3, "{all} {bob} {ann}");
        }
    }

    #[test]
    fn work_grows_with_those_who_hear_it() {
        let events = events(10);
        let (wing, _eve) = Shard::with_subscriber(Some(&name("eve")), 0);
        assert_eq!(wing.dispatch(&events), Duration::ZERO);
        let join = |topic: Option<MailboxName>, count: usize| -> Vec<EventReceiver> {
            (0..count).map(|_| wing.try_join(topic.as_ref()).expect("a seat")).collect()
        };
        let _bob = join(Some(name("bob")), 10);
        let _ann = join(Some(name("ann")), 10);
        let ten = wing.dispatch(&events);
        assert_eq!(ten, WAKE_COST * 10 + RENDER_COST * 10 + SEND_COST * 100);
        let _all = join(None, 40);
        let fifty = wing.dispatch(&events);
        assert_eq!(fifty, WAKE_COST * 50 + RENDER_COST * 20 + SEND_COST * 500);
        assert_eq!(wing.disconnect_all(10), DISCONNECT_COST * 61);
        assert_eq!(wing.dispatch(&events), Duration::ZERO, "nobody is reached before having joined again");
    }

    #[test]
    fn wings_come_and_go_with_their_listeners() {
        let hall = SubscriberGroup::default();
        assert!(hall.shards().is_none());
        let seats: Vec<_> = (0..=MAX_SHARD_SUBSCRIBERS).map(|_| hall.join(None, 7)).collect();
        let wings = hall.shards().expect("somebody listens");
        assert_eq!(wings.len(), 2);
        assert!(wings.iter().all(|wing| wing.dispatched_up_to() == 7));
        for (wing, channel) in seats {
            drop(channel);
            hall.leave(&wing, None);
        }
        assert!(hall.shards().is_none());
        assert!(wings.iter().all(|wing| wing.lock_state().topics.all.is_none()));
    }
}
