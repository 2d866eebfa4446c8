//! One connection: reads, steps the session, answers its questions, writes. Pipelined commands are answered in one
//! write, because replies are written only when the session has used up its input.

use std::io;
use std::net::IpAddr;
use std::time::Duration;

use bytes::{Buf as _, Bytes};
use restante_auth::{Denied, Grant, Scope};
use restante_mail::address::Address;
use restante_mail::envelope::{Envelope, RecipientRefusal};
use restante_mail::naming::MailboxName;
use restante_mailroom::{DeliveryOutcome, StoreError};
use restante_metrics::SessionEndReason;
use restante_net::{Deadline, ReadOutcome, Reservation, SHUTDOWN_GRACE_PERIOD};
use restante_proto::smtp::{Action, LoginRefusal, Proof, Session, StoreRefusal};
use tokio::time::{Instant, timeout_at};

use super::{Server, TranscriptRecorder};
use crate::{AcceptedConnection, unique_id};

/// How much is read at once while commands are exchanged.
const COMMAND_BUFFER_BYTES: usize = 4 * 1024;
/// How much is read at once while a message comes in.
const MESSAGE_BUFFER_BYTES: usize = 64 * 1024;
/// The rate that a message must keep up on average, in bytes per second; any real link is faster.
const MIN_BYTES_PER_SECOND: u64 = 1024;

pub(super) struct Connection<'a> {
    server: &'a Server,
    connection: AcceptedConnection<'a>,
    session: &'a mut Session,
    /// Who takes down what is said, where somebody does.
    recorder: Option<&'a mut TranscriptRecorder>,
    ip: Option<IpAddr>,
    /// What the client may do that has logged in.
    grant: Option<Grant>,
    /// The memory that the message under way has been granted.
    reservation: Reservation,
    deadline: Deadline,
    /// Whether a mail is coming in, so that its bytes are waited for and no command.
    is_receiving: bool,
}

/// What a wait for input ended with.
enum WaitOutcome {
    Read(ReadOutcome),
    NoMemory,
    Shutdown,
}

impl<'a> Connection<'a> {
    pub(super) fn new(
        server: &'a Server,
        call: AcceptedConnection<'a>,
        session: &'a mut Session,
        mut scribe: Option<&'a mut TranscriptRecorder>,
        ip: Option<IpAddr>,
    ) -> Self {
        let scope =
            if scribe.is_some() { Some(restante_proto::TranscriptScope::Everything) } else { call.transcript_scope() };
        if let Some(scope) = scope {
            session.start_recording(scope);
        }
        if let Some(scribe) = &mut scribe {
            scribe.set_tls(call.stream.tls_info());
        }
        let reservation = server.message_budget.reservation();
        let patience = Deadline::new(server.context.idle_timeout, MIN_BYTES_PER_SECOND, Instant::now());
        Self {
            server,
            connection: call,
            session,
            recorder: scribe,
            ip,
            grant: None,
            reservation,
            deadline: patience,
            is_receiving: false,
        }
    }

    /// Says that there is too much to do, and closes.
    pub(super) async fn refuse(self) -> io::Result<SessionEndReason> {
        self.session.refuse_busy();
        self.close(SessionEndReason::Refused).await
    }

