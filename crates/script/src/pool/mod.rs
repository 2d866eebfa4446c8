//! A pool of threads that run one job at a time, each with its own resource: a Lua state, or a fake in tests.
//!
//! Workers are started when they are needed. If jobs wait because all workers are blocked, additional workers are
//! started for a while, so that a slow job delays only its own caller. A job that does not end is abandoned by the
//! watchdog: its caller gets an error, and its thread, which cannot be stopped, is no longer counted and ends with the
//! job. All numbers are limited: queued jobs, workers and abandoned threads.
//!
//! The threads are not those of Tokio for blocking work: Lua needs a large stack, and a worker that takes the next job itself is
//! faster than one that is woken for each job.

#[cfg(test)]
mod tests;
mod worker;

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::limits::THREAD_STACK_BYTES;

/// How often the watchdog checks the jobs, and how long a job waits before it gets a worker beyond the core.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// The work of a pool.
pub(crate) trait Worker: Send + Sync + 'static {
    /// What a worker needs, and keeps from one job to the next. It never leaves the thread of the worker.
    type Resource;
    /// The input of a job.
    type Job: Send + 'static;
    /// The caller that waits for the job.
    type Caller: Caller;
    /// The output for the caller.
    type Output;

    /// Returns whether the resource can be used for another job.
    fn is_reusable(&self, resource: &Self::Resource) -> bool;

    /// Creates a resource. On failure, the error is the output of the job that needed it. If a resource cannot be
    /// reused after a job, the next one is created before a job needs it.
    fn create(&self) -> Result<Self::Resource, Self::Output>;

    /// Runs a job. It is abandoned after [`Limits::job_timeout`]; so is [`Worker::create`], together with dropping the
    /// resource before.
    fn run(&self, resource: &mut Self::Resource, job: Self::Job) -> Self::Output;

    /// Passes the result to the caller. Called once for every submitted job, unless its caller was gone before the job
    /// started. Runs on the thread of the worker, of the watchdog, of the submitter, or of the one that closes the
    /// pool. Must not block.
    fn respond(&self, caller: Self::Caller, result: Result<Self::Output, JobError>);
}

/// The caller of a job.
pub(crate) trait Caller: Send + 'static {
    /// Returns whether the caller no longer waits, so that the job need not be started.
    fn is_gone(&self) -> bool;
}

/// The reason why a job was not completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JobError {
    /// It took too long and was abandoned.
    TimedOut,
    /// It panicked.
    Panicked,
    /// No worker was free in time.
    QueueTimeout,
    /// The queue was full.
    QueueFull,
    /// No thread is available: too many are abandoned, or the system cannot start one.
    NoThread,
    /// The pool was closed before the job started.
    Closed,
}

/// The limits of a pool.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    /// The number of workers while jobs are fast.
    pub(crate) core_workers: usize,
    /// The maximum number of workers while jobs are slow.
    pub(crate) max_workers: usize,
    /// How long a worker beyond the core waits for a job before it ends.
    pub(crate) idle_timeout: Duration,
    /// The maximum number of queued jobs.
    pub(crate) max_queued: usize,
    /// How long a job may wait; `None` for no limit.
    pub(crate) queue_timeout: Option<Duration>,
    /// How long a job may run before it is abandoned.
    pub(crate) job_timeout: Duration,
    /// The maximum number of abandoned threads. While it is reached, no job is started.
    pub(crate) max_abandoned: usize,
}

/// A pool of threads. See the module documentation. Dropping it closes it.
pub(crate) struct Pool<W: Worker>(Arc<Inner<W>>);

/// What the threads of a pool share.
struct Inner<W: Worker> {
    worker: W,
    limits: Limits,
    state: Mutex<State<W>>,
    /// Notified if there is a job for an idle worker, and when the pool is closed.
    job_added: Condvar,
    /// Notified when the pool becomes idle, and when it is closed.
    became_idle: Condvar,
    /// Notified if the watchdog has jobs to check, and when the pool is closed.
    watchdog_needed: Condvar,
}

struct State<W: Worker> {
    /// Jobs in the order of submission, in which they are started.
    queue: VecDeque<QueuedJob<W>>,
    running: Vec<RunningJob<W::Caller>>,
    /// The number of threads that take jobs, idle or not.
    workers: usize,
    idle_workers: usize,
    abandoned: usize,
    last_job_id: u64,
    watchdog: Watchdog,
    /// Whether the watchdog has responses to send.
    has_unsent_responses: bool,
    is_closed: bool,
}

