//! Messages as a whole: the list of all of them, one message, and changes of it. A message is a group of copies in
//! mailboxes; the extractors leave out the copies that the client may not access. The id of a copy stands for its message. The
//! resources below a message are those of its first copy, or of the copy with the id in the path, and have the handlers of
//! copies.

use std::future::ready;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use bytes::Bytes;
use restante_api_types::{ExcerptPart, MessageEntry, WholeMessage};
use restante_auth::Scope;
use restante_http_connection::memory::MemoryPermit;
use restante_http_connection::work::WorkPermit;
use restante_http_core::extractors::access::Access;
use restante_http_core::extractors::body;
use restante_http_core::extractors::messages::{MessageListQuery, PathCopy, PathWholeMessage};
use restante_http_core::extractors::parameters::RequestGrant;
use restante_http_core::extractors::query::Parsed;
use restante_http_core::messages::changes::copy_keys;
use restante_http_core::messages::{MessagePage, MessageRange};
use restante_http_core::render::CacheKey;
use restante_http_core::render::MAX_MESSAGES_WITHOUT_PERMIT;
use restante_http_core::render::file::source_with_purpose;
use restante_http_core::response::etag::IfNoneMatch;
use restante_http_core::response::links::Purpose;
use restante_http_core::response::message_json::{entries_size, entry_size, whole_message_size};
use restante_http_core::response::problem::Problem;
use restante_http_core::response::{json, success};
use restante_http_core::server::Server;
use restante_mail::message::Message;
use restante_mail::naming::{MailboxName, Project};
use restante_mail::tags::{MAX_TAGS, TagError, Tags};
use restante_mailroom::DeletionCause;
use restante_store::{MessageSelector, Version};
use serde::{Serialize, Serializer};
use serde_json::Value;
use utoipa::ToSchema;

use crate::v2::message_search::search_messages;
use crate::v2::message_search::{Excerpt, FoundMessages};

/// The maximum size of a request body.
const MAX_BODY_BYTES: usize = 64 * 1024;

const CHANGE_SHAPE: &str = "{\"seen\": true, \"tags\": [\"…\"]}, with one of these members or both, and no others";

type HandlerResult = Result<Response, Problem>;
/// An excerpt of each message of a page, and whether the search was complete.
type Findings = (Vec<Excerpt>, bool);

/// Lists messages, the newest first.
pub(crate) async fn list(
    Access { server, grant, cancellation }: Access,
    MessageListQuery { range, mailbox, query }: MessageListQuery,
    if_none_match: IfNoneMatch,
) -> HandlerResult {
    match query {
        Some(query) => {
            let find = async {
                let work = server.renderer.list_permit(range.limit).await?;
                Ok((work, search_messages(&server, &grant, mailbox.as_ref(), &query, range).await?))
            };
            // Canceled if the client disconnects, so that it does not delay other searches.
            let (work, found) = cancellation.run_until_cancelled(find).await?;
            let FoundMessages { page, excerpts, is_complete } = found;
            page_response(&server, page, mailbox, Some((excerpts, is_complete)), work, &if_none_match).await
        }
        None if mailbox.is_some() || grant.covers_home() => {
            complete_list(&server, grant.home(), mailbox, range, &if_none_match).await
        }
        None => {
            let work = server.renderer.list_permit(range.limit).await?;
            let page = server.messages.scan_messages(&grant, range).await?;
            page_response(&server, page, None, None, work, &if_none_match).await
        }
    }
}

/// Returns a message.
pub(crate) async fn message(
    State(server): State<Arc<Server>>,
    target: PathWholeMessage,
    if_none_match: IfNoneMatch,
) -> HandlerResult {
    let message = target.find(&server).await?;
    let body = json::body_with_capacity(&WholeMessage::from(&message), whole_message_size(&message))?;
    success::json_unless_match(&if_none_match, server.renderer.etags.of(&body), ready(Ok(body))).await
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
    let message = target.find(&server).await?;
    if let Some(tags) = tags {
        server.mailroom.set_tags(copy_keys(&message).collect(), tags).await?;
    }
    if let Some(seen) = seen {
        server.mailroom.mark_copies(copy_keys(&message).collect(), seen).await?;
    }
    let changed = server.messages.permitted_message(&grant, MessageSelector::Id(message.id())).await?;
    if !grant.allows_somewhere(Scope::Read) {
        return success::done();
    }
    let body = json::body_with_capacity(&MessageEntry::from(&changed), entry_size(&changed))?;
    Ok(success::no_store_body(body))
}

/// Deletes the permitted copies of a message.
pub(crate) async fn delete(State(server): State<Arc<Server>>, target: PathWholeMessage) -> HandlerResult {
    let message = target.find(&server).await?;
    match server.mailroom.remove_copies(copy_keys(&message).collect(), DeletionCause::Request).await? {
        0 => Err(Problem::NoSuchMessage),
        _ => success::done(),
    }
}

/// Returns the source of a message, to show or as a file to save.
pub(crate) async fn source(
    State(server): State<Arc<Server>>,
    PathCopy(copy): PathCopy,
    Parsed(purpose): Parsed<Purpose>,
    if_none_match: IfNoneMatch,
) -> HandlerResult {
    let response = server.renderer.source_response(&copy, &if_none_match).await?;
    Ok(source_with_purpose(response, &copy, purpose))
}

