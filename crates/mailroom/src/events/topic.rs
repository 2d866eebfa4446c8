//! A mailbox, or all of them, and what listens to it.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Weak};

use restante_mail::naming::MailboxName;
use tokio::sync::watch;

use super::hub::Hub;
use super::ring::Ring;
use super::{Lagged, PublishedEvent};

/// The events of one mailbox, or of all, and the subscribers and waiting requests that listen to them.
#[derive(Default)]
pub(super) struct Topic {
    /// `None` for all mailboxes.
    mailbox: Option<MailboxName>,
    notifiers: Notifiers,
    listener_count: usize,
    /// The sequence numbers up to which the subscribers have read the events, by the number of the listener.
    cursors: HashMap<u64, u64>,
    /// For a single mailbox: the sequence numbers of its events in the ring. Empty as long as there is no subscriber.
    seqs: VecDeque<u64>,
    /// The sequence number after the last event of the topic that was dropped from the ring.
    dropped_up_to: u64,
}

/// Notifies the listeners of a topic. Call it without the lock of the hub: there may be thousands of them.
#[derive(Clone, Default)]
pub(super) struct Notifiers {
    /// Notifies the waiting requests.
    stored: watch::Sender<()>,
    /// Notifies the subscribers.
    changed: watch::Sender<()>,
}

impl Notifiers {
    pub(super) fn notify(&self, is_stored: bool) {
        if is_stored {
            self.stored.send_replace(());
        }
        self.changed.send_replace(());
    }
}

impl Topic {
    /// Creates the topic of a mailbox, or of all.
    pub(super) fn new(mailbox: Option<MailboxName>) -> Self {
        Self { mailbox, ..Self::default() }
    }

    /// Adds a listener.
    pub(super) fn listen(&mut self) -> (watch::Receiver<()>, watch::Receiver<()>) {
        self.listener_count += 1;
        (self.notifiers.stored.subscribe(), self.notifiers.changed.subscribe())
    }

    /// Removes a listener. Returns whether it was a subscriber.
    pub(super) fn stop_listening(&mut self, listener: u64) -> bool {
        self.listener_count -= 1;
        let was_subscriber = self.cursors.remove(&listener).is_some();
        if self.cursors.is_empty() {
            self.seqs = VecDeque::new();
        }
        was_subscriber
    }

    pub(super) fn has_listeners(&self) -> bool {
        self.listener_count > 0
    }

    pub(super) fn subscriber_count(&self) -> usize {
        self.cursors.len()
    }

    /// Makes a listener a subscriber that has read the events up to `cursor`.
    pub(super) fn subscribe(&mut self, ring: &Ring, listener: u64, cursor: u64) {
        if self.cursors.is_empty() {
            self.dropped_up_to = ring.oldest_seq();
            if self.mailbox.is_some() {
                let topic = self.mailbox.as_ref();
                let events = ring.range(0, u64::MAX).filter(|published| published.event().matches_topic(topic));
                self.seqs = events.map(|published| published.seq).collect();
            }
        }
        self.set_cursor(listener, cursor);
    }

    /// Records up to where a subscriber has read the events.
    pub(super) fn set_cursor(&mut self, subscriber: u64, cursor: u64) {
        self.cursors.insert(subscriber, cursor);
    }

    /// Records an event that was added to the ring. Returns what notifies the listeners.
    pub(super) fn publish(&mut self, ring: &Ring, published: &PublishedEvent) -> Notifiers {
        if self.mailbox.is_some() && !self.cursors.is_empty() {
            self.seqs.push_back(published.seq);
        }
        self.forget_dropped(ring);
        self.notifiers.clone()
    }

    /// Records that events are missing from the ring, which may include stored messages. Returns what notifies the
    /// listeners.
    pub(super) fn publish_missed(&mut self, ring: &Ring) -> Notifiers {
        self.seqs.clear();
        self.dropped_up_to = ring.oldest_seq();
        self.notifiers.clone()
    }

    /// Returns the first events from the sequence number `from` on. Fails if some of them were dropped.
    pub(super) fn read(
        &mut self,
        ring: &Ring,
        from: u64,
        limit: usize,
    ) -> Result<VecDeque<Weak<PublishedEvent>>, Lagged> {
        self.forget_dropped(ring);
        if from < self.dropped_up_to {
            return Err(Lagged);
        }
        Ok(if self.mailbox.is_none() {
            ring.range(from, from + limit as u64).map(Arc::downgrade).collect()
        } else {
            let start = self.seqs.partition_point(|seq| *seq < from);
            let events = self.seqs.range(start..).take(limit).filter_map(|&seq| ring.range(seq, seq + 1).next());
            events.map(Arc::downgrade).collect()
        })
    }

    /// Returns the number of events that the slowest subscriber can still read.
    pub(super) fn backlog(&self, ring: &Ring) -> usize {
        // A subscriber that was too slow is not waited for.
        let slowest = self.cursors.values().filter(|cursor| **cursor >= self.dropped_up_to).min();
        slowest.map_or(0, |cursor| match self.mailbox {
            None => ring.range(*cursor, u64::MAX).count(),
            Some(_) => self.seqs.len() - self.seqs.partition_point(|seq| seq < cursor),
        })
    }

    fn forget_dropped(&mut self, ring: &Ring) {
        let oldest = ring.oldest_seq();
        if self.mailbox.is_none() {
            self.dropped_up_to = oldest;
        }
        while let Some(seq) = self.seqs.pop_front_if(|seq| *seq < oldest) {
            self.dropped_up_to = seq + 1;
        }
    }
}

/// Listens to a topic. Dropping it ends that.
pub(crate) struct TopicReceiver {
    pub(super) hub: Arc<Hub>,
    pub(super) topic: Option<MailboxName>,
    /// The number by which the hub knows this listener.
    pub(super) number: u64,
    pub(super) stored: watch::Receiver<()>,
    pub(super) changed: watch::Receiver<()>,
}

impl TopicReceiver {
    /// Waits until there was an event since the last call, or since the start. Cancel safe.
    pub(super) async fn changed(&mut self) {
        // The sender exists as long as this receiver.
        let _ = self.changed.changed().await;
    }

    /// Waits until a message was stored since the last call, or since the start. Cancel safe. It may be none if events
    /// were missed.
    pub(crate) async fn message_stored(&mut self) {
        let _ = self.stored.changed().await;
    }
}

impl Drop for TopicReceiver {
    fn drop(&mut self) {
        self.hub.stop_listening(self);
    }
}
