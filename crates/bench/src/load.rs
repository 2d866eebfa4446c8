//! Load over SMTP: many connections that send prepared messages as fast as the server takes them, and the `smtp` command
//! that measures it. Other measurements use [`Load`] to fill mailboxes.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use tokio::task::JoinSet;

use crate::Verdict;
use crate::error::Error;
use crate::measure::{Sample, Tally, mib, ratio, real};
use crate::message::{self, END_OF_DATA, Envelope, Kind};
use crate::report::{Report, Row};
use crate::smtp::{Client, Pace, resolve};

/// Options of the `smtp` command.
#[derive(Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct Options {
    /// The SMTP server.
    #[arg(long, value_name = "HOST:PORT")]
    smtp: String,
    /// Connections that send at the same time.
    #[arg(long, default_value_t = 10, value_parser = at_least_one)]
    connections: usize,
    /// Messages to send for each size.
    #[arg(long, default_value_t = 20_000)]
    messages: usize,
    /// Sizes of a message in bytes with its header, measured one after the other.
    #[arg(long, value_delimiter = ',', default_value = "1024")]
    size: Vec<usize>,
    /// Shape of the messages.
    #[arg(long, value_enum, default_value = "text")]
    kind: Kind,
    /// Send many messages over each connection (the default).
    #[arg(long, conflicts_with = "one_per_message")]
    reuse: bool,
    /// Open a connection for each message; the latency is that of the whole session.
    #[arg(long)]
    one_per_message: bool,
    /// Send MAIL, RCPT and DATA without waiting in between.
    #[arg(long)]
    pipelined: bool,
    /// Mailboxes that receive in turn.
    #[arg(long, default_value_t = 1, value_parser = at_least_one)]
    mailboxes: usize,
    /// Recipients of each message.
    #[arg(long, default_value_t = 1, value_parser = at_least_one)]
    recipients: usize,
    /// The server's process, to measure its CPU time and memory.
    #[arg(long)]
    pid: Option<u32>,
    /// Messages to send before measuring begins.
    #[arg(long, default_value_t = 0)]
    warmup: usize,
    /// Print one JSON object per line.
    #[arg(long)]
    json: bool,
}

/// Runs the `smtp` command.
pub(crate) async fn run(options: &Options) -> Result<Verdict, Error> {
    let addresses = resolve(&options.smtp).await?;
    let mut report = Report::new(options.json);
    let mut verdict = Verdict::Clean;
    for &size in &options.size {
        let load = Arc::new(Load {
            addresses: addresses.clone(),
            connections: options.connections,
            per_message: options.one_per_message,
            pace: if options.pipelined { Pace::Pipelined } else { Pace::InTurn },
            envelopes: envelopes("bench", options.mailboxes, options.recipients),
            message: message::build(options.kind, "bench", size),
        });
        load.run(options.warmup).await;
        let before = options.pid.map(Sample::of).transpose()?;
        let outcome = load.run(options.messages).await;
        let after = options.pid.map(Sample::of).transpose()?;
        verdict = verdict.and(outcome.tally.verdict());
        report.row(&row(size, outcome, before.zip(after)));
    }
    Ok(verdict)
}

/// A stream of equal messages over several connections.
pub(crate) struct Load {
    /// Where the server is.
    pub(crate) addresses: Vec<SocketAddr>,
    /// How many connections send at the same time.
    pub(crate) connections: usize,
    /// Whether each message gets a connection of its own.
    pub(crate) per_message: bool,
    /// Whether commands wait for each other.
    pub(crate) pace: Pace,
    /// The transactions, used in turn.
    pub(crate) envelopes: Vec<Envelope>,
    /// The message with its end-of-data line.
    pub(crate) message: Vec<u8>,
}

/// What came of sending.
pub(crate) struct Outcome {
    /// Successes and failures.
    pub(crate) tally: Tally,
    /// From the first command to the last reply.
    pub(crate) elapsed: Duration,
}

impl Load {
    /// Sends `count` messages, or fewer when the server cannot be talked to.
    pub(crate) async fn run(self: &Arc<Self>, count: usize) -> Outcome {
        let next = Arc::new(AtomicUsize::new(0));
        let start = Instant::now();
        let mut workers = JoinSet::new();
        for _ in 0..self.connections.min(count) {
            workers.spawn(Arc::clone(self).work(Arc::clone(&next), count));
        }
        Outcome { tally: Tally::of(workers.join_all().await), elapsed: start.elapsed() }
    }

