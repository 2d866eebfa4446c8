//! Waiting for messages: the response is sent as soon as enough matching messages exist, or when the time is up. The
//! mailroom implements waiting; the query language of the search selects the messages.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use jiff::Timestamp;
use restante_api_types::MessageRecord;
use restante_http_connection::memory::{MemoryPermit, SMALL_BYTES};
use restante_mail::message::{Message, MessageId, Summary};
use restante_mail::naming::MailboxName;
use restante_mailroom::Arrivals;
use restante_search::Query;
use restante_store::MessageSelector;
use serde::Serialize;
use utoipa::ToSchema;

use crate::extractors::cancellation::Cancellation;
use crate::extractors::parameters::{
    PathMailbox, duration_parameter, number_parameter, query_pairs, reject_unknown_parameters, text_parameter,
};
use crate::response::message_json::listing_size;
use crate::response::problem::{Problem, ProblemDocument};
use crate::response::{json, success};
use crate::state::Server;

/// The timeout if the client does not specify one.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
/// The maximum number of messages that a request can wait for.
const MAX_COUNT: usize = 1000;

/// Waits for messages.
pub(crate) async fn wait(
    State(server): State<Arc<Server>>,
    PathMailbox(mailbox): PathMailbox,
    parameters: WaitParameters,
    cancellation: Cancellation,
) -> Result<Response, Problem> {
    // A request with a timeout of zero lists the existing messages, so any count is valid for it.
    let cap = server.settings.mailbox_cap.filter(|cap| *cap < parameters.count && !parameters.timeout.is_zero());
    if let Some(cap) = cap {
        let sentence = format!("The parameter count must be at most {cap}: a mailbox keeps no more messages.");
        return Err(Problem::Malformed(sentence));
    }
    let _permit = server.wait_permit()?;
    let arrivals = server.mailroom.arrivals(Some(&mailbox), parameters.after, parameters.timeout);
    let found = cancellation.run_until_cancelled(server.collect_arrivals(&mailbox, arrivals, &parameters)).await?;
    let (arrived, count) = (found.len(), parameters.count);
    let problem = match parameters.expect {
        Expect::None if arrived == 0 => return Ok(no_content()),
        Expect::None => Some(Problem::UnexpectedMessage),
        Expect::Some if arrived < count => Some(Problem::TooFewMessages { found: arrived, expected: count }),
        Expect::Some => None,
    };
    let body = server.render_messages(problem.as_ref().map(Problem::document), found).await?;
    let Some(problem) = problem else { return Ok(success::no_store_body(body)) };
    let mut response = problem.into_response();
    *response.body_mut() = Body::from(body);
    Ok(response)
}

/// Messages that exist now.
#[derive(Serialize, ToSchema)]
#[schema(as = Arrived)]
pub(crate) struct MessageList<'a> {
    /// The messages, ascending by id.
    messages: Vec<MessageRecord<'a>>,
}

impl<'a> From<&'a [Summary]> for MessageList<'a> {
    fn from(messages: &'a [Summary]) -> Self {
        Self { messages: messages.iter().map(Into::into).collect() }
    }
}

/// A problem document with the messages that arrived.
#[derive(Serialize, ToSchema)]
pub(crate) struct WaitProblem<'a> {
    #[serde(flatten)]
    problem: ProblemDocument,
    /// The matching messages that arrived.
    messages: Vec<MessageRecord<'a>>,
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

impl<S: Sync> FromRequestParts<S> for WaitParameters {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let pairs = query_pairs(parts)?;
        reject_unknown_parameters(&pairs, &["timeout", "after", "count", "match", "expect"])?;
        let expect = match text_parameter(&pairs, "expect")? {
            None | Some("some") => Expect::Some,
            Some("none") => Expect::None,
            Some(_) => return Err(malformed("The parameter expect must be some or none.")),
        };
        let count = match (number_parameter(&pairs, "count")?, expect) {
            (Some(count), Expect::Some) if (1..=MAX_COUNT).contains(&count) => count,
            (Some(_), Expect::Some) => return Err(malformed("The parameter count must be between 1 and 1000.")),
            (Some(_), Expect::None) => return Err(malformed("The parameter count cannot be used with expect=none.")),
            (None, _) => 1,
        };
        let query = text_parameter(&pairs, "match")?.map(|text| Query::parse(text, Timestamp::now())).transpose();
        Ok(Self {
            timeout: duration_parameter(&pairs, "timeout")?.unwrap_or(DEFAULT_TIMEOUT),
            after: number_parameter::<u64>(&pairs, "after")?.unwrap_or_default().into(),
            count,
            query: query.map_err(Problem::InvalidQuery)?.map(Arc::new),
            expect,
        })
    }
}

