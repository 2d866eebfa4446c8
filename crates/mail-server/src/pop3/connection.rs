//! One connection: reads, steps the session, answers its questions, writes. Pipelined commands are answered in one
//! write, and a long answer goes out in pieces, each of which the peer must take before the next is made.

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
use super::login::Visitor;
use crate::Call;

/// How much is read at once.
const BUFFER: usize = 4 * 1024;
/// The rate at which an answer must be taken on average, in bytes per second; any real link is faster.
const MIN_RATE: u64 = 16 * 1024;
/// How many summaries are held at once while a mailbox is opened.
const PAGE: usize = 1000;
/// Messages up to this size are sent without asking for memory. They are no more than what a connection takes anyway, and
/// nobody who wants one has to queue behind those who want large ones.
const SMALL: usize = 64 * 1024;
/// How long a peer waits for memory at most; it should hear of it before it gives up.
const WAIT_FOR_MEMORY: Duration = Duration::from_secs(10);
/// How long a failed login waits for its answer if `pop3.credentials` are set. The throttle for failed logins comes on top.
const PENALTY: Duration = Duration::from_secs(1);

pub(super) struct Connection<'a> {
    server: &'a Server,
    call: Call<'a>,
    session: Session,
    ip: Option<IpAddr>,
    /// The mailbox that was opened.
    mailbox: Option<MailboxName>,
    /// The memory that what is in it has been granted.
    maildrop: Reservation,
    /// The memory that the message under way has been granted.
    message: Reservation,
    patience: Deadline,
    /// How much the peer has taken of the answers since its last command; none while a command is due.
    taken: Option<u64>,
}

/// What a wait for input ended with.
enum Read {
    Heard(ReadOutcome),
    Shutdown,
}

impl<'a> Connection<'a> {
    pub(super) fn new(server: &'a Server, call: Call<'a>, mut session: Session, ip: Option<IpAddr>) -> Self {
        if let Some(scope) = call.recorded() {
            session.start_recording(scope);
        }
        let (maildrop, message) = (server.maildrops.reservation(), server.messages.reservation());
        let patience = Deadline::new(server.host.timeout, MIN_RATE, Instant::now());
        Self { server, call, session, ip, mailbox: None, maildrop, message, patience, taken: None }
    }

    /// Says that there is too much to do, and closes.
    pub(super) async fn refuse(mut self) -> io::Result<SessionEndReason> {
        self.session.refuse_busy();
        self.part(SessionEndReason::Refused).await
    }

    /// Talks to the peer until one of the two has enough.
    pub(super) async fn run(mut self) -> io::Result<SessionEndReason> {
        self.session.greet();
        let ending = loop {
            // What is answered in part is finished first, but nothing is begun any more.
            if self.call.shutdown.is_triggered() && self.session.is_idle() {
                self.session.shut_down();
                break SessionEndReason::Shutdown;
            }
            let (used, action) = self.session.step(&self.call.wire.input);
            self.call.wire.input.advance(used);
            if used > 0 {
                // A peer that sends faster than it is answered never lets us wait, but others want their turn too.
                yield_now().await;
            }
            match action {
                Action::Read => {
                    self.flush().await?;
                    match self.read().await? {
                        Read::Heard(ReadOutcome::Data) => {}
                        Read::Heard(ReadOutcome::Closed) => return Ok(SessionEndReason::Disconnected),
                        Read::Heard(ReadOutcome::TimedOut) => {
                            self.session.time_out();
                            break SessionEndReason::Timeout;
                        }
                        Read::Shutdown => {
                            self.session.shut_down();
                            break SessionEndReason::Shutdown;
                        }
                    }
                }
                Action::Write => self.flush().await?,
                Action::Open { mailbox, user, proof } => {
                    let answer = self.open(&mailbox, &user, &proof).await;
                    self.session.opened(answer);
                }
                Action::Fetch(id) => {
                    let before = Instant::now();
                    let answer = self.fetch(id).await;
                    self.session.fetched(answer);
                    self.patience.extend(before.elapsed());
                }
                Action::Delete(ids) => {
                    let answer = self.delete(ids).await;
                    self.session.deleted(answer);
                }
                Action::StartTls => {
                    self.flush().await?;
                    self.call = match self.call.start_tls().await {
                        Ok(call) => call,
                        Err(parting) => return Ok(parting.ending),
                    };
                    self.session.tls_started();
                }
                Action::Quit => break SessionEndReason::Quit,
                Action::Close => break SessionEndReason::Errors,
            }
        };
        self.part(ending).await
    }

