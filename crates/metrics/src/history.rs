//! The values that Inbucket reports at `/debug/vars`, and their history of the last hour, minute by minute.

use std::collections::VecDeque;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use restante_mail::envelope::RefusalReason;
use restante_mailroom::{Counts, DeletionCause, Mailroom};
use restante_store::Usage;
use serde::Serialize;
use tokio::runtime::Handle;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use super::{Metrics, Protocol};

/// How often a sample is taken.
const SAMPLE_INTERVAL: Duration = Duration::from_mins(1);
/// The number of samples that are kept: sixty differences need 61 samples.
const MAX_SAMPLES: usize = 61;

/// The samples of the last hour, oldest first.
#[derive(Debug, Default)]
pub(super) struct History(Mutex<VecDeque<Sample>>);

/// The values at one moment.
#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    connects: u64,
    received: u64,
    errors: u64,
    warnings: u64,
    deletes: u64,
    retained: u64,
    size: u64,
}

/// The response of `/debug/vars`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Vars {
    smtp: SmtpVars,
    http: HttpVars,
    retention: RetentionVars,
    memstats: MemoryVars,
    goroutines: usize,
    start_millis: i64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct SmtpVars {
    connects_total: u64,
    connects_current: u64,
    connects_hist: String,
    received_total: u64,
    received_hist: String,
    errors_total: u64,
    errors_hist: String,
    warns_total: u64,
    warns_hist: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct HttpVars {
    web_socket_connects_current: i64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct RetentionVars {
    deletes_total: u64,
    deletes_hist: String,
    /// Seconds.
    period: u64,
    retained_current: u64,
    retained_hist: String,
    retained_size: u64,
    size_hist: String,
    /// Milliseconds since 1970.
    scan_completed_millis: i64,
}

/// The memory statistics that Go's runtime reports. Here all sizes are the resident memory of this process.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct MemoryVars {
    sys: u64,
    heap_sys: u64,
    heap_alloc: u64,
    /// Always 0: allocations are not counted.
    heap_objects: u64,
}

impl Metrics {
    /// Takes a sample every minute for as long as the future is polled.
    pub async fn run_history(&self, mailroom: &Mailroom) {
        let mut ticks = interval_at(Instant::now() + SAMPLE_INTERVAL, SAMPLE_INTERVAL);
        // A machine that was suspended has no samples of that time.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            ticks.tick().await;
            let sample = self.sample(&mailroom.counts(), mailroom.usage().await.ok());
            self.history.push(sample);
        }
    }

    /// Returns the current values and their history.
    pub async fn vars(&self, mailroom: &Mailroom) -> Vars {
        let counts = mailroom.counts();
        let now = self.sample(&counts, mailroom.usage().await.ok());
        let history = &self.history;
        let memory = self.process_files.resident_bytes().unwrap_or(0);
        Vars {
            smtp: SmtpVars {
                connects_total: now.connects,
                connects_current: self.sum_smtp_and_lmtp(|metrics, protocol| metrics.connections(protocol).open_now()),
                connects_hist: history.comma_separated(|sample| sample.connects),
                received_total: now.received,
                received_hist: history.comma_separated(|sample| sample.received),
                errors_total: now.errors,
                errors_hist: history.comma_separated(|sample| sample.errors),
                warns_total: now.warnings,
                warns_hist: history.comma_separated(|sample| sample.warnings),
            },
            http: HttpVars { web_socket_connects_current: self.monitors.websockets.get() },
            retention: RetentionVars {
                deletes_total: now.deletes,
                deletes_hist: history.comma_separated(|sample| sample.deletes),
                period: self.retention_period.map_or(0, |period| period.as_secs()),
                retained_current: now.retained,
                retained_hist: history.comma_separated(|sample| sample.retained),
                retained_size: now.size,
                size_hist: history.comma_separated(|sample| sample.size),
                scan_completed_millis: counts.retention_completed.map_or(0, Timestamp::as_millisecond),
            },
            memstats: MemoryVars { sys: memory, heap_sys: memory, heap_alloc: memory, heap_objects: 0 },
            goroutines: Handle::current().metrics().num_alive_tasks(),
            start_millis: self.started.as_millisecond(),
        }
    }

    /// Takes a sample. If the store does not respond, the last known values are used.
    fn sample(&self, counts: &Counts, usage: Option<Usage>) -> Sample {
        let previous = self.history.last();
        let errors = [RefusalReason::StoreFull, RefusalReason::StoreFailed]
            .map(|reason| self.refusal_count(reason))
            .iter()
            .sum();
        let refusals = self.refusals();
        Sample {
            connects: self.sum_smtp_and_lmtp(|metrics, protocol| metrics.connections(protocol).accepted_total()),
            received: counts.received,
            errors,
            warnings: refusals.saturating_sub(errors),
            deletes: counts.deleted_by(DeletionCause::Age),
            retained: usage.map_or(previous.retained, |usage| usage.copies),
            size: usage.map_or(previous.size, |usage| usage.bytes),
        }
    }

    fn sum_smtp_and_lmtp(&self, count: fn(&Self, Protocol) -> u64) -> u64 {
        count(self, Protocol::Smtp) + count(self, Protocol::Lmtp)
    }
}

impl History {
    fn push(&self, sample: Sample) {
        let mut samples = self.0.lock();
        if samples.len() == MAX_SAMPLES {
            samples.pop_front();
        }
        samples.push_back(sample);
    }

    fn last(&self) -> Sample {
        self.0.lock().back().copied().unwrap_or_default()
    }

    /// Returns one value of every sample, separated by commas.
    fn comma_separated(&self, value: fn(&Sample) -> u64) -> String {
        let texts: Vec<String> = self.0.lock().iter().map(|sample| value(sample).to_string()).collect();
        texts.join(",")
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use restante_mailroom::hooks::Extensions;
    use restante_store::Limits;
    use restante_store::memory::MemoryStore;

    use super::*;

    #[test]
    fn keeps_the_samples_of_one_hour() {
        let history = History::default();
        assert_eq!(history.comma_separated(|sample| sample.received), "");
        for received in 1..=100 {
            history.push(Sample { received, ..Sample::default() });
        }
        let text = history.comma_separated(|sample| sample.received);
        assert_eq!(text.split(',').count(), 61);
        assert!(text.starts_with("40,41,") && text.ends_with(",99,100"), "{text}");
    }

    #[tokio::test(start_paused = true)]
    async fn takes_a_sample_every_minute() {
        let store = Arc::new(MemoryStore::new(Limits::default()));
        let mailroom = Mailroom::new(restante_mailroom::Settings::default(), store, Extensions::default());
        let metrics = Metrics::default();
        metrics.count_refusal(RefusalReason::StoreFull);
        for _ in 0..3 {
            metrics.count_refusal(RefusalReason::Policy);
        }
        let two_and_a_half = Duration::from_secs(150);
        assert!(tokio::time::timeout(two_and_a_half, metrics.run_history(&mailroom)).await.is_err());
        let vars = serde_json::to_value(metrics.vars(&mailroom).await).unwrap();
        assert_eq!(vars["smtp"]["ErrorsHist"], "1,1");
        assert_eq!(vars["smtp"]["WarnsHist"], "3,3");
        assert_eq!(vars["smtp"]["WarnsTotal"], 3);
        assert_eq!(vars["retention"]["SizeHist"], "0,0");
    }
}
