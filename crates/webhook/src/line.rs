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

use crate::notice::Notice;
use crate::pace::Pace;
use crate::verdict::{Verdict, Whose};

/// An event that waits.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    /// Its row in the outbox.
    pub(crate) row: i64,
    pub(crate) notice: Arc<Notice>,
    /// When it is tried for the last time.
    pub(crate) deadline: Instant,
    /// How many attempts have failed.
    pub(crate) failures: u32,
}

/// An event that somebody is about to send.
#[derive(Debug)]
pub(crate) struct Attempt {
    pub(crate) item: Item,
    /// Whether it is sent to see whether the target's trouble is over.
    is_probe: bool,
}

/// How often what a pause keeps is looked at, and how long after its time an event is given up in one: it may have its last
/// attempt before.
const SWEEP: Duration = Duration::from_secs(1);

/// What there is to do.
#[derive(Debug)]
pub(crate) enum Next {
    /// Send this.
    Send(Attempt),
    /// Nothing before this moment.
    At(Instant),
    /// Nothing until something happens.
    Nothing,
}

/// What an attempt has led to.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) outcome: Outcome,
    pub(crate) turn: Option<Turn>,
}

/// What has become of the event.
#[derive(Debug)]
pub(crate) enum Outcome {
    Delivered(Item),
    GivenUp(Item),
    /// It is in the line again.
    Waits,
}

/// What has become of the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// It is in trouble, and everything waits.
    Paused,
    /// The trouble is over.
    Resumed,
}

/// See the file's documentation.
#[derive(Debug, Default)]
pub(crate) struct Line {
    /// What was never tried, in the order of arrival.
    fresh: VecDeque<Item>,
    /// What failed, by the time of its next attempt. The number keeps those of the same moment apart.
    failed: BTreeMap<(Instant, u64), Item>,
    failed_ever: u64,
    /// Whether the last event that was sent had failed before.
    was_failed: bool,
    pause: Option<Pause>,
    /// When to look for what is too old, if there is a pause then. Nothing in the line is too old before.
    sweep: Option<Instant>,
}

#[derive(Debug)]
struct Pause {
    until: Instant,
    failures: u32,
    /// Whether somebody is on the way to see.
    probing: bool,
}

impl Line {
    /// Adds an event at the end.
    pub(crate) fn push(&mut self, item: Item) {
        self.expect(&item);
        self.fresh.push_back(item);
    }

    /// How many events are in the line.
    pub(crate) fn len(&self) -> usize {
        self.fresh.len() + self.failed.len()
    }

    /// How many events could be sent now, by as many threads.
    pub(crate) fn ready(&self, now: Instant) -> usize {
        match &self.pause {
            Some(pause) if pause.probing || now < pause.until => 0,
            Some(_) => self.len().min(1),
            // Those that failed before come one after the other.
            None => self.fresh.len() + usize::from(self.failed.keys().next().is_some_and(|(at, _)| *at <= now)),
        }
    }

    /// What there is to do now. Whatever turns out to be too old goes to `overdue`.
    pub(crate) fn next(&mut self, now: Instant, overdue: &mut Vec<Item>) -> Next {
        let until = match &self.pause {
            Some(pause) if pause.probing => None,
            Some(pause) if now < pause.until => Some(pause.until),
            _ => {
                return match self.first_due(now) {
                    Some(item) => Next::Send(self.attempt(item)),
                    None => self.later(),
                };
            }
        };
        self.give_up_old(now, overdue);
        match [until, self.sweep].into_iter().flatten().min() {
            Some(at) if self.len() > 0 => Next::At(at),
            _ => Next::Nothing,
        }
    }

