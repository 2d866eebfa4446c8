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

use super::Told;

/// How many listeners a wing has at most.
const WING: usize = 64;
/// How many events the channel of everything holds; a listener who needs older ones looks for them in the ring.
const CHANNEL: usize = 512;
/// How many the channel of a mailbox holds. There may be very many of these, and all of it is allocated at once.
const MAILBOX_CHANNEL: usize = 32;
/// How often something is told to a wing in one round: the listeners of each event, added up.
const TELLINGS: usize = 1 << 14;

/// What it takes to wake a listener and to write to it, measured on a common machine.
const WAKING: Duration = Duration::from_micros(80);
/// What it takes to render an event, which is done once for all who hear it.
const RENDERING: Duration = Duration::from_micros(3);
/// What an event takes on its way through one listener.
const TELLING: Duration = Duration::from_nanos(1500);
/// What it takes to cut a listener off, which connects again at once and hears the history.
const CUTTING_OFF: Duration = Duration::from_millis(1);

pub(super) type Channel = broadcast::Receiver<Note>;

/// What goes through a channel.
#[derive(Clone)]
pub(super) struct Note {
    pub(super) seq: u64,
    pub(super) told: Weak<Told>,
}

/// See the file's documentation.
#[derive(Default)]
pub(super) struct Hall {
    seats: Mutex<Seats>,
    listeners: AtomicUsize,
    /// Wakes the task that tells this hall.
    pub(super) news: Notify,
}

#[derive(Default)]
struct Seats {
    /// None of them is empty.
    wings: Vec<Arc<Wing>>,
    /// Whether there is a task that tells them.
    is_served: bool,
}

impl Hall {
    /// A seat for one more listener. It will be told everything from the event of the place `next` on.
    pub(super) fn join(&self, topic: Option<&MailboxName>, next: u64) -> (Arc<Wing>, Channel) {
        let mut seats = self.seats();
        let found = seats.wings.iter().find_map(|wing| Some((wing.clone(), wing.seat(topic)?)));
        let seat = found.unwrap_or_else(|| {
            let (wing, channel) = Wing::opened_for(topic, next);
            let wing = Arc::new(wing);
            seats.wings.push(wing.clone());
            (wing, channel)
        });
        self.listeners.fetch_add(1, Ordering::Relaxed);
        seat
    }

    /// Gives a seat back, behind the last use of its channel.
    pub(super) fn leave(&self, wing: &Arc<Wing>, topic: Option<&MailboxName>) {
        let mut seats = self.seats();
        self.listeners.fetch_sub(1, Ordering::Relaxed);
        if wing.leave(topic) == 0 {
            seats.wings.retain(|other| !Arc::ptr_eq(other, wing));
        }
        if seats.wings.is_empty() {
            self.news.notify_one();
        }
    }

    /// Whether the task that tells this hall is still to be started, which is then up to the caller.
    pub(super) fn wants_service(&self) -> bool {
        !std::mem::replace(&mut self.seats().is_served, true)
    }

    /// The wings; when there are none, the task that asks is no longer wanted.
    pub(super) fn wings(&self) -> Option<Vec<Arc<Wing>>> {
        let mut seats = self.seats();
        seats.is_served = !seats.wings.is_empty();
        seats.is_served.then(|| seats.wings.clone())
    }

    /// Notes that the task has ended, in whatever way.
    pub(super) fn is_left_alone(&self) {
        self.seats().is_served = false;
    }

    /// The place of the first event that some wing was not told; none when nobody listens.
    pub(super) fn told(&self) -> Option<u64> {
        self.seats().wings.iter().map(|wing| wing.told()).min()
    }

    /// Tells the task that there is something to tell, if anybody listens.
    pub(super) fn ring_the_bell(&self) {
        if self.is_heard() {
            self.news.notify_one();
        }
    }

    /// Whether anybody sits here.
    pub(super) fn is_heard(&self) -> bool {
        self.listeners.load(Ordering::Relaxed) > 0
    }

    fn seats(&self) -> MutexGuard<'_, Seats> {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Listeners who are told at the same time.
pub(super) struct Wing(Mutex<State>);

struct State {
    listeners: usize,
    /// Up to where they were told.
    told: u64,
    topics: Topics,
}

impl Wing {
    /// A wing, and the seat of its first listener.
    fn opened_for(topic: Option<&MailboxName>, next: u64) -> (Self, Channel) {
        let mut topics = Topics::default();
        let channel = topics.join(topic);
        (Self(Mutex::new(State { listeners: 1, told: next, topics })), channel)
    }

    /// A seat, if there is one.
    fn seat(&self, topic: Option<&MailboxName>) -> Option<Channel> {
        let mut state = self.state();
        if state.listeners >= WING {
            return None;
        }
        state.listeners += 1;
        Some(state.topics.join(topic))
    }

    /// A new channel for one who has a seat.
    pub(super) fn join(&self, topic: Option<&MailboxName>) -> Channel {
        self.state().topics.join(topic)
    }

    /// Returns how many are left.
    fn leave(&self, topic: Option<&MailboxName>) -> usize {
        let mut state = self.state();
        state.topics.prune(topic);
        state.listeners -= 1;
        state.listeners
    }

    /// The place of the first event that these listeners were not told.
    pub(super) fn told(&self) -> u64 {
        self.state().told
    }

