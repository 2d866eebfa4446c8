//! The box between those who must not wait and the clerk: what the mailroom tells, and what the lanes are done with. There is a
//! place in a lane for everything in it, so it holds as many events as all lanes do, within a bound on bytes.

use std::mem::size_of;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use restante_mail::message::{MessageId, Summary};
use restante_worker::{BoundedQueue, Contents, Inbox, Stage};

use crate::Event;

/// How much may lie in the box. The clerk empties it at once; it fills only when the disk stalls, or when a large mailbox is
/// deleted.
pub(crate) const MAX_BYTES: usize = 64 << 20;

/// Something that happened.
#[derive(Clone, Debug)]
pub(crate) struct News {
    pub(crate) event: Event,
    pub(crate) summary: Summary,
    /// Who is told of it. A place is taken in each of these lanes.
    pub(crate) lanes: Vec<usize>,
}

impl News {
    /// How much memory it takes, about.
    fn bytes(&self) -> usize {
        size_of::<Self>() + self.summary.headline.text_len()
    }
}

/// Why news was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// There is no room.
    Full,
    /// The end has begun.
    Closed,
}

/// See the file's documentation.
#[derive(Debug, Default)]
pub(crate) struct Intake {
    inbox: Inbox<State>,
    /// The highest id of a stored message that was ever heard of, whether somebody wants to be told or not.
    highest: AtomicU64,
    /// Whether what waits is written down.
    is_kept: AtomicBool,
}

/// What the clerk takes out at once.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// Where the server begins: the last id that was given before. It is there once.
    pub(crate) beginning: Option<u64>,
    pub(crate) news: Vec<News>,
    /// Whether everything that was missed is among the news, now or before.
    pub(crate) is_caught_up: bool,
    /// Rows of the outbox that are done with.
    pub(crate) settled: Vec<i64>,
    /// Whether the clerk is to leave.
    pub(crate) is_over: bool,
    /// Whether this is an end in good order.
    pub(crate) is_clean: bool,
}

#[derive(Debug)]
struct State {
    start: Start,
    /// Sizes are bytes.
    news: BoundedQueue<News>,
    is_caught_up: bool,
    settled: Vec<i64>,
    /// Whether news came after the box was closed.
    was_late: bool,
    /// Whether the end was requested in good order.
    is_clean: bool,
    clerk: Progress,
}

/// The start of the server. Until it serves, the clerk leaves everything as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    Pending,
    /// The server serves. This is the last id that was given before.
    After(u64),
    /// The clerk knows that id.
    Reported,
}

/// How far the clerk has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Progress {
    #[default]
    Working,
    /// After the box was closed it has worked off all news.
    Flushed,
    /// It takes nothing out any more.
    Left,
}

impl Start {
    /// Returns the last id before the start, once.
    fn take(&mut self) -> Option<u64> {
        let Self::After(last) = *self else { return None };
        *self = Self::Reported;
        Some(last)
    }
}

impl Default for State {
    fn default() -> Self {
        Self {
            start: Start::Pending,
            news: BoundedQueue::new(MAX_BYTES),
            is_caught_up: false,
            settled: Vec::new(),
            was_late: false,
            is_clean: false,
            clerk: Progress::Working,
        }
    }
}

impl Intake {
    /// The server serves from now on; this is the last id that was given before.
    pub(crate) fn begin(&self, last: MessageId) {
        self.heard_of(last);
        let mut contents = self.inbox.lock();
        if contents.stage == Stage::Open && contents.queue.start == Start::Pending {
            contents.queue.start = Start::After(last.number());
        }
        self.inbox.notify();
    }

    /// Puts news in, if there is room.
    pub(crate) fn put(&self, news: News) -> Result<(), Refused> {
        let mut contents = self.inbox.lock();
        if contents.stage != Stage::Open {
            contents.queue.was_late = true;
            return Err(Refused::Closed);
        }
        let bytes = news.bytes();
        contents.queue.news.push(news, bytes).map_err(|_| Refused::Full)?;
        self.inbox.notify();
        Ok(())
    }

