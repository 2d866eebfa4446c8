//! The state of a pool and all its decisions, without threads and clock, which are in [`super::threads`].

use std::collections::VecDeque;
use std::thread::{Thread, ThreadId};
use std::time::{Duration, Instant};

use super::{Caller, JobError, Limits};

/// How long a job waits before it gets a worker beyond the core, or an idle one that was not woken.
pub(super) const EXTRA_WORKER_DELAY: Duration = Duration::from_millis(20);

/// A worker that took a job within this time will probably take the next one before another could wake up. Waking
/// another one costs more than most jobs.
const RECENT_WORKER_WINDOW: Duration = Duration::from_micros(100);

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
    last_worker_activity: Option<Instant>,
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
            last_worker_activity: None,
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
        let has_active = self.workers > self.idle_workers.len();
        let is_recent =
            self.last_worker_activity.is_some_and(|last| now.saturating_duration_since(last) < RECENT_WORKER_WINDOW);
        Ok(if has_active && is_recent { None } else { self.wake_one(now) })
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
            self.last_worker_activity = Some(now);
            return Some(Assignment { id: self.start_job(Some(caller), now), job });
        }
    }

    /// Restarts the time of a job, because its resource had to be created first. Returns false if the job was abandoned
    /// meanwhile.
    pub(super) fn restart_timer(&mut self, id: JobId, now: Instant) -> bool {
        let running = self.running.iter_mut().find(|running| running.id == id);
        running.map(|running| running.started_at = now).is_some()
    }

    /// Finishes a job. `is_reusable` says whether its resource can be used again. Returns `None` if the job was
    /// abandoned: its thread must end.
    pub(super) fn finish(&mut self, id: JobId, is_reusable: bool, now: Instant) -> Option<Finished<J, C>> {
        let index = self.running.iter().position(|running| running.id == id)?;
        let RunningJob { caller, started_at, .. } = self.running.swap_remove(index);
        let next = if self.is_closed {
            Next::Sleep
        } else if is_reusable {
            self.next_job(now).map_or(Next::Sleep, Next::Run)
        } else {
            Next::CreateResource(self.start_job(None, now))
        };
        // Jobs that were submitted shortly after this worker took its job have woken no other worker. If this job was
        // slow, one is needed now.
        let was_fast = is_reusable && now.saturating_duration_since(started_at) < RECENT_WORKER_WINDOW;
        let wake = if was_fast || self.queue.is_empty() { None } else { self.wake_one(now) };
        Some(Finished { caller, next, wake })
    }

    /// Stops counting an abandoned thread, which is about to end.
    pub(super) fn release_abandoned(&mut self) {
        self.abandoned -= 1;
    }

    /// Adds an idle worker. Returns whether it may sleep without a timeout.
    pub(super) fn add_idle(&mut self, worker: Thread) -> bool {
        self.idle_workers.push(worker);
        self.workers <= self.limits.core_workers
    }

    /// Removes a worker that woke up, for any reason.
    pub(super) fn remove_idle(&mut self, worker: ThreadId) {
        self.idle_workers.retain(|idle| idle.id() != worker);
    }

    /// Stops counting a worker that has been idle for too long, unless it belongs to the core. Returns whether it must
    /// end.
    pub(super) fn try_retire(&mut self) -> bool {
        let is_extra = self.workers > self.limits.core_workers || self.is_closed;
        if is_extra {
            self.workers -= 1;
        }
        is_extra
    }

    /// Stops counting a worker that could not be started. If there is no other, returns the callers of all queued jobs.
    pub(super) fn worker_start_failed(&mut self) -> Vec<C> {
        self.workers -= 1;
        if self.workers > 0 {
            return Vec::new();
        }
        self.queue.drain(..).map(|queued| queued.caller).collect()
    }

    /// Finds jobs that run too long and jobs that wait too long.
    pub(super) fn inspect(&mut self, now: Instant) -> Inspection<C> {
        let mut responses = self.abandon_overdue(now);
        responses.extend(self.reject_late(now));
        self.has_unsent_responses = !responses.is_empty();
        let wake = self.wake_for_late_jobs(now);
        let may_sleep = self.is_idle() && self.last_job_id == self.last_inspected_job_id;
        self.last_inspected_job_id = self.last_job_id;
        Inspection { responses, wakes: wake, may_sleep }
    }

    /// Closes the pool. Returns the idle workers to wake and the callers of queued jobs.
    pub(super) fn close(&mut self) -> (Vec<Thread>, Vec<C>) {
        self.is_closed = true;
        let callers = self.queue.drain(..).map(|queued| queued.caller).collect();
        (std::mem::take(&mut self.idle_workers), callers)
    }

    /// Records the start of a job or of a resource.
    fn start_job(&mut self, caller: Option<C>, now: Instant) -> JobId {
        self.last_job_id += 1;
        let id = JobId(self.last_job_id);
        self.running.push(RunningJob { id, caller, started_at: now });
        id
    }

    /// Returns whether no jobs may be started, because too many threads are abandoned.
    fn is_blocked(&self) -> bool {
        self.abandoned >= self.limits.max_abandoned
    }

    /// Wakes an idle worker, or starts one if the core is incomplete.
    fn wake_one(&mut self, now: Instant) -> Option<WakeAction> {
        if let Some(worker) = self.idle_workers.pop() {
            self.last_worker_activity = Some(now);
            return Some(WakeAction::Unpark(worker));
        }
        if self.workers >= self.limits.core_workers {
            return None;
        }
        self.last_worker_activity = Some(now);
        self.workers += 1;
        Some(WakeAction::Spawn)
    }

    /// Abandons jobs that run too long. Returns their callers.
    fn abandon_overdue(&mut self, now: Instant) -> Vec<(C, JobError)> {
        let limit = self.limits.job_timeout;
        let overdue = self.running.extract_if(.., |job| now.saturating_duration_since(job.started_at) >= limit);
        let callers: Vec<_> = overdue.map(|job| job.caller).collect();
        self.workers -= callers.len();
        self.abandoned += callers.len();
        callers.into_iter().flatten().map(|caller| (caller, JobError::TimedOut)).collect()
    }

    /// Removes jobs that have waited too long or cannot be started. Returns their callers.
    fn reject_late(&mut self, now: Instant) -> Vec<(C, JobError)> {
        let Some(timeout) = self.limits.queue_timeout else { return Vec::new() };
        if self.is_blocked() {
            return self.queue.drain(..).map(|queued| (queued.caller, JobError::NoThread)).collect();
        }
        let late = self.count_waiting_for(timeout, now);
        self.queue.drain(..late).map(|queued| (queued.caller, JobError::QueueTimeout)).collect()
    }

    /// Wakes workers for jobs that have waited too long: idle ones first, then new ones. It starts at most as many as
    /// there are already, so that a short burst of jobs does not start many threads.
    fn wake_for_late_jobs(&mut self, now: Instant) -> Vec<WakeAction> {
        if self.is_blocked() {
            return Vec::new();
        }
        let late = self.count_waiting_for(EXTRA_WORKER_DELAY, now);
        let remaining = self.idle_workers.len().saturating_sub(late);
        let mut wake: Vec<_> = self.idle_workers.drain(remaining..).map(WakeAction::Unpark).collect();
        let needed = (late - wake.len()).min(self.workers.max(1));
        let started = needed.min(self.limits.max_workers.saturating_sub(self.workers));
        self.workers += started;
        wake.extend((0..started).map(|_| WakeAction::Spawn));
        wake
    }

    /// Returns how many jobs have waited for at least `time`. They are at the front of the queue.
    fn count_waiting_for(&self, time: Duration, now: Instant) -> usize {
        self.queue.partition_point(|queued| now.saturating_duration_since(queued.queued_at) >= time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct TestCaller;

    impl Caller for TestCaller {
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
    fn starts_worker(pool: &mut PoolState<u32, TestCaller>, now: Instant) -> bool {
        matches!(pool.enqueue(0, TestCaller, now), Ok(Some(WakeAction::Spawn)))
    }

    #[test]
    fn core_workers_start_unless_one_was_just_active() {
        let mut pool = PoolState::new(limits());
        let start = Instant::now();
        assert!(starts_worker(&mut pool, start));
        assert!(!starts_worker(&mut pool, start + RECENT_WORKER_WINDOW / 2), "the first worker takes the job soon");
        assert!(starts_worker(&mut pool, start + RECENT_WORKER_WINDOW), "it has not taken the job");
        assert!(!starts_worker(&mut pool, start + 3 * RECENT_WORKER_WINDOW), "the core is complete");
    }

    #[test]
    fn slow_job_wakes_another_worker() {
        for (time, is_slow) in [(RECENT_WORKER_WINDOW / 2, false), (RECENT_WORKER_WINDOW, true)] {
            let mut pool = PoolState::new(limits());
            let start = Instant::now();
            assert!(starts_worker(&mut pool, start));
            for _ in 0..2 {
                assert!(!starts_worker(&mut pool, start));
            }
            let Assignment { id, .. } = pool.next_job(start).unwrap();
            let Finished { next, wake, .. } = pool.finish(id, true, start + time).unwrap();
            assert!(matches!(next, Next::Run(_)));
            assert_eq!(wake.is_some(), is_slow, "{time:?}");
        }
    }

    #[test]
    fn workers_double_up_to_the_maximum_while_jobs_wait() {
        let mut pool = PoolState::new(limits());
        let mut now = Instant::now();
        for _ in 0..100 {
            pool.enqueue(0, TestCaller, now).map_err(|_| "refused").unwrap();
            now += RECENT_WORKER_WINDOW;
        }
        let mut started = Vec::new();
        for _ in 0..6 {
            while pool.running.len() < pool.workers {
                pool.next_job(now).unwrap();
            }
            now += EXTRA_WORKER_DELAY;
            started.push(pool.inspect(now).wakes.len());
        }
        assert_eq!(started, [2, 4, 8, 4, 0, 0]);
    }

    #[test]
    fn job_time_starts_after_resource_creation() {
        let mut pool = PoolState::new(limits());
        let start = Instant::now();
        assert!(starts_worker(&mut pool, start));
        let Assignment { id, .. } = pool.next_job(start).unwrap();
        assert!(pool.restart_timer(id, start + SECOND));
        assert!(pool.inspect(start + 2 * SECOND).responses.is_empty());
        assert_eq!(pool.inspect(start + 3 * SECOND).responses.len(), 1);
        assert!(!pool.restart_timer(id, start + 3 * SECOND), "the job was abandoned");
        assert!(pool.finish(id, true, start + 4 * SECOND).is_none());
        assert_eq!((pool.workers, pool.abandoned), (0, 1));
        pool.release_abandoned();
        assert_eq!(pool.abandoned, 0);
    }

    #[test]
    fn resource_creation_wakes_another_worker_and_can_be_abandoned() {
        let mut pool = PoolState::new(limits());
        let start = Instant::now();
        assert!(starts_worker(&mut pool, start));
        assert!(!starts_worker(&mut pool, start));
        let Assignment { id, .. } = pool.next_job(start).unwrap();
        let Finished { caller, next: Next::CreateResource(id), wake } = pool.finish(id, false, start).unwrap() else {
            panic!("a new resource is needed");
        };
        assert!(
            caller.is_some() && matches!(wake, Some(WakeAction::Spawn)),
            "the other job does not wait for the resource"
        );
        assert!(!pool.is_idle());
        assert!(pool.inspect(start + 2 * SECOND).responses.is_empty(), "no caller waits for the resource");
        assert!(pool.finish(id, true, start + 2 * SECOND).is_none());
        assert_eq!(pool.abandoned, 1);
    }

    #[test]
    fn closing_returns_queued_callers() {
        let mut pool = PoolState::new(limits());
        let start = Instant::now();
        assert!(starts_worker(&mut pool, start));
        let Assignment { id, .. } = pool.next_job(start).unwrap();
        assert!(starts_worker(&mut pool, start + SECOND));
        assert_eq!(pool.close().1.len(), 1);
        let Finished { caller, next, .. } = pool.finish(id, false, start + SECOND).unwrap();
        assert!(caller.is_some() && matches!(next, Next::Sleep));
        assert!(matches!(pool.enqueue(0, TestCaller, start), Err((TestCaller, JobError::Closed))));
    }

    #[test]
    fn queued_callers_are_returned_if_no_worker_starts() {
        let mut pool = PoolState::new(limits());
        let start = Instant::now();
        assert!(starts_worker(&mut pool, start));
        assert!(starts_worker(&mut pool, start + SECOND));
        assert!(pool.worker_start_failed().is_empty(), "there is another worker");
        assert_eq!(pool.worker_start_failed().len(), 2);
        assert!(pool.is_idle());
    }

    #[test]
    fn watchdog_sleeps_one_inspection_after_the_last_job() {
        let mut pool = PoolState::new(limits());
        let start = Instant::now();
        assert!(pool.inspect(start).may_sleep);
        assert!(starts_worker(&mut pool, start));
        assert!(!pool.inspect(start).may_sleep);
        let Assignment { id, .. } = pool.next_job(start).unwrap();
        assert!(pool.finish(id, true, start).is_some());
        pool.add_idle(std::thread::current());
        assert!(!pool.inspect(start).may_sleep);
        assert!(pool.inspect(start).may_sleep);
    }
}
