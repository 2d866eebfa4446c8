//! The interface between the session and its driver: input, replies, and the results of actions. The state transitions
//! are in [`super::transitions`].

use std::sync::Arc;

use jiff::Timestamp;
use restante_mail::message::MessageId;

use crate::line::LineReader;
use crate::sasl::{Exchange, Mechanism};
use crate::transcript::{Recorder, TranscriptBuffer, TranscriptScope};

use super::reader::CommandReader;
use super::selected::Selected;
use super::task::{Completion, Context, Enabled, MAX_REPLY_BYTES, Status, Task};
use super::view::MessageView;
use super::{Action, Change, Outcome, Refusal, Settings, reply};

/// The session of one connection.
#[derive(Debug)]
pub struct Session {
    pub(super) settings: Arc<Settings>,
    pub(super) now: Timestamp,
    pub(super) is_tls: bool,
    pub(super) is_logged_in: bool,
    pub(super) state: State,
    pub(super) reader: CommandReader,
    /// The message of APPEND for which memory is reserved.
    pub(super) offered: Option<OfferedMessage>,
    pub(super) enabled: Enabled,
    pub(super) selected: Option<Selected>,
    /// The message of the last partial fetch: the next one is often another slice of it.
    pub(super) last_view: Option<(MessageId, MessageView)>,
    pub(super) replies: Vec<u8>,
    bad_commands: usize,
    pub(super) recorder: Recorder,
}

/// The state of a session. See the module documentation.
#[derive(Debug)]
pub(super) enum State {
    Ready,
    Authenticating {
        tag: String,
        exchange: Exchange,
    },
    LoggingIn {
        tag: String,
        mechanism: Option<Mechanism>,
    },
    /// The client must answer the description of a failed login.
    LoginFailed {
        tag: String,
    },
    Working(Work),
    Idling {
        tag: String,
        lines: LineReader,
    },
    StartingTls,
    LoggingOut,
    Closed,
}

/// A message of APPEND before it is read.
#[derive(Debug)]
pub(super) struct OfferedMessage {
    pub(super) tag: String,
    pub(super) is_synchronizing: bool,
}

/// A command that is being executed.
#[derive(Debug)]
pub(super) struct Work {
    pub(super) tag: String,
    pub(super) task: Box<dyn Task>,
    /// Whether sequence numbers may change at the end.
    pub(super) may_renumber: bool,
    /// Whether the driver performs an operation.
    pub(super) is_waiting: bool,
    /// The result of the operation.
    pub(super) result: Option<Result<Outcome, Refusal>>,
}

impl Session {
    /// Creates a session for a new connection. `is_tls` says whether the connection started with a TLS handshake.
    pub fn new(settings: Arc<Settings>, is_tls: bool) -> Self {
        Self {
            settings,
            now: Timestamp::UNIX_EPOCH,
            is_tls,
            is_logged_in: false,
            state: State::Ready,
            reader: CommandReader::default(),
            offered: None,
            enabled: Enabled::default(),
            selected: None,
            last_view: None,
            replies: Vec::new(),
            bad_commands: 0,
            recorder: Recorder::default(),
        }
    }

    /// Queues the greeting.
    pub fn greet(&mut self) {
        let capabilities = self.capabilities();
        self.untagged(format_args!("OK [CAPABILITY {capabilities}] Restante IMAP server ready"));
    }

    /// Sets the current time, which searches use.
    pub fn set_time(&mut self, now: Timestamp) {
        self.now = now;
    }

    /// Consumes input and returns what the driver must do next.
    ///
    /// Also returns the number of bytes consumed. The driver passes the rest again: at once after [`Action::Write`] and
    /// after it has completed an action, and with more input appended after [`Action::Read`]. Nothing is consumed while
    /// the result of an action is pending.
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

