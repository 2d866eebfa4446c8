//! The public interface of webhooks: start, events of the mailroom, and shutdown.

use std::collections::HashSet;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use restante_http_client::{BodyMode, ClientPolicy, HttpClient, HttpService};
use restante_mail::message::{MessageId, Summary};
use restante_mailroom::Mailroom;
use restante_mailroom::hooks::Observer;
use restante_worker::Worker;
use tokio::sync::oneshot;

use crate::backoff::Backoff;
use crate::counts::Counts;
use crate::endpoint::Endpoint;
use crate::filter::Filter;
use crate::inbox::{EventInbox, InboxEvent};
use crate::missed_messages::{MissedMessages, find_missed};
use crate::outbox_file::OutboxFile;
use crate::persist_worker::{Gap, PersistSettings, PersistWorker};
use crate::target_queue::{Dependencies, ShutdownMode, TargetQueue};
use crate::{Event, Settings, Target};

/// The limits of `give_up_after`.
const MIN_RETRY_TIME: Duration = Duration::from_secs(1);
const MAX_RETRY_TIME: Duration = Duration::from_hours(365 * 24);
/// How long a shutdown continues to send events that would be lost.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);
/// The extra time of a shutdown: for the disk, after its own timeout, and for a response, after the timeout of the
/// request.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(1);

/// The webhooks of a server. See the crate documentation.
pub struct Webhooks {
    pub(crate) queues: Vec<Arc<TargetQueue>>,
    inbox: Arc<EventInbox>,
    /// The timeout of a request.
    timeout: Duration,
    /// The maximum number of missed messages that are sent at a start.
    max_missed: usize,
    /// Receives from the persist worker the range of messages that may have been missed.
    gap_receiver: Mutex<Option<oneshot::Receiver<Gap>>>,
}

impl Webhooks {
    /// Opens the outbox and starts the worker thread. Nothing is sent or written before [`Webhooks::activate`]. The
    /// error is a sentence for the operator.
    pub fn start(settings: Settings) -> Result<Arc<Self>, String> {
        let private_addresses = settings.private_addresses;
        // A repeated request is harmless: targets recognize it by the event id.
        let policy = ClientPolicy {
            allow_private_addresses: private_addresses,
            use_proxies: false,
            max_redirects: 0,
            body_mode: BodyMode::HeadOnly,
            retry_all_methods: true,
        };
        Self::start_with(settings, Arc::new(HttpClient::new(policy)), Backoff::DEFAULT)
    }

    pub(crate) fn start_with(
        settings: Settings,
        http: Arc<dyn HttpService>,
        backoff: Backoff,
    ) -> Result<Arc<Self>, String> {
        let Settings { targets, secret, timeout, give_up_after, max_queued, directory, .. } = settings;
        let targets = merge_targets(&targets)?;
        let digests = targets.iter().map(|(endpoint, _)| endpoint.digest()).collect();
        let outbox_file = directory.map(|directory| OutboxFile::new(directory, digests));

        let inbox = Arc::new(EventInbox::default());
        let queue_limit = u64::try_from(max_queued).unwrap_or(u64::MAX);
        let dependencies =
            Dependencies { http, key: secret, timeout, backoff, max_queued: queue_limit, inbox: inbox.clone() };
        let queue = |(endpoint, filters)| Arc::new(TargetQueue::new(endpoint, filters, dependencies.clone()));
        let queues: Vec<_> = targets.into_iter().map(queue).collect();

        let give_up_after = give_up_after.clamp(MIN_RETRY_TIME, MAX_RETRY_TIME);
        let persist_settings = PersistSettings {
            give_up_after,
            min_retry_time: backoff.max_delay,
            retry_interval: backoff.outbox_retry_delay,
        };
        let (gap_sender, gap_receiver) = oneshot::channel();
        let worker = PersistWorker::new(queues.clone(), inbox.clone(), outbox_file, persist_settings, gap_sender);
        // The shutdown waits for this thread through the inbox.
        let started = Worker::spawn("webhook-persist", move || worker.run());
        started.map_err(|error| format!("cannot start the webhook thread: {error}"))?;
        let max_missed = max_queued.saturating_mul(queues.len());
        Ok(Arc::new(Self { queues, inbox, timeout, max_missed, gap_receiver: Mutex::new(Some(gap_receiver)) }))
    }

