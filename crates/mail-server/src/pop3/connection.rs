//! Runs one session on a connection: reads, steps the session, performs its actions, writes. Pipelined commands are
//! answered in one write. A long reply is sent in parts, and the client must accept a part before the next is created.

use std::io;
use std::net::IpAddr;
use std::time::Duration;

use bytes::Buf as _;
use restante_auth::{DenialReason, Denied, Grant, Scope};
use restante_mail::message::{MessageId, Source};
use restante_mail::naming::{MailboxName, Project};
use restante_mailroom::DeletionCause;
use restante_metrics::SessionEndReason;
use restante_net::{Deadline, ReadOutcome, Reservation, SHUTDOWN_GRACE_PERIOD};
use restante_proto::pop3::{Action, Maildrop, Proof, Refusal, Session};
use restante_store::{MessageSelector, Page, StoreError};
use tokio::task::yield_now;
use tokio::time::{Instant, sleep};

use super::Server;
use super::login::{LoginAttempt, check_read_access};
use crate::AcceptedConnection;

/// The read size.
const INPUT_BUFFER_BYTES: usize = 4 * 1024;
/// The average rate at which the client must accept a reply, in bytes per second. Any real link is faster.
const MIN_BYTES_PER_SECOND: u64 = 16 * 1024;
/// The number of summaries that are held at once while a mailbox is opened.
const PAGE_SIZE: usize = 1000;
/// Messages up to this size are sent without a reservation. They are not larger than what a connection uses anyway, and
/// their clients do not have to queue after those of large messages.
const MAX_UNRESERVED_BYTES: usize = 64 * 1024;
/// How long a client waits for memory. The refusal should arrive before the client's own timeout.
const MEMORY_TIMEOUT: Duration = Duration::from_secs(10);
/// The delay of the reply to a failed login, except for passwords if accounts are configured. The login throttle is
/// added to it.
const FAILED_LOGIN_DELAY: Duration = Duration::from_secs(1);

/// Drives a session: moves bytes between the connection and the session, and performs its actions.
pub(super) struct SessionDriver<'a> {
    server: &'a Server,
    connection: AcceptedConnection<'a>,
    session: Session,
    ip: Option<IpAddr>,
    /// The open mailbox.
    mailbox: Option<MailboxName>,
    /// The memory reserved for the list of its messages.
    maildrop_reservation: Reservation,
    /// The memory reserved for the current message.
    message_reservation: Reservation,
    deadline: Deadline,
    /// The reply bytes that the client has accepted since its last command. `None` while a command is expected.
    written_bytes: Option<u64>,
}

/// The outcome of waiting for input.
enum WaitOutcome {
    Read(ReadOutcome),
    Shutdown,
}

impl<'a> SessionDriver<'a> {
    pub(super) fn new(
        server: &'a Server,
        connection: AcceptedConnection<'a>,
        mut session: Session,
        ip: Option<IpAddr>,
    ) -> Self {
        if let Some(scope) = connection.transcript_scope() {
            session.start_recording(scope);
        }
        let (maildrop_reservation, message_reservation) =
            (server.maildrop_budget.reservation(), server.message_budget.reservation());
        let deadline = Deadline::new(server.context.idle_timeout, MIN_BYTES_PER_SECOND, Instant::now());
        Self {
            server,
            connection,
            session,
            ip,
            mailbox: None,
            maildrop_reservation,
            message_reservation,
            deadline,
            written_bytes: None,
        }
    }

    /// Replies that the server is busy, and closes.
    pub(super) async fn refuse(mut self) -> io::Result<SessionEndReason> {
        self.session.refuse_busy();
        self.close(SessionEndReason::Refused).await
    }