    /// Returns whether the session waits for a line from the client. Otherwise there is something to finish first.
    pub fn is_idle(&self) -> bool {
        matches!(
            self.state,
            State::Ready | State::Authenticating { .. } | State::LoginFailed { .. } | State::Idling { .. }
        )
    }

    /// Returns whether the client waits for changes of the mailbox.
    pub fn is_idling(&self) -> bool {
        matches!(self.state, State::Idling { .. })
    }

    /// Returns whether a mailbox is selected. Otherwise changes need not be reported.
    pub fn has_selected(&self) -> bool {
        self.selected.is_some()
    }

    /// Returns the highest message id that is known in the selected mailbox.
    pub fn last_id(&self) -> MessageId {
        self.selected.as_ref().map_or(MessageId::ZERO, Selected::last_id)
    }

    /// Returns the bytes of the list of messages in memory.
    pub fn list_bytes(&self) -> usize {
        self.selected.as_ref().map_or(0, Selected::memory_bytes)
    }

    /// Returns the bytes of messages in memory: those that are being sent or searched, and the last one.
    pub fn message_bytes(&self) -> usize {
        let working = match &self.state {
            State::Working(work) => work.task.memory_bytes(),
            _ => 0,
        };
        working + self.last_view.as_ref().map_or(0, |(_, view)| view.source().len()) + self.reader.message_bytes()
    }

    /// Returns how many octets of the message of APPEND were received, while it is being read.
    pub fn received_bytes(&self) -> Option<u64> {
        self.reader.received_bytes()
    }

    /// Releases the message that is kept for the next partial fetch.
    pub fn release_message(&mut self) {
        self.last_view = None;
    }

    /// Completes [`Action::ReserveLiteral`].
    pub fn literal_reserved(&mut self, is_reserved: bool) {
        let Some(OfferedMessage { tag, is_synchronizing }) = self.offered.take() else { return };
        if !is_reserved {
            self.reader.reject();
            self.complete(&tag, reply::refusal(&Refusal::Unavailable));
            return;
        }
        self.reader.accept();
        if is_synchronizing {
            self.queue(false, |out| reply::write_continuation(out, "Ready for the message"));
        }
    }

    /// Completes [`Action::LogIn`].
    pub fn logged_in(&mut self, result: Result<(), Refusal>) {
        let State::LoggingIn { tag, mechanism } = std::mem::replace(&mut self.state, State::Ready) else { return };
        match result {
            Ok(()) => {
                self.is_logged_in = true;
                let code = format!("[CAPABILITY {}] ", self.capabilities());
                self.complete(&tag, Completion::ok("Logged in").with_code(code));
            }
            Err(refusal) => {
                let challenge = mechanism.and_then(Mechanism::failure_challenge);
                match challenge.filter(|_| refusal == Refusal::WrongCredentials) {
                    Some(challenge) => {
                        self.queue(true, |out| reply::write_continuation(out, &challenge));
                        self.state = State::LoginFailed { tag };
                    }
                    None => self.refuse_login(&tag, &refusal),
                }
            }
        }
    }

    /// Completes [`Action::Perform`].
    pub fn completed(&mut self, result: Result<Outcome, Refusal>) {
        let State::Working(work) = &mut self.state else { return };
        work.is_waiting = false;
        work.result = Some(result);
    }

    /// Reports a change of the selected mailbox. The client gets it when the protocol allows it.
    pub fn changed(&mut self, change: Change) {
        let Some(selected) = &mut self.selected else { return };
        match change {
            Change::Added(listing) => selected.extend(&listing),
            Change::Marked(id, marks) => selected.mark(id, &marks),
            Change::Removed(id) => selected.remove(id),
            Change::Reloaded(listing) => selected.reload(&listing),
        }
    }

    /// Completes [`Action::StartTls`]. The session forgets everything from before the handshake.
    pub fn tls_started(&mut self) {
        if matches!(self.state, State::StartingTls) {
            self.state = State::Ready;
            self.reader = CommandReader::default();
            self.is_tls = true;
        }
    }

