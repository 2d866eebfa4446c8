//! The `expiry` command: whether expiring messages slow down delivery. The server must have a retention of about a
//! minute. It gets many messages at once; then the latency of a steady stream is measured until they have expired.

use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::Value;
use tokio::time::sleep;

use crate::Verdict;
use crate::error::Error;
use crate::http::Client;
use crate::load::{Load, build_envelopes, parse_positive};
use crate::measure::{Percentiles, Results};
use crate::message::{self, MessageKind, mailbox_name};
use crate::report::{Report, Row, rounded};
use crate::rest;
use crate::servers::ServerOptions;
use crate::steady_stream::{SentMessage, SteadyStream};

const PREFIX: &str = "expiry";
/// The interval at which the remaining messages are counted.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// The maximum number of mailboxes that are counted.
const MAX_WATCHED: usize = 4;

/// Options of the `expiry` command.
#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    servers: ServerOptions,
    /// Messages that will expire.
    #[arg(long, default_value_t = 100_000, value_parser = parse_positive)]
    messages: usize,
    /// Mailboxes over which the messages are distributed. The message cap of the server must be at least messages / mailboxes.
    #[arg(long, default_value_t = 1000, value_parser = parse_positive)]
    mailboxes: usize,
    /// Size of each message in bytes with its header.
    #[arg(long, default_value_t = 1024)]
    size: usize,
    /// Messages per second of the steady stream.
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..))]
    rate: u32,
    /// Connections of the steady stream.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    connections: u32,
    /// Seconds to wait before measuring, after the expiring messages were sent.
    #[arg(long, default_value_t = 2)]
    settle: u64,
    /// Seconds to continue after the last message has expired.
    #[arg(long, default_value_t = 5)]
    after: u64,
    /// Maximum seconds to wait until the messages have expired.
    #[arg(long, default_value_t = 300)]
    patience: u64,
}

/// Runs the `expiry` command.
pub(crate) async fn run(options: &Options, json: bool) -> Result<Verdict, Error> {
    let addresses = options.servers.smtp_addresses().await?;
    let mut watcher = ExpiryWatcher::new(options).await?;
    watcher.purge().await?;
    let envelopes = build_envelopes(PREFIX, options.mailboxes, 1);
    let message = message::build_message(MessageKind::Text, PREFIX, options.size);
    let load = Arc::new(Load { connections: 50, ..Load::new(addresses.clone(), envelopes, message) });
    let filled = load.run(0..options.messages).await.results.verdict();
    sleep(Duration::from_secs(options.settle)).await;

    let stream = SteadyStream::start(addresses, options.rate, options.connections, options.size);
    let intervals = watcher.watch_until_gone(options).await;
    let sent = stream.stop().await;
    Ok(filled.and(report(json, &intervals?, sent)))
}

/// A phase of the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// No message has expired yet.
    Before,
    /// Messages are expiring.
    During,
    /// All messages have expired.
    After,
}

impl Phase {
    /// Returns the phase of an interval in which the number of messages changed from `from` to `to`.
    fn from_counts(full: usize, from: usize, to: usize) -> Self {
        match (from, to) {
            (0, 0) => Self::After,
            (from, to) if from == full && to == full => Self::Before,
            _ => Self::During,
        }
    }
}

/// An interval in one phase.
struct Interval {
    end: Instant,
    length: Duration,
    phase: Phase,
}

/// Counts the messages in some of the mailboxes whose messages will expire.
struct ExpiryWatcher {
    client: Client,
    names: Vec<String>,
}

impl ExpiryWatcher {
    async fn new(options: &Options) -> Result<Self, Error> {
        let watched = options.mailboxes.min(MAX_WATCHED);
        let names = (0..watched).map(|n| mailbox_name(PREFIX, n * options.mailboxes / watched)).collect();
        Ok(Self { client: options.servers.http_client().await?, names })
    }

    async fn purge(&mut self) -> Result<(), Error> {
        for name in &self.names {
            rest::purge(&mut self.client, name).await?;
        }
        self.client.disconnect();
        Ok(())
    }

    async fn count(&mut self) -> Result<usize, Error> {
        let mut count = 0;
        for name in &self.names {
            count += rest::list(&mut self.client, name).await?.len();
        }
        Ok(count)
    }