    /// Talks to the peer until one of the two has enough.
    pub(super) async fn run(mut self) -> io::Result<SessionEndReason> {
        self.session.greet();
        let ending = loop {
            let (used, action) = self.session.step(&self.connection.stream.input);
            self.connection.stream.input.advance(used);
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
                    if let (Some(scribe), Some(envelope)) = (&mut self.recorder, self.session.envelope()) {
                        scribe.record_sender(&envelope.from, self.session.parameters());
                    }
                    // There is an envelope whenever the session asks.
                    if let Some(envelope) = self.session.envelope() {
                        let answer = self.server.context.mailroom.check_sender(envelope).await;
                        self.session.sender_checked(answer);
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
                    let Some(answer) = self.log_in(&user, &proof).await else {
                        self.session.shut_down();
                        break SessionEndReason::Shutdown;
                    };
                    if let (Some(scribe), Ok(())) = (&mut self.recorder, &answer) {
                        scribe.set_user(user);
                    }
                    self.session.authenticated(answer);
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
                        Ok(call) => call,
                        Err(parting) => {
                            if let Some(scribe) = self.recorder {
                                scribe.record_early_close(&parting);
                            }
                            return Ok(parting.ending);
                        }
                    };
                    if let Some(scribe) = &mut self.recorder {
                        scribe.set_tls(self.connection.stream.tls_info());
                    }
                    self.session.tls_started();
                    self.grant = None;
                }
                Action::Quit => break SessionEndReason::Quit,
                Action::Close => break SessionEndReason::Errors,
            }
        };
        self.close(ending).await
    }

    /// Checks a login, which may take its time; none when the server ends meanwhile.
    async fn log_in(&mut self, user: &str, proof: &Proof) -> Option<Result<(), LoginRefusal>> {
        let Server { context: host, login, .. } = self.server;
        let checked = tokio::select! {
            biased;
            checked = login.check(user, proof, self.ip) => checked,
            () = self.connection.shutdown.triggered() => return None,
        };
        host.metrics.count_login(host.protocol, checked.is_ok());
        let denied = match checked {
            Ok(grant) => {
                self.grant = Some(grant);
                return Some(Ok(()));
            }
            Err(denied) => denied,
        };
        host.metrics.count_denial(host.protocol, denied.reason);
        login.auth().log_denial(host.protocol.name(), self.ip, &"AUTH", &denied);
        Some(Err(match denied.reason {
            restante_auth::DenialReason::TooMany => LoginRefusal::TooManyFailures,
            restante_auth::DenialReason::Scope => LoginRefusal::NotPermitted,
            _ => LoginRefusal::WrongCredentials,
        }))
    }

    /// Asks the mailroom about a recipient and answers the session.
    async fn check_recipient(&mut self, candidate: Address) {
        let host = &self.server.context;
        // There is an envelope whenever the session asks.
        let Some(envelope) = self.session.envelope() else { return };
        let grant = self.grant.as_ref();
        let is_permitted = |mailbox: &MailboxName| grant.is_none_or(|grant| grant.allows(Scope::Write, mailbox));
        let answer = host.mailroom.check_recipient(envelope, candidate, is_permitted).await;
        match &answer {
            Ok(recipient) => {
                if let Some(scribe) = &mut self.recorder {
                    scribe.record_recipient(&recipient.address, self.session.parameters());
                }
            }
            Err(RecipientRefusal::NotPermitted) => {
                let denied = Denied::new(grant.and_then(Grant::name), restante_auth::DenialReason::Mailbox);
                host.metrics.count_denial(host.protocol, denied.reason);
                self.server.login.auth().log_denial(host.protocol.name(), self.ip, &"RCPT", &denied);
            }
            Err(_) => {}
        }
        self.session.recipient_checked(answer);
    }

    async fn deliver(&mut self, envelope: &Envelope, body: Bytes) -> Result<(), StoreRefusal> {
        let begun = Instant::now();
        let outcome = self.server.context.mailroom.deliver(envelope, body).await;
        self.server.context.metrics.observe_delivery(begun.elapsed());
        match outcome {
            Ok(DeliveryOutcome::Stored(copies)) => {
                for copy in &copies {
                    tracing::debug!(session = self.connection.session_name, mailbox = %copy.mailbox, id = %copy.id, "stored");
                }
                if let Some(scribe) = &mut self.recorder {
                    scribe.record_stored(copies);
                }
                Ok(())
            }
            Ok(DeliveryOutcome::Discarded) => {
                tracing::debug!(session = self.connection.session_name, "discarded");
                Ok(())
            }
            Err(error) => {
                self.connection.log_store_error("mail could not be stored", &error);
                Err(store_refusal(&error))
            }
        }
    }

    /// Waits for input within the peer's time. Before it reads on in a message, it waits until there is memory for what
    /// it has: that is the back-pressure on all the messages that come in at the same time.
    async fn read(&mut self) -> io::Result<WaitOutcome> {
        let between_mails = self.session.envelope().is_none();
        if between_mails && self.connection.shutdown.is_triggered() {
            return Ok(WaitOutcome::Shutdown);
        }
        let before = Instant::now();
        let receiving = self.session.buffered_bytes();
        // A mail under way may be finished, but not at any price.
        let grace = if between_mails { Duration::ZERO } else { SHUTDOWN_GRACE_PERIOD };
        tokio::select! {
            biased;
            granted = timeout_at(before + self.server.context.idle_timeout, self.reservation.adjust_to(receiving)) => {
                if granted.is_err() {
                    return Ok(WaitOutcome::NoMemory);
                }
            }
            () = self.connection.shutdown.triggered_for(grace) => return Ok(WaitOutcome::Shutdown),
        }
        let now = Instant::now();
        self.deadline.extend(now - before);
        let transferred = self.session.transferred_bytes();
        if transferred.is_some() != self.is_receiving {
            // A mail has a time of its own, and so has the command behind it.
            self.is_receiving = transferred.is_some();
            self.deadline.restart(now);
        }
        let deadline = self.deadline.expires_at(now, transferred.unwrap_or(0));
        if receiving > 0 {
            self.connection.stream.reserve_input(MESSAGE_BUFFER_BYTES);
        } else {
            self.connection.stream.reserve_idle_input(COMMAND_BUFFER_BYTES);
        }
        tokio::select! {
            biased;
            heard = self.connection.stream.read(deadline) => heard.map(WaitOutcome::Read),
            () = self.connection.shutdown.triggered_for(grace) => Ok(WaitOutcome::Shutdown),
        }
    }

    /// Has taken down what was said until now: before an answer that may take a while, and before replies are written.
    fn record_transcript(&mut self, now: Instant) {
        let Some(dialogue) = self.session.transcript() else { return };
        self.connection.log_transcript(dialogue);
        match &mut self.recorder {
            Some(scribe) => scribe.record_transcript(self.session, now),
            None => dialogue.clear(),
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
            // Only a complete command is answered. A line that is too long and never ends is none, although it is read and
            // thrown away all the time; and within a mail no answer gains time.
            if !self.is_receiving {
                self.deadline.restart(Instant::now());
            }
        }
        Ok(())
    }

    /// Says what is left to be said, and closes.
    async fn close(mut self, ending: SessionEndReason) -> io::Result<SessionEndReason> {
        self.flush().await?;
        Ok(self.connection.close(ending).await)
    }
}

/// Returns why a mail is refused that the store did not take.
fn store_refusal(error: &StoreError) -> StoreRefusal {
    match error {
        StoreError::NoSpace(_) => StoreRefusal::Full,
        StoreError::Unavailable(_) => StoreRefusal::Unavailable,
        StoreError::Broken(_) => StoreRefusal::Broken,
    }
}
