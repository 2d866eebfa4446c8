//! Who waits, who works and who sleeps in a pool: the decisions without clock and threads, which [`super::house`] adds.

use std::collections::VecDeque;
use std::thread::{Thread, ThreadId};
use std::time::{Duration, Instant};

use super::{Caller, Failure, Limits};

/// How long a job waits before it gets a worker that would not be needed if jobs were quick.
pub(super) const PATIENCE: Duration = Duration::from_millis(20);

/// A worker that took a job so recently is likely to take the next one before another could wake up. Waking that one
/// nevertheless costs more than most jobs do.
const QUICK: Duration = Duration::from_micros(100);

/// The state of a pool. Jobs are begun in the order in which they came.
pub(super) struct Roster<J, C> {
    limits: Limits,
    queue: VecDeque<Waiting<J, C>>,
    running: Vec<Running<C>>,
    /// The last one to fall asleep is the first one to be woken: it is the quickest, and those beyond the core get to sleep
    /// until they end.
    sleepers: Vec<Thread>,
    /// Threads that take jobs, awake or not.
    workers: usize,
    abandoned: usize,
    /// When a worker was last known to be on its way to the queue.
    seen: Option<Instant>,
    tickets: u64,
    tickets_inspected: u64,
    /// Whether the watchdog has answers to give from its last look.
    owes_answers: bool,
    closed: bool,
}

struct Waiting<J, C> {
    job: J,
    caller: C,
    since: Instant,
}

struct Running<C> {
    ticket: Ticket,
    /// None when a tool is made before anybody needs it.
    caller: Option<C>,
    since: Instant,
}

/// One job that was begun, or a tool that is being made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ticket(u64);

/// What a worker is to do.
#[derive(Debug)]
pub(super) struct Assignment<J> {
    pub(super) ticket: Ticket,
    pub(super) job: J,
}

/// What a worker gets when it is done.
pub(super) struct Finished<J, C> {
    /// Who waits for the answer; nobody waits for a tool.
    pub(super) caller: Option<C>,
    /// What to do next.
    pub(super) next: Next<J>,
    /// Who has to help with the rest.
    pub(super) help: Option<Help>,
}

/// What a worker does after its job.
#[derive(Debug)]
pub(super) enum Next<J> {
    Work(Assignment<J>),
    /// Make a new tool, before somebody has to wait for it.
    Prepare(Ticket),
    Rest,
}

/// Somebody to be called when there is more to do than those who are awake will soon have done.
#[derive(Debug)]
pub(super) enum Help {
    /// A worker that sleeps, and no longer counts as one that does.
    Wake(Thread),
    /// A worker that is counted already, and has to be started.
    Hire,
}

/// What the watchdog has found.
pub(super) struct Findings<C> {
    /// Who is not to wait any longer.
    pub(super) answers: Vec<(C, Failure)>,
    /// Who has to help.
    pub(super) help: Vec<Help>,
    /// Whether nothing has happened since the last look, and nothing will until a worker takes a job.
    pub(super) is_idle: bool,
}

