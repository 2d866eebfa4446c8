//! The box between deliveries, which must not wait, and the librarian: what happened, as little of it as will do. It is bounded. What
//! does not fit is forgotten, but not that something was: the librarian then asks the store.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use restante_mail::message::MessageId;
use restante_mail::naming::MailboxName;
use restante_worker::{BoundedQueue, Contents, Inbox, Stage};
use tokio::sync::{Notify, watch};

/// How much fits into the box.
const MAX_EVENTS: usize = 65_536;

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum IndexEvent {
    Stored(MailboxName, MessageId),
    SeenChanged(MessageId, bool),
    Deleted(MessageId),
    /// The index does not have it as it is.
    Recheck(MailboxName, MessageId),
}

/// What has to be asked of the store, because nobody knows it any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resync {
    /// Messages with ids above this one may have been stored.
    NewerThan(MessageId),
    /// Anything may have happened.
    Everything,
    /// The index itself is of no use.
    Rebuild,
}

/// How far the index has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    /// How many of the news are in it.
    pub(crate) processed: u64,
    /// Whether nothing was missed that is not in it yet.
    pub(crate) is_caught_up: bool,
}

/// What the librarian takes out.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) events: Vec<IndexEvent>,
    pub(crate) resync: Option<Resync>,
    /// Nothing comes any more, and this was all that is to be done.
    pub(crate) is_last: bool,
    /// Whether everything is known that happened until then.
    pub(crate) is_clean: bool,
}

/// See the file's documentation.
#[derive(Debug)]
pub(crate) struct IndexQueue {
    /// Whether somebody empties the box.
    is_open: AtomicBool,
    inbox: Inbox<State>,
    /// Rings when a higher id was heard of.
    highest_changed: Notify,
    progress: watch::Sender<Progress>,
}

#[derive(Debug)]
struct State {
    /// The size of each is one.
    events: BoundedQueue<IndexEvent>,
    resync: Option<Resync>,
    /// How much was ever put in.
    total_pushed: u64,
    /// The highest id of a stored message that was heard of.
    highest_id: MessageId,
    /// Whether somebody waits for what is in the box.
    is_urgent: bool,
}

impl Default for State {
    fn default() -> Self {
        let news = BoundedQueue::new(MAX_EVENTS);
        Self { events: news, resync: None, total_pushed: 0, highest_id: MessageId::ZERO, is_urgent: false }
    }
}

impl Default for IndexQueue {
    fn default() -> Self {
        Self {
            is_open: AtomicBool::new(false),
            inbox: Inbox::default(),
            highest_changed: Notify::new(),
            progress: watch::channel(Progress::default()).0,
        }
    }
}

impl IndexQueue {
    /// From now on somebody empties the box. What happened before was missed.
    pub(crate) fn open(&self) {
        self.is_open.store(true, Relaxed);
    }

    /// Puts news in. Until the box is open this costs next to nothing.
    pub(crate) fn push(&self, news: impl FnOnce() -> IndexEvent) {
        if !self.is_open.load(Relaxed) {
            return;
        }
        let news = news();
        let mut contents = self.inbox.lock();
        let is_closed = contents.stage != Stage::Open;
        let state = &mut contents.queue;
        if is_closed {
            // The indexer does not take it any more, but the index must not count as complete.
            state.record_lost(&news);
            return;
        }
        // What is gone was there some time.
        if let IndexEvent::Stored(_, id) | IndexEvent::Deleted(id) = news {
            state.highest_id = state.highest_id.max(id);
            self.highest_changed.notify_waiters();
        }
        if let Err(news) = state.events.push(news, 1) {
            state.record_lost(&news);
            self.progress.send_if_modified(|progress| std::mem::take(&mut progress.is_caught_up));
            return;
        }
        state.total_pushed += 1;
        if state.events.len() == 1 {
            self.inbox.notify();
        }
    }

    /// Notes that something was missed.
    pub(crate) fn request_resync(&self, missed: Resync) {
        let mut contents = self.inbox.lock();
        let state = &mut contents.queue;
        state.resync = Some(state.resync.map_or(missed, |before| before.merge(missed)));
        self.progress.send_if_modified(|progress| std::mem::take(&mut progress.is_caught_up));
        self.inbox.notify();
    }

    /// A message with this id was stored some time, or none was.
    pub(crate) fn record_id(&self, id: MessageId) {
        let mut contents = self.inbox.lock();
        contents.queue.highest_id = contents.queue.highest_id.max(id);
        self.highest_changed.notify_waiters();
    }

