//! The `mailpit` command: the API of Mailpit, which Mailpit and Restante have. It measures one or several servers with this API,
//! so both can be compared in one run.

use std::time::Duration;

use clap::{Args, ValueEnum};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;

use crate::Verdict;
use crate::error::Error;
use crate::http::{BaseUrl, Client};
use crate::load::{fill, parse_positive};
use crate::measure::ratio;
use crate::message::{self, Envelope, MessageKind};
use crate::report::{Report, Row};
use crate::request_load::RequestLoad;

/// The recipient and the subject of the messages.
const WORD: &str = "bench";
/// The number of messages in a list.
const PAGE: usize = 50;
/// The maximum number of messages that are requested one by one: the newest ones.
const MAX_SAMPLED: usize = 1000;

/// Options of the `mailpit` command.
#[derive(Args)]
pub(crate) struct Options {
    /// The web server, with its base path if it has one. Repeat it to compare servers: they are measured in turn, and `ratio`
    /// is the rate of each one divided by that of the first.
    #[arg(long, value_name = "URL", required = true)]
    http: Vec<String>,
    /// Delete all messages and send new ones over this SMTP server first; without it, the existing messages are read. One for
    /// each web server.
    #[arg(long, value_name = "HOST:PORT")]
    smtp: Vec<String>,
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
    /// What the search is for: by default the subject of the messages. "lazy" is a word of their text only.
    #[arg(long, default_value = WORD)]
    query: String,
    /// Concurrent connections.
    #[arg(long, default_value_t = 16, value_parser = parse_positive)]
    connections: usize,
    /// Duration of each kind of request in seconds.
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// The server's process, to measure its CPU time and memory. One for each web server.
    #[arg(long)]
    pid: Vec<u32>,
}

/// A request of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum RequestKind {
    /// The newest 50 messages.
    List,
    /// Each message in turn, as JSON.
    Get,
    /// The newest 50 messages that match a query.
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

/// A server under test.
struct Server<'a> {
    url: &'a str,
    base: BaseUrl,
    pid: Option<u32>,
    /// Its newest messages.
    list: MessageList,
}

impl Options {
    /// Checks that each server has an SMTP server and a process, if there are any.
    fn check(&self) -> Result<(), Error> {
        let is_complete = |count: usize| count == 0 || count == self.http.len();
        if is_complete(self.smtp.len()) && is_complete(self.pid.len()) {
            return Ok(());
        }
        Err(Error::Usage("--smtp and --pid are required for every --http or for none".to_owned()))
    }
}

/// Runs the `mailpit` command.
pub(crate) async fn run(options: &Options, json: bool) -> Result<Verdict, Error> {
    options.check()?;
    let mut servers = Vec::new();
    for (number, url) in options.http.iter().enumerate() {
        servers.push(prepare(options, number, url).await?);
    }
    let mut report = Report::new(json);
    let mut verdict = Verdict::Clean;
    let all = RequestKind::value_variants();
    for &kind in if options.what.is_empty() { all } else { &options.what } {
        let mut reference_rate = None;
        for Server { url, base, pid, list } in &servers {
            let duration = Some(Duration::from_secs(options.seconds));
            let load = RequestLoad { base, connections: options.connections, duration, pid: *pid };
            let measurement = load.measure(paths(kind, &list.messages, &options.query)).await?;
            let mut row = Row::default().with("server", *url).with("what", format!("{kind:?}").to_lowercase());
            if servers.len() > 1 {
                let rate = measurement.rate();
                row = row.with_rounded("ratio", ratio(rate, *reference_rate.get_or_insert(rate)), 2);
            }
            verdict = verdict.and(measurement.verdict());
            report.row(&measurement.append_to(row.with("stored", list.total)));
        }
    }
    Ok(verdict)
}

/// Fills a server if there is an SMTP server for it, and lists its messages.
async fn prepare<'a>(options: &Options, number: usize, url: &'a str) -> Result<Server<'a>, Error> {
    let base = BaseUrl::parse(url).await?;
    let mut client = Client::new(&base);
    if let Some(smtp) = options.smtp.get(number) {
        client.request("DELETE", "/api/v1/messages").await?;
        let message = message::build_message(options.kind, WORD, options.size);
        fill(smtp, vec![Envelope::to([WORD])], options.messages, message).await?;
        client.disconnect();
    }
    let list: MessageList = client.get_json(&format!("/api/v1/messages?limit={MAX_SAMPLED}")).await?;
    if list.messages.is_empty() {
        return Err(Error::Usage(format!("{url} has no messages: use --smtp to send some")));
    }
    Ok(Server { url, base, pid: options.pid.get(number).copied(), list })
}

/// Returns the paths of the requests of a kind.
fn paths(kind: RequestKind, messages: &[MessageEntry], query: &str) -> impl Iterator<Item = String> {
    let query = utf8_percent_encode(query, NON_ALPHANUMERIC);
    let (single, messages) = match kind {
        RequestKind::List => (Some(format!("/api/v1/messages?limit={PAGE}")), &[][..]),
        RequestKind::Search => (Some(format!("/api/v1/search?query={query}&limit={PAGE}")), &[][..]),
        RequestKind::Get => (None, messages),
    };
    single.into_iter().chain(messages.iter().map(|message| format!("/api/v1/message/{}", message.id)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_have_the_paths_of_mailpit() {
        let list = r#"{"total":2,"unread":1,"tags":[],"messages":[{"ID":"a","Read":false},{"ID":"b"}]}"#;
        let list: MessageList = serde_json::from_str(list).expect("a list");
        assert_eq!(list.total, 2);
        let paths = |kind| paths(kind, &list.messages, "is:read word").collect::<Vec<_>>();
        assert_eq!(paths(RequestKind::List), ["/api/v1/messages?limit=50"]);
        assert_eq!(paths(RequestKind::Get), ["/api/v1/message/a", "/api/v1/message/b"]);
        assert_eq!(paths(RequestKind::Search), ["/api/v1/search?query=is%3Aread%20word&limit=50"]);
    }
}
