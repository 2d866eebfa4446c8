//! Webhooks: their targets, and what is special about entries of their queue. The rest is in `queue`. Of a URL, clients
//! see only the scheme, host and port, because the rest may be a secret.

use std::sync::Arc;

use axum::extract::{Request, State};
use restante_api_types::{Time, WebhookEntry, WebhookFilter, WebhookTarget, WebhookTargetState};
use restante_auth::{Grant, Scope};
use restante_http_core::extractors::body;
use restante_http_core::extractors::queue::{PathEntry, QueueGrant};
use restante_http_core::response::problem::Problem;
use restante_http_core::response::{json, success};
use restante_http_core::server::{Server, Services};
use restante_queue::{Entry, Selection};
use restante_webhook::{Filter, TargetStatus, Webhooks, event_of};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::v2::queue::{EntryQueue, HandlerResult, MAX_BODY_BYTES, counts_json, parse_selection, progress_json};
use crate::v2::queue::{find_entry, queue};
use crate::v2::sessions::Visibility;

const TARGETS_SHAPE: &str = "{\"target\": \"…\"} or {\"all\": true}, and no other members";

/// Lists the targets. Their filters, their last error and the number of their entries are only for clients that may see
/// all entries.
pub(crate) async fn targets(State(server): State<Arc<Server>>, QueueGrant(grant): QueueGrant) -> HandlerResult {
    let statuses = match queue::<Webhooks>(&server) {
        Some(webhooks) => webhooks.target_statuses().await?,
        None => Vec::new(),
    };
    let sees_everything = grant.allows_everywhere(Scope::Relay);
    let targets: Vec<_> = statuses.iter().map(|status| target_json(status, sees_everything)).collect();
    success::no_store_member("targets", targets)
}

/// Returns an entry. Its payload contains the sender and the subject, so it is only for clients that may read the message.
pub(crate) async fn entry(
    State(server): State<Arc<Server>>,
    QueueGrant(grant): QueueGrant,
    PathEntry(id): PathEntry,
) -> HandlerResult {
    let mut entry = find_entry::<Webhooks>(&server, &grant, id).await?;
    if !grant.allows(Scope::Read, &entry.mailbox) {
        entry.payload.clear();
    }
    let size = Webhooks::estimated_size(&entry) + entry.payload.len();
    let write = |(entry, grant): &(Entry, Grant), size| {
        let payload = str::from_utf8(&entry.payload).ok().filter(|payload| !payload.is_empty());
        json::body_with_capacity(&WebhookEntryDetails { entry: entry_json(entry, grant), payload }, size)
    };
    Ok(success::no_store_body(server.renderer.render_value((entry, grant), size, None, write).await?))
}

/// Pauses targets.
pub(crate) async fn pause(
    State(server): State<Arc<Server>>,
    QueueGrant(grant): QueueGrant,
    request: Request,
) -> HandlerResult {
    success::no_store_member("paused", set_paused(&server, &grant, request, true).await?)
}

/// Ends the pause of targets.
pub(crate) async fn resume(
    State(server): State<Arc<Server>>,
    QueueGrant(grant): QueueGrant,
    request: Request,
) -> HandlerResult {
    success::no_store_member("resumed", set_paused(&server, &grant, request, false).await?)
}

/// A page of the list of entries, the newest first.
#[derive(Serialize, ToSchema)]
pub(crate) struct WebhookEntries<'a> {
    entries: Vec<WebhookEntry<'a>>,
    /// The value of `before` for the next page, or null on the last page.
    #[schema(required, pattern = "^[1-9][0-9]{0,19}$")]
    next: Option<String>,
}

/// An entry of the webhook queue, with the body of its request.
#[derive(Serialize, ToSchema)]
pub(crate) struct WebhookEntryDetails<'a> {
    #[serde(flatten)]
    entry: WebhookEntry<'a>,
    /// The body of the request: JSON as text, as it is signed. Null if the event was delivered, or if it has failed
    /// or was cancelled and is larger than 16 KiB. Such an entry cannot be sent again. Also null
    /// for credentials without the scope `read`.
    #[schema(required)]
    payload: Option<&'a str>,
}

impl EntryQueue for Webhooks {
    const NAME: &'static str = "webhook";
    type Page<'a> = WebhookEntries<'a>;

    fn of(services: &Services) -> Option<&Self> {
        services.webhooks.as_deref()
    }

    fn common(entry: &Entry) -> &Entry {
        entry
    }

    fn page<'a>(entries: &'a [Entry], next: Option<String>, visibility: &Visibility) -> WebhookEntries<'a> {
        WebhookEntries { entries: entries.iter().map(|entry| entry_json(entry, &visibility.grant)).collect(), next }
    }
}

/// Pauses the targets that the body selects, or ends their pause. Returns their number.
async fn set_paused(server: &Server, grant: &Grant, request: Request, is_paused: bool) -> Result<u64, Problem> {
    let body = body::read_json::<Value>(request, MAX_BODY_BYTES).await?;
    let Some(Selection::Target(selected)) = parse_selection(body.as_ref()) else {
        return Err(Problem::WrongShape(TARGETS_SHAPE));
    };
    if !grant.allows_everywhere(Scope::Relay) {
        return Err(Problem::ScopeNotEverywhere(Scope::Relay));
    }
    let Some(webhooks) = queue::<Webhooks>(server) else { return Ok(0) };
    let names = match selected {
        Some(name) => vec![name],
        None => webhooks.target_statuses().await?.into_iter().map(|status| status.name).collect(),
    };
    let mut changed = 0;
    for name in names {
        changed += u64::from(webhooks.set_paused(&name, is_paused).await?);
    }
    Ok(changed)
}

fn target_json(status: &TargetStatus, sees_everything: bool) -> WebhookTarget<'_> {
    WebhookTarget {
        name: status.name.as_str().into(),
        url: status.label.as_str().into(),
        // They contain names of mailboxes.
        filters: status.filters.iter().filter(|_| sees_everything).map(filter_json).collect(),
        state: match status.unavailable_until {
            _ if status.is_paused => WebhookTargetState::Paused,
            Some(_) => WebhookTargetState::Failing,
            None => WebhookTargetState::Active,
        },
        next_attempt: status.unavailable_until.map(|time| Time(time).to_string().into()),
        last_error: status.last_error.as_deref().filter(|_| sees_everything).map(Into::into),
        entries: counts_json(if sees_everything { &status.entries } else { &[] }),
    }
}

fn filter_json(filter: &Filter) -> WebhookFilter<'static> {
    WebhookFilter { events: filter.events().collect(), mailboxes: filter.mailboxes().map(Into::into).collect() }
}

fn entry_json<'a>(entry: &'a Entry, grant: &Grant) -> WebhookEntry<'a> {
    WebhookEntry {
        id: entry.id.to_string().into(),
        message: entry.message.to_string().into(),
        mailbox: entry.mailbox.shown_in(grant.home()).into(),
        target: entry.target.as_str().into(),
        event: event_of(entry),
        webhook_id: entry.key.as_deref().unwrap_or_default().into(),
        progress: progress_json(entry),
    }
}
