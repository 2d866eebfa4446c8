//! The box between those who must not wait and the clerk: what the mailroom tells, and what the lanes are done with.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use restante_mail::message::{MessageId, Summary};

use crate::Event;

/// How much may lie in the box. The clerk empties it at once; it fills only when the disk stalls.
const MAX_NEWS: usize = 4096;
const MAX_BYTES: usize = 16 << 20;

/// Something that happened.
#[derive(Clone, Debug)]
pub(crate) struct News {
    pub(crate) event: Event,
    pub(crate) summary: Summary,
    /// Whether it happened before this start, and is told of only now.
    pub(crate) is_late: bool,
}

/// See the file's documentation.
#[derive(Debug, Default)]
pub(crate) struct Intake {
    state: Mutex<State>,
    bell: Condvar,
    /// The highest id of a stored message that was ever heard of, whether somebody wants to be told or not.
    highest: AtomicU64,
}

/// What the clerk takes out at once.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) news: Vec<News>,
    /// Rows of the outbox that are done with.
    pub(crate) settled: Vec<i64>,
    /// How it goes on.
    pub(crate) stage: Stage,
}

/// How far the end has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Everything is taken.
    #[default]
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
    news: Vec<News>,
    bytes: usize,
    settled: Vec<i64>,
    stage: Stage,
    /// Whether the clerk has worked off all news after the box was closed.
    flushed: bool,
    /// Whether the clerk has left.
    left: bool,
}

impl Intake {
    /// Puts news in, if there is room.
    pub(crate) fn put(&self, news: News) -> bool {
        let mut state = self.lock();
        let bytes = news.summary.headline.text_len();
        if state.news.len() >= MAX_NEWS || state.bytes + bytes > MAX_BYTES {
            return false;
        }
        if state.stage == Stage::Open {
            state.bytes += bytes;
            state.news.push(news);
            self.bell.notify_all();
        }
        true
    }

    /// Puts in what was missed before this start, whose number is bounded elsewhere.
    pub(crate) fn put_missed(&self, news: Vec<News>) {
        self.lock().news.extend(news);
        self.bell.notify_all();
    }

    /// A stored message was heard of.
    pub(crate) fn heard_of(&self, id: MessageId) {
        self.highest.fetch_max(id.number(), Relaxed);
    }

    /// The highest id of those that were heard of.
    pub(crate) fn highest(&self) -> u64 {
        self.highest.load(Relaxed)
    }

    /// A row of the outbox is done with. There are never more of them than events that wait.
    pub(crate) fn settle(&self, row: i64) {
        let mut state = self.lock();
        if !state.left {
            state.settled.push(row);
            self.bell.notify_all();
        }
    }

    /// The clerk's: waits until there is something to do, or for so long.
    pub(crate) fn next(&self, wait: Option<Duration>) -> Batch {
        let deadline = wait.map(|wait| Instant::now() + wait);
        let mut state = self.lock();
        loop {
            if state.stage != Stage::Open && state.news.is_empty() && !state.flushed {
                state.flushed = true;
                self.bell.notify_all();
            }
            let idle = state.news.is_empty() && state.settled.is_empty() && !matches!(state.stage, Stage::Over { .. });
            if !idle || deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                state.bytes = 0;
                let (news, settled) = (std::mem::take(&mut state.news), std::mem::take(&mut state.settled));
                return Batch { news, settled, stage: state.stage };
            }
            state = self.wait(state, deadline);
        }
    }

    /// The clerk's: nothing is taken out any more.
    pub(crate) fn leave(&self) {
        let mut state = self.lock();
        *state = State { stage: state.stage, flushed: true, left: true, ..State::default() };
        self.bell.notify_all();
    }

    /// Takes no news any more, and waits until the clerk has worked off what was there. Whether it has in time.
    pub(crate) fn close(&self, deadline: Instant) -> bool {
        let mut state = self.lock();
        if state.stage == Stage::Open {
            state.stage = Stage::Closed;
        }
        self.bell.notify_all();
        while !state.flushed && Instant::now() < deadline {
            state = self.wait(state, Some(deadline));
        }
        state.flushed
    }

    /// Lets the clerk leave, and waits for that. Whether it has in time.
    pub(crate) fn finish(&self, clean: bool, deadline: Instant) -> bool {
        let mut state = self.lock();
        if !matches!(state.stage, Stage::Over { .. }) {
            state.stage = Stage::Over { clean };
        }
        self.bell.notify_all();
        while !state.left && Instant::now() < deadline {
            state = self.wait(state, Some(deadline));
        }
        state.left
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
