//! Release of messages to other servers, and the relay queue. A client sees and changes only entries of messages in
//! mailboxes that its grant allows; other entries do not exist for it.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use restante_api_types::{
    RelayEntry, RelayEntryCounts, RelayEntryState, RelayOrigin, RelayRecipient, RelayRecipientState, RelayTarget,
    RelayTargetState, Time,
};
use restante_auth::{Grant, Scope};
use restante_journal::TranscriptLines;
use restante_relay::{
    Entry, EntryId, EntryRecipient, EntryState, Origin, RecipientState, ReleaseError, ReleaseRequest, Selection,
    Target, TargetStatus,
};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::api::v2::sessions::{LINE_BYTES, Line, Visibility};
use crate::extractors::body;
use crate::extractors::messages::PathReleasedMessage;
use crate::extractors::relay::{PathRelayEntry, RelayEntryQuery, RelayGrant};
use crate::response::problem::Problem;
use crate::response::{json, success};
use crate::state::Server;
use crate::state::relay::RelayPage;

/// The maximum size of a request body.
const MAX_BODY_BYTES: usize = 64 * 1024;
/// The maximum number of ids in a request.
const MAX_IDS: usize = 1000;
/// The approximate size of an entry without its recipients, and of a recipient without its texts.
const ENTRY_BYTES: usize = 768;
const RECIPIENT_BYTES: usize = 64;

const RELEASE_SHAPE: &str =
    "{\"target\": \"…\", \"to\": [\"…\"]}, with at least one address, and no other members. Both members are optional";
const SELECTION_SHAPE: &str = "{\"ids\": [\"…\"]} with at most 1,000 ids as strings, {\"target\": \"…\"} or {\"all\": true}, and no other members";

type HandlerResult = Result<Response, Problem>;

/// Adds a message to the relay queue.
pub(crate) async fn release(
    State(server): State<Arc<Server>>,
    target: PathReleasedMessage,
    request: Request,
) -> HandlerResult {
    let body = body::read_json::<Value>(request, MAX_BODY_BYTES).await?;
    let Release { target: target_name, recipients } =
        parse_release(body.as_ref()).ok_or(Problem::WrongShape(RELEASE_SHAPE))?;
    let message = server.find_released_message(&target).await?;
    let relay = server.relay().ok_or(ReleaseError::NoTarget)?;
    let by = target.grant.name().map(ToOwned::to_owned);
    let entry = relay.release(ReleaseRequest { message, target: target_name, recipients, by }).await?;
    let visibility = server.visibility(target.grant);
    let mut response = success::no_store_json(&entry_json(&entry, &visibility).0)?;
    *response.status_mut() = StatusCode::ACCEPTED;
    Ok(response)
}

/// Lists the targets. The number of their entries and their last error, which may contain addresses, are only for clients
/// that may see all entries.
pub(crate) async fn targets(State(server): State<Arc<Server>>, RelayGrant(grant): RelayGrant) -> HandlerResult {
    let statuses = match server.relay() {
        Some(relay) => relay.target_statuses().await?,
        None => Vec::new(),
    };
    let sees_everything = grant.allows_everywhere(Scope::Relay);
    let targets = statuses.iter().map(|status| target_json(status, sees_everything)).collect();
    success::no_store_json(&RelayTargets { targets })
}

/// Lists entries, the newest first.
pub(crate) async fn list(
    State(server): State<Arc<Server>>,
    RelayGrant(grant): RelayGrant,
    RelayEntryQuery(filter): RelayEntryQuery,
) -> HandlerResult {
    let page = server.relay_entries(&grant, filter).await?;
    let size = page.entries.iter().map(estimated_size).sum();
    let write = |(RelayPage { entries, next }, visibility): &(RelayPage, Visibility), size| {
        let entries = entries.iter().map(|entry| entry_json(entry, visibility).0).collect();
        json::body_with_capacity(&RelayEntries { entries, next: next.map(|next| next.to_string()) }, size)
    };
    let list = (page, server.visibility(grant));
    Ok(success::no_store_body(server.render_value(list, size, None, write).await?))
}

/// Returns an entry with the transcript of its last attempt.
pub(crate) async fn entry(
    State(server): State<Arc<Server>>,
    RelayGrant(grant): RelayGrant,
    PathRelayEntry(id): PathRelayEntry,
) -> HandlerResult {
    let entry = server.relay_entry(&grant, id).await?;
    let lines = match server.relay() {
        Some(relay) => relay.transcript(id).await?.unwrap_or_default(),
        None => TranscriptLines::default(),
    };
    let size = estimated_size(&entry) + lines.iter().map(|line| LINE_BYTES + line.text.len()).sum::<usize>();
    let write = |(entry, lines, visibility): &(Entry, TranscriptLines, Visibility), size| {
        json::body_with_capacity(&RelayEntryDetails::new(entry, lines, visibility), size)
    };
    let details = (entry, lines, server.visibility(grant));
    Ok(success::no_store_body(server.render_value(details, size, None, write).await?))
}

