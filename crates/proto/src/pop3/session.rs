//! The interface between the session and its driver: input, replies, and the results of actions. The state transitions
//! are in [`super::transitions`].

use std::sync::Arc;

use restante_mail::message::Source;

use crate::line::LineReader;
use crate::sasl::Mechanism;
use crate::transcript::{Recorder, Speaker, TranscriptBuffer, TranscriptScope};

use super::multiline::{MultilineReply, OutgoingMessage};
use super::request::Extent;
use super::state::{AnonymousClient, AuthExchange, Idle, State};
use super::{Action, Maildrop, Refusal, Settings, reply};

/// If the queued replies reach this size, they are written before more are queued.
pub(super) const MAX_REPLY_BYTES: usize = 64 * 1024;

/// The session of one connection.
#[derive(Debug)]
pub struct Session {
    pub(super) settings: Arc<Settings>,
    pub(super) timestamp: String,
    /// Whether the connection is encrypted.
    pub(super) is_tls: bool,
    pub(super) state: State,
    pub(super) lines: LineReader,
    replies: Vec<u8>,
    bad_commands: usize,
    pub(super) recorder: Recorder,
}

impl Session {
    /// Creates a session for a new connection. `timestamp` is the text in the greeting for APOP, such as
    /// `<process.time@domain>`; it must be different for each session. `is_tls` says whether the connection started
    /// with a TLS handshake.
    pub fn new(settings: Arc<Settings>, timestamp: String, is_tls: bool) -> Self {
        Self {
            settings,
            timestamp,
            is_tls,
            state: State::Idle(Idle::Authorization(AnonymousClient::default())),
            lines: LineReader::default(),
            replies: Vec::new(),
            bad_commands: 0,
            recorder: Recorder::default(),
        }
    }

    /// Queues the greeting.
    pub fn greet(&mut self) {
        let timestamp = self.timestamp.clone();
        self.reply_with(|out, _| reply::write_greeting(out, &timestamp));
    }

    /// Consumes input and returns what the driver must do next.
    ///
    /// Also returns the number of bytes consumed. The driver passes the rest again: at once after [`Action::Write`] and
    /// after it has completed an action, and with more input appended after [`Action::Read`]. In that case the rest is
    /// an incomplete line of limited length. Nothing is consumed while the result of an action is pending.
    pub fn step(&mut self, input: &[u8]) -> (usize, Action) {
        let mut consumed = 0;
        loop {
            let (consumed_now, action) = self.advance(&input[consumed..]);
            consumed += consumed_now;
            if let Some(action) = action {
                return (consumed, action);
            }
            if self.replies.len() >= MAX_REPLY_BYTES {
                return (consumed, Action::Write);
            }
        }
    }

    /// Returns the queued replies. The driver writes and clears all of them before it waits for the client.
    pub fn replies(&mut self) -> &mut Vec<u8> {
        &mut self.replies
    }

    /// Returns the size of the message that is in memory because it is being sent.
    pub fn sending_bytes(&self) -> usize {
        match &self.state {
            State::Sending(_, MultilineReply::Message(message)) => message.source.len(),
            _ => 0,
        }
    }

    /// Returns whether the session waits for a line from the client. Otherwise there is something to finish first.
    pub fn is_idle(&self) -> bool {
        matches!(self.state, State::Idle(_) | State::AuthExchange(..))
    }

    /// Completes [`Action::Open`] with the messages of the mailbox, oldest first, or the refusal.
    pub fn opened(&mut self, result: Result<Maildrop, Refusal>) {
        let (client, mechanism) = match std::mem::replace(&mut self.state, State::Closed) {
            State::OpeningMailbox(client, mechanism) => (client, mechanism),
            other => {
                self.state = other;
                return;
            }
        };
        match result {
            Ok(maildrop) => {
                self.reply_with(|out, _| reply::write_total(out, maildrop.total()));
                self.state = State::Idle(Idle::Transaction(maildrop));
            }
            Err(refusal) => match mechanism.and_then(Mechanism::failure_challenge) {
                Some(challenge) if refusal == Refusal::WrongCredentials => {
                    self.state = State::AuthExchange(client, AuthExchange::Refused(refusal));
                    self.reply_with(|out, _| reply::write_challenge(out, &challenge));
                }
                _ => {
                    self.state = State::Idle(Idle::Authorization(client));
                    self.refuse(&refusal);
                }
            },
        }
    }

