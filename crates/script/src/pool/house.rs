//! The threads of a pool and their clock: workers, and the watchdog that looks after them. What they decide stands in
//! [`super::roster`].

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::thread::Thread;
use std::time::{Duration, Instant};

use super::roster::{Assignment, Findings, Finished, Help, Next, PATIENCE, Roster, Ticket};
use super::{Craft, Failure, Limits};
use crate::limits::STACK;

/// What the threads of a pool share.
pub(super) struct House<C: Craft> {
    pub(super) craft: C,
    limits: Limits,
    state: Mutex<State<C>>,
    /// Told when there is nothing left to do, if somebody listens.
    quiet: Condvar,
}

type Rows<C> = Roster<<C as Craft>::Job, <C as Craft>::Caller>;

pub(super) struct State<C: Craft> {
    pub(super) roster: Rows<C>,
    watchdog: Watchdog,
    listeners: usize,
}

/// Who looks after the workers. It sleeps as long as nothing runs.
enum Watchdog {
    Missing,
    Awake,
    Asleep(Thread),
}

impl<C: Craft> State<C> {
    /// Wakes the watchdog, if it sleeps.
    fn rouse_watchdog(&mut self) {
        if let Watchdog::Asleep(watchdog) = &self.watchdog {
            watchdog.unpark();
            self.watchdog = Watchdog::Awake;
        }
    }
}

impl<C: Craft> House<C> {
    pub(super) fn new(craft: C, limits: Limits) -> Self {
        let roster = Roster::new(limits.clone());
        let state = Mutex::new(State { roster, watchdog: Watchdog::Missing, listeners: 0 });
        Self { craft, limits, state, quiet: Condvar::new() }
    }

    /// Nothing panics while it holds the lock, and if it did the numbers would still be usable.
    pub(super) fn lock(&self) -> MutexGuard<'_, State<C>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a job, or answers it at once. Somebody may have to be called for it.
    pub(super) fn submit(&self, job: C::Job, caller: C::Caller) -> Option<Help> {
        let now = Instant::now();
        let admitted = self.lock().roster.admit(job, caller, now);
        admitted.unwrap_or_else(|(caller, failure)| {
            self.craft.answer(caller, Err(failure));
            None
        })
    }

    pub(super) fn wait_until_quiet(&self, patience: Duration) -> bool {
        let mut state = self.lock();
        state.listeners += 1;
        let waited = self
            .quiet
            .wait_timeout_while(state, patience, |state| !state.roster.is_quiet() && !state.roster.is_closed());
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.listeners -= 1;
        state.roster.is_quiet()
    }

    pub(super) fn close(&self) -> Option<usize> {
        let mut state = self.lock();
        if state.roster.is_closed() {
            return None;
        }
        let (sleepers, callers) = state.roster.close();
        state.rouse_watchdog();
        drop(state);
        self.quiet.notify_all();
        sleepers.iter().for_each(Thread::unpark);
        let waiting = callers.len();
        for caller in callers {
            self.craft.answer(caller, Err(Failure::Closed));
        }
        Some(waiting)
    }

    /// Calls those who have to help.
    pub(super) fn call(self: &Arc<Self>, help: impl IntoIterator<Item = Help>) {
        for help in help {
            match help {
                Help::Wake(worker) => worker.unpark(),
                Help::Hire => self.hire(),
            }
        }
    }

    /// Starts a worker, and the watchdog with the first of them.
    fn hire(self: &Arc<Self>) {
        let Err(error) = self.start_watchdog().and_then(|()| self.start("script", Self::work)) else { return };
        tracing::error!(%error, "no thread could be started for scripts");
        let callers = self.lock().roster.miss();
        for caller in callers {
            self.craft.answer(caller, Err(Failure::Stuck));
        }
    }

    fn start_watchdog(self: &Arc<Self>) -> io::Result<()> {
        let mut state = self.lock();
        if matches!(state.watchdog, Watchdog::Missing) {
            self.start("script watchdog", Self::watch)?;
            state.watchdog = Watchdog::Awake;
        }
        Ok(())
    }

