//! One event on its way to the script and back: the craft of the threads in [`crate::pool`]. This is where every failure of
//! a script is told to the log and counted; whoever asked goes on as if there were no script.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use restante_logging::LogThrottle;
use restante_mail::address::Address;
use restante_mail::envelope::Envelope;
use restante_mail::message::Summary;
use restante_mailroom::hooks::{IncomingMessage, Verdict};
use tokio::sync::oneshot;

use crate::call_error::{CallError, CallErrorKind, SourceLocation};
use crate::counts::{Counters, Outcome};
use crate::engine::CallLocation;
use crate::event::Event;
use crate::loaded::ScriptError;
use crate::pool::{Caller, JobError, Worker};
use crate::scripts::{ScriptState, Scripts};

/// An event, with what the script is to know of it.
pub(crate) enum Call {
    MailFrom(Envelope),
    RcptTo(Envelope, Address),
    BeforeStored(IncomingMessage),
    AfterStored(Summary),
    AfterDeleted(Summary),
}

/// What the script said.
pub(crate) enum Reply {
    Verdict(Verdict),
    Message(Option<IncomingMessage>),
    Nothing,
}

/// A call for a worker.
pub(crate) struct Job {
    call: Call,
    location: Arc<LocationCell>,
}

/// Who waits for the reply: a session, or nobody when the event is over.
pub(crate) struct Waiter {
    event: Event,
    reply: Option<oneshot::Sender<Reply>>,
    location: Arc<LocationCell>,
}

/// Where the call is, once it has begun: for those who look for it from outside.
type LocationCell = OnceLock<Arc<CallLocation>>;

/// A call, and who waits for it.
pub(crate) fn new_job(event: Event, call: Call, reply: Option<oneshot::Sender<Reply>>) -> (Job, Waiter) {
    let trail = Arc::default();
    (Job { call, location: Arc::clone(&trail) }, Waiter { event, reply, location: trail })
}

/// Why there is no reply.
pub(crate) enum RunError {
    /// The call failed.
    Call(CallError),
    /// There was no state to call it in, although the script could be loaded before.
    State(ScriptError),
}

/// Runs the script.
pub(crate) struct ScriptRunner {
    scripts: Arc<Scripts>,
    counters: Arc<Counters>,
    busy_log: LogThrottle,
    full_log: LogThrottle,
}

impl ScriptRunner {
    pub(crate) fn new(scripts: Arc<Scripts>, tally: Arc<Counters>) -> Self {
        Self { scripts, counters: tally, busy_log: LogThrottle::default(), full_log: LogThrottle::default() }
    }

    /// Tells the log why an event goes on without the script.
    fn log_error(&self, event: Event, trail: &LocationCell, trouble: Result<RunError, JobError>) -> Outcome {
        let name = event.name();
        let script = self.scripts.loaded().map(|loaded| loaded.path.display().to_string()).unwrap_or_default();
        match trouble {
            Ok(RunError::Call(CallError { kind, location: place, text })) => {
                log_call_error(event, &script, place, &text);
                match kind {
                    CallErrorKind::Script | CallErrorKind::InvalidResult => Outcome::Error,
                    CallErrorKind::Timeout | CallErrorKind::Memory | CallErrorKind::Depth => Outcome::Limit,
                }
            }
            Ok(RunError::State(error)) => {
                tracing::error!(script, event = name, %error, "the script could not be loaded once more");
                Outcome::Error
            }
            Err(JobError::TimedOut) => {
                let place = trail.get().and_then(|call| call.best_known(event));
                log_call_error(
                    event,
                    &script,
                    place,
                    "the call took too long and was given up; it may still be going on",
                );
                Outcome::Limit
            }
            Err(JobError::Panicked) => {
                tracing::error!(script, event = name, "the call failed because of a fault in the server");
                Outcome::Error
            }
            Err(JobError::QueueTimeout | JobError::QueueFull | JobError::NoThread) => {
                if let Some(times) = self.busy_log.due(Instant::now()) {
                    tracing::error!(script, event = name, times, "the script was not called: its calls take too long");
                }
                Outcome::Busy
            }
            // The log knows already that the server ends.
            Err(JobError::Closed) => Outcome::Busy,
        }
    }

    /// An event that nobody waits for did not find its place in the queue.
    fn drop_event(&self, event: Event) {
        self.counters.count_dropped();
        if let Some(events) = self.full_log.due(Instant::now()) {
            let event = event.name();
            tracing::error!(event, events, "events were not told to the script: too many wait for it already");
        }
    }
}

/// Tells the log of a call that has failed, with the place in the script where that is known.
fn log_call_error(event: Event, script: &str, place: Option<SourceLocation>, text: &str) {
    let event = event.name();
    if let Some((script, line)) = place {
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

    fn run(&self, ScriptState { engine, .. }: &mut ScriptState, Job { call, location: trail }: Job) -> Self::Output {
        trail.get_or_init(|| engine.location());
        let reply = match call {
            Call::MailFrom(envelope) => engine.before_mail_from(&envelope).map(Reply::Verdict),
            Call::RcptTo(envelope, candidate) => engine.before_rcpt_to(&envelope, &candidate).map(Reply::Verdict),
            Call::BeforeStored(message) => engine.before_message_stored(&message).map(Reply::Message),
            Call::AfterStored(summary) => engine.after_message_stored(&summary).map(|()| Reply::Nothing),
            Call::AfterDeleted(summary) => engine.after_message_deleted(&summary).map(|()| Reply::Nothing),
        };
        reply.map_err(RunError::Call)
    }

    fn respond(
        &self,
        Waiter { event, reply: session, location: trail }: Waiter,
        answer: Result<Self::Output, JobError>,
    ) {
        let trouble = match answer {
            Ok(Ok(reply)) => {
                self.counters.count_call(event, Outcome::Ok);
                // The session may have ended meanwhile, which is no concern of the script.
                session.map(|session| session.send(reply));
                return;
            }
            Err(JobError::QueueFull) if session.is_none() => return self.drop_event(event),
            Err(JobError::Closed) if session.is_none() => return self.counters.count_dropped(),
            Ok(Err(trouble)) => Ok(trouble),
            Err(failure) => Err(failure),
        };
        // Without a reply the session goes on as soon as its sender is dropped, which is after the log knows.
        let outcome = self.log_error(event, &trail, trouble);
        self.counters.count_call(event, outcome);
    }
}
