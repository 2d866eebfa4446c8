//! One target: the line of events that wait for it, and the threads that send them. The threads come when there is something
//! to do and leave when there is not; what is tried when is the line's to say.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use restante_http_client::{HttpError, HttpService};
use restante_logging::LogThrottle;

use crate::counts::Tally;
use crate::filter::Filter;
use crate::intake::{Intake, Refused};
use crate::line::{Attempt, Item, Line, Next, Outcome, Report, Turn};
use crate::notice::Notice;
use crate::pace::{Pace, spread};
use crate::place::Place;
use crate::verdict::{Verdict, Whose, judge};
use crate::{Event, Key};

/// How many requests to one target are under way at once.
const THREADS: usize = 4;
/// How much may wait for one target, in bytes. A summary is small as a rule, and a megabyte when its sender wants that.
const MAX_BYTES: u64 = 64 << 20;

/// See the file's documentation.
pub(crate) struct Lane {
    pub(crate) place: Place,
    /// Who any of these suits wants to be told.
    filters: Vec<Filter>,
    pub(crate) tally: Tally,
    means: Means,
    desk: Mutex<Desk>,
    bell: Condvar,
    quiet: Quiet,
}

/// What all lanes work with.
#[derive(Clone)]
pub(crate) struct Means {
    pub(crate) http: Arc<dyn HttpService>,
    pub(crate) key: Option<Key>,
    pub(crate) timeout: Duration,
    pub(crate) pace: Pace,
    /// How many events may wait.
    pub(crate) queue: u64,
    /// Who hears of what is done with.
    pub(crate) intake: Arc<Intake>,
}

#[derive(Default)]
struct Desk {
    line: Line,
    threads: usize,
    /// Those of them that wait for something to do.
    idle: usize,
    ending: Option<Ending>,
}

/// What is done with the line at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It is kept: only what is under way is finished.
    Keep,
    /// It is lost: what can be sent now is sent.
    Empty,
}

/// What is logged seldom.
#[derive(Default)]
struct Quiet {
    dropped: LogThrottle,
    paused: LogThrottle,
    /// Whether the log says last that the target is in trouble.
    is_paused: AtomicBool,
    refused: LogThrottle,
    given_up: LogThrottle,
    understaffed: LogThrottle,
}

impl Lane {
    pub(crate) fn new(place: Place, filters: Vec<Filter>, means: Means) -> Self {
        Self {
            place,
            filters,
            tally: Tally::default(),
            means,
            desk: Mutex::default(),
            bell: Condvar::new(),
            quiet: Quiet::default(),
        }
    }

    /// Whether the target wants to be told.
    pub(crate) fn wants(&self, event: Event, mailbox: &str) -> bool {
        self.filters.iter().any(|filter| filter.matches(event, mailbox))
    }

    /// Takes a place for an event, if there is one, which is cheap. Otherwise the event is dropped.
    pub(crate) fn take_place(&self) -> bool {
        let queue = self.means.queue;
        let taken =
            self.tally.waiting.fetch_update(Relaxed, Relaxed, |waiting| (waiting < queue).then_some(waiting + 1));
        if taken.is_err() {
            self.drop_one(Refused::Full);
        }
        taken.is_ok()
    }

    /// The event that a place was taken for does not come now.
    pub(crate) fn leave_place(&self) {
        self.tally.waiting.fetch_sub(1, Relaxed);
    }

    /// The event that a place was taken for never comes.
    pub(crate) fn give_back(&self, why: Refused) {
        self.leave_place();
        self.drop_one(why);
    }

    /// Fills a place with an event, if there is room for its bytes. Otherwise it is dropped. Only one thread does so.
    pub(crate) fn fill_place(&self, notice: &Notice) -> bool {
        let has_room = self.tally.bytes.load(Relaxed).saturating_add(notice.bytes()) <= MAX_BYTES;
        if has_room {
            self.tally.bytes.fetch_add(notice.bytes(), Relaxed);
        } else {
            self.give_back(Refused::Full);
        }
        has_room
    }

    /// An event of which the target is never told.
    fn drop_one(&self, why: Refused) {
        self.tally.dropped.fetch_add(1, Relaxed);
        let webhook = &self.place.label;
        let Some(count) = self.quiet.dropped.due(Instant::now()) else { return };
        match why {
            Refused::Full => tracing::warn!(webhook, count, "too many events wait for a webhook, new ones are dropped"),
            Refused::Closed => {
                tracing::warn!(webhook, count, "events came too late to tell a webhook, they are dropped");
            }
        }
    }

    /// Lets events wait that a place was filled with. Whether somebody is there to send them.
    pub(crate) fn push(self: &Arc<Self>, items: Vec<Item>) -> bool {
        let mut desk = self.lock();
        for item in items {
            desk.line.push(item);
        }
        let free = desk.idle;
        let is_staffed = self.staff(&mut desk, free);
        drop(desk);
        self.bell.notify_all();
        is_staffed
    }

    /// Calls threads for what can be sent now, when so many are free; and one, if there is none, for what comes later. Whether
    /// there is one then.
    fn staff(self: &Arc<Self>, desk: &mut Desk, mut free: usize) -> bool {
        let wanted = desk.line.ready(Instant::now());
        let is_alone = |desk: &Desk| desk.threads == 0 && desk.line.len() > 0;
        while desk.ending.is_none() && desk.threads < THREADS && (free < wanted || is_alone(desk)) {
            let lane = self.clone();
            match thread::Builder::new().name("webhook".to_owned()).spawn(move || lane.work()) {
                Ok(_) => {
                    desk.threads += 1;
                    free += 1;
                }
                Err(error) => {
                    if self.quiet.understaffed.due(Instant::now()).is_some() {
                        tracing::error!(webhook = self.place.label, %error, "no thread for a webhook; its events wait");
                    }
                    break;
                }
            }
        }
        !is_alone(desk)
    }

