//! A stream of messages at a fixed rate, whose latencies show whether other work of the server delays deliveries.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use crate::error::Error;
use crate::load::wait_until_due;
use crate::measure::Results;
use crate::message::{self, Envelope, MessageKind};
use crate::smtp::{CommandMode, Sender};

/// The mailbox that gets the messages.
const MAILBOX: &str = "steady";

/// A running stream. A slow server does not reduce its rate.
pub(crate) struct SteadyStream {
    shared: Arc<Shared>,
    connections: JoinSet<Vec<SentMessage>>,
}

/// What the connections share.
struct Shared {
    addresses: Vec<SocketAddr>,
    envelope: Envelope,
    message: Vec<u8>,
    start: Instant,
    /// The interval between two messages over all connections.
    interval: Duration,
    is_stopped: AtomicBool,
}

/// One message of the stream: when it was due, and its latency or error.
#[derive(Clone)]
pub(crate) struct SentMessage {
    pub(crate) due: Instant,
    pub(crate) outcome: Result<Duration, Arc<Error>>,
}

impl SteadyStream {
    /// Starts to send `rate` messages of `size` bytes per second.
    pub(crate) fn start(addresses: Vec<SocketAddr>, rate: u32, connections: u32, size: usize) -> Self {
        let shared = Arc::new(Shared {
            addresses,
            envelope: Envelope::to([MAILBOX]),
            message: message::build_message(MessageKind::Text, MAILBOX, size),
            start: Instant::now(),
            interval: Duration::from_secs(1) / rate,
            is_stopped: AtomicBool::new(false),
        });
        let mut tasks = JoinSet::new();
        for number in 0..connections {
            tasks.spawn(Arc::clone(&shared).run_connection(number, connections));
        }
        Self { shared, connections: tasks }
    }

    /// Stops the stream. Returns the messages of all connections.
    pub(crate) async fn stop(self) -> Vec<SentMessage> {
        self.shared.is_stopped.store(true, Ordering::Relaxed);
        self.connections.join_all().await.concat()
    }
}

impl Shared {
    /// Sends the share of one connection, each message when it is due.
    async fn run_connection(self: Arc<Self>, number: u32, connections: u32) -> Vec<SentMessage> {
        let mut sent = Vec::new();
        let mut sender = Sender::new(&self.addresses);
        let mut due = self.start + self.interval * number;
        while !self.is_stopped.load(Ordering::Relaxed) {
            let started_at = wait_until_due(due).await.unwrap_or_else(Instant::now);
            let result = sender.send(&self.envelope, &self.message, CommandMode::Pipelined).await;
            let outcome = result.map(|()| started_at.elapsed()).map_err(Arc::new);
            sent.push(SentMessage { due, outcome });
            due += self.interval * connections;
        }
        sent
    }
}

impl Results {
    /// Adds a message of a stream.
    pub(crate) fn record_sent(&mut self, outcome: Result<Duration, Arc<Error>>) {
        match outcome {
            Ok(elapsed) => self.record_success(elapsed, 0),
            Err(error) => self.record_error(&error),
        }
    }
}
