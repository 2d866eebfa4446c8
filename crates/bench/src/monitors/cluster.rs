//! The `cluster` command: messages are sent to one node, and monitors listen at other nodes. Measures the time from the
//! 250 to the event, and checks that each monitor receives every event once. Everything is in one process, so there is
//! one clock.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use tokio::time::sleep;

use super::Topic;
use super::delivery::{DeliveryOptions, Numbers};
use super::monitor::Protocol;
use super::monitor_group::{GroupOutcome, GroupSettings, MonitorGroup};
use super::tables::{Pass, check_outcome};
use crate::Verdict;
use crate::connection::resolve;
use crate::error::Error;
use crate::http::BaseUrl;
use crate::load::{Load, LoadResult, build_envelopes, parse_positive};
use crate::report::{Report, Row};

const PREFIX: &str = "cluster";
/// How long the monitors stay connected after they have received everything, in order to notice repeated events.
const DUPLICATE_WAIT: Duration = Duration::from_millis(500);

/// The help text after the options.
const AFTER_HELP: &str = "\
Times are measured from when the sender has read the 250 to when the monitor has read the event, 0 if the \
event arrived before the 250. For comparison, also give the web server of the node that receives the messages.

The first table shows the delivery of each round, the second the events of the monitors of each node:
  events   events about messages of this round, over all monitors of the node
  missed   acknowledged messages missed by monitors that were disconnected
  lost     acknowledged messages missed by monitors that stayed connected: an error of the server
  doubled  events that were sent twice to monitors that stayed connected: an error of the server
  lagged   how often a monitor was disconnected because it lagged, by close code 1013 or the end of an event stream
  dropped  how often a connection ended otherwise: an error of the server";

/// Options of the `cluster` command.
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Options {
    /// The SMTP server of the node that receives the messages.
    #[arg(long, value_name = "HOST:PORT")]
    smtp: String,
    /// The web server of a node with monitors, with its base path if it has one; repeat for each node.
    #[arg(long, value_name = "URL", required = true)]
    http: Vec<String>,
    /// Monitors of all mailboxes at each of these nodes.
    #[arg(long, default_value_t = 1, value_parser = parse_positive)]
    monitors: usize,
    /// Protocol of the monitors.
    #[arg(long, value_enum, default_value = "sse")]
    protocol: Protocol,
    /// Concurrent connections that send.
    #[arg(long, default_value_t = 50, value_parser = parse_positive)]
    connections: usize,
    /// Mailboxes that receive in turn.
    #[arg(long, default_value_t = 1000, value_parser = parse_positive)]
    mailboxes: usize,
    #[command(flatten)]
    delivery: DeliveryOptions,
}

/// Runs the `cluster` command.
pub(crate) async fn run(options: &Options, json: bool) -> Result<Verdict, Error> {
    let envelopes = build_envelopes(PREFIX, options.mailboxes, 1);
    let load = options.delivery.load(resolve(&options.smtp).await?, options.connections, envelopes);
    let nodes = Nodes::new(options).await?;
    let mut numbers = Numbers::new();
    load.run(numbers.take(options.delivery.warmup)).await;
    let mut report = Report::new(json);
    let mut verdict = Verdict::Clean;
    let mut rows = Vec::new();
    for round in 1..=options.delivery.rounds {
        let (delivery_result, outcomes) =
            nodes.deliver_and_receive(&load, numbers.take(options.delivery.messages)).await?;
        verdict = verdict.and(delivery_result.results.verdict());
        report.row(&Pass { delivery: delivery_result, samples: None }.row(round, nodes.monitors()).0);
        for (url, outcome) in outcomes {
            verdict = verdict.and(check_outcome(&outcome));
            rows.push(row(round, url, outcome));
        }
    }
    let mut report = Report::new(json);
    for row in &rows {
        report.row(row);
    }
    Ok(verdict)
}

/// The nodes with monitors: their URL and the settings of their monitors.
struct Nodes<'a>(Vec<(&'a str, GroupSettings)>);

impl<'a> Nodes<'a> {
    async fn new(options: &'a Options) -> Result<Self, Error> {
        let mut nodes = Vec::new();
        for url in &options.http {
            let settings = GroupSettings {
                base: BaseUrl::parse(url).await?,
                protocol: options.protocol,
                topic: Topic::All,
                prefix: PREFIX,
                monitors: options.monitors,
                stalled: 0,
                // The latency of events is measured, so the reader must not have the lowest priority.
                is_low_priority: false,
                numbers: 0..0,
            };
            nodes.push((url.as_str(), settings));
        }
        Ok(Self(nodes))
    }

    fn monitors(&self) -> usize {
        self.0.iter().map(|(_, settings)| settings.monitors).sum()
    }

    /// Sends messages with these numbers while all monitors listen. Returns the results of each node.
    async fn deliver_and_receive(
        &self,
        load: &Arc<Load>,
        numbers: Range<usize>,
    ) -> Result<(LoadResult, Vec<(&'a str, GroupOutcome)>), Error> {
        let mut groups = Vec::new();
        for (url, settings) in &self.0 {
            let group = MonitorGroup::open(GroupSettings { numbers: numbers.clone(), ..settings.clone() }).await;
            groups.push((*url, group.map_err(|error| Error::Usage(format!("{url}: {error}")))?));
        }
        let delivery_result = load.run(numbers).await;
        for (_, group) in &groups {
            group.wait_for(&delivery_result.acknowledged).await;
        }
        sleep(DUPLICATE_WAIT).await;
        let mut outcomes = Vec::new();
        for (url, group) in groups {
            outcomes.push((url, group.close(&delivery_result.acknowledged).await?));
        }
        Ok((delivery_result, outcomes))
    }
}

fn row(round: usize, url: &str, outcome: GroupOutcome) -> Row {
    let summary = outcome.summary;
    Row::default()
        .with("round", round)
        .with("node", url)
        .with("events", summary.events.iter().sum::<u64>())
        .with("missed", summary.missed)
        .with("lost", summary.lost)
        .with("doubled", summary.doubled)
        .with("lagged", summary.lagged)
        .with("dropped", summary.dropped)
        .with_percentiles(summary.latencies.percentiles())
}