    /// Puts in all that was missed before this start, whose size is bounded elsewhere; all of it or, when it is too late,
    /// nothing.
    pub(crate) fn put_missed(&self, news: Vec<News>) -> Result<(), Vec<News>> {
        let mut contents = self.inbox.lock();
        if contents.stage != Stage::Open {
            return Err(news);
        }
        for news in news {
            // An item of size zero always fits.
            let _ = contents.queue.news.push(news, 0);
        }
        contents.queue.is_caught_up = true;
        self.inbox.notify();
        Ok(())
    }

    /// A stored message was heard of.
    pub(crate) fn heard_of(&self, id: MessageId) {
        self.highest.fetch_max(id.number(), Relaxed);
    }

    /// The highest id of those that were heard of.
    pub(crate) fn highest(&self) -> u64 {
        self.highest.load(Relaxed)
    }

    /// The clerk's: whether what waits is written down now.
    pub(crate) fn set_kept(&self, is_kept: bool) {
        self.is_kept.store(is_kept, Relaxed);
    }

    /// Whether what waits is found again at the next start.
    pub(crate) fn is_kept(&self) -> bool {
        self.is_kept.load(Relaxed)
    }

    /// A row of the outbox is done with. There are never more of them than events that wait.
    pub(crate) fn settle(&self, row: i64) {
        let mut contents = self.inbox.lock();
        if contents.queue.clerk < Progress::Left {
            contents.queue.settled.push(row);
            self.inbox.notify();
        }
    }

    /// The clerk's: waits until there is something to do, or for so long.
    pub(crate) fn next(&self, wait: Option<Duration>) -> Batch {
        let deadline = wait.map(|wait| Instant::now() + wait);
        let has_begun =
            |Contents { queue, stage }: &mut Contents<State>| queue.start != Start::Pending || *stage != Stage::Open;
        drop(self.inbox.wait_until(None, has_begun));
        let has_work = |Contents { queue, stage }: &mut Contents<State>| {
            if *stage != Stage::Open && queue.news.is_empty() && queue.clerk < Progress::Flushed {
                queue.clerk = Progress::Flushed;
                self.inbox.notify();
            }
            let has_input =
                matches!(queue.start, Start::After(_)) || !queue.news.is_empty() || !queue.settled.is_empty();
            has_input || *stage == Stage::Stopped
        };
        let (mut contents, _) = self.inbox.wait_until(deadline, has_work);
        let (stage, queue) = (contents.stage, &mut contents.queue);
        Batch {
            beginning: queue.start.take(),
            news: queue.news.take(usize::MAX, usize::MAX).0,
            is_caught_up: queue.is_caught_up,
            settled: std::mem::take(&mut queue.settled),
            is_over: stage == Stage::Stopped,
            is_clean: queue.is_clean,
        }
    }

    /// The clerk's: nothing is taken out any more.
    pub(crate) fn leave(&self) {
        self.inbox.lock().queue = State { clerk: Progress::Left, ..State::default() };
        self.inbox.notify();
    }

    /// Takes no news any more, and waits until the clerk has worked off what was there. Whether it has in time.
    pub(crate) fn close(&self, deadline: Instant) -> bool {
        self.inbox.close();
        self.wait_for(Progress::Flushed, deadline)
    }

    /// Lets the clerk leave, and waits for that. Whether it has in time. An end that came too early for some news is not in
    /// good order.
    pub(crate) fn finish(&self, clean: bool, deadline: Instant) -> bool {
        let mut contents = self.inbox.lock();
        if contents.stage != Stage::Stopped {
            contents.queue.is_clean = clean && !contents.queue.was_late;
            contents.stage = Stage::Stopped;
        }
        drop(contents);
        self.inbox.notify();
        self.wait_for(Progress::Left, deadline)
    }

    fn wait_for(&self, progress: Progress, deadline: Instant) -> bool {
        self.inbox.wait_until(Some(deadline), |contents| contents.queue.clerk >= progress).1
    }
}