    /// Ends the session because the client was silent for too long.
    pub fn time_out(&mut self) {
        self.bye("Idle for too long");
    }

    /// Ends the session because the server shuts down. Sends no reply within another one.
    pub fn shut_down(&mut self) {
        if self.is_idle() {
            let text = format!("[UNAVAILABLE] {} is shutting down", self.settings.domain);
            self.bye(&text);
        }
        self.state = State::Closed;
    }

    /// Ends the session instead of greeting the client, because there are too many connections.
    pub fn refuse_busy(&mut self) {
        let text = format!("[UNAVAILABLE] {} has too many connections, try again later", self.settings.domain);
        self.bye(&text);
    }

    /// Starts a transcript. It contains no passwords and no message content.
    pub fn start_recording(&mut self, scope: TranscriptScope) {
        self.recorder = Recorder::new(scope);
    }

    /// Returns the transcript since it was started or last cleared. Returns `None` if none is recorded.
    pub fn transcript(&mut self) -> Option<&mut TranscriptBuffer> {
        self.recorder.is_recording().then_some(&mut self.recorder.transcript)
    }

    /// Runs a function on the parts of the session that a task uses.
    pub(super) fn with_context<T>(&mut self, run: impl FnOnce(&mut Context<'_>) -> T) -> T {
        run(&mut Context {
            settings: &self.settings,
            enabled: self.enabled,
            selected: &mut self.selected,
            last_view: &mut self.last_view,
            out: &mut self.replies,
        })
    }

    /// Queues an untagged reply.
    pub(super) fn untagged(&mut self, text: impl std::fmt::Display) {
        self.queue(false, |out| crate::reply_text::write_line(out, format_args!("* {text}")));
    }

    /// Queues replies that the function writes.
    pub(super) fn queue(&mut self, is_error: bool, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.replies.len();
        write(&mut self.replies);
        self.recorder.record_replies(&self.replies[start..], is_error);
    }

    /// Ends the session with BYE.
    pub(super) fn bye(&mut self, text: &str) {
        self.queue(true, |out| crate::reply_text::write_line(out, format_args!("* BYE {text}")));
        self.state = State::Closed;
    }

    /// Announces changes and queues the last reply to a command. A bad command may be one during which sequence numbers
    /// stay the same.
    pub(super) fn complete(&mut self, tag: &str, completion: Completion) {
        let may_renumber = completion.status != Status::Bad;
        self.complete_work(tag, may_renumber, completion);
    }

    /// Like [`Session::complete`]. Deleted messages are announced only if sequence numbers may change.
    pub(super) fn complete_work(&mut self, tag: &str, may_renumber: bool, completion: Completion) {
        self.announce(may_renumber);
        let Completion { status, code, text } = completion;
        self.queue(status != Status::Ok, |out| reply::write_completion(out, tag, status, &code, &text));
        if status == Status::Bad {
            self.count_bad_command();
        }
    }

    /// Queues the changes of the selected mailbox.
    pub(super) fn announce(&mut self, may_renumber: bool) {
        let style = self.enabled.style();
        if let Some(selected) = self.selected.as_mut().filter(|selected| selected.has_unannounced_changes()) {
            let start = self.replies.len();
            selected.announce(&mut self.replies, may_renumber, style);
            self.recorder.record_replies(&self.replies[start..], false);
        }
    }

    /// Counts a command that cannot be executed. Ends the session if there were too many.
    pub(super) fn count_bad_command(&mut self) {
        self.bad_commands += 1;
        if self.bad_commands == self.settings.max_bad_commands {
            self.bye("Too many errors");
        }
    }

    /// Completes a login that has failed.
    pub(super) fn refuse_login(&mut self, tag: &str, refusal: &Refusal) {
        self.complete(tag, reply::refusal(refusal));
        self.count_bad_command();
    }
}
