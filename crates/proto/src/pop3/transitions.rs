//! The state transitions on input, and the parts of multi-line replies. The commands are in [`super::commands`].

use crate::foreign::{self, ForeignInput};
use crate::line::LineRead;
use crate::sasl;

use super::maildrop::Maildrop;
use super::multiline::{MultilineReply, Progress};
use super::session::{MAX_REPLY_BYTES, Session};
use super::state::{AnonymousClient, AuthExchange, Idle, State};
use super::{Action, command, mask, reply};

impl Session {
    /// Makes one transition that the input allows. If it returns no action, there may be more to do.
    pub(super) fn advance(&mut self, input: &[u8]) -> (usize, Option<Action>) {
        match std::mem::replace(&mut self.state, State::Closed) {
            State::Closed => (input.len(), Some(Action::Close)),
            State::Quitting => (input.len(), Some(Action::Quit)),
            State::StartingTls => {
                self.state = State::StartingTls;
                (input.len(), Some(Action::StartTls))
            }
            State::Sending(maildrop, multiline) => (0, self.advance_multiline(maildrop, multiline)),
            State::AuthExchange(client, exchange) => self.advance_auth(client, exchange, input),
            State::Idle(idle) => self.advance_idle(idle, input),
            waiting @ (State::OpeningMailbox(..) | State::Fetching(..) | State::Updating) => {
                self.state = waiting;
                (0, Some(Action::Read))
            }
        }
    }

    fn advance_idle(&mut self, idle: Idle, input: &[u8]) -> (usize, Option<Action>) {
        let is_before_login = matches!(idle, Idle::Authorization(_));
        let detect = if is_before_login { foreign::detect_before_greeting } else { foreign::detect };
        if !self.lines.is_discarding
            && let Some(foreign) = detect(input)
        {
            return (input.len(), self.close_foreign(foreign));
        }
        let (consumed, line) = self.lines.read_line(input, command::max_line_bytes(input));
        if is_before_login && (line == LineRead::TooLong || self.lines.is_discarding) {
            return (consumed, self.close_foreign(ForeignInput::LongLine));
        }
        let action = match line {
            LineRead::Complete(line) => {
                self.recorder.record_command(|out| mask::write_masked(out, line));
                self.execute(idle, line)
            }
            LineRead::TooLong => {
                self.state = State::Idle(idle);
                self.reject_long_line();
                None
            }
            LineRead::Incomplete => {
                self.state = State::Idle(idle);
                Some(Action::Read)
            }
        };
        (consumed, action)
    }

    fn advance_auth(
        &mut self,
        client: AnonymousClient,
        exchange: AuthExchange,
        input: &[u8],
    ) -> (usize, Option<Action>) {
        let (consumed, line) = self.lines.read_line(input, sasl::MAX_LINE_BYTES);
        let action = match line {
            LineRead::Complete(line) => {
                self.recorder.record_note("***");
                match exchange {
                    AuthExchange::Sasl(exchange) => self.continue_auth(client, exchange.line(line)),
                    AuthExchange::Refused(refusal) => {
                        self.state = State::Idle(Idle::Authorization(client));
                        self.refuse(&refusal);
                        None
                    }
                }
            }
            LineRead::TooLong => {
                self.state = State::Idle(Idle::Authorization(client));
                self.reject_long_line();
                None
            }
            LineRead::Incomplete => {
                self.state = State::AuthExchange(client, exchange);
                Some(Action::Read)
            }
        };
        (consumed, action)
    }

    /// Queues the next part of a multi-line reply.
    fn advance_multiline(&mut self, maildrop: Maildrop, mut multiline: MultilineReply) -> Option<Action> {
        let progress = match &mut multiline {
            MultilineReply::Listing(listing) => self.reply_with(|out, _| listing.fill(&maildrop, out, MAX_REPLY_BYTES)),
            MultilineReply::Message(message) => self.reply_message_text(|out| message.fill(out, MAX_REPLY_BYTES)),
        };
        self.state = match progress {
            Progress::Partial => State::Sending(maildrop, multiline),
            Progress::Complete => {
                self.reply(reply::END);
                State::Idle(Idle::Transaction(maildrop))
            }
        };
        None
    }

    /// Ends the session because the input is not that of a mail client. Nothing after it is executed.
    fn close_foreign(&mut self, foreign: ForeignInput) -> Option<Action> {
        self.recorder.record_note(foreign.transcript_text());
        self.reply_error(match foreign {
            ForeignInput::Http => reply::NOT_HTTP,
            ForeignInput::Tls => reply::NOT_TLS,
            ForeignInput::LongLine => reply::FIRST_LINE_TOO_LONG,
        });
        self.state = State::Closed;
        None
    }

    fn reject_long_line(&mut self) {
        self.recorder.record_note(ForeignInput::LongLine.transcript_text());
        self.reject(reply::LINE_TOO_LONG);
    }
}
