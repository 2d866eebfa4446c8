//! The `search` command: how long it takes to find a few of many messages by two words. The server must have
//! `/api/v2/search`. Other commands use its queries.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use serde::Deserialize;

use crate::Verdict;
use crate::error::Error;
use crate::http::Client;
use crate::load::{Load, Messages, build_envelopes, parse_positive};
use crate::measure::{Latencies, Sample, mib, ratio, to_f64};
use crate::report::{Report, Row};
use crate::servers::ServerOptions;
use crate::words::{QUERY_KINDS, QueryKind, WordGenerator};

const PREFIX: &str = "search";
/// The maximum time to wait until everything is indexed.
const INDEX_TIMEOUT: Duration = Duration::from_hours(1);
/// The interval at which the index is checked.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Options of the `search` command.
#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    servers: ServerOptions,
    /// Messages to search.
    #[arg(long, default_value_t = 1_000_000, value_parser = parse_positive)]
    messages: usize,
    /// Do not send messages: they exist from an earlier run with the same options.
    #[arg(long)]
    filled: bool,
    /// Mailboxes over which they are spread; the message cap of the server must not be lower than what each will hold.
    #[arg(long, default_value_t = 2000, value_parser = parse_positive)]
    mailboxes: usize,
    /// Words in each message.
    #[arg(long, default_value_t = 60, value_parser = parse_positive)]
    words: usize,
    /// Concurrent connections that send.
    #[arg(long, default_value_t = 32, value_parser = parse_positive)]
    connections: usize,
    /// Queries of each kind.
    #[arg(long, default_value_t = 300, value_parser = parse_positive)]
    operations: usize,
    /// The server's process, to measure its memory.
    #[arg(long)]
    pid: Option<u32>,
}

/// The fields of a response that are used.
#[derive(Deserialize)]
struct SearchResponse {
    messages: Vec<serde::de::IgnoredAny>,
    complete: bool,
}

/// Runs the `search` command.
pub(crate) async fn run(options: &Options, json: bool) -> Result<Verdict, Error> {
    let generator = Arc::new(WordGenerator::new(options.words));
    let mut client = options.servers.http_client().await?;
    if !options.filled {
        let start = Instant::now();
        let addresses = options.servers.smtp_addresses().await?;
        let load = build_load(addresses, &generator, PREFIX, options.mailboxes, options.connections);
        let sent = to_f64(load.send_all(0..options.messages).await?.results.latencies.len());
        let fill_time = start.elapsed();
        wait_for_index(&mut client).await?;
        let index_time = start.elapsed();
        eprintln!(
            "restante-bench: {sent} messages in {:.1} s, {:.0}/s; all indexed after {:.1} s",
            fill_time.as_secs_f64(),
            ratio(sent, fill_time.as_secs_f64()),
            index_time.as_secs_f64(),
        );
    }
    let mut report = Report::new(json);
    for kind in &QUERY_KINDS {
        let (latencies, found) =
            run_queries(&mut client, &generator, kind, options.messages, options.operations).await?;
        let mut row = Row::default()
            .with("words", kind.name)
            .with("stored", options.messages)
            .with("questions", options.operations)
            .with_rounded("found", ratio(to_f64(found), to_f64(options.operations)), 1)
            .with_percentiles(latencies.percentiles());
        if let Some(sample) = options.pid.map(Sample::read).transpose()? {
            row = row.with_rounded("rss_mib", mib(sample.resident), 1);
        }
        report.row(&row);
    }
    Ok(Verdict::Clean)
}

async fn search(client: &mut Client, query: &str) -> Result<SearchResponse, Error> {
    let query = query.replace(' ', "%20").replace('"', "%22");
    client.get_json(&format!("/api/v2/search?q={query}")).await
}

/// Waits until the index is complete.
pub(crate) async fn wait_for_index(client: &mut Client) -> Result<(), Error> {
    let deadline = Instant::now() + INDEX_TIMEOUT;
    while !search(client, "nothing").await?.complete {
        if Instant::now() > deadline {
            return Err(Error::Timeout);
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    Ok(())
}

/// Sends queries of one kind, one after the other. Returns their latencies, and the number of results of all of them. `messages` is
/// the number of messages that were generated.
pub(crate) async fn run_queries(
    client: &mut Client,
    generator: &WordGenerator,
    kind: &QueryKind,
    messages: usize,
    queries: usize,
) -> Result<(Latencies, usize), Error> {
    let mut latencies = Latencies::default();
    let mut found = 0;
    for number in 0..queries {
        let query = generator.query(kind, number, messages);
        let start = Instant::now();
        let response = search(client, &query).await?;
        latencies.push(start.elapsed());
        found += response.messages.len();
    }
    Ok((latencies, found))
}

/// Builds a load of generated messages.
pub(crate) fn build_load(
    addresses: Vec<SocketAddr>,
    generator: &Arc<WordGenerator>,
    prefix: &str,
    mailboxes: usize,
    connections: usize,
) -> Arc<Load> {
    let generator = Arc::clone(generator);
    Arc::new(Load {
        connections,
        messages: Messages::Generated(Box::new(move |number| generator.message(number))),
        ..Load::new(addresses, build_envelopes(prefix, mailboxes, 1), Vec::new())
    })
}
