//! Transcripts of mail sessions: the [`Journal`], its values, and its backends.
//!
//! A session is recorded in chunks: everything up to the first message; each message when it ends; and everything after the
//! last one. The journal is a debugging aid, and less important than the messages: its size is limited, the oldest
//! chunks are evicted first, and no session ever waits for its storage. Every backend passes the suite in
//! `tests/conformance.rs`. `stored` has the format in storage; `Serialize` is for the HTTP API.

pub mod disk;
mod groups;
mod journal;
mod lines;
pub mod postgres;
mod queued;
mod stored;
mod write_queue;
mod writer;

use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use jiff::Timestamp;
use restante_mail::message::{MessageId, ParseMessageIdError};
use restante_mail::named_enum;
use restante_mail::naming::MailboxName;
use serde::Serialize;

pub use journal::Journal;
pub use lines::{Side, TranscriptLine, TranscriptLines};

/// The maximum number of chunks of each session in a list of sessions. Earlier ones are left out.
pub const MAX_LISTED_CHUNKS: usize = 100;
/// The approximate size of a chunk without its texts.
const CHUNK_OVERHEAD_BYTES: usize = 512;

/// The id of a session: about the microsecond of its start, moved up if that is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(u64);

impl SessionId {
    /// Returns the id as a number.
    pub const fn number(self) -> u64 {
        self.0
    }
}

impl From<u64> for SessionId {
    fn from(number: u64) -> Self {
        Self(number)
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for SessionId {
    type Err = ParseMessageIdError;

    /// Parses only the format that [`fmt::Display`] writes, so that a session has one address.
    fn from_str(text: &str) -> Result<Self, ParseMessageIdError> {
        text.parse::<MessageId>().map(|id| Self(id.number()))
    }
}

/// A completed part of a session. The first chunk has no message, and the last one may have none. All others have one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// The session.
    pub session: SessionId,
    /// The number within the session. The first chunk is number 0, and there are no gaps.
    pub number: u32,
    /// When it was recorded.
    pub at: Timestamp,
    /// The state of the session at that time.
    pub info: Arc<SessionInfo>,
    /// The message that ends in this chunk.
    pub transaction: Option<Transaction>,
    /// The lines of the conversation.
    pub lines: TranscriptLines,
}

/// Properties of a session as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionInfo {
    /// The protocol.
    pub protocol: Protocol,
    /// The client's address. `None` on a unix socket.
    pub client: Option<IpAddr>,
    /// The argument of HELO, EHLO or LHLO.
    pub helo: Option<String>,
    /// How the connection is encrypted.
    pub tls: Option<Tls>,
    /// The user that has logged in.
    pub user: Option<String>,
    /// When it started.
    pub started: Timestamp,
    /// How it ended. `None` while it is open.
    pub end: Option<SessionEnd>,
    /// The number of commands that the server has refused.
    pub refusals: u32,
}

named_enum! {
    /// The protocol of a session.
    #[derive(Serialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Protocol {
        /// SMTP.
        Smtp = "smtp",
        /// LMTP.
        Lmtp = "lmtp",
        /// HTTP, with the API of a mail provider. A session is one request.
        Http = "http",
    }
}

/// The result of a TLS handshake.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Tls {
    /// The version of the protocol, such as `TLSv1.3`.
    pub version: Cow<'static, str>,
    /// The cipher suite.
    pub cipher: Cow<'static, str>,
}

/// The end of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionEnd {
    /// When it ended. `None` if the server stopped before.
    pub at: Option<Timestamp>,
    /// A word for how it ended, such as `quit`.
    pub reason: Cow<'static, str>,
}

/// A message that a client has sent, or tried to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// The sender, empty for the null reverse-path.
    pub from: String,
    /// The parameters of MAIL, such as `SIZE=10 RET=HDRS`.
    pub parameters: String,
    /// The accepted recipients.
    pub to: Vec<Recipient>,
    /// What happened to it.
    pub outcome: Outcome,
    /// The reply that decided it. `None` if the message was not completed and nothing was refused.
    pub reply: Option<Arc<str>>,
    /// The copies in the store.
    pub messages: Vec<(MailboxName, MessageId)>,
}

/// A recipient of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recipient {
    /// The address.
    pub address: String,
    /// The parameters of RCPT, such as `NOTIFY=NEVER`.
    pub parameters: String,
}

named_enum! {
    /// What happened to a message.
    #[derive(Serialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Outcome {
        /// It is in the store.
        Stored = "stored",
        /// It was accepted and discarded by the policy or a script.
        Discarded = "discarded",
        /// The server refused it.
        Refused = "refused",
        /// The client did not complete it.
        Aborted = "aborted",
    }
}

