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
pub(crate) const MAX_INBOX_BYTES: usize = 64 << 20;

/// Something that happened.
#[derive(Clone, Debug)]
pub(crate) struct InboxEvent {
    pub(crate) event: Event,
    pub(crate) summary: Summary,
    /// Who is told of it. A place is taken in each of these lanes.
    pub(crate) targets: Vec<usize>,
}

impl InboxEvent {
    /// How much memory it takes, about.
    fn size_bytes(&self) -> usize {
        size_of::<Self>() + self.summary.headline.text_len()
    }
}

/// Why news was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DropReason {
    /// There is no room.
    Full,
    /// The end has begun.
    Closed,
}

/// See the file's documentation.
#[derive(Debug, Default)]
pub(crate) struct EventInbox {
    inbox: Inbox<State>,
    /// The highest id of a stored message that was ever heard of, whether somebody wants to be told or not.
    highest_id: AtomicU64,
    /// Whether what waits is written down.
    is_persisted: AtomicBool,
}

/// What the clerk takes out at once.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// Where the server begins: the last id that was given before. It is there once.
    pub(crate) last_id_before_start: Option<u64>,
    pub(crate) events: Vec<InboxEvent>,
    /// Whether everything that was missed is among the news, now or before.
    pub(crate) is_caught_up: bool,
    /// Rows of the outbox that are done with.
    pub(crate) finished_rows: Vec<i64>,
    /// Whether the clerk is to leave.
    pub(crate) is_stopping: bool,
    /// Whether this is an end in good order.
    pub(crate) is_clean: bool,
}

#[derive(Debug)]
struct State {
    start: StartState,
    /// Sizes are bytes.
    events: BoundedQueue<InboxEvent>,
    is_caught_up: bool,
    finished_rows: Vec<i64>,
    /// Whether news came after the box was closed.
    has_late_event: bool,
    /// Whether the end was requested in good order.
    is_clean: bool,
    worker: WorkerProgress,
}

/// The start of the server. Until it serves, the clerk leaves everything as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StartState {
    NotStarted,
    /// The server serves. This is the last id that was given before.
    Started(u64),
    /// The clerk knows that id.
    Reported,
}

/// How far the clerk has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum WorkerProgress {
    #[default]
    Running,
    /// After the box was closed it has worked off all news.
    Flushed,
    /// It takes nothing out any more.
    Stopped,
}

impl StartState {
    /// Returns the last id before the start, once.
    fn take(&mut self) -> Option<u64> {
        let Self::Started(last) = *self else { return None };
        *self = Self::Reported;
        Some(last)
    }
}

impl Default for State {
    fn default() -> Self {
        Self {
            start: StartState::NotStarted,
            events: BoundedQueue::new(MAX_INBOX_BYTES),
            is_caught_up: false,
            finished_rows: Vec::new(),
            has_late_event: false,
            is_clean: false,
            worker: WorkerProgress::Running,
        }
    }
}

impl EventInbox {
    /// The server serves from now on; this is the last id that was given before.
    pub(crate) fn start(&self, last: MessageId) {
        self.record_id(last);
        let mut contents = self.inbox.lock();
        if contents.stage == Stage::Open && contents.queue.start == StartState::NotStarted {
            contents.queue.start = StartState::Started(last.number());
        }
        self.inbox.notify();
    }

    /// Puts news in, if there is room.
    pub(crate) fn push(&self, news: InboxEvent) -> Result<(), DropReason> {
        let mut contents = self.inbox.lock();
        if contents.stage != Stage::Open {
            contents.queue.has_late_event = true;
            return Err(DropReason::Closed);
        }
        let bytes = news.size_bytes();
        contents.queue.events.push(news, bytes).map_err(|_| DropReason::Full)?;
        self.inbox.notify();
        Ok(())
    }

