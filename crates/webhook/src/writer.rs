//! The thread of the webhooks: a runtime on which the senders and the writer run. The writer adds events to the queue,
//! records results, and maintains the queue. It is the only task that does, so the counters are exact, unless other nodes
//! share the queue.

mod catch_up;
#[cfg(test)]
mod tests;

use std::mem::{replace, take};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use jiff::Timestamp;
use restante_http_client::HttpService;
use restante_mail::message::{MessageId, Summary};
use restante_queue::{
    AddError, AttemptOutcome, AttemptRecord, Context, Entry, EntryState, NewEntry, Queue, Sender, StateCount,
    TargetLimits, create_runtime,
};
use restante_store::Result;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use self::catch_up::CatchUp;
use crate::backoff::Backoff;
use crate::inbox::{DropReason, Inbox, InboxEvent};
use crate::payload::Payload;
use crate::target::ConfiguredTarget;
use crate::transport::HttpTransport;
use crate::{EventKind, Settings};

/// The maximum number of concurrent requests to one target.
const MAX_REQUESTS: usize = 4;
/// The maximum size of the events that wait for one target. An event is usually small, but its recipients and its subject
/// can have 36 KiB.
const MAX_QUEUED_BYTES: u64 = 64 << 20;
/// The maximum number of results that wait to be written. Senders wait if there are more.
const MAX_RESULTS: usize = 1000;
/// The maximum number of entries that are added at once, so that a statement of a database does not reach its time limit.
const MAX_ADDED: usize = 1000;
/// Message ids are times in microseconds, and events arrive roughly in the order of their ids. An arriving id
/// is at most this far below the highest id so far.
const MAX_ID_DISORDER_MICROS: u64 = 10_000_000;

/// What the writer and [`crate::Webhooks`] share.
pub(crate) struct Shared {
    pub(crate) settings: Settings,
    pub(crate) targets: Vec<Arc<ConfiguredTarget>>,
    pub(crate) queue: Arc<dyn Queue>,
    pub(crate) http: Arc<dyn HttpService>,
    pub(crate) backoff: Backoff,
    pub(crate) inbox: Inbox,
    /// Whether all events of a closed inbox are in the queue.
    pub(crate) is_flushed: AtomicBool,
    /// Whether the entries of the queue have to be counted.
    pub(crate) needs_count: AtomicBool,
}

impl Shared {
    /// Returns the indexes of the targets that match a mailbox, which is the owner of a folder.
    pub(crate) fn matching_targets(&self, event: EventKind, mailbox: &str) -> impl Iterator<Item = usize> {
        let matches = move |(_, target): &(usize, &Arc<ConfiguredTarget>)| target.matches(event, mailbox);
        self.targets.iter().enumerate().filter(matches).map(|(index, _)| index)
    }

    /// Returns the names of the targets.
    pub(crate) fn target_names(&self) -> Vec<String> {
        self.targets.iter().map(|target| target.state.name.clone()).collect()
    }

    /// Returns the index of the target with this name.
    pub(crate) fn find_target(&self, name: &str) -> Option<usize> {
        self.targets.iter().position(|target| target.state.name == name)
    }

    /// Returns when an event of this time expires.
    pub(crate) fn expiry(&self, time: Timestamp) -> Timestamp {
        let grace = self.backoff.expiry_grace(self.settings.timeout);
        time.checked_add(self.settings.give_up_after + grace).unwrap_or(Timestamp::MAX)
    }

    /// Returns what may wait for one target.
    pub(crate) fn target_limits(&self) -> TargetLimits {
        TargetLimits { max_waiting: self.settings.max_queued, max_bytes: MAX_QUEUED_BYTES }
    }

    /// Makes the writer count the entries, because an operator has changed some.
    pub(crate) fn request_count(&self) {
        self.needs_count.store(true, Relaxed);
        self.inbox.changed.notify_one();
    }
}

/// Runs until the shutdown.
pub(crate) fn run(writer: Writer) {
    let Some(runtime) = create_runtime("the webhooks") else { return };
    runtime.block_on(async {
        let (sender, results) = mpsc::channel(MAX_RESULTS);
        writer.start_senders(&sender);
        drop(sender);
        writer.run(results).await;
    });
    // A request that is not answered must not delay the end.
    runtime.shutdown_background();
}

