//! Moves input through the states, and answers of many lines out of them. What each command does is in [`super::obey`].

use crate::foreign::{self, Foreign};
use crate::line::Line;
use crate::sasl;

use super::answer::{Answer, Progress};
use super::maildrop::Maildrop;
use super::session::{MAX_REPLIES, Session};
use super::state::{Idle, State, Visitor};
use super::{Action, command, mask, reply};

impl Session {
    /// Does the next thing that the input allows; without an action there may be more to do.
    pub(super) fn advance(&mut self, input: &[u8]) -> (usize, Option<Action>) {
        match std::mem::replace(&mut self.state, State::Closed) {
            State::Closed => (input.len(), Some(Action::Close)),
            State::Leaving => (input.len(), Some(Action::Quit)),
            State::Tls => {
                self.state = State::Tls;
                (input.len(), Some(Action::StartTls))
            }
            State::Sending(maildrop, answer) => (0, self.advance_answer(maildrop, answer)),
            State::Challenge(visitor) => self.advance_challenge(visitor, input),
            State::Idle(idle) => self.advance_idle(idle, input),
            waiting @ (State::Opening(_) | State::Fetching(..) | State::Updating) => {
                self.state = waiting;
                (0, Some(Action::Read))
            }
        }
    }

    fn advance_idle(&mut self, idle: Idle, input: &[u8]) -> (usize, Option<Action>) {
        let is_anonymous = matches!(idle, Idle::Authorization(_));
        let detect = if is_anonymous { foreign::detect_before_greeting } else { foreign::detect };
        if !self.lines.is_dropping()
            && let Some(foreign) = detect(input)
        {
            return (input.len(), self.close_foreign(foreign));
        }
        let (taken, line) = self.lines.take(input, command::line_limit(input));
        if is_anonymous && (line == Line::TooLong || self.lines.is_dropping()) {
            return (taken, self.close_foreign(Foreign::LongLine));
        }
        let action = match line {
            Line::Whole(line) => {
                if let Some(recording) = &mut self.recording {
                    recording.command(|out| mask::show(out, line));
                }
                self.obey(idle, line)
            }
            Line::TooLong => {
                self.state = State::Idle(idle);
                self.line_too_long();
                None
            }
            Line::Partial => {
                self.state = State::Idle(idle);
                Some(Action::Read)
            }
        };
        (taken, action)
    }

    fn advance_challenge(&mut self, visitor: Visitor, input: &[u8]) -> (usize, Option<Action>) {
        let (taken, line) = self.lines.take(input, sasl::LINE_LIMIT);
        let action = match line {
            Line::Whole(line) => {
                if let Some(recording) = &mut self.recording {
                    recording.secret();
                }
                self.respond(visitor, command::response(line))
            }
            Line::TooLong => {
                self.state = State::Idle(Idle::Authorization(visitor));
                self.line_too_long();
                None
            }
            Line::Partial => {
                self.state = State::Challenge(visitor);
                Some(Action::Read)
            }
        };
        (taken, action)
    }

    /// Queues the next portion of an answer.
    fn advance_answer(&mut self, maildrop: Maildrop, mut answer: Answer) -> Option<Action> {
        let progress = match &mut answer {
            Answer::Listing(listing) => self.say(|out, _| listing.fill(&maildrop, out, MAX_REPLIES)),
            Answer::Mail(mail) => self.send(|out| mail.fill(out, MAX_REPLIES)),
        };
        self.state = match progress {
            Progress::Partial => State::Sending(maildrop, answer),
            Progress::Complete => {
                self.reply(reply::END);
                State::Idle(Idle::Transaction(maildrop))
            }
        };
        None
    }

    /// Ends the session because the input is not that of a mail client. Nothing that follows is executed.
    fn close_foreign(&mut self, foreign: Foreign) -> Option<Action> {
        if let Some(recording) = &mut self.recording {
            recording.remark(foreign.record_text());
        }
        self.reply_error(match foreign {
            Foreign::Http => reply::NOT_HTTP,
            Foreign::Tls => reply::NOT_TLS,
            Foreign::LongLine => reply::FIRST_LINE_TOO_LONG,
        });
        self.state = State::Closed;
        None
    }

    fn line_too_long(&mut self) {
        if let Some(recording) = &mut self.recording {
            recording.too_long();
        }
        self.fail(reply::LINE_TOO_LONG);
    }
}
