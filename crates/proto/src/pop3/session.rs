//! The session as the driver sees it: what it is fed, what it says, and the answers to what it asked. How input moves
//! it is in [`super::advance`].

use std::sync::Arc;

use restante_mail::message::Source;

use crate::line::LineReader;
use crate::transcript::{Recorder, Speaker, TranscriptBuffer, TranscriptScope};
use crate::transport::Transport;

use super::multiline::{MultilineReply, OutgoingMessage};
use super::request::Extent;
use super::state::{AnonymousClient, Idle, State};
use super::{Action, Maildrop, Refusal, Settings, reply};

/// Replies beyond so many bytes are written before there are more of them.
pub(super) const MAX_REPLY_BYTES: usize = 64 * 1024;

/// One connection's conversation, from the greeting to the end.
#[derive(Debug)]
pub struct Session {
    pub(super) settings: Arc<Settings>,
    pub(super) timestamp: String,
    pub(super) transport: Transport,
    pub(super) state: State,
    pub(super) lines: LineReader,
    replies: Vec<u8>,
    bad_commands: usize,
    pub(super) recorder: Option<Recorder>,
}

impl Session {
    /// A session with a peer that has just connected. The `timestamp` is what stands in the greeting for APOP,
    /// `<process.time@domain>`, and no two sessions have the same; `tls` says whether the connection began with a TLS
    /// handshake.
    pub fn new(settings: Arc<Settings>, timestamp: String, tls: bool) -> Self {
        Self {
            settings,
            timestamp,
            transport: Transport::new(tls),
            state: State::Idle(Idle::Authorization(AnonymousClient::default())),
            lines: LineReader::default(),
            replies: Vec::new(),
            bad_commands: 0,
            recorder: None,
        }
    }

    /// Queues the greeting.
    pub fn greet(&mut self) {
        let timestamp = self.timestamp.clone();
        self.reply_with(|out, _| reply::write_greeting(out, &timestamp));
    }

    /// Consumes input and says what to do next.
    ///
    /// Returns how much of the input was consumed. The rest is given again: at once behind an answered question and behind
    /// [`Action::Write`], and with more input behind it after [`Action::Read`]. Then that rest is an incomplete line of
    /// bounded length. While a question is open nothing is consumed.
    pub fn step(&mut self, input: &[u8]) -> (usize, Action) {
        let mut consumed = 0;
        loop {
            let (taken, action) = self.advance(&input[consumed..]);
            consumed += taken;
            if let Some(action) = action {
                return (consumed, action);
            }
            if self.replies.len() >= MAX_REPLY_BYTES {
                return (consumed, Action::Write);
            }
        }
    }

    /// The replies queued so far. The driver writes and clears them, all at once, before it waits for the peer.
    pub fn replies(&mut self) -> &mut Vec<u8> {
        &mut self.replies
    }

    /// The bytes of a message that is held because it is being sent.
    pub fn sending_bytes(&self) -> usize {
        match &self.state {
            State::Sending(_, MultilineReply::Message(mail)) => mail.held_bytes(),
            _ => 0,
        }
    }

    /// Whether the next thing is a line of the peer. Else there is something to finish first.
    pub fn is_idle(&self) -> bool {
        matches!(self.state, State::Idle(_) | State::AuthExchange(_))
    }

    /// Answers [`Action::Open`]: what is in the mailbox, oldest first, or why it stays closed.
    pub fn opened(&mut self, answer: Result<Maildrop, Refusal>) {
        let visitor = match std::mem::replace(&mut self.state, State::Closed) {
            State::OpeningMailbox(visitor) => visitor,
            other => {
                self.state = other;
                return;
            }
        };
        match answer {
            Ok(maildrop) => {
                self.reply_with(|out, _| reply::write_total(out, maildrop.total()));
                self.state = State::Idle(Idle::Transaction(maildrop));
            }
            Err(refusal) => {
                self.state = State::Idle(Idle::Authorization(visitor));
                self.refuse(&refusal);
            }
        }
    }

    /// Answers [`Action::Fetch`]: the message, or nothing when it is not there any more.
    pub fn fetched(&mut self, answer: Result<Option<Source>, Refusal>) {
        let (maildrop, request) = match std::mem::replace(&mut self.state, State::Closed) {
            State::Fetching(maildrop, request) => (maildrop, request),
            other => {
                self.state = other;
                return;
            }
        };
        match answer {
            Ok(Some(source)) => {
                match request.extent {
                    Extent::Whole => self.reply_with(|out, _| reply::write_retr_ok(out, source.len())),
                    Extent::Top(_) => self.reply(reply::TOP),
                }
                self.state =
                    State::Sending(maildrop, MultilineReply::Message(OutgoingMessage::new(source, request.extent)));
            }
            Ok(None) => {
                self.state = State::Idle(Idle::Transaction(maildrop));
                self.reply_error_with(|out, _| reply::write_gone(out, request));
            }
            Err(refusal) => {
                self.state = State::Idle(Idle::Transaction(maildrop));
                self.refuse(&refusal);
            }
        }
    }

