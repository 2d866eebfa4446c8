//! A sender: claims entries of one target, sends them one after the other, and passes on the results. A target can have
//! several senders.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use jiff::Timestamp;
use restante_store::Result;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::context::Context;
use crate::entry::{AttemptOutcome, Entry, EntryState};
use crate::target_state::{TargetState, Turn};

/// How long after a claim an entry is sent without another look at its state. It may have been cancelled since.
const MAX_CLAIM_AGE: Duration = Duration::from_secs(1);
/// How long a connection without work is kept.
const IDLE_TIMEOUT: Duration = Duration::from_secs(2);
/// The longest and the shortest time until a sender looks for due entries, which other nodes may have added.
const MAX_WAIT: Duration = Duration::from_secs(10);
const MIN_WAIT: Duration = Duration::from_millis(10);
/// The delay after an error of the store or the queue.
const ERROR_DELAY: Duration = Duration::from_secs(2);

/// How entries are sent.
#[async_trait]
pub trait Transport: Send + 'static {
    /// Sends an entry. An error means that the store is not available; the entry is sent later.
    async fn send(&mut self, entry: &Entry) -> Result<Attempt>;

    /// Returns whether a connection is kept for the next entry.
    fn is_connected(&self) -> bool {
        false
    }

    /// Closes the connection.
    async fn disconnect(&mut self) {}

    /// Returns how long the target is paused after this number of failures.
    fn pause_delay(&self, failures: u32, retry_after: Option<Duration>) -> Duration;

    /// Logs that the target cannot be reached, and when it is tried again.
    fn log_pause(&self, error: &str, delay: Duration);

    /// Logs that the target can be reached again.
    fn log_resumption(&self);
}

/// The result of an attempt.
pub struct Attempt {
    /// What happened to the entry.
    pub outcome: AttemptOutcome,
    /// What happened to the target.
    pub contact: Contact,
}

/// Whether a target was reached.
pub enum Contact {
    /// Nothing was sent to it.
    None,
    /// It has replied.
    Reached,
    /// It cannot be reached, or refuses service. Other entries would fail now, too.
    Failed {
        /// The reason.
        error: String,
        /// The delay that the target requested.
        retry_after: Option<Duration>,
    },
}

/// See the module documentation.
pub struct Sender<T> {
    /// The context.
    pub context: Context,
    /// The target.
    pub state: Arc<TargetState>,
    /// How entries are sent.
    pub transport: T,
    /// The maximum number of entries that are claimed at once. A larger number makes the queue faster, and leaves less to
    /// the other senders.
    pub max_claim: usize,
    /// Gets the results, which have to be recorded in the queue.
    pub results: mpsc::Sender<(Entry, AttemptOutcome)>,
}

impl<T: Transport> Sender<T> {
    /// Runs until the shutdown.
    pub async fn run(mut self) {
        while !self.context.is_stopping() {
            let is_probe = match self.state.next_turn(Instant::now()) {
                Turn::Send => false,
                Turn::Probe => true,
                Turn::Wait(_) if self.context.is_draining() => break,
                Turn::Wait(duration) => {
                    self.wait(duration).await;
                    continue;
                }
            };
            let claimed = self.claim(if is_probe { 1 } else { self.max_claim }).await;
            if is_probe && claimed.as_ref().map_or(true, Vec::is_empty) {
                self.state.abandon_probe();
            }
            match claimed {
                Ok(entries) if entries.is_empty() && self.context.is_draining() => break,
                Ok(entries) if entries.is_empty() => self.wait_for_entries().await,
                Ok(entries) => {
                    if entries.len() == self.max_claim {
                        // There may be more: another sender continues.
                        self.state.wake.notify_one();
                    }
                    self.send_entries(entries, is_probe).await;
                }
                Err(error) => {
                    self.context.log_error(&error);
                    self.context.pause(ERROR_DELAY).await;
                }
            }
        }
        self.transport.disconnect().await;
    }

    async fn claim(&self, limit: usize) -> Result<Vec<Entry>> {
        let (queue, target) = (self.context.queue.clone(), self.state.name.clone());
        self.context.access(async move { queue.claim(&target, Timestamp::now(), limit).await }).await
    }

    /// Waits until an entry may be due. Closes a connection that is not needed.
    async fn wait_for_entries(&mut self) {
        if self.transport.is_connected() {
            if timeout(IDLE_TIMEOUT, self.woken()).await.is_err() {
                self.transport.disconnect().await;
            }
            return;
        }
        let (queue, target) = (self.context.queue.clone(), self.state.name.clone());
        let due = self.context.access(async move { queue.next_due(&target).await }).await;
        let until_due = due
            .ok()
            .flatten()
            .map(|due| Duration::try_from(due.duration_since(Timestamp::now())).unwrap_or(Duration::ZERO));
        self.wait(until_due.unwrap_or(MAX_WAIT)).await;
    }

    /// Waits until the sender is woken or the shutdown begins, at most for `duration`.
    async fn wait(&self, duration: Duration) {
        // A timeout is one of the expected ends.
        let _ = timeout(duration.clamp(MIN_WAIT, MAX_WAIT), self.woken()).await;
    }

    async fn woken(&self) {
        tokio::select! {
            () = self.state.wake.notified() => {},
            () = self.context.stage_changed() => {},
        }
    }

    /// Sends claimed entries. After a failure of the target or the store, or at shutdown, the remaining entries are
    /// returned to the queue.
    async fn send_entries(&mut self, entries: Vec<Entry>, is_probe: bool) {
        let (claimed_at, mut is_interrupted) = (Instant::now(), false);
        for entry in entries {
            let is_paused = !is_probe && self.state.is_paused();
            if is_interrupted || is_paused || self.context.is_stopping() {
                self.report(entry, AttemptOutcome::Released).await;
                continue;
            }
            if claimed_at.elapsed() > MAX_CLAIM_AGE && self.is_cancelled(&entry).await {
                continue;
            }
            match self.transport.send(&entry).await {
                Ok(attempt) => {
                    is_interrupted = matches!(attempt.contact, Contact::Failed { .. });
                    self.record_contact(attempt.contact, is_probe);
                    self.report(entry, attempt.outcome).await;
                }
                Err(error) => {
                    self.context.log_error(&error);
                    is_interrupted = true;
                    self.report(entry, AttemptOutcome::Released).await;
                    self.context.pause(ERROR_DELAY).await;
                }
            }
        }
        if is_probe {
            self.state.abandon_probe();
        }
    }

    fn record_contact(&self, contact: Contact, is_probe: bool) {
        match contact {
            Contact::None => {}
            Contact::Reached => {
                if self.state.record_success() {
                    self.transport.log_resumption();
                }
            }
            Contact::Failed { error, retry_after } => {
                let delay = |failures| self.transport.pause_delay(failures, retry_after);
                if let Some(delay) = self.state.record_failure(&error, is_probe, Instant::now(), delay) {
                    self.transport.log_pause(&error, delay);
                }
            }
        }
    }

    async fn report(&self, entry: Entry, outcome: AttemptOutcome) {
        // An error means that results are not recorded any more; then the entries are sent again.
        let _ = self.results.send((entry, outcome)).await;
    }

    /// Returns whether an entry was cancelled after it was claimed.
    async fn is_cancelled(&self, entry: &Entry) -> bool {
        let (queue, id) = (self.context.queue.clone(), entry.id);
        let current = self.context.access(async move { queue.find(id).await }).await;
        matches!(current, Ok(Some(Entry { state: EntryState::Cancelled, .. })))
    }
}
