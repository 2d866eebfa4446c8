//! What a request is about: its path and query turned into values, or into the problem they are. Whoever names a mailbox
//! here is allowed to do there what the request's method does.

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{FromRequestParts, Path, Query};
use axum::http::request::Parts;
use restante_auth::{Grant, Scope};
use restante_journal::{SessionId, SessionPage};
use restante_mail::address::{Address, Alphabet};
use restante_mail::message::{MessageId, Summary};
use restante_mail::naming::{MailboxName, canonical_prefix};
use restante_settings::parse_duration;
use restante_store::{MailboxPage, MessageSelector, Page};
use serde::de::DeserializeOwned;

use crate::response::problem::Problem;
use crate::state::Server;

/// The longest time that a request can wait. Most proxies allow less.
const MAX_TIMEOUT: Duration = Duration::from_mins(10);
/// The id that stands for the most recent message.
const LATEST: &str = "latest";
/// How many mailboxes are listed when the client does not say.
const DEFAULT_MAILBOXES: usize = 100;
/// How many messages a search finds when the client does not say, and the most at once.
const DEFAULT_HITS: usize = 50;
const MAX_HITS: usize = 200;
/// The most mailboxes that are listed at once; who wants more asks again.
const MAX_MAILBOXES: usize = 1000;

/// How many sessions are listed when the client does not say.
const DEFAULT_SESSIONS: usize = 50;
/// The most sessions that are listed at once; who wants more asks again.
const MAX_SESSIONS: usize = 200;

/// What the client is allowed, at least somewhere, to do with the request's method. What an answer tells about mailboxes
/// that the path does not name must be among those that the grant reaches.
#[derive(Debug)]
pub(crate) struct RequestGrant(pub(crate) Grant);

/// The client may see what concerns all mailboxes.
#[derive(Debug)]
pub(crate) struct RequireAdmin;

/// A mailbox, from `{name}`.
#[derive(Debug)]
pub(crate) struct PathMailbox(pub(crate) MailboxName);

/// An address to deliver to, from `{name}`: the name itself where it is one, otherwise one that belongs to the mailbox.
#[derive(Debug)]
pub(crate) struct PathAddress(pub(crate) Address);

/// A mailbox, from `{name}`, or all of them on a path without it.
#[derive(Debug)]
pub(crate) struct OptionalPathMailbox(pub(crate) Option<MailboxName>);

/// A message of a mailbox, from `{name}/{id}`.
#[derive(Debug)]
pub(crate) struct PathMessage {
    /// The mailbox.
    pub(crate) mailbox: MailboxName,
    /// The message in it.
    pub(crate) which: MessageSelector,
}

/// An attachment of a message, from `{name}/{id}/{index}/{file}`. The file name is for people and not looked at.
#[derive(Debug)]
pub(crate) struct PathAttachment {
    /// The message.
    pub(crate) message: PathMessage,
    /// Its place in the list of attachments.
    pub(crate) index: usize,
}

/// A part of a message, from `{name}/{id}/parts/{index}`.
#[derive(Debug)]
pub(crate) struct PathPart {
    /// The message.
    pub(crate) message: PathMessage,
    /// Its place in the tree, depth first.
    pub(crate) index: usize,
}

/// The part of a listing that the query asks for.
#[derive(Debug)]
pub(crate) struct MessagePageQuery(pub(crate) Page);

/// What a search looks for, and where, from the query.
#[derive(Debug)]
pub(crate) struct SearchParameters {
    /// The question, as it is written.
    pub(crate) text: String,
    /// The mailbox to look in, if not in all.
    pub(crate) mailbox: Option<MailboxName>,
    /// Only messages with lower ids.
    pub(crate) before: Option<MessageId>,
    /// How many messages are wanted at most.
    pub(crate) limit: usize,
}

/// The part of the list of mailboxes that the query asks for. There is room for at least one.
#[derive(Debug)]
pub(crate) struct MailboxPageQuery(pub(crate) MailboxPage);

/// What the names of the mailboxes begin with that are all meant, from `?prefix=`. No other parameter may be there: one that
/// is not understood could have been meant to spare something.
#[derive(Debug)]
pub(crate) struct PrefixQuery(pub(crate) String);

/// A session of a client that brings mail, from `{id}`.
#[derive(Debug)]
pub(crate) struct PathSession(pub(crate) SessionId);

