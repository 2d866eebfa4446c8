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

    fn write_mail(&self, page: &mut ExpositionWriter<'_>) -> Result {
        let counts = &self.counts;
        page.counter(
            "restante_messages_received_total",
            "Messages that were taken in, whether they were kept or not.",
            counts.received,
        )?;
        page.counter(
            "restante_received_bytes_total",
            "Bytes of the messages that were taken in.",
            counts.received_bytes,
        )?;
        page.counter(
            "restante_messages_stored_total",
            "Copies of messages that were put into mailboxes.",
            counts.stored,
        )?;
        page.counter(
            "restante_messages_discarded_total",
            "Messages that were taken in and not kept, because policy or a script wanted it so.",
            counts.discarded,
        )?;
        page.counters(
            "restante_messages_rejected_total",
            "Replies that refused a sender, a recipient, a mail or a command over SMTP or LMTP, by reason.",
            RefusalReason::ALL.map(|reason| ([("reason", reason.label())], self.metrics.refusal_count(reason))),
        )?;
        page.counters(
            "restante_messages_deleted_total",
            "Messages that were deleted, by cause; limit is the cap of a mailbox or the bound of the store.",
            DeletionCause::ALL.map(|cause| ([("cause", cause_label(cause))], counts.deleted_by(cause))),
        )?;
        page.histogram(
            "restante_delivery_seconds",
            "Time from the end of a mail to the store's answer.",
            &self.metrics.delivery_seconds,
        )
    }

    fn write_store(&self, page: &mut ExpositionWriter<'_>) -> Result {
        page.gauge("restante_store_up", "Whether the store answers (1) or not (0).", u64::from(self.usage.is_some()))?;
        if let Some(usage) = &self.usage {
            page.gauge("restante_store_messages", "Messages in all mailboxes.", usage.messages)?;
            page.gauge("restante_store_bytes", "Bytes of the messages, those in several mailboxes once.", usage.bytes)?;
            page.gauge("restante_store_mailboxes", "Mailboxes that hold something.", usage.mailboxes)?;
        }
        let period = self.metrics.retention_period.map_or(0.0, |period| period.as_secs_f64());
        page.gauge("restante_retention_period_seconds", "How long mail is kept; 0 is for ever.", period)?;
        page.gauge(
            "restante_retention_lag_seconds",
            "How late the mail was that retention removed last; 0 once it is done with everything that was due.",
            self.counts.retention_lag.as_secs_f64(),
        )?;
        let completed = self.counts.retention_completed.map_or(0, Timestamp::as_second);
        page.gauge(
            "restante_retention_completed_timestamp_seconds",
            "When retention was last done with everything that was due; 0 is never.",
            completed,
        )
    }

    fn write_connections(&self, page: &mut ExpositionWriter<'_>) -> Result {
        let of_all = |count: fn(&ProtocolCounters) -> u64| {
            Protocol::ALL.map(|protocol| ([("protocol", protocol.label())], count(self.metrics.counters(protocol))))
        };
        page.gauges(
            "restante_connections",
            "Connections that are open.",
            of_all(|counters| counters.connections.open_now()),
        )?;
        page.counters(
            "restante_connections_accepted_total",
            "Connections that were accepted.",
            of_all(|counters| counters.connections.accepted_total()),
        )?;
        page.counters(
            "restante_connections_refused_total",
            "Connections, and requests of clients behind proxies, that were beyond the limits.",
            of_all(|counters| counters.connections.refused_total()),
        )?;
        page.counters(
            "restante_proxy_headers_total",
            "PROXY headers that were due, by what became of them.",
            Protocol::ALL.into_iter().flat_map(|protocol| {
                let connections = self.metrics.connections(protocol);
                let labels = |header| [("protocol", protocol.label()), ("outcome", proxy_header_label(header))];
                ProxyHeaderOutcome::ALL.map(|header| (labels(header), connections.proxy_headers_total(header)))
            }),
        )?;
        page.counters(
            "restante_tls_handshakes_total",
            "TLS handshakes, by outcome.",
            self.attempts(Protocol::ALL.into_iter(), |counters| &counters.handshakes),
        )?;
        page.counters(
            "restante_logins_total",
            "Logins, by outcome.",
            self.attempts(mail_protocols(), |counters| &counters.logins),
        )?;
        page.counters(
            "restante_denials_total",
            "Requests and logins that were denied, by reason.",
            Protocol::ALL.into_iter().flat_map(|protocol| {
                let denials = &self.metrics.counters(protocol).denials;
                let labels = |reason| [("protocol", protocol.label()), ("reason", denials::reason_label(reason))];
                denials::DenialReason::ALL.map(|reason| (labels(reason), denials.total(reason)))
            }),
        )?;
        page.counters(
            "restante_sessions_ended_total",
            "Sessions over SMTP, LMTP and POP3 that have ended, by how.",
            mail_protocols().flat_map(|protocol| {
                let endings = &self.metrics.counters(protocol).session_ends;
                let labels = |ending: SessionEndReason| [("protocol", protocol.label()), ("outcome", ending.label())];
                SessionEndReason::ALL.map(|ending| (labels(ending), endings.total(ending)))
            }),
        )
    }

    fn attempts(
        &self,
        protocols: impl Iterator<Item = Protocol>,
        of: fn(&ProtocolCounters) -> &Attempts,
    ) -> impl Iterator<Item = ([(&'static str, &'static str); 2], u64)> {
        protocols.flat_map(move |protocol| {
            let attempts = of(self.metrics.counters(protocol));
            let labels = |outcome| [("protocol", protocol.label()), ("outcome", outcome)];
            [(labels("ok"), attempts.ok.load(Relaxed)), (labels("failed"), attempts.failed.load(Relaxed))]
        })
    }

    fn write_http(&self, page: &mut ExpositionWriter<'_>) -> Result {
        let routes = self.metrics.requests.routes();
        let answers = routes.iter().flat_map(|route| {
            let labels = |method: &str, status: u16| {
                [("method", method.to_owned()), ("route", route.name().to_owned()), ("status", status.to_string())]
            };
            route.responses().into_iter().map(move |((method, status), count)| (labels(method, status), count))
        });
        page.counters("restante_http_requests_total", "Requests that were answered.", answers)?;
        page.histograms(
            "restante_http_request_seconds",
            "Time from the header of a request to the header of its answer.",
            routes.iter().map(|route| ([("route", route.name())], route.seconds())),
        )?;
        let monitors = &self.metrics.monitors;
        page.gauges(
            "restante_monitors",
            "Readers of the live monitor.",
            [
                ([("kind", "websocket")], monitors.websockets.load(Relaxed)),
                ([("kind", "sse")], monitors.streams.load(Relaxed)),
            ],
        )?;
        page.counter(
            "restante_monitors_lagged_total",
            "Readers of the live monitor that were sent away because they fell behind.",
            monitors.lagged.load(Relaxed),
        )
    }

    fn write_script(&self, page: &mut ExpositionWriter<'_>) -> Result {
        let script = &self.extensions.script;
        page.gauge("restante_script_loaded", "Whether there is a script (1) or not (0).", u64::from(script.loaded))?;
        page.counters(
            "restante_script_calls_total",
            "Calls of the script's functions, by event and outcome.",
            Event::ALL.into_iter().flat_map(|event| {
                let labels = |outcome| [("event", event.name()), ("outcome", call_label(outcome))];
                Outcome::ALL.map(|outcome| (labels(outcome), script.calls(event, outcome)))
            }),
        )?;
        page.gauge("restante_script_waiting", "Events that wait for the script's after functions.", script.waiting)?;
        page.counter(
            "restante_script_dropped_total",
            "Events that the script's after functions were not told of, because too many were waiting.",
            script.dropped,
        )?;
        page.gauge(
            "restante_script_abandoned",
            "Threads that are busy with a call that nobody waits for any more.",
            script.abandoned,
        )?;
        page.counters(
            "restante_script_reloads_total",
            "Times that the script was loaded again, by outcome.",
            [([("outcome", "ok")], script.reloads), ([("outcome", "failed")], script.failed_reloads)],
        )
    }

    fn write_webhooks(&self, page: &mut ExpositionWriter<'_>) -> Result {
        page.counters(
            "restante_webhook_deliveries_total",
            "Events that webhooks were to be told of, by outcome; and attempts that are repeated.",
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
        page.gauges(
            "restante_webhook_waiting",
            "Events that wait for a webhook.",
            self.extensions.webhooks.iter().map(|counts| ([("target", counts.target.as_str())], counts.waiting)),
        )
    }

    fn write_search(&self, page: &mut ExpositionWriter<'_>) -> Result {
        let Some(counts) = self.extensions.search else { return Ok(()) };
        page.gauge("restante_search_indexed", "Messages that are in the search index.", counts.indexed)?;
        page.gauge("restante_search_waiting", "Changes that wait to be put into the search index.", counts.waiting)?;
        page.histogram(
            "restante_search_seconds",
            "Time of a search, from its question to what was found.",
            &self.metrics.search_seconds,
        )
    }

    fn write_process(&self, page: &mut ExpositionWriter<'_>) -> Result {
        let version = env!("CARGO_PKG_VERSION");
        page.gauges("restante_build_info", "Which version this is; always 1.", [([("version", version)], 1_u64)])?;
        let process = ProcessStats::read(self.metrics.started, &self.metrics.proc_files);
        page.gauge("process_start_time_seconds", "When the process was started, since 1970.", process.started)?;
        page.counter("process_cpu_seconds_total", "Processor time that the process has taken.", process.cpu_seconds)?;
        if let Some(bytes) = process.resident_bytes {
            page.gauge("process_resident_memory_bytes", "Memory that the process has.", bytes)?;
        }
        if let Some(files) = process.open_files {
            page.gauge("process_open_fds", "File descriptors that are open.", files)?;
        }
        if let Some(files) = process.max_files {
            page.gauge("process_max_fds", "File descriptors that may be open.", files)?;
        }
        Ok(())
    }
}

impl Collector for Scrape {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> Result {
        let mut page = ExpositionWriter(encoder);
        self.write_mail(&mut page)?;
        self.write_store(&mut page)?;
        self.write_connections(&mut page)?;
        self.write_http(&mut page)?;
        self.write_script(&mut page)?;
        self.write_webhooks(&mut page)?;
        self.write_search(&mut page)?;
        self.write_process(&mut page)
    }
}

/// Returns the protocols that have sessions and logins of their own.
fn mail_protocols() -> impl Iterator<Item = Protocol> {
    Protocol::ALL.into_iter().filter(|protocol| *protocol != Protocol::Http)
}

fn proxy_header_label(header: ProxyHeaderOutcome) -> &'static str {
    match header {
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
