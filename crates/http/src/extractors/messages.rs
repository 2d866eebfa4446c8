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
    LATEST, RequestGrant, number_parameter, parse_digits, parse_limit, path_values, permitted_mailbox,
    permitted_message, query_pairs, reject_unknown_parameters, request_grant, text_parameter,
};
use crate::response::problem::Problem;
use crate::state::Server;
use crate::state::messages::MessageRange;

/// The default number of messages in a list, and the maximum.
const DEFAULT_MESSAGES: usize = 50;
const MAX_MESSAGES: usize = 1000;

/// A message as a whole, from `{id}`: its id, or the id of one of its copies. `latest` is not accepted in a DELETE:
/// another message could have become the latest.
#[derive(Debug)]
pub(crate) struct PathWholeMessage {
    /// The grant of the request, which allows the request's method.
    grant: Grant,
    selector: MessageSelector,
}

/// A message to be sent to other servers, from `{id}`. The grant of the request allows to read and to relay messages.
#[derive(Debug)]
pub(crate) struct PathReleasedMessage {
    /// The grant of the request.
    pub(crate) grant: Grant,
    selector: MessageSelector,
}

/// A copy of a message: from `{name}/{id}` or, on a path without `{name}`, the copy with the id `{id}`. If that is the id of
/// a message, the first permitted copy of the message.
#[derive(Debug)]
pub(crate) struct PathCopy(pub(crate) Summary);

/// An attachment of a copy, from `{index}`. A file name in the path is ignored.
#[derive(Debug)]
pub(crate) struct PathAttachment {
    /// The copy.
    pub(crate) copy: Summary,
    /// The index in the list of attachments.
    pub(crate) index: usize,
}

/// A part of a copy, from `{index}`.
#[derive(Debug)]
pub(crate) struct PathPart {
    /// The copy.
    pub(crate) copy: Summary,
    /// The index in the tree of parts, depth first.
    pub(crate) index: usize,
}

/// The requested page of the list of messages, from the query.
#[derive(Debug)]
pub(crate) struct MessageListQuery {
    /// The range of the list.
    pub(crate) range: MessageRange,
    /// The mailbox whose copies are listed, or `None` for the messages of all mailboxes.
    pub(crate) mailbox: Option<MailboxName>,
    /// Selects messages, or `None` for all.
    pub(crate) query: Option<Query>,
}

/// The messages to mark or delete, from the query. A DELETE requires a parameter. Unknown parameters and a blank `q` are
/// refused: they could have been meant to restrict the change. The number of changed messages reveals what they contain,
/// so the scope `read` is required too.
#[derive(Debug)]
pub(crate) struct MessageFilter {
    /// The mailbox whose copies are changed, or `None` for all.
    pub(crate) mailbox: Option<MailboxName>,
    /// Selects messages, or `None` for all.
    pub(crate) query: Option<Query>,
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
        if let Some(missing) = [Scope::Relay, Scope::Read].into_iter().find(|scope| !grant.allows_somewhere(*scope)) {
            return Err(Problem::MissingScope(missing));
        }
        Ok(Self { grant, selector: parse_selector(parts, &values)? })
    }
}

impl FromRequestParts<Arc<Server>> for PathCopy {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, server: &Arc<Server>) -> Result<Self, Problem> {
        let values: Vec<(String, String)> = path_values(parts, server).await?;
        copy(parts, server, &values).await.map(Self)
    }
}

impl FromRequestParts<Arc<Server>> for PathAttachment {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, server: &Arc<Server>) -> Result<Self, Problem> {
        let values: Vec<(String, String)> = path_values(parts, server).await?;
        let copy = copy(parts, server, &values).await?;
        let index = parse_digits(path_value(&values, "index")).ok_or(Problem::NoSuchAttachment)?;
        Ok(Self { copy, index })
    }
}

impl FromRequestParts<Arc<Server>> for PathPart {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, server: &Arc<Server>) -> Result<Self, Problem> {
        let values: Vec<(String, String)> = path_values(parts, server).await?;
        let copy = copy(parts, server, &values).await?;
        let index = parse_digits(path_value(&values, "index")).ok_or(Problem::NoSuchPart)?;
        Ok(Self { copy, index })
    }
}

