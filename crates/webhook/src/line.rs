//! The events that wait for one target, and when each is tried: no thread, no clock and no request, only the rules.
//!
//! An event that the target does not take waits by itself, longer each time, and the others go on. When the target itself is
//! in trouble, all of them pause, and one event at a time is sent to see whether it is over: a host that comes back is not
//! met by everything that has gathered meanwhile, again and again.

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
    /// When it is given up.
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
    pause: Option<Pause>,
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
        self.fresh.push_back(item);
    }

    /// How many events are in the line.
    pub(crate) fn len(&self) -> usize {
        self.fresh.len() + self.failed.len()
    }

    /// What there is to do now. Whatever turns out to be too old goes to `overdue`.
    pub(crate) fn next(&mut self, now: Instant, overdue: &mut Vec<Item>) -> Next {
        match &self.pause {
            Some(pause) if pause.probing => return Next::Nothing,
            Some(pause) if now < pause.until => return Next::At(pause.until),
            _ => {}
        }
        while let Some(item) = self.first_due(now) {
            if item.deadline <= now {
                overdue.push(item);
                continue;
            }
            let is_probe = self.pause.is_some();
            if let Some(pause) = &mut self.pause {
                pause.probing = true;
            }
            return Next::Send(Attempt { item, is_probe });
        }
        self.failed.first_key_value().map_or(Next::Nothing, |((at, _), _)| Next::At(*at))
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
        let turn = match whose {
            Whose::Event => self.resume(is_probe),
            Whose::Target => self.pause(is_probe, now, |failures| pace.wait(failures, spread, wish)),
        };
        item.failures += 1;
        let at = now + pace.wait(item.failures, spread, wish);
        if at > item.deadline {
            return Report { outcome: Outcome::GivenUp(item), turn };
        }
        self.failed_ever += 1;
        self.failed.insert((at, self.failed_ever), item);
        Report { outcome: Outcome::Waits, turn }
    }

    /// What failed goes first when its time has come, or it would wait for ever behind what keeps arriving. It is the other
    /// way round when the target is to be probed: the event that failed last may be the cause of the trouble itself.
    fn first_due(&mut self, now: Instant) -> Option<Item> {
        if self.pause.is_some()
            && let Some(item) = self.fresh.pop_front()
        {
            return Some(item);
        }
        match self.failed.first_entry() {
            Some(first) if first.key().0 <= now => Some(first.remove()),
            _ => self.fresh.pop_front(),
        }
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
