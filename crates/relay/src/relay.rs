//! The public interface of the relay.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use parking_lot::Mutex;
use restante_journal::TranscriptLines;
use restante_mail::message::Summary;
use restante_mailroom::Mailroom;
use restante_mailroom::hooks::Observer;
use restante_queue::{
    AddError, Context, EntryControl, EntryFilter, EntryId, EntryState, Queue, Selection, Stage, TargetLimits,
    TargetState,
};
use restante_store::Result;
use restante_worker::Worker;
use tokio::runtime::Handle;
use tokio::sync::watch;

use crate::background;
use crate::counts::{Counts, TargetCounts};
use crate::entry::{Entry, Origin};
use crate::message;
use crate::release::{ReleaseError, ReleaseRequest, check_prefix, check_recipients, select_target};
use crate::settings::{Settings, Target};
use crate::shared::Shared;

/// The relay of a server. See the crate documentation.
pub struct Relay {
    shared: Arc<Shared>,
    stage: watch::Sender<Stage>,
    /// Set by [`Relay::start`].
    running: Mutex<Option<Running>>,
}

/// What exists only while the relay is running.
struct Running {
    mailroom: Arc<Mailroom>,
    /// See [`Queue::identity`].
    identity: Arc<str>,
    worker: Worker,
}

/// The state of a target, for operators.
#[derive(Clone, Debug)]
pub struct TargetStatus {
    /// The target.
    pub target: Target,
    /// When the next connection is tried, if the target is paused because it could not be reached.
    pub paused_until: Option<Timestamp>,
    /// The error of the last connection, if it failed.
    pub last_error: Option<String>,
    /// The number of entries by state.
    pub entries: Vec<(EntryState, u64)>,
}

impl Relay {
    /// Creates the relay. Nothing is sent before [`Relay::start`].
    pub fn new(settings: Settings, queue: Arc<dyn Queue>) -> Arc<Self> {
        let shared = Arc::new(Shared::new(settings, queue));
        Arc::new(Self { shared, stage: watch::Sender::default(), running: Mutex::default() })
    }

    /// Starts to send and to forward. Must be called once, within a runtime, when the mailroom exists and before
    /// messages arrive. The error is a sentence for the operator.
    ///
    /// Sessions run on a thread of low priority, so that they do not slow down deliveries. A shared store and its queue are
    /// accessed on the runtime of the caller, to which their connections belong.
    pub async fn start(self: &Arc<Self>, mailroom: &Arc<Mailroom>) -> Result<(), String> {
        let cannot_open = |error| format!("cannot open the relay queue: {error}");
        let identity: Arc<str> = self.shared.queue.identity().await.map_err(cannot_open)?.into();
        if self.shared.settings.rules.is_empty() {
            self.shared.queue.delete_cursor().await.map_err(cannot_open)?;
        } else {
            // Messages that are stored from now on are forwarded, if this is the first start with rules.
            self.shared.acquire_cursor(mailroom).await.map_err(cannot_open)?;
        }
        let context = Context {
            queue: self.shared.queue.clone(),
            mailroom: mailroom.clone(),
            main: Handle::current(),
            stage: self.stage.subscribe(),
            errors: Arc::default(),
            error_text: "the relay cannot access the store or its queue, retrying",
        };
        let (shared, background_identity) = (self.shared.clone(), identity.clone());
        let worker = Worker::spawn("relay", move || background::run(&context, shared, background_identity));
        let worker = worker.map_err(|error| format!("cannot start the relay thread: {error}"))?;
        *self.running.lock() = Some(Running { mailroom: mailroom.clone(), identity, worker });
        Ok(())
    }

    /// Stops after the messages that are being sent, as far as `timeout` allows. The others stay in the queue. Blocks.
    pub fn shut_down(&self, timeout: Duration) {
        self.stage.send_replace(Stage::Stopping);
        let Some(Running { worker, .. }) = self.running.lock().take() else { return };
        if !worker.wait_until(Instant::now() + timeout) {
            tracing::warn!("messages that are being relayed did not end in time; they are sent again later");
        }
    }

    /// Returns the targets.
    pub fn targets(&self) -> &[Target] {
        &self.shared.settings.targets
    }

    /// Returns the number of rules.
    pub fn rule_count(&self) -> usize {
        self.shared.settings.rules.len()
    }