/// The entries of a target that wait, and the size of their payloads.
#[derive(Clone, Copy, Debug, Default)]
struct Usage {
    entries: usize,
    bytes: u64,
}

/// See the module documentation.
pub(crate) struct Writer {
    context: Context,
    shared: Arc<Shared>,
    /// By target.
    usage: Vec<Usage>,
    /// Events that are not in the queue yet.
    events: Vec<InboxEvent>,
    /// Results that are not recorded yet.
    records: Vec<(Entry, AttemptOutcome)>,
    /// The checkpoint of this node in the queue.
    checkpoint: MessageId,
    /// The last message before each target existed. It gets no events of earlier ones.
    since: Vec<MessageId>,
    catch_up: Option<CatchUp>,
    next_maintenance: Instant,
}

impl Writer {
    /// Prepares the queue. All messages that are stored from now on have an id above `start`.
    pub(crate) async fn start(context: Context, shared: Arc<Shared>, start: MessageId) -> Result<Self> {
        let names = shared.target_names();
        let (queue, targets) = (context.queue.clone(), names.clone());
        let min_expiry = Timestamp::now().checked_add(shared.backoff.max_delay).unwrap_or(Timestamp::MAX);
        let prepare = async move {
            queue.set_checkpoint(Some(start)).await?;
            let dropped = queue.set_targets(targets, start).await?;
            // If the clock was wrong, events of an earlier process are tried nevertheless.
            queue.postpone_expiry(min_expiry).await?;
            Ok((dropped, queue.targets().await?, queue.counts().await?))
        };
        let (dropped, records, counts) = context.access(prepare).await?;
        if dropped > 0 {
            tracing::warn!(events = dropped, "dropped events for webhooks that are no longer configured");
        }
        let since = |name: &String| records.iter().find(|record| record.name == *name).map(|record| record.since);
        let mut writer = Self {
            since: names.iter().map(|name| since(name).unwrap_or(start)).collect(),
            usage: vec![Usage::default(); shared.targets.len()],
            events: Vec::new(),
            records: Vec::new(),
            checkpoint: start,
            catch_up: None,
            next_maintenance: Instant::now(),
            context,
            shared,
        };
        writer.set_usage(&counts);
        for (target, usage) in writer.shared.targets.iter().zip(&writer.usage).filter(|(_, usage)| usage.entries > 0) {
            let (webhook, events) = (&target.endpoint.label, usage.entries);
            tracing::info!(webhook, events, "events from the last run wait for a webhook target");
        }
        Ok(writer)
    }

    fn start_senders(&self, results: &mpsc::Sender<(Entry, AttemptOutcome)>) {
        for target in &self.shared.targets {
            for _ in 0..MAX_REQUESTS {
                let transport = HttpTransport {
                    target: target.clone(),
                    http: self.shared.http.clone(),
                    key: self.shared.settings.secret.clone(),
                    timeout: self.shared.settings.timeout,
                    backoff: self.shared.backoff,
                };
                let (context, state, results) = (self.context.clone(), target.state.clone(), results.clone());
                // One at a time, so that a slow response delays no other event.
                tokio::spawn(Sender { context, state, transport, max_claim: 1, results }.run());
            }
        }
    }

    /// Runs until all senders have ended and their results are recorded.
    async fn run(mut self, mut results: mpsc::Receiver<(Entry, AttemptOutcome)>) {
        let mut has_senders = true;
        while has_senders {
            let can_collect = self.events.is_empty() && !self.shared.is_flushed.load(Relaxed);
            tokio::select! {
                result = results.recv() => match result {
                    Some(result) => self.records.push(result),
                    None => has_senders = false,
                },
                () = self.shared.inbox.changed.notified(), if can_collect => {},
                () = sleep_until(self.next_maintenance) => {},
            }
            while let Ok(result) = results.try_recv() {
                self.records.push(result);
            }
            if let Err(error) = self.step().await {
                self.context.log_error(&error);
            }
        }
        self.leave().await;
    }

