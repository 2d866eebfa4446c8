//! Webhooks as the server sees them: their start, what they hear, and their end.

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

/// The bounds of how long an event is tried: at least once, and never for ever.
const MIN_RETRY_TIME: Duration = Duration::from_secs(1);
const MAX_RETRY_TIME: Duration = Duration::from_hours(365 * 24);
/// How long the end goes on sending what would be lost.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the end waits for the disk beyond its patience, and for an answer beyond the time that a target has.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(1);

/// See the crate's documentation.
pub struct Webhooks {
    pub(crate) queues: Vec<Arc<TargetQueue>>,
    inbox: Arc<EventInbox>,
    /// How long a target may take to answer.
    timeout: Duration,
    /// How many missed messages are told of at most.
    max_missed: usize,
    /// Where the clerk says what may have been missed.
    gap_receiver: Mutex<Option<oneshot::Receiver<Gap>>>,
}

impl Webhooks {
    /// Opens the queue and starts the threads; nothing is sent or written before [`Webhooks::begin`]. The error is a sentence
    /// for the operator.
    pub fn start(settings: Settings) -> Result<Arc<Self>, String> {
        let private_addresses = settings.private_addresses;
        // Whoever is told twice knows that by the name of the event.
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
        // The end is waited for through the intake.
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

    /// The server serves from now on. Called once, when the mailroom is there, before mail arrives.
    pub async fn activate(&self, mailroom: &Mailroom) {
        let last = mailroom.last_id().await.unwrap_or_else(|error| {
            tracing::error!(%error, "webhooks do not know which message came last");
            MessageId::ZERO
        });
        self.activate_after(last);
    }

    /// Everything that is stored from now on has an id above this one.
    pub(crate) fn activate_after(&self, last: MessageId) {
        self.inbox.start(last);
    }

    /// Tells of what was stored and not told before the process ended without saying goodbye. It takes its time, in which
    /// mail may arrive; when it is broken off, or fails, the next start tries again.
    ///
    /// It looks at the messages that came last, so it can tell of one that was told of already: at least once, not exactly
    /// once. After an end in good order, and at the very first start, there is nothing to tell. In a store that several nodes
    /// share, nobody knows which of them came through this one, and the others have told of theirs: none is told of.
    pub async fn catch_up(&self, mailroom: &Mailroom) {
        let gap = self.gap_receiver.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(gap) = gap else { return };
        // Without a gap nobody says anything.
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

    /// How many targets there are.
    pub fn target_count(&self) -> usize {
        self.queues.len()
    }

    /// What has become of the events, for each target in the order of the settings. Targets that differ only in what is not
    /// shown of them are counted together.
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

    /// Says goodbye: takes what is under way to its end as far as there is time, and keeps the rest for the next start where
    /// that is possible. When the end is not `in_good_order`, nobody knows what is still to come, so the next start looks for
    /// what was not told. Blocking.
    pub fn shut_down(&self, patience: Duration, in_good_order: bool) {
        let begun = Instant::now();
        let deadline = begun + patience;
        // However little time is left, there is enough to see that there is nothing to write.
        let is_flushed = self.inbox.close(begun + patience.max(SHUTDOWN_GRACE));
        let is_kept = self.inbox.is_persisted();
        if is_kept {
            // An answer that nobody hears is an event that is told twice.
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

    /// The lanes that want to be told, but for some.
    fn matching_queues(&self, event: Event, mailbox: &str, but: &HashSet<usize>) -> impl Iterator<Item = usize> {
        let lanes = self.queues.iter().enumerate();
        lanes.filter(move |(lane, it)| it.matches(event, mailbox) && !but.contains(lane)).map(|(lane, _)| lane)
    }

    /// Takes a place in each of the lanes that want to be told, as far as there is one.
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
            // The end has begun. They are found again at the next start.
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

/// Without a goodbye the threads leave as soon as they can, and what waits is found as after a crash.
impl Drop for Webhooks {
    fn drop(&mut self) {
        for lane in &self.queues {
            lane.stop(ShutdownMode::KeepQueue);
        }
        self.inbox.stop(false, Instant::now() + SHUTDOWN_GRACE);
    }
}

/// The targets, each URL once.
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