    /// Answers [`Action::Delete`]: whether all of the messages are gone, whoever has deleted them.
    #[expect(clippy::needless_pass_by_value, reason = "the driver hands every answer over")]
    pub fn deleted(&mut self, answer: Result<(), Refusal>) {
        if matches!(self.state, State::Updating) {
            self.state = State::Quitting;
            match answer {
                Ok(()) => self.reply(reply::BYE),
                Err(_) => self.reply_error(reply::NOT_REMOVED),
            }
        }
    }

    /// Answers [`Action::StartTls`]: the handshake is done. Everything known from before is forgotten (RFC 2595
    /// section 4).
    pub fn tls_started(&mut self) {
        if matches!(self.state, State::StartingTls) {
            self.state = State::Idle(Idle::Authorization(AnonymousClient::default()));
            self.lines = LineReader::default();
            self.transport = Transport::Tls;
        }
    }

    /// Ends the session because the peer was silent for too long. Nothing is said and nothing is deleted (RFC 1939
    /// section 3).
    pub fn time_out(&mut self) {
        self.state = State::Closed;
    }

    /// Ends the session because the server stops. In the middle of an answer, and behind the last one, nothing can be said.
    pub fn shut_down(&mut self) {
        if !matches!(self.state, State::Sending(..) | State::StartingTls | State::Quitting | State::Closed) {
            self.reply_error_with(reply::write_shutting_down);
        }
        self.state = State::Closed;
    }

    /// Ends the session, instead of a greeting, because there are too many.
    pub fn refuse_busy(&mut self) {
        self.reply_error_with(reply::write_busy);
        self.state = State::Closed;
    }

    /// Starts a record of the dialogue, without passwords, without digests and without the text of mails.
    pub fn start_recording(&mut self, scope: TranscriptScope) {
        self.recorder = Some(Recorder::new(scope));
    }

    /// What was said since the record was started or last cleared; `None` without a record.
    pub fn transcript(&mut self) -> Option<&mut TranscriptBuffer> {
        self.recorder.as_mut().map(|recording| &mut recording.transcript)
    }

    /// Queues a reply that never changes.
    pub(super) fn reply(&mut self, text: &'static str) {
        self.reply_with(|out, _| out.extend_from_slice(text.as_bytes()));
    }

    /// Queues what the function writes.
    pub(super) fn reply_with<T>(&mut self, write: impl FnOnce(&mut Vec<u8>, &Settings) -> T) -> T {
        self.queue(false, write)
    }

    /// Queues an error that never changes.
    pub(super) fn reply_error(&mut self, text: &'static str) {
        self.reply_error_with(|out, _| out.extend_from_slice(text.as_bytes()));
    }

    /// Queues an error that the function writes.
    pub(super) fn reply_error_with(&mut self, write: impl FnOnce(&mut Vec<u8>, &Settings)) {
        self.queue(true, write);
    }

    fn queue<T>(&mut self, is_error: bool, write: impl FnOnce(&mut Vec<u8>, &Settings) -> T) -> T {
        let start = self.replies.len();
        let result = write(&mut self.replies, &self.settings);
        if let Some(recording) = &mut self.recorder {
            recording.record_replies(&self.replies[start..], is_error);
        }
        result
    }

    /// Queues text of a mail, which the function writes; it says how many octets of the mail these were.
    pub(super) fn reply_message_text<T>(&mut self, write: impl FnOnce(&mut Vec<u8>) -> (usize, T)) -> T {
        let (octets, result) = write(&mut self.replies);
        if let Some(recording) = &mut self.recorder {
            recording.record_mail_octets(Speaker::Server, octets);
        }
        result
    }

    /// Answers a command that cannot be obeyed. One bad command too many ends the session instead.
    pub(super) fn reject(&mut self, text: &'static str) {
        self.reject_with(|out| out.extend_from_slice(text.as_bytes()));
    }

    fn reject_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.bad_commands += 1;
        if self.bad_commands == self.settings.max_bad_commands {
            self.reply_error(reply::TOO_MANY_ERRORS);
            self.state = State::Closed;
        } else {
            self.reply_error_with(|out, _| write(out));
        }
    }

    fn refuse(&mut self, refusal: &Refusal) {
        match refusal {
            Refusal::WrongCredentials => self.reject(reply::NOT_AUTHENTICATED),
            Refusal::NotPermitted => self.reject(reply::NOT_PERMITTED),
            Refusal::InvalidName(reason) => self.reject_with(|out| reply::write_bad_name(out, reason)),
            Refusal::Unavailable => self.reply_error(reply::UNAVAILABLE),
        }
    }
}
