//! The script as the server sees it: the mailroom asks it and tells it. The calls themselves are in `calls.rs`, the script
//! that is called in `scripts.rs`.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use restante_mail::address::Address;
use restante_mail::envelope::Envelope;
use restante_mail::message::Summary;
use restante_mailroom::Mailroom;
use restante_mailroom::hooks::{HookPoint, Hooks, IncomingMessage, Observer, Verdict};
use tokio::sync::oneshot;

use crate::calls::{self, Call, Reply, ScriptRunner};
use crate::counts::{Counters, Counts};
use crate::limits::TIMEOUT_GRACE;
use crate::loaded::{LoadedScript, ScriptError};
use crate::pool::{Limits, Pool};
use crate::scripts::Scripts;
use crate::{Event, Settings};

/// How long a thread that is needed only while calls are held up waits for more to do.
const IDLE_TIMEOUT: Duration = Duration::from_secs(10);

/// How many `before` hooks may wait for a thread. Each has a session that waits, or one that was closed just now.
const MAX_QUEUED_BEFORE_CALLS: usize = 4096;

/// How many threads may be busy with calls that were given up, for each kind of hook.
const MAX_ABANDONED_THREADS: usize = 16;

/// Runs the script for the mailroom.
///
/// Who asks by a `before` hook waits for its own call and, when [`Settings::max_calls`] are under way, for one of these to
/// end. `after` hooks are called in the order of the events, from a queue; where there are several threads for them, two
/// calls may overlap. All of that is over with [`Host::end`]; without it, when the host is dropped.
pub struct Host {
    scripts: Arc<Scripts>,
    counters: Arc<Counters>,
    before_pool: Pool<ScriptRunner>,
    after_pool: Pool<ScriptRunner>,
}

impl Host {
    /// A host whose script is still to be loaded.
    pub fn new(settings: Settings) -> Arc<Self> {
        let (before, after) = (before_limits(&settings), after_limits(&settings));
        let scripts = Arc::new(Scripts::new(settings));
        let tally = Arc::new(Counters::default());
        let pool = |limits| Pool::new(ScriptRunner::new(scripts.clone(), tally.clone()), limits);
        let (before, after) = (pool(before), pool(after));
        Arc::new(Self { scripts, counters: tally, before_pool: before, after_pool: after })
    }

    /// Loads the script for the first time; `None` when there is none. Blocking.
    pub fn load(&self) -> Result<Option<LoadedScript>, ScriptError> {
        self.scripts.load()
    }

    /// The script in use; none when there is none.
    pub fn loaded(&self) -> Option<LoadedScript> {
        self.scripts.loaded()
    }

    /// Gives scripts their way to the stored mail. Called within the runtime.
    pub fn connect(&self, mailroom: &Arc<Mailroom>) {
        self.scripts.mail().connect(mailroom);
    }

    /// Loads the script again; when that fails, the old one stays. `None` when there is no script, and none was there
    /// before. Blocking.
    pub fn reload(&self) -> Result<Option<LoadedScript>, ScriptError> {
        let result = self.scripts.load();
        if !matches!(result, Ok(None)) {
            self.counters.count_reload(result.is_ok());
        }
        result
    }

    /// What has happened since the start.
    pub fn counts(&self) -> Counts {
        let abandoned = self.before_pool.abandoned() + self.after_pool.abandoned() + self.scripts.abandoned_loads();
        Counts {
            loaded: self.scripts.is_loaded(),
            waiting: to_u64(self.after_pool.waiting()),
            abandoned: to_u64(abandoned),
            ..self.counters.snapshot()
        }
    }

