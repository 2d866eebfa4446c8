//! The queue of one target and the threads that send its events. Threads are started when there is something to send
//! and stop when they are idle. The order and time of attempts are decided by [`RetrySchedule`].

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use restante_http_client::{HttpError, HttpService};
use restante_logging::LogThrottle;
use restante_worker::random_jitter;

use crate::attempt_result::{AttemptResult, FailureScope, classify};
use crate::backoff::Backoff;
use crate::counts::Counters;
use crate::endpoint::Endpoint;
use crate::filter::Filter;
use crate::inbox::{DropReason, EventInbox};
use crate::payload::Payload;
use crate::retry_schedule::{Attempt, AttemptReport, NextAction, Outcome, QueuedEvent, RetrySchedule, TargetChange};
use crate::{Event, Key};

/// The maximum number of concurrent requests to one target.
const MAX_THREADS: usize = 4;
/// The maximum size of the events that wait for one target. A summary is usually small, but a sender can make it a
/// megabyte.
const MAX_QUEUED_BYTES: u64 = 64 << 20;

/// The queue of one target. See the module documentation.
pub(crate) struct TargetQueue {
    pub(crate) endpoint: Endpoint,
    /// Events that match any of these filters are sent.
    filters: Vec<Filter>,
    pub(crate) counters: Counters,
    dependencies: Dependencies,
    state: Mutex<State>,
    wakeup: Condvar,
    log_throttles: LogThrottles,
}

/// What all target queues share.
#[derive(Clone)]
pub(crate) struct Dependencies {
    pub(crate) http: Arc<dyn HttpService>,
    pub(crate) key: Option<Key>,
    pub(crate) timeout: Duration,
    pub(crate) backoff: Backoff,
    /// The maximum number of waiting events of one target.
    pub(crate) max_queued: u64,
    /// Receives the rows of finished events.
    pub(crate) inbox: Arc<EventInbox>,
}

#[derive(Default)]
struct State {
    schedule: RetrySchedule,
    threads: usize,
    /// Threads that wait for something to do.
    idle_threads: usize,
    shutdown: Option<ShutdownMode>,
}

/// What happens to the queue at shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShutdownMode {
    /// The queue is on disk: only requests in progress are completed.
    KeepQueue,
    /// The queue would be lost: events that can be sent now are sent.
    DrainQueue,
}

/// Rate limits of log lines.
#[derive(Default)]
struct LogThrottles {
    dropped: LogThrottle,
    paused: LogThrottle,
    /// Whether the last log line about the target says that it is unavailable.
    is_pause_logged: AtomicBool,
    rejected: LogThrottle,
    given_up: LogThrottle,
    thread_failed: LogThrottle,
}

impl TargetQueue {
    pub(crate) fn new(endpoint: Endpoint, filters: Vec<Filter>, dependencies: Dependencies) -> Self {
        Self {
            endpoint,
            filters,
            counters: Counters::default(),
            dependencies,
            state: Mutex::default(),
            wakeup: Condvar::new(),
            log_throttles: LogThrottles::default(),
        }
    }

    /// Returns whether `event` in `mailbox` is sent to this target.
    pub(crate) fn matches(&self, event: Event, mailbox: &str) -> bool {
        self.filters.iter().any(|filter| filter.matches(event, mailbox))
    }

    /// Reserves a slot for an event. Returns false and counts the event as dropped if the queue is full. Does not
    /// block.
    pub(crate) fn reserve_slot(&self) -> bool {
        let max_queued = self.dependencies.max_queued;
        let reserved = self
            .counters
            .waiting
            .fetch_update(Relaxed, Relaxed, |waiting| (waiting < max_queued).then_some(waiting + 1));
        if reserved.is_err() {
            self.count_dropped(DropReason::Full);
        }
        reserved.is_ok()
    }

    /// Releases a slot without counting a dropped event.
    pub(crate) fn release_slot(&self) {
        self.counters.waiting.fetch_sub(1, Relaxed);
    }

    /// Releases a slot and counts its event as dropped.
    pub(crate) fn drop_reserved(&self, reason: DropReason) {
        self.release_slot();
        self.count_dropped(reason);
    }