    /// The librarian's: waits for news, gathers for a while what follows unless somebody waits for it, and takes out so many. When
    /// there is other work to do, it does not wait.
    pub(crate) fn next_batch(&self, most: usize, gather: Duration, is_busy: bool) -> Batch {
        if !is_busy {
            let has_work = |Contents { queue, stage }: &mut Contents<State>| {
                !queue.events.is_empty() || queue.resync.is_some() || *stage != Stage::Open
            };
            drop(self.inbox.wait_until(None, has_work));
            let has_enough = |Contents { queue, stage }: &mut Contents<State>| {
                queue.is_urgent || *stage != Stage::Open || queue.events.len() >= most
            };
            drop(self.inbox.wait_until(Some(Instant::now() + gather), has_enough));
        }
        let mut contents = self.inbox.lock();
        let (stage, queue) = (contents.stage, &mut contents.queue);
        let (news, _) = queue.events.take(most, usize::MAX);
        if queue.events.is_empty() {
            queue.is_urgent = false;
        }
        // What is in the box may be what was missed, so it goes first, unless there is nothing to put it into.
        let is_next = queue.events.is_empty() || queue.resync == Some(Resync::Rebuild);
        let missed = if is_next { queue.resync.take() } else { None };
        // There is no time to ask the store for anything at the end.
        let is_over = match stage {
            Stage::Open => false,
            Stage::Closed => news.is_empty() || missed.is_some(),
            Stage::Stopped => true,
        };
        Batch { is_last: is_over, is_clean: stage != Stage::Stopped, events: news, resync: missed }
    }

    /// The librarian's: waits for so long, or for the end. Whether that has come.
    pub(crate) fn pause(&self, time: Duration) -> bool {
        self.inbox.pause(time)
    }

    /// The librarian's: so many news are in the index now, and nothing else is under way, or something is.
    pub(crate) fn mark_done(&self, count: usize, is_caught_up: bool) {
        let contents = self.inbox.lock();
        let is_caught_up = is_caught_up && contents.queue.resync.is_none();
        self.progress.send_modify(|progress| {
            progress.processed += count as u64;
            progress.is_caught_up = is_caught_up;
        });
    }

    /// Waits until this message, or a later one, was heard of. Whether it was in time.
    pub(crate) async fn wait_for_id(&self, id: MessageId, patience: Duration) -> bool {
        let heard = async {
            loop {
                let higher = self.highest_changed.notified();
                if self.highest_id() >= id {
                    return;
                }
                higher.await;
            }
        };
        tokio::time::timeout(patience, heard).await.is_ok()
    }

    /// Waits until what has happened so far is in the index. Whether it is in time.
    pub(crate) async fn wait_until_indexed(&self, patience: Duration) -> bool {
        let count = {
            let mut contents = self.inbox.lock();
            contents.queue.is_urgent = true;
            self.inbox.notify();
            contents.queue.total_pushed
        };
        let mut progress = self.progress.subscribe();
        let followed = progress.wait_for(|progress| progress.is_caught_up && progress.processed >= count);
        tokio::time::timeout(patience, followed).await.is_ok_and(|followed| followed.is_ok())
    }

    /// Takes no news any more.
    pub(crate) fn close(&self) {
        self.inbox.close();
    }

    /// Nobody waits for what is still in the box, or knows whether it is everything.
    pub(crate) fn abandon(&self) {
        self.inbox.stop();
    }

    /// The highest id of a stored message that was heard of.
    pub(crate) fn highest_id(&self) -> MessageId {
        self.inbox.lock().queue.highest_id
    }

    /// How much waits.
    pub(crate) fn pending(&self) -> usize {
        self.inbox.lock().queue.events.len()
    }
}

impl State {
    fn record_lost(&mut self, news: &IndexEvent) {
        let missed = match (news, self.resync) {
            (IndexEvent::Stored(_, id), _) => Resync::NewerThan(id.number().saturating_sub(1).into()),
            // What is still to be looked for will be found as it is then.
            (
                IndexEvent::SeenChanged(id, _) | IndexEvent::Deleted(id) | IndexEvent::Recheck(_, id),
                Some(Resync::NewerThan(above)),
            ) if *id > above => {
                return;
            }
            _ => Resync::Everything,
        };
        self.resync = Some(self.resync.map_or(missed, |before| before.merge(missed)));
    }
}

impl Resync {
    fn merge(self, other: Self) -> Self {
        match (self, other) {
            (Self::NewerThan(one), Self::NewerThan(other)) => Self::NewerThan(one.min(other)),
            (Self::Rebuild, _) | (_, Self::Rebuild) => Self::Rebuild,
            _ => Self::Everything,
        }
    }
}

#[cfg(test)]
mod tests {
    use restante_mail::naming::Naming;

    use super::*;

    fn stored(id: u64) -> IndexEvent {
        IndexEvent::Stored(Naming::Local.parse_mailbox("ann").unwrap(), id.into())
    }

