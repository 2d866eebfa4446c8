//! Live events as Mailpit sends them over WebSocket: `{"Type": …, "Data": …}`.
//!
//! - `new`: a message was stored; its summary
//! - `delete`: a message was deleted, or the last copy of it that the client may access; its id
//! - `stats`: the numbers of messages and of unread messages, soon after one of the others
//!
//! Differences from Mailpit: there are no events `update`, `prune`, `truncate` and `error`. Every deleted message has its own
//! event. A client that is too slow is disconnected.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use restante_api_types::json;
use restante_auth::Grant;
use restante_mail::message::{Message, MessageId};
use restante_mailroom::events::{Event, PublishedEvent};
use restante_store::MessageSelector;
use serde::Serialize;
use tokio::time::Instant;

use crate::dialects::mailpit::VERSION;
use crate::dialects::mailpit::summary::MessageSummary;
use crate::extractors::subscriber::event_selector::EventSelector;
use crate::extractors::subscriber::handshake::Handshake;
use crate::extractors::subscriber::{EventWriter, SubscribeRequest, accept_websocket};

use crate::response::problem::Problem;
use crate::state::Server;

/// The time between an event and the numbers after it.
const STATS_DELAY: Duration = Duration::from_millis(250);
/// The same for a client that may access only some mailboxes: its messages have to be counted each time.
const LIMITED_STATS_DELAY: Duration = Duration::from_secs(2);
/// The number of deleted messages that are remembered. Copies of a message are usually deleted together.
const MAX_RECENT_DELETIONS: usize = 64;

/// Accepts a WebSocket and sends it every event from now on.
pub(crate) async fn events(
    State(server): State<Arc<Server>>,
    request: SubscribeRequest,
    handshake: Handshake,
) -> Response {
    let grant = request.grant.clone();
    let subscription = server.mailroom.subscribe(None, None).without_history();
    let writer = MailpitEvents {
        server: server.clone(),
        grant,
        selector: EventSelector::new(false),
        recent_deletions: VecDeque::new(),
        stats_due: None,
    };
    accept_websocket(&server, request, handshake, subscription, writer)
}

/// A message of the WebSocket.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Notification<T> {
    r#type: &'static str,
    data: T,
}

#[derive(Serialize)]
struct Deleted {
    #[serde(rename = "ID")]
    id: String,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Stats {
    total: u64,
    unread: u64,
    version: &'static str,
}

/// The events of one subscriber.
struct MailpitEvents {
    server: Arc<Server>,
    grant: Grant,
    /// Selects one event per stored message.
    selector: EventSelector,
    /// The messages of the last deletions, the most recent first.
    recent_deletions: VecDeque<MessageId>,
    /// The time of the next statistics.
    stats_due: Option<Instant>,
}

impl EventWriter for MailpitEvents {
    async fn write_event(&mut self, published: &PublishedEvent) -> Option<Bytes> {
        let event = published.event();
        if !self.grant.covers(&event.summary().mailbox) {
            return None;
        }
        let json = match event {
            Event::Stored(..) => self.stored(event)?,
            Event::Deleted(copy) => self.deleted(copy.message).await?,
        };
        let is_complete = self.grant.covers_all_mailboxes();
        let delay = if is_complete { STATS_DELAY } else { LIMITED_STATS_DELAY };
        self.stats_due.get_or_insert_with(|| Instant::now() + delay);
        Some(json)
    }

    fn next_report(&self) -> Option<Instant> {
        self.stats_due
    }

    async fn write_report(&mut self) -> Option<Bytes> {
        self.stats_due = None;
        let overview = self.server.overview(&self.grant).await.ok()?;
        let stats = Stats { total: overview.messages, unread: overview.unread, version: VERSION };
        render("stats", stats)
    }
}

impl MailpitEvents {
    fn stored(&mut self, event: &Event) -> Option<Bytes> {
        if !self.selector.selects(event, &self.grant) {
            return None;
        }
        let copies = event.copies().iter().filter(|copy| self.grant.covers(&copy.mailbox)).cloned();
        // The events of a message have only its own copies.
        let messages = Message::group(copies);
        render("new", MessageSummary::new(messages.first()?).without_nulls())
    }

    /// Returns the event if the client can access no other copy of the message.
    async fn deleted(&mut self, id: MessageId) -> Option<Bytes> {
        if self.recent_deletions.contains(&id) {
            return None;
        }
        let found = self.server.permitted_message(&self.grant, MessageSelector::Id(id)).await;
        if !matches!(found, Err(Problem::NoSuchWholeMessage)) {
            return None;
        }
        self.recent_deletions.truncate(MAX_RECENT_DELETIONS - 1);
        self.recent_deletions.push_front(id);
        render("delete", Deleted { id: id.to_string() })
    }
}

fn render(r#type: &'static str, data: impl Serialize) -> Option<Bytes> {
    let mut out = Vec::new();
    json::append(&mut out, &Notification { r#type, data }).ok()?;
    Some(out.into())
}