    /// Takes the end of an attempt into account.
    pub(crate) fn report(
        &mut self,
        attempt: Attempt,
        verdict: &Verdict,
        now: Instant,
        pace: &Pace,
        spread: u8,
    ) -> Report {
        let Attempt { mut item, is_probe } = attempt;
        let (whose, wish) = match verdict {
            Verdict::Delivered => {
                return Report { outcome: Outcome::Delivered(item), turn: self.resume(is_probe) };
            }
            Verdict::Hopeless(_) => return Report { outcome: Outcome::GivenUp(item), turn: self.resume(is_probe) },
            Verdict::Again { whose, wish, .. } => (*whose, *wish),
        };
        // Who asks for more time than the event has gets what there is.
        let wish = wish.map(|wish| wish.min(item.deadline.saturating_duration_since(now)));
        let turn = match whose {
            Whose::Event => self.resume(is_probe),
            Whose::Target => self.pause(is_probe, now, |failures| pace.wait(failures, spread, wish)),
        };
        if now >= item.deadline {
            return Report { outcome: Outcome::GivenUp(item), turn };
        }
        item.failures += 1;
        let at = item.deadline.min(now + pace.wait(item.failures, spread, wish));
        self.expect(&item);
        self.failed_ever += 1;
        self.failed.insert((at, self.failed_ever), item);
        Report { outcome: Outcome::Waits, turn }
    }

    /// What failed and what is new take turns when there is both: neither waits for ever behind the other. When the target is
    /// to be probed, new events go first, because the one that failed last may be the cause of the trouble itself; but for
    /// one that has its last chance.
    fn first_due(&mut self, now: Instant) -> Option<Item> {
        let failed = self.failed.first_entry().filter(|first| first.key().0 <= now);
        let Some(failed) = failed else { return self.fresh.pop_front() };
        let prefers_fresh = if self.pause.is_some() { failed.get().deadline > now } else { self.was_failed };
        if prefers_fresh && let Some(item) = self.fresh.pop_front() {
            return Some(item);
        }
        Some(failed.remove())
    }

    fn attempt(&mut self, item: Item) -> Attempt {
        self.was_failed = item.failures > 0;
        let is_probe = self.pause.is_some();
        if let Some(pause) = &mut self.pause {
            pause.probing = true;
        }
        Attempt { item, is_probe }
    }

    fn later(&self) -> Next {
        self.failed.first_key_value().map_or(Next::Nothing, |((at, _), _)| Next::At(*at))
    }

    /// Takes the end of an event that joins the line into account.
    fn expect(&mut self, item: &Item) {
        let end = item.deadline + SWEEP;
        self.sweep = Some(self.sweep.map_or(end, |sweep| sweep.min(end)));
    }

    /// Looks through the whole line, so it does that seldom.
    fn give_up_old(&mut self, now: Instant, overdue: &mut Vec<Item>) {
        if self.sweep.is_none_or(|sweep| now < sweep) {
            return;
        }
        let is_old = |item: &Item| item.deadline + SWEEP <= now;
        let (old, fresh) = std::mem::take(&mut self.fresh).into_iter().partition(is_old);
        self.fresh = fresh;
        overdue.extend::<VecDeque<_>>(old);
        overdue.extend(self.failed.extract_if(.., |_, item| is_old(item)).map(|(_, item)| item));
        let first = self.fresh.iter().chain(self.failed.values()).map(|item| item.deadline + SWEEP).min();
        self.sweep = first.map(|first| first.max(now + SWEEP));
    }

    /// Only a probe can end a pause: others were under way before it began.
    fn resume(&mut self, is_probe: bool) -> Option<Turn> {
        is_probe.then(|| {
            self.pause = None;
            Turn::Resumed
        })
    }

    /// Only a probe can make a pause longer, for the same reason.
    fn pause(&mut self, is_probe: bool, now: Instant, wait: impl Fn(u32) -> Duration) -> Option<Turn> {
        match &mut self.pause {
            None => {
                self.pause = Some(Pause { until: now + wait(1), failures: 1, probing: false });
                Some(Turn::Paused)
            }
            Some(pause) if is_probe => {
                pause.failures += 1;
                pause.until = now + wait(pause.failures);
                pause.probing = false;
                None
            }
            Some(_) => None,
        }
    }
}

#[cfg(test)]
mod tests;
