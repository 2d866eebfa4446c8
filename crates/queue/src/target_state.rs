//! The state of a target that its senders share: whether it is paused, and counters. A target is paused when it cannot
//! be reached or refuses service. After the pause one sender probes it with one entry; the others continue if that
//! succeeds.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::Notify;

/// How long a sender waits while another one probes the target.
const PROBE_WAIT: Duration = Duration::from_secs(1);

/// See the module documentation.
#[derive(Default)]
pub struct TargetState {
    /// The name of the target.
    pub name: String,
    /// Notified when an entry may be due.
    pub wake: Notify,
    pause: Mutex<PauseState>,
    /// The attempts after which the entry was delivered.
    pub delivered: AtomicU64,
    /// The attempts after which the entry waits for a retry.
    pub deferred: AtomicU64,
    /// The attempts after which the entry has failed.
    pub failed: AtomicU64,
    /// The failures to reach the target.
    pub contact_failures: AtomicU64,
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
    /// Creates the state of a target that was not contacted yet.
    pub fn new(name: String) -> Self {
        Self { name, ..Self::default() }
    }

    /// Returns what a sender may do. After [`Turn::Probe`], it has to call [`TargetState::record_success`],
    /// [`TargetState::record_failure`] or [`TargetState::abandon_probe`].
    pub(crate) fn next_turn(&self, now: Instant) -> Turn {
        match &mut self.pause.lock().pause {
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
    pub fn is_paused(&self) -> bool {
        self.pause.lock().pause.is_some()
    }

    /// Ends the pause: the target can be reached. Returns whether there was one.
    pub(crate) fn record_success(&self) -> bool {
        let mut state = self.pause.lock();
        state.last_error = None;
        let was_paused = state.pause.take().is_some();
        if was_paused {
            self.wake.notify_one();
        }
        was_paused
    }

    /// Starts or extends the pause: the target cannot be reached. Only the sender that probes extends it, because the
    /// others may have connected before. Returns the length of a pause that starts.
    pub(crate) fn record_failure(
        &self,
        error: &str,
        is_probe: bool,
        now: Instant,
        delay: impl Fn(u32) -> Duration,
    ) -> Option<Duration> {
        self.contact_failures.fetch_add(1, Relaxed);
        let mut state = self.pause.lock();
        state.last_error = Some(error.to_owned());
        let failures = match &state.pause {
            Some(_) if !is_probe => return None,
            Some(pause) => pause.failures + 1,
            None => 1,
        };
        let delay = delay(failures);
        let until_time = Timestamp::now().checked_add(delay).unwrap_or(Timestamp::MAX);
        state.pause = Some(Pause { until: now + delay, until_time, failures, is_probing: false });
        (failures == 1).then_some(delay)
    }

    /// Ends a probe that did not take place because no entry was due.
    pub(crate) fn abandon_probe(&self) {
        if let Some(pause) = &mut self.pause.lock().pause {
            pause.is_probing = false;
        }
    }

    /// Lets the next attempt start at once, because an operator has requested a retry.
    pub fn end_pause(&self) {
        if let Some(pause) = &mut self.pause.lock().pause {
            pause.until = Instant::now();
        }
        self.wake.notify_one();
    }

    /// Returns until when the target is paused, and the error of the last connection.
    pub fn pause_and_error(&self) -> (Option<Timestamp>, Option<String>) {
        let state = self.pause.lock();
        (state.pause.as_ref().map(|pause| pause.until_time), state.last_error.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Doubles from one second.
    fn delay(failures: u32) -> Duration {
        Duration::from_secs(1 << (failures - 1))
    }

    #[test]
    fn one_sender_probes_after_a_pause() {
        let (state, start) = (TargetState::new("main".to_owned()), Instant::now());
        let second = |seconds: u64| start + Duration::from_secs(seconds);
        assert_eq!(state.next_turn(start), Turn::Send);
        assert_eq!(state.record_failure("refused", false, start, delay), Some(Duration::from_secs(1)));
        assert_eq!(state.record_failure("refused", false, start, delay), None, "a parallel connection");
        assert_eq!(state.next_turn(start), Turn::Wait(Duration::from_secs(1)));
        assert_eq!(state.next_turn(second(1)), Turn::Probe);
        assert_eq!(state.next_turn(second(1)), Turn::Wait(PROBE_WAIT), "another sender probes");
        assert_eq!(state.record_failure("refused again", true, second(1), delay), None, "the pause continues");
        assert_eq!(state.next_turn(second(2)), Turn::Wait(Duration::from_secs(1)));
        assert_eq!(state.pause_and_error().1.as_deref(), Some("refused again"));
        assert_eq!(state.next_turn(second(3)), Turn::Probe);
        state.abandon_probe();
        assert_eq!(state.next_turn(second(3)), Turn::Probe);
        assert!(state.record_success());
        assert_eq!(state.next_turn(second(3)), Turn::Send);
        assert_eq!(state.pause_and_error(), (None, None));
        assert_eq!(state.contact_failures.load(Relaxed), 3);
    }

    #[test]
    fn retry_by_hand_ends_the_pause() {
        let state = TargetState::new("main".to_owned());
        state.record_failure("refused", false, Instant::now() + Duration::from_hours(1), delay);
        assert!(matches!(state.next_turn(Instant::now()), Turn::Wait(_)));
        state.end_pause();
        assert_eq!(state.next_turn(Instant::now()), Turn::Probe);
    }
}
