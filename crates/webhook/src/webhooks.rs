//! The public interface of webhooks: start, events of the mailroom, what operators see and change, and shutdown.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::sleep;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use parking_lot::Mutex;
use restante_http_client::{BodyMode, ClientPolicy, HttpClient, HttpService};
use restante_mail::message::{MessageId, Summary};
use restante_mailroom::hooks::Observer;
use restante_mailroom::{Mailroom, StoreError};
use restante_queue::{Context, Entry, EntryControl, EntryFilter, EntryId, Queue, Selection, Stage};
use restante_worker::Worker;
use tokio::runtime::Handle;
use tokio::sync::watch;

use crate::backoff::Backoff;
use crate::counts::Counts;
use crate::inbox::{Inbox, InboxEvent};
use crate::target::{ConfiguredTarget, TargetStatus};
use crate::writer::{self, Shared, Writer};
use crate::{EventKind, Settings};

/// The limits of `give_up_after`.
const MIN_RETRY_TIME: Duration = Duration::from_secs(1);
const MAX_RETRY_TIME: Duration = Duration::from_hours(365 * 24);
/// How long a shutdown continues to send events that would be lost.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);
/// The extra time of a shutdown: for the disk, after its own timeout, and for a response, after the timeout of the
/// request.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(1);
/// How often a shutdown looks whether the writer is finished.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// The webhooks of a server. See the crate documentation.
pub struct Webhooks {
    pub(crate) shared: Arc<Shared>,
    stage: watch::Sender<Stage>,
    /// Set by [`Webhooks::activate`].
    worker: Mutex<Option<Worker>>,
}

impl Webhooks {
    /// Creates the webhooks. Nothing is sent or written before [`Webhooks::activate`]. The error is a sentence for the
    /// operator.
    pub async fn new(settings: Settings, queue: Arc<dyn Queue>) -> Result<Arc<Self>, String> {
        // A repeated request is harmless: targets recognize it by the event id.
        let policy = ClientPolicy {
            allow_private_addresses: settings.private_addresses,
            use_proxies: false,
            max_redirects: 0,
            body_mode: BodyMode::HeadOnly,
            retry_all_methods: true,
        };
        Self::with_http(settings, queue, Arc::new(HttpClient::new(policy)), Backoff::DEFAULT).await
    }

    pub(crate) async fn with_http(
        mut settings: Settings,
        queue: Arc<dyn Queue>,
        http: Arc<dyn HttpService>,
        backoff: Backoff,
    ) -> Result<Arc<Self>, String> {
        settings.give_up_after = settings.give_up_after.clamp(MIN_RETRY_TIME, MAX_RETRY_TIME);
        let secret = queue.secret().await.map_err(|error| format!("cannot start the webhooks: {error}"))?;
        let targets = ConfiguredTarget::merge(&settings.targets, &secret)?.into_iter().map(Arc::new).collect();
        let (inbox, is_flushed, needs_count) = (Inbox::default(), AtomicBool::default(), AtomicBool::default());
        let shared = Shared { settings, targets, queue, http, backoff, inbox, is_flushed, needs_count };
        Ok(Arc::new(Self { shared: Arc::new(shared), stage: watch::Sender::default(), worker: Mutex::default() }))
    }

    /// Ends the webhooks of an earlier configuration if there are none now: cancels their events, and lets nothing be
    /// searched. Otherwise earlier events would be sent when webhooks are configured again. Returns the number of
    /// cancelled events.
    pub async fn end(queue: &dyn Queue) -> Result<u64, StoreError> {
        let cancelled = queue.set_targets(Vec::new(), MessageId::ZERO).await?;
        queue.set_checkpoint(None).await?;
        queue.delete_abandoned(queue.abandoned_checkpoints().await?).await?;
        queue.leave().await?;
        Ok(cancelled)
    }