    fn start(self: &Arc<Self>, name: &str, life: fn(&Arc<Self>)) -> io::Result<()> {
        let house = self.clone();
        thread::Builder::new().name(name.to_owned()).stack_size(STACK).spawn(move || life(&house)).map(|_| ())
    }

    /// The life of a worker.
    fn work(self: &Arc<Self>) {
        let mut tool = None;
        let mut next = Next::Rest;
        loop {
            let (ticket, answer) = match next {
                Next::Work(Assignment { ticket, job }) => {
                    // A panic is a failure of this job. It takes the tool along, which may be in any state.
                    let attempt = catch_unwind(AssertUnwindSafe(|| self.attempt(&mut tool, ticket, job)));
                    (ticket, Some(attempt.unwrap_or(Err(Failure::Panicked))))
                }
                Next::Prepare(ticket) => {
                    drop(tool.take());
                    // When that fails, whoever needs the tool is told, if it fails then too.
                    tool = catch_unwind(AssertUnwindSafe(|| self.craft.make().ok())).ok().flatten();
                    (ticket, None)
                }
                Next::Rest => {
                    let Some(assignment) = self.rest() else { return };
                    next = Next::Work(assignment);
                    continue;
                }
            };
            let is_fit = tool.as_ref().is_none_or(|tool| self.craft.is_fit(tool));
            let finished = self.lock().roster.finish(ticket, is_fit, Instant::now());
            let Some(Finished { caller, next: following, help }) = finished else {
                drop(tool);
                return self.lock().roster.give_back();
            };
            if let (Some(caller), Some(answer)) = (caller, answer) {
                self.craft.answer(caller, answer);
            }
            self.call(help);
            next = following;
        }
    }

    /// Does a job, with a new tool where the old one is not fit.
    fn attempt(&self, tool: &mut Option<C::Tool>, ticket: Ticket, job: C::Job) -> Result<C::Answer, Failure> {
        let mut ready = match tool.take() {
            Some(tool) if self.craft.is_fit(&tool) => tool,
            unfit => {
                drop(unfit);
                let made = match self.craft.make() {
                    Ok(made) => made,
                    Err(answer) => return Ok(answer),
                };
                if !self.lock().roster.restart(ticket, Instant::now()) {
                    return Err(Failure::Overrun);
                }
                made
            }
        };
        let answer = self.craft.work(&mut ready, job);
        *tool = Some(ready);
        Ok(answer)
    }

    /// Sleeps until there is a job; none when the worker is not needed any more.
    fn rest(&self) -> Option<Assignment<C::Job>> {
        let mut is_bored = false;
        loop {
            let mut state = self.lock();
            state.roster.rise(thread::current().id());
            let assignment = state.roster.take(Instant::now());
            // The watchdog also looks after jobs that wait because none may be begun.
            if assignment.is_some() || state.roster.waiting() > 0 {
                state.rouse_watchdog();
            }
            if assignment.is_some() {
                return assignment;
            }
            let leaves = (is_bored || state.roster.is_closed()) && state.roster.may_leave();
            let is_core = !leaves && state.roster.sleep(thread::current());
            self.tell_if_quiet(&state);
            drop(state);
            if leaves {
                return None;
            }
            let asleep = Instant::now();
            if is_core {
                thread::park();
            } else {
                thread::park_timeout(self.limits.idle);
            }
            is_bored = asleep.elapsed() >= self.limits.idle;
        }
    }

    /// The life of the watchdog.
    fn watch(self: &Arc<Self>) {
        loop {
            let mut state = self.lock();
            if state.roster.is_closed() {
                return;
            }
            let Findings { answers, help, is_idle } = state.roster.inspect(Instant::now());
            state.watchdog = if is_idle { Watchdog::Asleep(thread::current()) } else { Watchdog::Awake };
            self.tell_if_quiet(&state);
            drop(state);
            for (caller, failure) in answers {
                self.craft.answer(caller, Err(failure));
            }
            self.call(help);
            if is_idle {
                thread::park();
            } else {
                thread::park_timeout(PATIENCE);
            }
        }
    }

    fn tell_if_quiet(&self, state: &State<C>) {
        if state.listeners > 0 && state.roster.is_quiet() {
            self.quiet.notify_all();
        }
    }
}
