//! Runs one session on a connection: reads, steps the session, performs its actions, writes. Pipelined commands are
//! answered in one write. A long reply is sent in parts, and the client must accept a part before the next is made.

use std::io;
use std::net::IpAddr;
use std::time::Duration;

use bytes::Buf as _;
use restante_auth::{DenialReason, Denied, Grant, Scope};
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
use super::login::LoginAttempt;
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
/// How long a client waits for memory. It should get the refusal before it gives up.
const MEMORY_TIMEOUT: Duration = Duration::from_secs(10);
/// The delay of the reply to a failed login if `pop3.credentials` are set. The throttle for failed logins is added to
/// it.
const FAILED_LOGIN_DELAY: Duration = Duration::from_secs(1);

pub(super) struct Connection<'a> {
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

impl<'a> Connection<'a> {
    pub(super) fn new(
        server: &'a Server,
        call: AcceptedConnection<'a>,
        mut session: Session,
        ip: Option<IpAddr>,
    ) -> Self {
        if let Some(scope) = call.transcript_scope() {
            session.start_recording(scope);
        }
        let (maildrop, message) = (server.maildrop_budget.reservation(), server.message_budget.reservation());
        let patience = Deadline::new(server.context.idle_timeout, MIN_BYTES_PER_SECOND, Instant::now());
        Self {
            server,
            connection: call,
            session,
            ip,
            mailbox: None,
            maildrop_reservation: maildrop,
            message_reservation: message,
            deadline: patience,
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
        let ending = loop {
            // A partial reply is finished first, but no new command is executed.
            if self.connection.shutdown.is_triggered() && self.session.is_idle() {
                self.session.shut_down();
                break SessionEndReason::Shutdown;
            }
            let (used, action) = self.session.step(&self.connection.stream.input);
            self.connection.stream.input.advance(used);
            if used > 0 {
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
                    let answer = self.open_mailbox(&mailbox, &user, &proof).await;
                    self.session.opened(answer);
                }
                Action::Fetch(id) => {
                    let before = Instant::now();
                    let answer = self.fetch(id).await;
                    self.session.fetched(answer);
                    self.deadline.extend(before.elapsed());
                }
                Action::Delete(ids) => {
                    let answer = self.delete(ids).await;
                    self.session.deleted(answer);
                }
                Action::StartTls => {
                    self.flush().await?;
                    self.connection = match self.connection.start_tls().await {
                        Ok(call) => call,
                        Err(parting) => return Ok(parting.ending),
                    };
                    self.session.tls_started();
                }
                Action::Quit => break SessionEndReason::Quit,
                Action::Close => break SessionEndReason::Errors,
            }
        };
        self.close(ending).await
    }

    /// Opens a mailbox if the login allows it. Returns the list of its messages for this session.
    async fn open_mailbox(&mut self, mailbox: &str, user: &str, proof: &Proof) -> Result<Maildrop, Refusal> {
        let Server { context: host, login, .. } = self.server;
        let (mailbox, user) = login.split_mailbox_and_user(mailbox, user);
        let admitted = match host.mailroom.mailbox(mailbox) {
            Ok(mailbox) => self.log_in(&mailbox, user, proof).await.map(|grant| (mailbox, grant)),
            Err(error) => Err(Refusal::InvalidName(error.to_string())),
        };
        host.metrics.count_login(host.protocol, admitted.is_ok());
        if admitted.is_err() {
            self.delay_failed_login(proof).await;
        }
        let (mailbox, grant) = admitted?;
        let mut maildrop = match self.list_messages(&mailbox).await {
            Ok(maildrop) => maildrop,
            Err(refusal) => {
                self.maildrop_reservation.adjust_to(0).await;
                return Err(refusal);
            }
        };
        if !grant.allows(Scope::Write, &mailbox) {
            maildrop.set_read_only();
        }
        tracing::debug!(session = self.connection.session_name, %mailbox, "opened");
        self.mailbox = Some(mailbox);
        Ok(maildrop)
    }

    /// Checks a login, which may be delayed. Ends early if the server shuts down.
    async fn log_in(&mut self, mailbox: &MailboxName, user: &str, proof: &Proof) -> Result<Grant, Refusal> {
        let Server { context: host, login, .. } = self.server;
        let own = host.mailroom.mailbox(user).ok();
        let visitor = LoginAttempt { mailbox, user, proof, ip: self.ip };
        let checked = tokio::select! {
            biased;
            checked = login.check(&visitor, own.as_ref()) => checked,
            () = self.connection.shutdown.triggered() => return Err(Refusal::Unavailable),
        };
        checked.map_err(|denied| self.report_denial(proof, &denied))
    }

    fn report_denial(&self, proof: &Proof, denied: &Denied) -> Refusal {
        let command = match proof {
            Proof::Password(_) => "PASS",
            Proof::Apop { .. } => "APOP",
        };
        let Server { context: host, login, .. } = self.server;
        host.metrics.count_denial(host.protocol, denied.reason);
        login.auth().log_denial(host.protocol.name(), self.ip, &command, denied);
        match denied.reason {
            DenialReason::TooMany => Refusal::Unavailable,
            DenialReason::Scope | DenialReason::Mailbox => Refusal::NotPermitted,
            _ => Refusal::WrongCredentials,
        }
    }