    /// Opens a mailbox for a user who may: what is in it from now on, for this session.
    async fn open(&mut self, mailbox: &str, user: &str, proof: &Proof) -> Result<Maildrop, Refusal> {
        let Server { host, login, .. } = self.server;
        let (mailbox, user) = login.parties(mailbox, user);
        let admitted = match host.mailroom.mailbox(mailbox) {
            Ok(mailbox) => self.log_in(&mailbox, user, proof).await.map(|grant| (mailbox, grant)),
            Err(error) => Err(Refusal::InvalidName(error.to_string())),
        };
        host.metrics.count_login(host.protocol, admitted.is_ok());
        if admitted.is_err() {
            self.failed(proof).await;
        }
        let (mailbox, grant) = admitted?;
        let mut maildrop = match self.contents(&mailbox).await {
            Ok(maildrop) => maildrop,
            Err(refusal) => {
                self.maildrop.adjust_to(0).await;
                return Err(refusal);
            }
        };
        if !grant.allows(Scope::Write, &mailbox) {
            maildrop.set_read_only();
        }
        tracing::debug!(session = self.call.name, %mailbox, "opened");
        self.mailbox = Some(mailbox);
        Ok(maildrop)
    }

    /// Checks a login, which may take its time, but not when the server ends.
    async fn log_in(&mut self, mailbox: &MailboxName, user: &str, proof: &Proof) -> Result<Grant, Refusal> {
        let Server { host, login, .. } = self.server;
        let own = host.mailroom.mailbox(user).ok();
        let visitor = Visitor { mailbox, user, proof, ip: self.ip };
        let checked = tokio::select! {
            biased;
            checked = login.check(&visitor, own.as_ref()) => checked,
            () = self.call.shutdown.triggered() => return Err(Refusal::Unavailable),
        };
        checked.map_err(|denied| self.denied(proof, &denied))
    }

    fn denied(&self, proof: &Proof, denied: &Denied) -> Refusal {
        let command = match proof {
            Proof::Password(_) => "PASS",
            Proof::Apop { .. } => "APOP",
        };
        let Server { host, login, .. } = self.server;
        host.metrics.count_denial(host.protocol, denied.reason);
        login.locks().log_denial(host.protocol.name(), self.ip, &command, denied);
        match denied.reason {
            DenialReason::TooMany => Refusal::Unavailable,
            DenialReason::Scope | DenialReason::Mailbox => Refusal::NotPermitted,
            _ => Refusal::WrongCredentials,
        }
    }

    /// Lets a failed login wait for its answer, unless the keeper has done so.
    async fn failed(&mut self, proof: &Proof) {
        let login = &self.server.login;
        if !login.locks().is_enabled() {
            // Not even the name is logged: people type passwords into the wrong field.
            tracing::info!(session = self.call.name, "login failed");
        }
        let is_paid = login.locks().is_enabled() && matches!(proof, Proof::Password(_));
        if !login.is_open() && !is_paid {
            let shutdown = &mut self.call.shutdown;
            tokio::select! {
                () = sleep(PENALTY) => {}
                () = shutdown.triggered() => {}
            }
        }
    }

    /// The messages of a mailbox, without reading any. They come in pages, because a summary is much larger than what is
    /// kept of it; and memory is waited for behind every full page, because a large mailbox may have many readers. What
    /// follows the last full page, and so the whole of most mailboxes, is no more than a connection takes anyway.
    async fn contents(&mut self, mailbox: &MailboxName) -> Result<Maildrop, Refusal> {
        let (mut maildrop, mut last) = (Maildrop::default(), MessageId::ZERO);
        loop {
            let page = Page { limit: Some(PAGE), before: None, after: Some(last) };
            let listing = self.server.host.mailroom.list(mailbox, page).await;
            let messages = listing.map_err(|error| self.unavailable(&error))?.messages;
            maildrop.extend(messages.iter().map(|message| (message.id, message.size)));
            match messages.last() {
                Some(message) if messages.len() == PAGE => last = message.id,
                _ => return Ok(maildrop),
            }
            // Nobody waits with the page in hand.
            drop(messages);
            if !granted(&mut self.maildrop, maildrop.memory_bytes(), &mut self.call, self.server.host.timeout).await {
                tracing::warn!(session = self.call.name, %mailbox, "no memory to open one more large mailbox");
                return Err(Refusal::Unavailable);
            }
        }
    }

