//! Runs one session on a connection: reads, steps the session, performs its actions, writes. Replies are written only
//! when the session has consumed its input, so pipelined commands are answered in one write.

use std::io;
use std::net::IpAddr;
use std::time::Duration;

use bytes::{Buf as _, Bytes};
use restante_auth::{DenialReason, Denied, Grant, Scope};
use restante_mail::address::Address;
use restante_mail::envelope::{Envelope, RecipientRefusal, SenderRefusal};
use restante_mail::naming::MailboxName;
use restante_mailroom::{DeliveryOutcome, StoreError, WriteAccess};
use restante_metrics::SessionEndReason;
use restante_net::{Deadline, ReadOutcome, Reservation, SHUTDOWN_GRACE_PERIOD};
use restante_proto::smtp::{Action, LoginRefusal, Proof, Session, StoreRefusal};
use tokio::time::{Instant, timeout_at};

use super::{Server, TranscriptRecorder};
use crate::{AcceptedConnection, unique_id};

/// The read size between commands.
const COMMAND_BUFFER_BYTES: usize = 4 * 1024;
/// The read size within a message.
const MESSAGE_BUFFER_BYTES: usize = 64 * 1024;
/// The average rate that a message must reach, in bytes per second. Any real link is faster.
const MIN_BYTES_PER_SECOND: u64 = 1024;

/// Drives a session: moves bytes between the connection and the session, and performs its actions.
pub(super) struct SessionDriver<'a> {
    server: &'a Server,
    connection: AcceptedConnection<'a>,
    session: &'a mut Session,
    /// The transcript, if there is a journal.
    recorder: Option<&'a mut TranscriptRecorder>,
    ip: Option<IpAddr>,
    /// The grant of the client, after a login.
    grant: Option<Grant>,
    /// The memory reserved for the current message.
    reservation: Reservation,
    deadline: Deadline,
    /// Whether message data is expected next, and not a command.
    is_receiving: bool,
}

/// The outcome of waiting for input.
enum WaitOutcome {
    Read(ReadOutcome),
    NoMemory,
    Shutdown,
}

impl<'a> SessionDriver<'a> {
    pub(super) fn new(
        server: &'a Server,
        connection: AcceptedConnection<'a>,
        session: &'a mut Session,
        mut recorder: Option<&'a mut TranscriptRecorder>,
        ip: Option<IpAddr>,
    ) -> Self {
        let scope = if recorder.is_some() {
            Some(restante_proto::TranscriptScope::Everything)
        } else {
            connection.transcript_scope()
        };
        if let Some(scope) = scope {
            session.start_recording(scope);
        }
        if let Some(recorder) = &mut recorder {
            recorder.set_tls(connection.stream.tls_info());
        }
        let reservation = server.message_budget.reservation();
        let deadline = Deadline::new(server.context.idle_timeout, MIN_BYTES_PER_SECOND, Instant::now());
        Self { server, connection, session, recorder, ip, grant: None, reservation, deadline, is_receiving: false }
    }

    /// Replies that the server is busy, and closes.
    pub(super) async fn refuse(self) -> io::Result<SessionEndReason> {
        self.session.refuse_busy();
        self.close(SessionEndReason::Refused).await
    }

