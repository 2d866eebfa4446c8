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

use crate::counts::{Outcome, Tally};
use crate::engine::Whereabouts;
use crate::event::Event;
use crate::failure::{CallError, Kind, Place};
use crate::loaded::ScriptError;
use crate::pool::{Caller, Craft, Failure};
use crate::scripts::{Scripts, State};

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
    trail: Arc<Trail>,
}

/// Who waits for the reply: a session, or nobody when the event is over.
pub(crate) struct Waiter {
    event: Event,
    reply: Option<oneshot::Sender<Reply>>,
    trail: Arc<Trail>,
}

/// Where the call is, once it has begun: for those who look for it from outside.
type Trail = OnceLock<Arc<Whereabouts>>;

/// A call, and who waits for it.
pub(crate) fn job(event: Event, call: Call, reply: Option<oneshot::Sender<Reply>>) -> (Job, Waiter) {
    let trail = Arc::default();
    (Job { call, trail: Arc::clone(&trail) }, Waiter { event, reply, trail })
}

/// Why there is no reply.
pub(crate) enum Trouble {
    /// The call failed.
    Call(CallError),
    /// There was no state to call it in, although the script could be loaded before.
    State(ScriptError),
}

/// Runs the script.
pub(crate) struct Calls {
    scripts: Arc<Scripts>,
    tally: Arc<Tally>,
    busy: LogThrottle,
    full: LogThrottle,
}

impl Calls {
    pub(crate) fn new(scripts: Arc<Scripts>, tally: Arc<Tally>) -> Self {
        Self { scripts, tally, busy: LogThrottle::default(), full: LogThrottle::default() }
    }

    /// Tells the log why an event goes on without the script.
    fn report(&self, event: Event, trail: &Trail, trouble: Result<Trouble, Failure>) -> Outcome {
        let name = event.name();
        let script = self.scripts.loaded().map(|loaded| loaded.path.display().to_string()).unwrap_or_default();
        match trouble {
            Ok(Trouble::Call(CallError { kind, place, text })) => {
                tell(event, &script, place, &text);
                match kind {
                    Kind::Script | Kind::Result => Outcome::Error,
                    Kind::Time | Kind::Memory | Kind::Depth => Outcome::Limit,
                }
            }
            Ok(Trouble::State(error)) => {
                tracing::error!(script, event = name, %error, "the script could not be loaded once more");
                Outcome::Error
            }
            Err(Failure::Overrun) => {
                let place = trail.get().and_then(|call| call.place(event));
                tell(event, &script, place, "the call took too long and was given up; it may still be going on");
                Outcome::Limit
            }
            Err(Failure::Panicked) => {
                tracing::error!(script, event = name, "the call failed because of a fault in the server");
                Outcome::Error
            }
            Err(Failure::Late | Failure::Full | Failure::Stuck) => {
                if let Some(times) = self.busy.due(Instant::now()) {
                    tracing::error!(script, event = name, times, "the script was not called: its calls take too long");
                }
                Outcome::Busy
            }
            // The log knows already that the server ends.
            Err(Failure::Closed) => Outcome::Busy,
        }
    }

    /// An event that nobody waits for did not find its place in the queue.
    fn drop_event(&self, event: Event) {
        self.tally.dropped();
        if let Some(events) = self.full.due(Instant::now()) {
            let event = event.name();
            tracing::error!(event, events, "events were not told to the script: too many wait for it already");
        }
    }
}

/// Tells the log of a call that has failed, with the place in the script where that is known.
fn tell(event: Event, script: &str, place: Option<Place>, text: &str) {
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

impl Craft for Calls {
    type Tool = State;
    type Job = Job;
    type Caller = Waiter;
    type Answer = Result<Reply, Trouble>;

    fn is_fit(&self, state: &State) -> bool {
        self.scripts.is_fit(state)
    }

    fn make(&self) -> Result<State, Self::Answer> {
        let state = self.scripts.state().map_err(|error| Err(Trouble::State(error)))?;
        state.ok_or(Ok(Reply::Nothing))
    }

    fn work(&self, State { engine, .. }: &mut State, Job { call, trail }: Job) -> Self::Answer {
        trail.get_or_init(|| engine.whereabouts());
        let reply = match call {
            Call::MailFrom(envelope) => engine.mail_from(&envelope).map(Reply::Verdict),
            Call::RcptTo(envelope, candidate) => engine.rcpt_to(&envelope, &candidate).map(Reply::Verdict),
            Call::BeforeStored(message) => engine.message(&message).map(Reply::Message),
            Call::AfterStored(summary) => engine.stored(&summary).map(|()| Reply::Nothing),
            Call::AfterDeleted(summary) => engine.deleted(&summary).map(|()| Reply::Nothing),
        };
        reply.map_err(Trouble::Call)
    }

    fn answer(&self, Waiter { event, reply: session, trail }: Waiter, answer: Result<Self::Answer, Failure>) {
        let trouble = match answer {
            Ok(Ok(reply)) => {
                self.tally.ended(event, Outcome::Ok);
                // The session may have ended meanwhile, which is no concern of the script.
                session.map(|session| session.send(reply));
                return;
            }
            Err(Failure::Full) if session.is_none() => return self.drop_event(event),
            Err(Failure::Closed) if session.is_none() => return self.tally.dropped(),
            Ok(Err(trouble)) => Ok(trouble),
            Err(failure) => Err(failure),
        };
        // Without a reply the session goes on as soon as its sender is dropped, which is after the log knows.
        let outcome = self.report(event, &trail, trouble);
        self.tally.ended(event, outcome);
    }
}
