//! All metrics in the text format of Prometheus. The names, help texts and labels of all metrics are defined here and
//! nowhere else; `docs/operations.md` is checked against this file.

use std::fmt::{Error, Result};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use jiff::Timestamp;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, text};
use prometheus_client::registry::Registry;
use restante_mail::envelope::RefusalReason;
use restante_mailroom::{Counts, DeletionCause, Mailroom};
use restante_net::ProxyHeaderOutcome;
use restante_relay::{EntryState, TargetCounts};
use restante_script::{Event, Outcome};
use restante_store::Usage;

use super::denials;
use super::exposition::ExpositionWriter;
use super::process::ProcessStats;
use super::{Attempts, Metrics, Protocol, ProtocolCounters, SessionEndReason};

/// The values of one scrape.
#[derive(Debug)]
pub struct Scrape {
    metrics: Arc<Metrics>,
    counts: Counts,
    usage: Option<Usage>,
    extensions: ExtensionCounts,
}

/// The counters of the optional parts of the server.
#[derive(Debug, Default)]
pub struct ExtensionCounts {
    /// The counters of the script.
    pub script: restante_script::Counts,
    /// The counters of each webhook target.
    pub webhooks: Vec<restante_webhook::Counts>,
    /// The counters of the search, if it is enabled.
    pub search: Option<restante_search::Counts>,
    /// The counters of the relay.
    pub relay: restante_relay::Counts,
}

impl Scrape {
    /// The content type of the text.
    pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

    /// Collects all values. The store is queried, which may take as long as [`Mailroom::usage`].
    pub async fn collect(metrics: Arc<Metrics>, mailroom: &Mailroom, extensions: ExtensionCounts) -> Self {
        Self { usage: mailroom.usage().await.ok(), counts: mailroom.counts(), extensions, metrics }
    }

