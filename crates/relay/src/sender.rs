//! A sender: claims entries of one target, sends them over one connection, and records the results. A target has
//! several senders, each with its own connection, which is kept while there are entries.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use restante_store::StoreError;
use tokio::time::timeout;

use crate::attempt::{self, Attempt};
use crate::background::Context;
use crate::entry::{Entry, EntryState, Origin};
use crate::message;
use crate::queue::{AttemptOutcome, AttemptRecord};
use crate::retry::random_jitter;
use crate::session::{ConnectError, Session, Transaction};
use crate::settings::Target;
use crate::target_state::{TargetState, Turn};

/// The maximum number of entries that a sender claims at once. Results are recorded together, so a larger number makes
/// the queue faster, and more entries are sent again after a crash.
const MAX_CLAIM: usize = 20;
/// The longest time for which results are collected before they are recorded.
const MAX_RECORD_DELAY: Duration = Duration::from_secs(1);
/// How long a connection without work is kept.
const IDLE_TIMEOUT: Duration = Duration::from_secs(2);
/// The longest time until a sender looks for due entries, which other nodes may have added.
const MAX_WAIT: Duration = Duration::from_secs(10);
/// The delay after an error of the store or the queue.
const ERROR_DELAY: Duration = Duration::from_secs(2);

/// See the module documentation.
pub(crate) struct Sender {
    context: Context,
    target: Target,
    state: Arc<TargetState>,
    session: Option<Session>,
}

/// The results of entries that were claimed together.
#[derive(Default)]
struct Results {
    records: Vec<AttemptRecord>,
    /// When the first of them was added.
    since: Option<Instant>,
}

impl Results {
    fn push(&mut self, record: AttemptRecord) {
        self.records.push(record);
        self.since.get_or_insert_with(Instant::now);
    }

    fn is_due(&self) -> bool {
        self.since.is_some_and(|since| since.elapsed() >= MAX_RECORD_DELAY)
    }
}

impl Sender {
    pub(crate) fn new(context: Context, target: Target, state: Arc<TargetState>) -> Self {
        Self { context, target, state, session: None }
    }

    /// Runs until the relay shuts down.
    pub(crate) async fn run(mut self) {
        while !self.context.is_stopping() {
            let limit = match self.state.next_turn(Instant::now()) {
                Turn::Send => MAX_CLAIM,
                Turn::Probe => 1,
                Turn::Wait(duration) => {
                    self.wait(duration).await;
                    continue;
                }
            };
            let entries = match self.claim(limit).await {
                Ok(entries) => entries,
                Err(error) => {
                    self.state.abandon_probe();
                    self.context.log_error(&error);
                    self.context.pause(ERROR_DELAY).await;
                    continue;
                }
            };
            if entries.is_empty() {
                self.state.abandon_probe();
                self.wait_for_entries().await;
                continue;
            }
            if entries.len() == MAX_CLAIM {
                // There may be more: another sender continues.
                self.state.wake.notify_one();
            }
            self.send_entries(entries, limit == 1).await;
        }
        self.close_session().await;
    }

    async fn claim(&self, limit: usize) -> Result<Vec<Entry>, StoreError> {
        let (queue, target) = (self.context.relay.queue.clone(), self.target.name.clone());
        self.context.on_main(async move { queue.claim(&target, Timestamp::now(), limit).await }).await
    }