struct QueuedJob<W: Worker> {
    job: W::Job,
    caller: W::Caller,
    queued_at: Instant,
}

struct RunningJob<C> {
    id: u64,
    /// `None` while a resource is replaced in advance.
    caller: Option<C>,
    started_at: Instant,
}

/// The thread that checks the jobs. It waits while there are none.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Watchdog {
    NotStarted,
    Active,
    Waiting,
}

impl<W: Worker> Pool<W> {
    /// Creates a pool without threads.
    pub(crate) fn new(worker: W, limits: Limits) -> Self {
        let state = State {
            queue: VecDeque::new(),
            running: Vec::new(),
            workers: 0,
            idle_workers: 0,
            abandoned: 0,
            last_job_id: 0,
            watchdog: Watchdog::NotStarted,
            has_unsent_responses: false,
            is_closed: false,
        };
        let [job_added, became_idle, watchdog_needed] = [(); 3].map(|()| Condvar::new());
        Self(Arc::new(Inner { worker, limits, state: Mutex::new(state), job_added, became_idle, watchdog_needed }))
    }

    /// Submits a job, or responds with an error at once. Never blocks.
    pub(crate) fn submit(&self, job: W::Job, caller: W::Caller) {
        let Inner { limits, worker, state, job_added, .. } = &*self.0;
        let mut state = state.lock();
        let error = if state.is_closed {
            JobError::Closed
        } else if limits.queue_timeout.is_some() && state.is_blocked(limits) {
            JobError::NoThread
        } else if state.queue.len() >= limits.max_queued {
            JobError::QueueFull
        } else {
            state.queue.push_back(QueuedJob { job, caller, queued_at: Instant::now() });
            if state.idle_workers > 0 {
                job_added.notify_one();
            } else if state.workers < limits.core_workers {
                state.workers += 1;
                drop(state);
                self.0.start_worker();
            }
            return;
        };
        drop(state);
        worker.respond(caller, Err(error));
    }

    /// Returns the number of queued jobs.
    pub(crate) fn waiting(&self) -> usize {
        self.0.state.lock().queue.len()
    }

    /// Returns the number of abandoned threads.
    pub(crate) fn abandoned(&self) -> usize {
        self.0.state.lock().abandoned
    }

    /// Closes the pool: fails all queued and all later jobs. Running jobs continue, and their threads end with them.
    /// Returns the number of queued jobs, or `None` if the pool was closed before.
    pub(crate) fn close(&self) -> Option<usize> {
        let mut state = self.0.state.lock();
        if std::mem::replace(&mut state.is_closed, true) {
            return None;
        }
        let queued = std::mem::take(&mut state.queue);
        drop(state);
        for condvar in [&self.0.job_added, &self.0.became_idle, &self.0.watchdog_needed] {
            condvar.notify_all();
        }
        let count = queued.len();
        for QueuedJob { caller, .. } in queued {
            self.0.worker.respond(caller, Err(JobError::Closed));
        }
        Some(count)
    }

    /// Waits until no job is queued or running, the pool is closed, or `timeout` has passed. Returns whether the pool
    /// is idle.
    pub(crate) fn wait_until_idle(&self, timeout: Duration) -> bool {
        let mut state = self.0.state.lock();
        self.0.became_idle.wait_while_for(&mut state, |state| !state.is_idle() && !state.is_closed, timeout);
        state.is_idle()
    }
}

impl<W: Worker> Drop for Pool<W> {
    fn drop(&mut self) {
        self.close();
    }
}

impl<W: Worker> State<W> {
    /// Returns whether nothing is queued or running. An active worker may still have to send a response, so it counts
    /// as running.
    fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.workers == self.idle_workers && !self.has_unsent_responses
    }

    /// Returns whether no jobs may be started, because too many threads are abandoned.
    fn is_blocked(&self, limits: &Limits) -> bool {
        self.abandoned >= limits.max_abandoned
    }
}

