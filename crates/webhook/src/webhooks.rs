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

/// The limits of `give_up_after`: every event is tried at least once, and none forever.
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
        let rules = ClientPolicy {
            allow_private_addresses: private_addresses,
            use_proxies: false,
            max_redirects: 0,
            body_mode: BodyMode::HeadOnly,
            retry_all_methods: true,
        };
        Self::start_with(settings, Arc::new(HttpClient::new(rules)), Backoff::DEFAULT)
    }

    pub(crate) fn start_with(
        settings: Settings,
        http: Arc<dyn HttpService>,
        pace: Backoff,
    ) -> Result<Arc<Self>, String> {
        let Settings { targets, secret, timeout, give_up_after, max_queued: queue, directory, .. } = settings;
        let targets = merge_targets(&targets)?;
        let digests = targets.iter().map(|(place, _)| place.digest()).collect();
        let shelf = directory.map(|directory| OutboxFile::new(directory, digests));

        let intake = Arc::new(EventInbox::default());
        let bound = u64::try_from(queue).unwrap_or(u64::MAX);
        let means =
            Dependencies { http, key: secret, timeout, backoff: pace, max_queued: bound, inbox: intake.clone() };
        let lane = |(place, filters)| Arc::new(TargetQueue::new(place, filters, means.clone()));
        let lanes: Vec<_> = targets.into_iter().map(lane).collect();

        let give_up_after = give_up_after.clamp(MIN_RETRY_TIME, MAX_RETRY_TIME);
        let habits =
            PersistSettings { give_up_after, min_retry_time: pace.max_delay, retry_interval: pace.outbox_retry_delay };
        let (searcher, gap) = oneshot::channel();
        let clerk = PersistWorker::new(lanes.clone(), intake.clone(), shelf, habits, searcher);
        // The shutdown waits for this thread through the inbox.
        let started = Worker::spawn("webhook-clerk", move || clerk.run());
        started.map_err(|error| format!("no thread for webhooks: {error}"))?;
        let most_missed = queue.saturating_mul(lanes.len());
        Ok(Arc::new(Self {
            queues: lanes,
            inbox: intake,
            timeout,
            max_missed: most_missed,
            gap_receiver: Mutex::new(Some(gap)),
        }))
    }

    /// Starts processing events. Must be called once, when the mailroom exists, before messages arrive.
    pub async fn activate(&self, mailroom: &Mailroom) {
        let last = mailroom.last_id().await.unwrap_or_else(|error| {
            tracing::error!(%error, "webhooks do not know which message came last");
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
        let gap = self.gap_receiver.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(gap) = gap else { return };
        // Without a gap the sender is dropped.
        let Ok(gap) = gap.await else { return };
        let lanes_of = |mailbox: &str| self.matching_queues(Event::Stored, mailbox, &gap.missed.new_targets).collect();
        let found = if mailroom.is_shared() {
            Ok(MissedMessages::default())
        } else {
            find_missed(mailroom, &gap, self.max_missed, lanes_of).await
        };
        match found {
            Ok(found) => self.enqueue_missed(&gap, found),
            Err(error) => tracing::error!(%error, "webhooks are not told of messages that they may have missed"),
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
        for lane in &self.queues {
            let place = all.iter().position(|counts| counts.target == lane.endpoint.label).unwrap_or_else(|| {
                all.push(Counts { target: lane.endpoint.label.clone(), ..Counts::default() });
                all.len() - 1
            });
            lane.counters.add_to(&mut all[place]);
        }
        all
    }

    /// Shuts down: completes requests in progress, as far as `timeout` allows, and keeps the remaining events for the
    /// next start if they are on disk. If the shutdown is not `clean`, more events may have been lost, and the next
    /// start searches for them. Blocks.
    pub fn shut_down(&self, patience: Duration, in_good_order: bool) {
        let begun = Instant::now();
        let deadline = begun + patience;
        // Even without a timeout there is time to find out that nothing has to be written.
        let is_flushed = self.inbox.close(begun + patience.max(SHUTDOWN_GRACE));
        let is_kept = self.inbox.is_persisted();
        if is_kept {
            // If the response is not awaited, the event is sent again after the restart.
            self.stop_queues(ShutdownMode::KeepQueue, deadline.min(Instant::now() + self.timeout + SHUTDOWN_GRACE));
        } else {
            self.stop_queues(ShutdownMode::DrainQueue, deadline.min(Instant::now() + DRAIN_TIMEOUT));
        }
        let has_left = self.inbox.stop(is_flushed && in_good_order, deadline + SHUTDOWN_GRACE);
        let events: u64 = self.counts().iter().map(|counts| counts.waiting).sum();
        if !is_flushed || !has_left {
            tracing::warn!("the events that wait for webhooks could not be written down in time");
        } else if events > 0 && self.inbox.is_persisted() {
            tracing::info!(events, "events wait for webhooks until the next start");
        } else if events > 0 {
            tracing::warn!(events, "webhooks were not told of some events, which are lost");
        }
        if !in_good_order && is_kept {
            tracing::info!("the next start looks for messages that webhooks were not told of");
        }
    }

    fn stop_queues(&self, ending: ShutdownMode, deadline: Instant) {
        for lane in &self.queues {
            lane.stop(ending);
        }
        for lane in &self.queues {
            lane.wait_until_stopped(deadline);
        }
    }

    fn enqueue(&self, event: Event, summary: &Summary) {
        let lanes = self.reserve_slots(event, summary, &HashSet::new());
        if lanes.is_empty() {
            return;
        }
        if let Err(why) = self.inbox.push(InboxEvent { event, summary: summary.clone(), targets: lanes.clone() }) {
            for lane in lanes {
                self.queues[lane].drop_reserved(why);
            }
        }
    }

    /// Returns the indexes of the queues that match, except those in `excluded`.
    fn matching_queues(&self, event: Event, mailbox: &str, but: &HashSet<usize>) -> impl Iterator<Item = usize> {
        let lanes = self.queues.iter().enumerate();
        lanes.filter(move |(lane, it)| it.matches(event, mailbox) && !but.contains(lane)).map(|(lane, _)| lane)
    }

    /// Reserves a slot in each matching queue that is not full. Returns the indexes of these queues.
    fn reserve_slots(&self, event: Event, summary: &Summary, but: &HashSet<usize>) -> Vec<usize> {
        self.matching_queues(event, summary.mailbox.as_str(), but)
            .filter(|lane| self.queues[*lane].reserve_slot())
            .collect()
    }

    fn enqueue_missed(&self, gap: &Gap, found: MissedMessages) {
        let MissedMessages { messages, dropped, dropped_by_target: dropped_by_lane } = found;
        if dropped > 0 {
            tracing::warn!(messages = dropped, "webhooks missed too many messages; they are not told of the oldest");
        }
        for (lane, count) in dropped_by_lane {
            self.queues[lane].counters.dropped.fetch_add(count, Relaxed);
        }
        if !messages.is_empty() {
            let messages = messages.len();
            tracing::info!(messages, "webhooks are told of messages that they may have missed");
        }
        let news = messages.into_iter().map(|summary| {
            let lanes = self.reserve_slots(Event::Stored, &summary, &gap.missed.new_targets);
            InboxEvent { event: Event::Stored, summary, targets: lanes }
        });
        if let Err(news) = self.inbox.push_missed(news.collect()) {
            // The server is shutting down. The next start finds these messages again.
            for lane in news.into_iter().flat_map(|news| news.targets) {
                self.queues[lane].release_slot();
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
        for lane in &self.queues {
            lane.stop(ShutdownMode::KeepQueue);
        }
        self.inbox.stop(false, Instant::now() + SHUTDOWN_GRACE);
    }
}

/// Parses the targets and merges entries with the same URL.
fn merge_targets(entries: &[Target]) -> Result<Vec<(Endpoint, Vec<Filter>)>, String> {
    let mut targets: Vec<(Endpoint, Vec<Filter>)> = Vec::new();
    for target in entries {
        let (place, filter) = (Endpoint::parse(&target.url)?, Filter::new(target));
        match targets.iter_mut().find(|(known, _)| *known == place) {
            Some((_, filters)) => filters.push(filter),
            None => targets.push((place, vec![filter])),
        }
    }
    Ok(targets)
}