    /// Puts in all that was missed before this start, whose size is bounded elsewhere; all of it or, when it is too late,
    /// nothing.
    pub(crate) fn push_missed(&self, news: Vec<InboxEvent>) -> Result<(), Vec<InboxEvent>> {
        let mut contents = self.inbox.lock();
        if contents.stage != Stage::Open {
            return Err(news);
        }
        for news in news {
            // An item of size zero always fits.
            let _ = contents.queue.events.push(news, 0);
        }
        contents.queue.is_caught_up = true;
        self.inbox.notify();
        Ok(())
    }

    /// A stored message was heard of.
    pub(crate) fn record_id(&self, id: MessageId) {
        self.highest_id.fetch_max(id.number(), Relaxed);
    }

    /// The highest id of those that were heard of.
    pub(crate) fn highest_id(&self) -> u64 {
        self.highest_id.load(Relaxed)
    }

    /// The clerk's: whether what waits is written down now.
    pub(crate) fn set_persisted(&self, is_kept: bool) {
        self.is_persisted.store(is_kept, Relaxed);
    }

    /// Whether what waits is found again at the next start.
    pub(crate) fn is_persisted(&self) -> bool {
        self.is_persisted.load(Relaxed)
    }

    /// A row of the outbox is done with. There are never more of them than events that wait.
    pub(crate) fn finish_row(&self, row: i64) {
        let mut contents = self.inbox.lock();
        if contents.queue.worker < WorkerProgress::Stopped {
            contents.queue.finished_rows.push(row);
            self.inbox.notify();
        }
    }

    /// The clerk's: waits until there is something to do, or for so long.
    pub(crate) fn next_batch(&self, wait: Option<Duration>) -> Batch {
        let deadline = wait.map(|wait| Instant::now() + wait);
        let has_begun = |Contents { queue, stage }: &mut Contents<State>| {
            queue.start != StartState::NotStarted || *stage != Stage::Open
        };
        drop(self.inbox.wait_until(None, has_begun));
        let has_work = |Contents { queue, stage }: &mut Contents<State>| {
            if *stage != Stage::Open && queue.events.is_empty() && queue.worker < WorkerProgress::Flushed {
                queue.worker = WorkerProgress::Flushed;
                self.inbox.notify();
            }
            let has_input = matches!(queue.start, StartState::Started(_))
                || !queue.events.is_empty()
                || !queue.finished_rows.is_empty();
            has_input || *stage == Stage::Stopped
        };
        let (mut contents, _) = self.inbox.wait_until(deadline, has_work);
        let (stage, queue) = (contents.stage, &mut contents.queue);
        Batch {
            last_id_before_start: queue.start.take(),
            events: queue.events.take(usize::MAX, usize::MAX).0,
            is_caught_up: queue.is_caught_up,
            finished_rows: std::mem::take(&mut queue.finished_rows),
            is_stopping: stage == Stage::Stopped,
            is_clean: queue.is_clean,
        }
    }

    /// The clerk's: nothing is taken out any more.
    pub(crate) fn mark_stopped(&self) {
        self.inbox.lock().queue = State { worker: WorkerProgress::Stopped, ..State::default() };
        self.inbox.notify();
    }

    /// Takes no news any more, and waits until the clerk has worked off what was there. Whether it has in time.
    pub(crate) fn close(&self, deadline: Instant) -> bool {
        self.inbox.close();
        self.wait_for_progress(WorkerProgress::Flushed, deadline)
    }

    /// Lets the clerk leave, and waits for that. Whether it has in time. An end that came too early for some news is not in
    /// good order.
    pub(crate) fn stop(&self, clean: bool, deadline: Instant) -> bool {
        let mut contents = self.inbox.lock();
        if contents.stage != Stage::Stopped {
            contents.queue.is_clean = clean && !contents.queue.has_late_event;
            contents.stage = Stage::Stopped;
        }
        drop(contents);
        self.inbox.notify();
        self.wait_for_progress(WorkerProgress::Stopped, deadline)
    }

    fn wait_for_progress(&self, progress: WorkerProgress, deadline: Instant) -> bool {
        self.inbox.wait_until(Some(deadline), |contents| contents.queue.worker >= progress).1
    }
}
