//! The transcript of a message, the list of sessions, and one session, as JSON. The journal of the mailroom stores
//! them.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use jiff::Timestamp;
use restante_api_types::{Identifier, Time};
use restante_auth::Grant;
use restante_http_connection::memory::MemoryPermit;
use restante_http_core::extractors::messages::PathCopy;
use restante_http_core::extractors::parameters::{PathSession, RequestGrant, RequireAdmin};
use restante_http_core::extractors::query::Parsed;
use restante_http_core::response::problem::Problem;
use restante_http_core::response::{json, schema, success};
use restante_http_core::server::Server;
use restante_journal::{self as journal, SessionInfo, SessionPage};
use restante_mail::address::{Address, Alphabet};
use restante_mail::message::MessageId;
use restante_mail::naming::MailboxName;
use restante_mailroom::Mailroom;
use serde::Serialize;
use utoipa::ToSchema;

use crate::v2::queue::visibility;

/// The approximate size of a session without its transactions and lines. A transaction takes less.
const RECORD_BYTES: usize = 512;
/// The approximate size of a line, without its text.
pub(super) const LINE_BYTES: usize = 128;

type HandlerResult = Result<Response, Problem>;

/// Returns the transcript of the delivery of a message: the start of its session, and its own transaction. Leaves out
/// the other transactions of the session, and recipients and copies in mailboxes that the client may not see.
pub(crate) async fn transcript(
    State(server): State<Arc<Server>>,
    RequestGrant(grant): RequestGrant,
    PathCopy(copy): PathCopy,
) -> HandlerResult {
    let Some(journal) = server.mailroom.journal() else { return Err(Problem::NoTranscript) };
    let transcript = journal.find_by_message(&copy.mailbox, copy.id).await?.ok_or(Problem::NoTranscript)?;
    transcript_response(&server, transcript, grant, None).await
}

/// Returns a session with its transcript, as far as it is still stored.
pub(crate) async fn session(
    State(server): State<Arc<Server>>,
    _: RequireAdmin,
    PathSession(id): PathSession,
) -> HandlerResult {
    let Some(journal) = server.mailroom.journal() else { return Err(Problem::NoSuchSession) };
    let transcript = journal.session(id).await?.ok_or(Problem::NoSuchSession)?;
    let count = transcript.transaction_count();
    transcript_response(&server, transcript, Grant::EVERYTHING, Some(count)).await
}

/// Lists sessions, the newest first.
pub(crate) async fn list(
    State(server): State<Arc<Server>>,
    _: RequireAdmin,
    Parsed(page): Parsed<SessionPage>,
) -> HandlerResult {
    let this = &server;
    let render = |memory: MemoryPermit| async move {
        // One more than requested, to know whether this is the last page.
        let one_more = SessionPage { limit: page.limit.saturating_add(1), ..page };
        let mut sessions = match this.mailroom.journal() {
            Some(journal) => journal.sessions(one_more).await?,
            None => Vec::new(),
        };
        let is_last = sessions.len() <= page.limit;
        sessions.truncate(page.limit);
        let next = sessions.last().filter(|_| !is_last).map(|last| last.session.to_string());
        let size = sessions.iter().map(estimated_size).sum();
        let work = this.renderer.work_permit(size).await?;
        let write = move || {
            let session = |session| Session::new(session, None, Some(session.transaction_count()));
            let sessions = sessions.iter().map(session).collect();
            Ok::<_, Problem>(memory.charge(json::body_with_capacity(&Sessions { sessions, next }, size)?)?)
        };
        work.run(write).await?
    };
    Ok(success::no_store_body(server.renderer.within_budget(render).await?))
}

/// Returns the response with a session and its transcript, as far as the grant allows the mailboxes.
async fn transcript_response(
    server: &Server,
    transcript: journal::Transcript,
    grant: Grant,
    transaction_count: Option<u32>,
) -> HandlerResult {
    let size = estimated_size(&transcript) + transcript.lines().map(|line| LINE_BYTES + line.text.len()).sum::<usize>();
    let write = |(transcript, visibility, count): &(journal::Transcript, Visibility, Option<u32>), size| {
        json::body_with_capacity(&Transcript::new(transcript, visibility, *count), size)
    };
    let value = (transcript, visibility(server, grant), transaction_count);
    Ok(success::no_store_body(server.renderer.render_value(value, size, None, write).await?))
}

/// Selects what a client may see of a session: only what concerns mailboxes that its grant allows.
pub(crate) struct Visibility {
    pub(super) grant: Grant,
    pub(super) mailroom: Arc<Mailroom>,
}