/// A page of a list of messages, the newest first.
#[derive(Serialize, ToSchema)]
pub(crate) struct MessageEntries<'a> {
    #[serde(serialize_with = "serialize_entries")]
    #[schema(value_type = Vec<MessageEntry<'a>>)]
    messages: &'a [Message],
    /// The value of `before` for the next page, or null on the last page.
    #[schema(required, pattern = "^[1-9][0-9]{0,19}$")]
    next: Option<String>,
    /// The name of the mailbox, if the request has the parameter `mailbox`.
    #[serde(skip_serializing_if = "Option::is_none")]
    mailbox: Option<&'a str>,
    /// If the request has a query: an excerpt of each message around the matches, in the order of the messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    excerpts: Option<Vec<Vec<ExcerptPart<'a>>>>,
    /// If the request has a query: whether the search covered everything that was stored before the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    complete: Option<bool>,
}

impl<'a> MessageEntries<'a> {
    fn new(page: &'a MessagePage, mailbox: Option<&'a MailboxName>) -> Self {
        Self {
            messages: &page.messages,
            next: page.next.map(|id| id.to_string()),
            mailbox: mailbox.map(MailboxName::shown),
            excerpts: None,
            complete: None,
        }
    }

    fn body(&self) -> Result<Bytes, Problem> {
        json::body_with_capacity(self, entries_size(self.messages))
    }
}

/// Serializes the entries of messages, one after the other.
fn serialize_entries<S: Serializer>(messages: &[Message], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(messages.iter().map(MessageEntry::from))
}

fn excerpt_parts(excerpt: &Excerpt) -> Vec<ExcerptPart<'_>> {
    excerpt.iter().map(|part| ExcerptPart { text: part.text.as_str().into(), hit: part.is_hit }).collect()
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
            // Equal tags count, too, so that the limit is one of the length of the list.
            ("tags", Value::Array(tags)) if tags.len() > MAX_TAGS => {
                return Err(Problem::invalid_member("tags", &TagError::TooMany));
            }
            ("tags", Value::Array(tags)) => {
                let tags: Option<Vec<&str>> = tags.iter().map(Value::as_str).collect();
                let tags = Tags::new(tags.ok_or_else(wrong_shape)?);
                change.tags = Some(tags.map_err(|error| Problem::invalid_member("tags", &error))?);
            }
            _ => return Err(wrong_shape()),
        }
    }
    Ok(change)
}

/// Returns a page of all messages, of those in a project, or of the copies in a mailbox. The newest messages are cached
/// until the store or the mailbox changes.
async fn complete_list(
    server: &Server,
    home: Option<&Project>,
    mailbox: Option<MailboxName>,
    range: MessageRange,
    if_none_match: &IfNoneMatch,
) -> HandlerResult {
    let mailbox = mailbox.as_ref();
    let tag = |version| server.renderer.etags.of(&("messages", home, mailbox.is_some(), version));
    let version = match mailbox {
        Some(mailbox) => server.mailroom.version(mailbox).await?,
        None => server.mailroom.store_version().await?,
    };
    if if_none_match.matches(&tag(version)) {
        return Ok(success::not_modified(success::JSON, tag(version)));
    }
    let is_cacheable = range.before.is_none() && range.after.is_none();
    let (name, limit) = ("v2 messages", range.limit);
    let key = CacheKey::List { name, home: home.cloned(), mailbox: mailbox.cloned(), limit };
    if is_cacheable && let Some(body) = server.renderer.cache.get(&key, version.0) {
        return Ok(success::json(body, tag(version)));
    }
    // The list may have changed since. From here on, the version of the list counts.
    let render = |memory: MemoryPermit| async move {
        let start = MessageRange { limit: range.limit.min(MAX_MESSAGES_WITHOUT_PERMIT), ..range };
        let (version, mut page) = read_list(server, home, mailbox, start).await?;
        let work = if page.next.is_some() && start.limit < range.limit {
            let work = WorkPermit::acquire(&server.renderer.work_permits).await?;
            let rest = MessageRange { before: page.next, limit: range.limit - start.limit, ..range };
            // If the list changes meanwhile, clients request it again, because its version is that of the start.
            page.append(read_list(server, home, mailbox, rest).await?.1);
            work
        } else {
            server.renderer.work_permit(entries_size(&page.messages)).await?
        };
        let mailbox = mailbox.cloned();
        let write = move || Ok::<_, Problem>(memory.charge(MessageEntries::new(&page, mailbox.as_ref()).body()?)?);
        Ok((version, work.run(write).await??))
    };
    let (version, body) = server.renderer.within_budget(render).await?;
    if is_cacheable {
        server.renderer.cache.insert(key, version.0, body.clone());
    }
    Ok(success::json(body, tag(version)))
}

/// Returns a page of all messages, of those in a project, or of the copies in a mailbox, and its version.
async fn read_list(
    server: &Server,
    home: Option<&Project>,
    mailbox: Option<&MailboxName>,
    range: MessageRange,
) -> Result<(Version, MessagePage), Problem> {
    match mailbox {
        Some(mailbox) => server.messages.list_copies(mailbox, range).await,
        None => server.messages.list_messages(home, range).await,
    }
}

/// Returns a page, unless the client has it already. `work` is the permit with which it was read.
async fn page_response(
    server: &Server,
    page: MessagePage,
    mailbox: Option<MailboxName>,
    search: Option<Findings>,
    work: Option<WorkPermit>,
    if_none_match: &IfNoneMatch,
) -> HandlerResult {
    let size = entries_size(&page.messages);
    let write = |(page, mailbox, search): &(MessagePage, Option<MailboxName>, Option<Findings>), _| {
        let mut entries = MessageEntries::new(page, mailbox.as_ref());
        if let Some((excerpts, is_complete)) = search {
            entries.excerpts = Some(excerpts.iter().map(excerpt_parts).collect());
            entries.complete = Some(*is_complete);
        }
        entries.body()
    };
    let body = server.renderer.render_value((page, mailbox, search), size, work, write).await?;
    success::json_unless_match(if_none_match, server.renderer.etags.of(&body), ready(Ok(body))).await
}
