//! Extractors for messages as a whole. They return only the copies that the grant of the request allows for the
//! request's method.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::Method;
use axum::http::request::Parts;
use jiff::Timestamp;
use restante_auth::{Grant, Scope};
use restante_mail::message::{Message, Summary};
use restante_mail::naming::MailboxName;
use restante_mail::tags::{MAX_TAGS, validate};
use restante_search::Query;
use restante_store::MessageSelector;

use crate::extractors::parameters::{
    LATEST, RequestGrant, mailbox_parameter, path_value, path_values, permitted_message, request_grant, require_scope,
};
use crate::extractors::query::{QueryPairs, parse_digits};
use crate::messages::MessageRange;
use crate::response::problem::Problem;
use crate::server::Server;

/// The default number of messages in a list, and the maximum.
const DEFAULT_MESSAGES: usize = 50;
const MAX_MESSAGES: usize = 1000;

/// A message as a whole, from `{id}`: its id, or the id of one of its copies. `latest` is not accepted in a DELETE:
/// another message could have become the latest.
#[derive(Debug)]
pub struct PathWholeMessage {
    /// The grant of the request, which allows the request's method.
    pub grant: Grant,
    selector: MessageSelector,
}

/// A message to be sent to other servers, from `{id}`. The grant of the request allows to read and to relay messages.
#[derive(Debug)]
pub struct PathReleasedMessage(pub PathWholeMessage);

/// A copy of a message: from `{name}/{id}` or, on a path without `{name}`, the copy with the id `{id}`. If that is the id of
/// a message, the first permitted copy of the message.
#[derive(Debug)]
pub struct PathCopy(pub Summary);

/// A part of a copy, from `{index}`.
#[derive(Debug)]
pub struct PathPart {
    /// The copy.
    pub copy: Summary,
    /// The index in the tree of parts, depth first, or in a list of attachments.
    pub index: usize,
}

/// An attachment of a copy, from `{index}`. A file name in the path is ignored.
#[derive(Debug)]
pub struct PathAttachment(pub PathPart);

/// The requested page of the list of messages, from the query.
#[derive(Debug)]
pub struct MessageListQuery {
    /// The range of the list.
    pub range: MessageRange,
    /// The mailbox whose copies are listed, or `None` for the messages of all mailboxes.
    pub mailbox: Option<MailboxName>,
    /// Selects messages, or `None` for all.
    pub query: Option<Query>,
}

/// The messages to mark or delete, from the query. A DELETE requires a parameter. Unknown parameters and a blank `q` are
/// refused: they could have been meant to restrict the change. The number of changed messages reveals what they contain,
/// so the scope `read` is required too.
#[derive(Debug)]
pub struct MessageFilter {
    /// The mailbox whose copies are changed, or `None` for all.
    pub mailbox: Option<MailboxName>,
    /// Selects messages, or `None` for all.
    pub query: Option<Query>,
}

impl FromRequestParts<Arc<Server>> for PathWholeMessage {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, server: &Arc<Server>) -> Result<Self, Problem> {
        let values: Vec<(String, String)> = path_values(parts, server).await?;
        let RequestGrant(grant) = RequestGrant::from_request_parts(parts, server).await?;
        Ok(Self { grant, selector: parse_selector(parts, &values)? })
    }
}

impl FromRequestParts<Arc<Server>> for PathReleasedMessage {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, server: &Arc<Server>) -> Result<Self, Problem> {
        let values: Vec<(String, String)> = path_values(parts, server).await?;
        let grant = request_grant(parts)?.clone();
        require_scope(&grant, Scope::Relay)?;
        require_scope(&grant, Scope::Read)?;
        Ok(Self(PathWholeMessage { grant, selector: parse_selector(parts, &values)? }))
    }
}

impl FromRequestParts<Arc<Server>> for PathCopy {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, server: &Arc<Server>) -> Result<Self, Problem> {
        let values: Vec<(String, String)> = path_values(parts, server).await?;
        copy(parts, server, &values).await.map(Self)
    }
}

impl FromRequestParts<Arc<Server>> for PathPart {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, server: &Arc<Server>) -> Result<Self, Problem> {
        Self::extract(parts, server, Problem::NoSuchPart).await
    }
}

impl FromRequestParts<Arc<Server>> for PathAttachment {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, server: &Arc<Server>) -> Result<Self, Problem> {
        PathPart::extract(parts, server, Problem::NoSuchAttachment).await.map(Self)
    }
}

impl PathPart {
    /// Returns `missing` if the index is not a number.
    async fn extract(parts: &mut Parts, server: &Arc<Server>, missing: Problem) -> Result<Self, Problem> {
        let values: Vec<(String, String)> = path_values(parts, server).await?;
        let copy = copy(parts, server, &values).await?;
        Ok(Self { copy, index: parse_digits(path_value(&values, "index")).ok_or(missing)? })
    }
}

