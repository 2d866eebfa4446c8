//! Extractors for the path and the query of a request. An extractor that returns a mailbox has checked that the grant
//! of the request allows the request's method for this mailbox.

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{FromRequestParts, Path, Query};
use axum::http::request::Parts;
use percent_encoding::percent_decode_str;
use restante_auth::{Grant, Scope};
use restante_journal::{SessionId, SessionPage};
use restante_mail::address::{Address, Alphabet};
use restante_mail::duration;
use restante_mail::message::{MessageId, Summary};
use restante_mail::naming::{MailboxName, lowercase_nfc};
use restante_store::{MailboxPage, MessageSelector, Page};
use serde::de::DeserializeOwned;

use crate::response::problem::Problem;
use crate::state::Server;

/// The maximum time that a request can wait. Most proxies allow less.
const MAX_TIMEOUT: Duration = Duration::from_mins(10);
/// The id that stands for the newest message.
pub(crate) const LATEST: &str = "latest";
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
pub(crate) struct RequestGrant(pub(crate) Grant);

/// Requires a grant that allows administration of all mailboxes.
#[derive(Debug)]
pub(crate) struct RequireAdmin;

/// A mailbox, from `{name}`.
#[derive(Debug)]
pub(crate) struct PathMailbox(pub(crate) MailboxName);

/// A delivery address, from `{name}`: the name itself if it is an address, otherwise an address of the mailbox.
#[derive(Debug)]
pub(crate) struct PathAddress(pub(crate) Address);

/// A mailbox, from `{name}`, or all mailboxes on a path without it.
#[derive(Debug)]
pub(crate) struct OptionalPathMailbox(pub(crate) Option<MailboxName>);

/// A message of a mailbox, from `{name}/{id}`.
#[derive(Debug)]
pub(crate) struct PathMessage {
    /// The mailbox.
    pub(crate) mailbox: MailboxName,
    /// The message in it.
    pub(crate) selector: MessageSelector,
}

/// The requested page of a listing, from the query.
#[derive(Debug)]
pub(crate) struct MessagePageQuery(pub(crate) Page);

/// The parameters of a search, from the query.
#[derive(Debug)]
pub(crate) struct SearchParameters {
    /// The query text, not parsed yet.
    pub(crate) text: String,
    /// The mailbox to search, or `None` for all.
    pub(crate) mailbox: Option<MailboxName>,
    /// Only messages with lower ids.
    pub(crate) before: Option<MessageId>,
    /// The maximum number of messages.
    pub(crate) limit: usize,
}

/// The requested page of the list of mailboxes, from the query. Its limit is at least one.
#[derive(Debug)]
pub(crate) struct MailboxPageQuery(pub(crate) MailboxPage);

/// The common prefix of mailbox names, from `?prefix=`. Unknown parameters are refused: one of them could have been
/// meant to restrict a deletion.
#[derive(Debug)]
pub(crate) struct PrefixQuery(pub(crate) String);

/// A session, from `{id}`.
#[derive(Debug)]
pub(crate) struct PathSession(pub(crate) SessionId);

/// The requested page of the list of sessions, from the query. Its limit is at least one.
#[derive(Debug)]
pub(crate) struct SessionPageQuery(pub(crate) SessionPage);

impl<S: Sync> FromRequestParts<S> for RequestGrant {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let (grant, scope) = (request_grant(parts)?, required_scope(parts));
        if grant.allows_somewhere(scope) { Ok(Self(grant.clone())) } else { Err(Problem::MissingScope(scope)) }
    }
}

impl<S: Sync> FromRequestParts<S> for RequireAdmin {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let is_admin = request_grant(parts)?.allows_everywhere(Scope::Admin);
        if is_admin { Ok(Self) } else { Err(Problem::MissingScope(Scope::Admin)) }
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
        let written = Address::parse(&name, Alphabet::Utf8).ok();
        let address = written.or_else(|| server.mailroom.address_of(&mailbox));
        let no_address = || Problem::Malformed("There is no address for a mailbox with this name.".to_owned());
        address.map(Self).ok_or_else(no_address)
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
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        if parts.uri.query().is_none_or(str::is_empty) {
            return Ok(Self(Page::ALL));
        }
        Ok(Self(lenient_query_pairs(parts).map_or(Page::ALL, |pairs| parse_page(&pairs))))
    }
}

impl<S: Sync> FromRequestParts<S> for MailboxPageQuery {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        parse_mailbox_page(&query_pairs(parts)?).map(Self)
    }
}