    /// Completes [`Action::Fetch`] with the message, or `None` if it no longer exists.
    pub fn fetched(&mut self, result: Result<Option<Source>, Refusal>) {
        let (maildrop, request) = match std::mem::replace(&mut self.state, State::Closed) {
            State::Fetching(maildrop, request) => (maildrop, request),
            other => {
                self.state = other;
                return;
            }
        };
        match result {
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

    /// Completes [`Action::Delete`]. `Ok` means that none of the messages exists any more, whichever client deleted
    /// them.
    #[expect(clippy::needless_pass_by_value, reason = "the driver passes every result by value")]
    pub fn deleted(&mut self, result: Result<(), Refusal>) {
        if matches!(self.state, State::Updating) {
            self.state = State::Quitting;
            match result {
                Ok(()) => self.reply(reply::BYE),
                Err(_) => self.reply_error(reply::NOT_REMOVED),
            }
        }
    }

    /// Completes [`Action::StartTls`]. The session forgets everything from before the handshake (RFC 2595 section 4).
    pub fn tls_started(&mut self) {
        if matches!(self.state, State::StartingTls) {
            self.state = State::Idle(Idle::Authorization(AnonymousClient::default()));
            self.lines = LineReader::default();
            self.is_tls = true;
        }
    }

    /// Ends the session because the client was silent for too long. Sends no reply and deletes nothing (RFC 1939
    /// section 3).
    pub fn time_out(&mut self) {
        self.state = State::Closed;
    }

    /// Ends the session because the server shuts down. Sends no reply within a multi-line reply or after the last one.
    pub fn shut_down(&mut self) {
        if !matches!(self.state, State::Sending(..) | State::StartingTls | State::Quitting | State::Closed) {
            self.reply_error_with(reply::write_shutting_down);
        }
        self.state = State::Closed;
    }

    /// Ends the session instead of greeting the client, because there are too many connections.
    pub fn refuse_busy(&mut self) {
        self.reply_error_with(reply::write_busy);
        self.state = State::Closed;
    }

    /// Starts a transcript. It contains no passwords, digests or message content.
    pub fn start_recording(&mut self, scope: TranscriptScope) {
        self.recorder = Recorder::new(scope);
    }

    /// Returns the transcript since it was started or last cleared. Returns `None` if none is recorded.
    pub fn transcript(&mut self) -> Option<&mut TranscriptBuffer> {
        self.recorder.is_recording().then_some(&mut self.recorder.transcript)
    }

    /// Queues a fixed reply.
    pub(super) fn reply(&mut self, text: &'static str) {
        self.reply_with(|out, _| out.extend_from_slice(text.as_bytes()));
    }

    /// Queues the reply that the function writes.
    pub(super) fn reply_with<T>(&mut self, write: impl FnOnce(&mut Vec<u8>, &Settings) -> T) -> T {
        self.queue(false, write)
    }

    /// Queues a fixed error.
    pub(super) fn reply_error(&mut self, text: &'static str) {
        self.reply_error_with(|out, _| out.extend_from_slice(text.as_bytes()));
    }

    /// Queues the error that the function writes.
    pub(super) fn reply_error_with(&mut self, write: impl FnOnce(&mut Vec<u8>, &Settings)) {
        self.queue(true, write);
    }

    fn queue<T>(&mut self, is_error: bool, write: impl FnOnce(&mut Vec<u8>, &Settings) -> T) -> T {
        let start = self.replies.len();
        let result = write(&mut self.replies, &self.settings);
        self.recorder.record_replies(&self.replies[start..], is_error);
        result
    }

    /// Queues message text that the function writes. The function also returns the number of message octets.
    pub(super) fn reply_message_text<T>(&mut self, write: impl FnOnce(&mut Vec<u8>) -> (usize, T)) -> T {
        let (octets, result) = write(&mut self.replies);
        self.recorder.record_mail_octets(Speaker::Server, octets);
        result
    }

    /// Replies to a command that cannot be executed. Ends the session if there were too many bad commands.
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

    pub(super) fn refuse(&mut self, refusal: &Refusal) {
        match refusal {
            Refusal::WrongCredentials => self.reject(reply::NOT_AUTHENTICATED),
            Refusal::NotPermitted => self.reject(reply::NOT_PERMITTED),
            Refusal::InvalidName(reason) => self.reject_with(|out| reply::write_bad_name(out, reason)),
            Refusal::Unavailable => self.reply_error(reply::UNAVAILABLE),
        }
    }
}