impl Visibility {
    fn shows_mailbox(&self, mailbox: &MailboxName) -> bool {
        self.grant.covers(mailbox)
    }

    /// Returns whether an address may be seen: whether its mailbox may be. That is one of the mailboxes with copies, in any
    /// project or in none, or a mailbox in no project. If several have its name, all of them must be visible. Text that is
    /// not an address is hidden, because it could contain anything.
    pub(super) fn shows_address<'m>(&self, address: &str, copies: impl Iterator<Item = &'m MailboxName>) -> bool {
        if self.grant.covers_all_mailboxes() {
            return true;
        }
        let address = Address::parse(address, Alphabet::Utf8).ok();
        let Some(mailbox) = address.and_then(|address| self.mailroom.mailbox_of(&address).ok()) else { return false };
        let mut copies = copies.filter(|copy| copy.without_project() == mailbox.as_str()).peekable();
        if copies.peek().is_none() { self.shows_mailbox(&mailbox) } else { copies.all(|copy| self.shows_mailbox(copy)) }
    }

    /// Returns whether a command may be seen. A command that names a mailbox may be seen only if the mailbox may be.
    fn shows_command<'m>(&self, text: &str, copies: impl Iterator<Item = &'m MailboxName>) -> bool {
        let names_mailbox = ["RCPT", "VRFY", "EXPN"].iter().any(|verb| {
            text.trim_start().get(..verb.len()).is_some_and(|beginning| beginning.eq_ignore_ascii_case(verb))
        });
        let address = || text.split_once('<').and_then(|(_, rest)| rest.split_once('>')).map(|(address, _)| address);
        self.grant.covers_all_mailboxes()
            || !names_mailbox
            || address().is_some_and(|address| self.shows_address(address, copies))
    }

    /// Returns the lines that may be seen. The replies to a hidden command are hidden too, because their text may
    /// repeat the address.
    fn visible_lines<'t>(
        &self,
        transcript: &'t journal::Transcript,
    ) -> impl Iterator<Item = journal::TranscriptLine<'t>> {
        let mut is_hidden = false;
        transcript.lines().filter(move |line| {
            if line.side == journal::Side::Client {
                let copies = transcript.transactions().flat_map(|transaction| &transaction.messages);
                is_hidden = !self.shows_command(line.text, copies.map(|(mailbox, _)| mailbox));
            }
            !is_hidden
        })
    }
}

/// A page of the list of sessions, the newest first.
#[derive(Serialize, ToSchema)]
pub(crate) struct Sessions<'a> {
    sessions: Vec<Session<'a>>,
    /// The value of `before` for the next page, or null on the last page.
    #[schema(required)]
    next: Option<String>,
}

/// A session and its transcript.
#[derive(Serialize, ToSchema)]
pub(crate) struct Transcript<'a> {
    session: Session<'a>,
    lines: Vec<Line<'a>>,
}

impl<'a> Transcript<'a> {
    fn new(transcript: &'a journal::Transcript, visibility: &Visibility, transaction_count: Option<u32>) -> Self {
        let started = transcript.info.started;
        Self {
            session: Session::new(transcript, Some(visibility), transaction_count),
            lines: visibility.visible_lines(transcript).map(|line| Line::new(started, &line)).collect(),
        }
    }
}

/// An SMTP or LMTP session.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
struct Session<'a> {
    #[schema(pattern = "^[1-9][0-9]{0,19}$")]
    id: String,
    #[schema(value_type = schema::Protocol)]
    protocol: journal::Protocol,
    /// The IP address of the client, or null on a Unix socket.
    #[schema(required)]
    client: Option<String>,
    /// The host name that the client sent in HELO, EHLO or LHLO.
    #[schema(required)]
    helo: Option<&'a str>,
    #[schema(required, value_type = Option<schema::Tls>)]
    tls: Option<&'a journal::Tls>,
    /// The user that logged in.
    #[schema(required)]
    user: Option<&'a str>,
    #[schema(value_type = String, format = DateTime)]
    started: Time,
    /// The same time in milliseconds since 1970-01-01 UTC.
    started_millis: i64,
    /// The end of the session in milliseconds since 1970-01-01 UTC. Null while the session is open, or if the end is
    /// not known.
    #[schema(required)]
    ended_millis: Option<i64>,
    /// How the session ended.
    #[schema(required)]
    ending: Option<&'a str>,
    /// The transactions. If there are fewer than `transaction-count`, these are the last ones: a list has at most a
    /// hundred of each session, and the start of a session may no longer be stored.
    transactions: Vec<Transaction<'a>>,
    /// The number of all transactions of the session. Null in the transcript of a message, which has only its own
    /// transaction.
    #[schema(required, value_type = Option<u64>)]
    transaction_count: Option<u32>,
    /// The number of refused commands.
    #[schema(value_type = u64)]
    refused: u32,
}

