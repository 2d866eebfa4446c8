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

/// All waiting requests, by mailbox.
#[derive(Default)]
pub(crate) struct WaitRegistry {
    /// The number of tickets. While it is zero, a delivery only reads this counter.
    count: AtomicUsize,
    queues: Mutex<WaitQueues>,
}

#[derive(Default)]
struct WaitQueues {
    /// No queue in it is empty.
    by_mailbox: HashMap<MailboxName, WaitQueue>,
    next_number: u64,
}

/// The tickets of one mailbox by number, so that the first to wait is woken first.
#[derive(Default)]
struct WaitQueue {
    tickets: BTreeMap<u64, Arc<Notify>>,
    /// Whether a task is waking the tickets, and whether it has to start again after that.
    is_waking: bool,
    wake_again: bool,
}

/// The registration of one waiting request. It is notified of every delivery to the mailbox after its registration.
pub(crate) struct Ticket {
    registry: Arc<WaitRegistry>,
    mailbox: MailboxName,
    number: u64,
    notify: Arc<Notify>,
}

impl WaitRegistry {
    pub(crate) fn register(self: &Arc<Self>, mailbox: &MailboxName) -> Ticket {
        let news = Arc::new(Notify::new());
        let mut rooms = self.lock_queues();
        let ticket = rooms.next_number;
        rooms.next_number += 1;
        rooms.by_mailbox.entry(mailbox.clone()).or_default().tickets.insert(ticket, news.clone());
        drop(rooms);
        self.count.fetch_add(1, Ordering::SeqCst);
        Ticket { registry: self.clone(), mailbox: mailbox.clone(), number: ticket, notify: news }
    }

    /// Wakes the requests that wait for this mailbox, because a message was stored in it.
    pub(crate) fn wake_mailbox(self: &Arc<Self>, mailbox: &MailboxName) {
        if self.count.load(Ordering::SeqCst) == 0 {
            return;
        }
        let mut rooms = self.lock_queues();
        let Some(room) = rooms.by_mailbox.get_mut(mailbox) else { return };
        let runtime = Handle::try_current().ok().filter(|_| room.tickets.len() > WAKE_BATCH_SIZE);
        let Some(runtime) = runtime else {
            room.tickets.values().for_each(|news| news.notify_one());
            return;
        };
        if room.is_waking {
            room.wake_again = true;
            return;
        }
        room.is_waking = true;
        let end = rooms.next_number;
        drop(rooms);
        runtime.spawn(self.clone().wake_in_batches(mailbox.clone(), end));
    }

    /// Wakes all requests, because a message may have been stored in any mailbox. A request that registers later
    /// queries the store anyway.
    pub(crate) async fn wake_all(self: Arc<Self>) {
        let seats: Vec<_> =
            self.lock_queues().by_mailbox.values().flat_map(|room| room.tickets.values().cloned()).collect();
        for some in seats.chunks(WAKE_BATCH_SIZE) {
            for news in some {
                news.notify_one();
            }
            sleep(WAKE_PAUSE).await;
        }
    }

    async fn wake_in_batches(self: Arc<Self>, mailbox: MailboxName, mut end: u64) {
        let mut next = 0;
        while let Some(turn) = self.wake_batch(&mailbox, next..end) {
            (next, end) = (turn.start, turn.end);
            sleep(WAKE_PAUSE).await;
        }
    }

    /// Wakes the first batch of the tickets in this range. Returns the range that remains, or `None` if all were woken.
    fn wake_batch(&self, mailbox: &MailboxName, tickets: Range<u64>) -> Option<Range<u64>> {
        let mut rooms = self.lock_queues();
        let newest = rooms.next_number;
        let room = rooms.by_mailbox.get_mut(mailbox)?;
        let mut last = None;
        for (ticket, news) in room.tickets.range(tickets.clone()).take(WAKE_BATCH_SIZE) {
            news.notify_one();
            last = Some(*ticket);
        }
        if let Some(last) = last {
            return Some(last + 1..tickets.end);
        }
        room.is_waking = std::mem::take(&mut room.wake_again);
        room.is_waking.then_some(0..newest)
    }