    /// A message, as soon as there is memory for it: peers that are slow to take theirs must not add up.
    async fn fetch(&mut self, id: MessageId) -> Result<Option<Source>, Refusal> {
        // What was granted for the message before is given back first: who holds something must not wait for more.
        self.message.adjust_to(0).await;
        let Some(mailbox) = &self.mailbox else { return Err(Refusal::Unavailable) };
        let mailroom = &self.server.host.mailroom;
        let found = mailroom.find(mailbox, MessageSelector::Id(id)).await.map_err(|error| self.unavailable(&error))?;
        let Some(summary) = found else { return Ok(None) };
        let size = usize::try_from(summary.size).unwrap_or(usize::MAX);
        if size > SMALL && !granted(&mut self.message, size, &mut self.call, self.server.host.timeout).await {
            tracing::info!(session = self.call.name, "no memory for one more message that is being sent");
            return Err(Refusal::Unavailable);
        }
        mailroom.source(mailbox, id).await.map_err(|error| self.unavailable(&error))
    }

    async fn delete(&self, ids: Vec<MessageId>) -> Result<(), Refusal> {
        let Some(mailbox) = &self.mailbox else { return Err(Refusal::Unavailable) };
        let count = self
            .server
            .host
            .mailroom
            .remove_all(mailbox, ids, DeletionCause::Collected)
            .await
            .map_err(|error| self.unavailable(&error))?;
        tracing::debug!(session = self.call.name, %mailbox, count, "deleted");
        Ok(())
    }

    fn unavailable(&self, error: &StoreError) -> Refusal {
        self.call.store_failed("the store failed", error);
        Refusal::Unavailable
    }

    /// Waits for the next command within the peer's time, which begins anew with every answer: whatever is no complete
    /// command gains none.
    async fn read(&mut self) -> io::Result<Read> {
        let now = Instant::now();
        if self.taken.take().is_some() {
            self.patience.restart(now);
        }
        let deadline = self.patience.expires_at(now, 0);
        self.call.wire.reserve_idle_input(BUFFER);
        tokio::select! {
            biased;
            heard = self.call.wire.read(deadline) => heard.map(Read::Heard),
            () = self.call.shutdown.triggered() => Ok(Read::Shutdown),
        }
    }

    /// Writes what is to be said. The peer must take all the pieces of an answer at a minimal rate, and even so not at any
    /// price when the server stops: then the connection breaks in the middle, which no client takes for the end.
    async fn flush(&mut self) -> io::Result<()> {
        if let Some(dialogue) = self.session.transcript() {
            self.call.log(dialogue);
            dialogue.clear();
        }
        let replies = self.session.replies();
        if !replies.is_empty() {
            let length = replies.len() as u64;
            let now = Instant::now();
            if self.taken.is_none() {
                self.patience.restart(now);
            }
            let taken = self.taken.unwrap_or(0);
            let deadline = self.patience.expires_at(now, taken);
            tokio::select! {
                biased;
                written = self.call.wire.write_until(deadline, replies) => written?,
                () = self.call.shutdown.triggered_for(SHUTDOWN_GRACE_PERIOD) => return Err(io::ErrorKind::TimedOut.into()),
            }
            self.taken = Some(taken + length);
        }
        if self.session.sending_bytes() == 0 {
            self.message.adjust_to(0).await;
        }
        Ok(())
    }

    /// Says what is left to be said, and closes.
    async fn part(mut self, ending: SessionEndReason) -> io::Result<SessionEndReason> {
        self.flush().await?;
        Ok(self.call.part(ending).await)
    }
}

/// Waits for memory, but not longer than a peer does, nor when it leaves or the server ends: a place in the queue is for
/// those who can use it.
async fn granted(reservation: &mut Reservation, bytes: usize, call: &mut Call<'_>, timeout: Duration) -> bool {
    tokio::select! {
        biased;
        () = reservation.adjust_to(bytes) => true,
        () = sleep(timeout.min(WAIT_FOR_MEMORY)) => false,
        () = call.wire.peer_disconnected(BUFFER) => false,
        () = call.shutdown.triggered() => false,
    }
}