    /// Sends nothing more, apart from what the ending says.
    pub(crate) fn end(&self, ending: Ending) {
        self.lock().ending = Some(ending);
        self.bell.notify_all();
    }

    /// Waits until everything under way has come to its end. Whether it has in time.
    pub(crate) fn wait_for_end(&self, deadline: Instant) -> bool {
        let mut desk = self.lock();
        while desk.threads > 0 {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            desk = self.bell.wait_timeout(desk, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    fn work(self: &Arc<Self>) {
        while let Some(attempt) = self.next() {
            let verdict = self.send(&attempt.item.notice);
            self.settle(attempt, &verdict);
        }
    }

    /// What this thread sends next; none when it leaves, which it has done then.
    fn next(&self) -> Option<Attempt> {
        let mut desk = self.lock();
        let mut idle_since = Instant::now();
        loop {
            let now = Instant::now();
            let mut overdue = Vec::new();
            let next =
                if desk.ending == Some(Ending::Keep) { Next::Nothing } else { desk.line.next(now, &mut overdue) };
            for item in overdue {
                self.give_up(&item, "its time is over");
            }
            let wake = match next {
                Next::Send(attempt) => return Some(attempt),
                Next::At(at) => Some(at),
                Next::Nothing => None,
            };
            let is_idle = now.saturating_duration_since(idle_since) >= self.means.pace.idle;
            // Somebody must be there when the time of something comes that waits.
            let is_needed = wake.is_some() && desk.threads == 1;
            if desk.ending.is_some() || is_idle && !is_needed {
                desk.threads -= 1;
                self.bell.notify_all();
                return None;
            }
            if is_idle {
                idle_since = now;
            }
            let leave = idle_since + self.means.pace.idle;
            let left = wake.unwrap_or(leave).min(leave).saturating_duration_since(now);
            desk.idle += 1;
            desk = self.bell.wait_timeout(desk, left).unwrap_or_else(PoisonError::into_inner).0;
            desk.idle -= 1;
        }
    }

    fn send(&self, notice: &Notice) -> Verdict {
        let Means { http, key, timeout, .. } = &self.means;
        let request = notice.request(&self.place, key.as_ref(), Timestamp::now(), *timeout);
        // Whoever answers decides what the client has to chew on. A thread that dies over it would leave its event behind.
        let ended = catch_unwind(AssertUnwindSafe(|| http.send(&request)))
            .unwrap_or_else(|_| Err(HttpError::Network("the client failed".to_owned())));
        judge(ended, Timestamp::now())
    }

    fn settle(self: &Arc<Self>, attempt: Attempt, verdict: &Verdict) {
        let now = Instant::now();
        let mut desk = self.lock();
        let report = desk.line.report(attempt, verdict, now, &self.means.pace, spread());
        // The others may have left in a pause that is over now. This one is free.
        let free = desk.idle + 1;
        self.staff(&mut desk, free);
        drop(desk);
        // Others can have something to do now.
        self.bell.notify_all();
        let cause = verdict.cause();
        let Report { outcome, turn } = report;
        self.tell_turn(turn, cause, now);
        match outcome {
            Outcome::Delivered(item) => {
                self.tally.delivered.fetch_add(1, Relaxed);
                self.let_go(&item);
            }
            Outcome::GivenUp(item) => self.give_up(&item, cause),
            Outcome::Waits => {
                self.tally.retried.fetch_add(1, Relaxed);
                tracing::debug!(webhook = self.place.label, cause, "a webhook did not take an event; trying again");
                if let Verdict::Again { whose: Whose::Event, .. } = verdict
                    && let Some(count) = self.quiet.refused.due(now)
                {
                    tracing::warn!(
                        webhook = self.place.label,
                        count,
                        cause,
                        "a webhook does not take events; trying again"
                    );
                }
            }
        }
    }

    fn tell_turn(&self, turn: Option<Turn>, cause: &str, now: Instant) {
        match turn {
            Some(Turn::Paused) => {
                if self.quiet.paused.due(now).is_some() {
                    self.quiet.is_paused.store(true, Relaxed);
                    tracing::warn!(webhook = self.place.label, cause, "a webhook is in trouble; its events wait");
                }
            }
            Some(Turn::Resumed) if self.quiet.is_paused.swap(false, Relaxed) => {
                tracing::info!(webhook = self.place.label, "a webhook answers again");
            }
            Some(Turn::Resumed) | None => {}
        }
    }

    fn give_up(&self, item: &Item, cause: &str) {
        self.tally.failed.fetch_add(1, Relaxed);
        if let Some(count) = self.quiet.given_up.due(Instant::now()) {
            let (webhook, event) = (&self.place.label, &item.notice.name);
            tracing::warn!(webhook, count, event, cause, "a webhook was not told of events; they are given up");
        }
        self.let_go(item);
    }

    /// The event is done with.
    fn let_go(&self, item: &Item) {
        self.tally.waiting.fetch_sub(1, Relaxed);
        self.tally.bytes.fetch_sub(item.notice.bytes(), Relaxed);
        self.means.intake.settle(item.row);
    }

    fn lock(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
