//! The retry schedule of one target: which event is sent when. It has no threads, does no I/O and reads no clock.
//!
//! If the target rejects an event, that event is retried with increasing delays and the others are sent as usual. If
//! the target itself is unavailable, all events pause, and single events are sent as probes until one succeeds. So a
//! host that comes back is not flooded by the whole queue at once.
//!
//! Each event has a deadline. An attempt at or after its deadline is its last. Events that cannot be sent because of a
//! pause are given up when their deadline has passed.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::attempt_result::{AttemptResult, FailureScope};
use crate::backoff::Backoff;
use crate::payload::Payload;

/// A waiting event.
#[derive(Clone, Debug)]
pub(crate) struct QueuedEvent {
    /// Its row in the outbox.
    pub(crate) row_id: i64,
    pub(crate) payload: Arc<Payload>,
    /// When the last attempt is made.
    pub(crate) deadline: Instant,
    /// The number of failed attempts.
    pub(crate) failures: u32,
}

/// An event that is being sent.
#[derive(Debug)]
pub(crate) struct Attempt {
    pub(crate) event: QueuedEvent,
    /// Whether this attempt tests if the target is available again.
    is_probe: bool,
}

/// The interval at which paused events are checked for expiry. An event is given up this long after its deadline, so
/// that its last attempt can be made first.
const EXPIRY_SCAN_INTERVAL: Duration = Duration::from_secs(1);

/// What a sending thread does next.
#[derive(Debug)]
pub(crate) enum NextAction {
    /// Send this event.
    Send(Attempt),
    /// Do nothing before this time.
    WaitUntil(Instant),
    /// Do nothing until the schedule changes.
    Idle,
}

/// The result of recording an attempt.
#[derive(Debug)]
pub(crate) struct AttemptReport {
    pub(crate) outcome: Outcome,
    pub(crate) target_change: Option<TargetChange>,
}

/// What happened to the event.
#[derive(Debug)]
pub(crate) enum Outcome {
    Delivered(QueuedEvent),
    GivenUp(QueuedEvent),
    /// The event is in the schedule again.
    Requeued,
}

/// How the state of the target changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TargetChange {
    /// The target is unavailable; all events pause.
    Paused,
    /// The target is available again.
    Resumed,
}

/// The waiting events of one target. See the module documentation.
#[derive(Debug, Default)]
pub(crate) struct RetrySchedule {
    /// Events that were never sent, in the order of arrival.
    untried: VecDeque<QueuedEvent>,
    /// Events that failed, by the time of their next attempt. The sequence number makes keys unique.
    retries: BTreeMap<(Instant, u64), QueuedEvent>,
    retry_sequence: u64,
    /// Whether the event that was sent last was a retry.
    last_was_retry: bool,
    pause: Option<Pause>,
    /// When to look for expired events if there is a pause. No event expires earlier.
    next_expiry_scan: Option<Instant>,
}

#[derive(Debug)]
struct Pause {
    until: Instant,
    failures: u32,
    /// Whether a probe is in progress.
    is_probing: bool,
}

impl RetrySchedule {
    /// Adds a new event.
    pub(crate) fn push(&mut self, event: QueuedEvent) {
        self.note_deadline(&event);
        self.untried.push_back(event);
    }

    /// Returns the number of events in the schedule.
    pub(crate) fn len(&self) -> usize {
        self.untried.len() + self.retries.len()
    }

    /// Returns how many events can be sent now in parallel.
    pub(crate) fn ready_count(&self, now: Instant) -> usize {
        match &self.pause {
            Some(pause) if pause.is_probing || now < pause.until => 0,
            Some(_) => self.len().min(1),
            // Retries that are due are sent one at a time.
            None => self.untried.len() + usize::from(self.retries.keys().next().is_some_and(|(at, _)| *at <= now)),
        }
    }

    /// Returns what to do now. Moves expired events to `expired`.
    pub(crate) fn next_action(&mut self, now: Instant, expired: &mut Vec<QueuedEvent>) -> NextAction {
        let until = match &self.pause {
            Some(pause) if pause.is_probing => None,
            Some(pause) if now < pause.until => Some(pause.until),
            _ => {
                return match self.take_due(now) {
                    Some(event) => NextAction::Send(self.start_attempt(event)),
                    None => self.next_retry(),
                };
            }
        };
        self.remove_expired(now, expired);
        match [until, self.next_expiry_scan].into_iter().flatten().min() {
            Some(at) if self.len() > 0 => NextAction::WaitUntil(at),
            _ => NextAction::Idle,
        }
    }

