//! Waiting for messages of one mailbox or of all: the response is sent as soon as enough matching messages exist, or when
//! the time is up. The mailroom implements waiting; the query language of the search selects the messages.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use restante_api_types::{MessageEntry, MessageRecord};
use restante_auth::Grant;
use restante_http_core::extractors::access::Access;
use restante_http_core::extractors::cancellation::Cancellation;
use restante_http_core::extractors::messages::parse_query;
use restante_http_core::extractors::parameters::{PathMailbox, request_grant};
use restante_http_core::extractors::query::QueryPairs;
use restante_http_core::messages::permitted_copies;
use restante_http_core::response::message_json::entries_size;
use restante_http_core::response::problem::{Problem, ProblemDocument};
use restante_http_core::response::{json, success};
use restante_http_core::server::Server;
use restante_mail::message::{Message, MessageId};
use restante_mail::naming::MailboxName;
use restante_mailroom::{ArrivalSource, Arrivals, Mailroom};
use restante_search::Query;
use restante_store::MessageSelector;
use serde::Serialize;
use tokio::task::yield_now;

/// The timeout if the client does not specify one.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
/// The maximum number of messages that a request can wait for.
const MAX_COUNT: usize = 1000;
/// The number of messages that are examined before other tasks run.
const YIELD_INTERVAL: usize = 100;

/// Waits for messages of a mailbox.
pub(crate) async fn wait(
    State(server): State<Arc<Server>>,
    PathMailbox(mailbox): PathMailbox,
    parameters: WaitParameters,
    cancellation: Cancellation,
) -> Result<Response, Problem> {
    // A request with a timeout of zero lists the existing messages, so any count is valid for it.
    let cap = server.mailroom.mailbox_limits(&mailbox).messages;
    if cap < parameters.count as u64 && !parameters.timeout.is_zero() {
        let sentence = format!("The parameter count must be at most {cap}: a mailbox keeps no more messages.");
        return Err(Problem::Malformed(sentence));
    }
    wait_for_messages(&server, WaitTarget::Mailbox(mailbox), &parameters, &cancellation).await
}

/// Waits for messages of all mailboxes that the client may read.
pub(crate) async fn wait_for_any(
    Access { server, grant, cancellation }: Access,
    parameters: WaitParameters,
) -> Result<Response, Problem> {
    wait_for_messages(&server, WaitTarget::AllMailboxes(grant), &parameters, &cancellation).await
}

/// The mailboxes whose messages a request waits for.
enum WaitTarget {
    /// One mailbox. Its messages have one copy, the one in this mailbox.
    Mailbox(MailboxName),
    /// All mailboxes that the grant allows. Messages have all copies in these mailboxes.
    AllMailboxes(Grant),
}

impl WaitTarget {
    fn source(&self) -> ArrivalSource {
        match self {
            Self::Mailbox(mailbox) => ArrivalSource::Mailbox(mailbox.clone()),
            Self::AllMailboxes(grant) => ArrivalSource::All(grant.home().cloned()),
        }
    }

    /// Returns the message with the copies that belong to the target, or `None` if there are none.
    fn select_copies(&self, message: Message) -> Option<Message> {
        match self {
            Self::Mailbox(_) => Some(message),
            Self::AllMailboxes(grant) => permitted_copies(grant, message),
        }
    }

    /// Returns the current state of a message, or `None` if it was deleted.
    async fn reload(&self, mailroom: &Mailroom, message: &Message) -> Result<Option<Message>, Problem> {
        let message = match self {
            Self::Mailbox(mailbox) => {
                let copy = mailroom.find(mailbox, MessageSelector::Id(message.first().id)).await?;
                Message::group(copy).pop()
            }
            Self::AllMailboxes(_) => mailroom.find_message(MessageSelector::Id(message.id())).await?,
        };
        Ok(message.and_then(|message| self.select_copies(message)))
    }
}

/// The messages that exist now. If they are not those that were expected, a problem document with them.
#[derive(Serialize)]
struct Arrived<T> {
    #[serde(flatten)]
    problem: Option<ProblemDocument>,
    messages: Vec<T>,
}

/// The parameters of a request that waits.
pub(crate) struct WaitParameters {
    timeout: Duration,
    after: MessageId,
    count: usize,
    query: Option<Arc<Query>>,
    expect: Expect,
}

/// Whether the request expects messages, or none.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Expect {
    Some,
    None,
}

impl FromRequestParts<Arc<Server>> for WaitParameters {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<Server>) -> Result<Self, Problem> {
        let query = QueryPairs::parse(parts)?;
        query.reject_unknown(&["timeout", "after", "count", "match", "expect"])?;
        let expect = query.choice("expect", [("some", Expect::Some), ("none", Expect::None)])?.unwrap_or(Expect::Some);
        let count = match (query.number("count")?, expect) {
            (Some(count), Expect::Some) if (1..=MAX_COUNT).contains(&count) => count,
            (Some(_), Expect::Some) => return Err(malformed("The parameter count must be between 1 and 1000.")),
            (Some(_), Expect::None) => return Err(malformed("The parameter count cannot be used with expect=none.")),
            (None, _) => 1,
        };
        let matching = query.text("match")?.map(|text| parse_query(request_grant(parts)?, text)).transpose()?;
        Ok(Self {
            timeout: query.duration("timeout")?.unwrap_or(DEFAULT_TIMEOUT),
            after: query.number::<u64>("after")?.unwrap_or_default().into(),
            count,
            query: matching.map(Arc::new),
            expect,
        })
    }
}

