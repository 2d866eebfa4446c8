//! The session as the driver sees it: what it is fed, what it says, and the answers to what it asked. How input moves
//! it is in [`super::advance`].

use std::net::IpAddr;
use std::sync::Arc;

use restante_mail::envelope::{Envelope, Recipient, RecipientRefusal, Refusal, RefusalReason, SenderRefusal};

use crate::line::LineReader;
use crate::transcript::{Recorder, TransactionStage, TranscriptBuffer, TranscriptScope};
use crate::transport::Transport;

use super::auth::AuthExchange;
use super::command_error::CommandError;
use super::mask::CommandMask;
use super::reply::ErrorReply;
use super::state::{AuthStatus, Idle, State};
use super::{Action, LoginRefusal, Settings, StoreRefusal, reply};

/// Replies beyond so many bytes are written before more commands are obeyed.
const MAX_REPLY_BYTES: usize = 16 * 1024;

/// One connection's conversation, from the greeting to the end.
#[derive(Debug)]
pub struct Session {
    pub(super) settings: Arc<Settings>,
    pub(super) ip: Option<IpAddr>,
    pub(super) transport: Transport,
    pub(super) state: State,
    pub(super) lines: LineReader,
    replies: Vec<u8>,
    /// The reasons of the refusals among the replies, until the driver takes them.
    refusals: Vec<RefusalReason>,
    bad_commands: usize,
    pub(super) recorder: Option<Recorder>,
    pub(super) mask: CommandMask,
    /// What the peer calls itself, until somebody takes it; only while a record is made.
    pub(super) helo: Option<String>,
    /// The parameters of the last MAIL or RCPT; only while a record is made.
    parameters: String,
}

impl Session {
    /// A session with a peer that has just connected; `tls` says whether the connection began with a TLS handshake.
    pub fn new(settings: Arc<Settings>, ip: Option<IpAddr>, tls: bool) -> Self {
        Self {
            settings,
            ip,
            transport: Transport::new(tls),
            state: State::Idle(Idle::BeforeHello),
            lines: LineReader::default(),
            replies: Vec::new(),
            refusals: Vec::new(),
            bad_commands: 0,
            recorder: None,
            mask: CommandMask::default(),
            helo: None,
            parameters: String::new(),
        }
    }

