//! The session as the driver sees it: its states, the step that moves input through them, and the answers to what it
//! asked. What each command does is in [`super::obey`].

use std::net::IpAddr;
use std::sync::Arc;

use restante_mail::address::{Address, Alphabet};
use restante_mail::envelope::{Envelope, Peer, Refusal};

use super::auth::Exchange;
use super::body::{Body, TooLong};
use super::chunk::Chunk;
use super::command::{self, Fault};
use super::data::DataReader;
use super::line::{AUTH_LIMIT, Line, LineReader};
use super::record::{Recorded, Recording};
use super::{Action, Dialect, Settings, reply};

/// One connection's conversation, from the greeting to the end.
#[derive(Debug)]
pub struct Session {
    pub(super) settings: Arc<Settings>,
    pub(super) ip: Option<IpAddr>,
    pub(super) link: Link,
    pub(super) state: State,
    lines: LineReader,
    replies: Vec<u8>,
    bad_commands: usize,
    recording: Option<Recording>,
}

/// What carries the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Link {
    Plain,
    Tls,
}

/// Where the conversation stands; see the tables of [`super`].
#[derive(Debug)]
pub(super) enum State {
    /// A command is due.
    Idle(Idle),
    Challenge(Client, Exchange),
    Login(Client),
    Sender(Transaction),
    Recipient(Transaction, Address),
    Data(Transaction, DataReader),
    Chunk(Transaction, Body, Chunk),
    Swallow(Idle, Chunk, &'static str),
    /// With the number of replies that the peer waits for.
    Delivering(Client, usize),
    Tls,
    Closed,
}

/// The states in which commands are taken.
#[derive(Debug)]
pub(super) enum Idle {
    Fresh,
    Ready(Client),
    Mail(Transaction),
    Chunked(Transaction, Body),
}

/// A peer that gave its name.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) peer: Peer,
    pub(super) trust: Trust,
}

/// Whether the peer has proved who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    Anonymous,
    Authenticated,
}

/// A mail under way.
#[derive(Debug)]
pub(super) struct Transaction {
    pub(super) envelope: Envelope,
    pub(super) trust: Trust,
    pub(super) announced: usize,
    pub(super) alphabet: Alphabet,
}

impl Transaction {
    pub(super) fn into_client(self) -> Client {
        Client { peer: self.envelope.peer, trust: self.trust }
    }
}

impl Session {
    /// A session with a peer that has just connected; `tls` says whether the connection began with a TLS handshake.
    pub fn new(settings: Arc<Settings>, ip: Option<IpAddr>, tls: bool) -> Self {
        Self {
            settings,
            ip,
            link: if tls { Link::Tls } else { Link::Plain },
            state: State::Idle(Idle::Fresh),
            lines: LineReader::default(),
            replies: Vec::new(),
            bad_commands: 0,
            recording: None,
        }
    }

    /// Queues the greeting.
    pub fn greet(&mut self) {
        self.say(reply::greeting);
    }

    /// Consumes input and says what to do next.
    ///
    /// Returns how much of the input was consumed. The rest is given again: at once behind an answered question, and
    /// with more input behind it after [`Action::Read`]. That rest is an incomplete line of bounded length. While a
    /// question is open nothing is consumed.
    pub fn step(&mut self, input: &[u8]) -> (usize, Action) {
        let mut consumed = 0;
        loop {
            let (taken, action) = self.advance(&input[consumed..]);
            consumed += taken;
            if let Some(action) = action {
                return (consumed, action);
            }
        }
    }

    /// The replies queued so far. The driver writes and clears them, all at once, before it waits for anything.
    pub fn replies(&mut self) -> &mut Vec<u8> {
        &mut self.replies
    }

    /// The mail under way: the peer, the sender (also while it is asked about), and the recipients accepted so far.
    pub fn envelope(&self) -> Option<&Envelope> {
        match &self.state {
            State::Sender(mail)
            | State::Recipient(mail, _)
            | State::Data(mail, _)
            | State::Chunk(mail, ..)
            | State::Idle(Idle::Mail(mail) | Idle::Chunked(mail, _))
            | State::Swallow(Idle::Mail(mail) | Idle::Chunked(mail, _), ..) => Some(&mail.envelope),
            _ => None,
        }
    }

    /// The bytes of mail held now.
    pub fn receiving(&self) -> usize {
        match &self.state {
            State::Data(_, reader) => reader.len(),
            State::Chunk(_, body, _)
            | State::Idle(Idle::Chunked(_, body))
            | State::Swallow(Idle::Chunked(_, body), ..) => body.len(),
            _ => 0,
        }
    }

    /// Answers [`Action::Sender`].
    pub fn sender(&mut self, answer: Result<(), Refusal>) {
        self.state = match std::mem::replace(&mut self.state, State::Closed) {
            State::Sender(mail) => match answer {
                Ok(()) => {
                    self.reply(reply::SENDER_OK);
                    State::Idle(Idle::Mail(mail))
                }
                Err(refusal) => {
                    self.refuse(&refusal);
                    State::Idle(Idle::Ready(mail.into_client()))
                }
            },
            other => other,
        };
    }

