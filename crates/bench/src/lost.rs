//! The `lost` command: is every message that the server acknowledged really there, and there once? Each connection sends
//! numbered messages to a mailbox of its own; afterwards the lists are compared with what was acknowledged.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

use clap::Args;
use tokio::task::JoinSet;

use crate::Verdict;
use crate::error::Error;
use crate::load::{parse_positive, recover_session};
use crate::measure::Results;
use crate::message::{self, Envelope, MessageKind, mailbox_name};
use crate::report::{Report, Row};
use crate::rest::ListEntry;
use crate::servers::ServerOptions;
use crate::smtp::{Client, CommandMode};

const PREFIX: &str = "lost";

/// Options of the `lost` command.
#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    servers: ServerOptions,
    /// Connections that send at the same time, each to a mailbox of its own.
    #[arg(long, default_value_t = 50, value_parser = parse_positive)]
    connections: usize,
    /// Messages over each connection; the server must not cap its mailboxes below that.
    #[arg(long, default_value_t = 200, value_parser = parse_positive)]
    messages: usize,
    /// Size of each in bytes with its header.
    #[arg(long, default_value_t = 1024)]
    size: usize,
    /// Seconds that the server gets to store what it acknowledged.
    #[arg(long, default_value_t = 1)]
    settle: u64,
    /// Print one JSON object per line.
    #[arg(long)]
    json: bool,
}

/// Runs the `lost` command.
pub(crate) async fn run(options: &Options) -> Result<Verdict, Error> {
    let addresses = options.servers.smtp_addresses().await?;
    let mailboxes = options.servers.mailbox_api().await?;
    let mut client = mailboxes.client();
    for n in 0..options.connections {
        mailboxes.purge(&mut client, &mailbox_name(PREFIX, n)).await?;
    }

    let mut senders = JoinSet::new();
    for n in 0..options.connections {
        senders.spawn(send_messages(addresses.clone(), mailbox_name(PREFIX, n), options.messages, options.size));
    }
    let sent = senders.join_all().await;
    tokio::time::sleep(Duration::from_secs(options.settle)).await;

    // The server may have closed a connection that was idle for so long.
    let mut client = mailboxes.client();
    let mut total = Comparison::default();
    for SentMessages { mailbox, acknowledged, .. } in &sent {
        let stored = mailboxes.list(&mut client, mailbox).await?;
        total = total.plus(&compare(acknowledged, &stored));
    }
    let tally = Results::merge(sent.into_iter().map(|sent| sent.results));
    let row = Row::default()
        .with("sent", options.connections * options.messages)
        .with("acknowledged", total.acknowledged)
        .with("errors", tally.errors)
        .with("stored", total.stored)
        .with("lost", total.lost)
        .with("doubled", total.doubled);
    Report::new(options.json).row(&row);
    // Refusing mail is honest, so it is shown and not judged; but a server that took nothing has proved nothing.
    let _ = tally.verdict();
    let clean = total.acknowledged > 0 && total.lost == 0 && total.doubled == 0;
    Ok(if clean { Verdict::Clean } else { Verdict::Faulty })
}

/// What one connection got acknowledged.
struct SentMessages {
    mailbox: String,
    /// The subjects.
    acknowledged: Vec<String>,
    /// What went wrong; successes are not counted in it.
    results: Results,
}

async fn send_messages(addresses: Vec<SocketAddr>, mailbox: String, messages: usize, size: usize) -> SentMessages {
    let envelope = Envelope::to([mailbox.as_str()]);
    let mut acknowledged = Vec::with_capacity(messages);
    let mut tally = Results::default();
    let mut session = None;
    for number in 0..messages {
        let subject = format!("{mailbox}-{number}");
        let message = message::build_message(MessageKind::Text, &subject, size);
        match deliver(&addresses, &mut session, &envelope, &message).await {
            Ok(()) => acknowledged.push(subject),
            Err(error) => {
                tally.record_error(&error);
                if matches!(error, Error::Timeout) {
                    break;
                }
                session = recover_session(session, &error).await;
            }
        }
    }
    if let Some(client) = session {
        // Every message has been answered for; how the server says goodbye changes nothing.
        let _ = client.quit().await;
    }
    SentMessages { mailbox, acknowledged, results: tally }
}

async fn deliver(
    addresses: &[SocketAddr],
    session: &mut Option<Client>,
    envelope: &Envelope,
    message: &[u8],
) -> Result<(), Error> {
    let client = match session {
        Some(client) => client,
        None => session.insert(Client::connect(addresses).await?),
    };
    client.send(envelope, message, CommandMode::Pipelined).await
}

/// What was found in one or more mailboxes.
#[derive(Debug, Default, PartialEq, Eq)]
struct Comparison {
    acknowledged: usize,
    stored: usize,
    lost: usize,
    doubled: usize,
}

impl Comparison {
    fn plus(&self, other: &Self) -> Self {
        Self {
            acknowledged: self.acknowledged + other.acknowledged,
            stored: self.stored + other.stored,
            lost: self.lost + other.lost,
            doubled: self.doubled + other.doubled,
        }
    }
}

/// A message that was stored although its acknowledgement never arrived is no fault; storing any message twice is.
fn compare(acknowledged: &[String], stored: &[ListEntry]) -> Comparison {
    let mut copies: HashMap<&str, usize> = HashMap::new();
    for entry in stored {
        *copies.entry(&entry.subject).or_default() += 1;
    }
    Comparison {
        acknowledged: acknowledged.len(),
        stored: stored.len(),
        lost: acknowledged.iter().filter(|subject| !copies.contains_key(subject.as_str())).count(),
        doubled: copies.values().filter(|&&copies| copies > 1).count(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_compared_with_acknowledgements() {
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
            let count = compare(&acknowledged, &entries);
            assert_eq!((count.lost, count.doubled), expected, "{acknowledged:?} {stored:?}");
        }
    }
}
