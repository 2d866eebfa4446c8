//! What was said when mail came in: the [`Journal`] contract, its values, and its backends.
//!
//! A session is noted in pieces: its head, up to the first mail; each mail when it ends; and what follows the last one. The
//! journal is an aid for people, not part of the mail: it is bounded by bytes, its oldest pieces go first, and nobody ever
//! waits for it. Every backend passes the suite in `conformance.rs`.

#[cfg(test)]
mod conformance;
pub mod disk;
mod lines;
pub mod memory;
pub mod postgres;
mod queued;
mod write_queue;
mod writer;

use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use jiff::Timestamp;
use restante_mail::message::{MessageId, ParseMessageIdError};
use restante_mail::naming::MailboxName;
use restante_store::Result;

pub use lines::{Side, TranscriptLine, TranscriptLines};

/// The most pieces of each session that a list of sessions shows: the last ones.
pub const MAX_LISTED_CHUNKS: usize = 100;
/// What a piece takes beside its texts, about.
const CHUNK_OVERHEAD_BYTES: usize = 512;

/// Sessions and what was said in them.
///
/// All methods may be called at the same time from any number of tasks.
#[async_trait]
pub trait Journal: Send + Sync + 'static {
    /// An id for a session that begins now, above every id that was given here before, and unlike those that other nodes
    /// give.
    fn start_session(&self, now: Timestamp) -> SessionId;

    /// Takes a piece. Returns at once, whatever the backend is busy with; whoever asks from now on is told of it. When
    /// there is more than the journal holds, the pieces go that were noted first. A backend that writes them may also lose
    /// some that it has not written yet, the first of those, when more come than it can write and hold in memory.
    fn append(&self, piece: Chunk);

    /// Lets everything go that was noted before the deadline, within some seconds. Returns at once.
    fn expire_before(&self, deadline: Timestamp);

    /// Sessions, the latest first, restricted to a page. Each has its last [`MAX_LISTED_PIECES`] at most, and their lines
    /// may be left out. Costs what it returns, however many sessions there are.
    async fn sessions(&self, page: SessionPage) -> Result<Vec<Transcript>>;

    /// All that is left of a session.
    async fn session(&self, id: SessionId) -> Result<Option<Transcript>>;

    /// The head of the session that brought this message, as far as it is left, and the piece in which it came.
    async fn find_by_message(&self, mailbox: &MailboxName, id: MessageId) -> Result<Option<Transcript>>;
}

/// A session's identity: about the microsecond of its beginning, moved up where that one is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(u64);

impl SessionId {
    /// The id as a number.
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

    /// Takes only the form that [`fmt::Display`] prints, so that one session has one address.
    fn from_str(text: &str) -> Result<Self, ParseMessageIdError> {
        text.parse::<MessageId>().map(|id| Self(id.number()))
    }
}

/// Part of a session, of which there is nothing more to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// The session.
    pub session: SessionId,
    /// Its place in the session. The head is number 0, and each has the number behind the one before.
    pub number: u32,
    /// When it was noted.
    pub at: Timestamp,
    /// What is known of the session by now.
    pub info: Arc<SessionInfo>,
    /// The mail that ends in this piece.
    pub transaction: Option<Transaction>,
    /// What was said.
    pub lines: TranscriptLines,
}

/// What is known of a session as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionInfo {
    /// What was spoken.
    pub dialect: Dialect,
    /// The client's address; none on a unix socket.
    pub client: Option<IpAddr>,
    /// What the client calls itself.
    pub helo: Option<String>,
    /// How the connection is encrypted.
    pub tls: Option<Tls>,
    /// Who has logged in.
    pub user: Option<String>,
    /// When it began.
    pub started: Timestamp,
    /// How it ended.
    pub end: Option<SessionEnd>,
    /// How often the server has refused something.
    pub refusals: u32,
}

/// The protocol of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// SMTP.
    Smtp,
    /// LMTP.
    Lmtp,
}

/// What was agreed upon in a TLS handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// The version of the protocol, such as `TLSv1.3`.
    pub version: Cow<'static, str>,
    /// The cipher suite.
    pub cipher: Cow<'static, str>,
}

/// The end of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionEnd {
    /// When that was; none when the server ended before the session.
    pub at: Option<Timestamp>,
    /// A word for how it ended.
    pub reason: Cow<'static, str>,
}

/// A mail that a client has sent, or tried to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// The sender, empty for the null reverse-path.
    pub from: String,
    /// The parameters of MAIL, such as `SIZE=10 RET=HDRS`.
    pub parameters: String,
    /// The recipients that were taken.
    pub to: Vec<Recipient>,
    /// What became of it.
    pub outcome: Outcome,
    /// The reply that decided it; none when the mail was never finished and nothing refused.
    pub reply: Option<Arc<str>>,
    /// Where it is stored.
    pub messages: Vec<(MailboxName, MessageId)>,
}

/// A recipient of a mail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recipient {
    /// The address.
    pub address: String,
    /// The parameters of RCPT, such as `NOTIFY=NEVER`.
    pub parameters: String,
}

