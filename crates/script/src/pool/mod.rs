//! Threads that do one job at a time each, with a tool that is theirs: here a Lua state, in tests something made up.
//!
//! Workers are started when they are needed. When jobs wait because every worker is held up, more are started for a while,
//! so that a slow job delays only those who wait for it. A job that does not come to its end is given up by the watchdog:
//! who waits for it gets an answer, and its thread, which cannot be stopped, no longer counts and ends when the job does.
//! Everything is bounded: the jobs that wait, the workers, and the threads that were given up.
//!
//! What the workers do is a [`Craft`]. Who waits, who works and who sleeps is kept in the [`roster`], which knows neither
//! clock nor thread; [`house`] adds both.

mod pool_state;
#[cfg(test)]
mod tests;
mod threads;

use std::sync::Arc;
use std::time::Duration;

use pool_state::WakeAction;
use threads::Threads;

/// What the workers of a pool know how to do.
pub(crate) trait Worker: Send + Sync + 'static {
    /// What a worker needs, and keeps from one job to the next. It never leaves the worker's thread.
    type Resource;
    /// What is to be done.
    type Job: Send + 'static;
    /// Who waits for it.
    type Caller: Caller;
    /// What the caller gets.
    type Output;

    /// Whether the tool can be used for one more job.
    fn is_reusable(&self, tool: &Self::Resource) -> bool;

    /// Makes a tool. When that fails, the job for which it was needed is answered at once. Where a tool is no longer fit
    /// after a job, the next one is made before anybody needs it.
    fn create(&self) -> Result<Self::Resource, Self::Output>;

    /// Does a job. May take its time, but is given up after [`Limits::call`]; so is [`Craft::make`].
    fn run(&self, tool: &mut Self::Resource, job: Self::Job) -> Self::Output;

    /// Tells the caller what has become of its job. Called once for every job that was submitted, unless the caller was
    /// gone before it was begun: on the thread of the worker, of the watchdog, of the submitter, or of whoever closes the
    /// pool. Must return at once.
    fn respond(&self, caller: Self::Caller, answer: Result<Self::Output, JobError>);
}

/// Who waits for a job.
pub(crate) trait Caller: Send + 'static {
    /// Whether there is nobody left to be answered, so that the job need not be begun.
    fn is_gone(&self) -> bool;
}

/// Why a job was not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JobError {
    /// It took too long and was given up.
    TimedOut,
    /// It panicked.
    Panicked,
    /// No worker was free in time.
    QueueTimeout,
    /// Too many jobs wait already.
    QueueFull,
    /// No thread can be had: too many are still busy with what was given up, or the system gives none.
    NoThread,
    /// The pool was closed before it was begun.
    Closed,
}

/// The bounds of a pool.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    /// How many workers there are as long as jobs are quick.
    pub(crate) core_workers: usize,
    /// How many workers there may be while jobs are held up.
    pub(crate) max_workers: usize,
    /// How long a worker beyond the core sleeps before it ends.
    pub(crate) idle_timeout: Duration,
    /// How many jobs may wait.
    pub(crate) max_queued: usize,
    /// How long a job may wait; for ever when callers are patient.
    pub(crate) queue_timeout: Option<Duration>,
    /// How long a job may take before it is given up.
    pub(crate) job_timeout: Duration,
    /// How many threads may be busy with jobs that were given up. When there are so many, no job is begun.
    pub(crate) max_abandoned: usize,
}

/// A worker that is yet to be called. Whoever lets others submit their jobs first saves calls, which are what a quick job
/// costs most.
pub(crate) struct DeferredWake<'a, C: Worker> {
    threads: &'a Arc<Threads<C>>,
    wake: Option<WakeAction>,
}

impl<C: Worker> DeferredWake<'_, C> {
    /// Whether there is somebody to call at all.
    pub(crate) fn is_needed(&self) -> bool {
        self.wake.is_some()
    }
}

impl<C: Worker> Drop for DeferredWake<'_, C> {
    fn drop(&mut self) {
        self.threads.wake(self.wake.take());
    }
}

/// See the module's documentation. A pool that is dropped is closed.
pub(crate) struct Pool<C: Worker> {
    threads: Arc<Threads<C>>,
}

impl<C: Worker> Pool<C> {
    /// A pool that has no threads yet.
    pub(crate) fn new(craft: C, limits: Limits) -> Self {
        Self { threads: Arc::new(Threads::new(craft, limits)) }
    }

    /// Lets a worker do this job. Never waits. If one has to be called for it, that happens when the answer is dropped.
    pub(crate) fn submit(&self, job: C::Job, caller: C::Caller) -> DeferredWake<'_, C> {
        DeferredWake { threads: &self.threads, wake: self.threads.submit(job, caller) }
    }

    /// How many jobs wait.
    pub(crate) fn waiting(&self) -> usize {
        self.threads.lock().pool.waiting()
    }

    /// How many threads are busy with jobs that were given up.
    pub(crate) fn abandoned(&self) -> usize {
        self.threads.lock().pool.abandoned()
    }

    /// Begins no more jobs: those that wait are answered, and so is every later one. What is under way goes on, and its
    /// threads end with it. Says how many jobs have waited; none when the pool was closed before.
    pub(crate) fn close(&self) -> Option<usize> {
        self.threads.close()
    }

    /// Waits until there is nothing left to do, the pool is closed, or time is up. Says whether there is nothing left.
    pub(crate) fn wait_until_idle(&self, patience: Duration) -> bool {
        self.threads.wait_until_idle(patience)
    }
}

impl<C: Worker> Drop for Pool<C> {
    fn drop(&mut self) {
        self.threads.close();
    }
}
