//! The box between deliveries, which must not wait, and the librarian: what happened, as little of it as will do. It is bounded. What
//! does not fit is forgotten, but not that something was: the librarian then asks the store.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use restante_mail::message::MessageId;
use restante_mail::naming::MailboxName;
use restante_worker::{BoundedQueue, Contents, Inbox, Stage};
use tokio::sync::{Notify, watch};

/// How much fits into the box.
const MAX_NEWS: usize = 65_536;

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum News {
    Stored(MailboxName, MessageId),
    Seen(MessageId, bool),
    Deleted(MessageId),
    /// The index does not have it as it is.
    Doubted(MailboxName, MessageId),
}

/// What has to be asked of the store, because nobody knows it any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Missed {
    /// Messages with ids above this one may have been stored.
    Above(MessageId),
    /// Anything may have happened.
    Anything,
    /// The index itself is of no use.
    Index,
}

/// How far the index has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    /// How many of the news are in it.
    pub(crate) done: u64,
    /// Whether nothing was missed that is not in it yet.
    pub(crate) is_caught_up: bool,
}

/// What the librarian takes out.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) news: Vec<News>,
    pub(crate) missed: Option<Missed>,
    /// Nothing comes any more, and this was all that is to be done.
    pub(crate) is_over: bool,
    /// Whether everything is known that happened until then.
    pub(crate) is_clean: bool,
}

/// See the file's documentation.
#[derive(Debug)]
pub(crate) struct Intake {
    /// Whether somebody empties the box.
    is_open: AtomicBool,
    inbox: Inbox<State>,
    /// Rings when a higher id was heard of.
    higher: Notify,
    progress: watch::Sender<Progress>,
}

#[derive(Debug)]
struct State {
    /// The size of each is one.
    news: BoundedQueue<News>,
    missed: Option<Missed>,
    /// How much was ever put in.
    count: u64,
    /// The highest id of a stored message that was heard of.
    highest: MessageId,
    /// Whether somebody waits for what is in the box.
    is_urgent: bool,
}

impl Default for State {
    fn default() -> Self {
        let news = BoundedQueue::new(MAX_NEWS);
        Self { news, missed: None, count: 0, highest: MessageId::ZERO, is_urgent: false }
    }
}

impl Default for Intake {
    fn default() -> Self {
        Self {
            is_open: AtomicBool::new(false),
            inbox: Inbox::default(),
            higher: Notify::new(),
            progress: watch::channel(Progress::default()).0,
        }
    }
}

impl Intake {
    /// From now on somebody empties the box. What happened before was missed.
    pub(crate) fn open(&self) {
        self.is_open.store(true, Relaxed);
    }

    /// Puts news in. Until the box is open this costs next to nothing.
    pub(crate) fn put(&self, news: impl FnOnce() -> News) {
        if !self.is_open.load(Relaxed) {
            return;
        }
        let news = news();
        let mut contents = self.inbox.lock();
        let is_closed = contents.stage != Stage::Open;
        let state = &mut contents.queue;
        if is_closed {
            // The indexer does not take it any more, but the index must not count as complete.
            state.miss(&news);
            return;
        }
        // What is gone was there some time.
        if let News::Stored(_, id) | News::Deleted(id) = news {
            state.highest = state.highest.max(id);
            self.higher.notify_waiters();
        }
        if let Err(news) = state.news.push(news, 1) {
            state.miss(&news);
            self.progress.send_if_modified(|progress| std::mem::take(&mut progress.is_caught_up));
            return;
        }
        state.count += 1;
        if state.news.len() == 1 {
            self.inbox.notify();
        }
    }

    /// Notes that something was missed.
    pub(crate) fn miss(&self, missed: Missed) {
        let mut contents = self.inbox.lock();
        let state = &mut contents.queue;
        state.missed = Some(state.missed.map_or(missed, |before| before.and(missed)));
        self.progress.send_if_modified(|progress| std::mem::take(&mut progress.is_caught_up));
        self.inbox.notify();
    }

    /// A message with this id was stored some time, or none was.
    pub(crate) fn hear_of(&self, id: MessageId) {
        let mut contents = self.inbox.lock();
        contents.queue.highest = contents.queue.highest.max(id);
        self.higher.notify_waiters();
    }

