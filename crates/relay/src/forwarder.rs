//! The forwarder: compares new messages with the rules and adds entries to the queue. It reads the messages of the store
//! in the order of their ids, which is the order in which they become visible, and stores how far it has come together
//! with the entries. So every message is compared once, also after a crash. While the queue is full, it waits.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use restante_mail::message::{Message, MessageId};
use restante_mail::mime::Mime;
use restante_mailroom::Page;
use restante_queue::{Context, ForwardOutcome, NewEntry};
use restante_store::{Result, StoreError};
use tokio::time::timeout;

use crate::entry::Origin;
use crate::release::MAX_RECIPIENTS;
use crate::rules::{self, Rules};
use crate::shared::Shared;

/// The maximum number of messages that are compared at once.
const MAX_BATCH_MESSAGES: usize = 500;
/// How long messages are collected: one large change of the queue costs less than many small ones.
const BATCH_DELAY: Duration = Duration::from_millis(20);
/// The delay after a batch while the server is busy with deliveries.
const BUSY_DELAY: Duration = Duration::from_secs(1);
/// How often a node renews its part in forwarding, or tries to take over.
const LEASE_INTERVAL: Duration = Duration::from_secs(5);
/// The delay while the queue is full, and after an error.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// See the module documentation.
pub(crate) struct Forwarder {
    context: Context,
    shared: Arc<Shared>,
    /// How many messages are compared at once. Smaller while the queue has no space for more.
    batch_messages: usize,
}

/// What a step has done.
enum Step {
    /// There may be more messages.
    Advanced,
    /// There are no new messages, or another node forwards.
    Idle,
    /// The queue is full.
    Full,
}

impl Forwarder {
    pub(crate) fn new(context: Context, shared: Arc<Shared>) -> Self {
        Self { context, shared, batch_messages: MAX_BATCH_MESSAGES }
    }

    /// Runs until the relay shuts down.
    pub(crate) async fn run(mut self) {
        while !self.context.is_stopping() {
            if self.shared.delivery_load.is_busy(Instant::now()) {
                self.context.pause(BUSY_DELAY).await;
            }
            match self.step().await {
                Ok(Step::Advanced) => self.batch_messages = (2 * self.batch_messages).min(MAX_BATCH_MESSAGES),
                Ok(Step::Idle) => {
                    self.wait_for_message().await;
                    self.context.pause(BATCH_DELAY).await;
                }
                Ok(Step::Full) if self.batch_messages > 1 => self.batch_messages /= 2,
                Ok(Step::Full) => self.context.pause(RETRY_DELAY).await,
                Err(error) => {
                    self.context.log_error(&error);
                    self.context.pause(RETRY_DELAY).await;
                }
            }
        }
    }

    async fn wait_for_message(&self) {
        let message_or_stop = async {
            tokio::select! {
                () = self.shared.message_stored.notified() => {},
                () = self.context.stopped() => {},
            }
        };
        // A timeout is one of the expected ends.
        let _ = timeout(LEASE_INTERVAL, message_or_stop).await;
    }

    /// Compares the next messages with the rules.
    async fn step(&self) -> Result<Step> {
        let (shared, mailroom) = (self.shared.clone(), self.context.mailroom.clone());
        let limit = Some(self.batch_messages);
        let read = async move {
            let Some(cursor) = shared.acquire_cursor(&mailroom).await? else { return Ok(None) };
            let page = Page { limit, before: None, after: Some(cursor) };
            Ok(Some((cursor, mailroom.messages(None, page).await?.messages)))
        };
        let Some((cursor, messages)) = self.context.access(read).await? else { return Ok(Step::Idle) };
        let Some(last) = messages.last().map(Message::id) else { return Ok(Step::Idle) };
        let rules = Rules::new(&self.shared.settings, Timestamp::now());
        let mut entries = Vec::new();
        for message in &messages {
            entries.extend(self.compare(&rules, message).await?);
        }
        self.add(entries, cursor, last).await
    }

    async fn add(&self, entries: Vec<NewEntry>, cursor: MessageId, last: MessageId) -> Result<Step> {
        let targets: BTreeSet<String> = entries.iter().map(|entry| entry.target.clone()).collect();
        let queue = self.context.queue.clone();
        let outcome = self.context.access(async move { queue.forward(entries, cursor, last).await }).await?;
        Ok(match outcome {
            ForwardOutcome::Added => {
                for target in targets {
                    self.shared.wake_target(&target);
                }
                Step::Advanced
            }
            ForwardOutcome::Full => Step::Full,
            ForwardOutcome::CursorMoved => Step::Idle,
        })
    }

    /// Returns the entries of a message. Reads its source only if a rule needs it.
    async fn compare(&self, rules: &Rules<'_>, message: &Message) -> Result<Vec<NewEntry>> {
        let first = message.first();
        if !first.details.is_received() {
            // It was imported.
            return Ok(Vec::new());
        }
        let source = if rules.need_source(message) {
            let (mailroom, mailbox, id) = (self.context.mailroom.clone(), first.mailbox.clone(), first.id);
            match self.context.access(async move { mailroom.source(&mailbox, id).await }).await {
                Ok(Some(source)) => Some(Mime::parse(source.to_bytes())),
                // A message that was deleted matches nothing.
                Ok(None) => return Ok(Vec::new()),
                Err(error @ StoreError::Broken(_)) => {
                    tracing::error!(%error, message_id = first.message.number(), "a message that cannot be read is not forwarded");
                    return Ok(Vec::new());
                }
                Err(error) => return Err(error),
            }
        } else {
            None
        };
        let rules::Matches { matches, not_allowed } = rules.matches(message, source.as_ref());
        self.shared.recipients_not_allowed.fetch_add(not_allowed, Relaxed);
        let entries = matches.into_iter().flat_map(|matched| {
            let chunks = matched.recipients.chunks(MAX_RECIPIENTS);
            let entry = |recipients: &[String]| {
                self.shared.new_entry(matched.copy, matched.target, recipients.to_vec(), Origin::Forward)
            };
            chunks.map(entry).collect::<Vec<_>>()
        });
        Ok(entries.collect())
    }
}
