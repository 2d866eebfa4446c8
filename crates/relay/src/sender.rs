//! A sender: claims entries of one target, sends them over one connection, and passes the results to the recorder. A
//! target has several senders, each with its own connection, which is kept while there are entries.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use restante_mail::message::Source;
use restante_mailroom::MessageSelector;
use restante_store::StoreError;
use restante_worker::random_jitter;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::attempt::{self, Attempt};
use crate::context::Context;
use crate::entry::{Entry, EntryState, Origin};
use crate::message;
use crate::queue::{AttemptOutcome, AttemptRecord};
use crate::session::{ConnectError, Session, Transaction};
use crate::settings::Target;
use crate::target_state::{TargetState, Turn};

/// The maximum number of entries that a sender claims at once. A larger number makes the queue faster, and leaves less to
/// the other senders.
const MAX_CLAIM: usize = 20;
/// How long after a claim an entry is sent without another look at its state. It may have been cancelled since.
const MAX_CLAIM_AGE: Duration = Duration::from_secs(1);
/// How long a connection without work is kept.
const IDLE_TIMEOUT: Duration = Duration::from_secs(2);
/// The longest time until a sender looks for due entries, which other nodes may have added.
const MAX_WAIT: Duration = Duration::from_secs(10);
/// The average time between two messages to a target while the server is busy with deliveries.
const BUSY_INTERVAL: Duration = Duration::from_millis(2);
/// The delay after an error of the store or the queue.
const ERROR_DELAY: Duration = Duration::from_secs(2);

/// See the module documentation.
pub(crate) struct Sender {
    context: Context,
    target: Target,
    state: Arc<TargetState>,
    results: mpsc::Sender<AttemptRecord>,
    session: Option<Session>,
}

impl Sender {
    pub(crate) fn new(
        context: Context,
        target: Target,
        state: Arc<TargetState>,
        results: mpsc::Sender<AttemptRecord>,
    ) -> Self {
        Self { context, target, state, results, session: None }
    }

    /// Runs until the relay shuts down.
    pub(crate) async fn run(mut self) {
        while !self.context.is_stopping() {
            let is_probe = match self.state.next_turn(Instant::now()) {
                Turn::Send => false,
                Turn::Probe => true,
                Turn::Wait(duration) => {
                    self.wait(duration).await;
                    continue;
                }
            };
            let claimed = self.claim(if is_probe { 1 } else { MAX_CLAIM }).await;
            if is_probe && claimed.as_ref().map_or(true, Vec::is_empty) {
                self.state.abandon_probe();
            }
            let entries = match claimed {
                Ok(entries) => entries,
                Err(error) => {
                    self.context.log_error(&error);
                    self.context.pause(ERROR_DELAY).await;
                    continue;
                }
            };
            if entries.is_empty() {
                self.wait_for_entries().await;
                continue;
            }
            if entries.len() == MAX_CLAIM {
                // There may be more: another sender continues.
                self.state.wake.notify_one();
            }
            self.send_entries(entries, is_probe).await;
        }
        self.close_session().await;
    }

    async fn claim(&self, limit: usize) -> Result<Vec<Entry>, StoreError> {
        let (queue, target) = (self.context.shared.queue.clone(), self.target.name.clone());
        self.context.access(async move { queue.claim(&target, Timestamp::now(), limit).await }).await
    }

    /// Waits until an entry may be due. Closes a connection that is not needed.
    async fn wait_for_entries(&mut self) {
        if self.session.is_some() {
            if timeout(IDLE_TIMEOUT, self.woken()).await.is_err() {
                self.close_session().await;
            }
            return;
        }
        let (queue, target) = (self.context.shared.queue.clone(), self.target.name.clone());
        let due = self.context.access(async move { queue.next_due(&target).await }).await;
        let until_due = due
            .ok()
            .flatten()
            .map(|due| Duration::try_from(due.duration_since(Timestamp::now())).unwrap_or(Duration::ZERO));
        self.wait(until_due.unwrap_or(MAX_WAIT)).await;
    }

    /// Waits until the sender is woken or the relay shuts down, at most for `duration`.
    async fn wait(&self, duration: Duration) {
        let shortest = Duration::from_millis(10);
        // A timeout is one of the expected ends.
        let _ = timeout(duration.clamp(shortest, MAX_WAIT), self.woken()).await;
    }

    async fn woken(&self) {
        tokio::select! {
            () = self.state.wake.notified() => {},
            () = self.context.stopped() => {},
        }
    }

    /// Sends claimed entries. After a failure of the target or the store, or at shutdown, the remaining entries are
    /// returned to the queue.
    async fn send_entries(&mut self, entries: Vec<Entry>, is_probe: bool) {
        let (claimed_at, mut is_interrupted) = (Instant::now(), false);
        for entry in entries {
            let is_paused = !is_probe && self.state.is_paused();
            if is_interrupted || is_paused || self.context.is_stopping() {
                self.record(&entry, AttemptOutcome::Released).await;
                continue;
            }
            if claimed_at.elapsed() > MAX_CLAIM_AGE && self.is_cancelled(&entry).await {
                continue;
            }
            if self.context.shared.delivery_load.is_busy(Instant::now()) {
                let connections = u32::try_from(self.target.connections).unwrap_or(u32::MAX);
                self.context.pause(BUSY_INTERVAL.saturating_mul(connections)).await;
            }
            match self.send_entry(&entry, is_probe).await {
                Ok(attempt) => {
                    is_interrupted = attempt.is_target_failure;
                    self.record(&entry, attempt.outcome).await;
                }
                Err(error) => {
                    self.context.log_error(&error);
                    is_interrupted = true;
                    self.record(&entry, AttemptOutcome::Released).await;
                    self.context.pause(ERROR_DELAY).await;
                }
            }
        }
        if is_probe {
            self.state.abandon_probe();
        }
    }

