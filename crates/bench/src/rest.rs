//! The mailbox API over HTTP: paths and lists, and the `http` command that measures its performance.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use serde::Deserialize;
use tokio::task::JoinSet;

use crate::Verdict;
use crate::error::Error;
use crate::http::{BaseUrl, Client};
use crate::load::{Load, parse_positive};
use crate::measure::{Results, Sample, mib, ratio, to_f64};
use crate::message::{self, Envelope, MessageKind, mailbox_name};
use crate::report::{Report, Row};
use crate::smtp::{CommandMode, resolve};

/// Options of the `http` command.
#[derive(Args)]
pub(crate) struct Options {
    /// The web server, with its base path if it has one.
    #[arg(long, value_name = "URL")]
    http: String,
    /// Empty the mailboxes and fill them over this SMTP server first; without it, the existing messages are read.
    #[arg(long, value_name = "HOST:PORT")]
    smtp: Option<String>,
    /// What to request.
    #[arg(long, value_enum)]
    what: RequestKind,
    /// The mailbox, or the prefix of the mailboxes.
    #[arg(long, default_value = "bench")]
    mailbox: String,
    /// Spread the requests over this number of mailboxes, named as by the `smtp` command: bench-0, bench-1.
    #[arg(long, value_parser = parse_positive)]
    mailboxes: Option<usize>,
    /// Messages to send.
    #[arg(long, default_value_t = 100, value_parser = parse_positive)]
    messages: usize,
    /// Size of each message in bytes with its header.
    #[arg(long, default_value_t = 20_480)]
    size: usize,
    /// Shape of the messages.
    #[arg(long, value_enum, default_value = "text")]
    kind: MessageKind,
    /// Concurrent connections.
    #[arg(long, default_value_t = 16, value_parser = parse_positive)]
    connections: usize,
    /// Duration in seconds.
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// Send each request once, instead of repeating all of them.
    #[arg(long, conflicts_with = "seconds")]
    once: bool,
    /// Wait for Enter before measuring, so that the server can be restarted.
    #[arg(long)]
    pause: bool,
    /// The server's process, to measure its CPU time and memory.
    #[arg(long)]
    pid: Option<u32>,
    /// Print one JSON object per line.
    #[arg(long)]
    json: bool,
}

/// A read request of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum RequestKind {
    /// The list of the mailbox.
    List,
    /// Each message in turn, as JSON.
    Get,
    /// Each message in turn, as it was received.
    Source,
    /// The newest message, as JSON.
    Latest,
    /// The 50 messages of the mailbox before each message in turn.
    Page,
    /// The 50 messages of all mailboxes before each message in turn.
    AllPage,
    /// The first 50 messages of all mailboxes.
    AllFirst,
    /// Each message in turn, by its id in all mailboxes.
    Message,
}

/// The maximum number of messages that are requested one by one. If there are more, an evenly spread sample is used.
const MAX_SAMPLED: usize = 20_000;

impl Options {
    /// Returns the mailboxes to read.
    fn names(&self) -> Vec<String> {
        match self.mailboxes {
            Some(mailboxes) => (0..mailboxes).map(|n| mailbox_name(&self.mailbox, n)).collect(),
            None => vec![self.mailbox.clone()],
        }
    }
}

