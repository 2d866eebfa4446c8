//! The state transitions on input. The commands are in [`super::commands`].

use crate::foreign::{self, ForeignInput};
use crate::line::{LineRead, LineReader};
use crate::sasl::{self, Exchange};
use crate::transcript::Speaker;

use super::reader::{CommandText, Limits, Received};
use super::session::{OfferedMessage, Session, State, Work};
use super::task::{Completion, Step};
use super::{Action, Refusal, mask, parse, reply};

impl Session {
    /// Makes one transition that the input allows. If it returns no action, there may be more to do.
    pub(super) fn advance(&mut self, input: &[u8]) -> (usize, Option<Action>) {
        match std::mem::replace(&mut self.state, State::Closed) {
            State::Closed => (input.len(), Some(Action::Close)),
            State::LoggingOut => (input.len(), Some(Action::Quit)),
            State::StartingTls => {
                self.state = State::StartingTls;
                (input.len(), Some(Action::StartTls))
            }
            State::Working(work) => (0, self.advance_work(work)),
            State::Authenticating { tag, exchange } => self.advance_authentication(tag, exchange, input),
            State::LoginFailed { tag } => self.advance_failed_login(tag, input),
            State::Idling { tag, lines } => self.advance_idle(tag, lines, input),
            State::Ready => {
                self.state = State::Ready;
                self.advance_ready(input)
            }
            waiting @ State::LoggingIn { .. } => {
                self.state = waiting;
                (0, Some(Action::Read))
            }
        }
    }

    fn advance_work(&mut self, mut work: Work) -> Option<Action> {
        if work.is_waiting {
            self.state = State::Working(work);
            return Some(Action::Read);
        }
        let result = work.result.take();
        let start = self.replies.len();
        let step = self.with_context(|context| match result.transpose() {
            Ok(outcome) => work.task.advance(context, outcome),
            Err(refusal) => work.task.refused(context, &refusal),
        });
        if work.task.contains_mail() {
            self.recorder.record_mail_octets(Speaker::Server, self.replies.len() - start);
        } else {
            self.recorder.record_replies(&self.replies[start..], false);
        }
        match step {
            Step::Perform(operation) => {
                work.is_waiting = true;
                self.state = State::Working(work);
                Some(Action::Perform(operation))
            }
            Step::Write => {
                self.state = State::Working(work);
                Some(Action::Write)
            }
            Step::Done(completion) => {
                self.state = State::Ready;
                self.complete_work(&work.tag, work.may_renumber, completion);
                None
            }
        }
    }

    fn advance_ready(&mut self, input: &[u8]) -> (usize, Option<Action>) {
        let limits = Limits { is_authenticated: self.is_logged_in, max_message_bytes: self.settings.max_message_bytes };
        let (consumed, received) = self.reader.read(input, limits);
        let action = match received {
            Received::Incomplete => Some(Action::Read),
            Received::Continuation => {
                self.queue(false, |out| reply::write_continuation(out, "Ready for the literal"));
                None
            }
            Received::Message { tag, bytes, is_synchronizing } => {
                self.offered = Some(OfferedMessage { tag, is_synchronizing });
                Some(Action::ReserveLiteral(bytes))
            }
            Received::Command(text) => self.execute(&text),
            Received::TooLong { .. } if !self.is_logged_in => self.close_foreign(ForeignInput::LongLine),
            Received::TooLong { tag } => {
                self.recorder.record_note(ForeignInput::LongLine.transcript_text());
                self.complete(tag.as_deref().unwrap_or("*"), Completion::bad(reply::COMMAND_TOO_LONG));
                None
            }
            Received::LiteralTooLarge { tag, is_message, must_close } => {
                let completion = if is_message {
                    reply::refusal(&Refusal::TooLarge)
                } else {
                    Completion::bad(reply::LITERAL_TOO_LARGE)
                };
                self.complete(tag.as_deref().unwrap_or("*"), completion);
                if must_close {
                    self.bye(reply::LITERAL_TOO_LARGE);
                }
                None
            }
            Received::Foreign(foreign) => self.close_foreign(foreign),
        };
        (consumed, action)
    }

