//! Messages as a whole: the list of all of them, one message, and changes of them. A message is a group of copies in
//! mailboxes; the extractors leave out the copies that the client may not access. The resources below a message are those
//! of its first copy, and have the handlers of copies.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use futures_util::future::try_join_all;
use restante_api_types::MessageEntry;
use restante_auth::Scope;
use restante_http_connection::memory::{MemoryPermit, SMALL_BYTES};
use restante_mail::message::Message;
use restante_mail::tags::Tags;
use restante_store::{CopyKey, MessageSelector};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::api::v2::batch::Deleted;
use crate::extractors::body;
use crate::extractors::cancellation::Cancellation;
use crate::extractors::messages::{DeletionQuery, MessageListQuery, PathCopy, PathWholeMessage};
use crate::extractors::parameters::RequestGrant;
use crate::response::etag::IfNoneMatch;
use crate::response::problem::Problem;
use crate::response::{entry_json, success};
use crate::state::Server;
use crate::state::message::CacheKey;
use crate::state::messages::{MessagePage, MessageRange};

/// The maximum size of a request body.
const MAX_BODY_BYTES: usize = 64 * 1024;
/// The number of messages that a deletion by a query finds and deletes at once.
const DELETION_BATCH: usize = 200;

const CHANGE_SHAPE: &str = "{\"seen\": true, \"tags\": [\"…\"]}, with one of these members or both, and no others";

type HandlerResult = Result<Response, Problem>;

/// Lists messages, the newest first.
pub(crate) async fn list(
    State(server): State<Arc<Server>>,
    RequestGrant(grant): RequestGrant,
    MessageListQuery { range, query }: MessageListQuery,
    if_none_match: IfNoneMatch,
    cancellation: Cancellation,
) -> HandlerResult {
    match query {
        Some(query) => {
            // Canceled if the client disconnects, so that it does not delay other searches.
            let page = cancellation.run_until_cancelled(server.search_messages(&grant, &query, range)).await?.page;
            server.page_response(page, &if_none_match).await
        }
        None if grant.covers_all_mailboxes() => server.complete_list(range, &if_none_match).await,
        None => server.page_response(server.scan_messages(&grant, range).await?, &if_none_match).await,
    }
}

/// Deletes the messages that match a query, and that existed when the request arrived. After an error some of them are
/// deleted, unless it is an error of the first search.
pub(crate) async fn delete_matching(
    State(server): State<Arc<Server>>,
    RequestGrant(grant): RequestGrant,
    DeletionQuery(query): DeletionQuery,
    cancellation: Cancellation,
) -> HandlerResult {
    let last = server.mailroom.last_id().await?;
    let mut range =
        MessageRange { before: Some(last.number().saturating_add(1).into()), after: None, limit: DELETION_BATCH };
    let mut deleted = 0;
    loop {
        let found = cancellation.run_until_cancelled(server.search_messages(&grant, &query, range)).await?;
        if !found.is_complete {
            return Err(Problem::IncompleteIndex);
        }
        let MessagePage { messages, next } = found.page;
        let removed_copies = server.mailroom.remove_copies(messages.iter().flat_map(copy_keys).collect()).await?;
        deleted += deleted_messages(&messages, removed_copies);
        if next.is_none() {
            return success::no_store_json(&Deleted { deleted });
        }
        range.before = next;
    }
}

/// Returns a message.
pub(crate) async fn message(
    State(server): State<Arc<Server>>,
    target: PathWholeMessage,
    if_none_match: IfNoneMatch,
) -> HandlerResult {
    let message = server.find_whole_message(&target).await?;
    let body = entry_json::whole_message(&message);
    let tag = server.etags.body(&body);
    if if_none_match.matches(&tag) {
        return Ok(success::not_modified(success::JSON, tag));
    }
    Ok(success::json(body, tag))
}

/// Marks a message as seen or unseen, and replaces its tags. Returns the message after the change, if the client may read
/// it.
pub(crate) async fn change(
    State(server): State<Arc<Server>>,
    RequestGrant(grant): RequestGrant,
    target: PathWholeMessage,
    request: Request,
) -> HandlerResult {
    let Change { seen, tags } = parse_change(body::read_json(request, MAX_BODY_BYTES).await?.as_ref())?;
    let message = server.find_whole_message(&target).await?;
    if let Some(tags) = tags {
        server.mailroom.set_tags(copy_keys(&message).collect(), tags).await?;
    }
    if let Some(seen) = seen {
        let copies = message.copies().iter();
        // Concurrently, because the store commits concurrent changes together.
        try_join_all(copies.map(|copy| server.mailroom.set_seen(&copy.mailbox, copy.id, seen))).await?;
    }
    let changed = server.permitted_message(&grant, MessageSelector::Id(message.id())).await?;
    if !grant.allows_somewhere(Scope::Read) {
        return success::done();
    }
    Ok(success::no_store_body(entry_json::entry_body(&changed)))
}

