//! The `relay` command: delivery to a server that forwards all messages, compared with one that does not, and how fast
//! the queue is sent. Both servers are measured in turn, so that they see the same state of the machine.

use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;

use crate::Verdict;
use crate::connection::resolve;
use crate::error::Error;
use crate::http::{BaseUrl, Client};
use crate::load::{Load, build_envelopes, parse_positive};
use crate::measure::{median, ratio, to_f64};
use crate::message::{self, MessageKind};
use crate::report::{Report, Row};
use crate::smtp::CommandMode;

/// The counter of messages that were sent.
const DELIVERED: &str = "restante_relay_attempts_total{";
const DELIVERED_RESULT: &str = "result=\"delivered\"";
/// How often the counter is read while the queue is sent.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Options of the `relay` command.
#[derive(Args)]
pub(crate) struct Options {
    /// The SMTP server that forwards all messages.
    #[arg(long, value_name = "HOST:PORT")]
    smtp: String,
    /// Its web server, whose metrics count the messages that were sent.
    #[arg(long, value_name = "URL")]
    http: String,
    /// An SMTP server with the same settings that does not forward.
    #[arg(long, value_name = "HOST:PORT")]
    reference: String,
    /// Concurrent connections.
    #[arg(long, default_value_t = 10, value_parser = parse_positive)]
    connections: usize,
    /// Messages to send to each server in each round.
    #[arg(long, default_value_t = 10_000, value_parser = parse_positive)]
    messages: usize,
    /// Size of each message in bytes with its header.
    #[arg(long, default_value_t = 1024)]
    size: usize,
    /// Rounds.
    #[arg(long, default_value_t = 5, value_parser = parse_positive)]
    rounds: usize,
    /// The longest time in seconds that a round waits for the queue.
    #[arg(long, default_value_t = 300)]
    timeout: u64,
}

/// Runs the `relay` command.
pub(crate) async fn run(options: &Options, json: bool) -> Result<Verdict, Error> {
    let (reference, forwarding) = (options.load(&options.reference).await?, options.load(&options.smtp).await?);
    let mut client = Client::new(&BaseUrl::parse(&options.http).await?);
    let mut report = Report::new(json);
    let (mut verdict, mut ratios, mut rates) = (Verdict::Clean, Vec::new(), Vec::new());
    for round in 1..=options.rounds {
        let sent_before = read_delivered(&mut client).await?;
        let without = reference.run(0..options.messages).await;
        let with = forwarding.run(0..options.messages).await;
        verdict = verdict.and(without.results.verdict()).and(with.results.verdict());
        let accepted = to_f64(with.results.latencies.len());
        let sent_during_load = read_delivered(&mut client).await? - sent_before;
        let drain_started = Instant::now();
        let is_complete = wait_for_queue(options, &mut client, sent_before + accepted).await?;
        let drain_seconds = drain_started.elapsed().as_secs_f64();
        let rate = |elapsed: Duration, count: f64| ratio(count, elapsed.as_secs_f64());
        let rate_without = rate(without.elapsed, to_f64(without.results.latencies.len()));
        let rate_with = rate(with.elapsed, accepted);
        let queue_rate = ratio(accepted - sent_during_load, drain_seconds);
        ratios.push(ratio(rate_with, rate_without));
        rates.push(queue_rate);
        if !is_complete {
            verdict = Verdict::Faulty;
        }
        report.row(
            &Row::default()
                .with("round", round)
                .with("messages", options.messages)
                .with_rounded("per_s_without", rate_without, 0)
                .with_rounded("per_s_with", rate_with, 0)
                .with_rounded("ratio", ratio(rate_with, rate_without), 3)
                .with_rounded("sent_during_load", sent_during_load, 0)
                .with_rounded("queue_per_s", queue_rate, 0)
                .with("complete", is_complete),
        );
    }
    report.row(
        &Row::default().with("round", "median").with_rounded("ratio", median(ratios.into_iter()), 3).with_rounded(
            "queue_per_s",
            median(rates.into_iter()),
            0,
        ),
    );
    Ok(verdict)
}

impl Options {
    async fn load(&self, smtp: &str) -> Result<Arc<Load>, Error> {
        let message = message::build_message(MessageKind::Text, "bench", self.size);
        Ok(Arc::new(Load {
            connections: self.connections,
            mode: CommandMode::Sequential,
            ..Load::new(resolve(smtp).await?, build_envelopes("bench", 100, 1), message)
        }))
    }
}

/// Waits until this number of messages was sent. Returns false if it takes too long.
async fn wait_for_queue(options: &Options, client: &mut Client, expected: f64) -> Result<bool, Error> {
    let deadline = Instant::now() + Duration::from_secs(options.timeout);
    while Instant::now() < deadline {
        if read_delivered(client).await? >= expected {
            return Ok(true);
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    Ok(false)
}

/// Reads how many messages the server has sent since its start.
async fn read_delivered(client: &mut Client) -> Result<f64, Error> {
    let text = String::from_utf8_lossy(client.request("GET", "/metrics").await?);
    let lines = text.lines().filter(|line| line.starts_with(DELIVERED) && line.contains(DELIVERED_RESULT));
    let value = |line: &str| line.rsplit(' ').next().and_then(|value| value.parse::<f64>().ok());
    let values: Vec<f64> = lines.filter_map(value).collect();
    if values.is_empty() {
        return Err(Error::Protocol("the metrics have no counter of relayed messages: the relay is not configured"));
    }
    Ok(values.iter().sum())
}
