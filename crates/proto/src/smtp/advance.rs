//! Moves input through the states: lines to the commands, data and chunks to the mail. What each command does is in
//! [`super::obey`].

use crate::foreign::{self, Foreign};
use crate::line::Line;
use crate::record::{Speaker, Stage};
use crate::sasl;

use super::auth::Exchange;
use super::body::{Body, TooLong};
use super::chunk::Chunk;
use super::command;
use super::data::DataReader;
use super::fault::Fault;
use super::reply::ErrorReply;
use super::session::Session;
use super::state::{Client, Idle, State, Transaction};
use super::{Action, Dialect, reply};

impl Session {
    /// Does the next thing that the input allows; without an action there may be more to do.
    pub(super) fn advance(&mut self, input: &[u8]) -> (usize, Option<Action>) {
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
            waiting @ (State::Challenging(_)
            | State::Login(_)
            | State::Sender(_)
            | State::Recipient(_)
            | State::Delivering(..)) => {
                self.state = waiting;
                (0, Some(Action::Read))
            }
        }
    }

    fn advance_idle(&mut self, idle: Idle, input: &[u8]) -> (usize, Option<Action>) {
        let is_fresh = matches!(idle, Idle::Fresh);
        let detect = if is_fresh { foreign::detect_before_greeting } else { foreign::detect };
        if !self.lines.is_dropping()
            && let Some(foreign) = detect(input)
        {
            return (input.len(), self.close_foreign(foreign));
        }
        let (taken, line) = self.lines.take(input, command::line_limit(input));
        if is_fresh && (line == Line::TooLong || self.lines.is_dropping()) {
            return (taken, self.close_foreign(Foreign::LongLine));
        }
        let action = match line {
            Line::Whole(line) => {
                let command = command::split(line);
                if let Some(recording) = &mut self.recording {
                    recording.command(|out| self.mask.show(out, line, command.as_ref()));
                }
                self.obey(idle, command)
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
        let (taken, line) = self.lines.take(input, sasl::LINE_LIMIT);
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
            self.refuse(reply::TOO_LONG);
            self.mark(Stage::Refused);
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
        reply: ErrorReply,
        input: &[u8],
    ) -> (usize, Option<Action>) {
        let taken = chunk.take(input).len();
        self.record_data(taken);
        if !chunk.is_complete() {
            self.state = State::Swallow(idle, chunk, reply);
            return (taken, Some(Action::Read));
        }
        self.state = State::Idle(idle);
        self.refuse(reply);
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
            (0..replies).for_each(|_| self.refuse(reply::TOO_LONG));
            self.mark(Stage::Refused);
            return None;
        };
        let client = Client { peer: mail.envelope.peer.clone(), trust: mail.trust };
        self.state = State::Delivering(client, replies);
        Some(Action::Deliver { envelope: mail.envelope, body })
    }

    fn line_too_long(&mut self, reply: ErrorReply) {
        self.mask.line_was_lost();
        if let Some(recording) = &mut self.recording {
            recording.too_long();
        }
        self.fail(&Fault::Bad(reply));
    }

    /// Ends the session because the input is not that of a mail client. Nothing that follows is executed.
    fn close_foreign(&mut self, foreign: Foreign) -> Option<Action> {
        if let Some(recording) = &mut self.recording {
            recording.remark(foreign.record_text());
        }
        self.say_error(|out, settings| reply::foreign(out, &settings.domain, foreign));
        self.state = State::Closed;
        None
    }

    fn record_data(&mut self, octets: usize) {
        if let Some(recording) = &mut self.recording {
            recording.mail(Speaker::Client, octets);
        }
    }
}
