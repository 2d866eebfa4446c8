//! The requests that wait for mail. A delivery wakes them directly and not through the event hub, which sends events at
//! a limited rate: clients of these requests are tests that measure milliseconds. After a wake-up the request queries
//! the store itself, see [`crate::arrivals`].

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use restante_mail::naming::MailboxName;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::sleep;

/// The number of requests that are woken at once. Each of them queries the store and writes a response, which occupies
/// the processors for some milliseconds.
const WAKE_BATCH_SIZE: usize = 256;
/// The pause between two batches.
const WAKE_PAUSE: Duration = Duration::from_millis(1);

/// What a request waits for: a message in this mailbox, or in any mailbox if it is `None`.
pub(crate) type WaitTopic = Option<MailboxName>;

/// All waiting requests, by topic.
#[derive(Default)]
pub(crate) struct WaitRegistry {
    /// The number of tickets. While it is zero, a delivery only reads this counter.
    count: AtomicUsize,
    queues: Mutex<WaitQueues>,
}

#[derive(Default)]
struct WaitQueues {
    /// No queue in it is empty.
    by_topic: HashMap<WaitTopic, WaitQueue>,
    next_number: u64,
}

/// The tickets of one topic by number, so that the first to wait is woken first.
#[derive(Default)]
struct WaitQueue {
    tickets: BTreeMap<u64, Arc<Notify>>,
    /// Whether a task is waking the tickets.
    is_waking: bool,
    /// Whether that task must start again after the last ticket, because another message was stored.
    wake_again: bool,
}

/// The registration of one waiting request. It is notified of every delivery that it waits for after its registration.
pub(crate) struct Ticket {
    registry: Arc<WaitRegistry>,
    topic: WaitTopic,
    number: u64,
    notify: Arc<Notify>,
}

impl WaitRegistry {
    pub(crate) fn register(self: &Arc<Self>, topic: WaitTopic) -> Ticket {
        let notify = Arc::new(Notify::new());
        let mut queues = self.lock_queues();
        let number = queues.next_number;
        queues.next_number += 1;
        queues.by_topic.entry(topic.clone()).or_default().tickets.insert(number, notify.clone());
        drop(queues);
        self.count.fetch_add(1, Ordering::SeqCst);
        Ticket { registry: self.clone(), topic, number, notify }
    }

    /// Wakes the requests that wait for this mailbox or for any mailbox, because a message was stored in it.
    pub(crate) fn wake_mailbox(self: &Arc<Self>, mailbox: &MailboxName) {
        if self.count.load(Ordering::SeqCst) > 0 {
            self.wake_topic(Some(mailbox.clone()));
            self.wake_topic(None);
        }
    }

    fn wake_topic(self: &Arc<Self>, topic: WaitTopic) {
        let mut queues = self.lock_queues();
        let Some(queue) = queues.by_topic.get_mut(&topic) else { return };
        let runtime = Handle::try_current().ok().filter(|_| queue.tickets.len() > WAKE_BATCH_SIZE);
        let Some(runtime) = runtime else {
            queue.tickets.values().for_each(|notify| notify.notify_one());
            return;
        };
        if queue.is_waking {
            queue.wake_again = true;
            return;
        }
        queue.is_waking = true;
        let end = queues.next_number;
        drop(queues);
        runtime.spawn(self.clone().wake_in_batches(topic, end));
    }

    /// Wakes all requests, because a message may have been stored in any mailbox. A request that registers later
    /// queries the store anyway.
    pub(crate) async fn wake_all(self: Arc<Self>) {
        let tickets: Vec<_> =
            self.lock_queues().by_topic.values().flat_map(|queue| queue.tickets.values().cloned()).collect();
        for batch in tickets.chunks(WAKE_BATCH_SIZE) {
            for notify in batch {
                notify.notify_one();
            }
            sleep(WAKE_PAUSE).await;
        }
    }

    async fn wake_in_batches(self: Arc<Self>, topic: WaitTopic, mut end: u64) {
        let mut next = 0;
        while let Some(rest) = self.wake_batch(&topic, next..end) {
            (next, end) = (rest.start, rest.end);
            sleep(WAKE_PAUSE).await;
        }
    }