    fn lock_queues(&self) -> MutexGuard<'_, WaitQueues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ticket {
    /// Waits until a message was stored in the mailbox since the last call, or since the registration. Cancel safe. A
    /// wake-up may be spurious.
    pub(crate) async fn notified(&self) {
        self.notify.notified().await;
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.registry.count.fetch_sub(1, Ordering::SeqCst);
        let mut rooms = self.registry.lock_queues();
        let Some(room) = rooms.by_mailbox.get_mut(&self.mailbox) else { return };
        room.tickets.remove(&self.number);
        if room.tickets.is_empty() {
            rooms.by_mailbox.remove(&self.mailbox);
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

    fn has_news(seat: &Ticket) -> bool {
        seat.notified().now_or_never().is_some()
    }

    #[tokio::test]
    async fn news_wait_for_those_who_do_not_look_yet() {
        let waiters = Arc::new(WaitRegistry::default());
        let (ann, bob) = (waiters.register(&mailbox("ann")), waiters.register(&mailbox("bob")));
        assert!(!has_news(&ann));
        waiters.wake_mailbox(&mailbox("ann"));
        waiters.wake_mailbox(&mailbox("ann"));
        assert!(has_news(&ann) && !has_news(&bob));
        assert!(!has_news(&ann), "however often there were some");
    }

    #[tokio::test]
    async fn a_room_is_given_up_with_its_last_seat() {
        let waiters = Arc::new(WaitRegistry::default());
        let seats: Vec<_> = (0..3).map(|_| waiters.register(&mailbox("ann"))).collect();
        assert_eq!(waiters.lock_queues().by_mailbox.len(), 1);
        drop(seats);
        assert!(waiters.lock_queues().by_mailbox.is_empty());
        assert_eq!(waiters.count.load(Ordering::SeqCst), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_crowd_is_woken_in_turn() {
        let waiters = Arc::new(WaitRegistry::default());
        let crowd: Vec<_> = (0..10 * WAKE_BATCH_SIZE).map(|_| waiters.register(&mailbox("ann"))).collect();
        waiters.wake_mailbox(&mailbox("ann"));
        assert_eq!(crowd.iter().filter(|seat| has_news(seat)).count(), 0, "not within the delivery");
        tokio::task::yield_now().await;
        assert!(crowd[..WAKE_BATCH_SIZE].iter().all(has_news), "the first come first");
        assert_eq!(crowd.iter().filter(|seat| has_news(seat)).count(), 0);
        // The next delivery comes while others still wait to be woken.
        waiters.wake_mailbox(&mailbox("ann"));
        sleep(WAKE_PAUSE * 9 + WAKE_PAUSE / 2).await;
        assert!(crowd[WAKE_BATCH_SIZE..].iter().all(has_news));
        sleep(WAKE_PAUSE * 20).await;
        assert!(crowd.iter().all(has_news), "and all of them once more for the next delivery");
        sleep(WAKE_PAUSE * 50).await;
        assert_eq!(crowd.iter().filter(|seat| has_news(seat)).count(), 0);
        waiters.wake_mailbox(&mailbox("ann"));
        sleep(WAKE_PAUSE * 20).await;
        assert!(crowd.iter().all(has_news));
    }

    #[tokio::test(start_paused = true)]
    async fn all_are_woken_in_turn_wherever_they_wait() {
        let waiters = Arc::new(WaitRegistry::default());
        let names = (0..3 * WAKE_BATCH_SIZE).map(|number| mailbox(&(number / 2).to_string()));
        let seats: Vec<_> = names.map(|name| waiters.register(&name)).collect();
        tokio::spawn(waiters.wake_all());
        tokio::task::yield_now().await;
        assert_eq!(seats.iter().filter(|seat| has_news(seat)).count(), WAKE_BATCH_SIZE);
        sleep(WAKE_PAUSE * 5).await;
        assert_eq!(seats.iter().filter(|seat| has_news(seat)).count(), 2 * WAKE_BATCH_SIZE, "each once");
    }
}