    /// Tells the first of these events, which follow those that were told before, and as many as are enough for one round.
    /// Returns the work that this makes.
    pub(super) fn tell(&self, events: &[Arc<Told>]) -> Duration {
        let mut state = self.state();
        let mut round = Round::default();
        for told in events {
            if round.tellings >= TELLINGS {
                break;
            }
            state.topics.tell(told, &mut round);
            state.told = told.seq + 1;
        }
        round.work()
    }

    /// Ends all channels, because the events before `next` cannot be told any more: everybody then knows that something
    /// may have been missed. Returns the work that this makes.
    pub(super) fn cut_off(&self, next: u64) -> Duration {
        let mut state = self.state();
        state.told = next;
        state.topics = Topics::default();
        CUTTING_OFF * count(state.listeners)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The channels of a wing, one for everything and one for each mailbox.
#[derive(Default)]
struct Topics {
    all: Option<broadcast::Sender<Note>>,
    mailboxes: HashMap<MailboxName, broadcast::Sender<Note>>,
}

impl Topics {
    fn join(&mut self, topic: Option<&MailboxName>) -> Channel {
        match topic {
            None => self.all.get_or_insert_with(|| broadcast::Sender::new(CHANNEL)).subscribe(),
            Some(mailbox) => {
                let channel = || broadcast::Sender::new(MAILBOX_CHANNEL);
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

    fn tell<'a>(&self, told: &'a Arc<Told>, round: &mut Round<'a>) {
        let mailbox = &told.event().summary().mailbox;
        let here = self.mailboxes.get(mailbox);
        let note = || Note { seq: told.seq, told: Arc::downgrade(told) };
        // An error says that nobody listens any more.
        let tell = |channel: &broadcast::Sender<Note>| channel.send(note()).unwrap_or(0);
        round.add(None, self.all.as_ref().map_or(0, tell));
        round.add(Some(mailbox), here.map_or(0, tell));
    }
}

/// What was told at once.
#[derive(Default)]
struct Round<'a> {
    topics: HashSet<Option<&'a MailboxName>>,
    woken: usize,
    events: usize,
    tellings: usize,
}

impl<'a> Round<'a> {
    fn add(&mut self, topic: Option<&'a MailboxName>, listeners: usize) {
        if listeners == 0 {
            return;
        }
        self.events += 1;
        self.tellings += listeners;
        if self.topics.insert(topic) {
            self.woken += listeners;
        }
    }

    fn work(&self) -> Duration {
        WAKING * count(self.woken) + RENDERING * count(self.events) + TELLING * count(self.tellings)
    }
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{message, name};
    use super::super::{Event, Position};
    use super::*;

    fn events(count: u64) -> Vec<Arc<Told>> {
        let told = |seq| Arc::new(Told::new(seq, Position { run: 7, number: seq }, Event::Stored(message(seq))));
        (0..count).map(told).collect()
    }

    #[test]
    fn rounds_shrink_as_listeners_come() {
        let events = events(1000);
        // listeners to everything, to the mailbox of the events, and to another one
        let table = [(0, 0, 0, 1000), (1, 1, 1, 1000), (0, 0, 63, 1000), (63, 0, 0, 261), (32, 31, 0, 261)];
        for (all, bob, ann, expected) in table {
            let (wing, _eve) = Wing::opened_for(Some(&name("eve")), 0);
            let join = |topic: Option<MailboxName>, count: usize| -> Vec<Channel> {
                (0..count).map(|_| wing.seat(topic.as_ref()).expect("a seat")).collect()
            };
            let _listeners = [join(None, all), join(Some(name("bob")), bob), join(Some(name("ann")), ann)];
            wing.tell(&events);
            assert_eq!(wing.told(), expected, "{all} {bob} {ann}");
            wing.tell(&events[..3]);
            assert_eq!(wing.told(), 3, "{all} {bob} {ann}");
        }
    }

    #[test]
    fn work_grows_with_those_who_hear_it() {
        let events = events(10);
        let (wing, _eve) = Wing::opened_for(Some(&name("eve")), 0);
        assert_eq!(wing.tell(&events), Duration::ZERO);
        let join = |topic: Option<MailboxName>, count: usize| -> Vec<Channel> {
            (0..count).map(|_| wing.seat(topic.as_ref()).expect("a seat")).collect()
        };
        let _bob = join(Some(name("bob")), 10);
        let _ann = join(Some(name("ann")), 10);
        let ten = wing.tell(&events);
        assert_eq!(ten, WAKING * 10 + RENDERING * 10 + TELLING * 100);
        let _all = join(None, 40);
        let fifty = wing.tell(&events);
        assert_eq!(fifty, WAKING * 50 + RENDERING * 20 + TELLING * 500);
        assert_eq!(wing.cut_off(10), CUTTING_OFF * 61);
        assert_eq!(wing.tell(&events), Duration::ZERO, "nobody is reached before having joined again");
    }

    #[test]
    fn wings_come_and_go_with_their_listeners() {
        let hall = Hall::default();
        assert!(hall.wings().is_none());
        let seats: Vec<_> = (0..=WING).map(|_| hall.join(None, 7)).collect();
        let wings = hall.wings().expect("somebody listens");
        assert_eq!(wings.len(), 2);
        assert!(wings.iter().all(|wing| wing.told() == 7));
        for (wing, channel) in seats {
            drop(channel);
            hall.leave(&wing, None);
        }
        assert!(hall.wings().is_none());
        assert!(wings.iter().all(|wing| wing.state().topics.all.is_none()));
    }
}
