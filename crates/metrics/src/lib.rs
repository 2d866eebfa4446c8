//! Metrics: for Prometheus ([`Scrape`]) and for clients of Inbucket ([`Vars`]).
//!
//! One [`Metrics`] is created at the start and passed to every server, which counts where things happen. Counters that
//! exist elsewhere are read when the metrics are read: those of the mailroom and the connections here, others with
//! [`register_writer`]. The HTTP endpoints are in the HTTP server.

mod exposition;
mod history;
mod requests;
mod scrape;
mod session;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use prometheus_client::metrics::family::Family;
pub use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
pub use prometheus_client::registry::Registry;
use restante_auth::DenialReason;
use restante_mail::envelope::RefusalReason;
use restante_mail::named_enum;
use restante_net::ConnectionCounters;
use restante_platform::ProcessFiles;

pub use exposition::{ExpositionWriter, Total, register_writer};
use history::History;
pub use history::Vars;
pub use requests::{Requests, method_label, route_label};
pub use scrape::Scrape;
pub use session::SessionEndReason;

/// A family of counters with one label, or with the protocol and another label.
type ReasonFamily = Family<[(&'static str, &'static str); 1], Total>;
type ProtocolFamily = Family<[(&'static str, &'static str); 2], Total>;

/// The upper bounds of the histograms of delivery and search times, in seconds.
const BUCKETS: [f64; 16] =
    [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// The metrics of all servers.
#[derive(Debug)]
pub struct Metrics {
    started: Timestamp,
    retention_period: Option<Duration>,
    connections: [Arc<ConnectionCounters>; Protocol::ALL.len()],
    handshakes: ProtocolFamily,
    logins: ProtocolFamily,
    denials: ProtocolFamily,
    session_ends: ProtocolFamily,
    refusals: ReasonFamily,
    delivery_seconds: Histogram,
    search_seconds: Histogram,
    /// The requests over HTTP.
    pub requests: Requests,
    /// The clients of the live monitor.
    pub monitors: Monitors,
    history: History,
    process_files: ProcessFiles,
}

named_enum! {
    /// The protocol of a connection.
    pub enum Protocol {
        /// SMTP.
        Smtp = "smtp",
        /// LMTP.
        Lmtp = "lmtp",
        /// POP3.
        Pop3 = "pop3",
        /// IMAP.
        Imap = "imap",
        /// HTTP.
        Http = "http",
    }
}

/// The clients of the live monitor, counted by the HTTP server.
#[derive(Clone, Debug, Default)]
pub struct Monitors {
    /// Open WebSockets.
    pub websockets: Gauge,
    /// Open streams of Server-Sent Events.
    pub streams: Gauge,
    /// Clients that were disconnected because they fell behind.
    pub lagged: Total,
}

impl Protocol {
    /// Returns the name used in log lines.
    pub fn log_name(self) -> &'static str {
        match self {
            Self::Smtp => "SMTP",
            Self::Lmtp => "LMTP",
            Self::Pop3 => "POP3",
            Self::Imap => "IMAP",
            Self::Http => "HTTP",
        }
    }
}

impl Metrics {
    /// Creates metrics with all counters at zero, and registers them. `retention_period` is how long messages are kept, or
    /// `None` for ever. The registry adds a full stop to help texts.
    pub fn new(retention_period: Option<Duration>, registry: &mut Registry) -> Self {
        let outcomes = ["ok", "failed"];
        let mail_protocols = &Protocol::ALL[..Protocol::Http as usize];
        let delivery_seconds = Histogram::new(BUCKETS);
        registry.register(
            "restante_delivery_seconds",
            "Time from the end of a message to the response of the store",
            delivery_seconds.clone(),
        );
        let refusals = ReasonFamily::default();
        for reason in RefusalReason::ALL {
            drop(refusals.get_or_create(&[("reason", reason.name())]));
        }
        registry.register(
            "restante_messages_rejected_total",
            "SMTP and LMTP replies that refused a sender, a recipient, a message or a command, by reason",
            refusals.clone(),
        );
        let mut register = |name, help, protocols: &[Protocol], label, values: &[&'static str]| {
            let family = ProtocolFamily::default();
            for protocol in protocols {
                for value in values {
                    drop(family.get_or_create(&[("protocol", protocol.name()), (label, *value)]));
                }
            }
            registry.register(name, help, family.clone());
            family
        };
        Self {
            started: Timestamp::now(),
            retention_period,
            connections: Default::default(),
            handshakes: register(
                "restante_tls_handshakes_total",
                "TLS handshakes, by outcome",
                &Protocol::ALL,
                "outcome",
                &outcomes,
            ),
            logins: register("restante_logins_total", "Logins, by outcome", mail_protocols, "outcome", &outcomes),
            denials: register(
                "restante_denials_total",
                "Denied requests and logins, by reason",
                &Protocol::ALL,
                "reason",
                &DenialReason::ALL.map(DenialReason::name),
            ),
            session_ends: register(
                "restante_sessions_ended_total",
                "Ended SMTP, LMTP, POP3 and IMAP sessions, by outcome",
                mail_protocols,
                "outcome",
                &SessionEndReason::ALL.map(SessionEndReason::name),
            ),
            refusals,
            delivery_seconds,
            search_seconds: Histogram::new(BUCKETS),
            requests: Requests::register(registry),
            monitors: Monitors::register(registry),
            history: History::default(),
            process_files: ProcessFiles::open(),
        }
    }

