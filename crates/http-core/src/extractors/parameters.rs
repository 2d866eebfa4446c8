//! Extractors for mailboxes, messages and pages of lists, from the path and the query of a request. An extractor that
//! returns a mailbox has checked that the grant of the request allows the request's method for this mailbox.

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use restante_auth::{Grant, Scope};
use restante_journal::{SessionId, SessionPage};
use restante_mail::address::{Address, Alphabet};
use restante_mail::message::{MessageId, Summary};
use restante_mail::naming::{MailboxName, Project, canonical_prefix, split_requested_project};
use restante_store::{MailboxPage, MessageSelector, Page};
use serde::de::DeserializeOwned;

use crate::extractors::query::{FromQuery, QueryPairs};
use crate::response::problem::Problem;
use crate::server::Server;

/// The id that stands for the newest message.
pub const LATEST: &str = "latest";
/// The default number of mailboxes in a list.
const DEFAULT_MAILBOXES: usize = 100;
/// The default number of messages that a search returns, and the maximum.
const DEFAULT_HITS: usize = 50;
const MAX_HITS: usize = 200;
/// The maximum number of mailboxes in a list. Further ones are on the next page.
const MAX_MAILBOXES: usize = 1000;

/// The default number of sessions in a list.
const DEFAULT_SESSIONS: usize = 50;
/// The maximum number of sessions in a list. Further ones are on the next page.
const MAX_SESSIONS: usize = 200;

/// The grant of the request, which allows the request's method for at least one mailbox. A response that contains
/// mailboxes not named in the path must be limited to those that the grant allows.
#[derive(Debug)]
pub struct RequestGrant(pub Grant);

/// Requires a grant that allows administration of all mailboxes.
#[derive(Debug)]
pub struct RequireAdmin;

/// A mailbox, from `{name}`.
#[derive(Debug)]
pub struct PathMailbox(pub MailboxName);

/// A delivery address, from `{name}`: the name itself if it is an address, otherwise an address of the mailbox.
#[derive(Debug)]
pub struct PathAddress {
    /// The address.
    pub address: Address,
    /// The project of the mailbox, if it is in one.
    pub project: Option<Project>,
}

/// A mailbox, from `{name}`, or all mailboxes on a path without it.
#[derive(Debug)]
pub struct OptionalPathMailbox(pub Option<MailboxName>);

/// A message of a mailbox, from `{name}/{id}`.
#[derive(Debug)]
pub struct PathMessage {
    /// The mailbox.
    pub mailbox: MailboxName,
    /// The message in it.
    pub selector: MessageSelector,
}

/// The requested page of a listing of version 1, from the query. Servers that this version is compatible with have no
/// paging and ignore every parameter. Therefore invalid parameters are ignored here.
#[derive(Debug)]
pub struct MessagePageQuery(pub Page);

/// The common prefix of mailbox names, from `?prefix=`. Unknown parameters are refused: one of them could have been
/// meant to restrict a deletion.
#[derive(Debug)]
pub struct MailboxPrefix(pub String);

/// The parameters of a search, from the query.
#[derive(Debug)]
pub struct SearchParameters {
    /// The query text, not parsed yet.
    pub text: String,
    /// The mailbox to search, or `None` for all.
    pub mailbox: Option<MailboxName>,
    /// Only messages with lower ids.
    pub before: Option<MessageId>,
    /// The maximum number of messages.
    pub limit: usize,
}

/// A tag, from `{tag}`.
#[derive(Debug)]
pub struct PathTag(pub String);

/// A session, from `{id}`.
#[derive(Debug)]
pub struct PathSession(pub SessionId);

impl<S: Sync> FromRequestParts<S> for RequestGrant {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let grant = request_grant(parts)?;
        require_scope(grant, required_scope(parts))?;
        Ok(Self(grant.clone()))
    }
}

impl<S: Sync> FromRequestParts<S> for RequireAdmin {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let grant = request_grant(parts)?;
        require_scope(grant, Scope::Admin)?;
        if grant.allows_everywhere(Scope::Admin) { Ok(Self) } else { Err(Problem::ScopeNotEverywhere(Scope::Admin)) }
    }
}

