//! A mailbox, or all of them, and what listens to it.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Weak};

use restante_mail::naming::MailboxName;
use tokio::sync::watch;

use super::hub::Hub;
use super::ring::Ring;
use super::{Event, Lagged, PublishedEvent};

/// The events of one mailbox, or of all, and the subscribers and waiting requests that listen to them.
pub(super) struct Topic {
    /// The number of stored messages. Every event notifies the receivers.
    stored: watch::Sender<u64>,
    /// The listeners by number. For a subscriber: the sequence number up to which it has read the events.
    listeners: HashMap<u64, Option<u64>>,
    /// For a single mailbox: the sequence numbers of its events in the ring.
    seqs: Option<VecDeque<u64>>,
    /// For a single mailbox: the sequence number after its last event that was dropped from the ring.
    dropped_up_to: u64,
}

impl Topic {
    /// Creates the topic of a mailbox, or of all.
    pub(super) fn new(mailbox: Option<&MailboxName>, ring: &Ring) -> Self {
        let seqs = |mailbox: &MailboxName| {
            let events = ring.range(0, u64::MAX).filter(|published| published.event().summary().mailbox == *mailbox);
            events.map(|published| published.seq).collect()
        };
        Self {
            stored: watch::Sender::default(),
            listeners: HashMap::new(),
            seqs: mailbox.map(seqs),
            dropped_up_to: ring.oldest_seq(),
        }
    }

    /// Adds a listener.
    pub(super) fn listen(&mut self, listener: u64) -> watch::Receiver<u64> {
        self.listeners.insert(listener, None);
        self.stored.subscribe()
    }

    /// Removes a listener. Returns true if that was the last one.
    pub(super) fn stop_listening(&mut self, listener: u64) -> bool {
        self.listeners.remove(&listener);
        self.listeners.is_empty()
    }

    /// Records up to where a subscriber has read the events.
    pub(super) fn set_cursor(&mut self, subscriber: u64, cursor: u64) {
        self.listeners.insert(subscriber, Some(cursor));
    }

    /// Notifies the listeners of an event that was added to the ring.
    pub(super) fn publish(&mut self, ring: &Ring, published: &PublishedEvent) {
        if let Some(seqs) = &mut self.seqs {
            seqs.push_back(published.seq);
        }
        self.forget_dropped(ring);
        let is_stored = matches!(published.event(), Event::Stored(..));
        self.stored.send_modify(|stored| *stored += u64::from(is_stored));
    }

    /// Notifies the listeners that events are missing from the ring, which may include stored messages.
    pub(super) fn publish_missed(&mut self, ring: &Ring) {
        if let Some(seqs) = &mut self.seqs {
            seqs.clear();
        }
        self.dropped_up_to = ring.oldest_seq();
        self.stored.send_modify(|stored| *stored += 1);
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
        Ok(match &self.seqs {
            None => ring.range(from, from + limit as u64).map(Arc::downgrade).collect(),
            Some(seqs) => {
                let start = seqs.partition_point(|seq| *seq < from);
                let events = seqs.range(start..).take(limit).filter_map(|&seq| ring.range(seq, seq + 1).next());
                events.map(Arc::downgrade).collect()
            }
        })
    }

    /// Returns the number of events that the slowest subscriber can still read.
    pub(super) fn backlog(&self, ring: &Ring) -> usize {
        // A subscriber that was too slow is not waited for.
        let slowest = self.listeners.values().flatten().filter(|cursor| **cursor >= self.dropped_up_to).min();
        slowest.map_or(0, |cursor| match &self.seqs {
            None => ring.range(*cursor, u64::MAX).count(),
            Some(seqs) => seqs.len() - seqs.partition_point(|seq| seq < cursor),
        })
    }

    fn forget_dropped(&mut self, ring: &Ring) {
        let oldest = ring.oldest_seq();
        match &mut self.seqs {
            None => self.dropped_up_to = oldest,
            Some(seqs) => {
                while let Some(seq) = seqs.pop_front_if(|seq| *seq < oldest) {
                    self.dropped_up_to = seq + 1;
                }
            }
        }
    }
}

/// Listens to a topic. Dropping it ends that.
pub(crate) struct TopicReceiver {
    pub(super) hub: Arc<Hub>,
    pub(super) topic: Option<MailboxName>,
    /// The number by which the hub knows this listener.
    pub(super) number: u64,
    stored: watch::Receiver<u64>,
    /// The number of stored messages up to the last call of [`TopicReceiver::message_stored`].
    known_stored: u64,
}

impl TopicReceiver {
    pub(super) fn new(hub: Arc<Hub>, topic: Option<MailboxName>, number: u64, stored: watch::Receiver<u64>) -> Self {
        let known_stored = *stored.borrow();
        Self { hub, topic, number, stored, known_stored }
    }

    /// Waits until there was an event since the last call, or since the start. Cancel safe.
    pub(super) async fn changed(&mut self) {
        // The sender exists as long as this receiver.
        let _ = self.stored.changed().await;
    }

    /// Waits until a message was stored since the last call, or since the start. Cancel safe. It may be none if events
    /// were missed.
    pub(crate) async fn message_stored(&mut self) {
        if let Ok(stored) = self.stored.wait_for(|stored| *stored > self.known_stored).await {
            self.known_stored = *stored;
        }
    }
}

impl Drop for TopicReceiver {
    fn drop(&mut self) {
        self.hub.stop_listening(self);
    }
}