    /// Renders the text. It reads the statistics of the process, which takes a moment if very many files are open.
    pub fn into_text(self) -> std::result::Result<String, Error> {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(self));
        let mut text = String::with_capacity(16 * 1024);
        text::encode_registry(&mut text, &registry)?;
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
            "restante_messages_rejected_total",
            "SMTP and LMTP replies that refused a sender, a recipient, a message or a command, by reason.",
            RefusalReason::ALL.map(|reason| ([("reason", reason.label())], self.metrics.refusal_count(reason))),
        )?;
        writer.counters(
            "restante_messages_deleted_total",
            "Deleted messages, by cause; limit is the limit of a mailbox or of the store.",
            DeletionCause::ALL.map(|cause| ([("cause", cause_label(cause))], counts.deleted_by(cause))),
        )?;
        writer.histogram(
            "restante_delivery_seconds",
            "Time from the end of a message to the response of the store.",
            &self.metrics.delivery_seconds,
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
        let for_all_protocols = |count: fn(&ProtocolCounters) -> u64| {
            Protocol::ALL.map(|protocol| ([("protocol", protocol.label())], count(self.metrics.counters(protocol))))
        };
        writer.gauges(
            "restante_connections",
            "Open connections.",
            for_all_protocols(|counters| counters.connections.open_now()),
        )?;
        writer.counters(
            "restante_connections_accepted_total",
            "Accepted connections.",
            for_all_protocols(|counters| counters.connections.accepted_total()),
        )?;
        writer.counters(
            "restante_connections_refused_total",
            "Connections, and requests of clients behind proxies, that were refused because of a limit.",
            for_all_protocols(|counters| counters.connections.refused_total()),
        )?;
        writer.counters(
            "restante_proxy_headers_total",
            "Required PROXY headers, by outcome.",
            Protocol::ALL.into_iter().flat_map(|protocol| {
                let connections = self.metrics.connections(protocol);
                let labels = |outcome| [("protocol", protocol.label()), ("outcome", proxy_header_label(outcome))];
                ProxyHeaderOutcome::ALL.map(|outcome| (labels(outcome), connections.proxy_headers_total(outcome)))
            }),
        )?;
        writer.counters(
            "restante_tls_handshakes_total",
            "TLS handshakes, by outcome.",
            self.attempts(Protocol::ALL.into_iter(), |counters| &counters.handshakes),
        )?;
        writer.counters(
            "restante_logins_total",
            "Logins, by outcome.",
            self.attempts(mail_protocols(), |counters| &counters.logins),
        )?;
        writer.counters(
            "restante_denials_total",
            "Denied requests and logins, by reason.",
            Protocol::ALL.into_iter().flat_map(|protocol| {
                let denials = &self.metrics.counters(protocol).denials;
                let labels = |reason| [("protocol", protocol.label()), ("reason", denials::reason_label(reason))];
                denials::DenialReason::ALL.map(|reason| (labels(reason), denials.total(reason)))
            }),
        )?;
        writer.counters(
            "restante_sessions_ended_total",
            "Ended SMTP, LMTP and POP3 sessions, by outcome.",
            mail_protocols().flat_map(|protocol| {
                let session_ends = &self.metrics.counters(protocol).session_ends;
                let labels = |reason: SessionEndReason| [("protocol", protocol.label()), ("outcome", reason.label())];
                SessionEndReason::ALL.map(|reason| (labels(reason), session_ends.total(reason)))
            }),
        )
    }

    fn attempts(
        &self,
        protocols: impl Iterator<Item = Protocol>,
        select: fn(&ProtocolCounters) -> &Attempts,
    ) -> impl Iterator<Item = ([(&'static str, &'static str); 2], u64)> {
        protocols.flat_map(move |protocol| {
            let attempts = select(self.metrics.counters(protocol));
            let labels = |outcome| [("protocol", protocol.label()), ("outcome", outcome)];
            [(labels("ok"), attempts.ok.load(Relaxed)), (labels("failed"), attempts.failed.load(Relaxed))]
        })
    }

    fn write_http(&self, writer: &mut ExpositionWriter<'_>) -> Result {
        let routes = self.metrics.requests.routes();
        let responses = routes.iter().flat_map(|route| {
            let labels = |method: &str, status: u16| {
                [("method", method.to_owned()), ("route", route.name().to_owned()), ("status", status.to_string())]
            };
            route.responses().into_iter().map(move |((method, status), count)| (labels(method, status), count))
        });
        writer.counters("restante_http_requests_total", "Requests that got a response.", responses)?;
        writer.histograms(
            "restante_http_request_seconds",
            "Time from the header of a request to the header of its response.",
            routes.iter().map(|route| ([("route", route.name())], route.seconds())),
        )?;
        let monitors = &self.metrics.monitors;
        writer.gauges(
            "restante_monitors",
            "Clients of the live monitor.",
            [
                ([("kind", "websocket")], monitors.websockets.load(Relaxed)),
                ([("kind", "sse")], monitors.streams.load(Relaxed)),
            ],
        )?;
        writer.counter(
            "restante_monitors_lagged_total",
            "Clients of the live monitor that were disconnected because they fell behind.",
            monitors.lagged.load(Relaxed),
        )
    }

    fn write_script(&self, writer: &mut ExpositionWriter<'_>) -> Result {
        let script = &self.extensions.script;
        writer.gauge(
            "restante_script_loaded",
            "Whether a script is loaded (1) or not (0).",
            u64::from(script.loaded),
        )?;
        writer.counters(
            "restante_script_calls_total",
            "Calls of the script's functions, by event and outcome.",
            Event::ALL.into_iter().flat_map(|event| {
                let labels = |outcome| [("event", event.name()), ("outcome", call_label(outcome))];
                Outcome::ALL.map(|outcome| (labels(outcome), script.calls(event, outcome)))
            }),
        )?;
        writer.gauge(
            "restante_script_waiting",
            "Events that wait for the script's after functions.",
            script.waiting,
        )?;
        writer.counter(
            "restante_script_dropped_total",
            "Events that were not passed to the script's after functions because too many were waiting.",
            script.dropped,
        )?;
        writer.gauge("restante_script_abandoned", "Threads that still run an abandoned call.", script.abandoned)?;
        writer.counters(
            "restante_script_reloads_total",
            "Reloads of the script, by outcome.",
            [([("outcome", "ok")], script.reloads), ([("outcome", "failed")], script.failed_reloads)],
        )
    }

    fn write_webhooks(&self, writer: &mut ExpositionWriter<'_>) -> Result {
        writer.counters(
            "restante_webhook_deliveries_total",
            "Events for webhooks, by outcome; and attempts that are retried.",
            self.extensions.webhooks.iter().flat_map(|counts| {
                let outcomes = [
                    ("ok", counts.delivered),
                    ("retried", counts.retried),
                    ("failed", counts.failed),
                    ("dropped", counts.dropped),
                ];
                outcomes.map(|(outcome, count)| ([("target", counts.target.as_str()), ("outcome", outcome)], count))
            }),
        )?;
        writer.gauges(
            "restante_webhook_waiting",
            "Events that wait for a webhook.",
            self.extensions.webhooks.iter().map(|counts| ([("target", counts.target.as_str())], counts.waiting)),
        )
    }

    fn write_search(&self, writer: &mut ExpositionWriter<'_>) -> Result {
        let Some(counts) = self.extensions.search else { return Ok(()) };
        writer.gauge("restante_search_indexed", "Messages in the search index.", counts.indexed)?;
        writer.gauge(
            "restante_search_waiting",
            "Changes that wait to be added to the search index.",
            counts.waiting,
        )?;
        writer.histogram(
            "restante_search_seconds",
            "Duration of a search, from the request to its result.",
            &self.metrics.search_seconds,
        )
    }

    fn write_relay(&self, writer: &mut ExpositionWriter<'_>) -> Result {
        let relay = &self.extensions.relay;
        let for_all_targets = |count: fn(&TargetCounts) -> u64| {
            relay.targets.iter().map(move |counts| ([("target", counts.target.as_str())], count(counts)))
        };
        writer.gauges(
            "restante_relay_entries",
            "Entries of the relay queue, by target and state; in a shared database those of all nodes.",
            relay_entries(relay).map(|(target, state, count)| ([("target", target), ("state", state.name())], count)),
        )?;
        writer.counters(
            "restante_relay_attempts_total",
            "Attempts to send a message to a relay target, by result; deferred attempts are retried.",
            relay.targets.iter().flat_map(|counts| {
                let results =
                    [("delivered", counts.delivered), ("deferred", counts.deferred), ("failed", counts.failed)];
                results.map(|(result, count)| ([("target", counts.target.as_str()), ("result", result)], count))
            }),
        )?;
        writer.counters(
            "restante_relay_connection_failures_total",
            "Connections to a relay target that failed.",
            for_all_targets(|counts| counts.connection_failures),
        )?;
        writer.gauges(
            "restante_relay_paused",
            "Whether a relay target is paused because it cannot be reached (1) or not (0).",
            for_all_targets(|counts| u64::from(counts.is_paused)),
        )?;
        writer.counter(
            "restante_relay_loops_total",
            "Messages that matched a rule and were not forwarded because they are in a loop.",
            relay.loops,
        )?;
        writer.counter(
            "restante_relay_recipients_not_allowed_total",
            "Recipients that matched a rule and that the relay target does not allow.",
            relay.recipients_not_allowed,
        )
    }

    fn write_process(&self, writer: &mut ExpositionWriter<'_>) -> Result {
        let version = env!("CARGO_PKG_VERSION");
        writer.gauges(
            "restante_build_info",
            "The version of the server; always 1.",
            [([("version", version)], 1_u64)],
        )?;
        let process = ProcessStats::read(self.metrics.started, &self.metrics.process_files);
        writer.gauge(
            "process_start_time_seconds",
            "Start time of the process, in seconds since 1970.",
            process.started,
        )?;
        if let Some(seconds) = process.cpu_seconds {
            writer.counter("process_cpu_seconds_total", "Processor time used by the process.", seconds)?;
        }
        if let Some(bytes) = process.resident_bytes {
            writer.gauge("process_resident_memory_bytes", "Resident memory of the process.", bytes)?;
        }
        if let Some(files) = process.open_files {
            writer.gauge("process_open_fds", "Open file descriptors.", files)?;
        }
        if let Some(files) = process.max_files {
            writer.gauge("process_max_fds", "Limit of open file descriptors.", files)?;
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
        self.write_http(&mut writer)?;
        self.write_script(&mut writer)?;
        self.write_webhooks(&mut writer)?;
        self.write_search(&mut writer)?;
        self.write_relay(&mut writer)?;
        self.write_process(&mut writer)
    }
}