impl FromRequestParts<Arc<Server>> for PathMailbox {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, server: &Arc<Server>) -> Result<Self, Problem> {
        let name: String = path_values(parts, server).await?;
        permitted_mailbox(server, parts, &name).map(Self)
    }
}

impl FromRequestParts<Arc<Server>> for PathAddress {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, server: &Arc<Server>) -> Result<Self, Problem> {
        let name: String = path_values(parts, server).await?;
        let mailbox = permitted_mailbox(server, parts, &name)?;
        let written = Address::parse(split_requested_project(&name).1, Alphabet::Utf8).ok();
        let address = written.or_else(|| server.mailroom.address_of(&mailbox));
        let no_address = || Problem::Malformed("There is no address for a mailbox with this name.".to_owned());
        Ok(Self { address: address.ok_or_else(no_address)?, project: mailbox.project() })
    }
}

impl FromRequestParts<Arc<Server>> for OptionalPathMailbox {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, server: &Arc<Server>) -> Result<Self, Problem> {
        let names: Vec<(String, String)> = path_values(parts, server).await?;
        let Some((_, name)) = names.first() else {
            RequestGrant::from_request_parts(parts, server).await?;
            return Ok(Self(None));
        };
        permitted_mailbox(server, parts, name).map(|mailbox| Self(Some(mailbox)))
    }
}

impl FromRequestParts<Arc<Server>> for PathMessage {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, server: &Arc<Server>) -> Result<Self, Problem> {
        let (name, id): (String, String) = path_values(parts, server).await?;
        permitted_message(server, parts, &name, &id)
    }
}

impl<S: Sync> FromRequestParts<S> for MessagePageQuery {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        if parts.uri.query().is_none_or(str::is_empty) {
            return Ok(Self(Page::ALL));
        }
        Ok(Self(QueryPairs::parse_leniently(&parts.uri).map_or(Page::ALL, |query| parse_page(&query))))
    }
}

/// A page of the list of mailboxes. Its limit is at least one. The prefix is converted like mailbox names.
/// The name in `after` is used as it is: it may come from a list under another naming.
impl FromQuery for MailboxPage {
    fn from_query(query: &QueryPairs) -> Result<Self, Problem> {
        let limit = query.limit(DEFAULT_MAILBOXES, MAX_MAILBOXES)?;
        let prefix = canonical_prefix(query.text("prefix")?.unwrap_or_default());
        Ok(Self { prefix, after: query.text("after")?.unwrap_or_default().to_owned(), limit })
    }
}

impl FromQuery for MailboxPrefix {
    fn from_query(query: &QueryPairs) -> Result<Self, Problem> {
        query.reject_unknown(&["prefix"])?;
        Ok(Self(canonical_prefix(query.text("prefix")?.unwrap_or_default())))
    }
}

/// A page of the list of sessions. Its limit is at least one.
impl FromQuery for SessionPage {
    fn from_query(query: &QueryPairs) -> Result<Self, Problem> {
        let refused_only = query.choice("refused", [("true", true), ("false", false)])?.unwrap_or(false);
        let before = query.number::<u64>("before")?.map(SessionId::from);
        Ok(Self { before, refused_only, limit: query.limit(DEFAULT_SESSIONS, MAX_SESSIONS)? })
    }
}

impl FromRequestParts<Arc<Server>> for SearchParameters {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, server: &Arc<Server>) -> Result<Self, Problem> {
        let query = QueryPairs::parse(parts)?;
        Ok(Self {
            mailbox: mailbox_parameter(server, parts, &query)?,
            text: query.text("q")?.unwrap_or_default().to_owned(),
            before: query.number("before")?.map(message_id),
            limit: query.limit(DEFAULT_HITS, MAX_HITS)?,
        })
    }
}

impl FromRequestParts<Arc<Server>> for PathTag {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, server: &Arc<Server>) -> Result<Self, Problem> {
        path_values(parts, server).await.map(Self)
    }
}

impl FromRequestParts<Arc<Server>> for PathSession {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, server: &Arc<Server>) -> Result<Self, Problem> {
        let id: String = path_values(parts, server).await?;
        id.parse().map(Self).map_err(|_| Problem::NoSuchSession)
    }
}