/// Makes entries due at once. Entries that cannot be sent again do not count.
pub(crate) async fn retry(
    State(server): State<Arc<Server>>,
    RelayGrant(grant): RelayGrant,
    request: Request,
) -> HandlerResult {
    let selection = read_selection(&server, &grant, request).await?;
    let retried = match server.relay() {
        Some(relay) => relay.retry(selection).await?,
        None => 0,
    };
    success::no_store_json(&Retried { retried })
}

/// Cancels entries. Entries that do not wait do not count.
pub(crate) async fn cancel(
    State(server): State<Arc<Server>>,
    RelayGrant(grant): RelayGrant,
    request: Request,
) -> HandlerResult {
    let selection = read_selection(&server, &grant, request).await?;
    let cancelled = match server.relay() {
        Some(relay) => relay.cancel(selection).await?,
        None => 0,
    };
    success::no_store_json(&Cancelled { cancelled })
}

/// The relay targets.
#[derive(Serialize, ToSchema)]
pub(crate) struct RelayTargets<'a> {
    /// The targets, in the order of the settings. Empty if the relay is not configured.
    targets: Vec<RelayTarget<'a>>,
}

/// A page of the list of entries, the newest first.
#[derive(Serialize, ToSchema)]
pub(crate) struct RelayEntries<'a> {
    entries: Vec<RelayEntry<'a>>,
    /// The value of `before` for the next page, or null on the last page.
    #[schema(required, pattern = "^[1-9][0-9]{0,19}$")]
    next: Option<String>,
}

/// An entry of the relay queue, with the transcript of its last attempt.
#[derive(Serialize, ToSchema)]
pub(crate) struct RelayEntryDetails<'a> {
    #[serde(flatten)]
    entry: RelayEntry<'a>,
    /// The conversation of the last attempt. The client is this server. Empty before the first attempt, and if recipients
    /// are left out.
    transcript: Vec<Line<'a>>,
}

impl<'a> RelayEntryDetails<'a> {
    fn new(entry: &'a Entry, lines: &'a TranscriptLines, visibility: &Visibility) -> Self {
        // An attempt has the time of its end. The times of the lines count from the start of the session.
        let ended = entry.last_attempt.unwrap_or(entry.created);
        let session_length = Duration::from_micros(lines.iter().last().map_or(0, |line| line.micros));
        let started = ended.checked_sub(session_length).unwrap_or(ended);
        let (json, is_complete) = entry_json(entry, visibility);
        let lines = lines.iter().filter(|_| is_complete);
        Self { entry: json, transcript: lines.map(|line| Line::new(started, &line)).collect() }
    }
}

/// The number of entries that are sent again.
#[derive(Serialize, ToSchema)]
pub(crate) struct Retried {
    retried: u64,
}

/// The number of cancelled entries.
#[derive(Serialize, ToSchema)]
pub(crate) struct Cancelled {
    cancelled: u64,
}

/// A requested release.
#[derive(Debug, PartialEq, Eq)]
struct Release {
    target: Option<String>,
    /// Empty for the recipients of the envelope.
    recipients: Vec<String>,
}

/// Parses the body of a release. An empty list of recipients is refused: it would mean those of the envelope.
fn parse_release(body: Option<&Value>) -> Option<Release> {
    let mut release = Release { target: None, recipients: Vec::new() };
    for (name, value) in body?.as_object()? {
        match (name.as_str(), value) {
            ("target", Value::String(target)) => release.target = Some(target.clone()),
            ("to", Value::Array(to)) if !to.is_empty() => {
                let to = to.iter().map(|address| address.as_str().map(ToOwned::to_owned));
                release.recipients = to.collect::<Option<_>>()?;
            }
            _ => return None,
        }
    }
    Some(release)
}

/// Reads the selected entries from the body. Only those that the grant allows are selected.
async fn read_selection(server: &Server, grant: &Grant, request: Request) -> Result<Selection, Problem> {
    let body = body::read_json::<Value>(request, MAX_BODY_BYTES).await?;
    match parse_selection(body.as_ref()).ok_or(Problem::WrongShape(SELECTION_SHAPE))? {
        Selection::Ids(ids) => Ok(Selection::Ids(server.permitted_relay_ids(grant, ids).await?)),
        selection if grant.allows_everywhere(Scope::Relay) => Ok(selection),
        Selection::Target(_) => Err(Problem::ScopeNotEverywhere(Scope::Relay)),
    }
}

