//! The mailbox API over HTTP: paths and lists, and the `http` command that measures its performance.

use std::io;
use std::time::Duration;

use clap::{Args, ValueEnum};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;

use crate::Verdict;
use crate::error::Error;
use crate::http::{BaseUrl, Client};
use crate::load::{fill, parse_positive};
use crate::message::{self, Envelope, MessageKind, mailbox_name};
use crate::report::{Report, Row};
use crate::request_load::RequestLoad;

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

/// All but the unreserved characters, which are escaped in a segment of a path (RFC 3986 section 2.3).
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
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
pub(crate) async fn run(options: &Options, json: bool) -> Result<Verdict, Error> {
    let base = BaseUrl::parse(&options.http).await?;
    let mut client = Client::new(&base);
    let names = options.names();
    if let Some(smtp) = &options.smtp {
        for name in &names {
            purge(&mut client, name).await?;
        }
        let envelopes = names.iter().map(|name| Envelope::to([name.as_str()])).collect();
        let message = message::build_message(options.kind, "bench", options.size);
        fill(smtp, envelopes, options.messages, message).await?;
        client.disconnect();
    }
    let (stored, paths) = request_paths(&mut client, &names, options.what).await?;
    if stored == 0 {
        return Err(Error::Usage(format!("mailbox {:?} is empty: use --smtp to fill it", names[0])));
    }
    if options.pause {
        eprintln!("restante-bench: {stored} messages were found; press Enter to begin");
        io::stdin().read_line(&mut String::new()).map_err(|error| Error::Io("waiting for Enter", error))?;
    }

    let duration = (!options.once).then(|| Duration::from_secs(options.seconds));
    let load = RequestLoad { base: &base, connections: options.connections, duration, pid: options.pid };
    let measurement = load.measure(paths.into_iter()).await?;
    let verdict = measurement.verdict();
    let row = Row::default()
        .with("what", format!("{:?}", options.what).to_lowercase())
        .with("mailboxes", names.len())
        .with("stored", stored);
    Report::new(json).row(&measurement.append_to(row));
    Ok(verdict)
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

/// Lists a mailbox.
pub(crate) async fn list(client: &mut Client, mailbox: &str) -> Result<Vec<ListEntry>, Error> {
    client.get_json(&mailbox_path(mailbox)).await
}

/// Deletes all messages of a mailbox.
pub(crate) async fn purge(client: &mut Client, mailbox: &str) -> Result<(), Error> {
    client.request("DELETE", &mailbox_path(mailbox)).await.map(|_| ())
}

impl RequestKind {
    /// Returns the path of the request. Those about one message use the id.
    fn path(self, mailbox: &str, id: &str) -> String {
        match self {
            Self::List => mailbox_path(mailbox),
            Self::Get => message_path(mailbox, id),
            Self::Source => message_path(mailbox, id) + "/source",
            Self::Latest => message_path(mailbox, "latest"),
            Self::Page => format!("{}?limit=50&before={id}", mailbox_path(mailbox)),
            Self::AllPage => format!("/api/v2/messages?limit=50&before={id}"),
            Self::AllFirst => "/api/v2/messages?limit=50".to_owned(),
            Self::Message => format!("/api/v2/messages/{id}"),
        }
    }

    /// Returns whether there is one request for each message, instead of one for each mailbox.
    fn is_per_message(self) -> bool {
        !matches!(self, Self::List | Self::Latest | Self::AllFirst)
    }
}

/// Returns the number of stored messages and the paths to request. The mailboxes alternate.
async fn request_paths(
    client: &mut Client,
    names: &[String],
    kind: RequestKind,
) -> Result<(usize, Vec<String>), Error> {
    let count = MAX_SAMPLED.div_ceil(names.len());
    let mut stored = 0;
    let mut rounds: Vec<Vec<String>> = Vec::new();
    for name in names {
        let entries = list(client, name).await?;
        stored += entries.len();
        let paths: Vec<_> = if kind.is_per_message() {
            evenly_spaced(&entries, count).map(|entry| kind.path(name, &entry.id)).collect()
        } else {
            vec![kind.path(name, "")]
        };
        rounds.resize_with(rounds.len().max(paths.len()), Vec::new);
        for (round, path) in rounds.iter_mut().zip(paths) {
            round.push(path);
        }
    }
    Ok((stored, rounds.concat()))
}

/// Returns at most `count` evenly spaced entries.
fn evenly_spaced(entries: &[ListEntry], count: usize) -> impl Iterator<Item = &ListEntry> {
    let count = count.min(entries.len());
    (0..count).map(move |n| &entries[n * entries.len() / count])
}

fn mailbox_path(mailbox: &str) -> String {
    format!("/api/v1/mailbox/{}", utf8_percent_encode(mailbox, RESERVED))
}

/// Returns the path of one message; `latest` is the id of the newest.
pub(crate) fn message_path(mailbox: &str, id: &str) -> String {
    format!("{}/{}", mailbox_path(mailbox), utf8_percent_encode(id, RESERVED))
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
    fn list_entries_need_only_an_id() {
        let list = r#"[{"mailbox":"m","id":"1","subject":"s","size":3,"new":[{}]},{"id":"2"}]"#;
        let entries: Vec<ListEntry> = serde_json::from_str(list).expect("a list");
        assert_eq!((entries[0].id.as_str(), entries[0].subject.as_str()), ("1", "s"));
        assert_eq!((entries[1].id.as_str(), entries[1].subject.as_str()), ("2", ""));
    }
}
