//! The public interface of scripts: implements the hooks of the mailroom. Single calls are in `calls.rs`, the loaded
//! script in `scripts.rs`.

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

use crate::calls::{self, ScriptRunner};
use crate::counts::{Counters, Counts};
use crate::event::{Call, Reply};
use crate::limits::TIMEOUT_GRACE;
use crate::loaded::{LoadedScript, ScriptError};
use crate::pool::{Limits, Pool};
use crate::scripts::Scripts;
use crate::{Releaser, ScriptEvent, Settings};

/// How long an idle thread that is not part of the core waits for more to do.
const IDLE_TIMEOUT: Duration = Duration::from_secs(10);

/// The maximum number of `before` calls that wait for a thread. Each belongs to a session that waits or has just ended.
const MAX_QUEUED_BEFORE_CALLS: usize = 4096;

/// The maximum number of threads with abandoned calls, for each kind of hook.
const MAX_ABANDONED_THREADS: usize = 16;

/// Runs the script for the mailroom.
///
/// A `before` hook waits for its own call and, if [`Settings::max_calls`] calls are running, for one of them to end.
/// `after` hooks are called from a queue in the order of the events; if they have several threads, calls can overlap.
/// All of this ends with [`Host::shut_down`], or when the host is dropped.
pub struct Host {
    scripts: Arc<Scripts>,
    counters: Arc<Counters>,
    before_pool: Pool<ScriptRunner>,
    after_pool: Pool<ScriptRunner>,
}

impl Host {
    /// Creates a host without a script. Call [`Host::load`] next.
    pub fn new(settings: Settings) -> Arc<Self> {
        let (before_limits, after_limits) = (before_limits(&settings), after_limits(&settings));
        let scripts = Arc::new(Scripts::new(settings));
        let counters = Arc::new(Counters::default());
        let pool = |limits| Pool::new(ScriptRunner::new(scripts.clone(), counters.clone()), limits);
        let (before_pool, after_pool) = (pool(before_limits), pool(after_limits));
        Arc::new(Self { scripts, counters, before_pool, after_pool })
    }

    /// Returns true if there is a file to load. Only reads its metadata.
    pub fn has_file(&self) -> bool {
        self.scripts.has_file()
    }

    /// Loads the script for the first time. Returns `None` if there is no script. Blocks.
    pub fn load(&self) -> Result<Option<LoadedScript>, ScriptError> {
        self.scripts.load()
    }

    /// Returns the script in use, if there is one.
    pub fn loaded(&self) -> Option<LoadedScript> {
        self.scripts.loaded()
    }

    /// Gives scripts access to stored messages. Must be called within the Tokio runtime.
    pub fn connect(&self, mailroom: &Arc<Mailroom>) {
        self.scripts.mail.connect(mailroom);
    }

    /// Gives scripts access to the relay. Without it, messages cannot be released.
    pub fn connect_relay(&self, relay: Arc<dyn Releaser>) {
        self.scripts.mail.connect_relay(relay);
    }

    /// Loads the script again. If that fails, the old script stays in use. Returns `None` if there is no script and
    /// there was none before. Blocks.
    pub fn reload(&self) -> Result<Option<LoadedScript>, ScriptError> {
        let result = self.scripts.load();
        if !matches!(result, Ok(None)) {
            self.counters.count_reload(result.is_ok());
        }
        result
    }

    /// Returns statistics since the start.
    pub fn counts(&self) -> Counts {
        let abandoned = self.before_pool.abandoned() + self.after_pool.abandoned() + self.scripts.abandoned_loads();
        Counts {
            loaded: self.scripts.is_loaded(),
            waiting: to_u64(self.after_pool.waiting()),
            abandoned: to_u64(abandoned),
            ..self.counters.snapshot()
        }
    }

    /// Waits up to `timeout` for the queued `after` hooks. After that no more calls are started, running calls lose
    /// access to stored messages, and their commands are killed. Can be called again with a shorter timeout. Blocks.
    pub fn shut_down(&self, timeout: Duration) {
        let is_idle = self.after_pool.wait_until_idle(timeout);
        let dropped = self.after_pool.close();
        self.before_pool.close();
        self.scripts.disconnect();
        match dropped {
            Some(0) if !is_idle => tracing::warn!("the script is still handling an event at shutdown"),
            None | Some(0) => {}
            Some(events) => tracing::warn!(events, "script events are dropped at shutdown"),
        }
    }

    /// Calls a `before` hook and waits for the reply.
    async fn call_before_hook(&self, call: Call) -> Option<Reply> {
        let (sender, receiver) = oneshot::channel();
        let (job, waiter) = calls::new_job(call, Some(sender));
        self.before_pool.submit(job, waiter);
        receiver.await.ok()
    }

    /// Queues an `after` hook if the script has a function for it.
    fn queue_after_hook(&self, event: ScriptEvent, call: fn(Summary) -> Call, summary: &Summary) {
        if self.scripts.handles(event) {
            let (job, waiter) = calls::new_job(call(summary.clone()), None);
            self.after_pool.submit(job, waiter);
        }
    }
}

#[async_trait]
impl Hooks for Host {
    fn has_hook(&self, point: HookPoint) -> bool {
        self.scripts.handles(match point {
            HookPoint::MailFrom => ScriptEvent::MailFrom,
            HookPoint::RcptTo => ScriptEvent::RcptTo,
            HookPoint::MessageStored => ScriptEvent::BeforeStored,
        })
    }

    async fn before_mail_from_accepted(&self, envelope: &Envelope) -> Verdict {
        to_verdict(self.call_before_hook(Call::MailFrom(envelope.clone())).await)
    }

    async fn before_rcpt_to_accepted(&self, envelope: &Envelope, candidate: &Address) -> Verdict {
        to_verdict(self.call_before_hook(Call::RcptTo(envelope.clone(), candidate.clone())).await)
    }

    async fn before_message_stored(&self, message: &IncomingMessage) -> Option<IncomingMessage> {
        match self.call_before_hook(Call::BeforeStored(message.clone())).await {
            Some(Reply::Message(changed)) => changed,
            _ => None,
        }
    }
}

impl Observer for Host {
    fn message_stored(&self, summary: &Summary) {
        self.queue_after_hook(ScriptEvent::AfterStored, Call::AfterStored, summary);
    }

    fn message_deleted(&self, summary: &Summary) {
        self.queue_after_hook(ScriptEvent::AfterDeleted, Call::AfterDeleted, summary);
    }
}

/// Returns the limits of `before` hooks, for which a session waits.
fn before_limits(settings: &Settings) -> Limits {
    let max_workers = settings.max_calls.max(1);
    let core_workers = settings.before_states.clamp(1, max_workers);
    Limits {
        core_workers,
        max_workers,
        max_queued: MAX_QUEUED_BEFORE_CALLS,
        queue_timeout: Some(settings.timeout),
        ..after_limits(settings)
    }
}

/// Returns the limits of `after` hooks.
fn after_limits(settings: &Settings) -> Limits {
    let core_workers = settings.after_states.max(1);
    let job_timeout = settings.timeout.saturating_add(TIMEOUT_GRACE);
    Limits {
        core_workers,
        max_workers: core_workers,
        idle_timeout: IDLE_TIMEOUT,
        max_queued: settings.max_queued_events,
        queue_timeout: None,
        job_timeout,
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
