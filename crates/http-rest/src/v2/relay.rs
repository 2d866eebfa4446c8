//! Release of messages to other servers, and what is special about entries of the relay queue. The rest is in `queue`.

use std::iter;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use restante_api_types::{RelayEntry, RelayOrigin, RelayRecipient, RelayTarget, RelayTargetState, Time};
use restante_auth::Scope;
use restante_http_core::extractors::body;
use restante_http_core::extractors::messages::PathReleasedMessage;
use restante_http_core::extractors::queue::{PathEntry, QueueGrant};
use restante_http_core::response::problem::Problem;
use restante_http_core::response::{json, success};
use restante_http_core::server::{Server, Services};
use restante_journal::TranscriptLines;
use restante_relay::{Entry, EntryRecipient, Origin, Relay, ReleaseError, ReleaseRequest, Target, TargetStatus};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::v2::queue::{ENTRY_BYTES, EntryQueue, HandlerResult, MAX_BODY_BYTES, counts_json, progress_json};
use crate::v2::queue::{find_entry, visibility};
use crate::v2::sessions::{LINE_BYTES, Line, Visibility};

/// The approximate size of a recipient without its texts.
const RECIPIENT_BYTES: usize = 64;

const RELEASE_SHAPE: &str = "{\"target\": \"…\", \"to\": [\"…\"], \"subject-prefix\": \"…\"}, with at least one address, \
                             and no other members. All members are optional";

/// Adds a message to the relay queue.
pub(crate) async fn release(
    State(server): State<Arc<Server>>,
    PathReleasedMessage(target): PathReleasedMessage,
    request: Request,
) -> HandlerResult {
    let body = body::read_json::<Value>(request, MAX_BODY_BYTES).await?;
    let Release { target: target_name, recipients, subject_prefix } =
        parse_release(body.as_ref()).ok_or(Problem::WrongShape(RELEASE_SHAPE))?;
    let message = target.find(&server).await?;
    let relay = server.relay().ok_or(ReleaseError::NoTarget)?;
    let by = target.grant.name().map(ToOwned::to_owned);
    let entry = relay.release(ReleaseRequest { message, target: target_name, recipients, by, subject_prefix }).await?;
    let visibility = visibility(&server, target.grant);
    let mut response = success::no_store_json(&entry_json(&entry, &visibility).0)?;
    *response.status_mut() = StatusCode::ACCEPTED;
    Ok(response)
}

/// Lists the targets. The number of their entries and their last error, which may contain addresses, are only for clients
/// that may see all entries.
pub(crate) async fn targets(State(server): State<Arc<Server>>, QueueGrant(grant): QueueGrant) -> HandlerResult {
    let statuses = match server.relay() {
        Some(relay) => relay.target_statuses().await?,
        None => Vec::new(),
    };
    let sees_everything = grant.allows_everywhere(Scope::Relay);
    let targets: Vec<_> = statuses.iter().map(|status| target_json(status, sees_everything)).collect();
    success::no_store_member("targets", targets)
}

/// Returns an entry with the transcript of its last attempt.
pub(crate) async fn entry(
    State(server): State<Arc<Server>>,
    QueueGrant(grant): QueueGrant,
    PathEntry(id): PathEntry,
) -> HandlerResult {
    let entry = find_entry::<Relay>(&server, &grant, id).await?;
    let lines = match server.relay() {
        Some(relay) => relay.transcript(entry.id).await?.unwrap_or_default(),
        None => TranscriptLines::default(),
    };
    let size = Relay::estimated_size(&entry) + lines.iter().map(|line| LINE_BYTES + line.text.len()).sum::<usize>();
    let content = (entry, lines, visibility(&server, grant));
    let write = |(entry, lines, visibility): &(Entry, TranscriptLines, Visibility), size| {
        json::body_with_capacity(&RelayEntryDetails::new(entry, lines, visibility), size)
    };
    Ok(success::no_store_body(server.renderer.render_value(content, size, None, write).await?))
}

impl EntryQueue for Relay {
    const NAME: &'static str = "relay";
    type Page<'a> = RelayEntries<'a>;

    fn of(services: &Services) -> Option<&Self> {
        services.relay.as_deref()
    }

    fn common(entry: &Entry) -> &restante_queue::Entry {
        entry
    }

