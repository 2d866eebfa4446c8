//! Sends the messages that monitors receive: equal messages except for a number in the subject, as fast as the server
//! accepts them or at a fixed rate. The number identifies the message of an event.

use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use clap::Args;
use memchr::memmem;
use tokio::task::JoinSet;
use tokio::time::sleep_until;

use crate::error::Error;
use crate::load::{parse_positive, recover_session};
use crate::measure::{Results, to_f64};
use crate::message::{self, END_OF_DATA, Envelope, MessageKind};
use crate::smtp::{Client, CommandMode};

/// The text before the number in a subject.
const SUBJECT_PREFIX: &str = "monitored-message-";
/// Digits of the number, enough for the microseconds since 1970.
const NUMBER_DIGITS: usize = 16;

/// Allocates message numbers that were not used before.
pub(super) struct Numbers(u64);

impl Numbers {
    /// Starts with the current time in microseconds, because the server may send events about messages of an earlier
    /// run.
    pub(super) fn new() -> Self {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self(u64::try_from(now.as_micros()).unwrap_or(0))
    }

    /// Returns the next `count` numbers.
    pub(super) fn take(&mut self, count: usize) -> Range<u64> {
        let first = self.0;
        self.0 += count as u64;
        first..self.0
    }
}

/// The options of the messages that are sent.
#[derive(Args)]
pub(super) struct DeliveryOptions {
    /// Messages to send in each pass or round.
    #[arg(long, default_value_t = 20_000, value_parser = parse_positive)]
    pub(super) messages: usize,
    /// Size of each message in bytes with its header.
    #[arg(long, default_value_t = 1024)]
    pub(super) size: usize,
    /// Messages per second; without it, as fast as the server accepts them, which monitors of all mailboxes cannot follow.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) rate: Option<u32>,
    /// Number of rounds.
    #[arg(long, default_value_t = 3, value_parser = parse_positive)]
    pub(super) rounds: usize,
    /// Messages to send before measuring.
    #[arg(long, default_value_t = 1000)]
    pub(super) warmup: usize,
}

/// The settings of a delivery.
pub(super) struct Delivery {
    /// The SMTP server.
    pub(super) addresses: Vec<SocketAddr>,
    /// The number of concurrent connections.
    pub(super) connections: usize,
    /// Messages per second; `None` for as fast as possible.
    pub(super) rate: Option<u32>,
    /// The transactions. The number of a message selects one.
    pub(super) envelopes: Vec<Envelope>,
    /// The size of a message in bytes.
    pub(super) size: usize,
}

/// The result of a delivery.
pub(super) struct DeliveryResult {
    /// Successes and errors.
    pub(super) results: Results,
    /// From the first command to the last reply.
    pub(super) elapsed: Duration,
    /// When each message was acknowledged, by its offset from the first number.
    pub(super) acknowledged: Vec<Option<Instant>>,
}

impl Delivery {
    /// Sends the messages with these numbers.
    pub(super) async fn run(self: &Arc<Self>, numbers: Range<u64>) -> DeliveryResult {
        let start = Instant::now();
        let next = Arc::new(AtomicU64::new(numbers.start));
        let mut workers = JoinSet::new();
        for _ in 0..self.connections {
            workers.spawn(Arc::clone(self).work(Arc::clone(&next), numbers.clone(), start));
        }
        let (results, acknowledgements): (Vec<_>, Vec<_>) = workers.join_all().await.into_iter().unzip();
        let elapsed = start.elapsed();
        let mut acknowledged = vec![None; numbers.count()];
        for (offset, at) in acknowledgements.concat() {
            acknowledged[offset] = Some(at);
        }
        DeliveryResult { results: Results::merge(results), elapsed, acknowledged }
    }

