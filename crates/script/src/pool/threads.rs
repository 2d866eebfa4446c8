//! The threads of a pool: the workers and the watchdog. The decisions are made by [`super::pool_state`].

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::thread::Thread;
use std::time::{Duration, Instant};

use super::pool_state::{Assignment, EXTRA_WORKER_DELAY, Finished, Inspection, JobId, Next, PoolState, WakeAction};
use super::{JobError, Limits, Worker};
use crate::limits::THREAD_STACK_BYTES;

/// What the threads of a pool share.
pub(super) struct Threads<W: Worker> {
    pub(super) worker: W,
    limits: Limits,
    state: Mutex<State<W>>,
    /// Notified when the pool becomes idle, if a thread waits for it.
    became_idle: Condvar,
}

type PoolStateOf<W> = PoolState<<W as Worker>::Job, <W as Worker>::Caller>;

pub(super) struct State<W: Worker> {
    pub(super) pool: PoolStateOf<W>,
    watchdog: Watchdog,
    idle_waiters: usize,
}

/// The thread that checks the workers. It sleeps while nothing runs.
enum Watchdog {
    NotStarted,
    Awake,
    Asleep(Thread),
}

impl<W: Worker> State<W> {
    /// Wakes the watchdog if it sleeps.
    fn wake_watchdog(&mut self) {
        if let Watchdog::Asleep(watchdog) = &self.watchdog {
            watchdog.unpark();
            self.watchdog = Watchdog::Awake;
        }
    }
}

impl<W: Worker> Threads<W> {
    pub(super) fn new(worker: W, limits: Limits) -> Self {
        let pool = PoolState::new(limits.clone());
        let state = Mutex::new(State { pool, watchdog: Watchdog::NotStarted, idle_waiters: 0 });
        Self { worker, limits, state, became_idle: Condvar::new() }
    }

    /// Locks the state. Nothing panics while it holds the lock; even then the state would be usable.
    pub(super) fn lock(&self) -> MutexGuard<'_, State<W>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Enqueues a job, or responds with an error at once. Returns a worker to wake, if one is needed.
    pub(super) fn submit(&self, job: W::Job, caller: W::Caller) -> Option<WakeAction> {
        let now = Instant::now();
        let enqueued = self.lock().pool.enqueue(job, caller, now);
        enqueued.unwrap_or_else(|(caller, error)| {
            self.worker.respond(caller, Err(error));
            None
        })
    }

    pub(super) fn wait_until_idle(&self, timeout: Duration) -> bool {
        let mut state = self.lock();
        state.idle_waiters += 1;
        let result = self
            .became_idle
            .wait_timeout_while(state, timeout, |state| !state.pool.is_idle() && !state.pool.is_closed());
        let (mut state, _) = result.unwrap_or_else(PoisonError::into_inner);
        state.idle_waiters -= 1;
        state.pool.is_idle()
    }

    pub(super) fn close(&self) -> Option<usize> {
        let mut state = self.lock();
        if state.pool.is_closed() {
            return None;
        }
        let (idle_workers, callers) = state.pool.close();
        state.wake_watchdog();
        drop(state);
        self.became_idle.notify_all();
        idle_workers.iter().for_each(Thread::unpark);
        let waiting = callers.len();
        for caller in callers {
            self.worker.respond(caller, Err(JobError::Closed));
        }
        Some(waiting)
    }

    /// Wakes or starts workers.
    pub(super) fn wake(self: &Arc<Self>, wake: impl IntoIterator<Item = WakeAction>) {
        for wake in wake {
            match wake {
                WakeAction::Unpark(worker) => worker.unpark(),
                WakeAction::Spawn => self.start_worker(),
            }
        }
    }

    /// Starts a worker, and the watchdog with the first one.
    fn start_worker(self: &Arc<Self>) {
        let Err(error) = self.start_watchdog().and_then(|()| self.spawn_thread("script", Self::run_worker)) else {
            return;
        };
        tracing::error!(%error, "cannot start a thread for scripts");
        let callers = self.lock().pool.worker_start_failed();
        for caller in callers {
            self.worker.respond(caller, Err(JobError::NoThread));
        }
    }

    fn start_watchdog(self: &Arc<Self>) -> io::Result<()> {
        let mut state = self.lock();
        if matches!(state.watchdog, Watchdog::NotStarted) {
            self.spawn_thread("script watchdog", Self::run_watchdog)?;
            state.watchdog = Watchdog::Awake;
        }
        Ok(())
    }