    /// Lets the `after` hooks that wait have their turn, as far as there is time. Afterwards no more calls are begun, and
    /// those under way cannot reach the stored mail any more, and their commands are ended. May be called again, by somebody
    /// with less patience. Blocking.
    pub fn shut_down(&self, patience: Duration) {
        let is_quiet = self.after_pool.wait_until_idle(patience);
        let untold = self.after_pool.close();
        self.before_pool.close();
        self.scripts.disconnect();
        match untold {
            Some(0) if !is_quiet => tracing::warn!("the script is still busy with an event at the end"),
            None | Some(0) => {}
            Some(events) => tracing::warn!(events, "the script was not told of all events before the end"),
        }
    }

    /// Asks the script, and waits for what it says.
    async fn call_before_hook(&self, event: Event, call: Call) -> Option<Reply> {
        let (sender, receiver) = oneshot::channel();
        let (job, waiter) = calls::new_job(event, call, Some(sender));
        let due = self.before_pool.submit(job, waiter);
        if due.is_needed() {
            // Sessions that are ready come first: one thread is woken for the calls of all of them. That halves what a
            // call costs beside the script itself, when there are many.
            tokio::task::yield_now().await;
        }
        drop(due);
        receiver.await.ok()
    }

    /// Tells the script, if it listens.
    fn queue_after_hook(&self, event: Event, call: fn(Summary) -> Call, summary: &Summary) {
        if self.scripts.handles(event) {
            let (job, waiter) = calls::new_job(event, call(summary.clone()), None);
            drop(self.after_pool.submit(job, waiter));
        }
    }
}

#[async_trait]
impl Hooks for Host {
    fn has_hook(&self, point: HookPoint) -> bool {
        self.scripts.handles(match point {
            HookPoint::MailFrom => Event::MailFrom,
            HookPoint::RcptTo => Event::RcptTo,
            HookPoint::MessageStored => Event::BeforeStored,
        })
    }

    async fn before_mail_from_accepted(&self, envelope: &Envelope) -> Verdict {
        to_verdict(self.call_before_hook(Event::MailFrom, Call::MailFrom(envelope.clone())).await)
    }

    async fn before_rcpt_to_accepted(&self, envelope: &Envelope, candidate: &Address) -> Verdict {
        to_verdict(self.call_before_hook(Event::RcptTo, Call::RcptTo(envelope.clone(), candidate.clone())).await)
    }

    async fn before_message_stored(&self, message: &IncomingMessage) -> Option<IncomingMessage> {
        match self.call_before_hook(Event::BeforeStored, Call::BeforeStored(message.clone())).await {
            Some(Reply::Message(changed)) => changed,
            _ => None,
        }
    }
}

impl Observer for Host {
    fn message_stored(&self, summary: &Summary) {
        self.queue_after_hook(Event::AfterStored, Call::AfterStored, summary);
    }

    fn message_deleted(&self, summary: &Summary) {
        self.queue_after_hook(Event::AfterDeleted, Call::AfterDeleted, summary);
    }
}

/// The bounds for `before` hooks: somebody waits.
fn before_limits(settings: &Settings) -> Limits {
    let most = settings.max_calls.max(1);
    let core = settings.before_states.clamp(1, most);
    Limits {
        core_workers: core,
        max_workers: most,
        max_queued: MAX_QUEUED_BEFORE_CALLS,
        queue_timeout: Some(settings.timeout),
        ..after_limits(settings)
    }
}

/// The bounds for `after` hooks.
fn after_limits(settings: &Settings) -> Limits {
    let core = settings.after_states.max(1);
    let call = settings.timeout.saturating_add(TIMEOUT_GRACE);
    Limits {
        core_workers: core,
        max_workers: core,
        idle_timeout: IDLE_TIMEOUT,
        max_queued: settings.max_queued_events,
        queue_timeout: None,
        job_timeout: call,
        max_abandoned: MAX_ABANDONED_THREADS,
    }
}

fn to_verdict(reply: Option<Reply>) -> Verdict {
    match reply {
        Some(Reply::Verdict(verdict)) => verdict,
        _ => Verdict::Defer,
    }
}

fn to_u64(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
