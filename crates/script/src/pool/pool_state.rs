//! The state of a pool and all its decisions, without threads and clock, which are in [`super::threads`].

use std::collections::VecDeque;
use std::thread::{Thread, ThreadId};
use std::time::{Duration, Instant};

use super::{Caller, JobError, Limits};

/// How long a job waits before it gets a worker beyond the core, or an idle one that was not woken.
pub(super) const EXTRA_WORKER_DELAY: Duration = Duration::from_millis(20);

/// A worker that took a job within this time will probably take the next one before another could wake up. Waking
/// another one costs more than most jobs.
const WORKER_NEARBY_WINDOW: Duration = Duration::from_micros(100);

/// The state of a pool. Jobs are started in the order of submission.
pub(super) struct PoolState<J, C> {
    limits: Limits,
    queue: VecDeque<QueuedJob<J, C>>,
    running: Vec<RunningJob<C>>,
    /// Idle workers. The last one is woken first: it is the fastest to wake up, and those beyond the core can time out.
    idle_workers: Vec<Thread>,
    /// The number of threads that take jobs, idle or not.
    workers: usize,
    abandoned: usize,
    /// When a worker last took a job or was woken.
    last_worker_seen: Option<Instant>,
    last_job_id: u64,
    last_inspected_job_id: u64,
    /// Whether the watchdog has responses to send from its last inspection.
    has_unsent_responses: bool,
    is_closed: bool,
}

struct QueuedJob<J, C> {
    job: J,
    caller: C,
    queued_at: Instant,
}

struct RunningJob<C> {
    id: JobId,
    /// `None` while a resource is created in advance.
    caller: Option<C>,
    started_at: Instant,
}

/// Identifies a job that was started, or a resource that is being created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct JobId(u64);

/// A job for a worker.
#[derive(Debug)]
pub(super) struct Assignment<J> {
    pub(super) id: JobId,
    pub(super) job: J,
}

/// What a worker gets when its job is finished.
pub(super) struct Finished<J, C> {
    /// The caller to respond to; `None` after creating a resource.
    pub(super) caller: Option<C>,
    /// What to do next.
    pub(super) next: Next<J>,
    /// A worker to wake for the remaining jobs.
    pub(super) wake: Option<WakeAction>,
}

/// What a worker does after its job.
#[derive(Debug)]
pub(super) enum Next<J> {
    Run(Assignment<J>),
    /// Create a new resource before a job needs it.
    CreateResource(JobId),
    Sleep,
}

/// A worker to wake or start, because the active workers will not take all jobs soon.
#[derive(Debug)]
pub(super) enum WakeAction {
    /// An idle worker, which has been removed from the idle workers.
    Unpark(Thread),
    /// A new worker, which has been counted already.
    Spawn,
}

/// The result of an inspection by the watchdog.
pub(super) struct Inspection<C> {
    /// Callers that must not wait any longer.
    pub(super) responses: Vec<(C, JobError)>,
    /// Workers to wake or start.
    pub(super) wakes: Vec<WakeAction>,
    /// Whether nothing has happened since the last inspection and nothing will until a worker takes a job.
    pub(super) may_sleep: bool,
}