    fn recipient_count(entry: &Entry) -> usize {
        entry.content.recipients.len()
    }

    fn estimated_size(entry: &Entry) -> usize {
        let texts = |recipient: &EntryRecipient| RECIPIENT_BYTES + recipient.address.len() + recipient.reply.len();
        let recipients = entry.content.recipients.iter().map(texts).sum::<usize>();
        ENTRY_BYTES + entry.last_reply.len() + entry.content.sender.len() + recipients
    }

    fn page<'a>(entries: &'a [Entry], next: Option<String>, visibility: &Visibility) -> RelayEntries<'a> {
        RelayEntries { entries: entries.iter().map(|entry| entry_json(entry, visibility).0).collect(), next }
    }
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

/// A requested release.
#[derive(Debug, PartialEq, Eq)]
struct Release {
    target: Option<String>,
    /// Empty for the recipients of the envelope.
    recipients: Vec<String>,
    subject_prefix: String,
}

/// Parses the body of a release. An empty list of recipients is refused: it would mean those of the envelope.
fn parse_release(body: Option<&Value>) -> Option<Release> {
    let mut release = Release { target: None, recipients: Vec::new(), subject_prefix: String::new() };
    for (name, value) in body?.as_object()? {
        match (name.as_str(), value) {
            ("target", Value::String(target)) => release.target = Some(target.clone()),
            ("subject-prefix", Value::String(prefix)) => release.subject_prefix.clone_from(prefix),
            ("to", Value::Array(to)) if !to.is_empty() => {
                let to = to.iter().map(|address| address.as_str().map(ToOwned::to_owned));
                release.recipients = to.collect::<Option<_>>()?;
            }
            _ => return None,
        }
    }
    Some(release)
}

fn target_json(status: &TargetStatus, sees_everything: bool) -> RelayTarget<'_> {
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
        entries: counts_json(if sees_everything { &status.entries } else { &[] }),
    }
}

/// Returns an entry as JSON, and whether it is complete. A client that may not access all mailboxes does not see
/// recipients in other mailboxes, which were recipients of the message, unless it has released the message itself.
/// Replies may contain addresses, so they are left out, too.
fn entry_json<'a>(entry: &'a Entry, visibility: &Visibility) -> (RelayEntry<'a>, bool) {
    let (origin, by) = match &entry.content.origin {
        Origin::Release { by, .. } => (RelayOrigin::Release, by.as_deref()),
        Origin::Forward => (RelayOrigin::Forward, None),
    };
    let is_own = by.is_some() && by == visibility.grant.name();
    let is_visible = |address: &str| visibility.shows_address(address, iter::once(&entry.mailbox));
    let visible: Vec<&EntryRecipient> =
        entry.content.recipients.iter().filter(|to| is_own || is_visible(&to.address)).collect();
    let is_complete = visible.len() == entry.content.recipients.len();
    let mut progress = progress_json(entry);
    if !is_complete {
        progress.last_reply = "".into();
    }
    let json = RelayEntry {
        id: entry.id.to_string().into(),
        message: entry.message.to_string().into(),
        mailbox: entry.mailbox.shown_in(visibility.grant.home()).into(),
        target: entry.target.as_str().into(),
        sender: entry.content.sender.as_str().into(),
        recipients: visible.into_iter().map(recipient_json).collect(),
        origin,
        by: by.map(Into::into),
        progress,
    };
    (json, is_complete)
}

fn recipient_json(recipient: &EntryRecipient) -> RelayRecipient<'_> {
    RelayRecipient {
        address: recipient.address.as_str().into(),
        state: recipient.state,
        reply: recipient.reply.as_str().into(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn parses_releases() {
        let release = |target: Option<&str>, to: &[&str]| {
            let recipients = to.iter().map(ToString::to_string).collect();
            Some(Release { target: target.map(ToOwned::to_owned), recipients, subject_prefix: String::new() })
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
            (
                json!({ "subject-prefix": "[QA]" }),
                Some(Release { target: None, recipients: Vec::new(), subject_prefix: "[QA]".to_owned() }),
            ),
            (json!({ "subject-prefix": 1 }), None),
            (json!(["a@x"]), None),
        ];
        for (body, expected) in table {
            assert_eq!(parse_release(Some(&body)), expected, "{body}");
        }
        assert_eq!(parse_release(None), None);
    }
}
