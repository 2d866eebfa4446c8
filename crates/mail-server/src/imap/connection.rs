//! Runs one session on a connection: reads, steps the session, performs its actions, writes. While it waits for the client,
//! it also waits for changes of the selected mailbox.

use std::io;
use std::net::IpAddr;
use std::time::Duration;

use bytes::Buf as _;
use jiff::Timestamp;
use restante_metrics::SessionEndReason;
use restante_net::{Deadline, ReadOutcome, Reservation, SHUTDOWN_GRACE_PERIOD};
use restante_proto::imap::{Action, Operation, Outcome, Refusal, Session};
use restante_proto::sasl::Credentials;
use restante_store::StoreError;
use tokio::task::yield_now;
use tokio::time::{Instant, sleep, timeout};

use super::account::Account;
use super::open_mailbox::{self, OpenMailbox};
use super::{Failure, Server};
use crate::AcceptedConnection;

/// The read size.
const INPUT_BUFFER_BYTES: usize = 4 * 1024;
/// The average rate at which the client must accept a reply, in bytes per second. Any real link is faster.
const MIN_BYTES_PER_SECOND: u64 = 16 * 1024;
/// Messages up to this size are held without a reservation.
const MAX_UNRESERVED_BYTES: usize = 64 * 1024;
/// How long a client waits for memory. The refusal should arrive before the client's own timeout.
const MEMORY_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the client may be silent within the message of APPEND, whose memory is reserved.
const MESSAGE_TIMEOUT: Duration = Duration::from_mins(1);
/// How long a client may be silent before the login, if the timeout of the sessions is not shorter.
const LOGIN_TIMEOUT: Duration = Duration::from_mins(3);
/// How long a message is kept for the next partial fetch.
const MESSAGE_IDLE_TIME: Duration = Duration::from_secs(5);

/// Drives a session: moves bytes between the connection and the session, and performs its actions.
pub(super) struct SessionDriver<'a> {
    pub(super) server: &'a Server,
    pub(super) connection: AcceptedConnection<'a>,
    session: Session,
    ip: Option<IpAddr>,
    /// Who has logged in.
    account: Option<Account>,
    /// The selected mailbox.
    open: Option<OpenMailbox>,
    /// The memory reserved for the list of its messages.
    list_reservation: Reservation,
    /// The memory reserved for messages.
    message_reservation: Reservation,
    deadline: Deadline,
    /// The deadline of the message of APPEND while it is being read.
    message_deadline: Option<Deadline>,
    /// The reply bytes that the client has accepted since its last command. `None` while a command is expected.
    written_bytes: Option<u64>,
}