    /// Waits until an entry may be due. Closes a connection that is not needed.
    async fn wait_for_entries(&mut self) {
        if self.session.is_some() {
            if timeout(IDLE_TIMEOUT, self.woken()).await.is_err() {
                self.close_session().await;
            }
            return;
        }
        let (queue, target) = (self.context.relay.queue.clone(), self.target.name.clone());
        let due = self.context.on_main(async move { queue.next_due(&target).await }).await;
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

    /// Sends claimed entries and records the results. After a failure of the target, or at shutdown, the remaining
    /// entries are returned to the queue.
    async fn send_entries(&mut self, entries: Vec<Entry>, is_probe: bool) {
        let (claimed_at, mut results) = (Instant::now(), Results::default());
        let mut is_interrupted = false;
        for entry in entries {
            let (id, claim, is_paused) = (entry.id, entry.claim, !is_probe && self.state.is_paused());
            if is_interrupted || is_paused || self.context.is_stopping() {
                results.push(AttemptRecord { id, claim, outcome: AttemptOutcome::Released });
                continue;
            }
            if claimed_at.elapsed() > MAX_RECORD_DELAY && self.is_cancelled(&entry).await {
                continue;
            }
            match self.send_entry(&entry, is_probe).await {
                Ok(attempt) => {
                    is_interrupted = attempt.is_target_failure;
                    results.push(AttemptRecord { id, claim, outcome: attempt.outcome });
                }
                Err(error) => {
                    self.context.log_error(&error);
                    is_interrupted = true;
                    results.push(AttemptRecord { id, claim, outcome: AttemptOutcome::Released });
                }
            }
            if results.is_due() {
                self.record(std::mem::take(&mut results)).await;
            }
        }
        if is_probe {
            self.state.abandon_probe();
        }
        self.record(results).await;
    }

    /// Returns whether an entry was cancelled after it was claimed.
    async fn is_cancelled(&self, entry: &Entry) -> bool {
        let (queue, id) = (self.context.relay.queue.clone(), entry.id);
        let current = self.context.on_main(async move { queue.find(id).await }).await;
        matches!(current, Ok(Some(Entry { state: EntryState::Cancelled, .. })))
    }

    /// Sends an entry. An error means that the message could not be read.
    async fn send_entry(&mut self, entry: &Entry, is_probe: bool) -> Result<Attempt, StoreError> {
        let (mailroom, mailbox, copy) = (self.context.mailroom.clone(), entry.mailbox.clone(), entry.copy);
        let Some(source) = self.context.on_main(async move { mailroom.source(&mailbox, copy).await }).await? else {
            return Ok(self.fail(entry, "the message was deleted"));
        };
        let (identity, domain) = (&self.context.identity, &self.context.relay.settings.domain);
        if let Some(reason) = message::find_loop(&source.body, identity, entry.origin == Origin::Forward) {
            self.context.relay.loops.fetch_add(1, Relaxed);
            return Ok(self.fail(entry, &format!("the message is in a loop: {reason}")));
        }
        let data = message::compose(&source, &self.target, identity, domain);
        let transaction = match self.transact(entry, &data).await {
            Ok(transaction) => transaction,
            Err(error) => {
                self.state.record_failure(&error.text, is_probe, Instant::now(), random_jitter());
                self.state.deferred.fetch_add(1, Relaxed);
                return Ok(attempt::unreachable(entry, error, Timestamp::now(), random_jitter()));
            }
        };
        if transaction.is_target_failure {
            self.state.record_failure(&transaction.reply, is_probe, Instant::now(), random_jitter());
        } else {
            self.state.record_success();
        }
        let attempt = attempt::finish(entry, transaction, Timestamp::now(), random_jitter());
        self.log_attempt(entry, &attempt);
        Ok(attempt)
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

    fn fail(&self, entry: &Entry, reason: &str) -> Attempt {
        let attempt = attempt::failed(entry, reason, Timestamp::now());
        self.log_attempt(entry, &attempt);
        attempt
    }

    fn log_attempt(&self, entry: &Entry, attempt: &Attempt) {
        let AttemptOutcome::Attempted { state, reply, .. } = &attempt.outcome else { return };
        let (counter, is_failure) = match state {
            EntryState::Delivered => (&self.state.delivered, false),
            EntryState::Queued => (&self.state.deferred, false),
            _ => (&self.state.failed, true),
        };
        counter.fetch_add(1, Relaxed);
        let (target_name, entry, message) = (&self.target.name, entry.id.0, entry.message.number());
        if is_failure {
            tracing::warn!(target_name, entry, message, reply, "a message could not be relayed");
        } else {
            tracing::debug!(target_name, entry, message, reply, state = state.name(), "relayed a message");
        }
    }

    /// Records results. Repeats it until it succeeds or the relay shuts down; then the entries are sent again.
    async fn record(&self, Results { records, .. }: Results) {
        if records.is_empty() {
            return;
        }
        loop {
            let (queue, batch) = (self.context.relay.queue.clone(), records.clone());
            let Err(error) = self.context.on_main(async move { queue.record(batch).await }).await else { return };
            self.context.log_error(&error);
            if self.context.is_stopping() {
                return;
            }
            self.context.pause(ERROR_DELAY).await;
        }
    }

    async fn close_session(&mut self) {
        if let Some(session) = self.session.take() {
            session.quit().await;
        }
    }
}
