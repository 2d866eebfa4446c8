//! The handlers of version 1 of the REST API.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use restante_http_connection::memory::MemoryPermit;
use restante_http_core::extractors::body;
use restante_http_core::extractors::latest::LatestWait;
use restante_http_core::extractors::parameters::{MessagePageQuery, PathMailbox, PathMessage};
use restante_http_core::extractors::request_context::BaseUrl;
use restante_http_core::render::{CacheKey, Representation, Work};
use restante_http_core::response::etag::IfNoneMatch;
use restante_http_core::response::problem::Problem;
use restante_http_core::response::{message_json, success};
use restante_http_core::server::Server;
use restante_store::{Listing, MessageSelector, Page};
use serde_json::Value;

/// The maximum size of a request body. A valid one has about twenty bytes.
const MAX_BODY_BYTES: usize = 64 * 1024;

type HandlerResult = Result<Response, Problem>;

/// Lists the messages of a mailbox.
pub(crate) async fn list(
    State(server): State<Arc<Server>>,
    PathMailbox(mailbox): PathMailbox,
    MessagePageQuery(page): MessagePageQuery,
    if_none_match: IfNoneMatch,
) -> HandlerResult {
    let version = server.mailroom.version(&mailbox).await?;
    let etag = |version| server.renderer.etags.of(&("listing", mailbox.is_relative(), version));
    let tag = etag(version);
    if if_none_match.matches(&tag) {
        return Ok(success::not_modified(success::JSON, tag));
    }
    let home = if mailbox.is_relative() { mailbox.project() } else { None };
    let key = CacheKey::List { name: "v1 list", home, mailbox: Some(mailbox.clone()), limit: usize::MAX };
    if page == Page::ALL
        && let Some(body) = server.renderer.cache.get(&key, version.0)
    {
        return Ok(success::json(body, tag));
    }
    // The mailbox may have changed since. From here on, the version of the listing counts.
    let (this, name) = (&server, &mailbox);
    let render = |memory: MemoryPermit| async move {
        let Listing { version, messages } = this.mailroom.list(name, page).await?;
        // Empty listings are not cached: clients can request any number of empty mailboxes, and they are quick to
        // render.
        let is_cacheable = page == Page::ALL && !messages.is_empty();
        let work = this.renderer.work_permit(message_json::listing_size(&messages)).await?;
        let write = move || Ok::<_, Problem>(memory.charge(message_json::listing(&messages)?)?);
        let body = work.run(write).await??;
        Ok((version, body, is_cacheable))
    };
    let (version, body, is_cacheable) = server.renderer.within_budget(render).await?;
    if is_cacheable {
        server.renderer.cache.insert(key, version.0, body.clone());
    }
    Ok(success::json(body, etag(version)))
}

/// Returns a message.
pub(crate) async fn message(
    State(server): State<Arc<Server>>,
    target: PathMessage,
    BaseUrl(base): BaseUrl,
    wait: LatestWait,
    if_none_match: IfNoneMatch,
) -> HandlerResult {
    wait.wait(&server, &target).await?;
    let representation = Representation::new("v1 message", Work::Write).with_parameter(base.clone()).with_read_mark();
    server
        .renderer
        .json_response(&target.find(&server).await?, &if_none_match, representation, move |summary, mime| {
            message_json::message(summary, mime, &base)
        })
        .await
}

/// Returns the source of a message.
pub(crate) async fn source(
    State(server): State<Arc<Server>>,
    target: PathMessage,
    wait: LatestWait,
    if_none_match: IfNoneMatch,
) -> HandlerResult {
    wait.wait(&server, &target).await?;
    server.renderer.source_response(&target.find(&server).await?, &if_none_match).await
}

/// Marks a message as seen or unseen. A request that specifies neither changes nothing.
pub(crate) async fn mark(State(server): State<Arc<Server>>, target: PathMessage, request: Request) -> HandlerResult {
    let seen = parse_requested_mark(request).await?;
    let id = match target.selector {
        MessageSelector::Id(id) if seen.is_some() => id,
        _ => target.find(&server).await?.id,
    };
    let Some(seen) = seen else { return success::done() };
    if server.mailroom.set_seen(&target.mailbox, id, seen).await? { success::done() } else { Err(Problem::NoSuchCopy) }
}

/// Deletes a message. `latest` is not accepted: another message can become the latest between the time when a client
/// reads and the time when it deletes.
pub(crate) async fn remove(State(server): State<Arc<Server>>, target: PathMessage) -> HandlerResult {
    let MessageSelector::Id(id) = target.selector else { return Err(Problem::NoSuchCopy) };
    if server.mailroom.remove(&target.mailbox, id).await? { success::done() } else { Err(Problem::NoSuchCopy) }
}

/// Deletes all messages of a mailbox.
pub(crate) async fn purge(State(server): State<Arc<Server>>, PathMailbox(mailbox): PathMailbox) -> HandlerResult {
    server.mailroom.purge(&mailbox).await?;
    success::done()
}

/// Returns the requested mark. Existing clients send any content type, write the name in any case, leave it out, or
/// send no body to mark the message as seen. Requiring a content type would not protect against other origins: web
/// pages cannot send PATCH to another origin without a preflight request.
async fn parse_requested_mark(request: Request) -> Result<Option<bool>, Problem> {
    let (parts, body) = request.into_parts();
    let body = body::read(&parts.headers, body, MAX_BODY_BYTES).await?;
    if body.trim_ascii().is_empty() {
        return Ok(Some(true));
    }
    let wrong_shape = || Problem::WrongShape("{\"seen\": true} or {\"seen\": false}");
    let members = match serde_json::from_slice(&body).map_err(Problem::InvalidJson)? {
        Value::Object(members) => members,
        Value::Null => return Ok(None),
        _ => return Err(wrong_shape()),
    };
    let in_any_case = || members.iter().find(|(name, _)| name.eq_ignore_ascii_case("seen")).map(|(_, value)| value);
    match members.get("seen").or_else(in_any_case) {
        Some(Value::Bool(seen)) => Ok(Some(*seen)),
        Some(Value::Null) | None => Ok(None),
        Some(_) => Err(wrong_shape()),
    }
}