/// The part of the list of sessions that the query asks for. There is room for at least one.
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
        let is_one = request_grant(parts)?.allows_everywhere(Scope::Admin);
        if is_one { Ok(Self) } else { Err(Problem::MissingScope(Scope::Admin)) }
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
        let no_address = || Problem::Malformed("No address belongs to a mailbox of this name.".to_owned());
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

impl FromRequestParts<Arc<Server>> for PathAttachment {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, server: &Arc<Server>) -> Result<Self, Problem> {
        let (name, id, index, _): (String, String, String, String) = path_values(parts, server).await?;
        let of = permitted_message(server, parts, &name, &id)?;
        let index = parse_digits(&index).ok_or(Problem::NoSuchAttachment)?;
        Ok(Self { message: of, index })
    }
}

impl FromRequestParts<Arc<Server>> for PathPart {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, server: &Arc<Server>) -> Result<Self, Problem> {
        let (name, id, index): (String, String, String) = path_values(parts, server).await?;
        let of = permitted_message(server, parts, &name, &id)?;
        let index = parse_digits(&index).ok_or(Problem::NoSuchPart)?;
        Ok(Self { message: of, index })
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
        Ok(Self(canonical_prefix(text_parameter(&pairs, "prefix")?.unwrap_or_default())))
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
            before: number_parameter(&pairs, "before")?.map(id),
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
    /// The summary of the message that a request is about.
    pub(crate) async fn find_message(&self, target: &PathMessage) -> Result<Summary, Problem> {
        self.mailroom.find(&target.mailbox, target.which).await?.ok_or(Problem::NoSuchMessage)
    }
}

/// The parameters of a query.
pub(crate) fn query_pairs(parts: &Parts) -> Result<Vec<(String, String)>, Problem> {
    if is_valid_encoding(parts.uri.query().unwrap_or_default()) {
        lenient_query_pairs(parts)
    } else {
        Err(invalid_query())
    }
}

/// The same for version 1 of the API, whose clients may say beside it what they like.
pub(crate) fn lenient_query_pairs(parts: &Parts) -> Result<Vec<(String, String)>, Problem> {
    let Query(pairs) = Query::try_from_uri(&parts.uri).map_err(|_| invalid_query())?;
    Ok(pairs)
}

fn invalid_query() -> Problem {
    Problem::Malformed("The query is not UTF-8 in percent-encoding.".to_owned())
}

/// Whether a query is UTF-8 in percent-encoding. What reads it takes anything, and makes something else of it.
fn is_valid_encoding(query: &str) -> bool {
    let mut pieces = query.split('%');
    let mut decoded = pieces.next().unwrap_or_default().as_bytes().to_vec();
    for piece in pieces {
        let byte = piece.get(..2).filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let Some(byte) = byte.and_then(|digits| u8::from_str_radix(digits, 16).ok()) else { return false };
        decoded.push(byte);
        decoded.extend_from_slice(&piece.as_bytes()[2..]);
    }
    std::str::from_utf8(&decoded).is_ok()
}

/// Refuses parameters other than these, where ignoring one could do harm.
pub(crate) fn reject_unknown_parameters(pairs: &[(String, String)], known: &[&str]) -> Result<(), Problem> {
    match pairs.iter().find(|(name, _)| !known.contains(&name.as_str())) {
        Some((name, _)) => {
            Err(Problem::Malformed(format!("There is no parameter {name} here; there are {}.", known.join(", "))))
        }
        None => Ok(()),
    }
}

async fn path_values<T: DeserializeOwned + Send>(parts: &mut Parts, server: &Arc<Server>) -> Result<T, Problem> {
    let Path(values) = Path::from_request_parts(parts, server)
        .await
        .map_err(|_| Problem::Malformed("The path is not UTF-8.".to_owned()))?;
    Ok(values)
}

/// What the client is allowed, as the door has found out.
pub(crate) fn request_grant(parts: &Parts) -> Result<&Grant, Problem> {
    parts.extensions.get().ok_or_else(|| Problem::Internal("a request without a grant got past the door".to_owned()))
}

/// What one must be allowed for a request with this method.
fn required_scope(parts: &Parts) -> Scope {
    if parts.method.is_safe() { Scope::Read } else { Scope::Write }
}

fn permitted_mailbox(server: &Server, parts: &Parts, name: &str) -> Result<MailboxName, Problem> {
    let mailbox = server.mailroom.mailbox(name);
    let mailbox = mailbox.map_err(|error| Problem::Malformed(format!("This names no mailbox: {error}.")))?;
    let (grant, scope) = (request_grant(parts)?, required_scope(parts));
    if !grant.allows_somewhere(scope) {
        return Err(Problem::MissingScope(scope));
    }
    if grant.covers(&mailbox) { Ok(mailbox) } else { Err(Problem::MailboxNotAllowed) }
}

