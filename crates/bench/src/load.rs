//! SMTP load: many connections that send prepared messages as fast as the server accepts them, and the `smtp` command
//! that measures it. Other commands use [`Load`] to fill mailboxes.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use tokio::task::JoinSet;

use crate::Verdict;
use crate::error::Error;
use crate::measure::{Results, Sample, mib, ratio, to_f64};
use crate::message::{self, END_OF_DATA, Envelope, MessageKind};
use crate::report::{Report, Row};
use crate::smtp::{Client, CommandMode, resolve};

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
        let load = Arc::new(Load {
            addresses: addresses.clone(),
            connections: options.connections,
            connection_per_message: options.one_per_message,
            mode: if options.pipelined { CommandMode::Pipelined } else { CommandMode::Sequential },
            envelopes: build_envelopes("bench", options.mailboxes, options.recipients),
            message: message::build_message(options.kind, "bench", size),
        });
        load.run(options.warmup).await;
        let before = options.pid.map(Sample::read).transpose()?;
        let outcome = load.run(options.messages).await;
        let after = options.pid.map(Sample::read).transpose()?;
        verdict = verdict.and(outcome.results.verdict());
        report.row(&row(size, outcome, before.zip(after)));
    }
    Ok(verdict)
}

/// A stream of equal messages over several connections.
pub(crate) struct Load {
    /// The addresses of the server.
    pub(crate) addresses: Vec<SocketAddr>,
    /// The number of concurrent connections.
    pub(crate) connections: usize,
    /// Whether each message gets its own connection.
    pub(crate) connection_per_message: bool,
    /// Whether commands are pipelined.
    pub(crate) mode: CommandMode,
    /// The transactions, used in turn.
    pub(crate) envelopes: Vec<Envelope>,
    /// The message with its end-of-data line.
    pub(crate) message: Vec<u8>,
}

/// The result of sending.
pub(crate) struct LoadResult {
    /// Successes and errors.
    pub(crate) results: Results,
    /// From the first command to the last reply.
    pub(crate) elapsed: Duration,
}

impl Load {
    /// Sends `count` messages, or fewer if the server cannot be reached.
    pub(crate) async fn run(self: &Arc<Self>, count: usize) -> LoadResult {
        let next = Arc::new(AtomicUsize::new(0));
        let start = Instant::now();
        let mut workers = JoinSet::new();
        for _ in 0..self.connections.min(count) {
            workers.spawn(Arc::clone(self).work(Arc::clone(&next), count));
        }
        LoadResult { results: Results::merge(workers.join_all().await), elapsed: start.elapsed() }
    }

    /// Runs one connection: sends the message with the next number until there are no more.
    async fn work(self: Arc<Self>, next: Arc<AtomicUsize>, count: usize) -> Results {
        // After this many consecutive errors the server is considered gone. Otherwise every remaining message would be
        // tried, too.
        const MAX_CONSECUTIVE_ERRORS: u32 = 10;
        let mut results = Results::default();
        let mut session = None;
        let mut consecutive_errors = 0;
        while consecutive_errors < MAX_CONSECUTIVE_ERRORS {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                break;
            }
            match self.deliver(number, &mut session).await {
                Ok(elapsed) => {
                    consecutive_errors = 0;
                    results.record_success(elapsed, self.message.len() - END_OF_DATA.len());
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
        results
    }

    async fn deliver(&self, number: usize, session: &mut Option<Client>) -> Result<Duration, Error> {
        let envelope = &self.envelopes[number % self.envelopes.len()];
        let connect_started = Instant::now();
        let client = match session {
            Some(client) => client,
            None => session.insert(Client::connect(&self.addresses).await?),
        };
        let send_started = Instant::now();
        client.send(envelope, &self.message, self.mode).await?;
        if !self.connection_per_message {
            return Ok(send_started.elapsed());
        }
        if let Some(client) = session.take() {
            client.quit().await?;
        }
        Ok(connect_started.elapsed())
    }
}

/// Returns the session after an error, if it can still be used.
pub(crate) async fn recover_session(session: Option<Client>, error: &Error) -> Option<Client> {
    let mut client = session?;
    match error {
        Error::Refused(_) => client.reset().await.is_ok().then_some(client),
        _ => None,
    }
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
    let LoadResult { results, elapsed } = outcome;
    let count = to_f64(results.latencies.len());
    let row = Row::default()
        .with("size", size)
        .with("messages", results.latencies.len())
        .with("errors", results.errors)
        .with_rounded("per_s", ratio(count, elapsed.as_secs_f64()), 0)
        .with_rounded("mib_per_s", ratio(mib(results.bytes), elapsed.as_secs_f64()), 1)
        .with_percentiles(results.latencies.percentiles());
    let Some((before, after)) = samples else {
        return row;
    };
    row.with_cpu(before, after, count).with_memory(before, after).with_rounded(
        "bytes_per_message",
        ratio(to_f64(after.resident) - to_f64(before.resident), count),
        0,
    )
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