    /// Starts processing events. Must be called once, when the mailroom exists, before messages arrive.
    pub async fn activate(&self, mailroom: &Mailroom) {
        let last = mailroom.last_id().await.unwrap_or_else(|error| {
            tracing::error!(%error, "cannot read the last message id; webhooks will not find messages that they missed");
            MessageId::ZERO
        });
        self.activate_after(last);
    }

    /// Starts processing. All messages that are stored from now on have an id above `last`.
    pub(crate) fn activate_after(&self, last: MessageId) {
        self.inbox.start(last);
    }

    /// Sends events for messages that were stored before a crash and for which no event was recorded. This can take a
    /// while, and messages can arrive meanwhile. If it is cancelled or fails, the next start tries again.
    ///
    /// The search covers the newest messages, so an event can be sent a second time: delivery is at least once, not
    /// exactly once. After a clean shutdown, and at the very first start, there is nothing to do. In a store that
    /// several nodes share it does nothing either: it is unknown which messages arrived at this node, and the other
    /// nodes send their own events.
    pub async fn catch_up(&self, mailroom: &Mailroom) {
        let receiver = self.gap_receiver.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(receiver) = receiver else { return };
        // Without a gap the sender is dropped.
        let Ok(gap) = receiver.await else { return };
        let matching = |mailbox: &str| self.matching_queues(Event::Stored, mailbox, &gap.missed.new_targets).collect();
        let missed = if mailroom.is_shared() {
            Ok(MissedMessages::default())
        } else {
            find_missed(mailroom, &gap, self.max_missed, matching).await
        };
        match missed {
            Ok(missed) => self.enqueue_missed(&gap, missed),
            Err(error) => {
                tracing::error!(%error, "cannot search for messages that webhooks missed; the next start tries again");
            }
        }
    }

    /// Returns the number of targets.
    pub fn target_count(&self) -> usize {
        self.queues.len()
    }

    /// Returns the statistics of each target in the order of the settings. Targets with the same label are counted
    /// together.
    pub fn counts(&self) -> Vec<Counts> {
        let mut all: Vec<Counts> = Vec::with_capacity(self.queues.len());
        for queue in &self.queues {
            let index = all.iter().position(|counts| counts.target == queue.endpoint.label).unwrap_or_else(|| {
                all.push(Counts { target: queue.endpoint.label.clone(), ..Counts::default() });
                all.len() - 1
            });
            queue.counters.add_to(&mut all[index]);
        }
        all
    }

    /// Shuts down: completes requests in progress, as far as `timeout` allows, and keeps the remaining events for the
    /// next start if they are on disk. Unless `is_clean` is set, more events may have been lost, and the next
    /// start searches for them. Blocks.
    pub fn shut_down(&self, timeout: Duration, is_clean: bool) {
        let started_at = Instant::now();
        let deadline = started_at + timeout;
        // Even with a timeout of zero there is time to find out that nothing has to be written.
        let is_flushed = self.inbox.close(started_at + timeout.max(SHUTDOWN_GRACE));
        let is_persisted = self.inbox.is_persisted();
        if is_persisted {
            // If the response is not awaited, the event is sent again after the restart.
            self.stop_queues(ShutdownMode::KeepQueue, deadline.min(Instant::now() + self.timeout + SHUTDOWN_GRACE));
        } else {
            self.stop_queues(ShutdownMode::DrainQueue, deadline.min(Instant::now() + DRAIN_TIMEOUT));
        }
        let has_stopped = self.inbox.stop(is_flushed && is_clean, deadline + SHUTDOWN_GRACE);
        let events: u64 = self.counts().iter().map(|counts| counts.waiting).sum();
        if !is_flushed || !has_stopped {
            tracing::warn!("webhook events could not be written to disk before the shutdown timeout");
        } else if events > 0 && self.inbox.is_persisted() {
            tracing::info!(events, "undelivered webhook events are kept for the next start");
        } else if events > 0 {
            tracing::warn!(events, "undelivered webhook events are lost at shutdown");
        }
        if !is_clean && is_persisted {
            tracing::info!("unclean shutdown: the next start searches for messages that webhooks missed");
        }
    }