    /// One worker: takes the next number and sends that message until there are no more.
    async fn work(self: Arc<Self>, next: Arc<AtomicUsize>, count: usize) -> Tally {
        // A server that is gone or mute would otherwise be asked in vain for every single message.
        const MAX_BROKEN_IN_A_ROW: u32 = 10;
        let mut tally = Tally::default();
        let mut session = None;
        let mut broken = 0;
        while broken < MAX_BROKEN_IN_A_ROW {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                break;
            }
            match self.deliver(number, &mut session).await {
                Ok(elapsed) => {
                    broken = 0;
                    tally.success(elapsed, self.message.len() - END_OF_DATA.len());
                }
                Err(error) => {
                    tally.failure(&error);
                    broken = if matches!(error, Error::Refused(_)) { 0 } else { broken + 1 };
                    session = recovered(session, &error).await;
                }
            }
        }
        if let Some(client) = session {
            // Every message has been answered for; how the server says goodbye changes nothing.
            let _ = client.quit().await;
        }
        tally
    }

    async fn deliver(&self, number: usize, session: &mut Option<Client>) -> Result<Duration, Error> {
        let envelope = &self.envelopes[number % self.envelopes.len()];
        let connecting = Instant::now();
        let client = match session {
            Some(client) => client,
            None => session.insert(Client::connect(&self.addresses).await?),
        };
        let sending = Instant::now();
        client.send(envelope, &self.message, self.pace).await?;
        if !self.per_message {
            return Ok(sending.elapsed());
        }
        if let Some(client) = session.take() {
            client.quit().await?;
        }
        Ok(connecting.elapsed())
    }
}

/// The session after an error, if it can still be used.
pub(crate) async fn recovered(session: Option<Client>, error: &Error) -> Option<Client> {
    let mut client = session?;
    match error {
        Error::Refused(_) => client.reset().await.is_ok().then_some(client),
        _ => None,
    }
}

/// Transactions to `recipients` mailboxes each, such that all `mailboxes` get the same number of messages in turn.
pub(crate) fn envelopes(prefix: &str, mailboxes: usize, recipients: usize) -> Vec<Envelope> {
    let names: Vec<_> = (0..mailboxes.max(recipients)).map(|n| message::mailbox_name(prefix, n)).collect();
    let transaction = |first: usize| names.iter().cycle().skip(first).take(recipients).map(String::as_str);
    (0..names.len()).map(|first| Envelope::to(transaction(first))).collect()
}

/// A number of things of which there has to be one.
pub(crate) fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("must be at least 1".to_owned()),
        Ok(number) => Ok(number),
        Err(error) => Err(format!("{error}")),
    }
}

fn row(size: usize, outcome: Outcome, samples: Option<(Sample, Sample)>) -> Row {
    let Outcome { tally, elapsed } = outcome;
    let sent = real(tally.latencies.len());
    let row = Row::default()
        .with("size", size)
        .with("messages", tally.latencies.len())
        .with("errors", tally.errors)
        .with_rounded("per_s", ratio(sent, elapsed.as_secs_f64()), 0)
        .with_rounded("mib_per_s", ratio(mib(tally.bytes), elapsed.as_secs_f64()), 1)
        .with_percentiles(tally.latencies.percentiles());
    let Some((before, after)) = samples else {
        return row;
    };
    row.with_cpu(before, after, sent).with_memory(before, after).with_rounded(
        "bytes_per_message",
        ratio(real(after.resident) - real(before.resident), sent),
        0,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mailboxes_take_turns() {
        let lines = |envelope: &Envelope| String::from_utf8_lossy(envelope.as_bytes()).into_owned();
        let made = envelopes("m", 3, 2);
        assert_eq!(made.len(), 3);
        assert!(lines(&made[2]).contains("<m-2@bench.example>\r\nRCPT TO:<m-0@bench.example>"));
        assert_eq!(envelopes("m", 1, 4).len(), 4, "a message to four needs four mailboxes");
    }

    #[test]
    fn a_number_of_things_is_at_least_one() {
        assert_eq!(at_least_one("3"), Ok(3));
        assert!(at_least_one("0").is_err() && at_least_one("-1").is_err());
    }
}