/// Runs the `http` command.
pub(crate) async fn run(options: &Options) -> Result<Verdict, Error> {
    let mailboxes = MailboxApi::new(BaseUrl::parse(&options.http).await?);
    let names = options.names();
    if let Some(smtp) = &options.smtp {
        let mut client = mailboxes.client();
        for name in &names {
            mailboxes.purge(&mut client, name).await?;
        }
        fill(smtp, &names, options).await?;
    }
    let (stored, requests) = build_requests(&mailboxes, &names, options.what).await?;
    if stored == 0 {
        return Err(Error::Usage(format!("mailbox {:?} is empty: use --smtp to fill it", names[0])));
    }
    if options.pause {
        eprintln!("restante-bench: {stored} messages were found; press Enter to begin");
        io::stdin().read_line(&mut String::new()).map_err(|error| Error::io("waiting for Enter", error))?;
    }

    let before = options.pid.map(Sample::read).transpose()?;
    let start = Instant::now();
    let until = if options.once {
        StopCondition::Once
    } else {
        StopCondition::Time(start + Duration::from_secs(options.seconds))
    };
    let queue = Arc::new(RequestQueue::new(requests, until));
    let mut workers = JoinSet::new();
    for _ in 0..options.connections {
        workers.spawn(send_requests(mailboxes.client(), Arc::clone(&queue)));
    }
    let results = Results::merge(workers.join_all().await);
    let elapsed = start.elapsed().as_secs_f64();
    let after = options.pid.map(Sample::read).transpose()?;

    let verdict = results.verdict();
    let count = to_f64(results.latencies.len());
    let mut row = Row::default()
        .with("what", format!("{:?}", options.what).to_lowercase())
        .with("mailboxes", names.len())
        .with("stored", stored)
        .with("requests", results.latencies.len())
        .with("errors", results.errors)
        .with_rounded("per_s", ratio(count, elapsed), 0)
        .with_rounded("mib_per_s", ratio(mib(results.bytes), elapsed), 1)
        .with_rounded("bytes_per_body", ratio(to_f64(results.bytes), count), 0)
        .with_percentiles(results.latencies.percentiles());
    if let Some((before, after)) = before.zip(after) {
        row = row.with_cpu(before, after, count).with_memory(before, after);
    }
    Report::new(options.json).row(&row);
    Ok(verdict)
}

/// The mailbox API of one server.
pub(crate) struct MailboxApi {
    base: BaseUrl,
}

/// The fields of a list entry that are used.
#[derive(Debug, Deserialize)]
pub(crate) struct ListEntry {
    /// Identifies the message within its mailbox.
    pub(crate) id: String,
    /// The subject.
    #[serde(default)]
    pub(crate) subject: String,
}

impl MailboxApi {
    /// Creates the API at a base URL.
    pub(crate) fn new(base: BaseUrl) -> Self {
        Self { base }
    }

    /// Creates a connection to it.
    pub(crate) fn client(&self) -> Client {
        Client::new(&self.base)
    }

    /// Lists a mailbox.
    pub(crate) async fn list(&self, client: &mut Client, mailbox: &str) -> Result<Vec<ListEntry>, Error> {
        let response = client.exchange(&self.list_request(mailbox)).await?;
        serde_json::from_slice(response.ok()?).map_err(|_| Error::Protocol("list is not the expected JSON"))
    }

    /// Deletes all messages of a mailbox.
    pub(crate) async fn purge(&self, client: &mut Client, mailbox: &str) -> Result<(), Error> {
        let request = self.base.request("DELETE", &mailbox_path(mailbox));
        client.exchange(&request).await?.ok().map(|_| ())
    }

    /// Returns the request for the list of a mailbox.
    pub(crate) fn list_request(&self, mailbox: &str) -> Vec<u8> {
        self.base.request("GET", &mailbox_path(mailbox))
    }

    /// Returns the request for one message; `latest` is the id of the newest.
    pub(crate) fn message_request(&self, mailbox: &str, id: &str) -> Vec<u8> {
        self.base.request("GET", &message_path(mailbox, id))
    }

    /// Returns the request for the source of one message.
    pub(crate) fn source_request(&self, mailbox: &str, id: &str) -> Vec<u8> {
        self.base.request("GET", &(message_path(mailbox, id) + "/source"))
    }

    /// Returns the request for the 50 messages of a mailbox before this one.
    fn page_request(&self, mailbox: &str, before: &str) -> Vec<u8> {
        self.base.request("GET", &format!("{}?limit=50&before={before}", mailbox_path(mailbox)))
    }