    /// Records the result of an attempt.
    pub(crate) fn record_result(
        &mut self,
        attempt: Attempt,
        result: &AttemptResult,
        now: Instant,
        backoff: &Backoff,
        jitter: u8,
    ) -> AttemptReport {
        let Attempt { mut event, is_probe } = attempt;
        let (scope, retry_after) = match result {
            AttemptResult::Delivered => {
                return AttemptReport { outcome: Outcome::Delivered(event), target_change: self.resume(is_probe) };
            }
            AttemptResult::PermanentFailure(_) => {
                return AttemptReport { outcome: Outcome::GivenUp(event), target_change: self.resume(is_probe) };
            }
            AttemptResult::Retry { scope, retry_after, .. } => (*scope, *retry_after),
        };
        // Do not wait longer than the deadline, even if the target asks for it.
        let retry_after = retry_after.map(|retry_after| retry_after.min(event.deadline.saturating_duration_since(now)));
        let target_change = match scope {
            FailureScope::Event => self.resume(is_probe),
            FailureScope::Target => self.pause(is_probe, now, |failures| backoff.delay(failures, jitter, retry_after)),
        };
        if now >= event.deadline {
            return AttemptReport { outcome: Outcome::GivenUp(event), target_change };
        }
        event.failures += 1;
        let at = event.deadline.min(now + backoff.delay(event.failures, jitter, retry_after));
        self.note_deadline(&event);
        self.retry_sequence += 1;
        self.retries.insert((at, self.retry_sequence), event);
        AttemptReport { outcome: Outcome::Requeued, target_change }
    }

    /// Takes the next event that is due. New events and retries alternate, so that neither starves the other. For a
    /// probe, new events go first, because the event that failed last may have caused the problem. A retry at its
    /// deadline goes before them.
    fn take_due(&mut self, now: Instant) -> Option<QueuedEvent> {
        let retry = self.retries.first_entry().filter(|first| first.key().0 <= now);
        let Some(retry) = retry else { return self.untried.pop_front() };
        let prefers_new = if self.pause.is_some() { retry.get().deadline > now } else { self.last_was_retry };
        if prefers_new && let Some(event) = self.untried.pop_front() {
            return Some(event);
        }
        Some(retry.remove())
    }

    fn start_attempt(&mut self, event: QueuedEvent) -> Attempt {
        self.last_was_retry = event.failures > 0;
        let is_probe = self.pause.is_some();
        if let Some(pause) = &mut self.pause {
            pause.is_probing = true;
        }
        Attempt { event, is_probe }
    }

    fn next_retry(&self) -> NextAction {
        self.retries.first_key_value().map_or(NextAction::Idle, |((at, _), _)| NextAction::WaitUntil(*at))
    }

    /// Makes sure that the next expiry scan is not later than the expiry of `event`.
    fn note_deadline(&mut self, event: &QueuedEvent) {
        let expiry = event.deadline + EXPIRY_SCAN_INTERVAL;
        self.next_expiry_scan = Some(self.next_expiry_scan.map_or(expiry, |scan| scan.min(expiry)));
    }

    /// Removes expired events. Scans the whole schedule, so it is rarely done.
    fn remove_expired(&mut self, now: Instant, expired: &mut Vec<QueuedEvent>) {
        if self.next_expiry_scan.is_none_or(|scan| now < scan) {
            return;
        }
        let is_expired = |event: &QueuedEvent| event.deadline + EXPIRY_SCAN_INTERVAL <= now;
        let (old, remaining) = std::mem::take(&mut self.untried).into_iter().partition(is_expired);
        self.untried = remaining;
        expired.extend::<VecDeque<_>>(old);
        expired.extend(self.retries.extract_if(.., |_, event| is_expired(event)).map(|(_, event)| event));
        let first =
            self.untried.iter().chain(self.retries.values()).map(|event| event.deadline + EXPIRY_SCAN_INTERVAL).min();
        self.next_expiry_scan = first.map(|first| first.max(now + EXPIRY_SCAN_INTERVAL));
    }

    /// Ends a pause. Only a probe can: other attempts started before the pause.
    fn resume(&mut self, is_probe: bool) -> Option<TargetChange> {
        is_probe.then(|| {
            self.pause = None;
            TargetChange::Resumed
        })
    }

    /// Starts a pause, or extends it. Only a probe can extend it: other attempts started before the pause.
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