/// Returns the number of entries by target and state: for all states of each target, and for targets that are not in the
/// settings any more, but have entries.
fn relay_entries(relay: &restante_relay::Counts) -> impl Iterator<Item = (&str, EntryState, u64)> {
    let find = |target: &str, state| {
        let found = relay.entries.iter().find(|entry| entry.target == target && entry.state == state);
        found.map_or(0, |entry| entry.count)
    };
    let known = relay.targets.iter().flat_map(move |TargetCounts { target, .. }| {
        EntryState::ALL.map(|state| (target.as_str(), state, find(target, state)))
    });
    let is_known = |name: &str| relay.targets.iter().any(|counts| counts.target == name);
    let removed = relay.entries.iter().filter(move |entry| !is_known(&entry.target));
    known.chain(removed.map(|entry| (entry.target.as_str(), entry.state, entry.count)))
}

/// Returns the protocols whose sessions and logins are counted: all except HTTP.
fn mail_protocols() -> impl Iterator<Item = Protocol> {
    Protocol::ALL.into_iter().filter(|protocol| *protocol != Protocol::Http)
}

fn proxy_header_label(outcome: ProxyHeaderOutcome) -> &'static str {
    match outcome {
        ProxyHeaderOutcome::Valid => "ok",
        ProxyHeaderOutcome::Malformed => "malformed",
        ProxyHeaderOutcome::TimedOut => "late",
        ProxyHeaderOutcome::Disconnected => "left",
    }
}

fn call_label(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Ok => "ok",
        Outcome::Error => "error",
        Outcome::Limit => "limit",
        Outcome::Busy => "busy",
    }
}

fn cause_label(cause: DeletionCause) -> &'static str {
    match cause {
        DeletionCause::Request => "request",
        DeletionCause::Collected => "pop3",
        DeletionCause::Age => "age",
        DeletionCause::Limit => "limit",
    }
}