    /// Starts processing events. Must be called once, within a runtime, when the mailroom exists, before messages arrive.
    /// The error is a sentence for the operator. After an error nothing has changed.
    pub async fn activate(&self, mailroom: &Arc<Mailroom>) -> Result<(), String> {
        self.activate_after(mailroom.last_id().await, mailroom, Handle::current()).await
    }

    /// Starts processing. All messages that are stored from now on have an id above `last`.
    pub(crate) async fn activate_after(
        &self,
        last: Result<MessageId, StoreError>,
        mailroom: &Arc<Mailroom>,
        main: Handle,
    ) -> Result<(), String> {
        let cannot_start = |error| format!("cannot start the webhooks: {error}");
        let context = Context {
            queue: self.shared.queue.clone(),
            mailroom: mailroom.clone(),
            main,
            stage: self.stage.subscribe(),
            errors: Arc::default(),
            error_text: "webhooks cannot access the store or their queue, retrying",
        };
        let last = last.map_err(cannot_start)?;
        // The queue knows the checkpoint of this node before messages arrive.
        let writer = Writer::start(context, self.shared.clone(), last).await.map_err(cannot_start)?;
        let worker = Worker::spawn("webhooks", move || writer::run(writer));
        *self.worker.lock() = Some(worker.map_err(|error| format!("cannot start the webhook thread: {error}"))?);
        Ok(())
    }

    /// Returns the number of targets.
    pub fn target_count(&self) -> usize {
        self.shared.targets.len()
    }

    /// Returns the statistics of each target in the order of the settings. Targets with the same label are counted
    /// together.
    pub fn counts(&self) -> Vec<Counts> {
        let mut all: Vec<Counts> = Vec::with_capacity(self.shared.targets.len());
        for target in &self.shared.targets {
            let index = all.iter().position(|counts| counts.target == target.endpoint.label).unwrap_or_else(|| {
                all.push(Counts { target: target.endpoint.label.clone(), ..Counts::default() });
                all.len() - 1
            });
            target.add_to(&mut all[index]);
        }
        all
    }

    /// Returns the targets with their states, in the order of the settings.
    pub async fn target_statuses(&self) -> Result<Vec<TargetStatus>, StoreError> {
        let (counts, records) = (self.shared.queue.counts().await?, self.shared.queue.targets().await?);
        let status = |target: &Arc<ConfiguredTarget>| {
            let name = &target.state.name;
            let (unavailable_until, last_error) = target.state.pause_and_error();
            let of_target = counts.iter().filter(|count| count.target == *name);
            TargetStatus {
                name: name.clone(),
                label: target.endpoint.label.clone(),
                filters: target.filters.clone(),
                is_paused: records.iter().any(|record| record.name == *name && record.is_paused),
                unavailable_until,
                last_error,
                entries: of_target.map(|count| (count.state, count.count)).collect(),
            }
        };
        Ok(self.shared.targets.iter().map(status).collect())
    }

    /// Pauses a target on all nodes, or ends its pause, also after a restart. Requests in progress continue. Returns
    /// false if there is no target with this name.
    pub async fn set_paused(&self, name: &str, is_paused: bool) -> Result<bool, StoreError> {
        let Some(target) = self.shared.find_target(name) else { return Ok(false) };
        self.shared.queue.set_paused(name, is_paused).await?;
        self.shared.targets[target].state.end_pause();
        Ok(true)
    }

