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

use crate::clerk::{Clerk, Gap, Habits};
use crate::counts::Counts;
use crate::filter::Filter;
use crate::intake::{Intake, News};
use crate::lane::{Ending, Lane, Means};
use crate::pace::Pace;
use crate::place::Place;
use crate::search::{Found, search};
use crate::shelf::Shelf;
use crate::{Event, Settings, Target};

/// The bounds of how long an event is tried: at least once, and never for ever.
const SHORTEST_TIME: Duration = Duration::from_secs(1);
const LONGEST_TIME: Duration = Duration::from_hours(365 * 24);
/// How long the end goes on sending what would be lost.
const FAREWELL: Duration = Duration::from_secs(5);
/// How long the end waits for the disk beyond its patience, and for an answer beyond the time that a target has.
const LAST_MOMENT: Duration = Duration::from_secs(1);

/// See the crate's documentation.
pub struct Webhooks {
    pub(crate) lanes: Vec<Arc<Lane>>,
    intake: Arc<Intake>,
    /// How long a target may take to answer.
    timeout: Duration,
    /// How many missed messages are told of at most.
    most_missed: usize,
    /// Where the clerk says what may have been missed.
    gap: Mutex<Option<oneshot::Receiver<Gap>>>,
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
        Self::start_with(settings, Arc::new(HttpClient::new(rules)), Pace::USUAL)
    }

    pub(crate) fn start_with(settings: Settings, http: Arc<dyn HttpService>, pace: Pace) -> Result<Arc<Self>, String> {
        let Settings { targets, secret, timeout, give_up_after, queue, directory, .. } = settings;
        let targets = merged(&targets)?;
        let digests = targets.iter().map(|(place, _)| place.digest()).collect();
        let shelf = directory.map(|directory| Shelf::new(directory, digests));

        let intake = Arc::new(Intake::default());
        let bound = u64::try_from(queue).unwrap_or(u64::MAX);
        let means = Means { http, key: secret, timeout, pace, queue: bound, intake: intake.clone() };
        let lane = |(place, filters)| Arc::new(Lane::new(place, filters, means.clone()));
        let lanes: Vec<_> = targets.into_iter().map(lane).collect();

        let give_up_after = give_up_after.clamp(SHORTEST_TIME, LONGEST_TIME);
        let habits = Habits { give_up_after, grace: pace.longest, patience: pace.outbox };
        let (searcher, gap) = oneshot::channel();
        let clerk = Clerk::new(lanes.clone(), intake.clone(), shelf, habits, searcher);
        // The end is waited for through the intake.
        let started = Worker::spawn("webhook-clerk", move || clerk.run());
        started.map_err(|error| format!("no thread for webhooks: {error}"))?;
        let most_missed = queue.saturating_mul(lanes.len());
        Ok(Arc::new(Self { lanes, intake, timeout, most_missed, gap: Mutex::new(Some(gap)) }))
    }

    /// The server serves from now on. Called once, when the mailroom is there, before mail arrives.
    pub async fn begin(&self, mailroom: &Mailroom) {
        let last = mailroom.last_id().await.unwrap_or_else(|error| {
            tracing::error!(%error, "webhooks do not know which message came last");
            MessageId::ZERO
        });
        self.begin_behind(last);
    }

    /// Everything that is stored from now on has an id above this one.
    pub(crate) fn begin_behind(&self, last: MessageId) {
        self.intake.begin(last);
    }

    /// Tells of what was stored and not told before the process ended without saying goodbye. It takes its time, in which
    /// mail may arrive; when it is broken off, or fails, the next start tries again.
    ///
    /// It looks at the messages that came last, so it can tell of one that was told of already: at least once, not exactly
    /// once. After an end in good order, and at the very first start, there is nothing to tell. In a store that several nodes
    /// share, nobody knows which of them came through this one, and the others have told of theirs: none is told of.
    pub async fn catch_up(&self, mailroom: &Mailroom) {
        let gap = self.gap.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(gap) = gap else { return };
        // Without a gap nobody says anything.
        let Ok(gap) = gap.await else { return };
        let lanes_of = |mailbox: &str| self.wanting(Event::Stored, mailbox, &gap.missed.new).collect();
        let found = if mailroom.is_shared() {
            Ok(Found::default())
        } else {
            search(mailroom, &gap, self.most_missed, lanes_of).await
        };
        match found {
            Ok(found) => self.tell_missed(&gap, found),
            Err(error) => tracing::error!(%error, "webhooks are not told of messages that they may have missed"),
        }
    }

    /// How many targets there are.
    pub fn targets(&self) -> usize {
        self.lanes.len()
    }

    /// What has become of the events, for each target in the order of the settings. Targets that differ only in what is not
    /// shown of them are counted together.
    pub fn counts(&self) -> Vec<Counts> {
        let mut all: Vec<Counts> = Vec::with_capacity(self.lanes.len());
        for lane in &self.lanes {
            let place = all.iter().position(|counts| counts.target == lane.place.label).unwrap_or_else(|| {
                all.push(Counts { target: lane.place.label.clone(), ..Counts::default() });
                all.len() - 1
            });
            lane.tally.add_to(&mut all[place]);
        }
        all
    }

    /// Says goodbye: takes what is under way to its end as far as there is time, and keeps the rest for the next start where
    /// that is possible. When the end is not `in_good_order`, nobody knows what is still to come, so the next start looks for
    /// what was not told. Blocking.
    pub fn end(&self, patience: Duration, in_good_order: bool) {
        let begun = Instant::now();
        let deadline = begun + patience;
        // However little time is left, there is enough to see that there is nothing to write.
        let is_flushed = self.intake.close(begun + patience.max(LAST_MOMENT));
        let is_kept = self.intake.is_kept();
        if is_kept {
            // An answer that nobody hears is an event that is told twice.
            self.end_lanes(Ending::Keep, deadline.min(Instant::now() + self.timeout + LAST_MOMENT));
        } else {
            self.end_lanes(Ending::Empty, deadline.min(Instant::now() + FAREWELL));
        }
        let has_left = self.intake.finish(is_flushed && in_good_order, deadline + LAST_MOMENT);
        let events: u64 = self.counts().iter().map(|counts| counts.waiting).sum();
        if !is_flushed || !has_left {
            tracing::warn!("the events that wait for webhooks could not be written down in time");
        } else if events > 0 && self.intake.is_kept() {
            tracing::info!(events, "events wait for webhooks until the next start");
        } else if events > 0 {
            tracing::warn!(events, "webhooks were not told of some events, which are lost");
        }
        if !in_good_order && is_kept {
            tracing::info!("the next start looks for messages that webhooks were not told of");
        }
    }

    fn end_lanes(&self, ending: Ending, deadline: Instant) {
        for lane in &self.lanes {
            lane.end(ending);
        }
        for lane in &self.lanes {
            lane.wait_for_end(deadline);
        }
    }

    fn hear(&self, event: Event, summary: &Summary) {
        let lanes = self.places(event, summary, &HashSet::new());
        if lanes.is_empty() {
            return;
        }
        if let Err(why) = self.intake.put(News { event, summary: summary.clone(), lanes: lanes.clone() }) {
            for lane in lanes {
                self.lanes[lane].give_back(why);
            }
        }
    }

    /// The lanes that want to be told, but for some.
    fn wanting(&self, event: Event, mailbox: &str, but: &HashSet<usize>) -> impl Iterator<Item = usize> {
        let lanes = self.lanes.iter().enumerate();
        lanes.filter(move |(lane, it)| it.wants(event, mailbox) && !but.contains(lane)).map(|(lane, _)| lane)
    }

    /// Takes a place in each of the lanes that want to be told, as far as there is one.
    fn places(&self, event: Event, summary: &Summary, but: &HashSet<usize>) -> Vec<usize> {
        self.wanting(event, summary.mailbox.as_str(), but).filter(|lane| self.lanes[*lane].take_place()).collect()
    }

    fn tell_missed(&self, gap: &Gap, found: Found) {
        let Found { messages, dropped, dropped_by_lane } = found;
        if dropped > 0 {
            tracing::warn!(messages = dropped, "webhooks missed too many messages; they are not told of the oldest");
        }
        for (lane, count) in dropped_by_lane {
            self.lanes[lane].tally.dropped.fetch_add(count, Relaxed);
        }
        if !messages.is_empty() {
            let messages = messages.len();
            tracing::info!(messages, "webhooks are told of messages that they may have missed");
        }
        let news = messages.into_iter().map(|summary| {
            let lanes = self.places(Event::Stored, &summary, &gap.missed.new);
            News { event: Event::Stored, summary, lanes }
        });
        if let Err(news) = self.intake.put_missed(news.collect()) {
            // The end has begun. They are found again at the next start.
            for lane in news.into_iter().flat_map(|news| news.lanes) {
                self.lanes[lane].leave_place();
            }
        }
    }
}

impl Observer for Webhooks {
    fn message_stored(&self, summary: &Summary) {
        self.intake.heard_of(summary.id);
        self.hear(Event::Stored, summary);
    }

    fn message_deleted(&self, summary: &Summary) {
        self.hear(Event::Deleted, summary);
    }
}

/// Without a goodbye the threads leave as soon as they can, and what waits is found as after a crash.
impl Drop for Webhooks {
    fn drop(&mut self) {
        for lane in &self.lanes {
            lane.end(Ending::Keep);
        }
        self.intake.finish(false, Instant::now() + LAST_MOMENT);
    }
}

/// The targets, each URL once.
fn merged(entries: &[Target]) -> Result<Vec<(Place, Vec<Filter>)>, String> {
    let mut targets: Vec<(Place, Vec<Filter>)> = Vec::new();
    for target in entries {
        let (place, filter) = (Place::parse(&target.url)?, Filter::new(target));
        match targets.iter_mut().find(|(known, _)| *known == place) {
            Some((_, filters)) => filters.push(filter),
            None => targets.push((place, vec![filter])),
        }
    }
    Ok(targets)
}
