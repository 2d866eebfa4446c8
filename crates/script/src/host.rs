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

use crate::calls::{self, Call, Calls, Reply};
use crate::counts::{Counts, Tally};
use crate::limits::GRACE;
use crate::loaded::{Loaded, ScriptError};
use crate::pool::{Limits, Pool};
use crate::scripts::Scripts;
use crate::{Event, Settings};

/// How long a thread that is needed only while calls are held up waits for more to do.
const IDLE: Duration = Duration::from_secs(10);

/// How many `before` hooks may wait for a thread. Each has a session that waits, or one that was closed just now.
const SESSIONS: usize = 4096;

/// How many threads may be busy with calls that were given up, for each kind of hook.
const ABANDONED: usize = 16;

/// Runs the script for the mailroom.
///
/// Who asks by a `before` hook waits for its own call and, when [`Settings::max_calls`] are under way, for one of these to
/// end. `after` hooks are called in the order of the events, from a queue; where there are several threads for them, two
/// calls may overlap. All of that is over with [`Host::end`]; without it, when the host is dropped.
pub struct Host {
    scripts: Arc<Scripts>,
    tally: Arc<Tally>,
    before: Pool<Calls>,
    after: Pool<Calls>,
}

impl Host {
    /// A host whose script is still to be loaded.
    pub fn new(settings: Settings) -> Arc<Self> {
        let (before, after) = (before(&settings), after(&settings));
        let scripts = Arc::new(Scripts::new(settings));
        let tally = Arc::new(Tally::default());
        let pool = |limits| Pool::new(Calls::new(scripts.clone(), tally.clone()), limits);
        let (before, after) = (pool(before), pool(after));
        Arc::new(Self { scripts, tally, before, after })
    }

    /// Loads the script for the first time; `None` when there is none. Blocking.
    pub fn load(&self) -> Result<Option<Loaded>, ScriptError> {
        self.scripts.load()
    }

    /// The script in use; none when there is none.
    pub fn loaded(&self) -> Option<Loaded> {
        self.scripts.loaded()
    }

    /// Gives scripts their way to the stored mail. Called within the runtime.
    pub fn connect(&self, mailroom: &Arc<Mailroom>) {
        self.scripts.mail().connect(mailroom);
    }

    /// Loads the script again; when that fails, the old one stays. `None` when there is no script, and none was there
    /// before. Blocking.
    pub fn reload(&self) -> Result<Option<Loaded>, ScriptError> {
        let result = self.scripts.load();
        if !matches!(result, Ok(None)) {
            self.tally.reloaded(result.is_ok());
        }
        result
    }

    /// What has happened since the start.
    pub fn counts(&self) -> Counts {
        let abandoned = self.before.abandoned() + self.after.abandoned() + self.scripts.strays();
        Counts {
            loaded: self.scripts.is_loaded(),
            waiting: number(self.after.waiting()),
            abandoned: number(abandoned),
            ..self.tally.counts()
        }
    }

    /// Lets the `after` hooks that wait have their turn, as far as there is time. Afterwards no more calls are begun, and
    /// those under way cannot reach the stored mail any more, and their commands are ended. May be called again, by somebody
    /// with less patience. Blocking.
    pub fn end(&self, patience: Duration) {
        let is_quiet = self.after.wait_until_quiet(patience);
        let untold = self.after.close();
        self.before.close();
        self.scripts.cut();
        match untold {
            Some(0) if !is_quiet => tracing::warn!("the script is still busy with an event at the end"),
            None | Some(0) => {}
            Some(events) => tracing::warn!(events, "the script was not told of all events before the end"),
        }
    }

    /// Asks the script, and waits for what it says.
    async fn ask(&self, event: Event, call: Call) -> Option<Reply> {
        let (sender, receiver) = oneshot::channel();
        let (job, waiter) = calls::job(event, call, Some(sender));
        let due = self.before.submit(job, waiter);
        if due.is_pressing() {
            // Sessions that are ready come first: one thread is woken for the calls of all of them. That halves what a
            // call costs beside the script itself, when there are many.
            tokio::task::yield_now().await;
        }
        drop(due);
        receiver.await.ok()
    }

    /// Tells the script, if it listens.
    fn tell(&self, event: Event, call: fn(Summary) -> Call, summary: &Summary) {
        if self.scripts.handles(event) {
            let (job, waiter) = calls::job(event, call(summary.clone()), None);
            drop(self.after.submit(job, waiter));
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
        verdict(self.ask(Event::MailFrom, Call::MailFrom(envelope.clone())).await)
    }

    async fn before_rcpt_to_accepted(&self, envelope: &Envelope, candidate: &Address) -> Verdict {
        verdict(self.ask(Event::RcptTo, Call::RcptTo(envelope.clone(), candidate.clone())).await)
    }

    async fn before_message_stored(&self, message: &IncomingMessage) -> Option<IncomingMessage> {
        match self.ask(Event::BeforeStored, Call::BeforeStored(message.clone())).await {
            Some(Reply::Message(changed)) => changed,
            _ => None,
        }
    }
}

impl Observer for Host {
    fn message_stored(&self, summary: &Summary) {
        self.tell(Event::AfterStored, Call::AfterStored, summary);
    }

    fn message_deleted(&self, summary: &Summary) {
        self.tell(Event::AfterDeleted, Call::AfterDeleted, summary);
    }
}

/// The bounds for `before` hooks: somebody waits.
fn before(settings: &Settings) -> Limits {
    let most = settings.max_calls.max(1);
    let core = settings.states.clamp(1, most);
    Limits { core, most, queue: SESSIONS, wait: Some(settings.timeout), ..after(settings) }
}

/// The bounds for `after` hooks.
fn after(settings: &Settings) -> Limits {
    let core = settings.after_states.max(1);
    let call = settings.timeout.saturating_add(GRACE);
    Limits { core, most: core, idle: IDLE, queue: settings.queue, wait: None, call, abandoned: ABANDONED }
}

fn verdict(reply: Option<Reply>) -> Verdict {
    match reply {
        Some(Reply::Verdict(verdict)) => verdict,
        _ => Verdict::Defer,
    }
}

fn number(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