    /// Wakes the first batch of the tickets in this range. Returns the range that remains, or `None` if all were woken.
    fn wake_batch(&self, topic: &WaitTopic, numbers: Range<u64>) -> Option<Range<u64>> {
        let mut queues = self.lock_queues();
        let next_number = queues.next_number;
        let queue = queues.by_topic.get_mut(topic)?;
        let mut last = None;
        for (number, notify) in queue.tickets.range(numbers.clone()).take(WAKE_BATCH_SIZE) {
            notify.notify_one();
            last = Some(*number);
        }
        if let Some(last) = last {
            return Some(last + 1..numbers.end);
        }
        queue.is_waking = std::mem::take(&mut queue.wake_again);
        queue.is_waking.then_some(0..next_number)
    }

    fn lock_queues(&self) -> MutexGuard<'_, WaitQueues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ticket {
    /// Waits until a message of the topic was stored since the last call, or since the registration. Cancel safe. A
    /// wake-up may be spurious.
    pub(crate) async fn notified(&self) {
        self.notify.notified().await;
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.registry.count.fetch_sub(1, Ordering::SeqCst);
        let mut queues = self.registry.lock_queues();
        let Some(queue) = queues.by_topic.get_mut(&self.topic) else { return };
        queue.tickets.remove(&self.number);
        if queue.tickets.is_empty() {
            queues.by_topic.remove(&self.topic);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    fn mailbox(name: &str) -> MailboxName {
        name.to_owned().into()
    }

    fn is_notified(ticket: &Ticket) -> bool {
        ticket.notified().now_or_never().is_some()
    }

    #[tokio::test]
    async fn notification_is_kept_until_it_is_awaited() {
        let registry = Arc::new(WaitRegistry::default());
        let (ann, bob) = (registry.register(Some(mailbox("ann"))), registry.register(Some(mailbox("bob"))));
        assert!(!is_notified(&ann));
        registry.wake_mailbox(&mailbox("ann"));
        registry.wake_mailbox(&mailbox("ann"));
        assert!(is_notified(&ann) && !is_notified(&bob));
        assert!(!is_notified(&ann), "several deliveries are one notification");
    }

    #[tokio::test]
    async fn queue_is_removed_with_its_last_ticket() {
        let registry = Arc::new(WaitRegistry::default());
        let tickets: Vec<_> = (0..3).map(|_| registry.register(Some(mailbox("ann")))).collect();
        assert_eq!(registry.lock_queues().by_topic.len(), 1);
        drop(tickets);
        assert!(registry.lock_queues().by_topic.is_empty());
        assert_eq!(registry.count.load(Ordering::SeqCst), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn many_tickets_are_woken_in_batches() {
        let registry = Arc::new(WaitRegistry::default());
        let tickets: Vec<_> = (0..10 * WAKE_BATCH_SIZE).map(|_| registry.register(Some(mailbox("ann")))).collect();
        registry.wake_mailbox(&mailbox("ann"));
        assert_eq!(tickets.iter().filter(|ticket| is_notified(ticket)).count(), 0, "not within the delivery");
        tokio::task::yield_now().await;
        assert!(tickets[..WAKE_BATCH_SIZE].iter().all(is_notified), "in the order of registration");
        assert_eq!(tickets.iter().filter(|ticket| is_notified(ticket)).count(), 0);
        // The next delivery comes while others still wait to be woken.
        registry.wake_mailbox(&mailbox("ann"));
        sleep(WAKE_PAUSE * 9 + WAKE_PAUSE / 2).await;
        assert!(tickets[WAKE_BATCH_SIZE..].iter().all(is_notified));
        sleep(WAKE_PAUSE * 20).await;
        assert!(tickets.iter().all(is_notified), "all of them are woken again for the next delivery");
        sleep(WAKE_PAUSE * 50).await;
        assert_eq!(tickets.iter().filter(|ticket| is_notified(ticket)).count(), 0);
        registry.wake_mailbox(&mailbox("ann"));
        sleep(WAKE_PAUSE * 20).await;
        assert!(tickets.iter().all(is_notified));
    }

    #[tokio::test(start_paused = true)]
    async fn wake_all_wakes_every_mailbox_in_batches() {
        let registry = Arc::new(WaitRegistry::default());
        let names = (0..3 * WAKE_BATCH_SIZE).map(|number| mailbox(&(number / 2).to_string()));
        let tickets: Vec<_> = names.map(|name| registry.register(Some(name))).collect();
        tokio::spawn(registry.wake_all());
        tokio::task::yield_now().await;
        assert_eq!(tickets.iter().filter(|ticket| is_notified(ticket)).count(), WAKE_BATCH_SIZE);
        sleep(WAKE_PAUSE * 5).await;
        assert_eq!(tickets.iter().filter(|ticket| is_notified(ticket)).count(), 2 * WAKE_BATCH_SIZE, "each once");
    }
}