    /// Queues the greeting.
    pub fn greet(&mut self) {
        self.reply_with(reply::write_greeting);
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
            if self.replies.len() > MAX_REPLY_BYTES {
                return (consumed, Action::Write);
            }
        }
    }

    /// The replies queued so far. The driver writes and clears them, all at once, before it waits for the peer.
    pub fn replies(&mut self) -> &mut Vec<u8> {
        &mut self.replies
    }

    /// Takes the reasons of the refusals since the last call, one for each reply that refuses something. The driver takes
    /// them when it writes the replies.
    pub fn take_refusals(&mut self) -> impl Iterator<Item = RefusalReason> {
        self.refusals.drain(..)
    }

    /// The mail under way: the peer, the sender (also while it is asked about), and the recipients accepted so far.
    pub fn envelope(&self) -> Option<&Envelope> {
        match &self.state {
            State::CheckingSender(mail)
            | State::CheckingRecipient(mail)
            | State::ReceivingData(mail, _)
            | State::ReceivingChunk(mail, ..)
            | State::Idle(Idle::Mail(mail) | Idle::Chunked(mail, _))
            | State::DiscardingChunk(Idle::Mail(mail) | Idle::Chunked(mail, _), ..) => Some(&mail.envelope),
            _ => None,
        }
    }

    /// The bytes of mail held now.
    pub fn buffered_bytes(&self) -> usize {
        match &self.state {
            State::ReceivingData(_, reader) => reader.len(),
            State::ReceivingChunk(_, body, _)
            | State::Idle(Idle::Chunked(_, body))
            | State::DiscardingChunk(Idle::Chunked(_, body), ..) => body.len(),
            _ => 0,
        }
    }

    /// The octets of mail that have come since the peer began to send them, kept or not; `None` while a command is due.
    pub fn transferred_bytes(&self) -> Option<u64> {
        match &self.state {
            State::ReceivingData(_, reader) => Some(reader.received_bytes()),
            State::ReceivingChunk(_, body, _) => Some(body.received_bytes()),
            State::DiscardingChunk(_, chunk, _) => Some(chunk.received_bytes()),
            _ => None,
        }
    }

    /// Answers [`Action::Sender`].
    pub fn sender_checked(&mut self, answer: Result<(), SenderRefusal>) {
        self.state = match std::mem::replace(&mut self.state, State::Closed) {
            State::CheckingSender(mail) => match answer {
                Ok(()) => {
                    self.reply(reply::SENDER_OK);
                    State::Idle(Idle::Mail(mail))
                }
                Err(refusal) => {
                    let reason = refusal.reason();
                    let idle = Idle::Ready(mail.into_client());
                    let state = self.reply_refusal(reason, &reply::sender_refusal(refusal), idle);
                    self.mark_stage(TransactionStage::Refused);
                    state
                }
            },
            other => other,
        };
    }

    /// Answers [`Action::Recipient`]: the recipient that was asked about, with its mailbox, or why it is refused.
    pub fn recipient_checked(&mut self, answer: Result<Recipient, RecipientRefusal>) {
        self.state = match std::mem::replace(&mut self.state, State::Closed) {
            State::CheckingRecipient(mut mail) => match answer {
                Ok(recipient) => {
                    self.reply(reply::RECIPIENT_OK);
                    mail.envelope.recipients.push(recipient);
                    State::Idle(Idle::Mail(mail))
                }
                Err(refusal) => {
                    let reason = refusal.reason();
                    self.reply_refusal(reason, &reply::recipient_refusal(refusal), Idle::Mail(mail))
                }
            },
            other => other,
        };
    }

    /// Answers [`Action::Challenge`]: the text is sent to the peer in base64.
    pub fn challenge_created(&mut self, challenge: String) {
        self.state = match std::mem::replace(&mut self.state, State::Closed) {
            State::AwaitingChallenge(client) => {
                self.reply_with(|out, _| reply::write_challenge(out, &challenge));
                State::AuthExchange(client, AuthExchange::CramMd5 { challenge })
            }
            other => other,
        };
    }

    /// Answers [`Action::Authenticate`]: the login is accepted, or why not.
    pub fn authenticated(&mut self, answer: Result<(), LoginRefusal>) {
        let mut client = match std::mem::replace(&mut self.state, State::Closed) {
            State::CheckingLogin(client) => client,
            other => {
                self.state = other;
                return;
            }
        };
        if answer.is_ok() {
            client.auth_status = AuthStatus::Authenticated;
        }
        self.state = State::Idle(Idle::Ready(client));
        match answer {
            Ok(()) => self.reply(reply::AUTHENTICATED),
            Err(refusal @ LoginRefusal::WrongCredentials) => {
                self.reject(&CommandError::Bad(reply::login_refusal(refusal)))
            }
            Err(refusal) => self.refuse(reply::login_refusal(refusal)),
        }
    }

    /// Answers [`Action::Deliver`]: the mail is stored for all recipients, or for none.
    pub fn delivered(&mut self, answer: Result<(), StoreRefusal>) {
        self.state = match std::mem::replace(&mut self.state, State::Closed) {
            State::Delivering(client, replies) => {
                match answer {
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

    /// Answers [`Action::StartTls`]: the handshake is done. Everything known from before is forgotten (RFC 3207
    /// section 4.2).
    pub fn tls_started(&mut self) {
        if matches!(self.state, State::StartingTls) {
            self.state = State::Idle(Idle::BeforeHello);
            self.lines = LineReader::default();
            self.transport = Transport::Tls;
        }
    }

    /// Ends the session because the peer was silent for too long.
    pub fn time_out(&mut self) {
        self.reply_error_with(|out, settings| reply::write_timed_out(out, &settings.domain));
        self.state = State::Closed;
    }

    /// Ends the session because the server stops.
    pub fn shut_down(&mut self) {
        self.reply_error_with(|out, settings| reply::write_shutting_down(out, &settings.domain));
        self.state = State::Closed;
    }

    /// Ends the session, instead of a greeting, because there are too many.
    pub fn refuse_busy(&mut self) {
        self.refusals.push(RefusalReason::Busy);
        self.reply_error_with(|out, settings| reply::write_busy(out, &settings.domain));
        self.state = State::Closed;
    }

    /// Starts a record of the dialogue, without passwords and without the text of mails.
    pub fn start_recording(&mut self, scope: TranscriptScope) {
        self.recorder = Some(Recorder::new(scope));
    }

    /// What was said since the record was started or last cleared; `None` without a record.
    pub fn transcript(&mut self) -> Option<&mut TranscriptBuffer> {
        self.recorder.as_mut().map(|recording| &mut recording.transcript)
    }

    /// The connection is gone. What has come of a mail that will not be finished is recorded.
    pub fn disconnected(&mut self) {
        self.state = State::Closed;
        if let Some(recording) = &mut self.recorder {
            recording.finish();
        }
    }

    /// What the peer calls itself, when it has said so since the last time, as far as it is recorded.
    pub fn take_helo(&mut self) -> Option<String> {
        self.helo.take()
    }

    /// The parameters behind the address that [`Action::Sender`] or [`Action::Recipient`] asks about, such as `SIZE=10
    /// BODY=8BITMIME`, as far as they are recorded.
    pub fn parameters(&self) -> &str {
        &self.parameters
    }

    /// Queues a reply that never changes.
    pub(super) fn reply(&mut self, text: &'static str) {
        self.reply_with(|out, _| out.extend_from_slice(text.as_bytes()));
    }

    /// Queues a reply that refuses something.
    pub(super) fn refuse(&mut self, reply: ErrorReply) {
        self.refusals.push(reply.reason);
        self.reply_error_with(|out, _| out.extend_from_slice(reply.line.as_bytes()));
    }

    /// Queues what the function writes.
    pub(super) fn reply_with(&mut self, write: impl FnOnce(&mut Vec<u8>, &Settings)) {
        self.queue(false, write);
    }

    /// Queues an error that the function writes.
    pub(super) fn reply_error_with(&mut self, write: impl FnOnce(&mut Vec<u8>, &Settings)) {
        self.queue(true, write);
    }

    fn queue(&mut self, is_error: bool, write: impl FnOnce(&mut Vec<u8>, &Settings)) {
        let start = self.replies.len();
        write(&mut self.replies, &self.settings);
        if let Some(recording) = &mut self.recorder {
            recording.record_replies(&self.replies[start..], is_error);
        }
    }

    /// Records what the last line means for the mail under way.
    pub(super) fn mark_stage(&mut self, stage: TransactionStage) {
        if let Some(recording) = &mut self.recorder {
            recording.mark_stage(stage);
        }
    }

    /// Records the parameters of MAIL or RCPT.
    pub(super) fn record_parameters(&mut self, text: &str) {
        if self.recorder.is_some() {
            self.parameters.clear();
            self.parameters.push_str(text);
        }
    }

    /// Answers a command that cannot be obeyed. One bad command too many ends the session instead.
    pub(super) fn reject(&mut self, fault: &CommandError) {
        match fault {
            CommandError::Bad(reply) => {
                self.bad_commands += 1;
                if self.bad_commands == self.settings.max_bad_commands {
                    self.reply_error_with(|out, settings| reply::write_too_many_errors(out, &settings.domain));
                    self.state = State::Closed;
                } else {
                    self.refuse(*reply);
                }
            }
            CommandError::Refused(reply) => self.refuse(*reply),
            CommandError::InvalidSender(error) => {
                self.refusals.push(RefusalReason::Address);
                self.reply_error_with(|out, _| reply::write_bad_sender(out, error));
            }
            CommandError::InvalidRecipient(error) => {
                self.refusals.push(RefusalReason::Address);
                self.reply_error_with(|out, _| reply::write_bad_recipient(out, error));
            }
            CommandError::AuthCancelled => {
                self.reply_error_with(|out, _| out.extend_from_slice(reply::AUTH_CANCELLED.as_bytes()))
            }
        }
    }

    /// Queues a refusal that has its own code and text, and returns the next state. The code 421 ends the session (RFC 5321
    /// section 3.8).
    fn reply_refusal(&mut self, reason: RefusalReason, refusal: &Refusal, then: Idle) -> State {
        self.refusals.push(reason);
        self.reply_error_with(|out, _| reply::write_refusal(out, refusal));
        if refusal.code == 421 { State::Closed } else { State::Idle(then) }
    }
}