impl FromRequestParts<Arc<Server>> for MessageListQuery {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, server: &Arc<Server>) -> Result<Self, Problem> {
        if parts.uri.query().is_none_or(str::is_empty) {
            let range = MessageRange { before: None, after: None, limit: DEFAULT_MESSAGES };
            return Ok(Self { range, mailbox: None, query: None });
        }
        let query = QueryPairs::parse(parts)?;
        let range = MessageRange {
            before: query.number::<u64>("before")?.map(Into::into),
            after: query.number::<u64>("after")?.map(Into::into),
            limit: query.limit(DEFAULT_MESSAGES, MAX_MESSAGES)?,
        };
        let mailbox = mailbox_parameter(server, parts, &query)?;
        Ok(Self { range, mailbox, query: parse_message_query(parts, &query)? })
    }
}

impl FromRequestParts<Arc<Server>> for MessageFilter {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, server: &Arc<Server>) -> Result<Self, Problem> {
        let RequestGrant(grant) = RequestGrant::from_request_parts(parts, server).await?;
        require_scope(&grant, Scope::Read)?;
        let pairs = QueryPairs::parse(parts)?;
        pairs.reject_unknown(&["mailbox", "q", "tag"])?;
        if pairs.text("q")?.is_some_and(is_blank) {
            let sentence = "The parameter q is blank. Leave it out to select messages regardless of their content.";
            return Err(Problem::Malformed(sentence.to_owned()));
        }
        let mailbox = mailbox_parameter(server, parts, &pairs)?;
        let query = parse_message_query(parts, &pairs)?;
        if parts.method == Method::DELETE && mailbox.is_none() && query.is_none() {
            let sentence =
                "One of the parameters mailbox, q and tag is required. DELETE /api/v2/mailboxes deletes all messages.";
            return Err(Problem::Malformed(sentence.to_owned()));
        }
        Ok(Self { mailbox, query })
    }
}

impl PathWholeMessage {
    /// Returns the message, with the copies that the grant of the request allows.
    pub async fn find(&self, server: &Server) -> Result<Message, Problem> {
        server.messages.permitted_message(&self.grant, self.selector).await
    }
}

async fn copy(parts: &mut Parts, server: &Arc<Server>, values: &[(String, String)]) -> Result<Summary, Problem> {
    if let Some((_, name)) = values.iter().find(|(name, _)| name == "name") {
        let target = permitted_message(server, parts, name, path_value(values, "id"))?;
        return target.find(server).await;
    }
    let target = PathWholeMessage::from_request_parts(parts, server).await?;
    let message = target.find(server).await?;
    let named = message.copies().iter().find(|copy| MessageSelector::Id(copy.id) == target.selector);
    Ok(named.unwrap_or(message.first()).clone())
}

/// Returns the message that `{id}` selects.
fn parse_selector(parts: &Parts, values: &[(String, String)]) -> Result<MessageSelector, Problem> {
    match path_value(values, "id") {
        LATEST if parts.method != Method::DELETE => Ok(MessageSelector::Latest),
        id => id.parse().map(MessageSelector::Id).map_err(|_| Problem::NoSuchMessage),
    }
}

/// Returns the query for the parameters `q` and `tag`, or `None` if there are none. All tags must be present. A blank
/// `q` counts as missing.
fn parse_message_query(parts: &Parts, pairs: &QueryPairs) -> Result<Option<Query>, Problem> {
    let text = pairs.text("q")?.filter(|text| !is_blank(text));
    let query = text.map(|text| parse_query(request_grant(parts)?, text)).transpose()?;
    let tags = parse_tags(pairs)?.into_iter().map(Query::for_tag);
    Ok(query.into_iter().chain(tags).reduce(Query::and))
}

/// Parses a query of a client with this grant.
pub fn parse_query(grant: &Grant, text: &str) -> Result<Query, Problem> {
    let query = Query::parse(text, Timestamp::now()).map_err(Problem::InvalidQuery)?;
    Ok(query.in_home(grant.home()))
}

fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

/// Returns the values of the parameter `tag`, which may be repeated.
fn parse_tags(QueryPairs(pairs): &QueryPairs) -> Result<Vec<&str>, Problem> {
    let tags: Vec<&str> = pairs.iter().filter(|(name, _)| name == "tag").map(|(_, tag)| tag.trim()).collect();
    if tags.len() > MAX_TAGS {
        return Err(Problem::Malformed(format!("The parameter tag must not be given more than {MAX_TAGS} times.")));
    }
    match tags.iter().find_map(|tag| validate(tag).err()) {
        Some(error) => Err(Problem::Malformed(format!("The parameter tag is invalid: {error}."))),
        None => Ok(tags),
    }
}
