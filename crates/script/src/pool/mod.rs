//! A pool of threads that run one job at a time, each with its own resource: a Lua state, or a fake in tests.
//!
//! Workers are started when they are needed. If jobs wait because all workers are blocked, additional workers are
//! started for a while, so that a slow job delays only its own caller. A job that does not end is abandoned by the
//! watchdog: its caller gets an error, and its thread, which cannot be stopped, is no longer counted and ends with the
//! job. All numbers are limited: queued jobs, workers and abandoned threads.
//!
//! The work is defined by the trait [`Worker`]. [`pool_state`] decides which jobs wait, run or are abandoned, without
//! threads or a clock; [`threads`] adds both.

mod pool_state;
#[cfg(test)]
mod tests;
mod threads;

use std::sync::Arc;
use std::time::Duration;

use pool_state::WakeAction;
use threads::Threads;

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

    /// Runs a job. It is abandoned after [`Limits::job_timeout`]; so is [`Worker::create`].
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
    /// How long a worker beyond the core sleeps before it ends.
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

/// Wakes a worker when it is dropped. A caller that lets others submit their jobs first saves wake-ups, which are the
/// largest cost of a fast job.
pub(crate) struct DeferredWake<'a, W: Worker> {
    threads: &'a Arc<Threads<W>>,
    wake: Option<WakeAction>,
}

impl<W: Worker> DeferredWake<'_, W> {
    /// Returns whether there is a worker to wake.
    pub(crate) fn is_needed(&self) -> bool {
        self.wake.is_some()
    }
}

impl<W: Worker> Drop for DeferredWake<'_, W> {
    fn drop(&mut self) {
        self.threads.wake(self.wake.take());
    }
}

/// A pool of threads. See the module documentation. Dropping it closes it.
pub(crate) struct Pool<W: Worker> {
    threads: Arc<Threads<W>>,
}

impl<W: Worker> Pool<W> {
    /// Creates a pool without threads.
    pub(crate) fn new(worker: W, limits: Limits) -> Self {
        Self { threads: Arc::new(Threads::new(worker, limits)) }
    }

    /// Submits a job. Never blocks. If a worker must be woken for it, that happens when the result is dropped.
    pub(crate) fn submit(&self, job: W::Job, caller: W::Caller) -> DeferredWake<'_, W> {
        DeferredWake { threads: &self.threads, wake: self.threads.submit(job, caller) }
    }

    /// Returns the number of queued jobs.
    pub(crate) fn waiting(&self) -> usize {
        self.threads.lock().pool.waiting()
    }

    /// Returns the number of abandoned threads.
    pub(crate) fn abandoned(&self) -> usize {
        self.threads.lock().pool.abandoned()
    }

    /// Closes the pool: fails all queued and all later jobs. Running jobs continue, and their threads end with them.
    /// Returns the number of queued jobs, or `None` if the pool was closed before.
    pub(crate) fn close(&self) -> Option<usize> {
        self.threads.close()
    }

    /// Waits until no job is queued or running, the pool is closed, or `timeout` has passed. Returns whether the pool
    /// is idle.
    pub(crate) fn wait_until_idle(&self, timeout: Duration) -> bool {
        self.threads.wait_until_idle(timeout)
    }
}

impl<W: Worker> Drop for Pool<W> {
    fn drop(&mut self) {
        self.threads.close();
    }
}
