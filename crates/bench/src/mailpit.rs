//! The `mailpit` command: the API of Mailpit, which Mailpit and Restante have. It measures any server with this API, so both
//! can be compared in one run.

use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use serde::Deserialize;
use tokio::task::JoinSet;

use crate::Verdict;
use crate::error::Error;
use crate::http::{BaseUrl, Client};
use crate::load::{Load, parse_positive};
use crate::measure::{Results, Sample, ratio, to_f64};
use crate::message::{self, Envelope, MessageKind};
use crate::report::{Report, Row};
use crate::rest::{RequestQueue, StopCondition, send_requests};
use crate::smtp::{CommandMode, resolve};

/// The recipient and the subject of the messages, and the word that the search finds.
const WORD: &str = "bench";
/// The number of messages in a list.
const PAGE: usize = 50;
/// The maximum number of messages that are requested one by one: the newest ones.
const MAX_SAMPLED: usize = 1000;

/// Options of the `mailpit` command.
#[derive(Args)]
pub(crate) struct Options {
    /// The web server, with its base path if it has one.
    #[arg(long, value_name = "URL")]
    http: String,
    /// Delete all messages and send new ones over this SMTP server first; without it, the existing messages are read.
    #[arg(long, value_name = "HOST:PORT")]
    smtp: Option<String>,
    /// What to request; all of them by default.
    #[arg(long, value_enum)]
    what: Vec<RequestKind>,
    /// Messages to send. Mailpit deletes messages above 500 after a minute.
    #[arg(long, default_value_t = 500, value_parser = parse_positive)]
    messages: usize,
    /// Size of each message in bytes with its header.
    #[arg(long, default_value_t = 4096)]
    size: usize,
    /// Shape of the messages.
    #[arg(long, value_enum, default_value = "text")]
    kind: MessageKind,
    /// Concurrent connections.
    #[arg(long, default_value_t = 16, value_parser = parse_positive)]
    connections: usize,
    /// Duration of each kind of request in seconds.
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// The server's process, to measure its CPU time and memory.
    #[arg(long)]
    pid: Option<u32>,
    /// Print one JSON object per line.
    #[arg(long)]
    json: bool,
}

/// A request of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum RequestKind {
    /// The newest 50 messages.
    List,
    /// Each message in turn, as JSON.
    Get,
    /// The newest 50 messages that contain a word.
    Search,
}

/// The fields of a list that are used.
#[derive(Deserialize)]
struct MessageList {
    total: usize,
    messages: Vec<MessageEntry>,
}

#[derive(Deserialize)]
struct MessageEntry {
    #[serde(rename = "ID")]
    id: String,
}

/// Runs the `mailpit` command.
pub(crate) async fn run(options: &Options) -> Result<Verdict, Error> {
    let base = BaseUrl::parse(&options.http).await?;
    let mut client = Client::new(&base);
    if let Some(smtp) = &options.smtp {
        client.exchange(&base.request("DELETE", "/api/v1/messages")).await?.ok()?;
        fill(smtp, options).await?;
    }
    let list = client.exchange(&base.request("GET", &format!("/api/v1/messages?limit={MAX_SAMPLED}"))).await?;
    let list: MessageList =
        serde_json::from_slice(list.ok()?).map_err(|_| Error::Protocol("list is not the expected JSON"))?;
    if list.messages.is_empty() {
        return Err(Error::Usage("there are no messages: use --smtp to send some".to_owned()));
    }
    let mut report = Report::new(options.json);
    let mut verdict = Verdict::Clean;
    let all = RequestKind::value_variants();
    for &kind in if options.what.is_empty() { all } else { &options.what } {
        verdict = verdict.and(measure(options, &base, kind, &list, &mut report).await?);
    }
    Ok(verdict)
}

/// Measures one kind of request.
async fn measure(
    options: &Options,
    base: &BaseUrl,
    kind: RequestKind,
    list: &MessageList,
    report: &mut Report,
) -> Result<Verdict, Error> {
    let requests = paths(kind, &list.messages).map(|path| base.request("GET", &path)).collect();
    let before = options.pid.map(Sample::read).transpose()?;
    let start = Instant::now();
    let until = StopCondition::Time(start + Duration::from_secs(options.seconds));
    let queue = Arc::new(RequestQueue::new(requests, until));
    let mut workers = JoinSet::new();
    for _ in 0..options.connections {
        workers.spawn(send_requests(Client::new(base), Arc::clone(&queue)));
    }
    let results = Results::merge(workers.join_all().await);
    let elapsed = start.elapsed().as_secs_f64();
    let after = options.pid.map(Sample::read).transpose()?;
    let (verdict, count) = (results.verdict(), to_f64(results.latencies.len()));
    let mut row = Row::default()
        .with("what", format!("{kind:?}").to_lowercase())
        .with("stored", list.total)
        .with("requests", results.latencies.len())
        .with("errors", results.errors)
        .with_rounded("per_s", ratio(count, elapsed), 0)
        .with_rounded("bytes_per_body", ratio(to_f64(results.bytes), count), 0)
        .with_percentiles(results.latencies.percentiles());
    if let Some((before, after)) = before.zip(after) {
        row = row.with_cpu(before, after, count).with_memory(before, after);
    }
    report.row(&row);
    Ok(verdict)
}

/// Returns the paths of the requests of a kind.
fn paths(kind: RequestKind, messages: &[MessageEntry]) -> impl Iterator<Item = String> {
    let (single, messages) = match kind {
        RequestKind::List => (Some(format!("/api/v1/messages?limit={PAGE}")), &[][..]),
        RequestKind::Search => (Some(format!("/api/v1/search?query={WORD}&limit={PAGE}")), &[][..]),
        RequestKind::Get => (None, messages),
    };
    single.into_iter().chain(messages.iter().map(|message| format!("/api/v1/message/{}", message.id)))
}

async fn fill(smtp: &str, options: &Options) -> Result<(), Error> {
    let load = Arc::new(Load {
        addresses: resolve(smtp).await?,
        connections: 4,
        connection_per_message: false,
        mode: CommandMode::Sequential,
        envelopes: vec![Envelope::to([WORD])],
        message: message::build_message(options.kind, WORD, options.size),
    });
    let outcome = load.run(options.messages).await;
    outcome.results.first_error.map_or(Ok(()), |error| Err(Error::Usage(format!("sending messages: {error}"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_have_the_paths_of_mailpit() {
        let list = r#"{"total":2,"unread":1,"tags":[],"messages":[{"ID":"a","Read":false},{"ID":"b"}]}"#;
        let list: MessageList = serde_json::from_str(list).expect("a list");
        assert_eq!(list.total, 2);
        let paths = |kind| paths(kind, &list.messages).collect::<Vec<_>>();
        assert_eq!(paths(RequestKind::List), ["/api/v1/messages?limit=50"]);
        assert_eq!(paths(RequestKind::Get), ["/api/v1/message/a", "/api/v1/message/b"]);
        assert_eq!(paths(RequestKind::Search), ["/api/v1/search?query=bench&limit=50"]);
    }
}