    /// Runs one connection: sends the next message when it is due until there are no more.
    async fn work(
        self: Arc<Self>,
        next: Arc<AtomicU64>,
        numbers: Range<u64>,
        start: Instant,
    ) -> (Results, Vec<(usize, Instant)>) {
        // After this many consecutive errors the server is considered gone. Otherwise every remaining message would be
        // tried, too.
        const MAX_CONSECUTIVE_ERRORS: u32 = 10;
        let mut message = NumberedMessage::new(self.size);
        let mut results = Results::default();
        let mut acknowledged = Vec::new();
        let mut session = None;
        let mut consecutive_errors = 0;
        while consecutive_errors < MAX_CONSECUTIVE_ERRORS {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= numbers.end {
                break;
            }
            let offset = usize::try_from(number - numbers.start).unwrap_or(usize::MAX);
            let started_at = self.wait_until_due(start, offset).await;
            match self.deliver(number, &mut message, &mut session).await {
                Ok(()) => {
                    let now = Instant::now();
                    consecutive_errors = 0;
                    results.record_success(now - started_at, message.bytes.len() - END_OF_DATA.len());
                    acknowledged.push((offset, now));
                }
                Err(error) => {
                    results.record_error(&error);
                    consecutive_errors = if matches!(error, Error::Refused(_)) { 0 } else { consecutive_errors + 1 };
                    session = recover_session(session, &error).await;
                }
            }
        }
        if let Some(client) = session {
            // Every message has been acknowledged or counted as an error. The reply to QUIT changes nothing.
            let _ = client.quit().await;
        }
        (results, acknowledged)
    }

    /// Waits until a message is due. Returns the time from which its latency counts. If earlier messages took too long,
    /// that is the time at which it was due. Otherwise it is now: the timer has a resolution of milliseconds, which is
    /// not the server's fault.
    async fn wait_until_due(&self, start: Instant, offset: usize) -> Instant {
        let Some(rate) = self.rate else { return Instant::now() };
        let due = start + Duration::from_secs(1).mul_f64(to_f64(offset) / f64::from(rate));
        if Instant::now() > due {
            return due;
        }
        sleep_until(due.into()).await;
        Instant::now()
    }

    async fn deliver(
        &self,
        number: u64,
        message: &mut NumberedMessage,
        session: &mut Option<Client>,
    ) -> Result<(), Error> {
        let client = match session {
            Some(client) => client,
            None => session.insert(Client::connect(&self.addresses).await?),
        };
        message.set_number(number);
        let envelope = usize::try_from(number).unwrap_or(0) % self.envelopes.len();
        client.send(&self.envelopes[envelope], &message.bytes, CommandMode::Pipelined).await
    }
}

/// Finds the message number in the text of an event.
pub(super) fn find_number(text: &[u8]) -> Option<u64> {
    let digits = memmem::find(text, SUBJECT_PREFIX.as_bytes())? + SUBJECT_PREFIX.len();
    str::from_utf8(text.get(digits..digits + NUMBER_DIGITS)?).ok()?.parse().ok()
}

/// A message whose number can be changed.
struct NumberedMessage {
    bytes: Vec<u8>,
    /// The offsets of the number.
    offsets: Vec<usize>,
}

impl NumberedMessage {
    fn new(size: usize) -> Self {
        let bytes =
            message::build_message(MessageKind::Text, &format!("{SUBJECT_PREFIX}{}", "0".repeat(NUMBER_DIGITS)), size);
        let offsets =
            memmem::find_iter(&bytes, SUBJECT_PREFIX.as_bytes()).map(|at| at + SUBJECT_PREFIX.len()).collect();
        Self { bytes, offsets }
    }

    fn set_number(&mut self, number: u64) {
        let digits = format!("{number:0NUMBER_DIGITS$}");
        for &offset in &self.offsets {
            self.bytes[offset..offset + NUMBER_DIGITS].copy_from_slice(&digits.as_bytes()[..NUMBER_DIGITS]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_number_of_a_message() {
        let mut message = NumberedMessage::new(1024);
        let length = message.bytes.len();
        for number in [0, 7, 1_794_699_770_123_456] {
            message.set_number(number);
            assert_eq!(find_number(&message.bytes), Some(number));
            assert_eq!(message.bytes.len(), length);
        }
        assert_eq!(message.offsets.len(), 2, "the subject and the Message-ID");
        for text in ["", "monitored-message-", "monitored-message-12", "{\"variant\":\"message-deleted\"}"] {
            assert_eq!(find_number(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn numbers_are_unique() {
        let mut numbers = Numbers::new();
        let (first, second) = (numbers.take(3), numbers.take(2));
        assert_eq!((first.end - first.start, second.start, second.end), (3, first.end, first.end + 2));
        assert_eq!(first.start.to_string().len(), NUMBER_DIGITS, "it fits into a subject");
    }
}
