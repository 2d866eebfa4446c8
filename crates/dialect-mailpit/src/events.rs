//! Live events as Mailpit sends them over WebSocket: `{"Type": …, "Data": …}`.
//!
//! - `new`: a message was stored; its summary
//! - `update`: a message was marked as read or unread, or its tags were set; its id, and `Read` or `Tags`
//! - `delete`: a message was deleted, or the last copy of it that the client may access; its id
//! - `truncate`: no messages are left
//! - `prune`: some updates or deletions were not sent, because there were too many or the store failed
//! - `stats`: the numbers of messages and of unread messages, soon after the start and after one of the others
//!
//! Differences from Mailpit: there is no event `error`. Every deleted message has its own event. A client that is too slow is
//! disconnected.
//!
//! The messages of a batch of changes are read from the store together. A large deletion causes few queries per subscriber.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use restante_api_types::json;
use restante_auth::Grant;
use restante_http_core::extractors::cancellation::or_pending;
use restante_http_core::server::Server;
use restante_http_core::subscriber::event_selector::EventSelector;
use restante_http_core::subscriber::handshake::Handshake;
use restante_http_core::subscriber::{EventWriter, SubscribeRequest, accept_websocket};
use restante_mail::message::{Message, MessageId};
use restante_mailroom::events::{Event, Lagged, MarkChange, MarkSubscription, PublishedEvent};
use serde::Serialize;
use serde_json::json;
use tokio::time::{Instant, sleep_until};

use crate::VERSION;
use crate::summary::{MessageSummary, sorted_tags};

/// The time between an event and the numbers after it.
const STATS_DELAY: Duration = Duration::from_millis(250);
/// The same for a client that may access only some mailboxes, and the minimum time between two counts of its messages: each
/// time, all messages of its home or up to [`MAX_SCANNED_MESSAGES`](restante_http_core::messages::MAX_SCANNED_MESSAGES) messages
/// are read.
const LIMITED_STATS_DELAY: Duration = Duration::from_secs(2);
const LIMITED_STATS_INTERVAL: Duration = Duration::from_secs(15);
/// The minimum time after an error of the store until the messages are counted again.
const STATS_RETRY_DELAY: Duration = Duration::from_secs(2);
/// The number of deleted messages that are remembered. Copies of a message are usually deleted together.
const MAX_RECENT_DELETIONS: usize = 64;

/// The maximum number of changes of marks that are handled before events are read again.
const MAX_BATCH_UPDATES: usize = 64;

/// Accepts a WebSocket and sends it every event from now on.
pub(crate) async fn events(
    State(server): State<Arc<Server>>,
    request: SubscribeRequest,
    handshake: Handshake,
) -> Response {
    let grant = request.grant.clone();
    let subscription = server.mailroom.subscribe(None, None).without_history();
    let mut writer = MailpitEvents {
        server: server.clone(),
        grant,
        selector: EventSelector::new(false),
        recent_deletions: VecDeque::new(),
        deleted_copies: Vec::new(),
        marks: server.mailroom.subscribe_to_marks(),
        received_mark: None,
        last_update: Bytes::new(),
        has_deletions: false,
        stats_due: None,
        last_stats: None,
    };
    // A client gets the numbers soon after it connects.
    writer.schedule_stats();
    accept_websocket(&server, request, handshake, subscription, writer)
}

/// A message of the WebSocket.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Notification<T> {
    r#type: &'static str,
    data: T,
}

/// The events of one subscriber.
struct MailpitEvents {
    server: Arc<Server>,
    grant: Grant,
    /// Selects one event per stored message.
    selector: EventSelector,
    /// The messages of the last deletions, the most recent first.
    recent_deletions: VecDeque<MessageId>,
    /// The messages of the copies that were deleted in this batch of events.
    deleted_copies: Vec<MessageId>,
    marks: MarkSubscription,
    /// The change of a mark that was received last, until it is sent.
    received_mark: Option<Result<MarkChange, Lagged>>,
    /// The last `update`. The copies of a message are usually marked together, and have the same event.
    last_update: Bytes,
    /// Whether messages were deleted since the last statistics.
    has_deletions: bool,
    /// The time of the next statistics.
    stats_due: Option<Instant>,
    /// The time of the last statistics.
    last_stats: Option<Instant>,
}

impl EventWriter for MailpitEvents {
    async fn write_event(&mut self, published: &PublishedEvent) -> Option<Bytes> {
        let event = published.event();
        if !self.grant.covers(&event.summary().mailbox) {
            return None;
        }
        self.schedule_stats();
        match event {
            Event::Stored(..) => self.stored(event),
            Event::Deleted(copy) => {
                self.deleted_copies.push(copy.message);
                None
            }
        }
    }

    async fn finish_batch(&mut self) -> Vec<Bytes> {
        let deleted = std::mem::take(&mut self.deleted_copies);
        if deleted.is_empty() { Vec::new() } else { self.deleted(deleted).await }
    }

    async fn report_ready(&mut self) {
        if self.received_mark.is_some() {
            return;
        }
        tokio::select! {
            change = self.marks.next() => self.received_mark = Some(change),
            () = or_pending(self.stats_due.map(sleep_until)) => {}
        }
    }

