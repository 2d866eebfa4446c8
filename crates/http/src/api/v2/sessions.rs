//! What was said when mail came in: the transcript of a message, the list of sessions, and one of them. The mailroom's
//! journal has it; here it becomes JSON.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use jiff::Timestamp;
use restante_access::Grant;
use restante_journal::{Cover, Line, SessionId, SessionPage, Side, Transaction, Transcript};
use restante_mail::address::{Address, Alphabet};
use restante_mail::naming::MailboxName;
use restante_mailroom::Mailroom;

use crate::connection::memory::{Allowance, SMALL};
use crate::extractors::parameters::{Administrator, OneMessage, OneSession, Permitted, SomeSessions};
use crate::response::message_json::{date, field};
use crate::response::problem::Problem;
use crate::response::{json, success};
use crate::state::Server;

/// What a session takes beside its mails and lines, roughly; a mail takes less.
const RECORD: usize = 512;
/// What a line takes beside its text, roughly.
const LINE: usize = 128;

type Answer = Result<Response, Problem>;

/// What was said when a message came: the head of its session, and the mail itself. The session's other mails are left out, and
/// so are recipients and copies in mailboxes that the client may not see.
pub(crate) async fn transcript(
    State(server): State<Arc<Server>>,
    Permitted(grant): Permitted,
    target: OneMessage,
) -> Answer {
    let message = server.find(&target).await?;
    let Some(journal) = server.mailroom.journal() else { return Err(Problem::NoTranscript) };
    let told = journal.of_message(&message.mailbox, message.id).await?.ok_or(Problem::NoTranscript)?;
    server.tell_session(told, grant).await
}

/// One session, as far as it is kept.
pub(crate) async fn session(State(server): State<Arc<Server>>, _: Administrator, OneSession(id): OneSession) -> Answer {
    let Some(journal) = server.mailroom.journal() else { return Err(Problem::NoSuchSession) };
    let told = journal.session(id).await?.ok_or(Problem::NoSuchSession)?;
    server.tell_session(told, Grant::EVERYTHING).await
}

/// The list of sessions, the latest first.
pub(crate) async fn list(
    State(server): State<Arc<Server>>,
    _: Administrator,
    SomeSessions(page): SomeSessions,
) -> Answer {
    let this = &server;
    let make = |allowance: Allowance| async move {
        // One more tells whether there are more.
        let one_more = SessionPage { limit: page.limit.saturating_add(1), ..page };
        let mut sessions = match this.mailroom.journal() {
            Some(journal) => journal.sessions(one_more).await?,
            None => Vec::new(),
        };
        let is_last = sessions.len() <= page.limit;
        sessions.truncate(page.limit);
        let next = sessions.last().filter(|_| !is_last).map(|last| last.session);
        let size = sessions.iter().map(size).sum();
        let turn = this.turn(size, SMALL).await?;
        Ok(turn.work(move || allowance.cover(listing(&sessions, next, size))).await??)
    };
    Ok(success::fresh(server.within_budget(make).await?))
}

impl Server {
    /// Tells what is known of a session, and what was said, as far as it concerns the mailboxes of the grant.
    async fn tell_session(&self, told: Transcript, grant: Grant) -> Answer {
        let size = size(&told) + told.lines().map(|said| LINE + said.text.len()).sum::<usize>();
        let visible = Visible { grant, mailroom: self.mailroom.clone() };
        let (this, told, visible) = (self, &told, &visible);
        let make = |allowance: Allowance| async move {
            let turn = this.turn(size, SMALL).await?;
            let (told, visible) = (told.clone(), visible.clone());
            Ok(turn.work(move || allowance.cover(whole(&told, &visible, size))).await??)
        };
        Ok(success::fresh(self.within_budget(make).await?))
    }
}

/// What of a session a client may see: what concerns the mailboxes that its grant reaches.
#[derive(Clone)]
struct Visible {
    grant: Grant,
    mailroom: Arc<Mailroom>,
}

impl Visible {
    fn mailbox(&self, mailbox: &MailboxName) -> bool {
        self.grant.reaches(mailbox)
    }

    /// Whether the mailbox of an address may be seen. What is no address may be anything.
    fn address(&self, address: &str) -> bool {
        self.grant.reaches_all()
            || Address::parse(address, Alphabet::Utf8)
                .ok()
                .and_then(|address| self.mailroom.mailbox_of(&address).ok())
                .is_some_and(|mailbox| self.mailbox(&mailbox))
    }

    /// Whether a command may be seen: those that name a mailbox only if that one may be.
    fn command(&self, text: &str) -> bool {
        let names_mailbox = ["RCPT", "VRFY", "EXPN"].iter().any(|verb| {
            text.trim_start().get(..verb.len()).is_some_and(|beginning| beginning.eq_ignore_ascii_case(verb))
        });
        let address = || text.split_once('<').and_then(|(_, rest)| rest.split_once('>')).map(|(address, _)| address);
        self.grant.reaches_all() || !names_mailbox || address().is_some_and(|address| self.address(address))
    }

    /// The lines that may be seen. The replies to a hidden command are hidden as well: their text may repeat the address.
    fn lines<'t>(&self, told: &'t Transcript) -> impl Iterator<Item = Line<'t>> {
        let mut is_hidden = false;
        told.lines().filter(move |line| {
            if line.side == Side::Client {
                is_hidden = !self.command(line.text);
            }
            !is_hidden
        })
    }
}

