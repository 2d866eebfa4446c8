//! The task that tells the listeners. It is there while somebody listens, and it rests after every round for a multiple
//! of the work that the round made, so that all listeners together take about a tenth of one processor, however many
//! there are and however fast mail comes. After a quiet time it tells at once.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Weak};
use std::time::Duration;

use restante_mail::naming::MailboxName;
use tokio::sync::broadcast;
use tokio::time::sleep;

use super::Told;
use super::hub::Hub;

/// How many events a channel holds; a listener who needs older ones looks for them in the ring.
const CHANNEL: usize = 512;
/// How many events are told in a round at most. Most of the work is to wake a listener, which is done once in a round, so
/// large rounds let listeners of many mailboxes keep up.
pub(super) const MAX_BATCH: u64 = 8192;
/// How many are told in any case.
const MIN_BATCH: usize = 16;
/// How often something is told in a round: the listeners of each event, added up.
const TELLINGS: usize = 1 << 16;

/// What it takes to wake a listener and to send it something, measured on a common machine.
const WAKING: Duration = Duration::from_micros(10);
/// What a byte takes on its way through a listener.
const BYTE: Duration = Duration::from_nanos(1);
/// What an event has beside its texts when it is sent.
const RECORD: usize = 200;
/// What it takes to cut a listener off, which connects again at once and hears the history.
const CUTTING_OFF: Duration = Duration::from_micros(200);
/// How much longer than its work a round's rest is.
const REST: u32 = 9;
/// The shortest rest, so that events that come one by one are told together.
const MIN_REST: Duration = Duration::from_millis(1);

pub(super) type Channel = broadcast::Receiver<Note>;

/// What goes through a channel.
#[derive(Clone)]
pub(super) struct Note {
    pub(super) seq: u64,
    pub(super) told: Weak<Told>,
}

/// What there is to do.
pub(super) enum Round {
    /// The first of these events are to be told, if there are any.
    Tell(Vec<Arc<Told>>),
    /// Events were lost before they could be told.
    Overtaken,
    /// Nobody listens any more.
    Over,
}

/// The channels of those who listen, one for everything and one for each mailbox.
#[derive(Default)]
pub(super) struct Topics {
    all: Option<broadcast::Sender<Note>>,
    mailboxes: HashMap<MailboxName, broadcast::Sender<Note>>,
}

/// Tells the listeners until there are none.
pub(super) async fn run(hub: Arc<Hub>) {
    loop {
        match hub.round() {
            Round::Tell(events) if events.is_empty() => hub.news.notified().await,
            Round::Tell(events) => {
                let batch = &events[..hub.topics().batch(&events)];
                // Who comes from now on looks for these in the ring, and who has come hears them here.
                hub.advance_behind(batch);
                let work = hub.topics().tell(batch);
                // While it rests, it must not be the one who keeps them.
                drop(events);
                sleep((work * REST).max(MIN_REST)).await;
            }
            // Who comes again at once hears nothing new meanwhile. Without this rest, mail that comes too fast for a
            // thousand listeners would have them all come and go a thousand times a second.
            Round::Overtaken => {
                let work = hub.topics().cut_off();
                sleep((work * REST).max(MIN_REST)).await;
            }
            Round::Over => return,
        }
    }
}

impl Topics {
    pub(super) fn join(&mut self, topic: Option<&MailboxName>) -> Channel {
        let channel = || broadcast::Sender::new(CHANNEL);
        match topic {
            None => self.all.get_or_insert_with(channel).subscribe(),
            Some(mailbox) => self.mailboxes.entry(mailbox.clone()).or_insert_with(channel).subscribe(),
        }
    }