    async fn record(&self, entry: &Entry, outcome: AttemptOutcome) {
        // An error means that the recorder has ended, which it does after the senders.
        let _ = self.results.send(AttemptRecord { id: entry.id, claim: entry.claim, outcome }).await;
    }

    /// Returns whether an entry was cancelled after it was claimed.
    async fn is_cancelled(&self, entry: &Entry) -> bool {
        let (queue, id) = (self.context.shared.queue.clone(), entry.id);
        let current = self.context.access(async move { queue.find(id).await }).await;
        matches!(current, Ok(Some(Entry { state: EntryState::Cancelled, .. })))
    }

    /// Sends an entry. An error means that the store is not available.
    async fn send_entry(&mut self, entry: &Entry, is_probe: bool) -> Result<Attempt, StoreError> {
        let source = match self.read_source(entry).await {
            Ok(Some(source)) => source,
            Ok(None) => {
                return Ok(self.finish(entry, attempt::failed(entry, "the message was deleted", Timestamp::now())));
            }
            Err(StoreError::Broken(error)) => {
                let reason = format!("the message cannot be read: {error}");
                return Ok(self.finish(entry, attempt::deferred(entry, &reason, Timestamp::now(), random_jitter())));
            }
            Err(error) => return Err(error),
        };
        let (identity, domain) = (&self.context.identity, &self.context.shared.settings.domain);
        if let Some(reason) = message::find_loop(&source.body, identity, entry.origin == Origin::Forward) {
            self.context.shared.loops.fetch_add(1, Relaxed);
            let reason = format!("the message is in a loop: {reason}");
            return Ok(self.finish(entry, attempt::failed(entry, &reason, Timestamp::now())));
        }
        // The settings may have changed since the entry was added, and nodes may have different ones.
        let entry = &attempt::refuse_recipients(entry, |address| self.target.allows(address));
        if attempt::waiting_recipients(entry).next().is_none() {
            let reason = attempt::NOT_ALLOWED;
            return Ok(self.finish(entry, attempt::failed(entry, reason, Timestamp::now())));
        }
        let data = message::compose(&source, &self.target, identity, domain);
        let (transaction, jitter) = (self.transact(entry, &data).await, random_jitter());
        let attempt = match transaction {
            Ok(transaction) => {
                if transaction.is_target_failure {
                    self.state.record_failure(&transaction.reply, is_probe, Instant::now(), jitter);
                } else {
                    self.state.record_success();
                }
                attempt::completed(entry, transaction, Timestamp::now(), jitter)
            }
            Err(error) => {
                self.state.record_failure(&error.text, is_probe, Instant::now(), jitter);
                attempt::unreachable(entry, error, Timestamp::now(), jitter)
            }
        };
        Ok(self.finish(entry, attempt))
    }

    /// Reads the message from the copy that the entry names. If that was deleted, reads another copy.
    async fn read_source(&self, entry: &Entry) -> Result<Option<Source>, StoreError> {
        let (mailroom, mailbox, copy, id) =
            (self.context.mailroom.clone(), entry.mailbox.clone(), entry.copy, entry.message);
        let read = async move {
            if let Some(source) = mailroom.source(&mailbox, copy).await? {
                return Ok(Some(source));
            }
            match mailroom.find_message(MessageSelector::Id(id)).await? {
                Some(message) => mailroom.source(&message.first().mailbox, message.first().id).await,
                None => Ok(None),
            }
        };
        self.context.access(read).await
    }

    /// Sends a message over the open session, or a new one. A server may close a session after a time or a number of
    /// messages; then a new one is opened at once.
    async fn transact(&mut self, entry: &Entry, data: &[u8]) -> Result<Transaction, ConnectError> {
        let recipients: Vec<&str> = attempt::waiting_recipients(entry).collect();
        if let Some(mut session) = self.session.take() {
            let transaction = session.send(&entry.sender, &recipients, data).await;
            if !transaction.is_target_failure {
                self.session = transaction.is_reusable.then_some(session);
                return Ok(transaction);
            }
        }
        let mut session = self.context.connector.connect(&self.target).await?;
        let transaction = session.send(&entry.sender, &recipients, data).await;
        self.session = transaction.is_reusable.then_some(session);
        Ok(transaction)
    }

    /// Counts and logs an attempt.
    fn finish(&self, entry: &Entry, attempt: Attempt) -> Attempt {
        let AttemptOutcome::Attempted { state, reply, .. } = &attempt.outcome else { return attempt };
        let (counter, is_failure) = match state {
            EntryState::Delivered => (&self.state.delivered, false),
            EntryState::Queued => (&self.state.deferred, false),
            _ => (&self.state.failed, true),
        };
        counter.fetch_add(1, Relaxed);
        let (target_name, entry, message_id) = (&self.target.name, entry.id.0, entry.message.number());
        if is_failure {
            tracing::warn!(target_name, entry, message_id, reply, "a message could not be relayed");
        } else {
            tracing::debug!(target_name, entry, message_id, reply, state = state.name(), "relayed a message");
        }
        attempt
    }

    async fn close_session(&mut self) {
        if let Some(session) = self.session.take() {
            session.quit().await;
        }
    }
}