    /// Reserves the bytes of an event that has a slot. If there is not enough space, the slot is released, the event is
    /// dropped, and false is returned. Called by one thread only.
    pub(crate) fn reserve_bytes(&self, payload: &Payload) -> bool {
        let fits = self.counters.queued_bytes.load(Relaxed).saturating_add(payload.size_bytes()) <= MAX_QUEUED_BYTES;
        if fits {
            self.counters.queued_bytes.fetch_add(payload.size_bytes(), Relaxed);
        } else {
            self.drop_reserved(DropReason::Full);
        }
        fits
    }

    /// Counts and logs a dropped event.
    fn count_dropped(&self, reason: DropReason) {
        self.counters.dropped.fetch_add(1, Relaxed);
        let webhook = &self.endpoint.label;
        let Some(count) = self.log_throttles.dropped.record(Instant::now()) else { return };
        match reason {
            DropReason::Full => {
                tracing::warn!(webhook, count, "webhook queue is full (webhook.queue); new events are dropped");
            }
            DropReason::Closed => {
                tracing::warn!(webhook, count, "webhook events are dropped: the server is shutting down");
            }
        }
    }

    /// Enqueues events whose slot and bytes are reserved. Returns false if no thread could be started.
    pub(crate) fn push(self: &Arc<Self>, events: Vec<QueuedEvent>) -> bool {
        let mut state = self.lock();
        for event in events {
            state.schedule.push(event);
        }
        let free = state.idle_threads;
        let has_thread = self.ensure_threads(&mut state, free);
        drop(state);
        self.wakeup.notify_all();
        has_thread
    }

    /// Starts threads for the events that can be sent now, given that `free` threads have nothing to do. Starts one
    /// thread if there is none and events wait for a later time. Returns false if there is no thread although there are
    /// events.
    fn ensure_threads(self: &Arc<Self>, state: &mut State, mut free: usize) -> bool {
        let ready = state.schedule.ready_count(Instant::now());
        let lacks_thread = |state: &State| state.threads == 0 && state.schedule.len() > 0;
        while state.shutdown.is_none() && state.threads < MAX_THREADS && (free < ready || lacks_thread(state)) {
            let queue = self.clone();
            match thread::Builder::new().name("webhook".to_owned()).spawn(move || queue.run_thread()) {
                Ok(_) => {
                    state.threads += 1;
                    free += 1;
                }
                Err(error) => {
                    if self.log_throttles.thread_failed.record(Instant::now()).is_some() {
                        tracing::error!(webhook = self.endpoint.label, %error, "cannot start a thread for a webhook target; its events wait");
                    }
                    break;
                }
            }
        }
        !lacks_thread(state)
    }

    /// Stops sending, except for what `mode` allows.
    pub(crate) fn stop(&self, mode: ShutdownMode) {
        self.lock().shutdown = Some(mode);
        self.wakeup.notify_all();
    }