    /// Returns the request for the 50 messages of all mailboxes before this one, or for the last ones.
    fn all_mail_request(&self, before: &str) -> Vec<u8> {
        let before = if before.is_empty() { String::new() } else { format!("&before={before}") };
        self.base.request("GET", &format!("/api/v2/messages?limit=50{before}"))
    }

    /// Returns the request for one message in all mailboxes.
    fn whole_message_request(&self, id: &str) -> Vec<u8> {
        self.base.request("GET", &format!("/api/v2/messages/{id}"))
    }

    /// Returns the request that deletes one message.
    pub(crate) fn delete_request(&self, mailbox: &str, id: &str) -> Vec<u8> {
        self.base.request("DELETE", &message_path(mailbox, id))
    }
}

async fn fill(smtp: &str, names: &[String], options: &Options) -> Result<(), Error> {
    let load = Arc::new(Load {
        addresses: resolve(smtp).await?,
        connections: 4,
        connection_per_message: false,
        mode: CommandMode::Sequential,
        envelopes: names.iter().map(|name| Envelope::to([name.as_str()])).collect(),
        message: message::build_message(options.kind, "bench", options.size),
    });
    let outcome = load.run(options.messages).await;
    outcome.results.first_error.map_or(Ok(()), |error| Err(Error::Usage(format!("filling the mailbox: {error}"))))
}

/// Returns the number of stored messages and the requests to send. The mailboxes alternate.
async fn build_requests(api: &MailboxApi, names: &[String], kind: RequestKind) -> Result<(usize, Vec<Vec<u8>>), Error> {
    let mut client = api.client();
    let count = MAX_SAMPLED.div_ceil(names.len());
    let mut stored = 0;
    let mut rounds: Vec<Vec<Vec<u8>>> = Vec::new();
    for name in names {
        let entries = api.list(&mut client, name).await?;
        stored += entries.len();
        let requests: Vec<_> = match kind {
            RequestKind::List => vec![api.list_request(name)],
            RequestKind::Latest => vec![api.message_request(name, "latest")],
            RequestKind::AllFirst => vec![api.all_mail_request("")],
            RequestKind::Page => {
                evenly_spaced(&entries, count).map(|entry| api.page_request(name, &entry.id)).collect()
            }
            RequestKind::AllPage => {
                evenly_spaced(&entries, count).map(|entry| api.all_mail_request(&entry.id)).collect()
            }
            RequestKind::Message => {
                evenly_spaced(&entries, count).map(|entry| api.whole_message_request(&entry.id)).collect()
            }
            RequestKind::Get => {
                evenly_spaced(&entries, count).map(|entry| api.message_request(name, &entry.id)).collect()
            }
            RequestKind::Source => {
                evenly_spaced(&entries, count).map(|entry| api.source_request(name, &entry.id)).collect()
            }
        };
        rounds.resize_with(rounds.len().max(requests.len()), Vec::new);
        for (round, request) in rounds.iter_mut().zip(requests) {
            round.push(request);
        }
    }
    Ok((stored, rounds.concat()))
}

/// Returns at most `count` evenly spaced entries.
fn evenly_spaced(entries: &[ListEntry], count: usize) -> impl Iterator<Item = &ListEntry> {
    let count = count.min(entries.len());
    (0..count).map(move |n| &entries[n * entries.len() / count])
}

/// The requests that all workers send in turn.
pub(crate) struct RequestQueue {
    requests: Vec<Vec<u8>>,
    next: AtomicUsize,
    until: StopCondition,
}

/// When the workers stop.
pub(crate) enum StopCondition {
    /// When each request was sent once.
    Once,
    /// At this time, but not before every worker has sent a request.
    Time(Instant),
}

impl RequestQueue {
    /// Creates a queue of these requests, of which there is at least one.
    pub(crate) fn new(requests: Vec<Vec<u8>>, until: StopCondition) -> Self {
        Self { requests, next: AtomicUsize::new(0), until }
    }