impl<'a> Session<'a> {
    /// Creates the record of a session, with everything in it or only what may be seen.
    fn new(
        transcript: &'a journal::Transcript,
        visibility: Option<&Visibility>,
        transaction_count: Option<u32>,
    ) -> Self {
        let SessionInfo { protocol, client, helo, tls, user, started, end, refusals: refused } =
            transcript.info.as_ref();
        Self {
            id: transcript.session.to_string(),
            protocol: *protocol,
            client: client.map(|ip| ip.to_string()),
            helo: helo.as_deref(),
            tls: tls.as_ref(),
            user: user.as_deref(),
            started: Time(*started),
            started_millis: started.as_millisecond(),
            ended_millis: end.as_ref().and_then(|end| end.at).map(Timestamp::as_millisecond),
            ending: end.as_ref().map(|end| end.reason.as_ref()),
            transactions: transcript
                .transactions()
                .map(|transaction| Transaction::new(transaction, visibility))
                .collect(),
            transaction_count,
            refused: *refused,
        }
    }
}

/// A mail transaction of a session.
#[derive(Serialize, ToSchema)]
struct Transaction<'a> {
    /// The sender of the envelope. Empty for a bounce.
    from: &'a str,
    /// The recipients of the envelope.
    to: Vec<&'a str>,
    parameters: Parameters<'a>,
    #[schema(value_type = schema::Outcome)]
    outcome: journal::Outcome,
    /// The final reply of the server.
    #[schema(required)]
    reply: Option<&'a str>,
    /// The stored copies, in the mailboxes that the credentials allow.
    messages: Vec<Identifier<'a>>,
}

impl<'a> Transaction<'a> {
    fn new(transaction: &'a journal::Transaction, visibility: Option<&Visibility>) -> Self {
        let copies = || transaction.messages.iter().map(|(mailbox, _)| mailbox);
        let is_visible =
            |address: &str| visibility.is_none_or(|visibility| visibility.shows_address(address, copies()));
        let recipients = || transaction.to.iter().filter(|to| is_visible(&to.address));
        let home = visibility.and_then(|visibility| visibility.grant.home());
        let messages = transaction
            .messages
            .iter()
            .filter(|(mailbox, _)| visibility.is_none_or(|visibility| visibility.shows_mailbox(mailbox)));
        let identifier = |(mailbox, id): &'a (MailboxName, MessageId)| Identifier {
            mailbox: mailbox.shown_in(home).into(),
            id: id.to_string().into(),
        };
        Self {
            from: &transaction.from,
            to: recipients().map(|to| to.address.as_str()).collect(),
            parameters: Parameters {
                mail: &transaction.parameters,
                rcpt: recipients().map(|to| to.parameters.as_str()).collect(),
            },
            outcome: transaction.outcome,
            reply: transaction.reply.as_deref(),
            messages: messages.map(identifier).collect(),
        }
    }
}

/// The parameters after the addresses, such as `SIZE`, `RET`, `ENVID`, `NOTIFY` and `ORCPT`.
#[derive(Serialize, ToSchema)]
struct Parameters<'a> {
    mail: &'a str,
    /// One entry for each recipient.
    rcpt: Vec<&'a str>,
}

/// A line of the transcript, without secrets.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Line<'a> {
    #[schema(value_type = String, format = DateTime)]
    at: Time,
    /// The same time in milliseconds since 1970-01-01 UTC.
    posix_millis: i64,
    /// The time since the start of the session, in milliseconds.
    after_millis: u64,
    #[schema(value_type = schema::Side)]
    from: journal::Side,
    text: &'a str,
}

impl<'a> Line<'a> {
    pub(super) fn new(started: Timestamp, line: &journal::TranscriptLine<'a>) -> Self {
        // The journal contains only valid times, so the fallback is never used.
        let micros = started.as_microsecond().saturating_add_unsigned(line.micros);
        let at = Timestamp::from_microsecond(micros).unwrap_or(started);
        Self {
            at: Time(at),
            posix_millis: at.as_millisecond(),
            after_millis: line.micros / 1000,
            from: line.side,
            text: line.text,
        }
    }
}

/// Returns the approximate size of the record of a session.
fn estimated_size(transcript: &journal::Transcript) -> usize {
    let recipients =
        transcript.transactions().map(|transaction| transaction.to.len() + transaction.messages.len()).sum::<usize>();
    RECORD_BYTES * (1 + transcript.transactions().count()) + RECORD_BYTES / 4 * recipients
}