impl Server {
    /// Returns the matching messages: the requested number, or those that arrived in time. Messages that were deleted
    /// in the meantime are left out.
    async fn collect_arrivals(
        &self,
        mailbox: &MailboxName,
        mut arrivals: Arrivals,
        parameters: &WaitParameters,
    ) -> Result<Vec<Summary>, Problem> {
        let mut found: Vec<Summary> = Vec::new();
        while let Some(next) = arrivals.next().await?.map(first_copy) {
            if !self.matches_query(&next, parameters.query.as_ref()).await? {
                continue;
            }
            found.push(next);
            if found.len() >= parameters.count {
                found = self.retain_existing(mailbox, found).await?;
            }
            if found.len() >= parameters.count {
                return Ok(found);
            }
        }
        let found = self.retain_existing(mailbox, found).await?;
        if parameters.query.is_none() || parameters.timeout.is_zero() {
            return Ok(found);
        }
        self.recheck_mailbox(mailbox, found, parameters).await
    }

    /// Checks all messages of the mailbox once more, in addition to those already found. A message that did not match
    /// on arrival can match later, for example after it was marked as seen.
    async fn recheck_mailbox(
        &self,
        mailbox: &MailboxName,
        mut found: Vec<Summary>,
        parameters: &WaitParameters,
    ) -> Result<Vec<Summary>, Problem> {
        let before = found.len();
        let mut all = self.mailroom.arrivals(Some(mailbox), parameters.after, Duration::ZERO);
        while found.len() < parameters.count
            && let Some(next) = all.next().await?.map(first_copy)
        {
            let is_found = found[..before].binary_search_by_key(&next.id, |message| message.id).is_ok();
            if !is_found && self.matches_query(&next, parameters.query.as_ref()).await? {
                found.push(next);
            }
        }
        found.sort_by_key(|message| message.id);
        Ok(found)
    }

    async fn matches_query(&self, summary: &Summary, query: Option<&Arc<Query>>) -> Result<bool, Problem> {
        let Some(query) = query else { return Ok(true) };
        if !query.needs_source() {
            return Ok(query.matches(summary, None));
        }
        let source = async { Ok(self.mailroom.source(&summary.mailbox, summary.id).await?) };
        self.parsed_mail_cache.match_message(query, summary, source).await
    }

    async fn retain_existing(&self, mailbox: &MailboxName, found: Vec<Summary>) -> Result<Vec<Summary>, Problem> {
        let mut existing = Vec::with_capacity(found.len());
        for summary in found {
            existing.extend(self.mailroom.find(mailbox, MessageSelector::Id(summary.id)).await?);
        }
        Ok(existing)
    }

    /// Returns the body with these messages: a problem document if there is a problem.
    async fn render_messages(
        &self,
        problem: Option<ProblemDocument>,
        messages: Vec<Summary>,
    ) -> Result<Bytes, Problem> {
        let (size, messages) = (listing_size(&messages), Arc::<[Summary]>::from(messages));
        let (problem, messages) = (&problem, &messages);
        let render = |memory: MemoryPermit| async move {
            let work = self.work_permit(size, SMALL_BYTES).await?;
            let (problem, messages) = (problem.clone(), messages.clone());
            let write = move || {
                let MessageList { messages } = MessageList::from(&*messages);
                let body = match problem {
                    Some(problem) => json::body_with_capacity(&WaitProblem { problem, messages }, size),
                    None => json::body_with_capacity(&MessageList { messages }, size),
                };
                Ok::<_, Problem>(memory.charge(body?)?)
            };
            work.run(write).await?
        };
        self.within_budget(render).await
    }
}

/// Returns the response for a request that expects no messages.
fn no_content() -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn first_copy(message: Message) -> Summary {
    message.first().clone()
}

fn malformed(sentence: &str) -> Problem {
    Problem::Malformed(sentence.to_owned())
}
