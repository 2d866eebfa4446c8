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
const AT_ONCE: usize = 256;
/// How long the others wait for their turn.
const PAUSE: Duration = Duration::from_millis(1);

/// See the file's documentation.
#[derive(Default)]
pub(crate) struct Waiters {
    /// How many wait anywhere. As long as nobody does, a look at this is all that a delivery pays.
    count: AtomicUsize,
    rooms: Mutex<Rooms>,
}

#[derive(Default)]
struct Rooms {
    /// None of them is empty.
    by_mailbox: HashMap<MailboxName, Room>,
    next_ticket: u64,
}

/// Those who wait for one mailbox, by their tickets: who came first is woken first.
#[derive(Default)]
struct Room {
    seats: BTreeMap<u64, Arc<Notify>>,
    /// Whether a task is about to wake them, and whether it has to begin again behind that.
    is_being_woken: bool,
    again: bool,
}

/// The place of one who waits. What happens in the mailbox from the moment it is taken wakes whoever has it.
pub(crate) struct Seat {
    waiters: Arc<Waiters>,
    mailbox: MailboxName,
    ticket: u64,
    news: Arc<Notify>,
}

impl Waiters {
    pub(crate) fn join(self: &Arc<Self>, mailbox: &MailboxName) -> Seat {
        let news = Arc::new(Notify::new());
        let mut rooms = self.rooms();
        let ticket = rooms.next_ticket;
        rooms.next_ticket += 1;
        rooms.by_mailbox.entry(mailbox.clone()).or_default().seats.insert(ticket, news.clone());
        drop(rooms);
        self.count.fetch_add(1, Ordering::SeqCst);
        Seat { waiters: self.clone(), mailbox: mailbox.clone(), ticket, news }
    }

    /// Something was stored in this mailbox.
    pub(crate) fn wake(self: &Arc<Self>, mailbox: &MailboxName) {
        if self.count.load(Ordering::SeqCst) == 0 {
            return;
        }
        let mut rooms = self.rooms();
        let Some(room) = rooms.by_mailbox.get_mut(mailbox) else { return };
        let runtime = Handle::try_current().ok().filter(|_| room.seats.len() > AT_ONCE);
        let Some(runtime) = runtime else {
            room.seats.values().for_each(|news| news.notify_one());
            return;
        };
        if room.is_being_woken {
            room.again = true;
            return;
        }
        room.is_being_woken = true;
        let end = rooms.next_ticket;
        drop(rooms);
        runtime.spawn(self.clone().wake_in_turn(mailbox.clone(), end));
    }

    /// Something may have been stored anywhere. Whoever comes from now on looks without being woken.
    pub(crate) async fn wake_all(self: Arc<Self>) {
        let seats: Vec<_> = self.rooms().by_mailbox.values().flat_map(|room| room.seats.values().cloned()).collect();
        for some in seats.chunks(AT_ONCE) {
            for news in some {
                news.notify_one();
            }
            sleep(PAUSE).await;
        }
    }

    async fn wake_in_turn(self: Arc<Self>, mailbox: MailboxName, mut end: u64) {
        let mut next = 0;
        while let Some(turn) = self.wake_some(&mailbox, next..end) {
            (next, end) = (turn.start, turn.end);
            sleep(PAUSE).await;
        }
    }

    /// Wakes the first of those with these tickets; who comes next, unless they were the last.
    fn wake_some(&self, mailbox: &MailboxName, tickets: Range<u64>) -> Option<Range<u64>> {
        let mut rooms = self.rooms();
        let newest = rooms.next_ticket;
        let room = rooms.by_mailbox.get_mut(mailbox)?;
        let mut last = None;
        for (ticket, news) in room.seats.range(tickets.clone()).take(AT_ONCE) {
            news.notify_one();
            last = Some(*ticket);
        }
        if let Some(last) = last {
            return Some(last + 1..tickets.end);
        }
        room.is_being_woken = std::mem::take(&mut room.again);
        room.is_being_woken.then_some(0..newest)
    }

    fn rooms(&self) -> MutexGuard<'_, Rooms> {
        self.rooms.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seat {
    /// Waits until something was stored in the mailbox since the last time, or since the seat was taken. Whoever stops
    /// waiting misses nothing. It may also turn out that there is nothing.
    pub(crate) async fn news(&self) {
        self.news.notified().await;
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.waiters.count.fetch_sub(1, Ordering::SeqCst);
        let mut rooms = self.waiters.rooms();
        let Some(room) = rooms.by_mailbox.get_mut(&self.mailbox) else { return };
        room.seats.remove(&self.ticket);
        if room.seats.is_empty() {
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

    fn has_news(seat: &Seat) -> bool {
        seat.news().now_or_never().is_some()
    }

    #[tokio::test]
    async fn news_wait_for_those_who_do_not_look_yet() {
        let waiters = Arc::new(Waiters::default());
        let (ann, bob) = (waiters.join(&mailbox("ann")), waiters.join(&mailbox("bob")));
        assert!(!has_news(&ann));
        waiters.wake(&mailbox("ann"));
        waiters.wake(&mailbox("ann"));
        assert!(has_news(&ann) && !has_news(&bob));
        assert!(!has_news(&ann), "however often there were some");
    }

    #[tokio::test]
    async fn a_room_is_given_up_with_its_last_seat() {
        let waiters = Arc::new(Waiters::default());
        let seats: Vec<_> = (0..3).map(|_| waiters.join(&mailbox("ann"))).collect();
        assert_eq!(waiters.rooms().by_mailbox.len(), 1);
        drop(seats);
        assert!(waiters.rooms().by_mailbox.is_empty());
        assert_eq!(waiters.count.load(Ordering::SeqCst), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_crowd_is_woken_in_turn() {
        let waiters = Arc::new(Waiters::default());
        let crowd: Vec<_> = (0..10 * AT_ONCE).map(|_| waiters.join(&mailbox("ann"))).collect();
        waiters.wake(&mailbox("ann"));
        assert_eq!(crowd.iter().filter(|seat| has_news(seat)).count(), 0, "not within the delivery");
        tokio::task::yield_now().await;
        assert!(crowd[..AT_ONCE].iter().all(has_news), "the first come first");
        assert_eq!(crowd.iter().filter(|seat| has_news(seat)).count(), 0);
        // The next delivery comes while the others still wait for their turn.
        waiters.wake(&mailbox("ann"));
        sleep(PAUSE * 9 + PAUSE / 2).await;
        assert!(crowd[AT_ONCE..].iter().all(has_news));
        sleep(PAUSE * 20).await;
        assert!(crowd.iter().all(has_news), "and all of them once more for the next delivery");
        sleep(PAUSE * 50).await;
        assert_eq!(crowd.iter().filter(|seat| has_news(seat)).count(), 0);
        waiters.wake(&mailbox("ann"));
        sleep(PAUSE * 20).await;
        assert!(crowd.iter().all(has_news));
    }

    #[tokio::test(start_paused = true)]
    async fn all_are_woken_in_turn_wherever_they_wait() {
        let waiters = Arc::new(Waiters::default());
        let names = (0..3 * AT_ONCE).map(|number| mailbox(&(number / 2).to_string()));
        let seats: Vec<_> = names.map(|name| waiters.join(&name)).collect();
        tokio::spawn(waiters.wake_all());
        tokio::task::yield_now().await;
        assert_eq!(seats.iter().filter(|seat| has_news(seat)).count(), AT_ONCE);
        sleep(PAUSE * 5).await;
        assert_eq!(seats.iter().filter(|seat| has_news(seat)).count(), 2 * AT_ONCE, "each once");
    }
}