    fn spawn_thread(self: &Arc<Self>, name: &str, run: fn(&Arc<Self>)) -> io::Result<()> {
        let threads = self.clone();
        thread::Builder::new()
            .name(name.to_owned())
            .stack_size(THREAD_STACK_BYTES)
            .spawn(move || run(&threads))
            .map(|_| ())
    }

    /// The main loop of a worker.
    fn run_worker(self: &Arc<Self>) {
        let mut resource = None;
        let mut next = Next::Sleep;
        loop {
            let (id, result) = match next {
                Next::Run(Assignment { id, job }) => {
                    // A panic fails this job only. The resource is dropped, because it may be in any state.
                    let result = catch_unwind(AssertUnwindSafe(|| self.run_job(&mut resource, id, job)));
                    (id, Some(result.unwrap_or(Err(JobError::Panicked))))
                }
                Next::CreateResource(id) => {
                    drop(resource.take());
                    // If this fails, the next job tries again and reports the error.
                    resource = catch_unwind(AssertUnwindSafe(|| self.worker.create().ok())).ok().flatten();
                    (id, None)
                }
                Next::Sleep => {
                    let Some(assignment) = self.wait_for_job() else { return };
                    next = Next::Run(assignment);
                    continue;
                }
            };
            let is_reusable = resource.as_ref().is_none_or(|resource| self.worker.is_reusable(resource));
            let finished = self.lock().pool.finish(id, is_reusable, Instant::now());
            let Some(Finished { caller, next: next_step, wake }) = finished else {
                drop(resource);
                return self.lock().pool.release_abandoned();
            };
            if let (Some(caller), Some(result)) = (caller, result) {
                self.worker.respond(caller, result);
            }
            self.wake(wake);
            next = next_step;
        }
    }

    /// Runs a job. Creates a new resource first if the old one cannot be reused.
    fn run_job(&self, resource: &mut Option<W::Resource>, id: JobId, job: W::Job) -> Result<W::Output, JobError> {
        let mut ready = match resource.take() {
            Some(resource) if self.worker.is_reusable(&resource) => resource,
            unusable => {
                drop(unusable);
                let created = match self.worker.create() {
                    Ok(created) => created,
                    Err(output) => return Ok(output),
                };
                if !self.lock().pool.restart_timer(id, Instant::now()) {
                    return Err(JobError::TimedOut);
                }
                created
            }
        };
        let output = self.worker.run(&mut ready, job);
        *resource = Some(ready);
        Ok(output)
    }

    /// Sleeps until there is a job. Returns `None` when the worker must stop.
    fn wait_for_job(&self) -> Option<Assignment<W::Job>> {
        let mut has_timed_out = false;
        loop {
            let mut state = self.lock();
            state.pool.remove_idle(thread::current().id());
            let assignment = state.pool.next_job(Instant::now());
            // The watchdog also handles jobs that wait because none may be started.
            if assignment.is_some() || state.pool.waiting() > 0 {
                state.wake_watchdog();
            }
            if assignment.is_some() {
                return assignment;
            }
            let retires = (has_timed_out || state.pool.is_closed()) && state.pool.try_retire();
            let is_core = !retires && state.pool.add_idle(thread::current());
            self.notify_if_idle(&state);
            drop(state);
            if retires {
                return None;
            }
            let asleep_since = Instant::now();
            if is_core {
                thread::park();
            } else {
                thread::park_timeout(self.limits.idle_timeout);
            }
            has_timed_out = asleep_since.elapsed() >= self.limits.idle_timeout;
        }
    }

    /// The main loop of the watchdog.
    fn run_watchdog(self: &Arc<Self>) {
        loop {
            let mut state = self.lock();
            if state.pool.is_closed() {
                return;
            }
            let Inspection { responses, wakes: wake, may_sleep } = state.pool.inspect(Instant::now());
            state.watchdog = if may_sleep { Watchdog::Asleep(thread::current()) } else { Watchdog::Awake };
            self.notify_if_idle(&state);
            drop(state);
            for (caller, error) in responses {
                self.worker.respond(caller, Err(error));
            }
            self.wake(wake);
            if may_sleep {
                thread::park();
            } else {
                thread::park_timeout(EXTRA_WORKER_DELAY);
            }
        }
    }

    fn notify_if_idle(&self, state: &State<W>) {
        if state.idle_waiters > 0 && state.pool.is_idle() {
            self.became_idle.notify_all();
        }
    }
}
