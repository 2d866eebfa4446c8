//! A target: where events are sent, which ones, its limits and its counters.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use jiff::Timestamp;
use restante_logging::LogThrottle;
use restante_queue::{EntryState, TargetState};

use crate::counts::Counts;
use crate::endpoint::Endpoint;
use crate::filter::Filter;
use crate::inbox::DropReason;
use crate::{EventKind, Target};

/// A target with its state.
pub(crate) struct ConfiguredTarget {
    pub(crate) endpoint: Endpoint,
    /// Events that match any of these filters are sent.
    pub(crate) filters: Vec<Filter>,
    /// Its name is that of the target in the queue.
    pub(crate) state: Arc<TargetState>,
    /// The events in the inbox, and in the queue.
    pub(crate) in_inbox: AtomicU64,
    pub(crate) in_queue: AtomicU64,
    dropped: AtomicU64,
    pub(crate) log_throttles: LogThrottles,
}

/// Rate limits of log lines.
#[derive(Default)]
pub(crate) struct LogThrottles {
    dropped: LogThrottle,
    pub(crate) paused: LogThrottle,
    /// Whether the last log line about the target says that it is unavailable.
    pub(crate) is_pause_logged: AtomicBool,
    pub(crate) rejected: LogThrottle,
    given_up: LogThrottle,
}

/// The state of a target, for operators.
#[derive(Clone, Debug)]
pub struct TargetStatus {
    /// The name in the queue, which does not reveal the URL.
    pub name: String,
    /// Scheme, host and port. The rest of the URL may be a secret.
    pub label: String,
    /// Events that match any of these filters are sent.
    pub filters: Vec<Filter>,
    /// Whether it is paused by hand.
    pub is_paused: bool,
    /// When the next request is tried, if the target is unavailable.
    pub unavailable_until: Option<Timestamp>,
    /// The error of the last request, if the target was unavailable.
    pub last_error: Option<String>,
    /// The number of entries by state.
    pub entries: Vec<(EntryState, u64)>,
}

impl ConfiguredTarget {
    /// Parses the targets and merges entries with the same URL. The names depend on the secret of the queue.
    pub(crate) fn merge(entries: &[Target], secret: &str) -> Result<Vec<Self>, String> {
        let mut targets: Vec<Self> = Vec::new();
        for target in entries {
            let (endpoint, filter) = (Endpoint::parse(&target.url)?, Filter::new(target));
            match targets.iter_mut().find(|known| known.endpoint == endpoint) {
                Some(known) => known.filters.push(filter),
                None => targets.push(Self::new(endpoint, filter, secret)),
            }
        }
        Ok(targets)
    }

    fn new(endpoint: Endpoint, filter: Filter, secret: &str) -> Self {
        Self {
            state: Arc::new(TargetState::new(endpoint.name(secret))),
            endpoint,
            filters: vec![filter],
            in_inbox: AtomicU64::new(0),
            in_queue: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            log_throttles: LogThrottles::default(),
        }
    }

    /// Returns whether `event` in `mailbox` is sent to this target.
    pub(crate) fn matches(&self, event: EventKind, mailbox: &str) -> bool {
        self.filters.iter().any(|filter| filter.matches(event, mailbox))
    }

    /// Counts and logs a dropped event.
    pub(crate) fn count_dropped(&self, reason: DropReason) {
        self.dropped.fetch_add(1, Relaxed);
        let webhook = &self.endpoint.label;
        let Some(count) = self.log_throttles.dropped.record(Instant::now()) else { return };
        let text = match reason {
            DropReason::Full => "webhook queue is full (webhook.queue); new events are dropped",
            DropReason::Closed => "webhook events are dropped: the server is shutting down",
        };
        tracing::warn!(webhook, count, "{text}");
    }

    /// Counts and logs an event that is given up.
    pub(crate) fn count_given_up(&self, event: &str, cause: &str) {
        self.state.failed.fetch_add(1, Relaxed);
        if let Some(count) = self.log_throttles.given_up.record(Instant::now()) {
            let webhook = &self.endpoint.label;
            tracing::warn!(webhook, count, event, cause, "webhook events could not be delivered and are given up");
        }
    }

    /// Adds the counters to `counts`, which may already contain those of another target with the same label.
    pub(crate) fn add_to(&self, counts: &mut Counts) {
        counts.waiting += self.in_inbox.load(Relaxed) + self.in_queue.load(Relaxed);
        counts.delivered += self.state.delivered.load(Relaxed);
        counts.retried += self.state.deferred.load(Relaxed);
        counts.failed += self.state.failed.load(Relaxed);
        counts.dropped += self.dropped.load(Relaxed);
    }
}
