//! The state transitions on input: lines go to the commands, data and chunks to the message. The commands are in
//! [`super::commands`].

use restante_mail::envelope::Envelope;

use crate::foreign::{self, ForeignInput};
use crate::line::LineRead;
use crate::sasl;
use crate::transcript::{Speaker, TransactionStage};

use super::auth::AuthExchange;
use super::body::{BodyBuffer, TooLong};
use super::chunk::Chunk;
use super::command;
use super::command_error::CommandError;
use super::data::DataReader;
use super::reply::ErrorReply;
use super::session::Session;
use super::state::{Client, Idle, State, Transaction};
use super::{Action, Protocol, reply};

impl Session {
    /// Makes one transition that the input allows. If it returns no action, there may be more to do.
    pub(super) fn advance(&mut self, input: &[u8]) -> (usize, Option<Action>) {
        match std::mem::replace(&mut self.state, State::Closed) {
            State::Closed => (input.len(), Some(Action::Close)),
            State::StartingTls => {
                self.state = State::StartingTls;
                (input.len(), Some(Action::StartTls))
            }
            State::Idle(idle) => self.advance_idle(idle, input),
            State::AuthExchange(client, exchange) => self.advance_auth(client, exchange, input),
            State::ReceivingData(transaction, reader) => self.advance_data(transaction, reader, input),
            State::ReceivingChunk(transaction, body, chunk) => self.advance_chunk(transaction, body, chunk, input),
            State::DiscardingChunk(idle, chunk, reply) => self.advance_discard(idle, chunk, reply, input),
            waiting @ (State::AwaitingChallenge(_)
            | State::CheckingLogin { .. }
            | State::CheckingSender(_)
            | State::CheckingRecipient(_)
            | State::Delivering(..)) => {
                self.state = waiting;
                (0, Some(Action::Read))
            }
        }
    }

    fn advance_idle(&mut self, idle: Idle, input: &[u8]) -> (usize, Option<Action>) {
        let is_before_hello = matches!(idle, Idle::BeforeHello);
        let detect = if is_before_hello { foreign::detect_before_greeting } else { foreign::detect };
        if !self.lines.is_discarding
            && let Some(foreign) = detect(input)
        {
            return (input.len(), self.close_foreign(foreign));
        }
        let (consumed, line) = self.lines.read_line(input, command::max_line_bytes(input));
        if is_before_hello && (line == LineRead::TooLong || self.lines.is_discarding) {
            return (consumed, self.close_foreign(ForeignInput::LongLine));
        }
        let action = match line {
            LineRead::Complete(line) => {
                let command = command::split_verb(line);
                self.recorder.record_command(|out| self.mask.write_masked(out, line, command.as_ref()));
                self.execute(idle, command)
            }
            LineRead::TooLong => {
                self.state = State::Idle(idle);
                self.reject_long_line(reply::LINE_TOO_LONG);
                None
            }
            LineRead::Incomplete => {
                self.state = State::Idle(idle);
                Some(Action::Read)
            }
        };
        (consumed, action)
    }

    fn advance_auth(&mut self, client: Client, exchange: AuthExchange, input: &[u8]) -> (usize, Option<Action>) {
        let (consumed, line) = self.lines.read_line(input, sasl::MAX_LINE_BYTES);
        let action = match line {
            LineRead::Complete(line) => {
                self.recorder.record_note("***");
                self.continue_auth(client, exchange.handle_response(line))
            }
            LineRead::TooLong => {
                self.state = State::Idle(Idle::Ready(client));
                self.reject_long_line(reply::AUTH_LINE_TOO_LONG);
                None
            }
            LineRead::Incomplete => {
                self.state = State::AuthExchange(client, exchange);
                Some(Action::Read)
            }
        };
        (consumed, action)
    }

    fn advance_data(
        &mut self,
        transaction: Transaction,
        mut reader: DataReader,
        input: &[u8],
    ) -> (usize, Option<Action>) {
        let (consumed, is_end) = reader.feed(input);
        self.record_mail_octets(consumed);
        if !is_end {
            self.state = State::ReceivingData(transaction, reader);
            return (consumed, Some(Action::Read));
        }
        (consumed, self.finish_message(transaction, reader.body.finish()))
    }

    fn advance_chunk(
        &mut self,
        transaction: Transaction,
        mut body: BodyBuffer,
        mut chunk: Chunk,
        input: &[u8],
    ) -> (usize, Option<Action>) {
        let octets = chunk.receive(input);
        if chunk.is_complete() && octets.len() > body.spare_capacity() {
            body.reserve(octets.len());
        }
        body.push(octets);
        self.record_mail_octets(octets.len());
        let action = if !chunk.is_complete() {
            self.state = State::ReceivingChunk(transaction, body, chunk);
            Some(Action::Read)
        } else if chunk.is_last {
            self.finish_message(transaction, body.finish())
        } else if body.is_too_long() {
            self.state = State::Idle(Idle::Ready(transaction.into_client()));
            self.refuse(reply::MESSAGE_TOO_LONG);
            self.mark_stage(TransactionStage::Refused);
            None
        } else {
            self.state = State::Idle(Idle::Chunked(transaction, body));
            self.reply(reply::CHUNK_OK);
            None
        };
        (octets.len(), action)
    }

    fn advance_discard(
        &mut self,
        idle: Idle,
        mut chunk: Chunk,
        reply: ErrorReply,
        input: &[u8],
    ) -> (usize, Option<Action>) {
        let consumed = chunk.receive(input).len();
        self.record_mail_octets(consumed);
        if !chunk.is_complete() {
            self.state = State::DiscardingChunk(idle, chunk, reply);
            return (consumed, Some(Action::Read));
        }
        self.state = State::Idle(idle);
        self.refuse(reply);
        (consumed, None)
    }

    /// Handles a complete message. LMTP replies once for each recipient (RFC 2033 section 4.2).
    fn finish_message(&mut self, transaction: Transaction, body: Result<Vec<u8>, TooLong>) -> Option<Action> {
        let replies = match self.settings.protocol {
            Protocol::Smtp => 1,
            Protocol::Lmtp => transaction.envelope.recipients.len(),
        };
        let Ok(body) = body else {
            self.state = State::Idle(Idle::Ready(transaction.into_client()));
            (0..replies).for_each(|_| self.refuse(reply::MESSAGE_TOO_LONG));
            self.mark_stage(TransactionStage::Refused);
            return None;
        };
        let Envelope { peer, login, .. } = &transaction.envelope;
        let client = Client { peer: peer.clone(), login: login.clone() };
        self.state = State::Delivering(client, replies);
        Some(Action::Deliver { envelope: transaction.envelope, body })
    }

    fn reject_long_line(&mut self, reply: ErrorReply) {
        self.mask.note_lost_line();
        self.recorder.record_note(ForeignInput::LongLine.transcript_text());
        self.reject(&CommandError::Bad(reply));
    }

    /// Ends the session because the input is not that of a mail client. Nothing after it is executed.
    fn close_foreign(&mut self, foreign: ForeignInput) -> Option<Action> {
        self.recorder.record_note(foreign.transcript_text());
        self.close(reply::foreign_input(foreign));
        None
    }

    fn record_mail_octets(&mut self, octets: usize) {
        self.recorder.record_mail_octets(Speaker::Client, octets);
    }
}
