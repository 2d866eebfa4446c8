//! The `monitors` command: whether live monitors slow down delivery. The same messages are sent without and with
//! monitors, alternately, so that other load on the machine affects both. Some of the monitors never read. The
//! [`cluster`] command has monitors at other nodes than the one that receives the messages.

pub(crate) mod cluster;
mod delivery;
mod events;
mod monitor;
mod monitor_group;
mod received_events;
mod tables;
mod websocket;

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use tokio::time::{sleep, timeout};

use self::delivery::{DeliveryOptions, Numbers};
use self::monitor::Protocol;
pub(crate) use self::monitor_group::allow_open_files;
use self::monitor_group::{GroupOutcome, GroupSettings, MonitorGroup};
use self::tables::{Pass, check_outcome, group_row, report_medians};
use crate::Verdict;
use crate::error::Error;
use crate::load::{Load, build_envelopes, parse_positive};
use crate::measure::Sample;
use crate::report::Report;
use crate::servers::ServerOptions;

const PREFIX: &str = "monitor";
/// The interval at which the memory of the server is sampled.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(50);
/// How long the server gets to clean up after the monitors have disconnected, so that it does not affect the next pass.
const SETTLE_TIME: Duration = Duration::from_millis(500);

/// The help text after the options.
const AFTER_HELP: &str = "\
The monitors run in a thread of the lowest priority, because in practice they run on other machines. If the kernel groups \
processes by session (sched_autogroup_enabled), that helps only if the server was started from the same terminal. The \
server must allow a few more connections than there are monitors.

The first table shows each pass, the second the events of the monitors, the third the medians. In the second:
  missed           acknowledged messages that monitors did not get because they were disconnected
  lost             acknowledged messages that other monitors did not get: an error of the server
  doubled          events that were sent twice to monitors that stayed connected: an error of the server
  lagged           how often a monitor was disconnected because it lagged, by close code 1013 or the end of an event stream
  dropped          how often a connection ended otherwise: an error of the server
  stalled_dropped  monitors that never read and that the server had disconnected at the end
  event_p50_us     from the 250 of a message to its event, the monitor's wait for the processor included";

/// Options of the `monitors` command.
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Options {
    #[command(flatten)]
    servers: ServerOptions,
    /// Monitors that read; one that lags reconnects after a second.
    #[arg(long, default_value_t = 1000, value_parser = parse_positive)]
    monitors: usize,
    /// Monitors that never read; they always listen to all mailboxes.
    #[arg(long, default_value_t = 10)]
    stalled: usize,
    /// What the reading monitors listen to.
    #[arg(long, value_enum, default_value = "all")]
    topic: Topic,
    /// Protocol of the monitors.
    #[arg(long, value_enum, default_value = "v2")]
    protocol: Protocol,
    /// Concurrent connections that send.
    #[arg(long, default_value_t = 10, value_parser = parse_positive)]
    connections: usize,
    #[command(flatten)]
    delivery: DeliveryOptions,
    /// The server's process, to measure its CPU time and memory.
    #[arg(long)]
    pid: Option<u32>,
}

/// What a reading monitor listens to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Topic {
    /// All mailboxes.
    All,
    /// One mailbox, a different one for each monitor.
    Mailbox,
}

impl Topic {
    /// Returns whether the monitor with this index, of `monitors` in total, gets the message.
    fn includes(self, number: usize, index: usize, monitors: usize) -> bool {
        self == Self::All || number % monitors == index
    }
}

