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
pub(super) struct Threads<C: Worker> {
    pub(super) worker: C,
    limits: Limits,
    state: Mutex<State<C>>,
    /// Notified when the pool becomes idle, if a thread waits for it.
    became_idle: Condvar,
}

type PoolStateOf<C> = PoolState<<C as Worker>::Job, <C as Worker>::Caller>;

pub(super) struct State<C: Worker> {
    pub(super) pool: PoolStateOf<C>,
    watchdog: Watchdog,
    idle_waiters: usize,
}

/// The thread that checks the workers. It sleeps while nothing runs.
enum Watchdog {
    NotStarted,
    Awake,
    Asleep(Thread),
}

impl<C: Worker> State<C> {
    /// Wakes the watchdog if it sleeps.
    fn wake_watchdog(&mut self) {
        if let Watchdog::Asleep(watchdog) = &self.watchdog {
            watchdog.unpark();
            self.watchdog = Watchdog::Awake;
        }
    }
}

impl<C: Worker> Threads<C> {
    pub(super) fn new(craft: C, limits: Limits) -> Self {
        let roster = PoolState::new(limits.clone());
        let state = Mutex::new(State { pool: roster, watchdog: Watchdog::NotStarted, idle_waiters: 0 });
        Self { worker: craft, limits, state, became_idle: Condvar::new() }
    }

    /// Locks the state. Nothing panics while it holds the lock; even then the state would be usable.
    pub(super) fn lock(&self) -> MutexGuard<'_, State<C>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Enqueues a job, or responds with an error at once. Returns a worker to wake, if one is needed.
    pub(super) fn submit(&self, job: C::Job, caller: C::Caller) -> Option<WakeAction> {
        let now = Instant::now();
        let admitted = self.lock().pool.enqueue(job, caller, now);
        admitted.unwrap_or_else(|(caller, failure)| {
            self.worker.respond(caller, Err(failure));
            None
        })
    }

    pub(super) fn wait_until_idle(&self, patience: Duration) -> bool {
        let mut state = self.lock();
        state.idle_waiters += 1;
        let waited = self
            .became_idle
            .wait_timeout_while(state, patience, |state| !state.pool.is_idle() && !state.pool.is_closed());
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.idle_waiters -= 1;
        state.pool.is_idle()
    }

    pub(super) fn close(&self) -> Option<usize> {
        let mut state = self.lock();
        if state.pool.is_closed() {
            return None;
        }
        let (sleepers, callers) = state.pool.close();
        state.wake_watchdog();
        drop(state);
        self.became_idle.notify_all();
        sleepers.iter().for_each(Thread::unpark);
        let waiting = callers.len();
        for caller in callers {
            self.worker.respond(caller, Err(JobError::Closed));
        }
        Some(waiting)
    }

    /// Wakes or starts workers.
    pub(super) fn wake(self: &Arc<Self>, help: impl IntoIterator<Item = WakeAction>) {
        for help in help {
            match help {
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
        tracing::error!(%error, "no thread could be started for scripts");
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

    fn spawn_thread(self: &Arc<Self>, name: &str, life: fn(&Arc<Self>)) -> io::Result<()> {
        let house = self.clone();
        thread::Builder::new()
            .name(name.to_owned())
            .stack_size(THREAD_STACK_BYTES)
            .spawn(move || life(&house))
            .map(|_| ())
    }

    /// The main loop of a worker.
    fn run_worker(self: &Arc<Self>) {
        let mut tool = None;
        let mut next = Next::Sleep;
        loop {
            let (ticket, answer) = match next {
                Next::Run(Assignment { id: ticket, job }) => {
                    // A panic fails this job only. The resource is dropped, because it may be in any state.
                    let attempt = catch_unwind(AssertUnwindSafe(|| self.run_job(&mut tool, ticket, job)));
                    (ticket, Some(attempt.unwrap_or(Err(JobError::Panicked))))
                }
                Next::CreateResource(ticket) => {
                    drop(tool.take());
                    // If this fails, the next job tries again and reports the error.
                    tool = catch_unwind(AssertUnwindSafe(|| self.worker.create().ok())).ok().flatten();
                    (ticket, None)
                }
                Next::Sleep => {
                    let Some(assignment) = self.wait_for_job() else { return };
                    next = Next::Run(assignment);
                    continue;
                }
            };
            let is_fit = tool.as_ref().is_none_or(|tool| self.worker.is_reusable(tool));
            let finished = self.lock().pool.finish(ticket, is_fit, Instant::now());
            let Some(Finished { caller, next: following, wake: help }) = finished else {
                drop(tool);
                return self.lock().pool.release_abandoned();
            };
            if let (Some(caller), Some(answer)) = (caller, answer) {
                self.worker.respond(caller, answer);
            }
            self.wake(help);
            next = following;
        }
    }

    /// Runs a job. Creates a new resource first if the old one cannot be reused.
    fn run_job(&self, tool: &mut Option<C::Resource>, ticket: JobId, job: C::Job) -> Result<C::Output, JobError> {
        let mut ready = match tool.take() {
            Some(tool) if self.worker.is_reusable(&tool) => tool,
            unfit => {
                drop(unfit);
                let made = match self.worker.create() {
                    Ok(made) => made,
                    Err(answer) => return Ok(answer),
                };
                if !self.lock().pool.restart_timer(ticket, Instant::now()) {
                    return Err(JobError::TimedOut);
                }
                made
            }
        };
        let answer = self.worker.run(&mut ready, job);
        *tool = Some(ready);
        Ok(answer)
    }

    /// Sleeps until there is a job. Returns `None` when the worker must stop.
    fn wait_for_job(&self) -> Option<Assignment<C::Job>> {
        let mut is_bored = false;
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
            let leaves = (is_bored || state.pool.is_closed()) && state.pool.try_retire();
            let is_core = !leaves && state.pool.add_idle(thread::current());
            self.notify_if_idle(&state);
            drop(state);
            if leaves {
                return None;
            }
            let asleep = Instant::now();
            if is_core {
                thread::park();
            } else {
                thread::park_timeout(self.limits.idle_timeout);
            }
            is_bored = asleep.elapsed() >= self.limits.idle_timeout;
        }
    }

    /// The main loop of the watchdog.
    fn run_watchdog(self: &Arc<Self>) {
        loop {
            let mut state = self.lock();
            if state.pool.is_closed() {
                return;
            }
            let Inspection { responses: answers, wakes: help, may_sleep: is_idle } = state.pool.inspect(Instant::now());
            state.watchdog = if is_idle { Watchdog::Asleep(thread::current()) } else { Watchdog::Awake };
            self.notify_if_idle(&state);
            drop(state);
            for (caller, failure) in answers {
                self.worker.respond(caller, Err(failure));
            }
            self.wake(help);
            if is_idle {
                thread::park();
            } else {
                thread::park_timeout(EXTRA_WORKER_DELAY);
            }
        }
    }

    fn notify_if_idle(&self, state: &State<C>) {
        if state.idle_waiters > 0 && state.pool.is_idle() {
            self.became_idle.notify_all();
        }
    }
}
