//! Extractors for messages as a whole. They return only the copies that the grant of the request allows for the
//! request's method.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::Method;
use axum::http::request::Parts;
use jiff::Timestamp;
use restante_auth::{Grant, Scope};
use restante_mail::message::{Message, Summary};
use restante_mail::tags::{MAX_TAGS, validate};
use restante_search::Query;
use restante_store::MessageSelector;

use crate::extractors::parameters::{
    LATEST, RequestGrant, number_parameter, parse_digits, parse_limit, path_values, permitted_message, query_pairs,
    reject_unknown_parameters, text_parameter,
};
use crate::response::problem::Problem;
use crate::state::Server;
use crate::state::messages::MessageRange;

/// The default number of messages in a list, and the maximum.
const DEFAULT_MESSAGES: usize = 50;
const MAX_MESSAGES: usize = 200;

/// A message as a whole, from `{id}`. `latest` is not accepted in a DELETE: another message could have become the latest.
#[derive(Debug)]
pub(crate) struct PathWholeMessage {
    /// The grant of the request, which allows the request's method.
    grant: Grant,
    selector: MessageSelector,
}

/// A copy of a message: from `{name}/{id}` or, on a path without `{name}`, the first permitted copy of a message.
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
    /// Selects messages, or `None` for all.
    pub(crate) query: Option<Query>,
}

/// The messages to delete, from the query. Other parameters are refused: one of them could have been meant to restrict
/// the deletion. The number of deleted messages reveals what they contain, so the scope `read` is required too.
#[derive(Debug)]
pub(crate) struct DeletionQuery(pub(crate) Query);

impl FromRequestParts<Arc<Server>> for PathWholeMessage {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, server: &Arc<Server>) -> Result<Self, Problem> {
        let values: Vec<(String, String)> = path_values(parts, server).await?;
        let RequestGrant(grant) = RequestGrant::from_request_parts(parts, server).await?;
        let selector = match path_value(&values, "id") {
            LATEST if parts.method != Method::DELETE => MessageSelector::Latest,
            id => MessageSelector::Id(id.parse().map_err(|_| Problem::NoSuchWholeMessage)?),
        };
        Ok(Self { grant, selector })
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

impl<S: Sync> FromRequestParts<S> for MessageListQuery {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        if parts.uri.query().is_none_or(str::is_empty) {
            return Ok(Self {
                range: MessageRange { before: None, after: None, limit: DEFAULT_MESSAGES },
                query: None,
            });
        }
        let pairs = query_pairs(parts)?;
        let range = MessageRange {
            before: number_parameter::<u64>(&pairs, "before")?.map(Into::into),
            after: number_parameter::<u64>(&pairs, "after")?.map(Into::into),
            limit: parse_limit(&pairs, DEFAULT_MESSAGES, MAX_MESSAGES)?,
        };
        Ok(Self { range, query: parse_message_query(&pairs)? })
    }
}

impl<S: Sync> FromRequestParts<S> for DeletionQuery {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let RequestGrant(grant) = RequestGrant::from_request_parts(parts, state).await?;
        if !grant.allows_somewhere(Scope::Read) {
            return Err(Problem::MissingScope(Scope::Read));
        }
        let pairs = query_pairs(parts)?;
        reject_unknown_parameters(&pairs, &["q", "tag"])?;
        let missing = || {
            let sentence =
                "One of the parameters q and tag is required. DELETE /api/v2/mailboxes deletes all messages.";
            Problem::Malformed(sentence.to_owned())
        };
        parse_message_query(&pairs)?.map(Self).ok_or_else(missing)
    }
}

impl Server {
    /// Returns the message in the path, with the copies that the grant of the request allows.
    pub(crate) async fn find_whole_message(&self, target: &PathWholeMessage) -> Result<Message, Problem> {
        self.permitted_message(&target.grant, target.selector).await
    }
}

async fn copy(parts: &mut Parts, server: &Arc<Server>, values: &[(String, String)]) -> Result<Summary, Problem> {
    if let Some((_, name)) = values.iter().find(|(name, _)| name == "name") {
        let target = permitted_message(server, parts, name, path_value(values, "id"))?;
        return server.find_message(&target).await;
    }
    let target = PathWholeMessage::from_request_parts(parts, server).await?;
    Ok(server.find_whole_message(&target).await?.first().clone())
}

fn path_value<'v>(values: &'v [(String, String)], name: &str) -> &'v str {
    values.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
}

/// Returns the query for the parameters `q` and `tag`, or `None` if there are none. All tags must be present. A blank
/// `q` counts as missing.
fn parse_message_query(pairs: &[(String, String)]) -> Result<Option<Query>, Problem> {
    let now = Timestamp::now();
    let text = text_parameter(pairs, "q")?.filter(|text| !text.trim().is_empty());
    let query = text.map(|text| Query::parse(text, now)).transpose().map_err(Problem::InvalidQuery)?;
    let tags = parse_tags(pairs)?.into_iter().map(Query::for_tag);
    Ok(query.into_iter().chain(tags).reduce(Query::and))
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
