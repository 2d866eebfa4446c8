//! The `lost` command: whether every acknowledged message is stored exactly once. Each connection sends numbered
//! messages to its own mailbox. Then the lists are compared with the acknowledgements.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

use clap::Args;
use tokio::task::JoinSet;

use crate::Verdict;
use crate::error::Error;
use crate::load::parse_positive;
use crate::measure::Results;
use crate::message::{self, Envelope, MessageKind, mailbox_name};
use crate::report::{Report, Row};
use crate::rest::{self, ListEntry};
use crate::servers::ServerOptions;
use crate::smtp::{CommandMode, Sender};

const PREFIX: &str = "lost";

/// Options of the `lost` command.
#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    servers: ServerOptions,
    /// Concurrent connections, each with its own mailbox.
    #[arg(long, default_value_t = 50, value_parser = parse_positive)]
    connections: usize,
    /// Messages over each connection; the message cap of the server must not be lower.
    #[arg(long, default_value_t = 200, value_parser = parse_positive)]
    messages: usize,
    /// Size of each message in bytes with its header.
    #[arg(long, default_value_t = 1024)]
    size: usize,
    /// Seconds to wait before the mailboxes are listed.
    #[arg(long, default_value_t = 1)]
    settle: u64,
}

/// Runs the `lost` command.
pub(crate) async fn run(options: &Options, json: bool) -> Result<Verdict, Error> {
    let addresses = options.servers.smtp_addresses().await?;
    let mut client = options.servers.http_client().await?;
    for n in 0..options.connections {
        rest::purge(&mut client, &mailbox_name(PREFIX, n)).await?;
    }

    let mut senders = JoinSet::new();
    for n in 0..options.connections {
        senders.spawn(send_messages(addresses.clone(), mailbox_name(PREFIX, n), options.messages, options.size));
    }
    let sent = senders.join_all().await;
    tokio::time::sleep(Duration::from_secs(options.settle)).await;

    client.disconnect();
    let mut total = Comparison::default();
    for SentMessages { mailbox, acknowledged, .. } in &sent {
        total.add(acknowledged, &rest::list(&mut client, mailbox).await?);
    }
    let results = Results::merge(sent.into_iter().map(|sent| sent.results));
    let row = Row::default()
        .with("sent", options.connections * options.messages)
        .with("acknowledged", total.acknowledged)
        .with("errors", results.errors)
        .with("stored", total.stored)
        .with("lost", total.lost)
        .with("doubled", total.doubled);
    Report::new(json).row(&row);
    // This prints the errors. They do not make the server faulty. But if it accepted nothing, nothing was verified.
    let _ = results.verdict();
    let is_clean = total.acknowledged > 0 && total.lost == 0 && total.doubled == 0;
    Ok(if is_clean { Verdict::Clean } else { Verdict::Faulty })
}

/// What one connection has sent.
struct SentMessages {
    mailbox: String,
    /// The subjects of acknowledged messages.
    acknowledged: Vec<String>,
    /// Errors only; successes are not counted here.
    results: Results,
}

async fn send_messages(addresses: Vec<SocketAddr>, mailbox: String, messages: usize, size: usize) -> SentMessages {
    let envelope = Envelope::to([mailbox.as_str()]);
    let mut acknowledged = Vec::with_capacity(messages);
    let mut results = Results::default();
    let mut sender = Sender::new(&addresses);
    for number in 0..messages {
        let subject = format!("{mailbox}-{number}");
        let message = message::build_message(MessageKind::Text, &subject, size);
        match sender.send(&envelope, &message, CommandMode::Pipelined).await {
            Ok(()) => acknowledged.push(subject),
            Err(error) => {
                results.record_error(&error);
                if matches!(error, Error::Timeout) {
                    break;
                }
            }
        }
    }
    // Every message has been acknowledged or counted as an error. The reply to QUIT changes nothing.
    let _ = sender.quit().await;
    SentMessages { mailbox, acknowledged, results }
}

/// The result of comparing one or more mailboxes.
#[derive(Debug, Default, PartialEq, Eq)]
struct Comparison {
    acknowledged: usize,
    stored: usize,
    lost: usize,
    doubled: usize,
}

impl Comparison {
    /// Compares a list with the acknowledgements. A message that is stored without an acknowledgement is not an error; a
    /// message that is stored twice is.
    fn add(&mut self, acknowledged: &[String], stored: &[ListEntry]) {
        let mut copies: HashMap<&str, usize> = HashMap::new();
        for entry in stored {
            *copies.entry(&entry.subject).or_default() += 1;
        }
        self.acknowledged += acknowledged.len();
        self.stored += stored.len();
        self.lost += acknowledged.iter().filter(|subject| !copies.contains_key(subject.as_str())).count();
        self.doubled += copies.values().filter(|&&copies| copies > 1).count();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_lost_and_repeated_messages() {
        let cases = [
            ("a b c", "a b c", (0, 0)),
            ("a b c", "a c", (1, 0)),
            ("a b c", "", (3, 0)),
            ("a b", "a b unacknowledged", (0, 0)),
            ("a b", "a a a b", (0, 1)),
            ("a b", "a a", (1, 1)),
        ];
        for (acknowledged, stored, expected) in cases {
            let acknowledged: Vec<String> = acknowledged.split_whitespace().map(str::to_owned).collect();
            let entry = |subject: &str| ListEntry { id: String::new(), subject: subject.to_owned() };
            let entries: Vec<_> = stored.split_whitespace().map(entry).collect();
            let mut count = Comparison::default();
            count.add(&acknowledged, &entries);
            assert_eq!((count.lost, count.doubled), expected, "{acknowledged:?} {stored:?}");
        }
    }
}