impl PathMessage {
    /// Returns the summary of the message.
    pub async fn find(&self, server: &Server) -> Result<Summary, Problem> {
        server.mailroom.find(&self.mailbox, self.selector).await?.ok_or(Problem::NoSuchCopy)
    }
}

/// Returns the values of the parameters of the path.
pub async fn path_values<T: DeserializeOwned + Send>(parts: &mut Parts, server: &Arc<Server>) -> Result<T, Problem> {
    let Path(values) = Path::from_request_parts(parts, server)
        .await
        .map_err(|_| Problem::Malformed("The path is not UTF-8.".to_owned()))?;
    Ok(values)
}

/// Returns the value with this name in the path, or an empty text.
pub fn path_value<'v>(values: &'v [(String, String)], name: &str) -> &'v str {
    values.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
}

/// Returns the grant of the request, which the middleware has determined.
pub fn request_grant(parts: &Parts) -> Result<&Grant, Problem> {
    parts.extensions.get().ok_or_else(|| Problem::Internal("a request without a grant reached an extractor".to_owned()))
}

/// Fails if the grant does not include this scope for any mailbox.
pub fn require_scope(grant: &Grant, scope: Scope) -> Result<(), Problem> {
    if grant.allows_somewhere(scope) { Ok(()) } else { Err(Problem::MissingScope(scope)) }
}

/// Returns the scope that the method of the request requires.
fn required_scope(parts: &Parts) -> Scope {
    if parts.method.is_safe() { Scope::Read } else { Scope::Write }
}

/// Returns the mailbox of a name or an address: one in the home of the grant, unless it names another project. The grant
/// must allow the request's method for it.
pub fn permitted_mailbox(server: &Server, parts: &Parts, name: &str) -> Result<MailboxName, Problem> {
    let grant = request_grant(parts)?;
    let mailbox = server.mailroom.mailbox_in(grant.home(), name);
    let mailbox = mailbox.map_err(|error| Problem::Malformed(format!("This is not a mailbox name: {error}.")))?;
    require_scope(grant, required_scope(parts))?;
    if grant.covers(&mailbox) { Ok(mailbox) } else { Err(Problem::MailboxNotAllowed) }
}

pub(crate) fn permitted_message(server: &Server, parts: &Parts, name: &str, id: &str) -> Result<PathMessage, Problem> {
    let mailbox = permitted_mailbox(server, parts, name)?;
    let selector = match id {
        LATEST => MessageSelector::Latest,
        id => MessageSelector::Id(id.parse().map_err(|_| Problem::NoSuchCopy)?),
    };
    Ok(PathMessage { mailbox, selector })
}

/// Returns the mailbox in the parameter `mailbox`, if it is given.
pub fn mailbox_parameter(server: &Server, parts: &Parts, query: &QueryPairs) -> Result<Option<MailboxName>, Problem> {
    query.text("mailbox")?.map(|name| permitted_mailbox(server, parts, name)).transpose()
}

/// Returns the page that a query of version 1 requests.
fn parse_page(query: &QueryPairs) -> Page {
    Page {
        limit: query.number("limit").unwrap_or_default(),
        before: query.number("before").unwrap_or_default().map(message_id),
        after: query.number("after").unwrap_or_default().map(message_id),
    }
}

fn message_id(number: u64) -> MessageId {
    number.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_query(query: &str) -> Page {
        let pairs = query.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        parse_page(&QueryPairs(pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()))
    }

    #[test]
    fn parses_page() {
        assert_eq!(parse_query("x=1&Limit=2"), Page::ALL);
        assert_eq!(parse_query("limit=10"), Page { limit: Some(10), ..Page::ALL });
        assert_eq!(parse_query("limit=0"), Page { limit: Some(0), ..Page::ALL });
        let both = Page { before: Some(9.into()), after: Some(0.into()), limit: None };
        assert_eq!(parse_query("after=0&before=9"), both);
        for invalid in [
            "limit=",
            "limit",
            "limit=-1",
            "limit=+1",
            "limit=1.5",
            "limit=x",
            "limit= 1",
            "before=latest",
            "limit=99999999999999999999",
            "after=1&after=2",
        ] {
            assert_eq!(parse_query(invalid), Page::ALL, "{invalid}");
        }
    }
}