    fn next(&self, is_first: bool) -> Option<&[u8]> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let is_due = match self.until {
            StopCondition::Once => number < self.requests.len(),
            StopCondition::Time(deadline) => is_first || Instant::now() < deadline,
        };
        is_due.then(|| self.requests[number % self.requests.len()].as_slice())
    }
}

/// Runs one worker: sends requests until there are no more.
pub(crate) async fn send_requests(mut client: Client, queue: Arc<RequestQueue>) -> Results {
    let mut results = Results::default();
    let mut is_first = true;
    while let Some(request) = queue.next(is_first) {
        is_first = false;
        let start = Instant::now();
        match client.exchange(request).await.and_then(|response| response.ok().map(<[u8]>::len)) {
            Ok(length) => results.record_success(start.elapsed(), length),
            Err(error @ Error::Refused(_)) => results.record_error(&error),
            Err(error) => {
                results.record_error(&error);
                // Do not retry in a tight loop if the server is gone.
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
    }
    results
}

fn mailbox_path(mailbox: &str) -> String {
    format!("/api/v1/mailbox/{}", encode_segment(mailbox))
}

fn message_path(mailbox: &str, id: &str) -> String {
    format!("{}/{}", mailbox_path(mailbox), encode_segment(id))
}

/// Encodes a name as one segment of a path: all but the unreserved characters are escaped (RFC 3986 section 2.3).
fn encode_segment(name: &str) -> String {
    let hex = |digit: u8| char::from(b"0123456789ABCDEF"[usize::from(digit)]);
    let mut encoded = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => encoded.push(char::from(byte)),
            _ => encoded.extend(['%', hex(byte >> 4), hex(byte & 15)]),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_encoded_as_one_segment() {
        assert_eq!(message_path("bench-1", "20260101T120000-0001"), "/api/v1/mailbox/bench-1/20260101T120000-0001");
        assert_eq!(mailbox_path("a/b c\r\n@ü"), "/api/v1/mailbox/a%2Fb%20c%0D%0A%40%C3%BC");
    }

    #[test]
    fn samples_are_evenly_spaced() {
        let entries: Vec<_> = (0..10).map(|n| ListEntry { id: n.to_string(), subject: String::new() }).collect();
        let ids = |count| evenly_spaced(&entries, count).map(|entry| entry.id.as_str()).collect::<Vec<_>>();
        assert_eq!(ids(3), ["0", "3", "6"]);
        assert_eq!(ids(99).len(), 10);
        assert_eq!(evenly_spaced(&[], 3).count(), 0);
    }

    #[test]
    fn requests_are_sent_once_or_repeatedly() {
        let queue = |until| RequestQueue::new(vec![vec![0], vec![1]], until);
        let once = queue(StopCondition::Once);
        let sent: Vec<_> = std::iter::from_fn(|| once.next(false)).collect();
        assert_eq!(sent, [[0], [1]]);
        let expired = queue(StopCondition::Time(Instant::now()));
        assert_eq!((expired.next(true), expired.next(false)), (Some(&[0][..]), None));
        let endless = queue(StopCondition::Time(Instant::now() + Duration::from_mins(1)));
        let sent: Vec<_> = (0..3).filter_map(|_| endless.next(false)).collect();
        assert_eq!(sent, [[0], [1], [0]]);
    }

    #[test]
    fn list_entries_need_only_an_id() {
        let list = r#"[{"mailbox":"m","id":"1","subject":"s","size":3,"new":[{}]},{"id":"2"}]"#;
        let entries: Vec<ListEntry> = serde_json::from_str(list).expect("a list");
        assert_eq!((entries[0].id.as_str(), entries[0].subject.as_str()), ("1", "s"));
        assert_eq!((entries[1].id.as_str(), entries[1].subject.as_str()), ("2", ""));
    }
}
