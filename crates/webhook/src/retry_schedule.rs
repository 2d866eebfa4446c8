//! The events that wait for one target, and when each is tried: no thread, no clock and no request, only the rules.
//!
//! An event that the target does not take waits by itself, longer each time, and the others go on. When the target itself is
//! in trouble, all of them pause, and one event at a time is sent to see whether it is over: a host that comes back is not
//! met by everything that has gathered meanwhile, again and again.
//!
//! Every event whose turn comes is sent, at its deadline for the last time. What a pause keeps from its turn is given up when
//! its time is over.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::attempt_result::{AttemptResult, FailureScope};
use crate::backoff::Backoff;
use crate::payload::Payload;

/// An event that waits.
#[derive(Clone, Debug)]
pub(crate) struct QueuedEvent {
    /// Its row in the outbox.
    pub(crate) row_id: i64,
    pub(crate) payload: Arc<Payload>,
    /// When it is tried for the last time.
    pub(crate) deadline: Instant,
    /// How many attempts have failed.
    pub(crate) failures: u32,
}

/// An event that somebody is about to send.
#[derive(Debug)]
pub(crate) struct Attempt {
    pub(crate) item: QueuedEvent,
    /// Whether it is sent to see whether the target's trouble is over.
    is_probe: bool,
}

/// How often what a pause keeps is looked at, and how long after its time an event is given up in one: it may have its last
/// attempt before.
const EXPIRY_SCAN_INTERVAL: Duration = Duration::from_secs(1);

/// What there is to do.
#[derive(Debug)]
pub(crate) enum NextAction {
    /// Send this.
    Send(Attempt),
    /// Nothing before this moment.
    WaitUntil(Instant),
    /// Nothing until something happens.
    Idle,
}

/// What an attempt has led to.
#[derive(Debug)]
pub(crate) struct AttemptReport {
    pub(crate) outcome: Outcome,
    pub(crate) target_change: Option<TargetChange>,
}

/// What has become of the event.
#[derive(Debug)]
pub(crate) enum Outcome {
    Delivered(QueuedEvent),
    GivenUp(QueuedEvent),
    /// It is in the line again.
    Requeued,
}

/// What has become of the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TargetChange {
    /// It is in trouble, and everything waits.
    Paused,
    /// The trouble is over.
    Resumed,
}

/// See the file's documentation.
#[derive(Debug, Default)]
pub(crate) struct RetrySchedule {
    /// What was never tried, in the order of arrival.
    untried: VecDeque<QueuedEvent>,
    /// What failed, by the time of its next attempt. The number keeps those of the same moment apart.
    retries: BTreeMap<(Instant, u64), QueuedEvent>,
    retry_sequence: u64,
    /// Whether the last event that was sent had failed before.
    last_was_retry: bool,
    pause: Option<Pause>,
    /// When to look for what is too old, if there is a pause then. Nothing in the line is too old before.
    next_expiry_scan: Option<Instant>,
}

#[derive(Debug)]
struct Pause {
    until: Instant,
    failures: u32,
    /// Whether somebody is on the way to see.
    is_probing: bool,
}

impl RetrySchedule {
    /// Adds an event at the end.
    pub(crate) fn push(&mut self, item: QueuedEvent) {
        self.note_deadline(&item);
        self.untried.push_back(item);
    }

    /// How many events are in the line.
    pub(crate) fn len(&self) -> usize {
        self.untried.len() + self.retries.len()
    }

    /// How many events could be sent now, by as many threads.
    pub(crate) fn ready_count(&self, now: Instant) -> usize {
        match &self.pause {
            Some(pause) if pause.is_probing || now < pause.until => 0,
            Some(_) => self.len().min(1),
            // Those that failed before come one after the other.
            None => self.untried.len() + usize::from(self.retries.keys().next().is_some_and(|(at, _)| *at <= now)),
        }
    }

    /// What there is to do now. Whatever turns out to be too old goes to `overdue`.
    pub(crate) fn next_action(&mut self, now: Instant, overdue: &mut Vec<QueuedEvent>) -> NextAction {
        let until = match &self.pause {
            Some(pause) if pause.is_probing => None,
            Some(pause) if now < pause.until => Some(pause.until),
            _ => {
                return match self.take_due(now) {
                    Some(item) => NextAction::Send(self.start_attempt(item)),
                    None => self.next_retry(),
                };
            }
        };
        self.remove_expired(now, overdue);
        match [until, self.next_expiry_scan].into_iter().flatten().min() {
            Some(at) if self.len() > 0 => NextAction::WaitUntil(at),
            _ => NextAction::Idle,
        }
    }