    /// The librarian's: waits for news, gathers for a while what follows unless somebody waits for it, and takes out so many. When
    /// there is other work to do, it does not wait.
    pub(crate) fn next(&self, most: usize, gather: Duration, is_busy: bool) -> Batch {
        if !is_busy {
            let has_work = |Contents { queue, stage }: &mut Contents<State>| {
                !queue.news.is_empty() || queue.missed.is_some() || *stage != Stage::Open
            };
            drop(self.inbox.wait_until(None, has_work));
            let has_enough = |Contents { queue, stage }: &mut Contents<State>| {
                queue.is_urgent || *stage != Stage::Open || queue.news.len() >= most
            };
            drop(self.inbox.wait_until(Some(Instant::now() + gather), has_enough));
        }
        let mut contents = self.inbox.lock();
        let (stage, queue) = (contents.stage, &mut contents.queue);
        let (news, _) = queue.news.take(most, usize::MAX);
        if queue.news.is_empty() {
            queue.is_urgent = false;
        }
        // What is in the box may be what was missed, so it goes first, unless there is nothing to put it into.
        let is_next = queue.news.is_empty() || queue.missed == Some(Missed::Index);
        let missed = if is_next { queue.missed.take() } else { None };
        // There is no time to ask the store for anything at the end.
        let is_over = match stage {
            Stage::Open => false,
            Stage::Closed => news.is_empty() || missed.is_some(),
            Stage::Stopped => true,
        };
        Batch { is_over, is_clean: stage != Stage::Stopped, news, missed }
    }

    /// The librarian's: waits for so long, or for the end. Whether that has come.
    pub(crate) fn pause(&self, time: Duration) -> bool {
        self.inbox.pause(time)
    }

    /// The librarian's: so many news are in the index now, and nothing else is under way, or something is.
    pub(crate) fn done(&self, count: usize, is_caught_up: bool) {
        let contents = self.inbox.lock();
        let is_caught_up = is_caught_up && contents.queue.missed.is_none();
        self.progress.send_modify(|progress| {
            progress.done += count as u64;
            progress.is_caught_up = is_caught_up;
        });
    }

    /// Waits until this message, or a later one, was heard of. Whether it was in time.
    pub(crate) async fn heard(&self, id: MessageId, patience: Duration) -> bool {
        let heard = async {
            loop {
                let higher = self.higher.notified();
                if self.highest() >= id {
                    return;
                }
                higher.await;
            }
        };
        tokio::time::timeout(patience, heard).await.is_ok()
    }

    /// Waits until what has happened so far is in the index. Whether it is in time.
    pub(crate) async fn follow(&self, patience: Duration) -> bool {
        let count = {
            let mut contents = self.inbox.lock();
            contents.queue.is_urgent = true;
            self.inbox.notify();
            contents.queue.count
        };
        let mut progress = self.progress.subscribe();
        let followed = progress.wait_for(|progress| progress.is_caught_up && progress.done >= count);
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
    pub(crate) fn highest(&self) -> MessageId {
        self.inbox.lock().queue.highest
    }

    /// How much waits.
    pub(crate) fn waiting(&self) -> usize {
        self.inbox.lock().queue.news.len()
    }
}

impl State {
    fn miss(&mut self, news: &News) {
        let missed = match (news, self.missed) {
            (News::Stored(_, id), _) => Missed::Above(id.number().saturating_sub(1).into()),
            // What is still to be looked for will be found as it is then.
            (News::Seen(id, _) | News::Deleted(id) | News::Doubted(_, id), Some(Missed::Above(above)))
                if *id > above =>
            {
                return;
            }
            _ => Missed::Anything,
        };
        self.missed = Some(self.missed.map_or(missed, |before| before.and(missed)));
    }
}

impl Missed {
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Above(one), Self::Above(other)) => Self::Above(one.min(other)),
            (Self::Index, _) | (_, Self::Index) => Self::Index,
            _ => Self::Anything,
        }
    }
}

#[cfg(test)]
mod tests {
    use restante_mail::naming::Naming;

    use super::*;

    fn stored(id: u64) -> News {
        News::Stored(Naming::Local.parse_mailbox("ann").unwrap(), id.into())
    }

    #[test]
    fn nothing_is_kept_before_somebody_empties_the_box() {
        let intake = Intake::default();
        intake.put(|| unreachable!("it is not even made"));
        intake.open();
        intake.put(|| stored(1));
        assert_eq!(intake.next(10, Duration::ZERO, false).news, [stored(1)]);
    }