    /// Runs the session until it ends.
    pub(super) async fn run(mut self) -> io::Result<SessionEndReason> {
        self.session.greet();
        let end_reason = loop {
            let (consumed, action) = self.session.step(&self.connection.stream.input);
            self.connection.stream.input.advance(consumed);
            match action {
                Action::Read => {
                    self.flush().await?;
                    match self.read().await? {
                        WaitOutcome::Read(ReadOutcome::Data) => {}
                        WaitOutcome::Read(ReadOutcome::Closed) => return Ok(SessionEndReason::Disconnected),
                        WaitOutcome::Read(ReadOutcome::TimedOut) => {
                            self.session.time_out();
                            break SessionEndReason::Timeout;
                        }
                        WaitOutcome::NoMemory => return self.refuse().await,
                        WaitOutcome::Shutdown => {
                            self.session.shut_down();
                            break SessionEndReason::Shutdown;
                        }
                    }
                }
                Action::Write => self.flush().await?,
                Action::CheckSender => {
                    self.record_transcript(Instant::now());
                    if let (Some(recorder), Some(envelope)) = (&mut self.recorder, self.session.envelope()) {
                        recorder.record_sender(&envelope.from, self.session.parameters());
                    }
                    // The session always has an envelope at this action.
                    if let Some(envelope) = self.session.envelope() {
                        let mailroom = &self.server.context.mailroom;
                        let result = match mailroom.chaos().and_then(|chaos| chaos.read().sender.fire()) {
                            Some(code) => Err(SenderRefusal::Chaos(code)),
                            None => mailroom.check_sender(envelope).await,
                        };
                        self.session.sender_checked(result);
                    }
                }
                Action::CheckRecipient(candidate) => {
                    self.record_transcript(Instant::now());
                    self.check_recipient(candidate).await;
                }
                Action::CreateChallenge => {
                    let challenge = unique_id(&self.server.settings.domain);
                    self.session.challenge_created(challenge);
                }
                Action::Authenticate { user, proof } => {
                    let Some(result) = self.log_in(&user, &proof).await else {
                        self.session.shut_down();
                        break SessionEndReason::Shutdown;
                    };
                    if let (Some(recorder), Ok(())) = (&mut self.recorder, &result) {
                        recorder.set_user(user);
                    }
                    self.session.authenticated(result);
                }
                Action::Deliver { envelope, body } => {
                    self.record_transcript(Instant::now());
                    let outcome = self.deliver(&envelope, body.into()).await;
                    self.session.delivered(outcome);
                    self.deadline.restart(Instant::now());
                }
                Action::StartTls => {
                    self.flush().await?;
                    self.connection = match self.connection.start_tls().await {
                        Ok(connection) => connection,
                        Err(early_close) => {
                            if let Some(recorder) = self.recorder {
                                recorder.record_early_close(&early_close);
                            }
                            return Ok(early_close.end_reason);
                        }
                    };
                    if let Some(recorder) = &mut self.recorder {
                        recorder.set_tls(self.connection.stream.tls_info());
                    }
                    self.session.tls_started();
                    self.grant = None;
                }
                Action::Quit => break SessionEndReason::Quit,
                Action::Close => break SessionEndReason::Errors,
            }
        };
        self.close(end_reason).await
    }

    /// Checks a login, which may be delayed. Returns `None` if the server shuts down meanwhile.
    async fn log_in(&mut self, user: &str, proof: &Proof) -> Option<Result<(), LoginRefusal>> {
        let Server { context, login, .. } = self.server;
        if let Some(code) = context.mailroom.chaos().and_then(|chaos| chaos.read().authentication.fire()) {
            return Some(Err(LoginRefusal::Chaos(code)));
        }
        let login_result = tokio::select! {
            biased;
            login_result = login.check(user, proof, self.ip) => login_result,
            () = self.connection.shutdown.triggered() => return None,
        };
        context.metrics.count_login(context.protocol, login_result.is_ok());
        let denied = match login_result {
            Ok(grant) => {
                self.grant = Some(grant);
                return Some(Ok(()));
            }
            Err(denied) => denied,
        };
        context.metrics.count_denial(context.protocol, denied.reason);
        login.auth().log_denial(context.protocol.log_name(), self.ip, &"AUTH", &denied);
        Some(Err(match denied.reason {
            DenialReason::TooMany => LoginRefusal::TooManyFailures,
            DenialReason::SingleSignOn => LoginRefusal::Unavailable,
            DenialReason::Scope | DenialReason::NoAccess => LoginRefusal::NotPermitted,
            _ => LoginRefusal::WrongCredentials,
        }))
    }

    /// Checks a recipient with the mailroom and passes the result to the session.
    async fn check_recipient(&mut self, candidate: Address) {
        let context = &self.server.context;
        // The session always has an envelope at this action.
        let Some(envelope) = self.session.envelope() else { return };
        let grant = self.grant.as_ref();
        let limited = grant.filter(|grant| !grant.allows_everywhere(Scope::Write));
        let is_permitted = limited.map(|grant| |mailbox: &MailboxName| grant.allows(Scope::Write, mailbox));
        let is_permitted = is_permitted.as_ref().map(|is_permitted| is_permitted as _);
        let access = WriteAccess { home: grant.and_then(Grant::home), is_permitted };
        let result = match context.mailroom.chaos().and_then(|chaos| chaos.read().recipient.fire()) {
            Some(code) => Err(RecipientRefusal::Chaos(code)),
            None => context.mailroom.check_recipient(envelope, candidate, access).await,
        };
        match &result {
            Ok(recipient) => {
                if let Some(recorder) = &mut self.recorder {
                    recorder.record_recipient(&recipient.address, self.session.parameters());
                }
            }
            Err(RecipientRefusal::NotPermitted) => {
                let denied = Denied::new(grant.and_then(Grant::name), DenialReason::Mailbox);
                context.metrics.count_denial(context.protocol, denied.reason);
                self.server.login.auth().log_denial(context.protocol.log_name(), self.ip, &"RCPT", &denied);
            }
            Err(_) => {}
        }
        self.session.recipient_checked(result);
    }