    async fn step(&mut self) -> Result<()> {
        let mut last = None;
        if self.next_maintenance <= Instant::now() {
            // It is postponed if it fails, but not if another part of the step fails.
            self.next_maintenance = Instant::now() + self.shared.backoff.maintenance_interval;
            last = Some(self.maintain().await?);
        }
        self.record().await?;
        if self.events.is_empty() {
            self.events = self.shared.inbox.take();
        } else {
            last = None;
        }
        self.add_events().await?;
        if let Some(last) = last {
            self.move_checkpoint(last).await?;
        }
        self.flush().await?;
        self.catch_up().await?;
        if self.shared.needs_count.swap(false, Relaxed) {
            self.count().await?;
        }
        Ok(())
    }

    /// Ends the writing of events when the inbox is closed and empty.
    async fn flush(&mut self) -> Result<()> {
        if self.shared.inbox.is_finished() && !self.shared.is_flushed.load(Relaxed) {
            self.set_clean().await?;
            self.shared.is_flushed.store(true, Relaxed);
        }
        Ok(())
    }

    /// Deletes the checkpoint if nothing can be missed any more.
    async fn set_clean(&self) -> Result<()> {
        let is_clean = self.shared.inbox.is_clean() && self.catch_up.is_none();
        let (queue, checkpoint) = (self.context.queue.clone(), self.checkpoint);
        self.context.access(async move { queue.set_checkpoint((!is_clean).then_some(checkpoint)).await }).await
    }

    async fn leave(&self) {
        let queue = self.context.queue.clone();
        let left = async {
            if self.shared.is_flushed.load(Relaxed) {
                // An event may have come late.
                self.set_clean().await?;
            }
            self.context.access(async move { queue.leave().await }).await
        };
        if let Err(error) = left.await {
            tracing::debug!(%error, "the webhook queue was not left; other nodes take over when the heartbeat ends");
        }
    }

    /// Records the results of attempts.
    async fn record(&mut self) -> Result<()> {
        if self.records.is_empty() {
            return Ok(());
        }
        let record = |(entry, outcome): &(Entry, AttemptOutcome)| AttemptRecord {
            id: entry.id,
            claim: entry.claim,
            outcome: outcome.clone(),
        };
        let (queue, records) = (self.context.queue.clone(), self.records.iter().map(record).collect());
        self.context.access(async move { queue.record(records).await }).await?;
        for (entry, outcome) in take(&mut self.records) {
            self.count_result(&entry, &outcome);
        }
        Ok(())
    }

    fn count_result(&mut self, entry: &Entry, outcome: &AttemptOutcome) {
        let Some(index) = self.shared.find_target(&entry.target) else { return };
        let AttemptOutcome::Attempted { state, reply, .. } = outcome else { return };
        let target = &self.shared.targets[index];
        if state.is_final() {
            let usage = &mut self.usage[index];
            usage.entries = usage.entries.saturating_sub(1);
            usage.bytes = usage.bytes.saturating_sub(entry.payload.len() as u64);
            target.in_queue.store(usage.entries as u64, Relaxed);
        }
        match state {
            EntryState::Failed => target.count_given_up(entry.key.as_deref().unwrap_or_default(), reply),
            EntryState::Delivered => _ = target.state.delivered.fetch_add(1, Relaxed),
            _ => _ = target.state.deferred.fetch_add(1, Relaxed),
        }
    }

    /// Adds the events of the inbox to the queue. Drops those for which a target has no room.
    async fn add_events(&mut self) -> Result<()> {
        if self.events.is_empty() {
            return Ok(());
        }
        let (mut entries, mut usage, mut dropped) = (Vec::new(), self.usage.clone(), Vec::new());
        for InboxEvent { event, summary, targets } in &self.events {
            let payload = Payload::new(*event, summary);
            for index in targets {
                let target = &mut usage[*index];
                let bytes = target.bytes.saturating_add(payload.body.len() as u64);
                if target.entries >= self.shared.settings.max_queued || bytes > MAX_QUEUED_BYTES {
                    dropped.push(*index);
                    continue;
                }
                *target = Usage { entries: target.entries + 1, bytes };
                entries.push(self.new_entry(*index, summary, &payload));
            }
        }
        self.add(entries).await?;
        self.usage = usage;
        self.publish_usage();
        for index in take(&mut self.events).iter().flat_map(|event| &event.targets) {
            self.shared.targets[*index].in_inbox.fetch_sub(1, Relaxed);
        }
        for index in dropped {
            self.shared.targets[index].count_dropped(DropReason::Full);
        }
        Ok(())
    }