impl<S: Sync> FromRequestParts<S> for PrefixQuery {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let pairs = query_pairs(parts)?;
        reject_unknown_parameters(&pairs, &["prefix"])?;
        Ok(Self(lowercase_nfc(text_parameter(&pairs, "prefix")?.unwrap_or_default())))
    }
}

impl FromRequestParts<Arc<Server>> for SearchParameters {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, server: &Arc<Server>) -> Result<Self, Problem> {
        let pairs = query_pairs(parts)?;
        let mailbox =
            text_parameter(&pairs, "mailbox")?.map(|name| permitted_mailbox(server, parts, name)).transpose()?;
        Ok(Self {
            text: text_parameter(&pairs, "q")?.unwrap_or_default().to_owned(),
            mailbox,
            before: number_parameter(&pairs, "before")?.map(message_id),
            limit: parse_limit(&pairs, DEFAULT_HITS, MAX_HITS)?,
        })
    }
}

impl FromRequestParts<Arc<Server>> for PathSession {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, server: &Arc<Server>) -> Result<Self, Problem> {
        let id: String = path_values(parts, server).await?;
        id.parse().map(Self).map_err(|_| Problem::NoSuchSession)
    }
}

impl<S: Sync> FromRequestParts<S> for SessionPageQuery {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        parse_session_page(&query_pairs(parts)?).map(Self)
    }
}

impl Server {
    /// Returns the summary of the message in the path.
    pub(crate) async fn find_message(&self, target: &PathMessage) -> Result<Summary, Problem> {
        self.mailroom.find(&target.mailbox, target.selector).await?.ok_or(Problem::NoSuchCopy)
    }
}

/// Returns the parameters of the query.
pub(crate) fn query_pairs(parts: &Parts) -> Result<Vec<(String, String)>, Problem> {
    if is_valid_encoding(parts.uri.query().unwrap_or_default()) {
        lenient_query_pairs(parts)
    } else {
        Err(invalid_query())
    }
}

/// Returns the parameters of the query of version 1 of the API, which accepts any encoding.
pub(crate) fn lenient_query_pairs(parts: &Parts) -> Result<Vec<(String, String)>, Problem> {
    let Query(pairs) = Query::try_from_uri(&parts.uri).map_err(|_| invalid_query())?;
    Ok(pairs)
}

fn invalid_query() -> Problem {
    Problem::Malformed("The query is not percent-encoded UTF-8.".to_owned())
}

/// Returns whether a query is percent-encoded UTF-8. The query parser accepts any text and replaces invalid parts.
fn is_valid_encoding(query: &str) -> bool {
    has_valid_escapes(query) && percent_decode_str(query).decode_utf8().is_ok()
}

/// Returns whether each percent sign is followed by two hexadecimal digits.
pub(crate) fn has_valid_escapes(text: &str) -> bool {
    let is_escape =
        |rest: &str| rest.as_bytes().get(..2).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit));
    text.split('%').skip(1).all(is_escape)
}

/// Refuses parameters other than these. Used if ignoring a parameter could do harm.
pub(crate) fn reject_unknown_parameters(pairs: &[(String, String)], accepted: &[&str]) -> Result<(), Problem> {
    match pairs.iter().find(|(name, _)| !accepted.contains(&name.as_str())) {
        Some((name, _)) => {
            Err(Problem::Malformed(format!("Unknown parameter {name}. Accepted parameters: {}.", accepted.join(", "))))
        }
        None => Ok(()),
    }
}

pub(crate) async fn path_values<T: DeserializeOwned + Send>(
    parts: &mut Parts,
    server: &Arc<Server>,
) -> Result<T, Problem> {
    let Path(values) = Path::from_request_parts(parts, server)
        .await
        .map_err(|_| Problem::Malformed("The path is not UTF-8.".to_owned()))?;
    Ok(values)
}

/// Returns the grant of the request, which the middleware has determined.
pub(crate) fn request_grant(parts: &Parts) -> Result<&Grant, Problem> {
    parts.extensions.get().ok_or_else(|| Problem::Internal("a request without a grant reached an extractor".to_owned()))
}

/// Returns the scope that the method of the request requires.
fn required_scope(parts: &Parts) -> Scope {
    if parts.method.is_safe() { Scope::Read } else { Scope::Write }
}