    #[test]
    fn nothing_is_kept_before_somebody_empties_the_box() {
        let intake = IndexQueue::default();
        intake.push(|| unreachable!("it is not even made"));
        intake.open();
        intake.push(|| stored(1));
        assert_eq!(intake.next_batch(10, Duration::ZERO, false).events, [stored(1)]);
    }

    #[test]
    fn what_does_not_fit_is_looked_for_later() {
        let intake = IndexQueue::default();
        intake.open();
        for id in 1..=MAX_EVENTS as u64 {
            intake.push(|| stored(id));
        }
        let beyond = MAX_EVENTS as u64 + 1;
        for id in (beyond..beyond + 10).rev() {
            intake.push(|| stored(id));
            intake.push(|| IndexEvent::Deleted(id.into()));
        }
        let first = intake.next_batch(MAX_EVENTS - 1, Duration::ZERO, false);
        assert_eq!((first.events.len(), first.resync), (MAX_EVENTS - 1, None), "what is in the box goes first");
        let second = intake.next_batch(MAX_EVENTS, Duration::ZERO, false);
        assert_eq!((second.events.len(), second.resync), (1, Some(Resync::NewerThan((beyond - 1).into()))));
        assert_eq!(intake.highest_id(), (beyond + 9).into());
    }

    #[test]
    fn a_deletion_that_does_not_fit_makes_everything_doubtful() {
        let intake = IndexQueue::default();
        intake.open();
        for id in 1..=MAX_EVENTS as u64 {
            intake.push(|| stored(id));
        }
        intake.push(|| IndexEvent::Deleted(1.into()));
        intake.push(|| stored(1 << 40));
        assert_eq!(intake.next_batch(MAX_EVENTS, Duration::ZERO, false).resync, Some(Resync::Everything));
    }

    #[test]
    fn without_an_index_that_comes_before_the_rest_of_the_news() {
        let intake = IndexQueue::default();
        intake.open();
        intake.push(|| stored(1));
        intake.push(|| stored(2));
        intake.request_resync(Resync::Rebuild);
        assert_eq!(intake.next_batch(1, Duration::ZERO, false).resync, Some(Resync::Rebuild));
        assert_eq!(intake.next_batch(1, Duration::ZERO, false).events, [stored(2)]);
    }

    #[tokio::test]
    async fn who_waits_is_told_when_it_is_done() {
        let intake = IndexQueue::default();
        intake.open();
        intake.push(|| stored(1));
        assert!(!intake.wait_until_indexed(Duration::ZERO).await);
        let batch = intake.next_batch(10, Duration::from_hours(1), false);
        assert_eq!(batch.events.len(), 1, "nothing is gathered while somebody waits");
        intake.mark_done(1, false);
        assert!(!intake.wait_until_indexed(Duration::ZERO).await, "something else is under way");
        intake.mark_done(0, true);
        assert!(intake.wait_until_indexed(Duration::ZERO).await);
        intake.push(|| stored(2));
        assert!(!intake.wait_until_indexed(Duration::ZERO).await);
    }

    #[tokio::test]
    async fn who_waits_for_a_message_is_told_when_it_or_a_later_one_was_heard_of() {
        let intake = IndexQueue::default();
        intake.open();
        assert!(intake.wait_for_id(0.into(), Duration::ZERO).await);
        assert!(!intake.wait_for_id(2.into(), Duration::ZERO).await);
        let long = Duration::from_mins(1);
        let (heard, ()) = tokio::join!(intake.wait_for_id(2.into(), long), async { intake.push(|| stored(3)) });
        assert!(heard);
        let (heard, ()) =
            tokio::join!(intake.wait_for_id(4.into(), long), async { intake.push(|| IndexEvent::Deleted(4.into())) });
        assert!(heard, "what is gone was there");
        let (heard, ()) = tokio::join!(intake.wait_for_id(5.into(), long), async { intake.record_id(5.into()) });
        assert!(heard);
    }

    #[tokio::test]
    async fn what_is_missed_is_waited_for() {
        let intake = IndexQueue::default();
        intake.open();
        intake.mark_done(0, true);
        assert!(intake.wait_until_indexed(Duration::ZERO).await);
        intake.request_resync(Resync::Everything);
        assert!(!intake.wait_until_indexed(Duration::ZERO).await);
    }

    #[test]
    fn after_the_end_the_rest_is_taken() {
        let intake = IndexQueue::default();
        intake.open();
        intake.push(|| stored(1));
        intake.close();
        let first = intake.next_batch(10, Duration::from_hours(1), false);
        assert_eq!((first.events, first.is_last), (vec![stored(1)], false));
        let last = intake.next_batch(10, Duration::ZERO, false);
        assert!(last.is_last && last.resync.is_none());
        intake.push(|| stored(2));
        let last = intake.next_batch(10, Duration::ZERO, false);
        assert!(last.is_last && last.resync.is_some(), "it came too late: {last:?}");
    }
}