    /// Delays the reply to a failed login, unless the login throttle has already delayed it.
    async fn delay_failed_login(&mut self, proof: &Proof) {
        let login = &self.server.login;
        if !login.auth().is_enabled() {
            // The user name is not logged: users type passwords into the wrong field.
            tracing::info!(session = self.connection.session_name, "login failed");
        }
        let is_paid = login.auth().is_enabled() && matches!(proof, Proof::Password(_));
        if !login.accepts_any_login() && !is_paid {
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
        let (mut maildrop, mut last) = (Maildrop::default(), MessageId::ZERO);
        loop {
            let page = Page { limit: Some(PAGE_SIZE), before: None, after: Some(last) };
            let listing = self.server.context.mailroom.list(mailbox, page).await;
            let messages = listing.map_err(|error| self.log_and_refuse(&error))?.messages;
            maildrop.extend(messages.iter().map(|message| (message.id, message.size)));
            match messages.last() {
                Some(message) if messages.len() == PAGE_SIZE => last = message.id,
                _ => return Ok(maildrop),
            }
            // Release the page before waiting.
            drop(messages);
            if !wait_for_memory(
                &mut self.maildrop_reservation,
                maildrop.memory_bytes(),
                &mut self.connection,
                self.server.context.idle_timeout,
            )
            .await
            {
                tracing::warn!(session = self.connection.session_name, %mailbox, "no memory to open one more large mailbox");
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
            && !wait_for_memory(
                &mut self.message_reservation,
                size,
                &mut self.connection,
                self.server.context.idle_timeout,
            )
            .await
        {
            tracing::info!(session = self.connection.session_name, "no memory for one more message that is being sent");
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
        tracing::debug!(session = self.connection.session_name, %mailbox, count, "deleted");
        Ok(())
    }

    fn log_and_refuse(&self, error: &StoreError) -> Refusal {
        self.connection.log_store_error("the store failed", error);
        Refusal::Unavailable
    }

    /// Waits for the next command within the client's time, which restarts with every reply. An incomplete command does
    /// not extend it.
    async fn read(&mut self) -> io::Result<WaitOutcome> {
        let now = Instant::now();
        if self.written_bytes.take().is_some() {
            self.deadline.restart(now);
        }
        let deadline = self.deadline.expires_at(now, 0);
        self.connection.stream.reserve_idle_input(INPUT_BUFFER_BYTES);
        tokio::select! {
            biased;
            heard = self.connection.stream.read(deadline) => heard.map(WaitOutcome::Read),
            () = self.connection.shutdown.triggered() => Ok(WaitOutcome::Shutdown),
        }
    }

    /// Writes the replies. The client must accept all parts of a reply at a minimum rate, and after a shutdown within
    /// the grace period. Otherwise the connection is closed in the middle of the reply, which no client takes for its
    /// end.
    async fn flush(&mut self) -> io::Result<()> {
        if let Some(dialogue) = self.session.transcript() {
            self.connection.log_transcript(dialogue);
            dialogue.clear();
        }
        let replies = self.session.replies();
        if !replies.is_empty() {
            let length = replies.len() as u64;
            let now = Instant::now();
            if self.written_bytes.is_none() {
                self.deadline.restart(now);
            }
            let taken = self.written_bytes.unwrap_or(0);
            let deadline = self.deadline.expires_at(now, taken);
            tokio::select! {
                biased;
                written = self.connection.stream.write_until(deadline, replies) => written?,
                () = self.connection.shutdown.triggered_for(SHUTDOWN_GRACE_PERIOD) => return Err(io::ErrorKind::TimedOut.into()),
            }
            self.written_bytes = Some(taken + length);
        }
        if self.session.sending_bytes() == 0 {
            self.message_reservation.adjust_to(0).await;
        }
        Ok(())
    }

    /// Writes the remaining replies and closes.
    async fn close(mut self, ending: SessionEndReason) -> io::Result<SessionEndReason> {
        self.flush().await?;
        Ok(self.connection.close(ending).await)
    }
}

/// Waits for memory, but not longer than a client does, and not after a disconnect or shutdown: the queue is for
/// clients that can still use the memory. Returns whether the memory is reserved.
async fn wait_for_memory(
    reservation: &mut Reservation,
    bytes: usize,
    call: &mut AcceptedConnection<'_>,
    timeout: Duration,
) -> bool {
    tokio::select! {
        biased;
        () = reservation.adjust_to(bytes) => true,
        () = sleep(timeout.min(MEMORY_TIMEOUT)) => false,
        () = call.stream.peer_disconnected(INPUT_BUFFER_BYTES) => false,
        () = call.shutdown.triggered() => false,
    }
}