fn listing(sessions: &[Transcript], next: Option<SessionId>, size: usize) -> Bytes {
    let mut out = Vec::with_capacity(size);
    out.extend_from_slice(b"{\"sessions\":");
    json::array(&mut out, sessions, |out, told| record(out, told, None));
    out.extend_from_slice(b",\"next\":");
    match next {
        Some(id) => json::display(&mut out, format_args!("\"{id}\"")),
        None => out.extend_from_slice(b"null"),
    }
    out.extend_from_slice(b"}\n");
    out.into()
}

fn whole(told: &Transcript, visible: &Visible, size: usize) -> Bytes {
    let mut out = Vec::with_capacity(size);
    out.extend_from_slice(b"{\"session\":");
    record(&mut out, told, Some(visible));
    out.extend_from_slice(b",\"lines\":");
    let started = told.cover.started;
    json::array(&mut out, visible.lines(told), |out, said| line(out, started, &said));
    out.extend_from_slice(b"}\n");
    out.into()
}

/// Appends the record of a session, with everything in it or what may be seen.
fn record(out: &mut Vec<u8>, told: &Transcript, visible: Option<&Visible>) {
    let Cover { dialect, client, helo, tls, user, started, end, refused } = told.cover.as_ref();
    json::display(out, format_args!("{{\"id\":\"{}\",\"protocol\":\"{}\",\"client\":", told.session, dialect.name()));
    match client {
        Some(ip) => json::display(out, format_args!("\"{ip}\"")),
        None => out.extend_from_slice(b"null"),
    }
    optional(out, "helo", helo.as_deref());
    out.extend_from_slice(b",\"tls\":");
    match tls {
        Some(tls) => {
            out.push(b'{');
            field(out, "version", &tls.version);
            out.push(b',');
            field(out, "cipher", &tls.cipher);
            out.push(b'}');
        }
        None => out.extend_from_slice(b"null"),
    }
    optional(out, "user", user.as_deref());
    out.extend_from_slice(b",\"started\":\"");
    date(out, *started);
    json::display(out, format_args!("\",\"started-millis\":{},\"ended-millis\":", started.as_millisecond()));
    match end.as_ref().and_then(|end| end.at) {
        Some(at) => json::display(out, at.as_millisecond()),
        None => out.extend_from_slice(b"null"),
    }
    optional(out, "ending", end.as_ref().map(|end| end.how.as_ref()));
    out.extend_from_slice(b",\"transactions\":");
    json::array(out, told.transactions(), |out, mail| transaction(out, mail, visible));
    json::display(out, format_args!(",\"refused\":{refused}}}"));
}

fn transaction(out: &mut Vec<u8>, of: &Transaction, visible: Option<&Visible>) {
    let recipients = || of.to.iter().filter(|to| visible.is_none_or(|visible| visible.address(&to.address)));
    out.push(b'{');
    field(out, "from", &of.from);
    out.extend_from_slice(b",\"to\":");
    json::array(out, recipients(), |out, to| json::string(out, &to.address));
    out.extend_from_slice(b",\"parameters\":{");
    field(out, "mail", &of.parameters);
    out.extend_from_slice(b",\"rcpt\":");
    json::array(out, recipients(), |out, to| json::string(out, &to.parameters));
    out.extend_from_slice(b"},");
    field(out, "outcome", of.outcome.name());
    optional(out, "reply", of.reply.as_deref());
    out.extend_from_slice(b",\"messages\":");
    let messages = of.messages.iter().filter(|(mailbox, _)| visible.is_none_or(|visible| visible.mailbox(mailbox)));
    json::array(out, messages, |out, (mailbox, id)| {
        out.push(b'{');
        field(out, "mailbox", mailbox.as_str());
        json::display(out, format_args!(",\"id\":\"{id}\"}}"));
    });
    out.push(b'}');
}

fn line(out: &mut Vec<u8>, started: Timestamp, said: &Line<'_>) {
    // A time that no calendar has was never noted.
    let micros = started.as_microsecond().saturating_add_unsigned(said.micros);
    let at = Timestamp::from_microsecond(micros).unwrap_or(started);
    out.extend_from_slice(b"{\"at\":\"");
    date(out, at);
    let (millis, after) = (at.as_millisecond(), said.micros / 1000);
    json::display(out, format_args!("\",\"posix-millis\":{millis},\"after-millis\":{after},"));
    field(out, "from", said.side.name());
    out.push(b',');
    field(out, "text", said.text);
    out.push(b'}');
}

/// Appends one more field, which may have no value.
fn optional(out: &mut Vec<u8>, name: &str, value: Option<&str>) {
    out.push(b',');
    match value {
        Some(value) => field(out, name, value),
        None => json::display(out, format_args!("\"{name}\":null")),
    }
}

/// How long the record of a session becomes, roughly.
fn size(told: &Transcript) -> usize {
    let recipients = told.transactions().map(|mail| mail.to.len() + mail.messages.len()).sum::<usize>();
    RECORD * (1 + told.transactions().count()) + RECORD / 4 * recipients
}
