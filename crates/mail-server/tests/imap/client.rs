//! A connection to an IMAP server, and its replies.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::time::timeout;

/// Longer than any reply takes.
const REPLY_TIMEOUT: Duration = Duration::from_mins(1);
/// The number of lines that are shown if a test fails.
const LAST_LINES: usize = 60;

/// The connection of a client.
pub(crate) struct Client {
    stream: BufReader<UnixStream>,
    last_tag: u32,
    /// The last lines in both directions.
    transcript: VecDeque<String>,
}

/// A reply, in which each literal is replaced by nothing.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) text: String,
    pub(crate) literals: Vec<String>,
}

impl Client {
    pub(crate) fn new(stream: UnixStream) -> Self {
        Self { stream: BufReader::new(stream), last_tag: 0, transcript: VecDeque::new() }
    }

    /// Returns the tag of the next command.
    pub(crate) fn next_tag(&self) -> String {
        format!("a{}", self.last_tag + 1)
    }

    /// Sends a command. Returns its tag.
    pub(crate) async fn send_command(&mut self, command: &str) -> String {
        let tag = self.next_tag();
        self.last_tag += 1;
        self.send_line(&format!("{tag} {command}")).await;
        tag
    }

    pub(crate) async fn send_line(&mut self, line: &str) {
        self.record(format!("C: {line}"));
        self.stream.write_all(format!("{line}\r\n").as_bytes()).await.expect("the server is connected");
    }

    /// Returns the next reply. Panics if the server closes the connection or sends nothing for a long time.
    pub(crate) async fn reply(&mut self) -> Reply {
        let (mut text, mut literals) = (String::new(), Vec::new());
        loop {
            let line = self.line().await;
            self.record(format!("S: {line}"));
            let Some(length) = literal_length(&line) else {
                text.push_str(&line);
                return Reply { text, literals };
            };
            text.push_str(&line[..line.rfind('{').unwrap_or(0)]);
            let mut octets = vec![0; length];
            self.stream.read_exact(&mut octets).await.expect("the literal is complete");
            literals.push(String::from_utf8(octets).expect("messages of this test are ASCII"));
        }
    }

    async fn line(&mut self) -> String {
        let mut line = String::new();
        let read = timeout(REPLY_TIMEOUT, self.stream.read_line(&mut line)).await;
        read.expect("a reply arrives").expect("replies are UTF-8");
        line.strip_suffix("\r\n").expect("the server does not close the connection").to_owned()
    }

    fn record(&mut self, line: String) {
        if self.transcript.len() == LAST_LINES {
            self.transcript.pop_front();
        }
        self.transcript.push_back(line);
    }

    /// Returns the last lines in both directions.
    pub(crate) fn transcript(&self) -> impl Iterator<Item = &str> {
        self.transcript.iter().map(String::as_str)
    }
}

/// Returns the length of the literal after a line.
fn literal_length(line: &str) -> Option<usize> {
    line.strip_suffix('}')?.rsplit_once('{')?.1.parse().ok()
}