/// The outcome of waiting for input.
enum WaitOutcome {
    Read(ReadOutcome),
    Changed,
    /// The client has sent nothing for [`MESSAGE_IDLE_TIME`].
    Quiet,
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
        let login_timeout = server.context.idle_timeout.min(LOGIN_TIMEOUT);
        let deadline = Deadline::new(login_timeout, MIN_BYTES_PER_SECOND, Instant::now());
        Self {
            server,
            connection,
            session,
            ip,
            account: None,
            open: None,
            list_reservation: server.index_budget.reservation(),
            message_reservation: server.message_budget.reservation(),
            deadline,
            message_deadline: None,
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
            // A command is finished first, but no new one is executed.
            if self.connection.shutdown.is_triggered() && self.session.is_idle() {
                self.session.shut_down();
                break SessionEndReason::Shutdown;
            }
            self.report_changes().await;
            self.session.set_time(Timestamp::now());
            let (consumed, action) = self.session.step(&self.connection.stream.input);
            self.connection.stream.input.advance(consumed);
            if consumed > 0 {
                // A client that sends faster than it is answered never makes this task wait, so yield to other tasks.
                yield_now().await;
            }
            if !self.session.has_selected() {
                self.open = None;
            }
            self.list_reservation.shrink_to(self.session.list_bytes());
            match action {
                Action::Read => {
                    self.flush().await?;
                    match self.read().await? {
                        WaitOutcome::Read(ReadOutcome::Data) | WaitOutcome::Changed => {}
                        WaitOutcome::Quiet => self.session.release_message(),
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
                Action::Write => {
                    self.flush().await?;
                    yield_now().await;
                }
                // Memory and delayed logins can take seconds. The replies to earlier commands do not wait for them.
                Action::ReserveLiteral(bytes) => {
                    self.message_deadline = None;
                    self.flush().await?;
                    let is_reserved = self.reserve_message(self.session.message_bytes() + bytes).await;
                    self.session.literal_reserved(is_reserved);
                }
                Action::LogIn(credentials) => {
                    self.flush().await?;
                    let result = self.log_in(&credentials).await;
                    self.session.logged_in(result);
                }
                Action::Perform(operation) => {
                    let before = Instant::now();
                    let result = self.perform(operation).await;
                    self.report_changes().await;
                    self.session.completed(result);
                    self.deadline.extend(before.elapsed());
                    // The memory store never makes this task wait, so yield to other tasks.
                    yield_now().await;
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

    async fn log_in(&mut self, credentials: &Credentials) -> Result<(), Refusal> {
        let account = Account::log_in(self.server, &mut self.connection, credentials, self.ip).await?;
        tracing::debug!(session = self.connection.session_name, mailbox = %account.mailbox, "logged in");
        self.account = Some(account);
        self.deadline = Deadline::new(self.server.context.idle_timeout, MIN_BYTES_PER_SECOND, Instant::now());
        Ok(())
    }

    async fn perform(&mut self, operation: Operation) -> Result<Outcome, Refusal> {
        if let Operation::Copy { ids, bytes, all_messages, .. } = &operation {
            let (bytes, is_complete) = (*bytes, ids.len() as u64 == *all_messages);
            if !is_complete && self.is_ending().await || !self.reserve_batch(bytes).await {
                return Err(Refusal::Unavailable);
            }
        }
        let Some(account) = &self.account else { return Err(Refusal::NotPermitted) };
        let result = match operation {
            Operation::Open { mailbox, is_read_only } => {
                self.open = None;
                return self.open(&mailbox, is_read_only).await;
            }
            Operation::Sources { ids, bytes } => {
                if !self.reserve_batch(bytes).await {
                    return Err(Refusal::Unavailable);
                }
                let Some(open) = &self.open else { return Err(Refusal::NoSuchMailbox) };
                open.sources(&self.server.context.mailroom, &ids).await
            }
            // It may take long, and works without the client.
            operation @ Operation::Rename { .. } => tokio::select! {
                biased;
                result = account.perform(self.server, None, operation) => result,
                () = self.connection.shutdown.triggered_for(SHUTDOWN_GRACE_PERIOD) => Err(Refusal::Unavailable.into()),
            },
            operation => account.perform(self.server, self.open.as_ref(), operation).await,
        };
        result.map_err(|failure| failure.into_refusal(&self.connection))
    }

    /// Opens a mailbox. The memory for its list is reserved before it is listed.
    async fn open(&mut self, name: &str, is_read_only: bool) -> Result<Outcome, Refusal> {
        let Some(account) = &self.account else { return Err(Refusal::NotPermitted) };
        let server = self.server;
        let found = async {
            let folder = account.existing_folder(server, name).await?;
            let bytes = open_mailbox::list_bytes(&server.context.mailroom, &folder).await?;
            Ok((folder, bytes))
        };
        let (folder, bytes) = found.await.map_err(|failure: Failure| failure.into_refusal(&self.connection))?;
        self.reserve_list(bytes).await?;
        let Some(account) = &self.account else { return Err(Refusal::NotPermitted) };
        let is_read_only = is_read_only || !account.may_write(&folder);
        let opened = OpenMailbox::open(server, folder, name, is_read_only).await;
        let (open, mailbox) = opened.map_err(|failure| failure.into_refusal(&self.connection))?;
        self.open = Some(open);
        Ok(Outcome::Opened(mailbox))
    }

    /// Reports the changes of the selected mailbox to the session.
    async fn report_changes(&mut self) {
        let Some(open) = self.open.as_mut().filter(|_| self.session.has_selected()) else { return };
        let changes = open.changes(&self.server.context.mailroom, self.session.last_id()).await;
        match changes {
            Ok(changes) => {
                for change in changes {
                    self.session.changed(change);
                }
                let bytes = self.session.list_bytes();
                if bytes > MAX_UNRESERVED_BYTES {
                    // The list grows also if no memory is left, at most to the limit of the mailbox.
                    let _ = timeout(Duration::ZERO, self.list_reservation.adjust_to(bytes)).await;
                }
            }
            Err(error) => self.log_store_error(&error),
        }
    }

    /// Reserves memory for the list of messages. It is held until another mailbox is selected.
    async fn reserve_list(&mut self, bytes: usize) -> Result<(), Refusal> {
        self.list_reservation.adjust_to(0).await;
        if bytes > MAX_UNRESERVED_BYTES
            && !wait_for_memory(&mut self.list_reservation, bytes, &mut self.connection).await
        {
            tracing::warn!(
                session = self.connection.session_name,
                "no memory left to open a large mailbox, refusing it"
            );
            return Err(Refusal::Unavailable);
        }
        Ok(())
    }

    /// Returns whether the client has disconnected or the server shuts down.
    async fn is_ending(&mut self) -> bool {
        tokio::select! {
            biased;
            () = self.connection.shutdown.triggered() => true,
            () = self.connection.stream.peer_disconnected(INPUT_BUFFER_BYTES) => true,
            () = std::future::ready(()) => false,
        }
    }

    /// Reserves memory for the messages of the next operation. Returns false if there is none.
    async fn reserve_batch(&mut self, bytes: u64) -> bool {
        // Release the memory of the previous messages first: a connection must not wait for more while it holds some.
        self.message_reservation.adjust_to(0).await;
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        self.reserve_message(bytes.saturating_add(self.session.message_bytes())).await
    }

    /// Reserves memory for messages. Returns false if there is none.
    async fn reserve_message(&mut self, bytes: usize) -> bool {
        bytes <= MAX_UNRESERVED_BYTES
            || wait_for_memory(&mut self.message_reservation, bytes, &mut self.connection).await
    }

    fn log_store_error(&self, error: &StoreError) {
        self.connection.log_store_error("store operation failed", error);
    }

    /// Waits for the next command until the deadline, which restarts with every reply. An incomplete command does not
    /// extend it.
    async fn read(&mut self) -> io::Result<WaitOutcome> {
        if self.session.message_bytes() == 0 {
            self.message_reservation.adjust_to(0).await;
        }
        let now = Instant::now();
        if self.written_bytes.take().is_some() {
            self.deadline.restart(now);
        }
        let deadline = if let Some(bytes) = self.session.received_bytes() {
            let timeout = self.server.context.idle_timeout.min(MESSAGE_TIMEOUT);
            let deadline =
                self.message_deadline.get_or_insert_with(|| Deadline::new(timeout, MIN_BYTES_PER_SECOND, now));
            deadline.expires_at(now, bytes)
        } else {
            self.message_deadline = None;
            self.deadline.expires_at(now, 0)
        };
        self.connection.stream.reserve_idle_input(INPUT_BUFFER_BYTES);
        let has_message = self.session.message_bytes() > 0 && self.session.is_idle();
        let open = self.open.as_mut().filter(|_| self.session.has_selected());
        let is_idling = self.session.is_idling();
        let changed = async {
            match open {
                Some(open) => open.changed(is_idling).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            outcome = self.connection.stream.read(deadline) => outcome.map(WaitOutcome::Read),
            () = self.connection.shutdown.triggered() => Ok(WaitOutcome::Shutdown),
            () = changed => Ok(WaitOutcome::Changed),
            () = sleep(MESSAGE_IDLE_TIME), if has_message => Ok(WaitOutcome::Quiet),
        }
    }

    /// Writes the replies. The client must accept all parts of a reply at a minimum rate, and after a shutdown within
    /// the grace period.
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
        Ok(())
    }

    /// Writes the remaining replies and closes.
    async fn close(mut self, end_reason: SessionEndReason) -> io::Result<SessionEndReason> {
        self.flush().await?;
        Ok(self.connection.close(end_reason).await)
    }
}

/// Waits for memory until the timeout, a disconnect or the shutdown. Returns whether the memory is reserved.
async fn wait_for_memory(reservation: &mut Reservation, bytes: usize, connection: &mut AcceptedConnection<'_>) -> bool {
    tokio::select! {
        biased;
        () = reservation.adjust_to(bytes) => true,
        () = sleep(connection.context.idle_timeout.min(MEMORY_TIMEOUT)) => false,
        () = connection.stream.peer_disconnected(INPUT_BUFFER_BYTES) => false,
        () = connection.shutdown.triggered() => false,
    }
}
