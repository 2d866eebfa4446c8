//! Runs one session on a connection: reads, steps the session, performs its actions, writes. Pipelined commands are
//! answered in one write. A long reply is sent in parts, and the client must accept a part before the next is created.

use std::io;
use std::net::IpAddr;
use std::time::Duration;

use bytes::Buf as _;
use restante_auth::Scope;
use restante_mail::message::{MessageId, Source};
use restante_mail::naming::MailboxName;
use restante_mailroom::DeletionCause;
use restante_metrics::SessionEndReason;
use restante_net::{Deadline, ReadOutcome, Reservation, SHUTDOWN_GRACE_PERIOD};
use restante_proto::pop3::{Action, Maildrop, Proof, Refusal, Session};
use restante_store::{MessageSelector, Page, StoreError};
use tokio::task::yield_now;
use tokio::time::{Instant, sleep};

use super::Server;
use crate::AcceptedConnection;
use crate::mailbox_login::{self, LoginRefusal, LoginRequest};

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
        let command = match proof {
            Proof::Password(_) => "PASS",
            Proof::Bearer(_) => "AUTH",
            Proof::Apop { .. } => "APOP",
        };
        let request = LoginRequest { command, mailbox, user, proof: proof.into(), ip: self.ip };
        let AcceptedConnection { session_name, shutdown, .. } = &mut self.connection;
        let (mailbox, grant) = login.open_mailbox(context, session_name, request, shutdown).await?;
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

impl<'a> From<&'a Proof> for mailbox_login::Proof<'a> {
    fn from(proof: &'a Proof) -> Self {
        match proof {
            Proof::Password(password) => Self::Password(password),
            Proof::Bearer(token) => Self::Bearer(token),
            Proof::Apop { timestamp, digest } => Self::Apop { timestamp, digest },
        }
    }
}

impl From<LoginRefusal> for Refusal {
    fn from(refusal: LoginRefusal) -> Self {
        match refusal {
            LoginRefusal::WrongCredentials => Self::WrongCredentials,
            LoginRefusal::NotPermitted => Self::NotPermitted,
            LoginRefusal::InvalidName(reason) => Self::InvalidName(reason),
            LoginRefusal::Unavailable => Self::Unavailable,
        }
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
