//! Those who wait for mail. A delivery wakes them directly and not through the hub, whose listeners are told at a pace:
//! a test suite waits for every millisecond here. What they were waiting for they look up themselves; see
//! [`crate::arrivals`].

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use restante_mail::naming::MailboxName;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::sleep;

/// How many are woken at once. All of them look into the store and write an answer, which keeps the processors from the
/// mail for some milliseconds.
const WAKE_BATCH_SIZE: usize = 256;
/// How long the others wait for their turn.
const WAKE_PAUSE: Duration = Duration::from_millis(1);

/// See the file's documentation.
#[derive(Default)]
pub(crate) struct WaitRegistry {
    /// How many wait anywhere. As long as nobody does, a look at this is all that a delivery pays.
    count: AtomicUsize,
    queues: Mutex<WaitQueues>,
}

#[derive(Default)]
struct WaitQueues {
    /// None of them is empty.
    by_mailbox: HashMap<MailboxName, WaitQueue>,
    next_number: u64,
}

/// Those who wait for one mailbox, by their tickets: who came first is woken first.
#[derive(Default)]
struct WaitQueue {
    tickets: BTreeMap<u64, Arc<Notify>>,
    /// Whether a task is about to wake them, and whether it has to begin again behind that.
    is_waking: bool,
    wake_again: bool,
}

/// The place of one who waits. What happens in the mailbox from the moment it is taken wakes whoever has it.
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

    /// Something was stored in this mailbox.
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

    /// Something may have been stored anywhere. Whoever comes from now on looks without being woken.
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

    /// Wakes the first of those with these tickets; who comes next, unless they were the last.
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
    /// Waits until something was stored in the mailbox since the last time, or since the seat was taken. Whoever stops
    /// waiting misses nothing. It may also turn out that there is nothing.
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
        // The next delivery comes while the others still wait for their turn.
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
