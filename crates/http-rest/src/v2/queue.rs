//! What the relay queue and the webhook queue have in common: lists of entries, retry and cancel. A client sees and changes
//! only entries of messages in mailboxes that its grant allows; other entries do not exist for it.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use restante_api_types::{QueueEntryCounts, QueueEntryProgress, Time};
use restante_auth::{Grant, Scope};
use restante_http_core::extractors::body;
use restante_http_core::extractors::query::Parsed;
use restante_http_core::extractors::queue::QueueGrant;
use restante_http_core::response::problem::Problem;
use restante_http_core::response::{json, success};
use restante_http_core::server::{Server, Services};
use restante_queue::{Entry, EntryControl, EntryFilter, EntryId, EntryState, Selection};
use serde::Serialize;
use serde_json::Value;

use crate::v2::sessions::Visibility;

/// The maximum size of a request body.
pub(super) const MAX_BODY_BYTES: usize = 64 * 1024;
/// The maximum number of ids in a request.
const MAX_IDS: usize = 1000;
/// The number of entries that are read at once. An entry of the relay can have many recipients.
const BATCH: usize = 200;
/// The maximum number of entries that one request reads to find those that the client may see.
const MAX_SCANNED_ENTRIES: usize = 20_000;
/// The maximum number of recipients on a page of entries, exceeded by those of the last entry at most. A page that
/// reaches it has fewer entries than requested.
const MAX_PAGE_RECIPIENTS: usize = 10_000;
/// The approximate size of an entry without texts of variable length.
pub(super) const ENTRY_BYTES: usize = 768;

const SELECTION_SHAPE: &str = "{\"ids\": [\"…\"]} with at most 1,000 ids as strings, {\"target\": \"…\"} or {\"all\": true}, and no other members";

pub(super) type HandlerResult = Result<Response, Problem>;

/// A queue whose entries clients can see and change.
pub(crate) trait EntryQueue: EntryControl {
    /// The name, for error messages.
    const NAME: &'static str;
    /// A page of the list of entries.
    type Page<'a>: Serialize;

    /// Returns the queue, if it is configured.
    fn of(services: &Services) -> Option<&Self>;

    /// Returns the part of an entry that all queues have.
    fn common(entry: &Self::Entry) -> &Entry;

    /// Returns the number of recipients of an entry.
    fn recipient_count(_: &Self::Entry) -> usize {
        0
    }

    /// Returns the approximate size of an entry in a list.
    fn estimated_size(entry: &Self::Entry) -> usize {
        ENTRY_BYTES + Self::common(entry).last_reply.len()
    }

    /// Returns what a client may see of entries. `next` is the value of `before` for the next page.
    fn page<'a>(entries: &'a [Self::Entry], next: Option<String>, visibility: &Visibility) -> Self::Page<'a>;
}

/// Lists entries, the newest first.
pub(crate) async fn list<Q: EntryQueue>(
    State(server): State<Arc<Server>>,
    QueueGrant(grant): QueueGrant,
    Parsed(filter): Parsed<EntryFilter>,
) -> HandlerResult {
    let page = entry_page::<Q>(&server, &grant, filter).await?;
    let size = page.entries.iter().map(Q::estimated_size).sum();
    let content = (page, visibility(&server, grant));
    let write = |(Page { entries, next }, visibility): &(Page<Q::Entry>, Visibility), size| {
        json::body_with_capacity(&Q::page(entries, next.map(|next| next.to_string()), visibility), size)
    };
    Ok(success::no_store_body(server.renderer.render_value(content, size, None, write).await?))
}

/// Makes entries due at once. Entries that cannot be sent again do not count.
pub(crate) async fn retry<Q: EntryQueue>(
    State(server): State<Arc<Server>>,
    QueueGrant(grant): QueueGrant,
    request: Request,
) -> HandlerResult {
    let selection = read_selection::<Q>(&server, &grant, request).await?;
    let retried = match queue::<Q>(&server) {
        Some(queue) => queue.retry(selection).await?,
        None => 0,
    };
    success::no_store_member("retried", retried)
}

/// Cancels entries. Entries that do not wait do not count.
pub(crate) async fn cancel<Q: EntryQueue>(
    State(server): State<Arc<Server>>,
    QueueGrant(grant): QueueGrant,
    request: Request,
) -> HandlerResult {
    let selection = read_selection::<Q>(&server, &grant, request).await?;
    let cancelled = match queue::<Q>(&server) {
        Some(queue) => queue.cancel(selection).await?,
        None => 0,
    };
    success::no_store_member("cancelled", cancelled)
}

/// A page of entries that the grant allows, the newest first.
struct Page<T> {
    entries: Vec<T>,
    /// If there may be more entries, they have ids below this one.
    next: Option<EntryId>,
}

pub(super) fn queue<Q: EntryQueue>(server: &Server) -> Option<&Q> {
    Q::of(&server.settings.services)
}

pub(super) fn visibility(server: &Server, grant: Grant) -> Visibility {
    Visibility { grant, mailroom: server.mailroom.clone() }
}

/// Returns an entry that the grant allows. `id` is `None` if the client sent text that is not an id.
pub(super) async fn find_entry<Q: EntryQueue>(
    server: &Server,
    grant: &Grant,
    id: Option<EntryId>,
) -> Result<Q::Entry, Problem> {
    let entry = match queue::<Q>(server).zip(id) {
        Some((queue, id)) => queue.entry(id).await?,
        None => None,
    };
    entry.filter(|entry| grant.covers(&Q::common(entry).mailbox)).ok_or(Problem::NoSuchEntry(Q::NAME))
}

