//! The state of a target that its senders share: whether it is paused, and counters. A target is paused when it cannot
//! be reached or refuses service. After the pause one sender probes it with one entry; the others continue if that
//! succeeds.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use restante_worker::RetryDelay;
use tokio::sync::Notify;

use crate::counts::TargetCounts;

/// How long a target that cannot be reached is paused.
const PAUSE_DELAY: RetryDelay = RetryDelay { first: Duration::from_secs(1), max: Duration::from_mins(5) };
/// How long a sender waits while another one probes the target.
const PROBE_WAIT: Duration = Duration::from_secs(1);

/// See the module documentation.
pub(crate) struct TargetState {
    pub(crate) name: String,
    /// Notified when an entry may be due.
    pub(crate) wake: Notify,
    pause: Mutex<PauseState>,
    pub(crate) delivered: AtomicU64,
    pub(crate) deferred: AtomicU64,
    pub(crate) failed: AtomicU64,
    connection_failures: AtomicU64,
}

#[derive(Default)]
struct PauseState {
    pause: Option<Pause>,
    last_error: Option<String>,
}

struct Pause {
    until: Instant,
    /// The same time, for operators.
    until_time: Timestamp,
    failures: u32,
    is_probing: bool,
}

/// What a sender may do now.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Claim and send entries.
    Send,
    /// Claim and send one entry, to find out whether the target can be reached again.
    Probe,
    /// Wait.
    Wait(Duration),
}

impl TargetState {
    pub(crate) fn new(name: String) -> Self {
        Self {
            name,
            wake: Notify::new(),
            pause: Mutex::default(),
            delivered: AtomicU64::new(0),
            deferred: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            connection_failures: AtomicU64::new(0),
        }
    }

    /// Returns what a sender may do. After [`Turn::Probe`], it has to call [`TargetState::record_success`],
    /// [`TargetState::record_failure`] or [`TargetState::abandon_probe`].
    pub(crate) fn next_turn(&self, now: Instant) -> Turn {
        match &mut self.lock().pause {
            None => Turn::Send,
            Some(pause) if now < pause.until => Turn::Wait(pause.until - now),
            Some(pause) if pause.is_probing => Turn::Wait(PROBE_WAIT),
            Some(pause) => {
                pause.is_probing = true;
                Turn::Probe
            }
        }
    }

    /// Returns whether the target is paused.
    pub(crate) fn is_paused(&self) -> bool {
        self.lock().pause.is_some()
    }

    /// Ends the pause: the target can be reached.
    pub(crate) fn record_success(&self) {
        let mut state = self.lock();
        state.last_error = None;
        if state.pause.take().is_some() {
            tracing::info!(target_name = self.name, "the relay target can be reached again");
            self.wake.notify_one();
        }
    }

    /// Starts or extends the pause: the target cannot be reached. Only the sender that probes extends it, because the
    /// others may have connected before. Returns the delay until the next attempt.
    pub(crate) fn record_failure(&self, error: &str, is_probe: bool, now: Instant, jitter: u8) -> Duration {
        self.connection_failures.fetch_add(1, Relaxed);
        let mut state = self.lock();
        state.last_error = Some(error.to_owned());
        let failures = match &state.pause {
            Some(pause) if !is_probe => return pause.until.saturating_duration_since(now),
            Some(pause) => pause.failures + 1,
            None => 1,
        };
        let delay = PAUSE_DELAY.after(failures, jitter);
        if failures == 1 {
            let seconds = delay.as_secs_f32();
            tracing::warn!(target_name = self.name, error, "relay target unreachable, retrying in {seconds:.0} s");
        }
        let until_time = Timestamp::now().checked_add(delay).unwrap_or(Timestamp::MAX);
        state.pause = Some(Pause { until: now + delay, until_time, failures, is_probing: false });
        delay
    }

    /// Ends a probe that did not take place because no entry was due.
    pub(crate) fn abandon_probe(&self) {
        if let Some(pause) = &mut self.lock().pause {
            pause.is_probing = false;
        }
    }

    /// Lets the next attempt start at once, because an operator has requested a retry.
    pub(crate) fn end_pause(&self) {
        if let Some(pause) = &mut self.lock().pause {
            pause.until = Instant::now();
        }
        self.wake.notify_one();
    }

    /// Returns until when the target is paused, and the error of the last connection.
    pub(crate) fn pause_and_error(&self) -> (Option<Timestamp>, Option<String>) {
        let state = self.lock();
        (state.pause.as_ref().map(|pause| pause.until_time), state.last_error.clone())
    }

    pub(crate) fn counts(&self) -> TargetCounts {
        TargetCounts {
            target: self.name.clone(),
            delivered: self.delivered.load(Relaxed),
            deferred: self.deferred.load(Relaxed),
            failed: self.failed.load(Relaxed),
            connection_failures: self.connection_failures.load(Relaxed),
            is_paused: self.is_paused(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, PauseState> {
        self.pause.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_sender_probes_after_a_pause() {
        let (state, start) = (TargetState::new("main".to_owned()), Instant::now());
        let second = |seconds: u64| start + Duration::from_secs(seconds);
        assert_eq!(state.next_turn(start), Turn::Send);
        assert_eq!(state.record_failure("refused", false, start, 0), Duration::from_secs(1));
        assert_eq!(state.record_failure("refused", false, start, 0), Duration::from_secs(1), "a parallel connection");
        assert_eq!(state.next_turn(start), Turn::Wait(Duration::from_secs(1)));
        assert_eq!(state.next_turn(second(1)), Turn::Probe);
        assert_eq!(state.next_turn(second(1)), Turn::Wait(PROBE_WAIT), "another sender probes");
        assert_eq!(state.record_failure("refused again", true, second(1), 0), Duration::from_secs(2));
        assert_eq!(state.next_turn(second(2)), Turn::Wait(Duration::from_secs(1)));
        assert_eq!(state.pause_and_error().1.as_deref(), Some("refused again"));
        assert_eq!(state.next_turn(second(3)), Turn::Probe);
        state.abandon_probe();
        assert_eq!(state.next_turn(second(3)), Turn::Probe);
        state.record_success();
        assert_eq!(state.next_turn(second(3)), Turn::Send);
        assert_eq!(state.pause_and_error(), (None, None));
        assert_eq!(state.counts().connection_failures, 3);
    }

    #[test]
    fn retry_by_hand_ends_the_pause() {
        let state = TargetState::new("main".to_owned());
        state.record_failure("refused", false, Instant::now() + Duration::from_hours(1), 0);
        assert!(matches!(state.next_turn(Instant::now()), Turn::Wait(_)));
        state.end_pause();
        assert_eq!(state.next_turn(Instant::now()), Turn::Probe);
    }
}
