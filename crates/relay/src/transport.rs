//! How entries are sent: over one connection to the target, which is kept while there are entries.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use jiff::Timestamp;
use restante_mail::message::Source;
use restante_mailroom::MessageSelector;
use restante_queue::{Attempt, AttemptOutcome, Context, EntryState, TargetState, Transport};
use restante_store::{Result, StoreError};
use restante_worker::{RetryDelay, random_jitter};

use crate::attempt;
use crate::background::RelayContext;
use crate::entry::{Entry, Origin};
use crate::message;
use crate::session::{ConnectError, Session, Transaction};
use crate::settings::Target;

/// How long a target that cannot be reached is paused.
const PAUSE_DELAY: RetryDelay = RetryDelay { first: Duration::from_secs(1), max: Duration::from_mins(5) };
/// The average time between two messages to a target while the server is busy with deliveries.
const BUSY_INTERVAL: Duration = Duration::from_millis(2);

/// See the module documentation.
pub(crate) struct SmtpTransport {
    pub(crate) context: Context,
    pub(crate) relay: RelayContext,
    pub(crate) target: Target,
    pub(crate) state: Arc<TargetState>,
    pub(crate) session: Option<Session>,
}

impl SmtpTransport {
    /// Sends an entry. An error means that the store is not available.
    async fn send_entry(&mut self, entry: &Entry) -> Result<Attempt> {
        let source = match self.read_source(entry).await {
            Ok(Some(source)) => source,
            Ok(None) => {
                return Ok(attempt::failed(entry, "the message was deleted", Timestamp::now()));
            }
            Err(StoreError::Broken(error)) => {
                let reason = format!("the message cannot be read: {error}");
                return Ok(attempt::deferred(entry, &reason, Timestamp::now(), random_jitter()));
            }
            Err(error) => return Err(error),
        };
        let (identity, domain) = (&self.relay.identity, &self.relay.shared.settings.domain);
        if let Some(reason) = message::find_loop(&source.body, identity, entry.content.origin == Origin::Forward) {
            self.relay.shared.loops.fetch_add(1, Relaxed);
            let reason = format!("the message is in a loop: {reason}");
            return Ok(attempt::failed(entry, &reason, Timestamp::now()));
        }
        // The settings may have changed since the entry was added, and nodes may have different ones.
        let entry = &attempt::refuse_recipients(entry, |address| self.target.allows(address));
        if entry.content.waiting().next().is_none() {
            let reason = attempt::NOT_ALLOWED;
            return Ok(attempt::failed(entry, reason, Timestamp::now()));
        }
        let data = message::compose(&source, &self.target, entry.content.origin.subject_prefix(), identity, domain);
        let (transaction, jitter) = (self.transact(entry, &data).await, random_jitter());
        Ok(match transaction {
            Ok(transaction) => attempt::completed(entry, transaction, Timestamp::now(), jitter),
            Err(error) => attempt::unreachable(entry, error, Timestamp::now(), jitter),
        })
    }

    /// Reads the message from the copy that the entry names. If that was deleted, reads another copy.
    async fn read_source(&self, entry: &Entry) -> Result<Option<Source>> {
        let (mailroom, mailbox, copy, id) =
            (self.context.mailroom.clone(), entry.mailbox.clone(), entry.content.copy.into(), entry.message);
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
        let recipients: Vec<&str> = entry.content.waiting().collect();
        if let Some(mut session) = self.session.take() {
            let transaction = session.send(&entry.content.sender, &recipients, data).await;
            if !transaction.is_target_failure {
                self.session = transaction.is_reusable.then_some(session);
                return Ok(transaction);
            }
        }
        let mut session = self.relay.connector.connect(&self.target).await?;
        let transaction = session.send(&entry.content.sender, &recipients, data).await;
        self.session = transaction.is_reusable.then_some(session);
        Ok(transaction)
    }

    /// Counts and logs an attempt.
    fn finish(&self, entry: &restante_queue::Entry, attempt: &Attempt) {
        let AttemptOutcome::Attempted { state, reply, .. } = &attempt.outcome else { return };
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
    }
}

#[async_trait]
impl Transport for SmtpTransport {
    async fn send(&mut self, queued: &restante_queue::Entry) -> Result<Attempt> {
        if self.relay.shared.delivery_load.is_busy(Instant::now()) {
            let connections = u32::try_from(self.target.connections).unwrap_or(u32::MAX);
            self.context.pause(BUSY_INTERVAL.saturating_mul(connections)).await;
        }
        let attempt = match Entry::decode(queued.clone()) {
            Ok(entry) => self.send_entry(&entry).await?,
            Err(error) => attempt::unreadable(queued, &error, Timestamp::now()),
        };
        self.finish(queued, &attempt);
        Ok(attempt)
    }

    fn is_connected(&self) -> bool {
        self.session.is_some()
    }

    async fn disconnect(&mut self) {
        if let Some(session) = self.session.take() {
            session.quit().await;
        }
    }

    fn pause_delay(&self, failures: u32, _: Option<Duration>) -> Duration {
        PAUSE_DELAY.after(failures, random_jitter())
    }

    fn log_pause(&self, error: &str, delay: Duration) {
        let (target_name, seconds) = (&self.target.name, delay.as_secs_f32());
        tracing::warn!(target_name, error, "relay target unreachable, retrying in {seconds:.0} s");
    }

    fn log_resumption(&self) {
        tracing::info!(target_name = self.target.name, "the relay target can be reached again");
    }
}