impl<W: Worker> Inner<W> {
    /// Starts a worker that was counted already, and the watchdog with the first one. If there is no worker at all, the
    /// queued jobs fail.
    fn start_worker(self: &Arc<Self>) {
        let Err(error) = self.start_watchdog().and_then(|()| self.spawn("script", Self::run_worker)) else { return };
        tracing::error!(%error, "cannot start a thread for scripts");
        let mut state = self.state.lock();
        state.workers -= 1;
        let failed = if state.workers == 0 { std::mem::take(&mut state.queue) } else { VecDeque::new() };
        drop(state);
        for QueuedJob { caller, .. } in failed {
            self.worker.respond(caller, Err(JobError::NoThread));
        }
    }

    fn start_watchdog(self: &Arc<Self>) -> io::Result<()> {
        let mut state = self.state.lock();
        if state.watchdog == Watchdog::NotStarted {
            self.spawn("script watchdog", Self::run_watchdog)?;
            state.watchdog = Watchdog::Active;
        }
        Ok(())
    }

    fn spawn(self: &Arc<Self>, name: &str, run: fn(&Arc<Self>)) -> io::Result<()> {
        let inner = self.clone();
        let thread = thread::Builder::new().name(name.to_owned()).stack_size(THREAD_STACK_BYTES);
        thread.spawn(move || run(&inner)).map(|_| ())
    }

    /// The main loop of the watchdog: fails jobs that run or wait too long, and starts workers for those that wait.
    fn run_watchdog(self: &Arc<Self>) {
        let mut state = self.state.lock();
        while !state.is_closed {
            if state.is_idle() {
                state.watchdog = Watchdog::Waiting;
                self.watchdog_needed.wait(&mut state);
                state.watchdog = Watchdog::Active;
            } else {
                self.watchdog_needed.wait_for(&mut state, CHECK_INTERVAL);
            }
            let now = Instant::now();
            let mut failed = state.abandon_overdue(&self.limits, now);
            failed.extend(state.reject_late(&self.limits, now));
            let added = state.add_workers(&self.limits, now);
            state.has_unsent_responses = !failed.is_empty();
            if !state.queue.is_empty() {
                self.job_added.notify_all();
            }
            drop(state);
            for (caller, error) in failed {
                self.worker.respond(caller, Err(error));
            }
            (0..added).for_each(|_| self.start_worker());
            state = self.state.lock();
            state.has_unsent_responses = false;
            self.notify_if_idle(&state);
        }
    }

    fn notify_if_idle(&self, state: &State<W>) {
        if state.is_idle() {
            self.became_idle.notify_all();
        }
    }
}

impl<W: Worker> State<W> {
    /// Abandons jobs that run too long. Returns their callers.
    fn abandon_overdue(&mut self, limits: &Limits, now: Instant) -> Vec<(W::Caller, JobError)> {
        let is_overdue =
            |job: &mut RunningJob<W::Caller>| now.saturating_duration_since(job.started_at) >= limits.job_timeout;
        let overdue: Vec<_> = self.running.extract_if(.., is_overdue).collect();
        self.workers -= overdue.len();
        self.abandoned += overdue.len();
        overdue.into_iter().filter_map(|job| Some((job.caller?, JobError::TimedOut))).collect()
    }

    /// Removes jobs that have waited too long or cannot be started. Returns their callers.
    fn reject_late(&mut self, limits: &Limits, now: Instant) -> Vec<(W::Caller, JobError)> {
        let Some(timeout) = limits.queue_timeout else { return Vec::new() };
        let (late, error) = if self.is_blocked(limits) {
            (self.queue.len(), JobError::NoThread)
        } else {
            (self.count_waiting_for(timeout, now), JobError::QueueTimeout)
        };
        self.queue.drain(..late).map(|queued| (queued.caller, error)).collect()
    }

    /// Counts new workers for jobs that have waited too long. Returns their number: at most as many as there are already,
    /// so that a short burst of jobs does not start many threads.
    fn add_workers(&mut self, limits: &Limits, now: Instant) -> usize {
        let late = self.count_waiting_for(CHECK_INTERVAL, now).saturating_sub(self.idle_workers);
        if late == 0 || self.is_blocked(limits) {
            return 0;
        }
        let added = late.min(self.workers.max(1)).min(limits.max_workers.saturating_sub(self.workers));
        self.workers += added;
        added
    }

    /// Returns how many jobs have waited for at least `time`. They are at the front of the queue.
    fn count_waiting_for(&self, time: Duration, now: Instant) -> usize {
        self.queue.partition_point(|queued| now.saturating_duration_since(queued.queued_at) >= time)
    }
}