/// Returns the mailbox of a name or an address. The grant must allow the request's method for it.
pub(crate) fn permitted_mailbox(server: &Server, parts: &Parts, name: &str) -> Result<MailboxName, Problem> {
    let mailbox = server.mailroom.mailbox(name);
    let mailbox = mailbox.map_err(|error| Problem::Malformed(format!("This is not a mailbox name: {error}.")))?;
    let (grant, scope) = (request_grant(parts)?, required_scope(parts));
    if !grant.allows_somewhere(scope) {
        return Err(Problem::MissingScope(scope));
    }
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

/// Returns the page that a query of version 1 requests. Servers that this version is compatible with have no paging and
/// ignore every parameter. Therefore invalid parameters are ignored here.
fn parse_page(pairs: &[(String, String)]) -> Page {
    Page {
        limit: number_parameter(pairs, "limit").unwrap_or_default(),
        before: number_parameter(pairs, "before").unwrap_or_default().map(message_id),
        after: number_parameter(pairs, "after").unwrap_or_default().map(message_id),
    }
}

/// Returns the requested page of the list of mailboxes. The prefix is converted to lower case, like mailbox names. The
/// name in `after` is used as it is: it may come from a list under another naming.
fn parse_mailbox_page(pairs: &[(String, String)]) -> Result<MailboxPage, Problem> {
    let limit = parse_limit(pairs, DEFAULT_MAILBOXES, MAX_MAILBOXES)?;
    let prefix = lowercase_nfc(text_parameter(pairs, "prefix")?.unwrap_or_default());
    Ok(MailboxPage { prefix, after: text_parameter(pairs, "after")?.unwrap_or_default().to_owned(), limit })
}

fn parse_session_page(pairs: &[(String, String)]) -> Result<SessionPage, Problem> {
    let refused = match text_parameter(pairs, "refused")? {
        None | Some("false") => false,
        Some("true") => true,
        Some(_) => return Err(Problem::Malformed("The parameter refused must be true or false.".to_owned())),
    };
    let before = number_parameter::<u64>(pairs, "before")?.map(SessionId::from);
    Ok(SessionPage { before, refused_only: refused, limit: parse_limit(pairs, DEFAULT_SESSIONS, MAX_SESSIONS)? })
}

/// Returns the requested number of items, `default_limit` by default and at most `max_limit`.
pub(crate) fn parse_limit(
    pairs: &[(String, String)],
    default_limit: usize,
    max_limit: usize,
) -> Result<usize, Problem> {
    match number_parameter(pairs, "limit")? {
        Some(0) => Err(Problem::Malformed("The parameter limit must be at least 1.".to_owned())),
        limit => Ok(limit.unwrap_or(default_limit).min(max_limit)),
    }
}

fn message_id(number: u64) -> MessageId {
    number.into()
}

/// Returns the number in the parameter `name`, if it is given.
pub(crate) fn number_parameter<T: FromStr>(pairs: &[(String, String)], name: &str) -> Result<Option<T>, Problem> {
    let Some(value) = text_parameter(pairs, name)? else { return Ok(None) };
    match parse_digits(value) {
        Some(number) => Ok(Some(number)),
        None => Err(Problem::Malformed(format!("The parameter {name} must be a whole number."))),
    }
}

/// Returns the value of the parameter `name`, if it is given. A parameter that is given twice is ambiguous and refused.
/// Unknown parameters are usually ignored.
pub(crate) fn text_parameter<'a>(pairs: &'a [(String, String)], name: &str) -> Result<Option<&'a str>, Problem> {
    let mut values = pairs.iter().filter(|(key, _)| key == name).map(|(_, value)| value.as_str());
    let value = values.next();
    if values.next().is_some() {
        return Err(Problem::Malformed(format!("The parameter {name} is given twice.")));
    }
    Ok(value)
}

pub(crate) fn parse_digits<T: FromStr>(text: &str) -> Option<T> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// Returns the duration in the parameter `name`, if it is given. A number without a unit is in seconds.
pub(crate) fn duration_parameter(pairs: &[(String, String)], name: &str) -> Result<Option<Duration>, Problem> {
    let Some(value) = text_parameter(pairs, name)? else { return Ok(None) };
    match duration::parse_or_seconds(value) {
        Ok(time) if time <= MAX_TIMEOUT => Ok(Some(time)),
        Ok(_) => Err(Problem::Malformed(format!("The parameter {name} must be at most 10m."))),
        Err(accepted) => Err(Problem::Malformed(format!("The parameter {name} {accepted}."))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_query(query: &str) -> Page {
        let pairs = query.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        let pairs: Vec<_> = pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        parse_page(&pairs)
    }

    #[test]
    fn queries_are_percent_encoded_utf8() {
        for valid in ["", "a=b+c", "%C3%bc=%25", "ü"] {
            assert!(is_valid_encoding(valid), "{valid}");
        }
        for invalid in ["%", "a%2", "%zz", "%+1", "%C3", "%ü"] {
            assert!(!is_valid_encoding(invalid), "{invalid}");
        }
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