    async fn deliver(&mut self, envelope: &Envelope, body: Bytes) -> Result<(), StoreRefusal> {
        let started = Instant::now();
        let outcome = self.server.context.mailroom.deliver(envelope, body).await;
        self.server.context.metrics.observe_delivery(started.elapsed());
        match outcome {
            Ok(DeliveryOutcome::Stored(copies)) => {
                for copy in &copies {
                    tracing::debug!(session = self.connection.session_name, mailbox = %copy.mailbox, id = %copy.id, "message stored");
                }
                if let Some(recorder) = &mut self.recorder {
                    recorder.record_stored(copies);
                }
                Ok(())
            }
            Ok(DeliveryOutcome::Discarded) => {
                tracing::debug!(session = self.connection.session_name, "message discarded");
                Ok(())
            }
            Ok(DeliveryOutcome::TooLarge { max_bytes }) => {
                tracing::debug!(session = self.connection.session_name, max_bytes, "message too large for a mailbox");
                Err(StoreRefusal::TooLarge)
            }
            Err(error) => {
                self.connection.log_store_error("cannot store message", &error);
                Err(store_refusal(&error))
            }
        }
    }

    /// Waits for input until the deadline. Within a message it first waits until memory for the received data is
    /// reserved. This is the back-pressure on all messages in transfer.
    async fn read(&mut self) -> io::Result<WaitOutcome> {
        let is_between_messages = self.session.envelope().is_none();
        if is_between_messages && self.connection.shutdown.is_triggered() {
            return Ok(WaitOutcome::Shutdown);
        }
        let before = Instant::now();
        let buffered = self.session.buffered_bytes();
        // A message in progress may be finished, but only within the grace period.
        let grace_period = if is_between_messages { Duration::ZERO } else { SHUTDOWN_GRACE_PERIOD };
        tokio::select! {
            biased;
            reserved = timeout_at(before + self.server.context.idle_timeout, self.reservation.adjust_to(buffered)) => {
                if reserved.is_err() {
                    return Ok(WaitOutcome::NoMemory);
                }
            }
            () = self.connection.shutdown.triggered_for(grace_period) => return Ok(WaitOutcome::Shutdown),
        }
        let now = Instant::now();
        self.deadline.extend(now - before);
        let transferred = self.session.transferred_bytes();
        if transferred.is_some() != self.is_receiving {
            // A message and the command after it each have their own deadline.
            self.is_receiving = transferred.is_some();
            self.deadline.restart(now);
        }
        let deadline = self.deadline.expires_at(now, transferred.unwrap_or(0));
        if buffered > 0 {
            self.connection.stream.input.reserve(MESSAGE_BUFFER_BYTES);
        } else {
            self.connection.stream.reserve_idle_input(COMMAND_BUFFER_BYTES);
        }
        tokio::select! {
            biased;
            outcome = self.connection.stream.read(deadline) => outcome.map(WaitOutcome::Read),
            () = self.connection.shutdown.triggered_for(grace_period) => Ok(WaitOutcome::Shutdown),
        }
    }

    /// Records the lines so far: before an action that may take long, and before replies are written.
    fn record_transcript(&mut self, now: Instant) {
        let Some(transcript) = self.session.transcript() else { return };
        self.connection.log_transcript(transcript);
        match &mut self.recorder {
            Some(recorder) => recorder.record_transcript(self.session, now),
            None => transcript.clear(),
        }
    }

    async fn flush(&mut self) -> io::Result<()> {
        if !self.session.replies().is_empty() {
            let now = Instant::now();
            self.record_transcript(now);
            for reason in self.session.take_refusals() {
                self.server.context.metrics.count_refusal(reason);
            }
            self.connection.stream.write(now, self.session.replies()).await?;
            // Only a complete command gets a reply. An endless line is read and discarded without extending the
            // deadline; and within a message no reply extends it.
            if !self.is_receiving {
                self.deadline.restart(Instant::now());
            }
        }
        Ok(())
    }

    /// Writes the remaining replies and closes.
    async fn close(mut self, end_reason: SessionEndReason) -> io::Result<SessionEndReason> {
        self.flush().await?;
        Ok(self.connection.close(end_reason).await)
    }
}

/// Maps a store error to the refusal of the message.
fn store_refusal(error: &StoreError) -> StoreRefusal {
    match error {
        StoreError::NoSpace(_) => StoreRefusal::Full,
        StoreError::Unavailable(_) => StoreRefusal::Unavailable,
        StoreError::Broken(_) => StoreRefusal::Broken,
    }
}