/// A range of the list of sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionPage {
    /// Only sessions with ids below this one.
    pub before: Option<SessionId>,
    /// Only sessions in which something was refused.
    pub refused_only: bool,
    /// The maximum number of sessions.
    pub limit: usize,
}

/// What is left of a session, or a part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transcript {
    /// The session.
    pub session: SessionId,
    /// Properties of the session.
    pub info: Arc<SessionInfo>,
    /// The chunks, in order. Never empty.
    pub chunks: Vec<Arc<Chunk>>,
}

impl Transcript {
    /// Returns the messages of the session.
    pub fn transactions(&self) -> impl Iterator<Item = &Transaction> {
        self.chunks.iter().filter_map(|chunk| chunk.transaction.as_ref())
    }

    /// Returns the number of messages in the session until the last chunk of this transcript, including those that are
    /// not in it.
    pub fn transaction_count(&self) -> u32 {
        let count = |chunk: &Arc<Chunk>| chunk.number.saturating_sub(u32::from(chunk.transaction.is_none()));
        self.chunks.last().map_or(0, count)
    }

    /// Returns the lines of the conversation.
    pub fn lines(&self) -> impl Iterator<Item = TranscriptLine<'_>> {
        self.chunks.iter().flat_map(|chunk| chunk.lines.iter())
    }
}

impl Chunk {
    /// Returns the approximate size, in bytes.
    fn bytes(&self) -> usize {
        let info = [&self.info.helo, &self.info.user].into_iter().flatten().map(String::len).sum::<usize>();
        let transaction = self.transaction.as_ref().map_or(0, |transaction| {
            let to: usize = transaction.to.iter().map(|to| 48 + to.address.len() + to.parameters.len()).sum();
            transaction.from.len()
                + transaction.parameters.len()
                + transaction.reply.as_ref().map_or(0, |reply| reply.len())
                + to
                + 96 * transaction.messages.len()
        });
        CHUNK_OVERHEAD_BYTES + info + transaction + self.lines.bytes()
    }
}

/// Assigns session ids. With several nodes, each uses the microseconds whose remainder, divided by the number of nodes,
/// is its own number.
#[derive(Debug)]
struct SessionIdGenerator {
    last_id: AtomicU64,
    node_count: u64,
    node: AtomicU64,
}

impl SessionIdGenerator {
    /// Creates a generator for this number of nodes. The number of this node is zero until it is set.
    fn new(node_count: u64) -> Self {
        Self { last_id: AtomicU64::new(0), node_count, node: AtomicU64::new(0) }
    }

    fn next(&self, now: Timestamp) -> SessionId {
        let now = u64::try_from(now.as_microsecond()).unwrap_or(0);
        let node = self.node.load(Ordering::Relaxed);
        // Replaces the remainder by the number of this node.
        let own_number = |micros: u64| micros - micros % self.node_count + node;
        // The clock may stand still or be set back, and other threads may call this at the same time.
        let following = |last: u64| {
            if own_number(now) > last { own_number(now) } else { own_number(last + self.node_count) }
        };
        SessionId(following(self.last_id.update(Ordering::Relaxed, Ordering::Relaxed, following)))
    }

    /// Makes all further ids higher than this one.
    fn advance_to(&self, last: SessionId) {
        self.last_id.fetch_max(last.0, Ordering::Relaxed);
    }

    /// Sets the number of this node for all further ids.
    fn set_node(&self, node: u64) {
        self.node.store(node % self.node_count, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    pub(crate) mod conformance;

    use super::*;

    #[test]
    fn nodes_never_assign_the_same_id() {
        let micros = [10_000, 10_000, 10_001, 9_000, 10_100, 10_639, 10_640];
        let assigned = [0, 1, 63].map(|node| {
            let ids = SessionIdGenerator::new(64);
            ids.set_node(node);
            micros.map(|micros| ids.next(Timestamp::from_microsecond(micros).unwrap()).number())
        });
        let zero = [9984, 10_048, 10_112, 10_176, 10_240, 10_624, 10_688];
        assert_eq!(assigned, [zero, zero.map(|number| number + 1), zero.map(|number| number + 63)]);
    }

    #[test]
    fn ids_ascend_when_node_number_changes() {
        let ids = SessionIdGenerator::new(64);
        ids.set_node(63);
        let first = ids.next(Timestamp::UNIX_EPOCH);
        ids.set_node(1);
        assert_eq!((first.number(), ids.next(Timestamp::UNIX_EPOCH).number()), (63, 65));
        ids.advance_to(1000.into());
        assert_eq!(ids.next(Timestamp::UNIX_EPOCH).number(), 1025);
    }
}