    /// Registers the durations of searches, if there is a search.
    pub fn register_search(&self, registry: &mut Registry) {
        registry.register(
            "restante_search_seconds",
            "Duration of a search, from the request to its result",
            self.search_seconds.clone(),
        );
    }

    /// Returns the start time of the server.
    pub fn started(&self) -> Timestamp {
        self.started
    }

    /// Returns the connection counters of a protocol.
    pub fn connections(&self, protocol: Protocol) -> &Arc<ConnectionCounters> {
        &self.connections[protocol as usize]
    }

    /// Counts a TLS handshake by its outcome, and returns the outcome.
    pub fn count_handshake<T>(&self, protocol: Protocol, outcome: io::Result<T>) -> io::Result<T> {
        count(&self.handshakes, protocol, "outcome", outcome_label(outcome.is_ok()));
        outcome
    }

    /// Counts a login.
    pub fn count_login(&self, protocol: Protocol, is_accepted: bool) {
        count(&self.logins, protocol, "outcome", outcome_label(is_accepted));
    }

    /// Counts a denied request or login.
    pub fn count_denial(&self, protocol: Protocol, reason: DenialReason) {
        count(&self.denials, protocol, "reason", reason.name());
    }

    /// Counts the end of a session of a mail protocol.
    pub fn count_session_end(&self, protocol: Protocol, end_reason: SessionEndReason) {
        count(&self.session_ends, protocol, "outcome", end_reason.name());
    }

    /// Counts a refusal over SMTP or LMTP.
    pub fn count_refusal(&self, reason: RefusalReason) {
        self.refusals.get_or_create(&[("reason", reason.name())]).inc();
    }

    /// Records the duration of a search, whatever it found.
    pub fn observe_search(&self, duration: Duration) {
        self.search_seconds.observe(duration.as_secs_f64());
    }

    /// Records the duration of a delivery, whatever its outcome.
    pub fn observe_delivery(&self, duration: Duration) {
        self.delivery_seconds.observe(duration.as_secs_f64());
    }

    /// Returns the number of refusals over SMTP and LMTP.
    pub fn refusals(&self) -> u64 {
        RefusalReason::ALL.map(|reason| self.refusal_count(reason)).iter().sum()
    }

    /// Returns the resident memory of the process in bytes, if the system reports it.
    pub fn resident_bytes(&self) -> Option<u64> {
        self.process_files.resident_bytes()
    }

    fn refusal_count(&self, reason: RefusalReason) -> u64 {
        self.refusals.get_or_create(&[("reason", reason.name())]).get()
    }
}

/// For a server without a retention period, of which no metrics are read.
impl Default for Metrics {
    fn default() -> Self {
        Self::new(None, &mut Registry::default())
    }
}

impl Monitors {
    fn register(registry: &mut Registry) -> Self {
        let open: Family<[(&str, &str); 1], Gauge> = Family::default();
        let monitors = Self {
            websockets: open.get_or_create_owned(&[("kind", "websocket")]),
            streams: open.get_or_create_owned(&[("kind", "sse")]),
            lagged: Total::default(),
        };
        registry.register("restante_monitors", "Clients of the live monitor", open);
        registry.register(
            "restante_monitors_lagged_total",
            "Clients of the live monitor that were disconnected because they fell behind",
            monitors.lagged.clone(),
        );
        monitors
    }
}

fn count(family: &ProtocolFamily, protocol: Protocol, label: &'static str, value: &'static str) {
    family.get_or_create(&[("protocol", protocol.name()), (label, value)]).inc();
}

fn outcome_label(is_ok: bool) -> &'static str {
    if is_ok { "ok" } else { "failed" }
}