/// Runs the `monitors` command.
pub(crate) async fn run(options: &Options, json: bool) -> Result<Verdict, Error> {
    let mut bench = MonitorBench::prepare(options).await?;
    let warmup = bench.numbers.take(options.delivery.warmup);
    bench.load.run(warmup).await;
    let mut report = Report::new(json);
    let mut verdict = Verdict::Clean;
    let mut figures_by_kind = [Vec::new(), Vec::new()];
    let mut outcomes = Vec::new();
    for round in 1..=options.delivery.rounds {
        // Every other round starts with monitors, so that gradual changes affect both alike.
        for with_monitors in [round.is_multiple_of(2), !round.is_multiple_of(2)] {
            let (pass, outcome) = bench.run_pass(with_monitors).await?;
            verdict = verdict.and(pass.delivery.results.verdict());
            let monitors = if with_monitors { options.monitors } else { 0 };
            let (row, figures) = pass.row(round, monitors);
            report.row(&row);
            figures_by_kind[usize::from(with_monitors)].push(figures);
            outcomes.extend(outcome.map(|outcome| (round, outcome)));
        }
    }
    let mut report = Report::new(json);
    for (round, outcome) in outcomes {
        verdict = verdict.and(check_outcome(&outcome));
        report.row(&group_row(round, outcome));
    }
    report_medians(json, &figures_by_kind);
    Ok(verdict)
}

/// What all passes share.
struct MonitorBench {
    load: Arc<Load>,
    settings: GroupSettings,
    messages: usize,
    pid: Option<u32>,
    numbers: Numbers,
}

impl MonitorBench {
    async fn prepare(options: &Options) -> Result<Self, Error> {
        let envelopes = build_envelopes(PREFIX, options.monitors, 1);
        let addresses = options.servers.smtp_addresses().await?;
        let load = options.delivery.load(addresses, options.connections, envelopes);
        let settings = GroupSettings {
            base: options.servers.base_url().await?,
            protocol: options.protocol,
            topic: options.topic,
            prefix: PREFIX,
            monitors: options.monitors,
            stalled: options.stalled,
            is_low_priority: true,
            numbers: 0..0,
        };
        Ok(Self { load, settings, messages: options.delivery.messages, pid: options.pid, numbers: Numbers::new() })
    }

    /// Sends all messages once.
    async fn run_pass(&mut self, with_monitors: bool) -> Result<(Pass, Option<GroupOutcome>), Error> {
        let numbers = self.numbers.take(self.messages);
        if !with_monitors {
            let (delivery, samples) = with_samples(self.pid, self.load.run(numbers)).await?;
            return Ok((Pass { delivery, samples }, None));
        }
        let settings = GroupSettings { numbers: numbers.clone(), ..self.settings.clone() };
        let work = async {
            let group = MonitorGroup::open(settings).await?;
            let delivery = self.load.run(numbers).await;
            group.wait_for(&delivery.acknowledged).await;
            Ok((delivery, group))
        };
        let (result, samples) = with_samples(self.pid, work).await?;
        let (delivery, group) = result?;
        let outcome = group.close(&delivery.acknowledged).await?;
        sleep(SETTLE_TIME).await;
        Ok((Pass { delivery, samples }, Some(outcome)))
    }
}

/// Runs `work` and samples the process of the server before and after it. The peak is the highest sample in between,
/// because the kernel only has the peak since the start of the process.
async fn with_samples<T>(
    pid: Option<u32>,
    work: impl Future<Output = T>,
) -> Result<(T, Option<(Sample, Sample)>), Error> {
    let Some(pid) = pid else { return Ok((work.await, None)) };
    let mut work = pin!(work);
    let before = Sample::read(pid)?;
    let mut peak = before.resident;
    let result = loop {
        let result = timeout(SAMPLE_INTERVAL, work.as_mut()).await;
        peak = peak.max(Sample::read(pid)?.resident);
        if let Ok(result) = result {
            break result;
        }
    };
    let after = Sample::read(pid)?;
    Ok((result, Some((before, Sample { peak: peak.max(after.resident), ..after }))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topic_selects_messages_of_a_monitor() {
        assert!(Topic::Mailbox.includes(1007, 7, 1000) && !Topic::Mailbox.includes(1007, 8, 1000));
        assert!(Topic::All.includes(1007, 8, 1000));
    }
}
