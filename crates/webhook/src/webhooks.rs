//! Webhooks as the server sees them: their start, what they hear, and their end.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use restante_courier::{Answers, Courier, Http, Rules};
use restante_mail::message::{MessageId, Summary};
use restante_mailroom::hooks::Observer;
use restante_mailroom::{MailboxPage, Mailroom, Page, StoreError};

use crate::clerk::{Clerk, Habits};
use crate::counts::Counts;
use crate::filter::Filter;
use crate::intake::{Intake, News};
use crate::lane::{Ending, Lane, Means};
use crate::outbox::{Missed, Outbox, Past};
use crate::pace::Pace;
use crate::place::Place;
use crate::{Event, Settings, Target};

/// The bounds of how long an event is tried: at least once, and never for ever.
const SHORTEST_TIME: Duration = Duration::from_secs(1);
const LONGEST_TIME: Duration = Duration::from_hours(365 * 24);
/// How many mailboxes are asked for at once when something may have been missed.
const PAGE: usize = 1000;
/// How long the end waits for the disk beyond its patience.
const LAST_MOMENT: Duration = Duration::from_secs(1);

/// See the crate's documentation.
pub struct Webhooks {
    pub(crate) lanes: Vec<Arc<Lane>>,
    intake: Arc<Intake>,
    is_durable: bool,
    /// How many missed messages are told of at most.
    queue: usize,
    missed: Mutex<Option<Missed>>,
}

impl Webhooks {
    /// Opens the queue and starts the threads. The error is a sentence for the operator.
    pub fn start(settings: Settings) -> Result<Arc<Self>, String> {
        let rules = Rules {
            private_addresses: settings.private_addresses,
            proxies: false,
            redirects: 0,
            answers: Answers::Head,
        };
        Self::start_with(settings, Arc::new(Courier::new(rules)), Pace::USUAL)
    }

    pub(crate) fn start_with(settings: Settings, http: Arc<dyn Http>, pace: Pace) -> Result<Arc<Self>, String> {
        let Settings { targets, secret, timeout, give_up_after, queue, directory, render, .. } = settings;
        let targets = merged(&targets)?;
        let (outbox, mut past) = open(directory.as_deref(), &targets);
        let is_durable = outbox.is_some();
        let missed = Mutex::new(past.missed.take());

        let intake = Arc::new(Intake::default());
        let bound = u64::try_from(queue).unwrap_or(u64::MAX);
        let means = Means { http, key: secret, timeout, pace, queue: bound, intake: intake.clone() };
        let lane =
            |(lane, (place, filters))| Arc::new(Lane::new(place, filters, means.clone(), past.new.contains(&lane)));
        let lanes: Vec<_> = targets.into_iter().enumerate().map(lane).collect();

        let give_up_after = give_up_after.clamp(SHORTEST_TIME, LONGEST_TIME);
        let habits = Habits { render, give_up_after, patience: pace.outbox };
        let mut clerk = Clerk::new(lanes.clone(), intake.clone(), outbox, habits);
        let work = move || {
            clerk.resume(past);
            clerk.run();
        };
        let started = thread::Builder::new().name("webhook-clerk".to_owned()).spawn(work);
        started.map_err(|error| format!("no thread for webhooks: {error}"))?;
        Ok(Arc::new(Self { lanes, intake, is_durable, queue, missed }))
    }