    fn stop_queues(&self, mode: ShutdownMode, deadline: Instant) {
        for queue in &self.queues {
            queue.stop(mode);
        }
        for queue in &self.queues {
            queue.wait_until_stopped(deadline);
        }
    }

    fn enqueue(&self, event: Event, summary: &Summary) {
        let targets = self.reserve_slots(event, summary, &HashSet::new());
        if targets.is_empty() {
            return;
        }
        if let Err(reason) = self.inbox.push(InboxEvent { event, summary: summary.clone(), targets: targets.clone() }) {
            for target in targets {
                self.queues[target].drop_reserved(reason);
            }
        }
    }

    /// Returns the indexes of the queues that match, except those in `excluded`.
    fn matching_queues(&self, event: Event, mailbox: &str, excluded: &HashSet<usize>) -> impl Iterator<Item = usize> {
        let matches = move |(index, queue): &(usize, &Arc<TargetQueue>)| {
            queue.matches(event, mailbox) && !excluded.contains(index)
        };
        self.queues.iter().enumerate().filter(matches).map(|(index, _)| index)
    }

    /// Reserves a slot in each matching queue that is not full. Returns the indexes of these queues.
    fn reserve_slots(&self, event: Event, summary: &Summary, excluded: &HashSet<usize>) -> Vec<usize> {
        self.matching_queues(event, summary.mailbox.as_str(), excluded)
            .filter(|target| self.queues[*target].reserve_slot())
            .collect()
    }

    fn enqueue_missed(&self, gap: &Gap, missed: MissedMessages) {
        let MissedMessages { messages, dropped, dropped_by_target } = missed;
        if dropped > 0 {
            tracing::warn!(messages = dropped, "webhooks missed too many messages; the oldest are dropped");
        }
        for (target, count) in dropped_by_target {
            self.queues[target].counters.dropped.fetch_add(count, Relaxed);
        }
        if !messages.is_empty() {
            let messages = messages.len();
            tracing::info!(messages, "sending events for messages that webhooks may have missed");
        }
        let events = messages.into_iter().map(|summary| {
            let targets = self.reserve_slots(Event::Stored, &summary, &gap.missed.new_targets);
            InboxEvent { event: Event::Stored, summary, targets }
        });
        if let Err(events) = self.inbox.push_missed(events.collect()) {
            // The server is shutting down. The next start finds these messages again.
            for target in events.into_iter().flat_map(|event| event.targets) {
                self.queues[target].release_slot();
            }
        }
    }
}

impl Observer for Webhooks {
    fn message_stored(&self, summary: &Summary) {
        self.inbox.record_id(summary.id);
        self.enqueue(Event::Stored, summary);
    }

    fn message_deleted(&self, summary: &Summary) {
        self.enqueue(Event::Deleted, summary);
    }
}

/// Without a shutdown the threads stop as soon as possible, and waiting events are found again as after a crash.
impl Drop for Webhooks {
    fn drop(&mut self) {
        for queue in &self.queues {
            queue.stop(ShutdownMode::KeepQueue);
        }
        self.inbox.stop(false, Instant::now() + SHUTDOWN_GRACE);
    }
}

/// Parses the targets and merges entries with the same URL.
fn merge_targets(entries: &[Target]) -> Result<Vec<(Endpoint, Vec<Filter>)>, String> {
    let mut targets: Vec<(Endpoint, Vec<Filter>)> = Vec::new();
    for target in entries {
        let (endpoint, filter) = (Endpoint::parse(&target.url)?, Filter::new(target));
        match targets.iter_mut().find(|(known, _)| *known == endpoint) {
            Some((_, filters)) => filters.push(filter),
            None => targets.push((endpoint, vec![filter])),
        }
    }
    Ok(targets)
}