    /// Forgets a topic that nobody listens to any more.
    pub(super) fn prune(&mut self, topic: Option<&MailboxName>) {
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

    /// Ends all channels, so that everybody knows that something may have been missed; returns the work that this makes.
    fn cut_off(&mut self) -> Duration {
        let Self { all, mailboxes } = std::mem::take(self);
        let listeners: usize = all.iter().chain(mailboxes.values()).map(broadcast::Sender::receiver_count).sum();
        CUTTING_OFF * count(listeners)
    }

    /// How many of these events are told in one round.
    fn batch(&self, events: &[Arc<Told>]) -> usize {
        let everywhere = self.all.as_ref().map_or(0, broadcast::Sender::receiver_count);
        let mut tellings = 0;
        let is_too_much = |told: &Arc<Told>| {
            let here = self.mailboxes.get(&told.event().summary().mailbox);
            tellings += everywhere + here.map_or(0, broadcast::Sender::receiver_count);
            tellings > TELLINGS
        };
        let batch = events.iter().position(is_too_much).unwrap_or(events.len());
        batch.max(MIN_BATCH.min(events.len()))
    }

    /// Tells everybody; returns the work that this makes.
    fn tell(&self, events: &[Arc<Told>]) -> Duration {
        let mut bytes = 0;
        let mut woken = self.all.as_ref().map_or(0, broadcast::Sender::receiver_count);
        let mut topics = HashSet::new();
        for told in events {
            let summary = told.event().summary();
            let mailbox = self.mailboxes.get(&summary.mailbox);
            for channel in self.all.iter().chain(mailbox) {
                // An error says that nobody listens any more.
                let listeners =
                    channel.send(Note { seq: told.position().seq, told: Arc::downgrade(told) }).unwrap_or(0);
                bytes += listeners * (RECORD + summary.headline.text_len());
            }
            if let Some(channel) = mailbox
                && topics.insert(&summary.mailbox)
            {
                woken += channel.receiver_count();
            }
        }
        WAKING * count(woken) + BYTE * count(bytes)
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_none() && self.mailboxes.is_empty()
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
        let told = |seq| Arc::new(Told::new(Position { run: 0, seq }, Event::Stored(message(seq))));
        (0..count).map(told).collect()
    }

    #[test]
    fn rounds_shrink_as_listeners_come() {
        let events = events(1000);
        // listeners to everything, to the mailbox of the events, and to another one
        let table = [
            (0, 0, 0, 1000),
            (1, 1, 1, 1000),
            (0, 0, 5000, 1000),
            (100, 0, 0, 655),
            (50, 50, 50, 655),
            (0, 5000, 0, 16),
        ];
        for (all, bob, ann, expected) in table {
            let mut topics = Topics::default();
            let mut join = |topic: Option<&MailboxName>, count: usize| -> Vec<Channel> {
                (0..count).map(|_| topics.join(topic)).collect()
            };
            let _listeners = [join(None, all), join(Some(&name("bob")), bob), join(Some(&name("ann")), ann)];
            assert_eq!(topics.batch(&events), expected, "{all} {bob} {ann}");
            assert_eq!(topics.batch(&events[..3]), 3, "{all} {bob} {ann}");
        }
    }

    /// A thousand listeners are not woken more often than a tenth of a processor allows.
    #[test]
    fn work_grows_with_those_who_hear_it() {
        let events = events(10);
        let mut topics = Topics::default();
        assert_eq!(topics.tell(&events), Duration::ZERO);
        let _bob: Vec<_> = (0..10).map(|_| topics.join(Some(&name("bob")))).collect();
        let _ann: Vec<_> = (0..10).map(|_| topics.join(Some(&name("ann")))).collect();
        let ten = topics.tell(&events);
        assert!(ten >= WAKING * 10 && ten < WAKING * 20, "{ten:?}");
        let _all: Vec<_> = (0..1000).map(|_| topics.join(None)).collect();
        let thousand = topics.tell(&events);
        assert!(thousand >= WAKING * 1010 && thousand < WAKING * 2000, "{thousand:?}");
        assert_eq!(topics.cut_off(), CUTTING_OFF * 1020);
        assert!(topics.is_empty());
    }
}