/// What became of a mail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is in the store.
    Stored,
    /// It was taken and thrown away, as policy or script wanted.
    Discarded,
    /// The server did not take it.
    Refused,
    /// The client did not finish it.
    Aborted,
}

/// A part of the list of sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionPage {
    /// Only sessions that began before this one.
    pub before: Option<SessionId>,
    /// Only sessions in which something was refused.
    pub refused_only: bool,
    /// At most so many.
    pub limit: usize,
}

/// What is left of a session, or a part of that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transcript {
    /// The session.
    pub session: SessionId,
    /// What is known of it as a whole.
    pub info: Arc<SessionInfo>,
    /// The pieces in their order; never none.
    pub chunks: Vec<Arc<Chunk>>,
}

impl Transcript {
    /// The mails in it.
    pub fn transactions(&self) -> impl Iterator<Item = &Transaction> {
        self.chunks.iter().filter_map(|piece| piece.transaction.as_ref())
    }

    /// What was said, line by line.
    pub fn lines(&self) -> impl Iterator<Item = TranscriptLine<'_>> {
        self.chunks.iter().flat_map(|piece| piece.lines.iter())
    }
}

impl Dialect {
    /// Both of them.
    pub const ALL: [Self; 2] = [Self::Smtp, Self::Lmtp];

    /// What it is called.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Smtp => "smtp",
            Self::Lmtp => "lmtp",
        }
    }
}

impl Outcome {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Stored, Self::Discarded, Self::Refused, Self::Aborted];

    /// What it is called.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stored => "stored",
            Self::Discarded => "discarded",
            Self::Refused => "refused",
            Self::Aborted => "aborted",
        }
    }
}

impl Chunk {
    /// What it takes in a journal, about.
    fn bytes(&self) -> usize {
        let cover = [&self.info.helo, &self.info.user].into_iter().flatten().map(String::len).sum::<usize>();
        let mail = self.transaction.as_ref().map_or(0, |mail| {
            let to: usize = mail.to.iter().map(|to| 48 + to.address.len() + to.parameters.len()).sum();
            mail.from.len()
                + mail.parameters.len()
                + mail.reply.as_ref().map_or(0, |reply| reply.len())
                + to
                + 96 * mail.messages.len()
        });
        CHUNK_OVERHEAD_BYTES + cover + mail + self.lines.bytes()
    }
}

/// Gives ids to sessions. Where several nodes do so, each has the microseconds for itself that leave its number when they are
/// divided by how many numbers there are.
#[derive(Debug)]
struct SessionIdGenerator {
    last_id: AtomicU64,
    node_count: u64,
    node: AtomicU64,
}

impl Default for SessionIdGenerator {
    /// All microseconds are ours.
    fn default() -> Self {
        Self::with_node_count(1)
    }
}

impl SessionIdGenerator {
    /// For so many nodes, of which this is number zero as long as nothing else is said.
    fn with_node_count(nodes: u64) -> Self {
        Self { last_id: AtomicU64::new(0), node_count: nodes, node: AtomicU64::new(0) }
    }

    fn next(&self, now: Timestamp) -> SessionId {
        let arrival = u64::try_from(now.as_microsecond()).unwrap_or(0);
        let node = self.node.load(Ordering::Relaxed);
        let ours = |micros: u64| micros - micros % self.node_count + node;
        // The clock may stand still or go back, and others may ask at the same time.
        let following = |last: u64| if ours(arrival) > last { ours(arrival) } else { ours(last + self.node_count) };
        SessionId(following(self.last_id.update(Ordering::Relaxed, Ordering::Relaxed, following)))
    }

    /// Whatever is given from now on is above this one.
    fn advance_to(&self, last: SessionId) {
        self.last_id.fetch_max(last.0, Ordering::Relaxed);
    }

    /// Whatever is given from now on is of this node.
    fn set_node(&self, node: u64) {
        self.node.store(node % self.node_count, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_never_give_the_same_number() {
        let micros = [10_000, 10_000, 10_001, 9_000, 10_100, 10_639, 10_640];
        let given = [0, 1, 63].map(|node| {
            let numbers = SessionIdGenerator::with_node_count(64);
            numbers.set_node(node);
            micros.map(|micros| numbers.next(Timestamp::from_microsecond(micros).unwrap()).number())
        });
        let zero = [9984, 10_048, 10_112, 10_176, 10_240, 10_624, 10_688];
        assert_eq!(given, [zero, zero.map(|number| number + 1), zero.map(|number| number + 63)]);
    }

    #[test]
    fn a_new_number_of_a_node_does_not_lead_back() {
        let numbers = SessionIdGenerator::with_node_count(64);
        numbers.set_node(63);
        let first = numbers.next(Timestamp::UNIX_EPOCH);
        numbers.set_node(1);
        assert_eq!((first.number(), numbers.next(Timestamp::UNIX_EPOCH).number()), (63, 65));
        numbers.advance_to(1000.into());
        assert_eq!(numbers.next(Timestamp::UNIX_EPOCH).number(), 1025);
    }
}