    /// Waits until all threads have stopped. Returns false if `deadline` passes first.
    pub(crate) fn wait_until_stopped(&self, deadline: Instant) -> bool {
        let mut state = self.lock();
        while state.threads > 0 {
            let remaining = deadline.saturating_duration_since(Instant::now());
            if remaining.is_zero() {
                return false;
            }
            state = self.wakeup.wait_timeout(state, remaining).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    fn run_thread(self: &Arc<Self>) {
        while let Some(attempt) = self.next_attempt() {
            let result = self.send(&attempt.event.payload);
            self.finish_attempt(attempt, &result);
        }
    }

    /// Waits for the next event to send. Returns `None` when this thread must stop; it is then no longer counted.
    fn next_attempt(&self) -> Option<Attempt> {
        let mut state = self.lock();
        let mut idle_since = Instant::now();
        loop {
            let now = Instant::now();
            let mut expired = Vec::new();
            let action = if state.shutdown == Some(ShutdownMode::KeepQueue) {
                NextAction::Idle
            } else {
                state.schedule.next_action(now, &mut expired)
            };
            for event in expired {
                self.give_up(&event, "it was not delivered before its deadline");
            }
            let wake_at = match action {
                NextAction::Send(attempt) => return Some(attempt),
                NextAction::WaitUntil(at) => Some(at),
                NextAction::Idle => None,
            };
            let is_idle = now.saturating_duration_since(idle_since) >= self.dependencies.backoff.idle_timeout;
            // One thread must remain to send the events that wait for a later time.
            let is_needed = wake_at.is_some() && state.threads == 1;
            if state.shutdown.is_some() || is_idle && !is_needed {
                state.threads -= 1;
                self.wakeup.notify_all();
                return None;
            }
            if is_idle {
                idle_since = now;
            }
            let idle_until = idle_since + self.dependencies.backoff.idle_timeout;
            let remaining = wake_at.unwrap_or(idle_until).min(idle_until).saturating_duration_since(now);
            state.idle_threads += 1;
            state = self.wakeup.wait_timeout(state, remaining).unwrap_or_else(PoisonError::into_inner).0;
            state.idle_threads -= 1;
        }
    }

    fn send(&self, payload: &Payload) -> AttemptResult {
        let Dependencies { http, key, timeout, .. } = &self.dependencies;
        let request = payload.to_request(&self.endpoint, key.as_ref(), Timestamp::now(), *timeout);
        // The response is untrusted input. If the HTTP client panics over it, the event must not be lost with the
        // thread.
        let response = catch_unwind(AssertUnwindSafe(|| http.send(&request)))
            .unwrap_or_else(|_| Err(HttpError::Network("the HTTP client panicked".to_owned())));
        classify(response, Timestamp::now())
    }

    fn finish_attempt(self: &Arc<Self>, attempt: Attempt, result: &AttemptResult) {
        let now = Instant::now();
        let mut state = self.lock();
        let report = state.schedule.record_result(attempt, result, now, &self.dependencies.backoff, random_jitter());
        // Other threads may have stopped during a pause that has just ended. This thread is free now.
        let free = state.idle_threads + 1;
        self.ensure_threads(&mut state, free);
        drop(state);
        // Other threads may have something to do now.
        self.wakeup.notify_all();
        let cause = result.cause();
        let AttemptReport { outcome, target_change } = report;
        self.log_target_change(target_change, cause, now);
        match outcome {
            Outcome::Delivered(event) => {
                self.counters.delivered.fetch_add(1, Relaxed);
                self.remove_event(&event);
            }
            Outcome::GivenUp(event) => self.give_up(&event, cause),
            Outcome::Requeued => {
                self.counters.retried.fetch_add(1, Relaxed);
                tracing::debug!(webhook = self.endpoint.label, cause, "webhook request failed; the event is retried");
                if let AttemptResult::Retry { scope: FailureScope::Event, .. } = result
                    && let Some(count) = self.log_throttles.rejected.record(now)
                {
                    tracing::warn!(
                        webhook = self.endpoint.label,
                        count,
                        cause,
                        "webhook target rejects events; they are retried"
                    );
                }
            }
        }
    }

    fn log_target_change(&self, change: Option<TargetChange>, cause: &str, now: Instant) {
        match change {
            Some(TargetChange::Paused) => {
                if self.log_throttles.paused.record(now).is_some() {
                    self.log_throttles.is_pause_logged.store(true, Relaxed);
                    tracing::warn!(
                        webhook = self.endpoint.label,
                        cause,
                        "webhook target is unavailable; its events wait"
                    );
                }
            }
            Some(TargetChange::Resumed) if self.log_throttles.is_pause_logged.swap(false, Relaxed) => {
                tracing::info!(webhook = self.endpoint.label, "webhook target is available again");
            }
            Some(TargetChange::Resumed) | None => {}
        }
    }

    fn give_up(&self, event: &QueuedEvent, cause: &str) {
        self.counters.failed.fetch_add(1, Relaxed);
        if let Some(count) = self.log_throttles.given_up.record(Instant::now()) {
            let (webhook, event) = (&self.endpoint.label, &event.payload.webhook_id);
            tracing::warn!(webhook, count, event, cause, "webhook events could not be delivered and are given up");
        }
        self.remove_event(event);
    }

    /// Removes a finished event from the counters and the outbox.
    fn remove_event(&self, event: &QueuedEvent) {
        self.counters.waiting.fetch_sub(1, Relaxed);
        self.counters.queued_bytes.fetch_sub(event.payload.size_bytes(), Relaxed);
        self.dependencies.inbox.finish_row(event.row_id);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