    fn new_entry(&self, target: usize, summary: &Summary, payload: &Payload) -> NewEntry {
        let now = Timestamp::now();
        NewEntry {
            message: summary.message,
            mailbox: summary.mailbox.clone(),
            target: self.shared.targets[target].state.name.clone(),
            key: Some(payload.webhook_id.clone()),
            payload: payload.body.clone(),
            created: now,
            expires: self.shared.expiry(now),
        }
    }

    /// Adds entries and wakes the senders. If this fails, some may have been added. They can be added again, because their
    /// keys exist.
    async fn add(&self, mut entries: Vec<NewEntry>) -> Result<()> {
        while !entries.is_empty() {
            let rest = entries.split_off(entries.len().min(MAX_ADDED));
            let (queue, part) = (self.context.queue.clone(), replace(&mut entries, rest));
            let count = part.len();
            let add = async move {
                match queue.add(part).await {
                    Ok(added) => Ok(added.len()),
                    Err(AddError::Store(error)) => Err(error),
                    // The limit is that of each target.
                    Err(AddError::Full) => Ok(0),
                }
            };
            if self.context.access(add).await? < count {
                // Some exist.
                self.shared.needs_count.store(true, Relaxed);
            }
            for target in &self.shared.targets {
                target.state.wake.notify_one();
            }
        }
        Ok(())
    }

    /// Maintains the queue. Returns the last message.
    async fn maintain(&mut self) -> Result<MessageId> {
        let (queue, mailroom) = (self.context.queue.clone(), self.context.mailroom.clone());
        let maintenance = async move {
            queue.heartbeat().await?;
            let expired = queue.expire(Timestamp::now()).await?;
            // First the checkpoints: the nodes have stored no message above `last`.
            let abandoned = queue.abandoned_checkpoints().await?;
            Ok((expired, abandoned, mailroom.last_id().await?))
        };
        let (expired, abandoned, last) = self.context.access(maintenance).await?;
        for target in expired.iter().filter_map(|name| self.shared.find_target(name)) {
            self.shared.targets[target].count_given_up("", "it was not delivered before its deadline");
        }
        self.start_catch_up(abandoned, last);
        self.shared.needs_count.store(true, Relaxed);
        Ok(last)
    }

    /// Moves the checkpoint. All events that were in the inbox after `last` was stored are in the queue.
    async fn move_checkpoint(&mut self, last: MessageId) -> Result<()> {
        let checkpoint = MessageId::from(last.number().saturating_sub(MAX_ID_DISORDER_MICROS)).max(self.checkpoint);
        // If this node was slow and was taken for dead, another one has deleted the checkpoint.
        let is_set = checkpoint == self.checkpoint && !self.context.mailroom.is_shared();
        if is_set || self.shared.is_flushed.load(Relaxed) {
            return Ok(());
        }
        let queue = self.context.queue.clone();
        self.context.access(async move { queue.set_checkpoint(Some(checkpoint)).await }).await?;
        self.checkpoint = checkpoint;
        Ok(())
    }

    /// Counts the entries of the queue.
    async fn count(&mut self) -> Result<()> {
        let queue = self.context.queue.clone();
        let counts = self.context.access(async move { queue.counts().await }).await?;
        self.set_usage(&counts);
        Ok(())
    }

    fn set_usage(&mut self, counts: &[StateCount]) {
        for (target, usage) in self.shared.targets.iter().zip(&mut self.usage) {
            let waiting = counts.iter().filter(|count| count.target == target.state.name && !count.state.is_final());
            *usage = waiting.fold(Usage::default(), |usage, count| Usage {
                entries: usage.entries.saturating_add(usize::try_from(count.count).unwrap_or(usize::MAX)),
                bytes: usage.bytes + count.bytes,
            });
        }
        self.publish_usage();
    }

    fn publish_usage(&self) {
        for (target, usage) in self.shared.targets.iter().zip(&self.usage) {
            target.in_queue.store(usage.entries as u64, Relaxed);
        }
    }
}