    /// Runs the session until it ends.
    pub(super) async fn run(mut self) -> io::Result<SessionEndReason> {
        self.session.greet();
        let end_reason = loop {
            // A partial reply is finished first, but no new command is executed.
            if self.connection.shutdown.is_triggered() && self.session.is_idle() {
                self.session.shut_down();
                break SessionEndReason::Shutdown;
            }
            let (consumed, action) = self.session.step(&self.connection.stream.input);
            self.connection.stream.input.advance(consumed);
            if consumed > 0 {
                // A client that sends faster than it is answered never makes this task wait, so yield to other tasks.
                yield_now().await;
            }
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
                        WaitOutcome::Shutdown => {
                            self.session.shut_down();
                            break SessionEndReason::Shutdown;
                        }
                    }
                }
                Action::Write => self.flush().await?,
                Action::Open { mailbox, user, proof } => {
                    let result = self.open_mailbox(&mailbox, &user, &proof).await;
                    self.session.opened(result);
                }
                Action::Fetch(id) => {
                    let before = Instant::now();
                    let result = self.fetch(id).await;
                    self.session.fetched(result);
                    self.deadline.extend(before.elapsed());
                }
                Action::Delete(ids) => {
                    let result = self.delete(ids).await;
                    self.session.deleted(result);
                }
                Action::StartTls => {
                    self.flush().await?;
                    self.connection = match self.connection.start_tls().await {
                        Ok(connection) => connection,
                        Err(early_close) => return Ok(early_close.end_reason),
                    };
                    self.session.tls_started();
                }
                Action::Quit => break SessionEndReason::Quit,
                Action::Close => break SessionEndReason::Errors,
            }
        };
        self.close(end_reason).await
    }

    /// Opens a mailbox if the login allows it. Returns the list of its messages for this session.
    async fn open_mailbox(&mut self, mailbox: &str, user: &str, proof: &Proof) -> Result<Maildrop, Refusal> {
        let Server { context, login, .. } = self.server;
        let (mailbox, user) = login.split_mailbox_and_user(mailbox, user);
        let logged_in = self.log_in(mailbox, user, proof).await;
        context.metrics.count_login(context.protocol, logged_in.is_ok());
        if logged_in.is_err() {
            self.delay_failed_login(proof).await;
        }
        let (mailbox, grant) = logged_in?;
        let mut maildrop = match self.list_messages(&mailbox).await {
            Ok(maildrop) => maildrop,
            Err(refusal) => {
                self.maildrop_reservation.adjust_to(0).await;
                return Err(refusal);
            }
        };
        if !grant.allows(Scope::Write, &mailbox) {
            maildrop.is_read_only = true;
        }
        tracing::debug!(session = self.connection.session_name, %mailbox, "mailbox opened");
        self.mailbox = Some(mailbox);
        Ok(maildrop)
    }

    /// Checks a login, which may be delayed. Returns the mailbox, which is in the home of the grant if it was named without
    /// a project. Ends early if the server shuts down.
    async fn log_in(&mut self, name: &str, user: &str, proof: &Proof) -> Result<(MailboxName, Grant), Refusal> {
        let Server { context, login, .. } = self.server;
        let mailbox_in = |home: Option<&Project>| {
            let mailbox = context.mailroom.mailbox_in(home, name);
            mailbox.map_err(|error| Refusal::InvalidName(error.to_string()))
        };
        let (mailbox, user_mailbox) = (mailbox_in(None)?, context.mailroom.mailbox(user).ok());
        let attempt = LoginAttempt { mailbox: &mailbox, user, proof, ip: self.ip };
        let login_result = tokio::select! {
            biased;
            login_result = login.check(&attempt, user_mailbox.as_ref()) => login_result,
            () = self.connection.shutdown.triggered() => return Err(Refusal::Unavailable),
        };
        let grant = login_result.map_err(|denied| self.report_denial(proof, &denied))?;
        let mailbox = mailbox_in(grant.home())?;
        match check_read_access(&grant, &mailbox) {
            Ok(()) => Ok((mailbox, grant)),
            Err(denied) => Err(self.report_denial(proof, &denied)),
        }
    }

    fn report_denial(&self, proof: &Proof, denied: &Denied) -> Refusal {
        let command = match proof {
            Proof::Password(_) => "PASS",
            Proof::Apop { .. } => "APOP",
        };
        let Server { context, login, .. } = self.server;
        context.metrics.count_denial(context.protocol, denied.reason);
        login.auth().log_denial(context.protocol.log_name(), self.ip, &command, denied);
        match denied.reason {
            DenialReason::TooMany => Refusal::Unavailable,
            DenialReason::Scope | DenialReason::Mailbox => Refusal::NotPermitted,
            _ => Refusal::WrongCredentials,
        }
    }

    /// Delays the reply to a failed login, if logins are checked. Passwords are not delayed here if accounts are
    /// configured: the login throttle delays them.
    async fn delay_failed_login(&mut self, proof: &Proof) {
        let login = &self.server.login;
        if !login.auth().is_enabled() {
            // The user name is not logged: users type passwords into the wrong field.
            tracing::info!(session = self.connection.session_name, "login failed");
        }
        let is_already_delayed = login.auth().is_enabled() && matches!(proof, Proof::Password(_));
        if !login.accepts_any_login() && !is_already_delayed {
            let shutdown = &mut self.connection.shutdown;
            tokio::select! {
                () = sleep(FAILED_LOGIN_DELAY) => {}
                () = shutdown.triggered() => {}
            }
        }
    }

    /// Lists the messages of a mailbox without reading any. They are queried in pages, because a summary is much larger
    /// than the entry that is kept. Memory is reserved after every full page, because a large mailbox may have many
    /// readers. The rest after the last full page, which is all of most mailboxes, is not more than a connection uses
    /// anyway.
    async fn list_messages(&mut self, mailbox: &MailboxName) -> Result<Maildrop, Refusal> {
        let (mut maildrop, mut last_id) = (Maildrop::default(), MessageId::ZERO);
        loop {
            let page = Page { limit: Some(PAGE_SIZE), before: None, after: Some(last_id) };
            let listing = self.server.context.mailroom.list(mailbox, page).await;
            let messages = listing.map_err(|error| self.log_and_refuse(&error))?.messages;
            maildrop.extend(messages.iter().map(|message| (message.id, message.size)));
            match messages.last() {
                Some(message) if messages.len() == PAGE_SIZE => last_id = message.id,
                _ => return Ok(maildrop),
            }
            // Release the page before waiting.
            drop(messages);
            let bytes = maildrop.memory_bytes();
            if !wait_for_memory(&mut self.maildrop_reservation, bytes, &mut self.connection).await {
                tracing::warn!(session = self.connection.session_name, %mailbox, "no memory left to list a large mailbox, refusing the login");
                return Err(Refusal::Unavailable);
            }
        }
    }

    /// Returns a message once memory for it is reserved. Otherwise slow clients could hold many messages in memory.
    async fn fetch(&mut self, id: MessageId) -> Result<Option<Source>, Refusal> {
        // Release the memory of the previous message first: a connection must not wait for more while it holds some.
        self.message_reservation.adjust_to(0).await;
        let Some(mailbox) = &self.mailbox else { return Err(Refusal::Unavailable) };
        let mailroom = &self.server.context.mailroom;
        let found =
            mailroom.find(mailbox, MessageSelector::Id(id)).await.map_err(|error| self.log_and_refuse(&error))?;
        let Some(summary) = found else { return Ok(None) };
        let size = usize::try_from(summary.size).unwrap_or(usize::MAX);
        if size > MAX_UNRESERVED_BYTES
            && !wait_for_memory(&mut self.message_reservation, size, &mut self.connection).await
        {
            tracing::info!(session = self.connection.session_name, "no memory left to send a message, refusing it");
            return Err(Refusal::Unavailable);
        }
        mailroom.source(mailbox, id).await.map_err(|error| self.log_and_refuse(&error))
    }

    async fn delete(&self, ids: Vec<MessageId>) -> Result<(), Refusal> {
        let Some(mailbox) = &self.mailbox else { return Err(Refusal::Unavailable) };
        let count = self
            .server
            .context
            .mailroom
            .remove_all(mailbox, ids, DeletionCause::Collected)
            .await
            .map_err(|error| self.log_and_refuse(&error))?;
        tracing::debug!(session = self.connection.session_name, %mailbox, count, "messages deleted");
        Ok(())
    }

    fn log_and_refuse(&self, error: &StoreError) -> Refusal {
        self.connection.log_store_error("store operation failed", error);
        Refusal::Unavailable
    }

    /// Waits for the next command until the deadline, which restarts with every reply. An incomplete command does not
    /// extend it.
    async fn read(&mut self) -> io::Result<WaitOutcome> {
        let now = Instant::now();
        if self.written_bytes.take().is_some() {
            self.deadline.restart(now);
        }
        let deadline = self.deadline.expires_at(now, 0);
        self.connection.stream.reserve_idle_input(INPUT_BUFFER_BYTES);
        tokio::select! {
            biased;
            outcome = self.connection.stream.read(deadline) => outcome.map(WaitOutcome::Read),
            () = self.connection.shutdown.triggered() => Ok(WaitOutcome::Shutdown),
        }
    }

    /// Writes the replies. The client must accept all parts of a reply at a minimum rate, and after a shutdown within
    /// the grace period. Otherwise the connection is closed in the middle of the reply, which no client can mistake for
    /// a complete reply.
    async fn flush(&mut self) -> io::Result<()> {
        if let Some(transcript) = self.session.transcript() {
            self.connection.log_transcript(transcript);
            transcript.clear();
        }
        let replies = self.session.replies();
        if !replies.is_empty() {
            let length = replies.len() as u64;
            let now = Instant::now();
            if self.written_bytes.is_none() {
                self.deadline.restart(now);
            }
            let written_before = self.written_bytes.unwrap_or(0);
            let deadline = self.deadline.expires_at(now, written_before);
            tokio::select! {
                biased;
                written = self.connection.stream.write_until(deadline, replies) => written?,
                () = self.connection.shutdown.triggered_for(SHUTDOWN_GRACE_PERIOD) => return Err(io::ErrorKind::TimedOut.into()),
            }
            self.written_bytes = Some(written_before + length);
        }
        if self.session.sending_bytes() == 0 {
            self.message_reservation.adjust_to(0).await;
        }
        Ok(())
    }

    /// Writes the remaining replies and closes.
    async fn close(mut self, end_reason: SessionEndReason) -> io::Result<SessionEndReason> {
        self.flush().await?;
        Ok(self.connection.close(end_reason).await)
    }
}

/// Waits for memory until the timeout, a disconnect or the shutdown: the queue is for clients that can still use the
/// memory. Returns whether the memory is reserved.
async fn wait_for_memory(reservation: &mut Reservation, bytes: usize, connection: &mut AcceptedConnection<'_>) -> bool {
    tokio::select! {
        biased;
        () = reservation.adjust_to(bytes) => true,
        () = sleep(connection.context.idle_timeout.min(MEMORY_TIMEOUT)) => false,
        () = connection.stream.peer_disconnected(INPUT_BUFFER_BYTES) => false,
        () = connection.shutdown.triggered() => false,
    }
}
