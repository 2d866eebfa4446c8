//! SMTP load: many connections that send messages as fast as the server accepts them, or at a fixed rate, and the `smtp`
//! command that measures it. Other commands use [`Load`] to fill mailboxes.

use std::borrow::Cow;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use parking_lot::Mutex;
use tokio::task::JoinSet;
use tokio::time::sleep_until;

use crate::Verdict;
use crate::connection::resolve;
use crate::error::Error;
use crate::measure::{Results, Sample, ratio, to_f64};
use crate::message::{self, END_OF_DATA, Envelope, MessageKind};
use crate::report::{Report, Row};
use crate::smtp::{CommandMode, Sender};

/// Options of the `smtp` command.
#[derive(Args)]
pub(crate) struct Options {
    /// The SMTP server.
    #[arg(long, value_name = "HOST:PORT")]
    smtp: String,
    /// Concurrent connections.
    #[arg(long, default_value_t = 10, value_parser = parse_positive)]
    connections: usize,
    /// Messages to send for each size.
    #[arg(long, default_value_t = 20_000)]
    messages: usize,
    /// Sizes of a message in bytes with its header, measured one after the other.
    #[arg(long, value_delimiter = ',', default_value = "1024")]
    size: Vec<usize>,
    /// Shape of the messages.
    #[arg(long, value_enum, default_value = "text")]
    kind: MessageKind,
    /// Open a connection for each message; the latency is that of the whole session.
    #[arg(long)]
    one_per_message: bool,
    /// Send MAIL, RCPT and DATA without waiting for replies in between.
    #[arg(long)]
    pipelined: bool,
    /// Mailboxes that receive in turn.
    #[arg(long, default_value_t = 1, value_parser = parse_positive)]
    mailboxes: usize,
    /// Recipients of each message.
    #[arg(long, default_value_t = 1, value_parser = parse_positive)]
    recipients: usize,
    /// The server's process, to measure its CPU time and memory.
    #[arg(long)]
    pid: Option<u32>,
    /// Messages to send before measuring.
    #[arg(long, default_value_t = 0)]
    warmup: usize,
}

/// Runs the `smtp` command.
pub(crate) async fn run(options: &Options, json: bool) -> Result<Verdict, Error> {
    let addresses = resolve(&options.smtp).await?;
    let mut report = Report::new(json);
    let mut verdict = Verdict::Clean;
    for &size in &options.size {
        let envelopes = build_envelopes("bench", options.mailboxes, options.recipients);
        let message = message::build_message(options.kind, "bench", size);
        let load = Arc::new(Load {
            connections: options.connections,
            connection_per_message: options.one_per_message,
            mode: if options.pipelined { CommandMode::Pipelined } else { CommandMode::Sequential },
            ..Load::new(addresses.clone(), envelopes, message)
        });
        load.run(0..options.warmup).await;
        let before = options.pid.map(Sample::read).transpose()?;
        let outcome = load.run(0..options.messages).await;
        let after = options.pid.map(Sample::read).transpose()?;
        verdict = verdict.and(outcome.results.verdict());
        report.row(&row(size, outcome, before.zip(after)));
    }
    Ok(verdict)
}

/// A stream of messages over several connections.
pub(crate) struct Load {
    /// The addresses of the server.
    pub(crate) addresses: Vec<SocketAddr>,
    /// The number of concurrent connections.
    pub(crate) connections: usize,
    /// Whether each message gets its own connection.
    pub(crate) connection_per_message: bool,
    /// Whether commands are pipelined.
    pub(crate) mode: CommandMode,
    /// Messages per second; `None` for as fast as the server accepts them.
    pub(crate) rate: Option<u32>,
    /// The transactions. The number of a message selects one.
    pub(crate) envelopes: Vec<Envelope>,
    /// The messages.
    pub(crate) messages: Messages,
}