    /// Takes the end of an attempt into account.
    pub(crate) fn record_result(
        &mut self,
        attempt: Attempt,
        verdict: &AttemptResult,
        now: Instant,
        pace: &Backoff,
        spread: u8,
    ) -> AttemptReport {
        let Attempt { mut item, is_probe } = attempt;
        let (whose, wish) = match verdict {
            AttemptResult::Delivered => {
                return AttemptReport { outcome: Outcome::Delivered(item), target_change: self.resume(is_probe) };
            }
            AttemptResult::PermanentFailure(_) => {
                return AttemptReport { outcome: Outcome::GivenUp(item), target_change: self.resume(is_probe) };
            }
            AttemptResult::Retry { scope: whose, retry_after: wish, .. } => (*whose, *wish),
        };
        // Who asks for more time than the event has gets what there is.
        let wish = wish.map(|wish| wish.min(item.deadline.saturating_duration_since(now)));
        let turn = match whose {
            FailureScope::Event => self.resume(is_probe),
            FailureScope::Target => self.pause(is_probe, now, |failures| pace.delay(failures, spread, wish)),
        };
        if now >= item.deadline {
            return AttemptReport { outcome: Outcome::GivenUp(item), target_change: turn };
        }
        item.failures += 1;
        let at = item.deadline.min(now + pace.delay(item.failures, spread, wish));
        self.note_deadline(&item);
        self.retry_sequence += 1;
        self.retries.insert((at, self.retry_sequence), item);
        AttemptReport { outcome: Outcome::Requeued, target_change: turn }
    }

    /// What failed and what is new take turns when there is both: neither waits for ever behind the other. When the target is
    /// to be probed, new events go first, because the one that failed last may be the cause of the trouble itself; but for
    /// one that has its last chance.
    fn take_due(&mut self, now: Instant) -> Option<QueuedEvent> {
        let failed = self.retries.first_entry().filter(|first| first.key().0 <= now);
        let Some(failed) = failed else { return self.untried.pop_front() };
        let prefers_fresh = if self.pause.is_some() { failed.get().deadline > now } else { self.last_was_retry };
        if prefers_fresh && let Some(item) = self.untried.pop_front() {
            return Some(item);
        }
        Some(failed.remove())
    }

    fn start_attempt(&mut self, item: QueuedEvent) -> Attempt {
        self.last_was_retry = item.failures > 0;
        let is_probe = self.pause.is_some();
        if let Some(pause) = &mut self.pause {
            pause.is_probing = true;
        }
        Attempt { item, is_probe }
    }

    fn next_retry(&self) -> NextAction {
        self.retries.first_key_value().map_or(NextAction::Idle, |((at, _), _)| NextAction::WaitUntil(*at))
    }

    /// Takes the end of an event that joins the line into account.
    fn note_deadline(&mut self, item: &QueuedEvent) {
        let end = item.deadline + EXPIRY_SCAN_INTERVAL;
        self.next_expiry_scan = Some(self.next_expiry_scan.map_or(end, |sweep| sweep.min(end)));
    }

    /// Looks through the whole line, so it does that seldom.
    fn remove_expired(&mut self, now: Instant, overdue: &mut Vec<QueuedEvent>) {
        if self.next_expiry_scan.is_none_or(|sweep| now < sweep) {
            return;
        }
        let is_old = |item: &QueuedEvent| item.deadline + EXPIRY_SCAN_INTERVAL <= now;
        let (old, fresh) = std::mem::take(&mut self.untried).into_iter().partition(is_old);
        self.untried = fresh;
        overdue.extend::<VecDeque<_>>(old);
        overdue.extend(self.retries.extract_if(.., |_, item| is_old(item)).map(|(_, item)| item));
        let first =
            self.untried.iter().chain(self.retries.values()).map(|item| item.deadline + EXPIRY_SCAN_INTERVAL).min();
        self.next_expiry_scan = first.map(|first| first.max(now + EXPIRY_SCAN_INTERVAL));
    }

    /// Only a probe can end a pause: others were under way before it began.
    fn resume(&mut self, is_probe: bool) -> Option<TargetChange> {
        is_probe.then(|| {
            self.pause = None;
            TargetChange::Resumed
        })
    }

    /// Only a probe can make a pause longer, for the same reason.
    fn pause(&mut self, is_probe: bool, now: Instant, wait: impl Fn(u32) -> Duration) -> Option<TargetChange> {
        match &mut self.pause {
            None => {
                self.pause = Some(Pause { until: now + wait(1), failures: 1, is_probing: false });
                Some(TargetChange::Paused)
            }
            Some(pause) if is_probe => {
                pause.failures += 1;
                pause.until = now + wait(pause.failures);
                pause.is_probing = false;
                None
            }
            Some(_) => None,
        }
    }
}

#[cfg(test)]
mod tests;
