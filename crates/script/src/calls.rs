//! Runs single calls of the script on the threads of [`crate::pool`]. Logs and counts every error of a script here. The
//! caller then continues as if there were no script.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use restante_logging::LogThrottle;
use tokio::sync::oneshot;

use crate::call_error::{CallError, CallErrorKind, SourceLocation};
use crate::counts::{Counters, Outcome};
use crate::engine::CallLocation;
use crate::event::{Call, Reply, ScriptEvent};
use crate::loaded::ScriptError;
use crate::pool::{Caller, JobError, Worker};
use crate::scripts::{ScriptState, Scripts};

/// A call for a worker.
pub(crate) struct Job {
    call: Call,
    location: Arc<LocationCell>,
}

/// The caller of a job.
pub(crate) struct Waiter {
    event: ScriptEvent,
    /// The session that waits for the reply; `None` for `after` hooks.
    reply: Option<oneshot::Sender<Reply>>,
    location: Arc<LocationCell>,
}

/// The location of the call in the script, once the call has started. Other threads read it.
type LocationCell = OnceLock<Arc<CallLocation>>;

/// Creates a job and the waiter for its reply.
pub(crate) fn new_job(call: Call, reply: Option<oneshot::Sender<Reply>>) -> (Job, Waiter) {
    let (event, location) = (call.event(), Arc::default());
    (Job { call, location: Arc::clone(&location) }, Waiter { event, reply, location })
}

/// The reason why there is no reply.
pub(crate) enum RunError {
    /// The call failed.
    Call(CallError),
    /// No Lua state could be created, although the script could be loaded before.
    State(ScriptError),
}

/// Runs calls of the script.
pub(crate) struct ScriptRunner {
    scripts: Arc<Scripts>,
    counters: Arc<Counters>,
    busy_log: LogThrottle,
    full_log: LogThrottle,
}

impl ScriptRunner {
    pub(crate) fn new(scripts: Arc<Scripts>, counters: Arc<Counters>) -> Self {
        Self { scripts, counters, busy_log: LogThrottle::default(), full_log: LogThrottle::default() }
    }

    /// Logs why an event continues without the script. Returns the outcome to count.
    fn log_error(&self, event: ScriptEvent, location: &LocationCell, error: Result<RunError, JobError>) -> Outcome {
        let name = event.name();
        let script = self.scripts.loaded().map(|loaded| loaded.path.display().to_string()).unwrap_or_default();
        match error {
            Ok(RunError::Call(CallError { kind, location, text })) => {
                log_call_error(event, &script, location, &text);
                match kind {
                    CallErrorKind::Script | CallErrorKind::InvalidResult => Outcome::Error,
                    CallErrorKind::Timeout | CallErrorKind::Memory | CallErrorKind::Depth => Outcome::Limit,
                }
            }
            Ok(RunError::State(error)) => {
                tracing::error!(script, event = name, %error, "cannot create another Lua state for the script");
                Outcome::Error
            }
            Err(JobError::TimedOut) => {
                let location = location.get().and_then(|call| call.best_known(event));
                log_call_error(
                    event,
                    &script,
                    location,
                    "the call took too long and was abandoned; it may still be running",
                );
                Outcome::Limit
            }
            Err(JobError::Panicked) => {
                tracing::error!(script, event = name, "the call panicked: this is a bug in the server");
                Outcome::Error
            }
            Err(JobError::QueueTimeout | JobError::QueueFull | JobError::NoThread) => {
                if let Some(times) = self.busy_log.record(Instant::now()) {
                    tracing::error!(
                        script,
                        event = name,
                        times,
                        "the script was not called: no thread was free in time"
                    );
                }
                Outcome::Busy
            }
            // The shutdown has been logged already.
            Err(JobError::Closed) => Outcome::Busy,
        }
    }

    /// Counts and logs an `after` event that was dropped because the queue is full.
    fn drop_event(&self, event: ScriptEvent) {
        self.counters.count_dropped();
        if let Some(events) = self.full_log.record(Instant::now()) {
            let event = event.name();
            tracing::error!(event, events, "script events are dropped: the queue is full");
        }
    }
}

/// Logs a failed call, with the location in the script if it is known.
fn log_call_error(event: ScriptEvent, script: &str, location: Option<SourceLocation>, text: &str) {
    let event = event.name();
    if let Some((script, line)) = location {
        tracing::error!(script, line, event, "{text}");
    } else {
        tracing::error!(script, event, "{text}");
    }
}

impl Caller for Waiter {
    fn is_gone(&self) -> bool {
        self.reply.as_ref().is_some_and(oneshot::Sender::is_closed)
    }
}

impl Worker for ScriptRunner {
    type Resource = ScriptState;
    type Job = Job;
    type Caller = Waiter;
    type Output = Result<Reply, RunError>;

    fn is_reusable(&self, state: &ScriptState) -> bool {
        self.scripts.is_reusable(state)
    }

    fn create(&self) -> Result<ScriptState, Self::Output> {
        let state = self.scripts.new_state().map_err(|error| Err(RunError::State(error)))?;
        state.ok_or(Ok(Reply::Nothing))
    }

    fn run(&self, ScriptState { engine, .. }: &mut ScriptState, Job { call, location }: Job) -> Self::Output {
        location.get_or_init(|| engine.location());
        engine.run(&call).map_err(RunError::Call)
    }

    fn respond(&self, Waiter { event, reply: session, location }: Waiter, result: Result<Self::Output, JobError>) {
        let error = match result {
            Ok(Ok(reply)) => {
                self.counters.count_call(event, Outcome::Ok);
                // The session may have ended in the meantime.
                session.map(|session| session.send(reply));
                return;
            }
            Err(JobError::QueueFull) if session.is_none() => return self.drop_event(event),
            Err(JobError::Closed) if session.is_none() => return self.counters.count_dropped(),
            Ok(Err(error)) => Ok(error),
            Err(error) => Err(error),
        };
        // The session continues when `session` is dropped, which is after this log line.
        let outcome = self.log_error(event, &location, error);
        self.counters.count_call(event, outcome);
    }
}