    /// Counts the messages until all have been gone for `options.after` seconds. Returns the intervals between counts.
    async fn watch_until_gone(&mut self, options: &Options) -> Result<Vec<Interval>, Error> {
        let full = self.count().await?;
        let (mut last_time, mut last_count) = (Instant::now(), full);
        let deadline = last_time + Duration::from_secs(options.patience);
        let mut gone_at = None;
        let mut intervals = Vec::new();
        while gone_at.is_none_or(|gone: Instant| gone.elapsed() < Duration::from_secs(options.after)) {
            if Instant::now() > deadline {
                let message = format!(
                    "{last_count} of {full} messages have not expired: shorten the retention of the server, or raise --patience"
                );
                return Err(Error::Usage(message));
            }
            sleep(POLL_INTERVAL).await;
            let (now, count) = (Instant::now(), self.count().await?);
            intervals.push(Interval {
                end: now,
                length: now - last_time,
                phase: Phase::from_counts(full, last_count, count),
            });
            if count == 0 {
                gone_at.get_or_insert(now);
            }
            (last_time, last_count) = (now, count);
        }
        if !intervals.iter().any(|interval| interval.phase == Phase::Before) {
            return Err(Error::Usage(
                "messages expired before all were sent: the retention of the server must be longer".to_owned(),
            ));
        }
        Ok(intervals)
    }
}

/// Prints one row for each phase.
fn report(json: bool, intervals: &[Interval], sent: Vec<SentMessage>) -> Verdict {
    let mut report = Report::new(json);
    let mut verdict = Verdict::Clean;
    let mut baseline = None;
    let mut results_by_phase = results_by_phase(intervals, sent);
    for (phase, name) in [(Phase::Before, "before"), (Phase::During, "during"), (Phase::After, "after")] {
        let results = std::mem::take(&mut results_by_phase[phase as usize]);
        let lengths = intervals.iter().filter(|interval| interval.phase == phase).map(|interval| interval.length);
        let elapsed = lengths.sum::<Duration>();
        verdict = verdict.and(results.verdict());
        let row = Row::default()
            .with("phase", name)
            .with_rounded("seconds", elapsed.as_secs_f64(), 1)
            .with_rate("messages", &results, elapsed);
        let latency = results.latencies.percentiles();
        let baseline = baseline.get_or_insert(latency);
        report.row(&row.with_percentiles(latency).with("p99_ratio", p99_ratio(latency, *baseline)));
    }
    verdict
}

/// Groups the messages by the phase in which they were due. Messages outside of all intervals are left out.
fn results_by_phase(intervals: &[Interval], sent: Vec<SentMessage>) -> [Results; 3] {
    let mut results_by_phase = [Results::default(), Results::default(), Results::default()];
    for SentMessage { due, outcome } in sent {
        let Some(interval) = intervals.get(intervals.partition_point(|interval| interval.end <= due)) else { continue };
        results_by_phase[interval.phase as usize].record_sent(outcome);
    }
    results_by_phase
}

fn p99_ratio(latency: Percentiles, baseline: Percentiles) -> Value {
    if baseline.p99 == 0 { Value::Null } else { rounded(f64::from(latency.p99) / f64::from(baseline.p99), 2) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_follow_from_the_counts() {
        let table = [
            (9, 9, Phase::Before),
            (9, 8, Phase::During),
            (8, 8, Phase::During),
            (9, 0, Phase::During),
            (3, 0, Phase::During),
            (0, 0, Phase::After),
        ];
        for (from, to, expected) in table {
            assert_eq!(Phase::from_counts(9, from, to), expected, "{from} {to}");
        }
    }

    #[test]
    fn messages_count_in_the_phase_in_which_they_were_due() {
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        let interval = |end, phase| Interval { end: after(end), length: Duration::from_secs(1), phase };
        let intervals = [interval(1, Phase::Before), interval(2, Phase::During), interval(3, Phase::After)];
        let sent = [(0, true), (1, true), (1, false), (2, true), (9, true)].map(|(second, is_ok)| SentMessage {
            due: after(second),
            outcome: if is_ok { Ok(Duration::from_micros(5)) } else { Err(Arc::new(Error::Timeout)) },
        });
        let results_by_phase = results_by_phase(&intervals, sent.to_vec());
        let counts = results_by_phase.map(|results| (results.latencies.len(), results.errors));
        assert_eq!(counts, [(1, 0), (1, 1), (1, 0)]);
    }
}