impl FromRequestParts<Arc<Server>> for MessageListQuery {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, server: &Arc<Server>) -> Result<Self, Problem> {
        if parts.uri.query().is_none_or(str::is_empty) {
            let range = MessageRange { before: None, after: None, limit: DEFAULT_MESSAGES };
            return Ok(Self { range, mailbox: None, query: None });
        }
        let pairs = query_pairs(parts)?;
        let range = MessageRange {
            before: number_parameter::<u64>(&pairs, "before")?.map(Into::into),
            after: number_parameter::<u64>(&pairs, "after")?.map(Into::into),
            limit: parse_limit(&pairs, DEFAULT_MESSAGES, MAX_MESSAGES)?,
        };
        let mailbox = mailbox_parameter(server, parts, &pairs)?;
        Ok(Self { range, mailbox, query: parse_message_query(&pairs)? })
    }
}

impl FromRequestParts<Arc<Server>> for MessageFilter {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, server: &Arc<Server>) -> Result<Self, Problem> {
        let RequestGrant(grant) = RequestGrant::from_request_parts(parts, server).await?;
        if !grant.allows_somewhere(Scope::Read) {
            return Err(Problem::MissingScope(Scope::Read));
        }
        let pairs = query_pairs(parts)?;
        reject_unknown_parameters(&pairs, &["mailbox", "q", "tag"])?;
        if text_parameter(&pairs, "q")?.is_some_and(is_blank) {
            let sentence = "The parameter q is blank. Leave it out to select messages regardless of their content.";
            return Err(Problem::Malformed(sentence.to_owned()));
        }
        let mailbox = mailbox_parameter(server, parts, &pairs)?;
        let query = parse_message_query(&pairs)?;
        if parts.method == Method::DELETE && mailbox.is_none() && query.is_none() {
            let sentence =
                "One of the parameters mailbox, q and tag is required. DELETE /api/v2/mailboxes deletes all messages.";
            return Err(Problem::Malformed(sentence.to_owned()));
        }
        Ok(Self { mailbox, query })
    }
}

impl Server {
    /// Returns the message in the path, with the copies that the grant of the request allows.
    pub(crate) async fn find_whole_message(&self, target: &PathWholeMessage) -> Result<Message, Problem> {
        self.permitted_message(&target.grant, target.selector).await
    }

    /// Returns the message to be released, with the copies that the grant of the request allows.
    pub(crate) async fn find_released_message(&self, target: &PathReleasedMessage) -> Result<Message, Problem> {
        self.permitted_message(&target.grant, target.selector).await
    }
}

async fn copy(parts: &mut Parts, server: &Arc<Server>, values: &[(String, String)]) -> Result<Summary, Problem> {
    if let Some((_, name)) = values.iter().find(|(name, _)| name == "name") {
        let target = permitted_message(server, parts, name, path_value(values, "id"))?;
        return server.find_message(&target).await;
    }
    let target = PathWholeMessage::from_request_parts(parts, server).await?;
    let message = server.find_whole_message(&target).await?;
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

fn path_value<'v>(values: &'v [(String, String)], name: &str) -> &'v str {
    values.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
}

/// Returns the mailbox in the parameter `mailbox`, if it is given.
fn mailbox_parameter(
    server: &Server,
    parts: &Parts,
    pairs: &[(String, String)],
) -> Result<Option<MailboxName>, Problem> {
    text_parameter(pairs, "mailbox")?.map(|name| permitted_mailbox(server, parts, name)).transpose()
}

/// Returns the query for the parameters `q` and `tag`, or `None` if there are none. All tags must be present. A blank
/// `q` counts as missing.
fn parse_message_query(pairs: &[(String, String)]) -> Result<Option<Query>, Problem> {
    let now = Timestamp::now();
    let text = text_parameter(pairs, "q")?.filter(|text| !is_blank(text));
    let query = text.map(|text| Query::parse(text, now)).transpose().map_err(Problem::InvalidQuery)?;
    let tags = parse_tags(pairs)?.into_iter().map(Query::for_tag);
    Ok(query.into_iter().chain(tags).reduce(Query::and))
}

fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

/// Returns the values of the parameter `tag`, which may be repeated.
fn parse_tags(pairs: &[(String, String)]) -> Result<Vec<&str>, Problem> {
    let tags: Vec<&str> = pairs.iter().filter(|(name, _)| name == "tag").map(|(_, tag)| tag.trim()).collect();
    if tags.len() > MAX_TAGS {
        return Err(Problem::Malformed(format!("The parameter tag must not be given more than {MAX_TAGS} times.")));
    }
    match tags.iter().find_map(|tag| validate(tag).err()) {
        Some(error) => Err(Problem::Malformed(format!("The parameter tag is invalid: {error}."))),
        None => Ok(tags),
    }
}
