//! Metrics: for Prometheus ([`Scrape`]) and for clients of Inbucket ([`Vars`]).
//!
//! One [`Metrics`] is created at the start and passed to every server, which counts where things happen. Counting is a
//! few atomic additions; everything more expensive is done when the metrics are read. The mailroom has its own
//! counters. The HTTP endpoints are in the HTTP server.

mod denials;
mod exposition;
mod history;
mod process;
mod requests;
mod scrape;
mod session;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use jiff::Timestamp;
use prometheus_client::metrics::histogram::Histogram;
use restante_mail::envelope::RefusalReason;
use restante_net::ConnectionCounters;
use restante_platform::ProcessFiles;

use denials::Denials;
use history::History;
pub use history::Vars;
pub use requests::{Requests, Route, method_label};
pub use scrape::{ExtensionCounts, Scrape};
use session::SessionEndCounters;
pub use session::SessionEndReason;

/// The upper bounds of the histograms of delivery and search times, in seconds.
const BUCKETS: [f64; 16] =
    [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// The metrics of all servers.
#[derive(Debug)]
pub struct Metrics {
    started: Timestamp,
    retention_period: Option<Duration>,
    protocols: [ProtocolCounters; Protocol::ALL.len()],
    refusals: [AtomicU64; RefusalReason::ALL.len()],
    delivery_seconds: Histogram,
    search_seconds: Histogram,
    /// The requests over HTTP.
    pub requests: Requests,
    /// The clients of the live monitor.
    pub monitors: Arc<Monitors>,
    history: History,
    process_files: ProcessFiles,
}

/// The protocol of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// SMTP.
    Smtp,
    /// LMTP.
    Lmtp,
    /// POP3.
    Pop3,
    /// HTTP.
    Http,
}

/// The clients of the live monitor, counted by the HTTP server.
#[derive(Debug, Default)]
pub struct Monitors {
    /// Open WebSockets.
    pub websockets: AtomicUsize,
    /// Open streams of Server-Sent Events.
    pub streams: AtomicUsize,
    /// Clients that were disconnected because they fell behind.
    pub lagged: AtomicU64,
}

/// The counters of one protocol.
#[derive(Debug, Default)]
struct ProtocolCounters {
    connections: Arc<ConnectionCounters>,
    handshakes: Attempts,
    logins: Attempts,
    session_ends: SessionEndCounters,
    denials: Denials,
}

/// Counts successes and failures.
#[derive(Debug, Default)]
struct Attempts {
    ok: AtomicU64,
    failed: AtomicU64,
}

impl Protocol {
    /// All protocols.
    pub const ALL: [Self; 4] = [Self::Smtp, Self::Lmtp, Self::Pop3, Self::Http];

    /// Returns the name used in log lines.
    pub fn name(self) -> &'static str {
        match self {
            Self::Smtp => "SMTP",
            Self::Lmtp => "LMTP",
            Self::Pop3 => "POP3",
            Self::Http => "HTTP",
        }
    }

    /// Returns the name used in labels.
    fn label(self) -> &'static str {
        match self {
            Self::Smtp => "smtp",
            Self::Lmtp => "lmtp",
            Self::Pop3 => "pop3",
            Self::Http => "http",
        }
    }
}

impl Metrics {
    /// Creates metrics with all counters at zero. `retention_period` is how long messages are kept, or `None` for ever.
    pub fn new(retention_period: Option<Duration>) -> Self {
        Self {
            started: Timestamp::now(),
            retention_period,
            protocols: Default::default(),
            refusals: Default::default(),
            delivery_seconds: Histogram::new(BUCKETS),
            search_seconds: Histogram::new(BUCKETS),
            requests: Requests::default(),
            monitors: Arc::default(),
            history: History::default(),
            process_files: ProcessFiles::open(),
        }
    }

    /// Returns the start time of the server.
    pub fn started(&self) -> Timestamp {
        self.started
    }

    /// Returns the connection counters of a protocol.
    pub fn connections(&self, protocol: Protocol) -> &Arc<ConnectionCounters> {
        &self.counters(protocol).connections
    }

    /// Counts a TLS handshake by its outcome, and returns the outcome.
    pub fn count_handshake<T>(&self, protocol: Protocol, outcome: io::Result<T>) -> io::Result<T> {
        self.counters(protocol).handshakes.count(outcome.is_ok());
        outcome
    }

    /// Counts a login.
    pub fn count_login(&self, protocol: Protocol, is_accepted: bool) {
        self.counters(protocol).logins.count(is_accepted);
    }

    /// Counts a denied request or login.
    pub fn count_denial(&self, protocol: Protocol, reason: restante_auth::DenialReason) {
        self.counters(protocol).denials.count(reason);
    }

    /// Counts the end of a session of a mail protocol.
    pub fn count_session_end(&self, protocol: Protocol, end_reason: SessionEndReason) {
        self.counters(protocol).session_ends.count(end_reason);
    }

    /// Counts a refusal over SMTP or LMTP.
    pub fn count_refusal(&self, reason: RefusalReason) {
        self.refusals[reason as usize].fetch_add(1, Relaxed);
    }

    /// Records the duration of a search, whatever it found.
    pub fn observe_search(&self, duration: Duration) {
        self.search_seconds.observe(duration.as_secs_f64());
    }

    /// Records the duration of a delivery, whatever its outcome.
    pub fn observe_delivery(&self, duration: Duration) {
        self.delivery_seconds.observe(duration.as_secs_f64());
    }

    fn counters(&self, protocol: Protocol) -> &ProtocolCounters {
        &self.protocols[protocol as usize]
    }

    /// Returns the number of refusals over SMTP and LMTP.
    pub fn refusals(&self) -> u64 {
        RefusalReason::ALL.iter().map(|reason| self.refusal_count(*reason)).sum()
    }

    /// Returns the resident memory of the process in bytes, if the system reports it.
    pub fn resident_bytes(&self) -> Option<u64> {
        self.process_files.resident_bytes()
    }

    fn refusal_count(&self, reason: RefusalReason) -> u64 {
        self.refusals[reason as usize].load(Relaxed)
    }
}

/// For a server without a retention period.
impl Default for Metrics {
    fn default() -> Self {
        Self::new(None)
    }
}

impl Attempts {
    fn count(&self, ok: bool) {
        let counter = if ok { &self.ok } else { &self.failed };
        counter.fetch_add(1, Relaxed);
    }
}