/// Deletes the permitted copies of a message.
pub(crate) async fn delete(State(server): State<Arc<Server>>, target: PathWholeMessage) -> HandlerResult {
    let message = server.find_whole_message(&target).await?;
    match server.mailroom.remove_copies(copy_keys(&message).collect()).await? {
        0 => Err(Problem::NoSuchWholeMessage),
        _ => success::done(),
    }
}

/// Returns the source of a message.
pub(crate) async fn source(
    State(server): State<Arc<Server>>,
    PathCopy(copy): PathCopy,
    if_none_match: IfNoneMatch,
) -> HandlerResult {
    server.source_response(&copy, &if_none_match).await
}

/// A page of a list of messages, the newest first.
#[derive(Serialize, ToSchema)]
pub(crate) struct MessageEntries<'a> {
    pub(crate) messages: Vec<MessageEntry<'a>>,
    /// The value of `before` for the next page, or null on the last page.
    #[schema(required, pattern = "^[1-9][0-9]{0,19}$")]
    pub(crate) next: Option<String>,
}

/// The requested change of a message.
#[derive(Debug, PartialEq, Eq)]
struct Change {
    seen: Option<bool>,
    tags: Option<Tags>,
}

/// Parses the body of a request for a change. It must have exactly the described members, because a misspelled one would
/// be ignored without notice.
fn parse_change(body: Option<&Value>) -> Result<Change, Problem> {
    let wrong_shape = || Problem::WrongShape(CHANGE_SHAPE);
    let members = body.and_then(Value::as_object).filter(|members| !members.is_empty()).ok_or_else(wrong_shape)?;
    let mut change = Change { seen: None, tags: None };
    for (name, value) in members {
        match (name.as_str(), value) {
            ("seen", Value::Bool(seen)) => change.seen = Some(*seen),
            ("tags", Value::Array(tags)) => {
                let tags: Option<Vec<&str>> = tags.iter().map(Value::as_str).collect();
                change.tags = Some(Tags::new(tags.ok_or_else(wrong_shape)?).map_err(Problem::InvalidTags)?);
            }
            _ => return Err(wrong_shape()),
        }
    }
    Ok(change)
}

/// Returns how many of the messages were deleted with this number of copies. Other requests may have deleted some of the
/// copies. Then this is the smallest number of messages that can have this number of copies.
fn deleted_messages(messages: &[Message], removed_copies: usize) -> usize {
    let mut counts: Vec<usize> = messages.iter().map(|message| message.copies().len()).collect();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    let mut rest = removed_copies;
    let is_deleted = |count: usize| {
        let is_deleted = rest > 0;
        rest = rest.saturating_sub(count);
        is_deleted
    };
    counts.into_iter().map(is_deleted).take_while(|is_deleted| *is_deleted).count()
}

fn copy_keys(message: &Message) -> impl Iterator<Item = CopyKey> {
    message.copies().iter().map(Into::into)
}

impl Server {
    /// Returns a page of all messages. The newest messages are cached until the store changes.
    async fn complete_list(&self, range: MessageRange, if_none_match: &IfNoneMatch) -> HandlerResult {
        let version = self.mailroom.store_version().await?;
        let tag = self.etags.messages(version);
        if if_none_match.matches(&tag) {
            return Ok(success::not_modified(success::JSON, tag));
        }
        let is_cacheable = range.before.is_none() && range.after.is_none();
        let key = CacheKey::NewestMessages { limit: range.limit };
        if is_cacheable && let Some(body) = self.response_cache.get(&key, version.0) {
            return Ok(success::json(body, tag));
        }
        // The store may have changed since. From here on, the version of the list counts.
        let render = |memory: MemoryPermit| async move {
            let (version, MessagePage { messages, next }) = self.list_messages(range).await?;
            let work = self.work_permit(entry_json::entries_size(&messages), SMALL_BYTES).await?;
            Ok((version, work.run(move || memory.charge(entry_json::entries(&messages, next))).await??))
        };
        let (version, body) = self.within_budget(render).await?;
        if is_cacheable {
            self.response_cache.insert(key, version.0, body.clone());
        }
        Ok(success::json(body, self.etags.messages(version)))
    }

    /// Returns a page, unless the client has it already.
    async fn page_response(&self, page: MessagePage, if_none_match: &IfNoneMatch) -> HandlerResult {
        let page = Arc::new(page);
        let page = &page;
        let render = |memory: MemoryPermit| async move {
            let work = self.work_permit(entry_json::entries_size(&page.messages), SMALL_BYTES).await?;
            let page = page.clone();
            Ok(work.run(move || memory.charge(entry_json::entries(&page.messages, page.next))).await??)
        };
        let body = self.within_budget(render).await?;
        let tag = self.etags.body(&body);
        if if_none_match.matches(&tag) {
            return Ok(success::not_modified(success::JSON, tag));
        }
        Ok(success::json(body, tag))
    }
}