    /// Answers [`Action::Recipient`].
    pub fn recipient(&mut self, answer: Result<(), Refusal>) {
        self.state = match std::mem::replace(&mut self.state, State::Closed) {
            State::Recipient(mut mail, recipient) => {
                match answer {
                    Ok(()) => {
                        self.reply(reply::RECIPIENT_OK);
                        mail.envelope.recipients.push(recipient);
                    }
                    Err(refusal) => self.refuse(&refusal),
                }
                State::Idle(Idle::Mail(mail))
            }
            other => other,
        };
    }

    /// Answers [`Action::Authenticate`]: whether the password is right, or why that cannot be said now.
    pub fn authenticated(&mut self, answer: Result<bool, Refusal>) {
        let mut client = match std::mem::replace(&mut self.state, State::Closed) {
            State::Login(client) => client,
            other => {
                self.state = other;
                return;
            }
        };
        if answer == Ok(true) {
            client.trust = Trust::Authenticated;
        }
        self.state = State::Idle(Idle::Ready(client));
        match answer {
            Ok(true) => self.reply(reply::AUTHENTICATED),
            Ok(false) => self.fail(&Fault::Bad(reply::NOT_AUTHENTICATED)),
            Err(refusal) => self.refuse(&refusal),
        }
    }

    /// Answers [`Action::Deliver`]: the mail is stored for all recipients, or for none.
    pub fn delivered(&mut self, answer: Result<(), Refusal>) {
        self.state = match std::mem::replace(&mut self.state, State::Closed) {
            State::Delivering(client, replies) => {
                match answer {
                    Ok(()) => (0..replies).for_each(|_| self.reply(reply::DELIVERED)),
                    Err(refusal) => (0..replies).for_each(|_| self.refuse(&refusal)),
                }
                State::Idle(Idle::Ready(client))
            }
            other => other,
        };
    }

    /// Answers [`Action::StartTls`]: the handshake is done. Everything known from before is forgotten (RFC 3207
    /// section 4.2).
    pub fn tls_started(&mut self) {
        if matches!(self.state, State::Tls) {
            self.state = State::Idle(Idle::Fresh);
            self.lines = LineReader::default();
            self.link = Link::Tls;
        }
    }

    /// Ends the session because the peer was silent for too long.
    pub fn time_out(&mut self) {
        self.say(|out, settings| reply::timed_out(out, &settings.domain));
        self.state = State::Closed;
    }

    /// Ends the session because the server stops.
    pub fn shut_down(&mut self) {
        self.say(|out, settings| reply::shutting_down(out, &settings.domain));
        self.state = State::Closed;
    }

    /// Ends the session, instead of a greeting, because there are too many.
    pub fn refuse_busy(&mut self) {
        self.say(|out, settings| reply::busy(out, &settings.domain));
        self.state = State::Closed;
    }

    /// Starts a record of the dialogue, without passwords and without the text of mails.
    pub fn record(&mut self) {
        self.recording.get_or_insert_default();
    }

    /// What was said since the record was started or last taken.
    pub fn take_recording(&mut self) -> Vec<Recorded> {
        self.recording.as_mut().map(Recording::take).unwrap_or_default()
    }

    /// Does the next thing that the input allows; without an action there may be more to do.
    fn advance(&mut self, input: &[u8]) -> (usize, Option<Action>) {
        match std::mem::replace(&mut self.state, State::Closed) {
            State::Closed => (input.len(), Some(Action::Close)),
            State::Tls => {
                self.state = State::Tls;
                (input.len(), Some(Action::StartTls))
            }
            State::Idle(idle) => self.advance_idle(idle, input),
            State::Challenge(client, exchange) => self.advance_challenge(client, exchange, input),
            State::Data(mail, reader) => self.advance_data(mail, reader, input),
            State::Chunk(mail, body, chunk) => self.advance_chunk(mail, body, chunk, input),
            State::Swallow(idle, chunk, reply) => self.advance_swallow(idle, chunk, reply, input),
            waiting @ (State::Login(_) | State::Sender(_) | State::Recipient(..) | State::Delivering(..)) => {
                self.state = waiting;
                (0, Some(Action::Read))
            }
        }
    }

    fn advance_idle(&mut self, idle: Idle, input: &[u8]) -> (usize, Option<Action>) {
        let (taken, line) = self.lines.take(input, command::line_limit(input));
        let action = match line {
            Line::Whole(line) => {
                if let Some(recording) = &mut self.recording {
                    recording.command(line);
                }
                self.obey(idle, line)
            }
            Line::TooLong => {
                self.state = State::Idle(idle);
                self.line_too_long(reply::LINE_TOO_LONG);
                None
            }
            Line::Partial => {
                self.state = State::Idle(idle);
                Some(Action::Read)
            }
        };
        (taken, action)
    }