    /// Tells of what was stored and not told before the process ended without saying goodbye. Called once, when the mailroom
    /// is there, before mail arrives.
    ///
    /// It looks at the messages that came last, so it can tell of one that was told of already: at least once, not exactly
    /// once. After an end in good order, and at the very first start, there is nothing to tell.
    pub async fn catch_up(&self, mailroom: &Mailroom) {
        let Some(missed) = self.lock_missed().take() else { return };
        match self.find_missed(mailroom, &missed).await {
            Ok(news) if news.is_empty() => {}
            Ok(news) => {
                tracing::info!(messages = news.len(), "webhooks are told of messages that they may have missed");
                for news in &news {
                    self.intake.heard_of(news.summary.id);
                }
                self.intake.put_missed(news);
            }
            Err(error) => {
                tracing::error!(%error, "webhooks are not told of messages that they may have missed");
                *self.lock_missed() = Some(missed);
            }
        }
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
    /// that is possible. Blocking.
    pub fn end(&self, patience: Duration) {
        let deadline = Instant::now() + patience;
        let is_flushed = self.intake.close(deadline);
        let ending = if self.is_durable { Ending::Keep } else { Ending::Empty };
        for lane in &self.lanes {
            lane.end(ending);
        }
        for lane in &self.lanes {
            lane.wait_for_end(deadline);
        }
        // What is still to be caught up with is left to the next start.
        let is_clean = is_flushed && self.lock_missed().is_none();
        let has_left = self.intake.finish(is_clean, deadline + LAST_MOMENT);
        let events: u64 = self.counts().iter().map(|counts| counts.waiting).sum();
        if !is_flushed || !has_left {
            tracing::warn!("the events that wait for webhooks could not be written down in time");
        } else if events > 0 && self.is_durable {
            tracing::info!(events, "events wait for webhooks until the next start");
        } else if events > 0 {
            tracing::warn!(events, "webhooks were not told of some events, which are lost");
        }
    }

    fn lock_missed(&self) -> MutexGuard<'_, Option<Missed>> {
        self.missed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hear(&self, event: Event, summary: &Summary) {
        let mut wanting = self.lanes.iter().filter(|lane| lane.wants(event, summary.mailbox.as_str())).peekable();
        if wanting.peek().is_none() {
            return;
        }
        if !self.intake.put(News { event, summary: summary.clone(), is_late: false }) {
            wanting.for_each(|lane| lane.drop_one());
        }
    }

    async fn find_missed(&self, mailroom: &Mailroom, missed: &Missed) -> Result<Vec<News>, StoreError> {
        let above = MessageId::from(missed.above);
        let mut found = Vec::new();
        let mut page = MailboxPage { limit: PAGE, ..MailboxPage::ALL };
        loop {
            let mailboxes = mailroom.mailboxes(page.clone()).await?;
            let Some(last) = mailboxes.last() else { return Ok(found) };
            page.after = last.name.as_str().to_owned();
            for mailbox in mailboxes {
                let is_wanted =
                    self.lanes.iter().any(|lane| !lane.is_new && lane.wants(Event::Stored, mailbox.name.as_str()));
                if mailbox.newest.id <= above || !is_wanted {
                    continue;
                }
                let limit = self.queue + missed.taken.len();
                let listing =
                    mailroom.list(&mailbox.name, Page { limit: Some(limit), before: None, after: Some(above) }).await?;
                let unknown = |summary: &Summary| {
                    !missed.taken.contains(&(summary.id.number(), summary.mailbox.as_str().to_owned()))
                };
                let room = self.queue - found.len();
                let news = listing.messages.into_iter().filter(unknown).take(room);
                found.extend(news.map(|summary| News { event: Event::Stored, summary, is_late: true }));
                if found.len() >= self.queue {
                    return Ok(found);
                }
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

/// The outbox, where there is a directory. When it cannot be used, mail is more important: what waits is in memory then.
fn open(directory: Option<&Path>, targets: &[(Place, Vec<Filter>)]) -> (Option<Outbox>, Past) {
    let Some(directory) = directory else { return Default::default() };
    let digests: Vec<_> = targets.iter().map(|(place, _)| place.digest()).collect();
    match Outbox::open(directory, &digests) {
        Ok((outbox, past)) => (Some(outbox), past),
        Err(problem) => {
            tracing::error!(problem, "events that wait for webhooks are in memory only");
            Default::default()
        }
    }
}
