//! The `wait` command: the time from the 250 of a message to the responses of requests that wait for it, and the memory
//! of the server for each request.

use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::Verdict;
use crate::error::Error;
use crate::load::{Load, build_envelopes, parse_positive};
use crate::measure::{Results, Sample, ratio, to_f64};
use crate::message::{self, MessageKind, mailbox_name};
use crate::monitors::allow_open_files;
use crate::report::{Report, Row};
use crate::servers::ServerOptions;

const PREFIX: &str = "wait";
/// How long the server gets to read the last requests before messages are sent.
const SETTLE_TIME: Duration = Duration::from_secs(2);
/// The maximum time until a response.
const RESPONSE_TIMEOUT: Duration = Duration::from_mins(10);

/// Options of the `wait` command. The server must allow a few more connections than there are waiters.
#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    servers: ServerOptions,
    /// Concurrent requests that wait.
    #[arg(long, default_value_t = 10_000, value_parser = parse_positive)]
    waiters: usize,
    /// Let all requests wait for the same mailbox, which gets one message, instead of one mailbox each.
    #[arg(long)]
    together: bool,
    /// Wait only for messages that match this query; all sent messages match `subject:wait`, or `measurement` for the
    /// text.
    #[arg(long = "match", value_name = "QUERY")]
    matching: Option<String>,
    /// Messages per second.
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..))]
    rate: u32,
    /// The server's process, to measure its memory.
    #[arg(long)]
    pid: Option<u32>,
}

/// The tasks of the waiters, which return their number and the time of the response.
type WaiterTasks = JoinSet<(usize, Result<Instant, Error>)>;

/// Runs the `wait` command.
pub(crate) async fn run(options: &Options, json: bool) -> Result<Verdict, Error> {
    allow_open_files(options.waiters)?;
    let sample = || options.pid.map(Sample::read).transpose();
    let before = sample()?;
    let mut tasks = start_waiters(options).await?;
    sleep(SETTLE_TIME).await;
    let waiting = sample()?;
    let acknowledged = send_messages(options).await?;
    let mut results = Results::default();
    while let Some(joined) = tasks.join_next().await {
        let Ok((number, result)) = joined else { continue };
        match result {
            // The response can arrive before the sender has read its 250.
            Ok(at) => {
                let acknowledged_at = acknowledged[number % acknowledged.len()].unwrap_or(at);
                results.record_success(at.saturating_duration_since(acknowledged_at), 0);
            }
            Err(error) => results.record_error(&error),
        }
    }
    let verdict = results.verdict();
    let mut row = Row::default().with("waiters", options.waiters).with("errors", results.errors);
    row = row.with_percentiles(results.latencies.percentiles());
    if let (Some(before), Some(waiting)) = (before, waiting) {
        let grown = to_f64(waiting.resident.saturating_sub(before.resident)) / 1024.0;
        row = row.with_rounded("kib_per_waiter", ratio(grown, to_f64(options.waiters)), 1).with_memory(before, waiting);
    }
    Report::new(json).row(&row);
    Ok(verdict)
}

/// Sends all requests.
async fn start_waiters(options: &Options) -> Result<WaiterTasks, Error> {
    let base = options.servers.base_url().await?;
    let match_parameter = options.matching.as_ref().map(|query| format!("&match={query}")).unwrap_or_default();
    let mut tasks = JoinSet::new();
    for number in 0..options.waiters {
        let mailbox = mailbox_name(PREFIX, if options.together { 0 } else { number });
        let path = format!("/api/v2/mailbox/{mailbox}/wait?timeout=10m{match_parameter}");
        let mut stream = TcpStream::connect(base.addresses()).await.map_err(|error| Error::Io("connecting", error))?;
        let sent = stream.write_all(&base.request("GET", &path)).await;
        sent.map_err(|error| Error::Io("sending", error))?;
        tasks.spawn(async move { (number, wait_for_response(stream).await) });
    }
    Ok(tasks)
}

/// Waits for the start of a response and checks its status.
async fn wait_for_response(mut stream: TcpStream) -> Result<Instant, Error> {
    let mut head = [0; 64];
    let read = timeout(RESPONSE_TIMEOUT, stream.read(&mut head)).await;
    let at = Instant::now();
    let length = read.map_err(|_| Error::Timeout)?.map_err(|error| Error::Io("reading the response", error))?;
    if head[..length].starts_with(b"HTTP/1.1 200 ") {
        return Ok(at);
    }
    Err(Error::refused(&head[..length]))
}

/// Sends the messages. Returns when each was acknowledged.
async fn send_messages(options: &Options) -> Result<Vec<Option<Instant>>, Error> {
    let addresses = options.servers.smtp_addresses().await?;
    let messages = if options.together { 1 } else { options.waiters };
    let message = message::build_message(MessageKind::Text, "wait", 1024);
    let load = Load {
        connections: 1,
        rate: Some(options.rate),
        ..Load::new(addresses, build_envelopes(PREFIX, messages, 1), message)
    };
    Ok(Arc::new(load).send_all(0..messages).await?.acknowledged)
}
