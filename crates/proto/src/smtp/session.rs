//! The session as the driver sees it: what it is fed, what it says, and the answers to what it asked. How input moves
//! it is in [`super::advance`].

use std::net::IpAddr;
use std::sync::Arc;

use restante_mail::envelope::{Envelope, Recipient, RecipientRefusal, Refusal, RefusalReason, SenderRefusal};

use crate::line::LineReader;
use crate::link::Link;
use crate::record::{Dialogue, Recording, Scope, Stage};

use super::auth::Exchange;
use super::fault::Fault;
use super::mask::Mask;
use super::reply::ErrorReply;
use super::state::{Idle, State, Trust};
use super::{Action, LoginRefusal, Settings, StoreRefusal, reply};

/// Replies beyond so many bytes are written before more commands are obeyed.
const MAX_REPLIES: usize = 16 * 1024;

/// One connection's conversation, from the greeting to the end.
#[derive(Debug)]
pub struct Session {
    pub(super) settings: Arc<Settings>,
    pub(super) ip: Option<IpAddr>,
    pub(super) link: Link,
    pub(super) state: State,
    pub(super) lines: LineReader,
    replies: Vec<u8>,
    /// The reasons of the refusals among the replies, until the driver takes them.
    refusals: Vec<RefusalReason>,
    bad_commands: usize,
    pub(super) recording: Option<Recording>,
    pub(super) mask: Mask,
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
            link: Link::of(tls),
            state: State::Idle(Idle::Fresh),
            lines: LineReader::default(),
            replies: Vec::new(),
            refusals: Vec::new(),
            bad_commands: 0,
            recording: None,
            mask: Mask::default(),
            helo: None,
            parameters: String::new(),
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
            if self.replies.len() > MAX_REPLIES {
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
            State::Sender(mail)
            | State::Recipient(mail)
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

    /// The octets of mail that have come since the peer began to send them, kept or not; `None` while a command is due.
    pub fn transferred(&self) -> Option<u64> {
        match &self.state {
            State::Data(_, reader) => Some(reader.seen()),
            State::Chunk(_, body, _) => Some(body.seen()),
            State::Swallow(_, chunk, _) => Some(chunk.taken()),
            _ => None,
        }
    }

    /// Answers [`Action::Sender`].
    pub fn sender(&mut self, answer: Result<(), SenderRefusal>) {
        self.state = match std::mem::replace(&mut self.state, State::Closed) {
            State::Sender(mail) => match answer {
                Ok(()) => {
                    self.reply(reply::SENDER_OK);
                    State::Idle(Idle::Mail(mail))
                }
                Err(refusal) => {
                    let reason = refusal.reason();
                    let idle = Idle::Ready(mail.into_client());
                    let state = self.answer_refusal(reason, &reply::sender_refusal(refusal), idle);
                    self.mark(Stage::Refused);
                    state
                }
            },
            other => other,
        };
    }

    /// Answers [`Action::Recipient`]: the recipient that was asked about, with its mailbox, or why it is refused.
    pub fn recipient(&mut self, answer: Result<Recipient, RecipientRefusal>) {
        self.state = match std::mem::replace(&mut self.state, State::Closed) {
            State::Recipient(mut mail) => match answer {
                Ok(recipient) => {
                    self.reply(reply::RECIPIENT_OK);
                    mail.envelope.recipients.push(recipient);
                    State::Idle(Idle::Mail(mail))
                }
                Err(refusal) => {
                    let reason = refusal.reason();
                    self.answer_refusal(reason, &reply::recipient_refusal(refusal), Idle::Mail(mail))
                }
            },
            other => other,
        };
    }

    /// Answers [`Action::Challenge`]: the text is sent to the peer in base64.
    pub fn challenge(&mut self, challenge: String) {
        self.state = match std::mem::replace(&mut self.state, State::Closed) {
            State::Challenging(client) => {
                self.say(|out, _| reply::challenge(out, &challenge));
                State::Challenge(client, Exchange::CramMd5 { challenge })
            }
            other => other,
        };
    }

    /// Answers [`Action::Authenticate`]: the login is accepted, or why not.
    pub fn authenticated(&mut self, answer: Result<(), LoginRefusal>) {
        let mut client = match std::mem::replace(&mut self.state, State::Closed) {
            State::Login(client) => client,
            other => {
                self.state = other;
                return;
            }
        };
        if answer.is_ok() {
            client.trust = Trust::Authenticated;
        }
        self.state = State::Idle(Idle::Ready(client));
        match answer {
            Ok(()) => self.reply(reply::AUTHENTICATED),
            Err(refusal @ LoginRefusal::WrongCredentials) => self.fail(&Fault::Bad(reply::login_refusal(refusal))),
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
                        self.mark(Stage::Accepted);
                    }
                    Err(refusal) => {
                        (0..replies).for_each(|_| self.refuse(reply::store_refusal(refusal)));
                        self.mark(Stage::Refused);
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
        if matches!(self.state, State::Tls) {
            self.state = State::Idle(Idle::Fresh);
            self.lines = LineReader::default();
            self.link = Link::Tls;
        }
    }

    /// Ends the session because the peer was silent for too long.
    pub fn time_out(&mut self) {
        self.say_error(|out, settings| reply::timed_out(out, &settings.domain));
        self.state = State::Closed;
    }

    /// Ends the session because the server stops.
    pub fn shut_down(&mut self) {
        self.say_error(|out, settings| reply::shutting_down(out, &settings.domain));
        self.state = State::Closed;
    }

    /// Ends the session, instead of a greeting, because there are too many.
    pub fn refuse_busy(&mut self) {
        self.refusals.push(RefusalReason::Busy);
        self.say_error(|out, settings| reply::busy(out, &settings.domain));
        self.state = State::Closed;
    }

    /// Starts a record of the dialogue, without passwords and without the text of mails.
    pub fn record(&mut self, scope: Scope) {
        self.recording = Some(Recording::new(scope));
    }

    /// What was said since the record was started or last cleared; `None` without a record.
    pub fn dialogue(&mut self) -> Option<&mut Dialogue> {
        self.recording.as_mut().map(|recording| &mut recording.dialogue)
    }

    /// The connection is gone. What has come of a mail that will not be finished is recorded.
    pub fn hang_up(&mut self) {
        self.state = State::Closed;
        if let Some(recording) = &mut self.recording {
            recording.end();
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
        self.say(|out, _| out.extend_from_slice(text.as_bytes()));
    }

    /// Queues a reply that refuses something.
    pub(super) fn refuse(&mut self, reply: ErrorReply) {
        self.refusals.push(reply.reason);
        self.say_error(|out, _| out.extend_from_slice(reply.line.as_bytes()));
    }

    /// Queues what the function writes.
    pub(super) fn say(&mut self, write: impl FnOnce(&mut Vec<u8>, &Settings)) {
        self.queue(false, write);
    }

    /// Queues an error that the function writes.
    pub(super) fn say_error(&mut self, write: impl FnOnce(&mut Vec<u8>, &Settings)) {
        self.queue(true, write);
    }

    fn queue(&mut self, is_error: bool, write: impl FnOnce(&mut Vec<u8>, &Settings)) {
        let start = self.replies.len();
        write(&mut self.replies, &self.settings);
        if let Some(recording) = &mut self.recording {
            recording.replies(&self.replies[start..], is_error);
        }
    }

    /// Records what the last line means for the mail under way.
    pub(super) fn mark(&mut self, stage: Stage) {
        if let Some(recording) = &mut self.recording {
            recording.mark(stage);
        }
    }

    /// Records the parameters of MAIL or RCPT.
    pub(super) fn note_parameters(&mut self, text: &str) {
        if self.recording.is_some() {
            self.parameters.clear();
            self.parameters.push_str(text);
        }
    }

    /// Answers a command that cannot be obeyed. One bad command too many ends the session instead.
    pub(super) fn fail(&mut self, fault: &Fault) {
        match fault {
            Fault::Bad(reply) => {
                self.bad_commands += 1;
                if self.bad_commands == self.settings.max_bad_commands {
                    self.say_error(|out, settings| reply::too_many_errors(out, &settings.domain));
                    self.state = State::Closed;
                } else {
                    self.refuse(*reply);
                }
            }
            Fault::Refused(reply) => self.refuse(*reply),
            Fault::Sender(error) => {
                self.refusals.push(RefusalReason::Address);
                self.say_error(|out, _| reply::bad_sender(out, error));
            }
            Fault::Recipient(error) => {
                self.refusals.push(RefusalReason::Address);
                self.say_error(|out, _| reply::bad_recipient(out, error));
            }
            Fault::Cancelled => self.say_error(|out, _| out.extend_from_slice(reply::AUTH_CANCELLED.as_bytes())),
        }
    }

    /// Queues a refusal that has its own code and text, and returns the next state. The code 421 ends the session (RFC 5321
    /// section 3.8).
    fn answer_refusal(&mut self, reason: RefusalReason, refusal: &Refusal, then: Idle) -> State {
        self.refusals.push(reason);
        self.say_error(|out, _| reply::refusal(out, refusal));
        if refusal.code == 421 { State::Closed } else { State::Idle(then) }
    }
}