/// The messages of a [`Load`], with their end-of-data lines.
pub(crate) enum Messages {
    /// All are equal.
    Equal(Vec<u8>),
    /// Each is generated from its number.
    Generated(Box<dyn Fn(usize) -> Vec<u8> + Send + Sync>),
}

/// The result of sending.
pub(crate) struct LoadResult {
    /// Successes and errors.
    pub(crate) results: Results,
    /// From the first command to the last reply.
    pub(crate) elapsed: Duration,
    /// When each message was acknowledged, by its offset from the first number.
    pub(crate) acknowledged: Vec<Option<Instant>>,
}

/// What the connections of one run share.
struct Run {
    numbers: Range<usize>,
    next: AtomicUsize,
    start: Instant,
    acknowledged: Mutex<Vec<Option<Instant>>>,
}

impl Load {
    /// Creates a load of equal messages over ten connections, as fast as the server accepts them, with pipelined commands.
    pub(crate) fn new(addresses: Vec<SocketAddr>, envelopes: Vec<Envelope>, message: Vec<u8>) -> Self {
        Self {
            addresses,
            connections: 10,
            connection_per_message: false,
            mode: CommandMode::Pipelined,
            rate: None,
            envelopes,
            messages: Messages::Equal(message),
        }
    }

    /// Sends the messages with these numbers, or fewer if the server cannot be reached.
    pub(crate) async fn run(self: &Arc<Self>, numbers: Range<usize>) -> LoadResult {
        let run = Arc::new(Run {
            next: AtomicUsize::new(numbers.start),
            start: Instant::now(),
            acknowledged: Mutex::new(vec![None; numbers.len()]),
            numbers,
        });
        let mut workers = JoinSet::new();
        for _ in 0..self.connections.min(run.numbers.len()) {
            workers.spawn(Arc::clone(self).work(Arc::clone(&run)));
        }
        let results = Results::merge(workers.join_all().await);
        let elapsed = run.start.elapsed();
        LoadResult { results, elapsed, acknowledged: std::mem::take(&mut run.acknowledged.lock()) }
    }

    /// Sends the messages with these numbers. Fails if one of them was not accepted.
    pub(crate) async fn send_all(self: &Arc<Self>, numbers: Range<usize>) -> Result<LoadResult, Error> {
        let outcome = self.run(numbers).await;
        match &outcome.results.first_error {
            Some(error) => Err(Error::Usage(format!("sending messages: {error}"))),
            None => Ok(outcome),
        }
    }

    /// Runs one connection: sends the message with the next number until there are no more.
    async fn work(self: Arc<Self>, run: Arc<Run>) -> Results {
        // After this many consecutive errors the server is considered gone. Otherwise every remaining message would be
        // tried, too.
        const MAX_CONSECUTIVE_ERRORS: u32 = 10;
        let mut results = Results::default();
        let mut sender = Sender::new(&self.addresses);
        let mut consecutive_errors = 0;
        while consecutive_errors < MAX_CONSECUTIVE_ERRORS {
            let number = run.next.fetch_add(1, Ordering::Relaxed);
            if number >= run.numbers.end {
                break;
            }
            match self.deliver(number, &run, &mut sender).await {
                Ok((elapsed, bytes)) => {
                    consecutive_errors = 0;
                    results.record_success(elapsed, bytes);
                }
                Err(error) => {
                    results.record_error(&error);
                    consecutive_errors = if matches!(error, Error::Refused(_)) { 0 } else { consecutive_errors + 1 };
                }
            }
        }
        // Every message has been acknowledged or counted as an error. The reply to QUIT changes nothing.
        let _ = sender.quit().await;
        results
    }