    /// Parses and executes a command.
    fn execute(&mut self, text: &CommandText) -> Option<Action> {
        let parsed = parse::parse(text, self.enabled.has_utf8_names());
        self.recorder.record_command(|out| mask::write_masked(out, &text.text, &parsed));
        match parsed {
            Ok(request) => self.dispatch(request),
            Err(error) => {
                self.complete(error.tag.as_deref().unwrap_or("*"), Completion::bad(error.reason));
                None
            }
        }
    }

    fn advance_authentication(&mut self, tag: String, exchange: Exchange, input: &[u8]) -> (usize, Option<Action>) {
        // A line that is too long is not an answer of a mail client.
        let (consumed, line) = LineReader::default().read_line(input, sasl::MAX_LINE_BYTES);
        let action = match line {
            LineRead::Complete(line) => {
                self.recorder.record_note("***");
                self.state = State::Ready;
                self.continue_authentication(tag, exchange, line)
            }
            LineRead::TooLong => self.close_foreign(ForeignInput::LongLine),
            LineRead::Incomplete if input.len() >= sasl::MAX_LINE_BYTES => self.close_foreign(ForeignInput::LongLine),
            LineRead::Incomplete => {
                self.state = State::Authenticating { tag, exchange };
                Some(Action::Read)
            }
        };
        (consumed, action)
    }

    /// Waits for the line that answers the description of a failed login. Its content has no meaning.
    fn advance_failed_login(&mut self, tag: String, input: &[u8]) -> (usize, Option<Action>) {
        let (consumed, line) = LineReader::default().read_line(input, sasl::MAX_LINE_BYTES);
        let action = match line {
            LineRead::Complete(_) => {
                self.recorder.record_note("***");
                self.state = State::Ready;
                self.refuse_login(&tag, &Refusal::WrongCredentials);
                None
            }
            LineRead::Incomplete if input.len() < sasl::MAX_LINE_BYTES => {
                self.state = State::LoginFailed { tag };
                Some(Action::Read)
            }
            LineRead::TooLong | LineRead::Incomplete => self.close_foreign(ForeignInput::LongLine),
        };
        (consumed, action)
    }

    fn advance_idle(&mut self, tag: String, mut lines: LineReader, input: &[u8]) -> (usize, Option<Action>) {
        const MAX_DONE_BYTES: usize = 64;
        self.announce(true);
        let (consumed, line) = lines.read_line(input, MAX_DONE_BYTES);
        let completion = match line {
            LineRead::Incomplete => {
                self.state = State::Idling { tag, lines };
                return (consumed, Some(Action::Read));
            }
            LineRead::Complete(line) if line.eq_ignore_ascii_case(b"DONE") => {
                self.recorder.record_command(|out| out.push_str("DONE"));
                Completion::ok("IDLE completed")
            }
            LineRead::Complete(line) if foreign::detect(line).is_some() => {
                return (consumed, self.close_foreign(ForeignInput::Http));
            }
            LineRead::Complete(_) | LineRead::TooLong => Completion::bad("Expected DONE"),
        };
        self.state = State::Ready;
        self.complete(&tag, completion);
        (consumed, None)
    }

    /// Ends the session because the input is not that of a mail client. Nothing after it is executed.
    fn close_foreign(&mut self, foreign: ForeignInput) -> Option<Action> {
        self.recorder.record_note(foreign.transcript_text());
        self.bye(match foreign {
            ForeignInput::Http => "This is IMAP, not HTTP",
            ForeignInput::Tls => "TLS begins with STARTTLS on this port",
            ForeignInput::LongLine => "The line is too long",
        });
        None
    }
}