impl<J, C: Caller> PoolState<J, C> {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits,
            queue: VecDeque::new(),
            running: Vec::new(),
            idle_workers: Vec::new(),
            workers: 0,
            abandoned: 0,
            last_worker_seen: None,
            last_job_id: 0,
            last_inspected_job_id: 0,
            has_unsent_responses: false,
            is_closed: false,
        }
    }

    pub(super) fn waiting(&self) -> usize {
        self.queue.len()
    }

    pub(super) fn abandoned(&self) -> usize {
        self.abandoned
    }

    pub(super) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Returns whether nothing is queued or running. An active worker may still have to send a response, so it counts
    /// as running.
    pub(super) fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.workers == self.idle_workers.len() && !self.has_unsent_responses
    }

    /// Adds a job to the queue, or returns the caller and the reason.
    pub(super) fn enqueue(&mut self, job: J, caller: C, now: Instant) -> Result<Option<WakeAction>, (C, JobError)> {
        if self.is_closed {
            return Err((caller, JobError::Closed));
        }
        if self.is_blocked() && self.limits.queue_timeout.is_some() {
            return Err((caller, JobError::NoThread));
        }
        if self.queue.len() >= self.limits.max_queued {
            return Err((caller, JobError::QueueFull));
        }
        self.queue.push_back(QueuedJob { job, caller, queued_at: now });
        let is_awake = self.workers > self.idle_workers.len();
        let is_near =
            self.last_worker_seen.is_some_and(|seen| now.saturating_duration_since(seen) < WORKER_NEARBY_WINDOW);
        Ok(if is_awake && is_near { None } else { self.wake_one(now) })
    }

    /// Takes the next job for a worker.
    pub(super) fn next_job(&mut self, now: Instant) -> Option<Assignment<J>> {
        if self.is_blocked() {
            return None;
        }
        loop {
            let QueuedJob { job, caller, .. } = self.queue.pop_front()?;
            if caller.is_gone() {
                continue;
            }
            self.last_worker_seen = Some(now);
            return Some(Assignment { id: self.start_job(Some(caller), now), job });
        }
    }

    /// Restarts the time of a job, because its resource had to be created first. Returns false if the job was abandoned
    /// meanwhile.
    pub(super) fn restart_timer(&mut self, ticket: JobId, now: Instant) -> bool {
        let running = self.running.iter_mut().find(|running| running.id == ticket);
        running.map(|running| running.started_at = now).is_some()
    }

    /// Finishes a job. `is_reusable` says whether its resource can be used again. Returns `None` if the job was
    /// abandoned: its thread must end.
    pub(super) fn finish(&mut self, ticket: JobId, is_fit: bool, now: Instant) -> Option<Finished<J, C>> {
        let place = self.running.iter().position(|running| running.id == ticket)?;
        let RunningJob { caller, started_at: since, .. } = self.running.swap_remove(place);
        let next = if self.is_closed {
            Next::Sleep
        } else if is_fit {
            self.next_job(now).map_or(Next::Sleep, Next::Run)
        } else {
            Next::CreateResource(self.start_job(None, now))
        };
        // Jobs that were submitted shortly after this worker took its job have woken no other worker. If this job was
        // slow, one is needed now.
        let is_near = is_fit && now.saturating_duration_since(since) < WORKER_NEARBY_WINDOW;
        let help = if is_near || self.queue.is_empty() { None } else { self.wake_one(now) };
        Some(Finished { caller, next, wake: help })
    }

    /// Uncounts an abandoned thread, which is about to end.
    pub(super) fn release_abandoned(&mut self) {
        self.abandoned -= 1;
    }

    /// Adds an idle worker. Returns whether it may sleep without a timeout.
    pub(super) fn add_idle(&mut self, worker: Thread) -> bool {
        self.idle_workers.push(worker);
        self.workers <= self.limits.core_workers
    }

    /// Removes a worker that woke up, by whatever cause.
    pub(super) fn remove_idle(&mut self, worker: ThreadId) {
        self.idle_workers.retain(|sleeper| sleeper.id() != worker);
    }

    /// Uncounts a worker that has been idle for too long, unless it belongs to the core. Returns whether it must end.
    pub(super) fn try_retire(&mut self) -> bool {
        let is_extra = self.workers > self.limits.core_workers || self.is_closed;
        if is_extra {
            self.workers -= 1;
        }
        is_extra
    }

    /// Uncounts a worker that could not be started. If there is no other, returns the callers of all queued jobs.
    pub(super) fn worker_start_failed(&mut self) -> Vec<C> {
        self.workers -= 1;
        if self.workers > 0 {
            return Vec::new();
        }
        self.queue.drain(..).map(|waiting| waiting.caller).collect()
    }

    /// Finds jobs that run too long and jobs that wait too long.
    pub(super) fn inspect(&mut self, now: Instant) -> Inspection<C> {
        let mut answers = self.abandon_overdue(now);
        answers.extend(self.reject_late(now));
        self.has_unsent_responses = !answers.is_empty();
        let help = self.wake_for_late_jobs(now);
        let is_idle = self.is_idle() && self.last_job_id == self.last_inspected_job_id;
        self.last_inspected_job_id = self.last_job_id;
        Inspection { responses: answers, wakes: help, may_sleep: is_idle }
    }

    /// Closes the pool. Returns the idle workers to wake and the callers of queued jobs.
    pub(super) fn close(&mut self) -> (Vec<Thread>, Vec<C>) {
        self.is_closed = true;
        let callers = self.queue.drain(..).map(|waiting| waiting.caller).collect();
        (std::mem::take(&mut self.idle_workers), callers)
    }

    /// Records the start of a job or of a resource.
    fn start_job(&mut self, caller: Option<C>, now: Instant) -> JobId {
        self.last_job_id += 1;
        let ticket = JobId(self.last_job_id);
        self.running.push(RunningJob { id: ticket, caller, started_at: now });
        ticket
    }

    /// Returns whether no jobs may be started, because too many threads are abandoned.
    fn is_blocked(&self) -> bool {
        self.abandoned >= self.limits.max_abandoned
    }

    /// Wakes an idle worker, or starts one if the core is incomplete.
    fn wake_one(&mut self, now: Instant) -> Option<WakeAction> {
        if let Some(sleeper) = self.idle_workers.pop() {
            self.last_worker_seen = Some(now);
            return Some(WakeAction::Unpark(sleeper));
        }
        if self.workers >= self.limits.core_workers {
            return None;
        }
        self.last_worker_seen = Some(now);
        self.workers += 1;
        Some(WakeAction::Spawn)
    }

    /// Abandons jobs that run too long. Returns their callers.
    fn abandon_overdue(&mut self, now: Instant) -> Vec<(C, JobError)> {
        let limit = self.limits.job_timeout;
        let overrun = self.running.extract_if(.., |job| now.saturating_duration_since(job.started_at) >= limit);
        let callers: Vec<_> = overrun.map(|job| job.caller).collect();
        self.workers -= callers.len();
        self.abandoned += callers.len();
        callers.into_iter().flatten().map(|caller| (caller, JobError::TimedOut)).collect()
    }

    /// Removes jobs that have waited too long or cannot be started. Returns their callers.
    fn reject_late(&mut self, now: Instant) -> Vec<(C, JobError)> {
        let Some(wait) = self.limits.queue_timeout else { return Vec::new() };
        if self.is_blocked() {
            return self.queue.drain(..).map(|waiting| (waiting.caller, JobError::NoThread)).collect();
        }
        let late = self.count_waiting_for(wait, now);
        self.queue.drain(..late).map(|waiting| (waiting.caller, JobError::QueueTimeout)).collect()
    }

    /// Wakes workers for jobs that have waited too long: idle ones first, then new ones. It starts at most as many as
    /// there are already, so that a short burst of jobs does not start many threads.
    fn wake_for_late_jobs(&mut self, now: Instant) -> Vec<WakeAction> {
        if self.is_blocked() {
            return Vec::new();
        }
        let late = self.count_waiting_for(EXTRA_WORKER_DELAY, now);
        let still_asleep = self.idle_workers.len().saturating_sub(late);
        let mut help: Vec<_> = self.idle_workers.drain(still_asleep..).map(WakeAction::Unpark).collect();
        let wanted = (late - help.len()).min(self.workers.max(1));
        let hired = wanted.min(self.limits.max_workers.saturating_sub(self.workers));
        self.workers += hired;
        help.extend((0..hired).map(|_| WakeAction::Spawn));
        help
    }

    /// Returns how many jobs have waited for at least `time`. They are at the front of the queue.
    fn count_waiting_for(&self, time: Duration, now: Instant) -> usize {
        self.queue.partition_point(|waiting| now.saturating_duration_since(waiting.queued_at) >= time)
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
        Limits {
            core_workers: 2,
            max_workers: 20,
            idle_timeout: SECOND,
            max_queued: 1000,
            queue_timeout: Some(3 * SECOND),
            job_timeout: 2 * SECOND,
            max_abandoned: 4,
        }
    }

    /// Adds a job. Returns whether a worker must be started for it.
    fn hires(roster: &mut PoolState<u32, Patient>, now: Instant) -> bool {
        matches!(roster.enqueue(0, Patient, now), Ok(Some(WakeAction::Spawn)))
    }

    #[test]
    fn the_core_is_hired_when_jobs_come_and_no_worker_is_near() {
        let mut roster = PoolState::new(limits());
        let start = Instant::now();
        assert!(hires(&mut roster, start));
        assert!(!hires(&mut roster, start + WORKER_NEARBY_WINDOW / 2), "the first one will be there soon");
        assert!(hires(&mut roster, start + WORKER_NEARBY_WINDOW), "it is not");
        assert!(!hires(&mut roster, start + 3 * WORKER_NEARBY_WINDOW), "the core is complete");
    }

    #[test]
    fn a_slow_job_calls_for_help_when_it_is_done() {
        for (time, is_slow) in [(WORKER_NEARBY_WINDOW / 2, false), (WORKER_NEARBY_WINDOW, true)] {
            let mut roster = PoolState::new(limits());
            let start = Instant::now();
            assert!(hires(&mut roster, start));
            for _ in 0..2 {
                assert!(!hires(&mut roster, start));
            }
            let Assignment { id: ticket, .. } = roster.next_job(start).unwrap();
            let Finished { next, wake: help, .. } = roster.finish(ticket, true, start + time).unwrap();
            assert!(matches!(next, Next::Run(_)));
            assert_eq!(help.is_some(), is_slow, "{time:?}");
        }
    }

    #[test]
    fn workers_double_while_jobs_wait_up_to_a_bound() {
        let mut roster = PoolState::new(limits());
        let mut now = Instant::now();
        for _ in 0..100 {
            roster.enqueue(0, Patient, now).map_err(|_| "refused").unwrap();
            now += WORKER_NEARBY_WINDOW;
        }
        let mut hired = Vec::new();
        for _ in 0..6 {
            while roster.running.len() < roster.workers {
                roster.next_job(now).unwrap();
            }
            now += EXTRA_WORKER_DELAY;
            hired.push(roster.inspect(now).wakes.len());
        }
        assert_eq!(hired, [2, 4, 8, 4, 0, 0]);
    }

    #[test]
    fn the_time_of_a_job_begins_when_its_tool_is_there() {
        let mut roster = PoolState::new(limits());
        let start = Instant::now();
        assert!(hires(&mut roster, start));
        let Assignment { id: ticket, .. } = roster.next_job(start).unwrap();
        assert!(roster.restart_timer(ticket, start + SECOND));
        assert!(roster.inspect(start + 2 * SECOND).responses.is_empty());
        assert_eq!(roster.inspect(start + 3 * SECOND).responses.len(), 1);
        assert!(!roster.restart_timer(ticket, start + 3 * SECOND), "it was given up");
        assert!(roster.finish(ticket, true, start + 4 * SECOND).is_none());
        assert_eq!((roster.workers, roster.abandoned), (0, 1));
        roster.release_abandoned();
        assert_eq!(roster.abandoned, 0);
    }

    #[test]
    fn who_makes_a_tool_calls_for_help_and_is_given_up_like_others() {
        let mut roster = PoolState::new(limits());
        let start = Instant::now();
        assert!(hires(&mut roster, start));
        assert!(!hires(&mut roster, start));
        let Assignment { id: ticket, .. } = roster.next_job(start).unwrap();
        let Finished { caller, next: Next::CreateResource(ticket), wake: help } =
            roster.finish(ticket, false, start).unwrap()
        else {
            panic!("the tool is not fit");
        };
        assert!(
            caller.is_some() && matches!(help, Some(WakeAction::Spawn)),
            "the other job need not wait for the tool"
        );
        assert!(!roster.is_idle());
        assert!(roster.inspect(start + 2 * SECOND).responses.is_empty(), "nobody waits for the tool");
        assert!(roster.finish(ticket, true, start + 2 * SECOND).is_none());
        assert_eq!(roster.abandoned, 1);
    }

    #[test]
    fn a_closed_pool_begins_nothing_and_gives_back_who_waits() {
        let mut roster = PoolState::new(limits());
        let start = Instant::now();
        assert!(hires(&mut roster, start));
        let Assignment { id: ticket, .. } = roster.next_job(start).unwrap();
        assert!(hires(&mut roster, start + SECOND));
        assert_eq!(roster.close().1.len(), 1);
        let Finished { caller, next, .. } = roster.finish(ticket, false, start + SECOND).unwrap();
        assert!(caller.is_some() && matches!(next, Next::Sleep));
        assert!(matches!(roster.enqueue(0, Patient, start), Err((Patient, JobError::Closed))));
    }

    #[test]
    fn when_there_is_no_thread_at_all_nobody_waits_for_one() {
        let mut roster = PoolState::new(limits());
        let start = Instant::now();
        assert!(hires(&mut roster, start));
        assert!(hires(&mut roster, start + SECOND));
        assert!(roster.worker_start_failed().is_empty(), "there is another worker");
        assert_eq!(roster.worker_start_failed().len(), 2);
        assert!(roster.is_idle());
    }

    #[test]
    fn the_watchdog_is_idle_one_look_after_the_last_job() {
        let mut roster = PoolState::new(limits());
        let start = Instant::now();
        assert!(roster.inspect(start).may_sleep);
        assert!(hires(&mut roster, start));
        assert!(!roster.inspect(start).may_sleep);
        let Assignment { id: ticket, .. } = roster.next_job(start).unwrap();
        assert!(roster.finish(ticket, true, start).is_some());
        roster.add_idle(std::thread::current());
        assert!(!roster.inspect(start).may_sleep);
        assert!(roster.inspect(start).may_sleep);
    }
}
