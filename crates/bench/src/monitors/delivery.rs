//! The messages that monitors receive: equal messages except for a number in the subject, which identifies the message of an
//! event.

use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use std::time::SystemTime;

use clap::Args;
use memchr::memmem;

use crate::load::{Load, Messages, parse_positive};
use crate::message::{self, Envelope, MessageKind};

/// The text before the number in a subject.
const SUBJECT_PREFIX: &str = "monitored-message-";
/// Digits of the number, enough for the microseconds since 1970.
const NUMBER_DIGITS: usize = 16;

/// Allocates message numbers that were not used before.
pub(super) struct Numbers(usize);

impl Numbers {
    /// Starts with the current time in microseconds, because the server may send events about messages of an earlier
    /// run.
    pub(super) fn new() -> Self {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self(usize::try_from(now.as_micros()).unwrap_or(0))
    }

    /// Returns the next `count` numbers.
    pub(super) fn take(&mut self, count: usize) -> Range<usize> {
        let first = self.0;
        self.0 += count;
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

impl DeliveryOptions {
    /// Creates the load that sends the messages.
    pub(super) fn load(&self, addresses: Vec<SocketAddr>, connections: usize, envelopes: Vec<Envelope>) -> Arc<Load> {
        let message = NumberedMessage::new(self.size);
        Arc::new(Load {
            connections,
            rate: self.rate,
            messages: Messages::Generated(Box::new(move |number| message.with_number(number))),
            ..Load::new(addresses, envelopes, Vec::new())
        })
    }
}

/// Finds the message number in the text of an event.
pub(super) fn find_number(text: &[u8]) -> Option<usize> {
    let digits = memmem::find(text, SUBJECT_PREFIX.as_bytes())? + SUBJECT_PREFIX.len();
    str::from_utf8(text.get(digits..digits + NUMBER_DIGITS)?).ok()?.parse().ok()
}

/// A message that is sent with different numbers.
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

    fn with_number(&self, number: usize) -> Vec<u8> {
        let digits = format!("{number:0NUMBER_DIGITS$}");
        let mut bytes = self.bytes.clone();
        for &offset in &self.offsets {
            bytes[offset..offset + NUMBER_DIGITS].copy_from_slice(&digits.as_bytes()[..NUMBER_DIGITS]);
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_number_of_a_message() {
        let message = NumberedMessage::new(1024);
        for number in [0, 7, 1_794_699_770_123_456] {
            let bytes = message.with_number(number);
            assert_eq!(find_number(&bytes), Some(number));
            assert_eq!(bytes.len(), message.bytes.len());
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