fn permitted_message(server: &Server, parts: &Parts, name: &str, id: &str) -> Result<PathMessage, Problem> {
    let mailbox = permitted_mailbox(server, parts, name)?;
    let which = match id {
        LATEST => MessageSelector::Latest,
        id => MessageSelector::Id(id.parse().map_err(|_| Problem::NoSuchMessage)?),
    };
    Ok(PathMessage { mailbox, which })
}

/// Returns the page that a query of version 1 asks for. Servers that this version is compatible with have no paging and ignore
/// every parameter, so parameters that cannot be used are ignored here.
fn parse_page(pairs: &[(String, String)]) -> Page {
    Page {
        limit: number_parameter(pairs, "limit").unwrap_or_default(),
        before: number_parameter(pairs, "before").unwrap_or_default().map(id),
        after: number_parameter(pairs, "after").unwrap_or_default().map(id),
    }
}

/// Names are lower case, so the beginning of one is made so. The name to go on from is taken as it is: the naming may have
/// been another when it came about.
fn parse_mailbox_page(pairs: &[(String, String)]) -> Result<MailboxPage, Problem> {
    let limit = parse_limit(pairs, DEFAULT_MAILBOXES, MAX_MAILBOXES)?;
    let prefix = canonical_prefix(text_parameter(pairs, "prefix")?.unwrap_or_default());
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

/// How many of something are listed: so many when the client does not say, and never more than the most.
fn parse_limit(pairs: &[(String, String)], usual: usize, most: usize) -> Result<usize, Problem> {
    match number_parameter(pairs, "limit")? {
        Some(0) => Err(Problem::Malformed("The parameter limit must be at least 1.".to_owned())),
        wanted => Ok(wanted.unwrap_or(usual).min(most)),
    }
}

fn id(number: u64) -> MessageId {
    number.into()
}

/// The number of that name, when it is given.
pub(crate) fn number_parameter<T: FromStr>(pairs: &[(String, String)], name: &str) -> Result<Option<T>, Problem> {
    let Some(value) = text_parameter(pairs, name)? else { return Ok(None) };
    match parse_digits(value) {
        Some(number) => Ok(Some(number)),
        None => Err(Problem::Malformed(format!("The parameter {name} must be a whole number."))),
    }
}

/// The value of the parameter of that name, when it is given. Parameters that nobody knows are ignored, as a rule; a known one that is
/// given twice is ambiguous.
pub(crate) fn text_parameter<'a>(pairs: &'a [(String, String)], name: &str) -> Result<Option<&'a str>, Problem> {
    let mut values = pairs.iter().filter(|(key, _)| key == name).map(|(_, value)| value.as_str());
    let value = values.next();
    if values.next().is_some() {
        return Err(Problem::Malformed(format!("The parameter {name} is given twice.")));
    }
    Ok(value)
}

fn parse_digits<T: FromStr>(text: &str) -> Option<T> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// A length of time from the query; a number without a unit is seconds.
pub(crate) fn duration_parameter(pairs: &[(String, String)], name: &str) -> Result<Option<Duration>, Problem> {
    let Some(value) = text_parameter(pairs, name)? else { return Ok(None) };
    let is_number = value.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let seconds = || value.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    match if is_number { seconds() } else { parse_duration(value).ok() } {
        Some(time) if time <= MAX_TIMEOUT => Ok(Some(time)),
        Some(_) => Err(Problem::Malformed(format!("The parameter {name} must be at most 10m."))),
        None => Err(Problem::Malformed(format!(
            "The parameter {name} must be a length of time such as 30s, 1m30s or 500ms, or a number of seconds."
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paging(query: &str) -> Page {
        let pairs = query.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        let pairs: Vec<_> = pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        parse_page(&pairs)
    }

    #[test]
    fn pages() {
        assert_eq!(paging("x=1&Limit=2"), Page::ALL);
        assert_eq!(paging("limit=10"), Page { limit: Some(10), ..Page::ALL });
        assert_eq!(paging("limit=0"), Page { limit: Some(0), ..Page::ALL });
        let both = Page { before: Some(9.into()), after: Some(0.into()), limit: None };
        assert_eq!(paging("after=0&before=9"), both);
        for unusable in [
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
            assert_eq!(paging(unusable), Page::ALL, "{unusable}");
        }
    }
}