async fn wait_for_messages(
    server: &Server,
    target: WaitTarget,
    parameters: &WaitParameters,
    cancellation: &Cancellation,
) -> Result<Response, Problem> {
    let _permit = server.wait_permit()?;
    let found = cancellation.run_until_cancelled(collect_arrivals(server, &target, parameters)).await?;
    let (arrived, count) = (found.len(), parameters.count);
    let problem = match parameters.expect {
        Expect::None if arrived == 0 => {
            return Ok((StatusCode::NO_CONTENT, [(header::CACHE_CONTROL, success::NO_STORE)]).into_response());
        }
        Expect::None => Some(Problem::UnexpectedMessage),
        Expect::Some if arrived < count => Some(Problem::TooFewMessages { found: arrived, expected: count }),
        Expect::Some => None,
    };
    let body = render_messages(server, &target, problem.as_ref().map(Problem::document), found).await?;
    let Some(problem) = problem else { return Ok(success::no_store_body(body)) };
    let mut response = problem.into_response();
    *response.body_mut() = Body::from(body);
    Ok(response)
}

/// Returns the matching messages: the requested number, or those that arrived in time. Messages that were deleted
/// in the meantime are left out.
async fn collect_arrivals(
    server: &Server,
    target: &WaitTarget,
    parameters: &WaitParameters,
) -> Result<Vec<Message>, Problem> {
    let mut found: Vec<Message> = Vec::new();
    let mut arrivals = server.mailroom.arrivals(target.source(), parameters.after, parameters.timeout);
    while let Some(next) = next_match(server, &mut arrivals, target, parameters).await? {
        found.push(next);
        if found.len() >= parameters.count {
            found = retain_existing(server, target, found).await?;
        }
        if found.len() >= parameters.count {
            return Ok(found);
        }
    }
    let found = retain_existing(server, target, found).await?;
    // Without a wait, all messages were examined just now.
    if parameters.query.is_none() || !arrivals.has_waited() {
        return Ok(found);
    }
    recheck_messages(server, target, found, parameters).await
}

/// Checks all messages once more, in addition to those already found. A message that did not match on arrival can
/// match later, for example after it was marked as seen.
async fn recheck_messages(
    server: &Server,
    target: &WaitTarget,
    mut found: Vec<Message>,
    parameters: &WaitParameters,
) -> Result<Vec<Message>, Problem> {
    let before = found.len();
    let mut all = server.mailroom.arrivals(target.source(), parameters.after, Duration::ZERO);
    while found.len() < parameters.count
        && let Some(next) = next_match(server, &mut all, target, parameters).await?
    {
        if found[..before].binary_search_by_key(&next.id(), Message::id).is_err() {
            found.push(next);
        }
    }
    found.sort_by_key(Message::id);
    Ok(found)
}

/// Returns the next matching message, or `None` after the deadline.
async fn next_match(
    server: &Server,
    arrivals: &mut Arrivals,
    target: &WaitTarget,
    parameters: &WaitParameters,
) -> Result<Option<Message>, Problem> {
    let mut examined = 0_usize;
    while let Some(next) = arrivals.next().await? {
        examined += 1;
        if examined.is_multiple_of(YIELD_INTERVAL) {
            // A memory store returns without yielding to other tasks.
            yield_now().await;
        }
        let Some(next) = target.select_copies(next) else { continue };
        if matches_query(server, &next, parameters.query.as_ref()).await? {
            return Ok(Some(next));
        }
    }
    Ok(None)
}

/// Returns whether a copy of the message matches.
async fn matches_query(server: &Server, message: &Message, query: Option<&Arc<Query>>) -> Result<bool, Problem> {
    let Some(query) = query else { return Ok(true) };
    for copy in message.copies() {
        let source = async { Ok(server.mailroom.source(&copy.mailbox, copy.id).await?) };
        let is_match = if query.needs_source() {
            server.parsed_mail_cache.match_message(query, copy, source).await?
        } else {
            query.matches(copy, None)
        };
        if is_match {
            return Ok(true);
        }
    }
    Ok(false)
}

async fn retain_existing(server: &Server, target: &WaitTarget, found: Vec<Message>) -> Result<Vec<Message>, Problem> {
    let mut existing = Vec::with_capacity(found.len());
    for message in found {
        existing.extend(target.reload(&server.mailroom, &message).await?);
    }
    Ok(existing)
}

/// Returns the body with these messages: a problem document if there is a problem.
async fn render_messages(
    server: &Server,
    target: &WaitTarget,
    problem: Option<ProblemDocument>,
    messages: Vec<Message>,
) -> Result<Bytes, Problem> {
    let (size, as_records) = (entries_size(&messages), matches!(target, WaitTarget::Mailbox(_)));
    let write = |(problem, messages, as_records): &(Option<ProblemDocument>, Vec<Message>, bool), size| {
        let problem = problem.clone();
        if *as_records {
            let messages = messages.iter().map(|message| MessageRecord::from(message.first())).collect();
            json::body_with_capacity(&Arrived { problem, messages }, size)
        } else {
            let messages = messages.iter().map(MessageEntry::from).collect();
            json::body_with_capacity(&Arrived { problem, messages }, size)
        }
    };
    server.renderer.render_value((problem, messages, as_records), size, None, write).await
}

fn malformed(sentence: &str) -> Problem {
    Problem::Malformed(sentence.to_owned())
}