impl<J, C: Caller> Roster<J, C> {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits,
            queue: VecDeque::new(),
            running: Vec::new(),
            sleepers: Vec::new(),
            workers: 0,
            abandoned: 0,
            seen: None,
            tickets: 0,
            tickets_inspected: 0,
            owes_answers: false,
            closed: false,
        }
    }

    pub(super) fn waiting(&self) -> usize {
        self.queue.len()
    }

    pub(super) fn abandoned(&self) -> usize {
        self.abandoned
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Whether nobody waits for anything: a worker that is awake may still have an answer to give.
    pub(super) fn is_quiet(&self) -> bool {
        self.queue.is_empty() && self.workers == self.sleepers.len() && !self.owes_answers
    }

    /// Puts a job into the queue, or gives the caller back.
    pub(super) fn admit(&mut self, job: J, caller: C, now: Instant) -> Result<Option<Help>, (C, Failure)> {
        if self.closed {
            return Err((caller, Failure::Closed));
        }
        if self.is_stuck() && self.limits.wait.is_some() {
            return Err((caller, Failure::Stuck));
        }
        if self.queue.len() >= self.limits.queue {
            return Err((caller, Failure::Full));
        }
        self.queue.push_back(Waiting { job, caller, since: now });
        let is_awake = self.workers > self.sleepers.len();
        let is_near = self.seen.is_some_and(|seen| now.saturating_duration_since(seen) < QUICK);
        Ok(if is_awake && is_near { None } else { self.help(now) })
    }

    /// The next job for a worker, if there is any.
    pub(super) fn take(&mut self, now: Instant) -> Option<Assignment<J>> {
        if self.is_stuck() {
            return None;
        }
        loop {
            let Waiting { job, caller, .. } = self.queue.pop_front()?;
            if caller.is_gone() {
                continue;
            }
            self.seen = Some(now);
            return Some(Assignment { ticket: self.begin(Some(caller), now), job });
        }
    }

    /// Begins the time of a job anew, because what it needs had to be made first. False when it was given up meanwhile.
    pub(super) fn restart(&mut self, ticket: Ticket, now: Instant) -> bool {
        let running = self.running.iter_mut().find(|running| running.ticket == ticket);
        running.map(|running| running.since = now).is_some()
    }

    /// A worker is done with a job, and its tool may not be fit for another one. None when the job was given up: the worker
    /// is no worker any more.
    pub(super) fn finish(&mut self, ticket: Ticket, is_fit: bool, now: Instant) -> Option<Finished<J, C>> {
        let place = self.running.iter().position(|running| running.ticket == ticket)?;
        let Running { caller, since, .. } = self.running.swap_remove(place);
        let next = if self.closed {
            Next::Rest
        } else if is_fit {
            self.take(now).map_or(Next::Rest, Next::Work)
        } else {
            Next::Prepare(self.begin(None, now))
        };
        // Where jobs are slow, nobody has called for help yet when they came while this worker seemed to be near.
        let is_near = is_fit && now.saturating_duration_since(since) < QUICK;
        let help = if is_near || self.queue.is_empty() { None } else { self.help(now) };
        Some(Finished { caller, next, help })
    }

    /// A thread has come back from a job that was given up, and ends.
    pub(super) fn give_back(&mut self) {
        self.abandoned -= 1;
    }

    /// A worker found nothing to do and sleeps; the answer is whether it may do so for ever.
    pub(super) fn sleep(&mut self, worker: Thread) -> bool {
        self.sleepers.push(worker);
        self.workers <= self.limits.core
    }

    /// A worker got up, called or not.
    pub(super) fn rise(&mut self, worker: ThreadId) {
        self.sleepers.retain(|sleeper| sleeper.id() != worker);
    }

    /// A worker that has slept long leaves, unless it is needed.
    pub(super) fn may_leave(&mut self) -> bool {
        let is_extra = self.workers > self.limits.core || self.closed;
        if is_extra {
            self.workers -= 1;
        }
        is_extra
    }

    /// A worker that was to be hired does not exist. When there is no other, those who wait are given back.
    pub(super) fn miss(&mut self) -> Vec<C> {
        self.workers -= 1;
        if self.workers > 0 {
            return Vec::new();
        }
        self.queue.drain(..).map(|waiting| waiting.caller).collect()
    }

    /// Looks for jobs that take too long and jobs that wait too long.
    pub(super) fn inspect(&mut self, now: Instant) -> Findings<C> {
        let mut answers = self.give_up(now);
        answers.extend(self.send_away(now));
        self.owes_answers = !answers.is_empty();
        let help = self.help_the_late(now);
        let is_idle = self.is_quiet() && self.tickets == self.tickets_inspected;
        self.tickets_inspected = self.tickets;
        Findings { answers, help, is_idle }
    }

    /// No more jobs: everybody who sleeps is to be woken, and those who wait are given back.
    pub(super) fn close(&mut self) -> (Vec<Thread>, Vec<C>) {
        self.closed = true;
        let callers = self.queue.drain(..).map(|waiting| waiting.caller).collect();
        (std::mem::take(&mut self.sleepers), callers)
    }

    /// Counts something as begun.
    fn begin(&mut self, caller: Option<C>, now: Instant) -> Ticket {
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        self.running.push(Running { ticket, caller, since: now });
        ticket
    }

    /// Whether so many threads do not return that no more of them are risked.
    fn is_stuck(&self) -> bool {
        self.abandoned >= self.limits.abandoned
    }

    /// One more worker, as long as the core is not complete.
    fn help(&mut self, now: Instant) -> Option<Help> {
        if let Some(sleeper) = self.sleepers.pop() {
            self.seen = Some(now);
            return Some(Help::Wake(sleeper));
        }
        if self.workers >= self.limits.core {
            return None;
        }
        self.seen = Some(now);
        self.workers += 1;
        Some(Help::Hire)
    }

    /// The callers of jobs that take too long.
    fn give_up(&mut self, now: Instant) -> Vec<(C, Failure)> {
        let limit = self.limits.call;
        let overrun = self.running.extract_if(.., |job| now.saturating_duration_since(job.since) >= limit);
        let callers: Vec<_> = overrun.map(|job| job.caller).collect();
        self.workers -= callers.len();
        self.abandoned += callers.len();
        callers.into_iter().flatten().map(|caller| (caller, Failure::Overrun)).collect()
    }

    /// The callers that have waited too long, or wait for nothing.
    fn send_away(&mut self, now: Instant) -> Vec<(C, Failure)> {
        let Some(wait) = self.limits.wait else { return Vec::new() };
        if self.is_stuck() {
            return self.queue.drain(..).map(|waiting| (waiting.caller, Failure::Stuck)).collect();
        }
        let late = self.waiting_for(wait, now);
        self.queue.drain(..late).map(|waiting| (waiting.caller, Failure::Late)).collect()
    }

    /// Workers for the jobs that wait although jobs should be quick: those who sleep, then new ones, at most as many as
    /// there are already, so that a moment of many jobs does not start many threads.
    fn help_the_late(&mut self, now: Instant) -> Vec<Help> {
        if self.is_stuck() {
            return Vec::new();
        }
        let late = self.waiting_for(PATIENCE, now);
        let still_asleep = self.sleepers.len().saturating_sub(late);
        let mut help: Vec<_> = self.sleepers.drain(still_asleep..).map(Help::Wake).collect();
        let wanted = (late - help.len()).min(self.workers.max(1));
        let hired = wanted.min(self.limits.most.saturating_sub(self.workers));
        self.workers += hired;
        help.extend((0..hired).map(|_| Help::Hire));
        help
    }

    /// How many jobs have waited for so long. They stand at the front.
    fn waiting_for(&self, time: Duration, now: Instant) -> usize {
        self.queue.partition_point(|waiting| now.saturating_duration_since(waiting.since) >= time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Patient;

    impl Caller for Patient {
        fn is_gone(&self) -> bool {
            false
        }
    }

    const SECOND: Duration = Duration::from_secs(1);

    fn limits() -> Limits {
        Limits { core: 2, most: 20, idle: SECOND, queue: 1000, wait: Some(3 * SECOND), call: 2 * SECOND, abandoned: 4 }
    }

    /// Admits a job, and says whether somebody has to be hired for it.
    fn hires(roster: &mut Roster<u32, Patient>, now: Instant) -> bool {
        matches!(roster.admit(0, Patient, now), Ok(Some(Help::Hire)))
    }

    #[test]
    fn the_core_is_hired_when_jobs_come_and_no_worker_is_near() {
        let mut roster = Roster::new(limits());
        let start = Instant::now();
        assert!(hires(&mut roster, start));
        assert!(!hires(&mut roster, start + QUICK / 2), "the first one will be there soon");
        assert!(hires(&mut roster, start + QUICK), "it is not");
        assert!(!hires(&mut roster, start + 3 * QUICK), "the core is complete");
    }

    #[test]
    fn a_slow_job_calls_for_help_when_it_is_done() {
        for (time, is_slow) in [(QUICK / 2, false), (QUICK, true)] {
            let mut roster = Roster::new(limits());
            let start = Instant::now();
            assert!(hires(&mut roster, start));
            for _ in 0..2 {
                assert!(!hires(&mut roster, start));
            }
            let Assignment { ticket, .. } = roster.take(start).unwrap();
            let Finished { next, help, .. } = roster.finish(ticket, true, start + time).unwrap();
            assert!(matches!(next, Next::Work(_)));
            assert_eq!(help.is_some(), is_slow, "{time:?}");
        }
    }

    #[test]
    fn workers_double_while_jobs_wait_up_to_a_bound() {
        let mut roster = Roster::new(limits());
        let mut now = Instant::now();
        for _ in 0..100 {
            roster.admit(0, Patient, now).map_err(|_| "refused").unwrap();
            now += QUICK;
        }
        let mut hired = Vec::new();
        for _ in 0..6 {
            while roster.running.len() < roster.workers {
                roster.take(now).unwrap();
            }
            now += PATIENCE;
            hired.push(roster.inspect(now).help.len());
        }
        assert_eq!(hired, [2, 4, 8, 4, 0, 0]);
    }

    #[test]
    fn the_time_of_a_job_begins_when_its_tool_is_there() {
        let mut roster = Roster::new(limits());
        let start = Instant::now();
        assert!(hires(&mut roster, start));
        let Assignment { ticket, .. } = roster.take(start).unwrap();
        assert!(roster.restart(ticket, start + SECOND));
        assert!(roster.inspect(start + 2 * SECOND).answers.is_empty());
        assert_eq!(roster.inspect(start + 3 * SECOND).answers.len(), 1);
        assert!(!roster.restart(ticket, start + 3 * SECOND), "it was given up");
        assert!(roster.finish(ticket, true, start + 4 * SECOND).is_none());
        assert_eq!((roster.workers, roster.abandoned), (0, 1));
        roster.give_back();
        assert_eq!(roster.abandoned, 0);
    }

    #[test]
    fn who_makes_a_tool_calls_for_help_and_is_given_up_like_others() {
        let mut roster = Roster::new(limits());
        let start = Instant::now();
        assert!(hires(&mut roster, start));
        assert!(!hires(&mut roster, start));
        let Assignment { ticket, .. } = roster.take(start).unwrap();
        let Finished { caller, next: Next::Prepare(ticket), help } = roster.finish(ticket, false, start).unwrap()
        else {
            panic!("the tool is not fit");
        };
        assert!(caller.is_some() && matches!(help, Some(Help::Hire)), "the other job need not wait for the tool");
        assert!(!roster.is_quiet());
        assert!(roster.inspect(start + 2 * SECOND).answers.is_empty(), "nobody waits for the tool");
        assert!(roster.finish(ticket, true, start + 2 * SECOND).is_none());
        assert_eq!(roster.abandoned, 1);
    }

    #[test]
    fn a_closed_pool_begins_nothing_and_gives_back_who_waits() {
        let mut roster = Roster::new(limits());
        let start = Instant::now();
        assert!(hires(&mut roster, start));
        let Assignment { ticket, .. } = roster.take(start).unwrap();
        assert!(hires(&mut roster, start + SECOND));
        assert_eq!(roster.close().1.len(), 1);
        let Finished { caller, next, .. } = roster.finish(ticket, false, start + SECOND).unwrap();
        assert!(caller.is_some() && matches!(next, Next::Rest));
        assert!(matches!(roster.admit(0, Patient, start), Err((Patient, Failure::Closed))));
    }

    #[test]
    fn when_there_is_no_thread_at_all_nobody_waits_for_one() {
        let mut roster = Roster::new(limits());
        let start = Instant::now();
        assert!(hires(&mut roster, start));
        assert!(hires(&mut roster, start + SECOND));
        assert!(roster.miss().is_empty(), "there is another worker");
        assert_eq!(roster.miss().len(), 2);
        assert!(roster.is_quiet());
    }

    #[test]
    fn the_watchdog_is_idle_one_look_after_the_last_job() {
        let mut roster = Roster::new(limits());
        let start = Instant::now();
        assert!(roster.inspect(start).is_idle);
        assert!(hires(&mut roster, start));
        assert!(!roster.inspect(start).is_idle);
        let Assignment { ticket, .. } = roster.take(start).unwrap();
        assert!(roster.finish(ticket, true, start).is_some());
        roster.sleep(std::thread::current());
        assert!(!roster.inspect(start).is_idle);
        assert!(roster.inspect(start).is_idle);
    }
}