    #[test]
    fn what_does_not_fit_is_looked_for_later() {
        let intake = Intake::default();
        intake.open();
        for id in 1..=MAX_NEWS as u64 {
            intake.put(|| stored(id));
        }
        let beyond = MAX_NEWS as u64 + 1;
        for id in (beyond..beyond + 10).rev() {
            intake.put(|| stored(id));
            intake.put(|| News::Deleted(id.into()));
        }
        let first = intake.next(MAX_NEWS - 1, Duration::ZERO, false);
        assert_eq!((first.news.len(), first.missed), (MAX_NEWS - 1, None), "what is in the box goes first");
        let second = intake.next(MAX_NEWS, Duration::ZERO, false);
        assert_eq!((second.news.len(), second.missed), (1, Some(Missed::Above((beyond - 1).into()))));
        assert_eq!(intake.highest(), (beyond + 9).into());
    }

    #[test]
    fn a_deletion_that_does_not_fit_makes_everything_doubtful() {
        let intake = Intake::default();
        intake.open();
        for id in 1..=MAX_NEWS as u64 {
            intake.put(|| stored(id));
        }
        intake.put(|| News::Deleted(1.into()));
        intake.put(|| stored(1 << 40));
        assert_eq!(intake.next(MAX_NEWS, Duration::ZERO, false).missed, Some(Missed::Anything));
    }

    #[test]
    fn without_an_index_that_comes_before_the_rest_of_the_news() {
        let intake = Intake::default();
        intake.open();
        intake.put(|| stored(1));
        intake.put(|| stored(2));
        intake.miss(Missed::Index);
        assert_eq!(intake.next(1, Duration::ZERO, false).missed, Some(Missed::Index));
        assert_eq!(intake.next(1, Duration::ZERO, false).news, [stored(2)]);
    }

    #[tokio::test]
    async fn who_waits_is_told_when_it_is_done() {
        let intake = Intake::default();
        intake.open();
        intake.put(|| stored(1));
        assert!(!intake.follow(Duration::ZERO).await);
        let batch = intake.next(10, Duration::from_hours(1), false);
        assert_eq!(batch.news.len(), 1, "nothing is gathered while somebody waits");
        intake.done(1, false);
        assert!(!intake.follow(Duration::ZERO).await, "something else is under way");
        intake.done(0, true);
        assert!(intake.follow(Duration::ZERO).await);
        intake.put(|| stored(2));
        assert!(!intake.follow(Duration::ZERO).await);
    }

    #[tokio::test]
    async fn who_waits_for_a_message_is_told_when_it_or_a_later_one_was_heard_of() {
        let intake = Intake::default();
        intake.open();
        assert!(intake.heard(0.into(), Duration::ZERO).await);
        assert!(!intake.heard(2.into(), Duration::ZERO).await);
        let long = Duration::from_mins(1);
        let (heard, ()) = tokio::join!(intake.heard(2.into(), long), async { intake.put(|| stored(3)) });
        assert!(heard);
        let (heard, ()) = tokio::join!(intake.heard(4.into(), long), async { intake.put(|| News::Deleted(4.into())) });
        assert!(heard, "what is gone was there");
        let (heard, ()) = tokio::join!(intake.heard(5.into(), long), async { intake.hear_of(5.into()) });
        assert!(heard);
    }

    #[tokio::test]
    async fn what_is_missed_is_waited_for() {
        let intake = Intake::default();
        intake.open();
        intake.done(0, true);
        assert!(intake.follow(Duration::ZERO).await);
        intake.miss(Missed::Anything);
        assert!(!intake.follow(Duration::ZERO).await);
    }

    #[test]
    fn after_the_end_the_rest_is_taken() {
        let intake = Intake::default();
        intake.open();
        intake.put(|| stored(1));
        intake.close();
        let first = intake.next(10, Duration::from_hours(1), false);
        assert_eq!((first.news, first.is_over), (vec![stored(1)], false));
        let last = intake.next(10, Duration::ZERO, false);
        assert!(last.is_over && last.missed.is_none());
        intake.put(|| stored(2));
        let last = intake.next(10, Duration::ZERO, false);
        assert!(last.is_over && last.missed.is_some(), "it came too late: {last:?}");
    }
}
