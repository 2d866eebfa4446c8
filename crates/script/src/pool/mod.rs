//! Threads that do one job at a time each, with a tool that is theirs: here a Lua state, in tests something made up.
//!
//! Workers are started when they are needed. When jobs wait because every worker is held up, more are started for a while,
//! so that a slow job delays only those who wait for it. A job that does not come to its end is given up by the watchdog:
//! who waits for it gets an answer, and its thread, which cannot be stopped, no longer counts and ends when the job does.
//! Everything is bounded: the jobs that wait, the workers, and the threads that were given up.
//!
//! What the workers do is a [`Craft`]. Who waits, who works and who sleeps is kept in the [`roster`], which knows neither
//! clock nor thread; [`house`] adds both.

mod house;
mod roster;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use house::House;
use roster::Help;

/// What the workers of a pool know how to do.
pub(crate) trait Craft: Send + Sync + 'static {
    /// What a worker needs, and keeps from one job to the next. It never leaves the worker's thread.
    type Tool;
    /// What is to be done.
    type Job: Send + 'static;
    /// Who waits for it.
    type Caller: Caller;
    /// What the caller gets.
    type Answer;

    /// Whether the tool can be used for one more job.
    fn is_fit(&self, tool: &Self::Tool) -> bool;

    /// Makes a tool. When that fails, the job for which it was needed is answered at once. Where a tool is no longer fit
    /// after a job, the next one is made before anybody needs it.
    fn make(&self) -> Result<Self::Tool, Self::Answer>;

    /// Does a job. May take its time, but is given up after [`Limits::call`]; so is [`Craft::make`].
    fn work(&self, tool: &mut Self::Tool, job: Self::Job) -> Self::Answer;

    /// Tells the caller what has become of its job. Called once for every job that was submitted, unless the caller was
    /// gone before it was begun: on the thread of the worker, of the watchdog, of the submitter, or of whoever closes the
    /// pool. Must return at once.
    fn answer(&self, caller: Self::Caller, answer: Result<Self::Answer, Failure>);
}

/// Who waits for a job.
pub(crate) trait Caller: Send + 'static {
    /// Whether there is nobody left to be answered, so that the job need not be begun.
    fn is_gone(&self) -> bool;
}

/// Why a job was not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// It took too long and was given up.
    Overrun,
    /// It panicked.
    Panicked,
    /// No worker was free in time.
    Late,
    /// Too many jobs wait already.
    Full,
    /// No thread can be had: too many are still busy with what was given up, or the system gives none.
    Stuck,
    /// The pool was closed before it was begun.
    Closed,
}

/// The bounds of a pool.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    /// How many workers there are as long as jobs are quick.
    pub(crate) core: usize,
    /// How many workers there may be while jobs are held up.
    pub(crate) most: usize,
    /// How long a worker beyond the core sleeps before it ends.
    pub(crate) idle: Duration,
    /// How many jobs may wait.
    pub(crate) queue: usize,
    /// How long a job may wait; for ever when callers are patient.
    pub(crate) wait: Option<Duration>,
    /// How long a job may take before it is given up.
    pub(crate) call: Duration,
    /// How many threads may be busy with jobs that were given up. When there are so many, no job is begun.
    pub(crate) abandoned: usize,
}

/// A worker that is yet to be called. Whoever lets others submit their jobs first saves calls, which are what a quick job
/// costs most.
pub(crate) struct Due<'a, C: Craft> {
    house: &'a Arc<House<C>>,
    help: Option<Help>,
}

impl<C: Craft> Due<'_, C> {
    /// Whether there is somebody to call at all.
    pub(crate) fn is_pressing(&self) -> bool {
        self.help.is_some()
    }
}

impl<C: Craft> Drop for Due<'_, C> {
    fn drop(&mut self) {
        self.house.call(self.help.take());
    }
}

/// See the module's documentation. A pool that is dropped is closed.
pub(crate) struct Pool<C: Craft> {
    house: Arc<House<C>>,
}

impl<C: Craft> Pool<C> {
    /// A pool that has no threads yet.
    pub(crate) fn new(craft: C, limits: Limits) -> Self {
        Self { house: Arc::new(House::new(craft, limits)) }
    }

    /// Lets a worker do this job. Never waits. If one has to be called for it, that happens when the answer is dropped.
    pub(crate) fn submit(&self, job: C::Job, caller: C::Caller) -> Due<'_, C> {
        Due { house: &self.house, help: self.house.submit(job, caller) }
    }

    /// How many jobs wait.
    pub(crate) fn waiting(&self) -> usize {
        self.house.lock().roster.waiting()
    }

    /// How many threads are busy with jobs that were given up.
    pub(crate) fn abandoned(&self) -> usize {
        self.house.lock().roster.abandoned()
    }

    /// Begins no more jobs: those that wait are answered, and so is every later one. What is under way goes on, and its
    /// threads end with it. Says how many jobs have waited; none when the pool was closed before.
    pub(crate) fn close(&self) -> Option<usize> {
        self.house.close()
    }

    /// Waits until there is nothing left to do, the pool is closed, or time is up. Says whether there is nothing left.
    pub(crate) fn wait_until_quiet(&self, patience: Duration) -> bool {
        self.house.wait_until_quiet(patience)
    }
}

impl<C: Craft> Drop for Pool<C> {
    fn drop(&mut self) {
        self.house.close();
    }
}
