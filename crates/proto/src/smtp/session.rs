//! The interface between the session and its driver: input, replies, and the results of actions. The state transitions
//! are in [`super::transitions`].

use std::net::IpAddr;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use restante_mail::envelope::{Envelope, Recipient, RecipientRefusal, Refusal, RefusalReason, SenderRefusal};

use crate::line::LineReader;
use crate::sasl::Mechanism;
use crate::transcript::{Recorder, TransactionStage, TranscriptBuffer, TranscriptScope};

use super::auth::AuthExchange;
use super::command_error::CommandError;
use super::mask::CommandMask;
use super::reply::{ClosingReply, ErrorReply};
use super::state::{Idle, State};
use super::{Action, LoginRefusal, Settings, StoreRefusal, reply};

/// If the queued replies exceed this size, they are written before more commands are executed.
const MAX_REPLY_BYTES: usize = 16 * 1024;

/// The session of one connection.
#[derive(Debug)]
pub struct Session {
    pub(super) settings: Arc<Settings>,
    pub(super) ip: Option<IpAddr>,
    /// Whether the connection is encrypted.
    pub(super) is_tls: bool,
    pub(super) state: State,
    pub(super) lines: LineReader,
    replies: Vec<u8>,
    /// The reasons of the refusals among the replies, until the driver takes them.
    refusals: Vec<RefusalReason>,
    bad_commands: usize,
    pub(super) recorder: Recorder,
    pub(super) mask: CommandMask,
    /// The name in the client's last greeting, until it is taken. Only set while a transcript is recorded.
    pub(super) helo: Option<String>,
    /// The parameters of the last MAIL or RCPT. Only set while a transcript is recorded.
    parameters: String,
}

impl Session {
    /// Creates a session for a new connection. `is_tls` says whether the connection started with a TLS handshake.
    pub fn new(settings: Arc<Settings>, ip: Option<IpAddr>, is_tls: bool) -> Self {
        Self {
            settings,
            ip,
            is_tls,
            state: State::Idle(Idle::BeforeHello),
            lines: LineReader::default(),
            replies: Vec::new(),
            refusals: Vec::new(),
            bad_commands: 0,
            recorder: Recorder::default(),
            mask: CommandMask::default(),
            helo: None,
            parameters: String::new(),
        }
    }

    /// Queues the greeting.
    pub fn greet(&mut self) {
        self.reply_with(reply::write_greeting);
    }

    /// Consumes input and returns what the driver must do next.
    ///
    /// Also returns the number of bytes consumed. The driver passes the rest again: at once after it has completed an
    /// action, and with more input appended after [`Action::Read`]. In that case the rest is an incomplete line of
    /// limited length. Nothing is consumed while the result of an action is pending.
    pub fn step(&mut self, input: &[u8]) -> (usize, Action) {
        let mut consumed = 0;
        loop {
            let (consumed_now, action) = self.advance(&input[consumed..]);
            consumed += consumed_now;
            if let Some(action) = action {
                return (consumed, action);
            }
            if self.replies.len() > MAX_REPLY_BYTES {
                return (consumed, Action::Write);
            }
        }
    }

    /// Returns the queued replies. The driver writes and clears all of them before it waits for the client.
    pub fn replies(&mut self) -> &mut Vec<u8> {
        &mut self.replies
    }

    /// Returns the reasons of the refusals since the last call, one for each refusing reply. The driver calls it when
    /// it writes the replies.
    pub fn take_refusals(&mut self) -> impl Iterator<Item = RefusalReason> {
        self.refusals.drain(..)
    }

    /// Returns the envelope of the current transaction: the client, the sender (also while it is checked), and the
    /// recipients accepted so far.
    pub fn envelope(&self) -> Option<&Envelope> {
        match &self.state {
            State::CheckingSender(transaction)
            | State::CheckingRecipient(transaction)
            | State::ReceivingData(transaction, _)
            | State::ReceivingChunk(transaction, ..)
            | State::Idle(Idle::Mail(transaction) | Idle::Chunked(transaction, _))
            | State::DiscardingChunk(Idle::Mail(transaction) | Idle::Chunked(transaction, _), ..) => {
                Some(&transaction.envelope)
            }
            _ => None,
        }
    }

    /// Returns the number of message bytes in memory.
    pub fn buffered_bytes(&self) -> usize {
        match &self.state {
            State::ReceivingData(_, reader) => reader.body.len(),
            State::ReceivingChunk(_, body, _)
            | State::Idle(Idle::Chunked(_, body))
            | State::DiscardingChunk(Idle::Chunked(_, body), ..) => body.len(),
            _ => 0,
        }
    }

    /// Returns the number of message octets received since the client started to send them, kept or not. Returns `None`
    /// while a command is expected.
    pub fn transferred_bytes(&self) -> Option<u64> {
        match &self.state {
            State::ReceivingData(_, reader) => Some(reader.body.received_bytes()),
            State::ReceivingChunk(_, body, _) => Some(body.received_bytes()),
            State::DiscardingChunk(_, chunk, _) => Some(chunk.received_bytes()),
            _ => None,
        }
    }

