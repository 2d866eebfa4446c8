//! The box between those who must not wait and the clerk: what the mailroom tells, and what the lanes are done with. There is a
//! place in a lane for everything in it, so it holds as many events as all lanes do, within a bound on bytes.

use std::mem::size_of;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use restante_mail::message::{MessageId, Summary};

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
    state: Mutex<State>,
    bell: Condvar,
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
    /// How it goes on.
    pub(crate) stage: Stage,
}

/// How far it has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The server does not serve yet. The clerk leaves everything as it is.
    #[default]
    Waiting,
    /// Everything is taken.
    Open,
    /// No news is taken any more; lanes may still be done with something.
    Closed,
    /// The clerk is to leave.
    Over {
        /// Whether this is an end in good order.
        clean: bool,
    },
}

#[derive(Debug, Default)]
struct State {
    beginning: Option<u64>,
    news: Vec<News>,
    bytes: usize,
    is_caught_up: bool,
    settled: Vec<i64>,
    stage: Stage,
    /// Whether news came after the box was closed.
    was_late: bool,
    clerk: Progress,
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

impl State {
    fn is_closed(&self) -> bool {
        matches!(self.stage, Stage::Closed | Stage::Over { .. })
    }

    /// Whether there is something for the clerk to do.
    fn is_busy(&self) -> bool {
        match self.stage {
            Stage::Waiting => false,
            Stage::Over { .. } => true,
            Stage::Open | Stage::Closed => {
                self.beginning.is_some() || !self.news.is_empty() || !self.settled.is_empty()
            }
        }
    }
}

impl Intake {
    /// The server serves from now on; this is the last id that was given before.
    pub(crate) fn begin(&self, last: MessageId) {
        self.heard_of(last);
        let mut state = self.lock();
        if state.stage == Stage::Waiting {
            state.stage = Stage::Open;
            state.beginning = Some(last.number());
        }
        self.bell.notify_all();
    }

    /// Puts news in, if there is room.
    pub(crate) fn put(&self, news: News) -> Result<(), Refused> {
        let mut state = self.lock();
        if state.is_closed() {
            state.was_late = true;
            return Err(Refused::Closed);
        }
        let bytes = news.bytes();
        if state.bytes + bytes > MAX_BYTES {
            return Err(Refused::Full);
        }
        state.bytes += bytes;
        state.news.push(news);
        self.bell.notify_all();
        Ok(())
    }

    /// Puts in all that was missed before this start, whose size is bounded elsewhere; all of it or, when it is too late,
    /// nothing.
    pub(crate) fn put_missed(&self, news: Vec<News>) -> Result<(), Vec<News>> {
        let mut state = self.lock();
        if state.is_closed() {
            return Err(news);
        }
        state.news.extend(news);
        state.is_caught_up = true;
        self.bell.notify_all();
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
        let mut state = self.lock();
        if state.clerk < Progress::Left {
            state.settled.push(row);
            self.bell.notify_all();
        }
    }

    /// The clerk's: waits until there is something to do, or for so long.
    pub(crate) fn next(&self, wait: Option<Duration>) -> Batch {
        let deadline = wait.map(|wait| Instant::now() + wait);
        let mut state = self.lock();
        loop {
            if state.is_closed() && state.news.is_empty() && state.clerk < Progress::Flushed {
                state.clerk = Progress::Flushed;
                self.bell.notify_all();
            }
            let is_time = state.stage != Stage::Waiting && deadline.is_some_and(|deadline| deadline <= Instant::now());
            if state.is_busy() || is_time {
                state.bytes = 0;
                return Batch {
                    beginning: state.beginning.take(),
                    news: std::mem::take(&mut state.news),
                    is_caught_up: state.is_caught_up,
                    settled: std::mem::take(&mut state.settled),
                    stage: state.stage,
                };
            }
            let deadline = deadline.filter(|_| state.stage != Stage::Waiting);
            state = self.wait(state, deadline);
        }
    }

    /// The clerk's: nothing is taken out any more.
    pub(crate) fn leave(&self) {
        let mut state = self.lock();
        *state = State { stage: state.stage, clerk: Progress::Left, ..State::default() };
        self.bell.notify_all();
    }

    /// Takes no news any more, and waits until the clerk has worked off what was there. Whether it has in time.
    pub(crate) fn close(&self, deadline: Instant) -> bool {
        let mut state = self.lock();
        if !state.is_closed() {
            state.stage = Stage::Closed;
        }
        self.bell.notify_all();
        while state.clerk < Progress::Flushed && Instant::now() < deadline {
            state = self.wait(state, Some(deadline));
        }
        state.clerk >= Progress::Flushed
    }

    /// Lets the clerk leave, and waits for that. Whether it has in time. An end that came too early for some news is not in
    /// good order.
    pub(crate) fn finish(&self, clean: bool, deadline: Instant) -> bool {
        let mut state = self.lock();
        if !matches!(state.stage, Stage::Over { .. }) {
            state.stage = Stage::Over { clean: clean && !state.was_late };
        }
        self.bell.notify_all();
        while state.clerk < Progress::Left && Instant::now() < deadline {
            state = self.wait(state, Some(deadline));
        }
        state.clerk >= Progress::Left
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>, deadline: Option<Instant>) -> MutexGuard<'a, State> {
        let Some(deadline) = deadline else {
            return self.bell.wait(state).unwrap_or_else(PoisonError::into_inner);
        };
        let time = deadline.saturating_duration_since(Instant::now());
        self.bell.wait_timeout(state, time).unwrap_or_else(PoisonError::into_inner).0
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