/// Parses a selection of entries. Text that is not an id is ignored, like the id of an entry that does not exist.
fn parse_selection(body: Option<&Value>) -> Option<Selection> {
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

impl Server {
    fn visibility(&self, grant: Grant) -> Visibility {
        Visibility { grant, mailroom: self.mailroom.clone() }
    }
}

fn target_json(status: &TargetStatus, sees_everything: bool) -> RelayTarget<'_> {
    let mut entries = RelayEntryCounts::default();
    for (state, count) in status.entries.iter().filter(|_| sees_everything) {
        *match state {
            EntryState::Queued => &mut entries.queued,
            EntryState::Sending => &mut entries.sending,
            EntryState::Delivered => &mut entries.delivered,
            EntryState::Failed => &mut entries.failed,
            EntryState::Cancelled => &mut entries.cancelled,
        } = *count;
    }
    let Target { name, host, port, allowed, blocked, .. } = &status.target;
    RelayTarget {
        name: name.into(),
        host: host.into(),
        port: *port,
        allowed: allowed.texts().iter().map(Into::into).collect(),
        blocked: blocked.texts().iter().map(Into::into).collect(),
        state: if status.paused_until.is_some() { RelayTargetState::Paused } else { RelayTargetState::Ready },
        paused_until: status.paused_until.map(|time| Time(time).to_string().into()),
        last_error: status.last_error.as_deref().filter(|_| sees_everything).map(Into::into),
        entries,
    }
}

/// Returns an entry as JSON, and whether it is complete. A client that may not access all mailboxes does not see
/// recipients in other mailboxes, which were recipients of the message, unless it has released the message itself.
/// Replies may contain addresses, so they are left out, too.
fn entry_json<'a>(entry: &'a Entry, visibility: &Visibility) -> (RelayEntry<'a>, bool) {
    let (origin, by) = match &entry.content.origin {
        Origin::Release { by } => (RelayOrigin::Release, by.as_deref()),
        Origin::Forward => (RelayOrigin::Forward, None),
    };
    let is_own = by.is_some() && by == visibility.grant.name();
    let visible: Vec<&EntryRecipient> =
        entry.content.recipients.iter().filter(|to| is_own || visibility.shows_address(&to.address)).collect();
    let is_complete = visible.len() == entry.content.recipients.len();
    let json = RelayEntry {
        id: entry.id.to_string().into(),
        message: entry.message.to_string().into(),
        mailbox: entry.mailbox.as_str().into(),
        target: entry.target.as_str().into(),
        sender: entry.content.sender.as_str().into(),
        recipients: visible.into_iter().map(recipient_json).collect(),
        origin,
        by: by.map(Into::into),
        state: match entry.state {
            EntryState::Queued => RelayEntryState::Queued,
            EntryState::Sending => RelayEntryState::Sending,
            EntryState::Delivered => RelayEntryState::Delivered,
            EntryState::Failed => RelayEntryState::Failed,
            EntryState::Cancelled => RelayEntryState::Cancelled,
        },
        attempts: entry.attempts,
        created: Time(entry.created).to_string().into(),
        expires: Time(entry.expires).to_string().into(),
        next_attempt: entry.next_attempt.map(|time| Time(time).to_string().into()),
        last_attempt: entry.last_attempt.map(|time| Time(time).to_string().into()),
        last_reply: if is_complete { entry.last_reply.as_str().into() } else { "".into() },
    };
    (json, is_complete)
}

fn recipient_json(recipient: &EntryRecipient) -> RelayRecipient<'_> {
    RelayRecipient {
        address: recipient.address.as_str().into(),
        state: match recipient.state {
            RecipientState::Waiting => RelayRecipientState::Waiting,
            RecipientState::Delivered => RelayRecipientState::Delivered,
            RecipientState::Failed => RelayRecipientState::Failed,
        },
        reply: recipient.reply.as_str().into(),
    }
}

/// Returns the approximate size of an entry.
fn estimated_size(entry: &Entry) -> usize {
    let texts = |recipient: &EntryRecipient| RECIPIENT_BYTES + recipient.address.len() + recipient.reply.len();
    ENTRY_BYTES
        + entry.content.sender.len()
        + entry.last_reply.len()
        + entry.content.recipients.iter().map(texts).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn parses_releases() {
        let release = |target: Option<&str>, to: &[&str]| {
            let recipients = to.iter().map(ToString::to_string).collect();
            Some(Release { target: target.map(ToOwned::to_owned), recipients })
        };
        let table = [
            (json!({}), release(None, &[])),
            (json!({ "target": "main" }), release(Some("main"), &[])),
            (json!({ "to": ["a@x", "b"] }), release(None, &["a@x", "b"])),
            (json!({ "to": [] }), None),
            (json!({ "to": "a@x" }), None),
            (json!({ "to": ["a@x", 7] }), None),
            (json!({ "to": null }), None),
            (json!({ "target": null }), None),
            (json!({ "targets": "main" }), None),
            (json!(["a@x"]), None),
        ];
        for (body, expected) in table {
            assert_eq!(parse_release(Some(&body)), expected, "{body}");
        }
        assert_eq!(parse_release(None), None);
    }

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