    /// Shuts down: completes requests in progress, as far as `timeout` allows, and keeps the remaining events for the
    /// next start if the queue is durable. Unless `is_clean` is set, more events may have been lost, and the next
    /// start searches for them. Blocks.
    pub fn shut_down(&self, timeout: Duration, is_clean: bool) {
        let started_at = Instant::now();
        let deadline = started_at + timeout;
        self.shared.inbox.close(is_clean);
        let Some(worker) = self.worker.lock().take() else { return };
        // Even with a timeout of zero there is time to find out that nothing has to be written.
        let flush_deadline = started_at + timeout.max(SHUTDOWN_GRACE);
        while !self.shared.is_flushed.load(Relaxed) && Instant::now() < flush_deadline && !worker.is_finished() {
            sleep(POLL_INTERVAL);
        }
        let is_flushed = self.shared.is_flushed.load(Relaxed);
        let is_durable = self.shared.settings.is_durable;
        let (stage, time) = if is_durable {
            // If the response is not awaited, the event is sent again after the restart.
            (Stage::Stopping, self.shared.settings.timeout + SHUTDOWN_GRACE)
        } else {
            (Stage::Draining, DRAIN_TIMEOUT)
        };
        self.stage.send_replace(stage);
        if !worker.wait_until(deadline.min(Instant::now() + time)) {
            self.stage.send_replace(Stage::Stopping);
            worker.wait_until(Instant::now() + SHUTDOWN_GRACE);
        }
        let events: u64 = self.counts().iter().map(|counts| counts.waiting).sum();
        if !is_flushed {
            tracing::warn!("webhook events could not be written to the queue before the shutdown timeout");
        } else if events > 0 && is_durable {
            tracing::info!(events, "undelivered webhook events are kept for the next start");
        } else if events > 0 {
            tracing::warn!(events, "undelivered webhook events are lost at shutdown");
        }
        if !is_clean && is_durable {
            tracing::info!("unclean shutdown: the next start searches for messages that webhooks missed");
        }
    }

    fn enqueue(&self, event: EventKind, summary: &Summary) {
        let targets: Vec<usize> = self.shared.matching_targets(event, summary.mailbox.owner_name()).collect();
        if targets.is_empty() {
            return;
        }
        let in_inbox = |index: &usize| &self.shared.targets[*index].in_inbox;
        for index in &targets {
            in_inbox(index).fetch_add(1, Relaxed);
        }
        let pushed = self.shared.inbox.push(InboxEvent { event, summary: summary.clone(), targets: targets.clone() });
        if let Err(reason) = pushed {
            for index in &targets {
                in_inbox(index).fetch_sub(1, Relaxed);
                self.shared.targets[*index].count_dropped(reason);
            }
        }
    }
}

impl EntryControl for Webhooks {
    type Entry = Entry;

    /// The payloads are left empty, so that a large page does not hold them in memory.
    async fn entries(&self, filter: EntryFilter) -> Result<Vec<Entry>, StoreError> {
        self.shared.queue.list(EntryFilter { omits_payloads: true, ..filter }).await
    }

    async fn entry(&self, id: EntryId) -> Result<Option<Entry>, StoreError> {
        self.shared.queue.find(id).await
    }

    async fn cancel(&self, selection: Selection) -> Result<u64, StoreError> {
        let cancelled = self.shared.queue.cancel(selection).await?;
        self.shared.request_count();
        Ok(cancelled)
    }

    async fn retry(&self, selection: Selection) -> Result<u64, StoreError> {
        let now = Timestamp::now();
        let (expiry, names, limits) =
            (self.shared.expiry(now), self.shared.target_names(), self.shared.target_limits());
        let retried = self.shared.queue.retry(selection, now, expiry, &names, limits).await?;
        self.shared.request_count();
        let is_retried = |target: &&Arc<ConfiguredTarget>| retried.contains(&target.state.name);
        self.shared.targets.iter().filter(is_retried).for_each(|target| target.state.end_pause());
        Ok(retried.len() as u64)
    }
}

impl Observer for Webhooks {
    fn message_stored(&self, summary: &Summary) {
        self.enqueue(EventKind::Stored, summary);
    }

    fn message_deleted(&self, summary: &Summary) {
        self.enqueue(EventKind::Deleted, summary);
    }
}

/// Without a shutdown the thread stops as soon as possible, and waiting events are found again as after a crash.
impl Drop for Webhooks {
    fn drop(&mut self) {
        self.stage.send_replace(Stage::Stopping);
        if let Some(worker) = self.worker.lock().take() {
            worker.wait_until(Instant::now() + SHUTDOWN_GRACE);
        }
    }
}
