//! The text format of Prometheus: the registered metrics, and those of the mailroom, the store, the connections and the
//! process, which are read when the text is rendered.

use std::fmt::{Error, Result};
use std::sync::Arc;

use jiff::Timestamp;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, text};
use prometheus_client::registry::Registry;
use restante_mailroom::{Counts, DeletionCause, Mailroom};
use restante_net::{ConnectionCounters, ProxyHeaderOutcome};
use restante_store::Usage;

use super::exposition::ExpositionWriter;
use super::{Metrics, Protocol};

/// The values of one scrape.
#[derive(Debug)]
pub struct Scrape {
    metrics: Arc<Metrics>,
    counts: Counts,
    usage: Option<Usage>,
}

impl Scrape {
    /// The content type of the text.
    pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

    /// Collects the values. The store is queried, which may take as long as [`Mailroom::usage`].
    pub async fn collect(metrics: Arc<Metrics>, mailroom: &Mailroom) -> Self {
        Self { usage: mailroom.usage().await.ok(), counts: mailroom.counts(), metrics }
    }

    /// Renders the text, with the metrics of `registered`. It reads the statistics of the process, which takes a moment if
    /// very many files are open.
    pub fn into_text(self, registered: &Registry) -> std::result::Result<String, Error> {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(self));
        let mut text = String::with_capacity(16 * 1024);
        text::encode_registry(&mut text, &registry)?;
        text::encode_registry(&mut text, registered)?;
        Ok(text)
    }

    fn write_mail(&self, writer: &mut ExpositionWriter<'_>) -> Result {
        let counts = &self.counts;
        writer.counter(
            "restante_messages_received_total",
            "Messages that were accepted, stored or not.",
            counts.received,
        )?;
        writer.counter("restante_received_bytes_total", "Bytes of the accepted messages.", counts.received_bytes)?;
        writer.counter(
            "restante_messages_stored_total",
            "Copies of messages that were stored in mailboxes.",
            counts.stored,
        )?;
        writer.counter(
            "restante_messages_discarded_total",
            "Messages that were accepted and discarded by the policy or a script.",
            counts.discarded,
        )?;
        writer.counters(
            "restante_messages_deleted_total",
            "Deleted messages, by cause; limit is the limit of a mailbox or of the store.",
            DeletionCause::ALL.map(|cause| ([("cause", cause.name())], counts.deleted_by(cause))),
        )
    }

    fn write_store(&self, writer: &mut ExpositionWriter<'_>) -> Result {
        writer.gauge(
            "restante_store_up",
            "Whether the store responds (1) or not (0).",
            u64::from(self.usage.is_some()),
        )?;
        if let Some(usage) = &self.usage {
            writer.gauge(
                "restante_store_messages",
                "Messages in all mailboxes; a message in several mailboxes counts once per mailbox.",
                usage.copies,
            )?;
            writer.gauge(
                "restante_store_distinct_messages",
                "Messages; a message in several mailboxes counts once.",
                usage.messages,
            )?;
            writer.gauge(
                "restante_store_bytes",
                "Bytes of the messages; a message in several mailboxes counts once.",
                usage.bytes,
            )?;
            writer.gauge("restante_store_mailboxes", "Mailboxes that are not empty.", usage.mailboxes)?;
        }
        let period = self.metrics.retention_period.map_or(0.0, |period| period.as_secs_f64());
        writer.gauge("restante_retention_period_seconds", "How long messages are kept; 0 means forever.", period)?;
        writer.gauge(
            "restante_retention_lag_seconds",
            "How late retention deleted the last expired message; 0 if no message was overdue in the last round.",
            self.counts.retention_lag.as_secs_f64(),
        )?;
        let completed = self.counts.retention_completed.map_or(0, Timestamp::as_second);
        writer.gauge(
            "restante_retention_completed_timestamp_seconds",
            "When the last retention round completed; 0 means never.",
            completed,
        )
    }

    fn write_connections(&self, writer: &mut ExpositionWriter<'_>) -> Result {
        let for_all_protocols = |count: fn(&ConnectionCounters) -> u64| {
            Protocol::ALL.map(|protocol| ([("protocol", protocol.name())], count(self.metrics.connections(protocol))))
        };
        writer.gauges("restante_connections", "Open connections.", for_all_protocols(ConnectionCounters::open_now))?;
        writer.counters(
            "restante_connections_accepted_total",
            "Accepted connections.",
            for_all_protocols(ConnectionCounters::accepted_total),
        )?;
        writer.counters(
            "restante_connections_refused_total",
            "Connections, and requests of clients behind proxies, that were refused because of a limit.",
            for_all_protocols(ConnectionCounters::refused_total),
        )?;
        writer.counters(
            "restante_proxy_headers_total",
            "Required PROXY headers, by outcome.",
            Protocol::ALL.into_iter().flat_map(|protocol| {
                let connections = self.metrics.connections(protocol);
                let labels = |outcome: ProxyHeaderOutcome| [("protocol", protocol.name()), ("outcome", outcome.name())];
                ProxyHeaderOutcome::ALL.map(|outcome| (labels(outcome), connections.proxy_headers_total(outcome)))
            }),
        )
    }

    fn write_process(&self, writer: &mut ExpositionWriter<'_>) -> Result {
        let version = env!("CARGO_PKG_VERSION");
        writer.gauges(
            "restante_build_info",
            "The version of the server; always 1.",
            [([("version", version)], 1_u64)],
        )?;
        writer.gauge(
            "process_start_time_seconds",
            "Start time of the process, in seconds since 1970.",
            self.metrics.started.as_duration().as_secs_f64(),
        )?;
        let files = &self.metrics.process_files;
        if let Some(time) = files.cpu_time() {
            writer.counter("process_cpu_seconds_total", "Processor time used by the process.", time.as_secs_f64())?;
        }
        if let Some(bytes) = files.resident_bytes() {
            writer.gauge("process_resident_memory_bytes", "Resident memory of the process.", bytes)?;
        }
        if let Some(count) = files.open_files() {
            writer.gauge("process_open_fds", "Open file descriptors.", count)?;
        }
        if let Some(count) = files.max_files() {
            writer.gauge("process_max_fds", "Limit of open file descriptors.", count)?;
        }
        Ok(())
    }
}

impl Collector for Scrape {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> Result {
        let mut writer = ExpositionWriter(encoder);
        self.write_mail(&mut writer)?;
        self.write_store(&mut writer)?;
        self.write_connections(&mut writer)?;
        self.write_process(&mut writer)
    }
}