    /// Sends a message when it is due. Returns its latency and size.
    async fn deliver(&self, number: usize, run: &Run, sender: &mut Sender) -> Result<(Duration, usize), Error> {
        let envelope = &self.envelopes[number % self.envelopes.len()];
        let message = match &self.messages {
            Messages::Equal(message) => Cow::Borrowed(message),
            Messages::Generated(generate) => Cow::Owned(generate(number)),
        };
        let offset = number - run.numbers.start;
        let interval = |rate| Duration::from_secs(1).mul_f64(to_f64(offset) / f64::from(rate));
        let late_since = match self.rate {
            Some(rate) => wait_until_due(run.start + interval(rate)).await,
            None => None,
        };
        let connect_started = Instant::now();
        sender.open().await?;
        let send_started = Instant::now();
        sender.send(envelope, &message, self.mode).await?;
        let acknowledged_at = Instant::now();
        run.acknowledged.lock()[offset] = Some(acknowledged_at);
        let mut elapsed = acknowledged_at - late_since.unwrap_or(send_started);
        if self.connection_per_message {
            sender.quit().await?;
            elapsed = connect_started.elapsed();
        }
        Ok((elapsed, message.len() - END_OF_DATA.len()))
    }
}

/// Waits until a message is due. If it is too late because earlier messages took too long, returns that time: the latency of
/// the message counts from it. Otherwise the latency counts from the moment at which the message is sent: the timer has a
/// resolution of milliseconds, which is not the server's fault.
pub(crate) async fn wait_until_due(due: Instant) -> Option<Instant> {
    if Instant::now() > due {
        return Some(due);
    }
    sleep_until(due.into()).await;
    None
}

/// Sends equal messages over an SMTP server, in turn to the recipients of the envelopes. Any server accepts this: commands
/// are not pipelined.
pub(crate) async fn fill(smtp: &str, envelopes: Vec<Envelope>, messages: usize, message: Vec<u8>) -> Result<(), Error> {
    let load = Load { mode: CommandMode::Sequential, ..Load::new(resolve(smtp).await?, envelopes, message) };
    Arc::new(load).send_all(0..messages).await.map(|_| ())
}

/// Builds transactions to `recipients` mailboxes each, so that all mailboxes get the same number of messages in turn.
pub(crate) fn build_envelopes(prefix: &str, mailboxes: usize, recipients: usize) -> Vec<Envelope> {
    let names: Vec<_> = (0..mailboxes.max(recipients)).map(|n| message::mailbox_name(prefix, n)).collect();
    let transaction = |first: usize| names.iter().cycle().skip(first).take(recipients).map(String::as_str);
    (0..names.len()).map(|first| Envelope::to(transaction(first))).collect()
}

/// Parses a number that must be at least 1.
pub(crate) fn parse_positive(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("must be at least 1".to_owned()),
        Ok(number) => Ok(number),
        Err(error) => Err(format!("{error}")),
    }
}

fn row(size: usize, outcome: LoadResult, samples: Option<(Sample, Sample)>) -> Row {
    let LoadResult { results, elapsed, .. } = outcome;
    let count = to_f64(results.latencies.len());
    let row = Row::default()
        .with("size", size)
        .with_rate("messages", &results, elapsed)
        .with_throughput(&results, elapsed)
        .with_percentiles(results.latencies.percentiles())
        .with_samples(samples, count);
    let Some((before, after)) = samples else {
        return row;
    };
    let grown = to_f64(after.resident) - to_f64(before.resident);
    row.with_rounded("bytes_per_message", ratio(grown, count), 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mailboxes_take_turns() {
        let lines = |envelope: &Envelope| String::from_utf8_lossy(envelope.as_bytes()).into_owned();
        let envelopes = build_envelopes("m", 3, 2);
        assert_eq!(envelopes.len(), 3);
        assert!(lines(&envelopes[2]).contains("<m-2@bench.example>\r\nRCPT TO:<m-0@bench.example>"));
        assert_eq!(build_envelopes("m", 1, 4).len(), 4, "a message to four needs four mailboxes");
    }

    #[test]
    fn parse_positive_rejects_zero() {
        assert_eq!(parse_positive("3"), Ok(3));
        assert!(parse_positive("0").is_err() && parse_positive("-1").is_err());
    }
}