    /// Adds a message to the queue. When this returns, the entry survives a restart, unless the queue is in memory.
    pub async fn release(&self, request: ReleaseRequest) -> Result<Entry, ReleaseError> {
        let ReleaseRequest { message, target, recipients, by, subject_prefix } = request;
        let target = select_target(&self.shared.settings.targets, target.as_deref())?;
        let recipients = if recipients.is_empty() {
            message.copies().iter().flat_map(|copy| copy.details.recipients()).map(str::to_owned).collect()
        } else {
            recipients
        };
        let recipients = check_recipients(target, &recipients)?;
        let subject_prefix = check_prefix(&subject_prefix)?;
        let copy = message.first();
        let running = self.running.lock().as_ref().map(|running| (running.mailroom.clone(), running.identity.clone()));
        let Some((mailroom, identity)) = running else { return Err(ReleaseError::NoTarget) };
        let source = mailroom.source(&copy.mailbox, copy.id).await.map_err(ReleaseError::Store)?;
        let source = source.ok_or(ReleaseError::Deleted)?;
        if let Some(reason) = message::find_loop(&source.body, &identity, false) {
            return Err(ReleaseError::Loop(reason));
        }
        let origin = Origin::Release { by, subject_prefix };
        let entry = self.shared.new_entry(copy, target, recipients, origin);
        let ids = self.shared.queue.add(vec![entry]).await.map_err(|error| match error {
            AddError::Full => ReleaseError::QueueFull,
            AddError::Store(error) => ReleaseError::Store(error),
        })?;
        self.shared.wake_target(&target.name);
        let id = ids.first().copied().ok_or(ReleaseError::Deleted)?;
        let entry = self.entry(id).await.map_err(ReleaseError::Store)?;
        // Finished entries are deleted when there are many, but not within the time of one request.
        entry.ok_or(ReleaseError::Deleted)
    }

    /// Returns the transcript of the last attempt of an entry.
    pub async fn transcript(&self, id: EntryId) -> Result<Option<TranscriptLines>> {
        Ok(self.shared.queue.attempt_log(id).await?.map(TranscriptLines::from_bytes))
    }

    /// Returns the targets with their states.
    pub async fn target_statuses(&self) -> Result<Vec<TargetStatus>> {
        let counts = self.shared.queue.counts().await?;
        let status = |(target, state): (&Target, &Arc<TargetState>)| {
            let (paused_until, last_error) = state.pause_and_error();
            let of_target = counts.iter().filter(|count| count.target == target.name);
            let entries = of_target.map(|count| (count.state, count.count)).collect();
            TargetStatus { target: target.clone(), paused_until, last_error, entries }
        };
        Ok(self.shared.settings.targets.iter().zip(&self.shared.states).map(status).collect())
    }

    /// Returns the counters. The numbers of entries are some seconds old.
    pub fn counts(&self) -> Counts {
        Counts {
            targets: self.shared.states.iter().map(|state| TargetCounts::new(state)).collect(),
            entries: self.shared.entry_counts.lock().clone(),
            loops: self.shared.loops.load(Relaxed),
            recipients_not_allowed: self.shared.recipients_not_allowed.load(Relaxed),
        }
    }
}

impl EntryControl for Relay {
    type Entry = Entry;

    /// Unreadable ones are left out.
    async fn entries(&self, filter: EntryFilter) -> Result<Vec<Entry>> {
        let log = |error: &_| tracing::error!(%error, "a relay entry is left out");
        let entries = self.shared.queue.list(filter).await?;
        Ok(entries.into_iter().filter_map(|entry| Entry::decode(entry).inspect_err(log).ok()).collect())
    }

    async fn entry(&self, id: EntryId) -> Result<Option<Entry>> {
        self.shared.queue.find(id).await?.map(Entry::decode).transpose()
    }

    async fn cancel(&self, selection: Selection) -> Result<u64> {
        self.shared.queue.cancel(selection).await
    }

    async fn retry(&self, selection: Selection) -> Result<u64> {
        let now = Timestamp::now();
        let (expiry, states) = (self.shared.expiry(now), &self.shared.states);
        let names: Vec<String> = states.iter().map(|state| state.name.clone()).collect();
        let retried = self.shared.queue.retry(selection, now, expiry, &names, TargetLimits::NONE).await?;
        let is_retried = |state: &&Arc<TargetState>| retried.contains(&state.name);
        states.iter().filter(is_retried).for_each(|state| state.end_pause());
        Ok(retried.len() as u64)
    }
}

impl Observer for Relay {
    fn message_stored(&self, _: &Summary) {
        self.shared.delivery_load.count(Instant::now);
        self.shared.message_stored.notify_one();
    }

    fn message_deleted(&self, _: &Summary) {}

    fn events_missed(&self) {
        self.shared.message_stored.notify_one();
    }
}