    /// Completes [`Action::CheckSender`].
    pub fn sender_checked(&mut self, result: Result<(), SenderRefusal>) {
        self.state = match std::mem::replace(&mut self.state, State::Closed) {
            State::CheckingSender(transaction) => match result {
                Ok(()) => {
                    self.reply(reply::SENDER_OK);
                    State::Idle(Idle::Mail(transaction))
                }
                Err(refusal) => {
                    let reason = refusal.reason();
                    let idle = Idle::Ready(transaction.into_client());
                    let state = self.reply_refusal(reason, &reply::sender_refusal(refusal), idle);
                    self.mark_stage(TransactionStage::Refused);
                    state
                }
            },
            other => other,
        };
    }

    /// Completes [`Action::CheckRecipient`] with the recipient and its mailbox, or the refusal.
    pub fn recipient_checked(&mut self, result: Result<Recipient, RecipientRefusal>) {
        self.state = match std::mem::replace(&mut self.state, State::Closed) {
            State::CheckingRecipient(mut transaction) => match result {
                Ok(recipient) => {
                    self.reply(reply::RECIPIENT_OK);
                    transaction.envelope.recipients.push(recipient);
                    State::Idle(Idle::Mail(transaction))
                }
                Err(refusal) => {
                    let reason = refusal.reason();
                    self.reply_refusal(reason, &reply::recipient_refusal(refusal), Idle::Mail(transaction))
                }
            },
            other => other,
        };
    }

    /// Completes [`Action::CreateChallenge`]. The text is sent to the client in base64.
    pub fn challenge_created(&mut self, challenge: String) {
        self.state = match std::mem::replace(&mut self.state, State::Closed) {
            State::AwaitingChallenge(client) => {
                self.reply_with(|out, _| reply::write_challenge(out, &STANDARD.encode(&challenge)));
                State::AuthExchange(client, AuthExchange::CramMd5 { challenge })
            }
            other => other,
        };
    }

    /// Completes [`Action::Authenticate`].
    pub fn authenticated(&mut self, result: Result<(), LoginRefusal>) {
        let (mut client, user, mechanism) = match std::mem::replace(&mut self.state, State::Closed) {
            State::CheckingLogin { client, user, mechanism } => (client, user, mechanism),
            other => {
                self.state = other;
                return;
            }
        };
        let refusal = match result {
            Ok(()) => {
                client.login = Some(user);
                self.state = State::Idle(Idle::Ready(client));
                return self.reply(reply::AUTHENTICATED);
            }
            Err(refusal) => refusal,
        };
        let is_wrong = matches!(refusal, LoginRefusal::WrongCredentials | LoginRefusal::Chaos(535));
        if is_wrong && let Some(challenge) = mechanism.and_then(Mechanism::failure_challenge) {
            self.state = State::AuthExchange(client, AuthExchange::Refused(refusal));
            return self.reply_with(|out, _| reply::write_challenge(out, &challenge));
        }
        self.state = State::Idle(Idle::Ready(client));
        self.refuse_login(refusal);
    }

    /// Replies that a login is refused.
    pub(super) fn refuse_login(&mut self, refusal: LoginRefusal) {
        match refusal {
            LoginRefusal::WrongCredentials => self.reject(&CommandError::Bad(reply::NOT_AUTHENTICATED)),
            LoginRefusal::TooManyFailures => self.refuse(reply::TOO_MANY_LOGINS),
            LoginRefusal::Unavailable => self.refuse(reply::LOGIN_UNAVAILABLE),
            LoginRefusal::NotPermitted => self.refuse(reply::LOGIN_NOT_PERMITTED),
            LoginRefusal::Chaos(code) => {
                self.refusals.push(RefusalReason::Auth);
                self.reply_error_with(|out, _| reply::write_refusal(out, &reply::chaos_login_refusal(code)));
                if code == 421 {
                    self.state = State::Closed;
                }
            }
        }
    }

    /// Completes [`Action::Deliver`]: the message is stored for all recipients, or for none.
    pub fn delivered(&mut self, result: Result<(), StoreRefusal>) {
        self.state = match std::mem::replace(&mut self.state, State::Closed) {
            State::Delivering(client, replies) => {
                match result {
                    Ok(()) => {
                        (0..replies).for_each(|_| self.reply(reply::DELIVERED));
                        self.mark_stage(TransactionStage::Accepted);
                    }
                    Err(refusal) => {
                        (0..replies).for_each(|_| self.refuse(reply::store_refusal(refusal)));
                        self.mark_stage(TransactionStage::Refused);
                    }
                }
                State::Idle(Idle::Ready(client))
            }
            other => other,
        };
    }

