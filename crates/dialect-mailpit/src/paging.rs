//! The parameters `start`, `limit` and `before` of lists. Invalid values are ignored, as Mailpit does.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use restante_http_core::extractors::query::QueryPairs;
use restante_mail::message::MessageId;

use crate::error::Error;
use crate::query::date;

/// The default number of messages in a list.
const DEFAULT_LIMIT: usize = 50;
/// The maximum number of messages in a list. Mailpit has no maximum.
pub(crate) const MAX_LIMIT: usize = 1000;
/// The maximum offset. Older messages are listed with `before`. Mailpit has no maximum.
const MAX_START: usize = 100_000;

/// The requested page of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Paging {
    /// The number of messages before the page, as the response repeats it.
    pub(crate) start: usize,
    /// The maximum number of messages. Zero requests all messages, and `start` is ignored then.
    limit: usize,
    /// Only messages that were received before this time.
    pub(crate) before: Option<Timestamp>,
}

impl<S: Sync> FromRequestParts<S> for Paging {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Error> {
        Self::new(&QueryPairs::parse_leniently(&parts.uri)?)
    }
}

impl Paging {
    fn new(query: &QueryPairs) -> Result<Self, Error> {
        let number = |name: &str| query.first(name).and_then(|text| text.parse().ok());
        let start = number("start").unwrap_or(0);
        if start > MAX_START {
            return Err(Error::text(format!("start must be at most {MAX_START}; use before to list older messages")));
        }
        let limit = number("limit").unwrap_or(DEFAULT_LIMIT);
        Ok(Self { start, limit, before: query.first("before").and_then(|text| date::parse(text, &TimeZone::system())) })
    }

    /// Returns the number of messages to skip.
    pub(crate) fn offset(&self) -> usize {
        if self.limit == 0 { 0 } else { self.start }
    }

    /// Returns the maximum number of messages.
    pub(crate) fn limit(&self) -> usize {
        if self.limit == 0 { MAX_LIMIT } else { self.limit.min(MAX_LIMIT) }
    }

    /// Returns whether the request has a limit of zero.
    pub(crate) fn has_zero_limit(&self) -> bool {
        self.limit == 0
    }

    /// Returns the id below which messages were received before the time of `before`. An id is the microsecond of receipt.
    pub(crate) fn before_id(&self) -> Option<MessageId> {
        self.before.map(|time| u64::try_from(time.as_millisecond()).unwrap_or(0).saturating_mul(1000).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(query: &[(&str, &str)]) -> Result<Paging, Error> {
        let pairs = query.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Paging::new(&QueryPairs(pairs.collect()))
    }

    #[test]
    fn invalid_values_are_ignored() {
        type Row = (&'static [(&'static str, &'static str)], (usize, usize, usize));
        let table: [Row; 8] = [
            (&[], (0, 0, 50)),
            (&[("start", "10"), ("limit", "5")], (10, 10, 5)),
            (&[("start", "-1"), ("limit", "-1")], (0, 0, 50)),
            (&[("start", "x"), ("limit", "1.5")], (0, 0, 50)),
            (&[("start", "7"), ("limit", "0")], (7, 0, MAX_LIMIT)),
            (&[("limit", "1000000")], (0, 0, MAX_LIMIT)),
            (&[("limit", "2"), ("limit", "3")], (0, 0, 2)),
            (&[("start", "")], (0, 0, 50)),
        ];
        for (query, expected) in table {
            let paging = parse(query).unwrap();
            assert_eq!((paging.start, paging.offset(), paging.limit()), expected, "{query:?}");
        }
        assert!(parse(&[("start", "100001")]).is_err());
    }

    #[test]
    fn times_are_parsed() {
        let table = [
            ("2026-11-14T23:42:50.123456Z", Some(1_794_699_770_123_000)),
            ("2026-11-14 23:42:50 UTC", Some(1_794_699_770_000_000)),
            ("1794699770123", Some(1_794_699_770_123_000)),
            ("1960-01-01", Some(0)),
            ("yesterday", None),
            ("", None),
        ];
        for (text, id) in table {
            let found = parse(&[("before", text)]).unwrap().before_id();
            assert_eq!(found.map(MessageId::number), id, "{text}");
        }
    }
}