/// Returns a page of the entries that match the filter and that the grant allows. It can have fewer entries than
/// requested even if it is not the last one.
async fn entry_page<Q: EntryQueue>(
    server: &Server,
    grant: &Grant,
    mut filter: EntryFilter,
) -> Result<Page<Q::Entry>, Problem> {
    let (limit, mut page) = (filter.limit, Page { entries: Vec::new(), next: None });
    let Some(queue) = queue::<Q>(server) else { return Ok(page) };
    let (mut scanned, mut recipients, mut permit) = (0, 0, None);
    loop {
        // One more than requested, to know whether this is the last page.
        filter.limit = BATCH.min(limit - page.entries.len() + 1);
        let entries = queue.entries(filter.clone()).await?;
        let is_last = entries.len() < filter.limit;
        scanned += entries.len();
        for entry in entries {
            let Entry { id, mailbox, .. } = Q::common(&entry);
            filter.before = Some(*id);
            if !grant.covers(mailbox) {
                continue;
            }
            if page.entries.len() >= limit || recipients >= MAX_PAGE_RECIPIENTS {
                page.next = page.entries.last().map(|last| Q::common(last).id);
                return Ok(page);
            }
            recipients += Q::recipient_count(&entry);
            page.entries.push(entry);
        }
        if is_last {
            return Ok(page);
        }
        if scanned >= MAX_SCANNED_ENTRIES {
            page.next = filter.before;
            return Ok(page);
        }
        server.messages.continue_scan(&mut permit).await?;
    }
}

/// Returns the ids of the entries that the grant allows. The mailbox of an entry does not change, and ids are not
/// reused, so the entries are still allowed when they are changed.
async fn permitted_ids<Q: EntryQueue>(
    server: &Server,
    grant: &Grant,
    ids: Vec<EntryId>,
) -> Result<Vec<EntryId>, Problem> {
    if grant.covers_all_mailboxes() {
        return Ok(ids);
    }
    let mut permitted = Vec::new();
    for id in ids {
        match find_entry::<Q>(server, grant, Some(id)).await {
            Ok(_) => permitted.push(id),
            Err(Problem::NoSuchEntry(_)) => {}
            Err(problem) => return Err(problem),
        }
    }
    Ok(permitted)
}

/// Reads the selected entries from the body. Only those that the grant allows are selected.
async fn read_selection<Q: EntryQueue>(server: &Server, grant: &Grant, request: Request) -> Result<Selection, Problem> {
    let body = body::read_json::<Value>(request, MAX_BODY_BYTES).await?;
    match parse_selection(body.as_ref()).ok_or(Problem::WrongShape(SELECTION_SHAPE))? {
        Selection::Ids(ids) => Ok(Selection::Ids(permitted_ids::<Q>(server, grant, ids).await?)),
        selection if grant.allows_everywhere(Scope::Relay) => Ok(selection),
        Selection::Target(_) => Err(Problem::ScopeNotEverywhere(Scope::Relay)),
    }
}

/// Parses a selection of entries. Text that is not an id is ignored, like the id of an entry that does not exist.
pub(super) fn parse_selection(body: Option<&Value>) -> Option<Selection> {
    let members = body?.as_object().filter(|members| members.len() == 1)?;
    let (name, value) = members.iter().next()?;
    match (name.as_str(), value) {
        ("ids", Value::Array(ids)) if ids.len() <= MAX_IDS => {
            let texts = ids.iter().map(Value::as_str).collect::<Option<Vec<_>>>()?;
            let mut ids: Vec<EntryId> = texts.into_iter().filter_map(|text| text.parse().ok()).collect();
            ids.sort_unstable();
            ids.dedup();
            Some(Selection::Ids(ids))
        }
        ("target", Value::String(target)) => Some(Selection::Target(Some(target.clone()))),
        ("all", Value::Bool(true)) => Some(Selection::Target(None)),
        _ => None,
    }
}

/// Returns the number of entries in each state.
pub(super) fn counts_json(counts: &[(EntryState, u64)]) -> QueueEntryCounts {
    let mut json = QueueEntryCounts::default();
    for (state, count) in counts {
        *match state {
            EntryState::Queued => &mut json.queued,
            EntryState::Sending => &mut json.sending,
            EntryState::Delivered => &mut json.delivered,
            EntryState::Failed => &mut json.failed,
            EntryState::Cancelled => &mut json.cancelled,
        } = *count;
    }
    json
}

pub(super) fn progress_json(entry: &Entry) -> QueueEntryProgress<'_> {
    QueueEntryProgress {
        state: entry.state,
        attempts: entry.attempts,
        created: Time(entry.created).to_string().into(),
        expires: Time(entry.expires).to_string().into(),
        next_attempt: entry.next_attempt.map(|time| Time(time).to_string().into()),
        last_attempt: entry.last_attempt.map(|time| Time(time).to_string().into()),
        last_reply: entry.last_reply.as_str().into(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn parses_selections() {
        let ids = |ids: &[u64]| Some(Selection::Ids(ids.iter().copied().map(EntryId).collect()));
        let table = [
            (json!({ "ids": ["9", "7", "9", "x", "-1", "07", ""] }), ids(&[7, 9])),
            (json!({ "ids": [] }), ids(&[])),
            (json!({ "target": "main" }), Some(Selection::Target(Some("main".to_owned())))),
            (json!({ "all": true }), Some(Selection::Target(None))),
            (json!({ "all": false }), None),
            (json!({ "ids": [7] }), None),
            (json!({ "ids": vec!["7"; MAX_IDS + 1] }), None),
            (json!({ "ids": ["7"], "all": true }), None),
            (json!({}), None),
            (json!(true), None),
        ];
        for (body, expected) in table {
            assert_eq!(parse_selection(Some(&body)), expected, "{body}");
        }
        assert_eq!(parse_selection(None), None);
    }
}