    /// Completes [`Action::StartTls`]. The session forgets everything from before the handshake (RFC 3207 section 4.2).
    pub fn tls_started(&mut self) {
        if matches!(self.state, State::StartingTls) {
            self.state = State::Idle(Idle::BeforeHello);
            self.lines = LineReader::default();
            self.is_tls = true;
        }
    }

    /// Ends the session because the client was silent for too long.
    pub fn time_out(&mut self) {
        self.close(reply::TIMED_OUT);
    }

    /// Ends the session because the server shuts down.
    pub fn shut_down(&mut self) {
        self.close(reply::SHUTTING_DOWN);
    }

    /// Ends the session instead of greeting the client, because there are too many connections.
    pub fn refuse_busy(&mut self) {
        self.refusals.push(RefusalReason::Busy);
        self.close(reply::BUSY);
    }

    /// Starts a transcript. It contains no passwords and no message content.
    pub fn start_recording(&mut self, scope: TranscriptScope) {
        self.recorder = Recorder::new(scope);
    }

    /// Returns the transcript since it was started or last cleared. Returns `None` if none is recorded.
    pub fn transcript(&mut self) -> Option<&mut TranscriptBuffer> {
        self.recorder.is_recording().then_some(&mut self.recorder.transcript)
    }

    /// Ends the session because the connection is closed. The octets of an incomplete message are recorded.
    pub fn disconnected(&mut self) {
        self.state = State::Closed;
        self.recorder.finish();
    }

    /// Returns the name in the client's greeting if there was one since the last call. Only available while a
    /// transcript is recorded.
    pub fn take_helo(&mut self) -> Option<String> {
        self.helo.take()
    }

    /// Returns the parameters after the address of [`Action::CheckSender`] or [`Action::CheckRecipient`], such as
    /// `SIZE=10 BODY=8BITMIME`. Only available while a transcript is recorded.
    pub fn parameters(&self) -> &str {
        &self.parameters
    }

    /// Queues a fixed reply.
    pub(super) fn reply(&mut self, text: &'static str) {
        self.reply_with(|out, _| out.extend_from_slice(text.as_bytes()));
    }

    /// Queues a reply that refuses something.
    pub(super) fn refuse(&mut self, reply: ErrorReply) {
        self.refusals.push(reply.reason);
        self.reply_error_with(|out, _| out.extend_from_slice(reply.line.as_bytes()));
    }

    /// Queues the reply that the function writes.
    pub(super) fn reply_with(&mut self, write: impl FnOnce(&mut Vec<u8>, &Settings)) {
        self.queue(false, write);
    }

    /// Queues the error that the function writes.
    pub(super) fn reply_error_with(&mut self, write: impl FnOnce(&mut Vec<u8>, &Settings)) {
        self.queue(true, write);
    }

    fn queue(&mut self, is_error: bool, write: impl FnOnce(&mut Vec<u8>, &Settings)) {
        let start = self.replies.len();
        write(&mut self.replies, &self.settings);
        self.recorder.record_replies(&self.replies[start..], is_error);
    }

    /// Ends the session with this reply.
    pub(super) fn close(&mut self, reply: ClosingReply) {
        self.reply_error_with(|out, settings| reply::write_closing(out, &settings.domain, reply));
        self.state = State::Closed;
    }

    /// Records the effect of the last line on the transaction.
    pub(super) fn mark_stage(&mut self, stage: TransactionStage) {
        self.recorder.mark_stage(stage);
    }

    /// Records the parameters of MAIL or RCPT.
    pub(super) fn record_parameters(&mut self, text: &str) {
        if self.recorder.is_recording() {
            self.parameters.clear();
            self.parameters.push_str(text);
        }
    }

    /// Replies to a command that cannot be executed. Ends the session if there were too many bad commands.
    pub(super) fn reject(&mut self, error: &CommandError) {
        match error {
            CommandError::Bad(reply) => {
                self.bad_commands += 1;
                if self.bad_commands == self.settings.max_bad_commands {
                    self.close(reply::TOO_MANY_ERRORS);
                } else {
                    self.refuse(*reply);
                }
            }
            CommandError::Refused(reply) => self.refuse(*reply),
            CommandError::InvalidAddress(start, error) => {
                self.refusals.push(RefusalReason::Address);
                self.reply_error_with(|out, _| reply::write_bad_address(out, start, error));
            }
            CommandError::AuthCancelled => {
                self.reply_error_with(|out, _| out.extend_from_slice(reply::AUTH_CANCELLED.as_bytes()));
            }
        }
    }

    /// Queues a refusal with its own code and text, and returns the next state. The code 421 ends the session (RFC 5321
    /// section 3.8).
    fn reply_refusal(&mut self, reason: RefusalReason, refusal: &Refusal, next_idle: Idle) -> State {
        self.refusals.push(reason);
        self.reply_error_with(|out, _| reply::write_refusal(out, refusal));
        if refusal.code == 421 { State::Closed } else { State::Idle(next_idle) }
    }
}
