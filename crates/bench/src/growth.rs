//! The `growth` command: whether the cost of an operation depends on the number of stored messages. Mailboxes are
//! filled step by step. After each step some hundred operations of each kind are timed, one after the other.

use std::sync::Arc;
use std::time::Instant;

use clap::Args;

use crate::Verdict;
use crate::error::Error;
use crate::http::Client;
use crate::load::{Load, build_envelopes, parse_positive};
use crate::measure::{Latencies, Sample, ratio, to_f64};
use crate::message::{self, Envelope, MessageKind, mailbox_name};
use crate::report::{Report, Row};
use crate::rest::{self, message_path};
use crate::servers::ServerOptions;

const PREFIX: &str = "growth";
/// The maximum number of mailboxes whose messages are read and deleted.
const MAX_SAMPLES: usize = 50;

/// Options of the `growth` command.
#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    servers: ServerOptions,
    /// Numbers of stored messages at which to measure.
    #[arg(long, value_delimiter = ',', default_value = "100,1000,10000,100000,1000000", value_parser = parse_positive)]
    steps: Vec<usize>,
    /// Mailboxes over which the messages are distributed. The message cap of the server must be at least messages / mailboxes.
    #[arg(long, default_value_t = 1000, value_parser = parse_positive)]
    mailboxes: usize,
    /// Operations of each kind to time at each step.
    #[arg(long, default_value_t = 300, value_parser = parse_positive)]
    operations: usize,
    /// Size of each message in bytes with its header.
    #[arg(long, default_value_t = 1024)]
    size: usize,
    /// The server's process, to measure its memory.
    #[arg(long)]
    pid: Option<u32>,
}

/// Runs the `growth` command.
pub(crate) async fn run(options: &Options, json: bool) -> Result<Verdict, Error> {
    if !options.steps.is_sorted() {
        return Err(Error::Usage("--steps must be in ascending order, as in 100,1000".to_owned()));
    }
    let mut growth = Growth::prepare(options).await?;
    let empty = options.pid.map(Sample::read).transpose()?;
    let mut report = Report::new(json);
    for &step in &options.steps {
        growth.fill_up_to(step).await;
        let full = options.pid.map(Sample::read).transpose()?;
        let mut row = growth.measure(options.operations).await?;
        if let Some((empty, full)) = empty.zip(full) {
            let grown = to_f64(full.resident) - to_f64(empty.resident);
            row = row.with_rounded("rss_bytes_per_message", ratio(grown, to_f64(step)), 0);
        }
        report.row(&row);
    }
    Ok(growth.verdict)
}

/// The mailboxes while they grow.
struct Growth {
    /// Fills all mailboxes.
    filling: Arc<Load>,
    /// Appends messages to the sampled mailboxes, one after the other.
    appending: Arc<Load>,
    client: Client,
    /// How many messages each step added.
    filled: Vec<usize>,
    verdict: Verdict,
}

impl Growth {
    /// Purges the mailboxes, and creates the measurement.
    async fn prepare(options: &Options) -> Result<Self, Error> {
        let addresses = options.servers.smtp_addresses().await?;
        let message = message::build_message(MessageKind::Text, "growth", options.size);
        let samples = options.mailboxes.min(MAX_SAMPLES);
        let names = (0..samples).map(|n| mailbox_name(PREFIX, sampled_mailbox(n, samples, options.mailboxes)));
        let envelopes = names.map(|name| Envelope::to([name.as_str()])).collect();
        let appending = Load { connections: 1, ..Load::new(addresses.clone(), envelopes, message.clone()) };
        let filling = Load::new(addresses, build_envelopes(PREFIX, options.mailboxes, 1), message);
        let mut client = options.servers.http_client().await?;
        for n in 0..options.mailboxes {
            rest::purge(&mut client, &mailbox_name(PREFIX, n)).await?;
        }
        let (filling, appending) = (Arc::new(filling), Arc::new(appending));
        Ok(Self { filling, appending, client, filled: Vec::new(), verdict: Verdict::Clean })
    }