    async fn write_report(&mut self) -> Vec<Bytes> {
        let mut changes = Vec::new();
        let mut next = self.received_mark.take();
        while let Some(change) = next {
            changes.push(change);
            let is_full = changes.len() >= MAX_BATCH_UPDATES;
            next = if is_full { None } else { self.marks.try_next().transpose() };
        }
        let mut messages = self.updated(changes).await;
        if self.stats_due.is_some_and(|time| time <= Instant::now()) {
            messages.extend(self.statistics().await);
        }
        messages
    }
}

impl MailpitEvents {
    fn schedule_stats(&mut self) {
        let now = Instant::now();
        let due = if self.grant.home().is_none() && self.grant.covers_home() {
            now + STATS_DELAY
        } else {
            let earliest = self.last_stats.map_or(now, |last| last + LIMITED_STATS_INTERVAL);
            earliest.max(now + LIMITED_STATS_DELAY)
        };
        self.stats_due.get_or_insert(due);
    }

    /// Returns the statistics, after `truncate` if all messages were deleted. If the store fails, they are due again later.
    async fn statistics(&mut self) -> Vec<Bytes> {
        self.stats_due = None;
        self.last_stats = Some(Instant::now());
        let Ok(overview) = self.server.messages.overview(&self.grant).await else {
            self.schedule_stats();
            let earliest = Instant::now() + STATS_RETRY_DELAY;
            self.stats_due = self.stats_due.map(|due| due.max(earliest));
            return Vec::new();
        };
        let has_deletions = std::mem::take(&mut self.has_deletions);
        let truncate = if has_deletions && overview.messages == 0 { render("truncate", ()) } else { None };
        let stats = json!({ "Total": overview.messages, "Unread": overview.unread, "Version": VERSION });
        truncate.into_iter().chain(render("stats", stats)).collect()
    }

    /// Returns the events about changes of marks. A message is read if all of its copies are.
    async fn updated(&mut self, changes: Vec<Result<MarkChange, Lagged>>) -> Vec<Bytes> {
        let mut is_pruned = changes.iter().any(Result::is_err);
        let changes: Vec<MarkChange> =
            changes.into_iter().flatten().filter(|change| self.grant.covers(&change.mailbox)).collect();
        let copies: BTreeSet<MessageId> = changes.iter().map(|change| change.id).collect();
        let messages = self.server.messages.messages_of_copies(&self.grant, copies).await;
        is_pruned |= messages.is_err();
        if is_pruned || !changes.is_empty() {
            self.schedule_stats();
        }
        let messages = messages.unwrap_or_default();
        let by_copy: HashMap<MessageId, &Message> =
            messages.iter().flat_map(|message| message.copies().iter().map(move |copy| (copy.id, message))).collect();
        let mut events = Vec::from_iter(render("prune", ()).filter(|_| is_pruned));
        for MarkChange { id, changed, marks, .. } in changes {
            let Some(message) = by_copy.get(&id) else { continue };
            let (id, read) = (message.id().to_string(), marks.seen);
            let mut updates = Vec::new();
            if changed.seen && message.is_seen() == read {
                updates.extend(render("update", json!({ "ID": id, "Read": read })));
            }
            if changed.tags {
                updates.extend(render("update", json!({ "ID": id, "Tags": sorted_tags(message) })));
            }
            for event in updates {
                if event != self.last_update {
                    self.last_update = event.clone();
                    events.push(event);
                }
            }
        }
        events
    }

    fn stored(&mut self, event: &Event) -> Option<Bytes> {
        if !self.selector.selects(event, &self.grant) {
            return None;
        }
        let copies = event.copies().iter().filter(|copy| self.grant.covers(&copy.mailbox)).cloned();
        // The events of a message have only its own copies.
        let messages = Message::group(copies);
        render("new", MessageSummary::new(messages.first()?).without_nulls())
    }

    /// Returns the events for those of these messages of which the client can access no other copy.
    async fn deleted(&mut self, mut ids: Vec<MessageId>) -> Vec<Bytes> {
        ids.retain(|id| !self.recent_deletions.contains(id));
        let unique: BTreeSet<MessageId> = ids.iter().copied().collect();
        let Ok(existing) = self.server.messages.existing_messages(&self.grant, unique).await else {
            self.has_deletions = true;
            return Vec::from_iter(render("prune", ()));
        };
        let mut events = Vec::new();
        for id in ids {
            if existing.contains(&id) || self.recent_deletions.contains(&id) {
                continue;
            }
            self.has_deletions = true;
            self.recent_deletions.truncate(MAX_RECENT_DELETIONS - 1);
            self.recent_deletions.push_front(id);
            events.extend(render("delete", json!({ "ID": id.to_string() })));
        }
        events
    }
}

fn render(r#type: &'static str, data: impl Serialize) -> Option<Bytes> {
    let mut out = Vec::new();
    json::append(&mut out, &Notification { r#type, data }).ok()?;
    Some(out.into())
}