    fn advance_challenge(&mut self, client: Client, exchange: Exchange, input: &[u8]) -> (usize, Option<Action>) {
        let (taken, line) = self.lines.take(input, AUTH_LIMIT);
        let action = match line {
            Line::Whole(line) => {
                if let Some(recording) = &mut self.recording {
                    recording.secret();
                }
                self.progress(client, exchange.respond(line))
            }
            Line::TooLong => {
                self.state = State::Idle(Idle::Ready(client));
                self.line_too_long(reply::AUTH_LINE_TOO_LONG);
                None
            }
            Line::Partial => {
                self.state = State::Challenge(client, exchange);
                Some(Action::Read)
            }
        };
        (taken, action)
    }

    fn advance_data(&mut self, mail: Transaction, mut reader: DataReader, input: &[u8]) -> (usize, Option<Action>) {
        let (taken, end) = reader.feed(input);
        self.record_data(taken);
        if !end {
            self.state = State::Data(mail, reader);
            return (taken, Some(Action::Read));
        }
        (taken, self.end_of_mail(mail, reader.finish()))
    }

    fn advance_chunk(
        &mut self,
        mail: Transaction,
        mut body: Body,
        mut chunk: Chunk,
        input: &[u8],
    ) -> (usize, Option<Action>) {
        let octets = chunk.take(input);
        if chunk.is_complete() && octets.len() > body.room() {
            body.reserve(octets.len());
        }
        body.push(octets);
        self.record_data(octets.len());
        let action = if !chunk.is_complete() {
            self.state = State::Chunk(mail, body, chunk);
            Some(Action::Read)
        } else if chunk.last {
            self.end_of_mail(mail, body.finish())
        } else if body.is_too_long() {
            self.state = State::Idle(Idle::Ready(mail.into_client()));
            self.reply(reply::TOO_LONG);
            None
        } else {
            self.state = State::Idle(Idle::Chunked(mail, body));
            self.reply(reply::CHUNK_OK);
            None
        };
        (octets.len(), action)
    }

    fn advance_swallow(
        &mut self,
        idle: Idle,
        mut chunk: Chunk,
        reply: &'static str,
        input: &[u8],
    ) -> (usize, Option<Action>) {
        let taken = chunk.take(input).len();
        self.record_data(taken);
        if !chunk.is_complete() {
            self.state = State::Swallow(idle, chunk, reply);
            return (taken, Some(Action::Read));
        }
        self.state = State::Idle(idle);
        self.reply(reply);
        (taken, None)
    }

    /// All of the mail is here. LMTP answers once for each recipient (RFC 2033 section 4.2).
    fn end_of_mail(&mut self, mail: Transaction, body: Result<Vec<u8>, TooLong>) -> Option<Action> {
        let replies = match self.settings.dialect {
            Dialect::Smtp => 1,
            Dialect::Lmtp => mail.envelope.recipients.len(),
        };
        let Ok(body) = body else {
            self.state = State::Idle(Idle::Ready(mail.into_client()));
            (0..replies).for_each(|_| self.reply(reply::TOO_LONG));
            return None;
        };
        let client = Client { peer: mail.envelope.peer.clone(), trust: mail.trust };
        self.state = State::Delivering(client, replies);
        Some(Action::Deliver { envelope: mail.envelope, body })
    }

    /// Queues a reply that never changes.
    pub(super) fn reply(&mut self, text: &'static str) {
        self.say(|out, _| out.extend_from_slice(text.as_bytes()));
    }

    /// Queues what the function writes.
    pub(super) fn say(&mut self, write: impl FnOnce(&mut Vec<u8>, &Settings)) {
        let start = self.replies.len();
        write(&mut self.replies, &self.settings);
        if let Some(recording) = &mut self.recording {
            recording.replies(&self.replies[start..]);
        }
    }

    /// Answers a command that cannot be obeyed. One bad command too many ends the session instead.
    pub(super) fn fail(&mut self, fault: &Fault) {
        match fault {
            Fault::Bad(text) => {
                self.bad_commands += 1;
                if self.bad_commands == self.settings.max_bad_commands {
                    self.say(|out, settings| reply::too_many_errors(out, &settings.domain));
                    self.state = State::Closed;
                } else {
                    self.reply(text);
                }
            }
            Fault::Refused(text) => self.reply(text),
            Fault::Sender(error) => self.say(|out, _| reply::bad_sender(out, error)),
            Fault::Recipient(error) => self.say(|out, _| reply::bad_recipient(out, error)),
        }
    }

    fn refuse(&mut self, refusal: &Refusal) {
        self.say(|out, _| reply::refusal(out, refusal));
    }

    fn line_too_long(&mut self, text: &'static str) {
        if let Some(recording) = &mut self.recording {
            recording.too_long();
        }
        self.fail(&Fault::Bad(text));
    }

    fn record_data(&mut self, octets: usize) {
        if let Some(recording) = &mut self.recording {
            recording.data(octets);
        }
    }
}