    async fn fill_up_to(&mut self, step: usize) {
        let missing = step - self.stored();
        let outcome = self.filling.run(0..missing).await;
        self.filled.push(missing);
        self.client.disconnect();
        self.verdict = self.verdict.and(outcome.results.verdict());
    }

    /// Returns the number of messages that are stored now.
    fn stored(&self) -> usize {
        self.filled.iter().sum()
    }

    /// Times all kinds of operations. Deletes as many messages as it appends.
    async fn measure(&mut self, operations: usize) -> Result<Row, Error> {
        let mut row = Row::default().with("stored", self.stored());
        let append = self.appending.send_all(0..operations).await?.results.latencies;
        let messages = self.find(operations).await?;
        let path = |(mailbox, id): &(String, String)| message_path(mailbox, id);
        let latest_path = |(mailbox, _): &(String, String)| message_path(mailbox, "latest");
        let get = self.time_requests("GET", messages.iter().map(path)).await?;
        let latest = self.time_requests("GET", messages.iter().map(latest_path)).await?;
        let delete = self.time_requests("DELETE", messages.iter().map(path)).await?;
        for (p50_name, p99_name, latencies) in [
            ("append_p50_us", "append_p99_us", append),
            ("get_p50_us", "get_p99_us", get),
            ("latest_p50_us", "latest_p99_us", latest),
            ("delete_p50_us", "delete_p99_us", delete),
        ] {
            let latency = latencies.percentiles();
            row = row.with(p50_name, latency.p50).with(p99_name, latency.p99);
        }
        Ok(row)
    }

    /// Returns the mailbox and id of as many messages as were appended, spread over old and new messages of the sampled
    /// mailboxes.
    async fn find(&mut self, appended: usize) -> Result<Vec<(String, String)>, Error> {
        let (samples, all) = (self.appending.envelopes.len(), self.filling.envelopes.len());
        let mut messages = Vec::with_capacity(appended);
        let (mut stored, mut expected) = (0, appended);
        for n in 0..samples {
            let number = sampled_mailbox(n, samples, all);
            let mailbox = mailbox_name(PREFIX, number);
            let entries = rest::list(&mut self.client, &mailbox).await?;
            stored += entries.len();
            expected += self.filled.iter().map(|&fill| round_robin_share(fill, all, number)).sum::<usize>();
            let count = round_robin_share(appended, samples, n).min(entries.len());
            let ids = (0..count).map(|i| entries[i * entries.len() / count].id.clone());
            messages.extend(ids.map(|id| (mailbox.clone(), id)));
        }
        if stored < expected {
            eprintln!(
                "restante-bench: {samples} mailboxes hold {stored} of {expected} messages: \
                 is the message cap of the server too low?"
            );
            self.verdict = Verdict::Faulty;
        }
        Ok(messages)
    }

    async fn time_requests(&mut self, method: &str, paths: impl Iterator<Item = String>) -> Result<Latencies, Error> {
        let mut latencies = Latencies::default();
        for path in paths {
            let start = Instant::now();
            self.client.request(method, &path).await?;
            latencies.push(start.elapsed());
        }
        Ok(latencies)
    }
}

/// Returns the number of the `n`th of `samples` mailboxes, which are spread over `all` mailboxes.
fn sampled_mailbox(n: usize, samples: usize, all: usize) -> usize {
    n * all / samples
}

/// Returns how many of `total` items the `n`th of `parts` gets if they are distributed round-robin.
fn round_robin_share(total: usize, parts: usize, n: usize) -> usize {
    total.saturating_sub(n).div_ceil(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_robin_shares_add_up() {
        for (total, parts) in [(0, 3), (2, 3), (3, 3), (10, 3), (1000, 7)] {
            let mut expected = vec![0; parts];
            (0..total).for_each(|n| expected[n % parts] += 1);
            let computed: Vec<_> = (0..parts).map(|n| round_robin_share(total, parts, n)).collect();
            assert_eq!(computed, expected);
        }
    }
}
