//! The parameters of the query of a request, and an extractor for values that are read from them alone.

use std::str::FromStr;
use std::time::Duration;

use axum::extract::{FromRequestParts, Query};
use axum::http::Uri;
use axum::http::request::Parts;
use percent_encoding::percent_decode_str;
use restante_mail::duration;

use crate::response::links::Purpose;
use crate::response::problem::Problem;

/// The maximum time that a request can wait. Most proxies allow less.
const MAX_TIMEOUT: Duration = Duration::from_mins(10);

/// A value that is read from the query of a request.
#[derive(Debug)]
pub struct Parsed<T>(pub T);

/// A type whose values are read from a query.
pub trait FromQuery: Sized {
    /// Reads a value. Parameters that it does not need are ignored unless it refuses them.
    fn from_query(query: &QueryPairs) -> Result<Self, Problem>;
}

impl<S: Sync, T: FromQuery> FromRequestParts<S> for Parsed<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        T::from_query(&QueryPairs::parse(parts)?).map(Self)
    }
}

/// Whether a file is to be saved or shown, from `?download=`.
impl FromQuery for Purpose {
    fn from_query(query: &QueryPairs) -> Result<Self, Problem> {
        let purpose = query.choice("download", [("true", Self::Download), ("false", Self::View)])?;
        Ok(purpose.unwrap_or(Self::View))
    }
}

/// The parameters of a query, in their order.
#[derive(Default)]
pub struct QueryPairs(pub Vec<(String, String)>);

impl QueryPairs {
    /// Parses the query of a request.
    pub fn parse(parts: &Parts) -> Result<Self, Problem> {
        let is_valid = is_valid_encoding(parts.uri.query().unwrap_or_default());
        if is_valid { Self::parse_leniently(&parts.uri) } else { Err(invalid_query()) }
    }

    /// Parses a query with any encoding, as in version 1 of the API.
    pub fn parse_leniently(uri: &Uri) -> Result<Self, Problem> {
        let Query(pairs) = Query::try_from_uri(uri).map_err(|_| invalid_query())?;
        Ok(Self(pairs))
    }

    /// Returns the value of the first parameter with this name.
    pub fn first(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Returns whether there is a parameter with this name and this value.
    pub fn has(&self, name: &str, value: &str) -> bool {
        self.0.iter().any(|(key, found)| key == name && found == value)
    }

    /// Returns the value of the parameter `name`, if it is given. A parameter that is given twice is ambiguous and
    /// refused. Unknown parameters are usually ignored.
    pub fn text(&self, name: &str) -> Result<Option<&str>, Problem> {
        if self.0.iter().filter(|(key, _)| key == name).count() > 1 {
            return Err(Problem::Malformed(format!("The parameter {name} is given twice.")));
        }
        Ok(self.first(name))
    }

    /// Returns the number in the parameter `name`, if it is given.
    pub fn number<T: FromStr>(&self, name: &str) -> Result<Option<T>, Problem> {
        let Some(value) = self.text(name)? else { return Ok(None) };
        match parse_digits(value) {
            Some(number) => Ok(Some(number)),
            None => Err(Problem::Malformed(format!("The parameter {name} must be a whole number."))),
        }
    }

    /// Returns the meaning of the parameter `name`, if it is given. It must be one of these two words.
    pub fn choice<T>(&self, name: &str, words: [(&str, T); 2]) -> Result<Option<T>, Problem> {
        let Some(value) = self.text(name)? else { return Ok(None) };
        let [(first, _), (second, _)] = words;
        let sentence = || Problem::Malformed(format!("The parameter {name} must be {first} or {second}."));
        words.into_iter().find(|(word, _)| *word == value).map(|(_, meaning)| Some(meaning)).ok_or_else(sentence)
    }

    /// Returns the requested number of items, `default_limit` by default and at most `max_limit`.
    pub fn limit(&self, default_limit: usize, max_limit: usize) -> Result<usize, Problem> {
        match self.number("limit")? {
            Some(0) => Err(Problem::Malformed("The parameter limit must be at least 1.".to_owned())),
            limit => Ok(limit.unwrap_or(default_limit).min(max_limit)),
        }
    }

    /// Returns the duration in the parameter `name`, if it is given. A number without a unit is in seconds.
    pub fn duration(&self, name: &str) -> Result<Option<Duration>, Problem> {
        let Some(value) = self.text(name)? else { return Ok(None) };
        match duration::parse_or_seconds(value) {
            Ok(time) if time <= MAX_TIMEOUT => Ok(Some(time)),
            Ok(_) => Err(Problem::Malformed(format!("The parameter {name} must be at most 10m."))),
            Err(accepted) => Err(Problem::Malformed(format!("The parameter {name} {accepted}."))),
        }
    }

    /// Refuses parameters other than these. Used if ignoring a parameter could do harm.
    pub fn reject_unknown(&self, accepted: &[&str]) -> Result<(), Problem> {
        let Some((name, _)) = self.0.iter().find(|(name, _)| !accepted.contains(&name.as_str())) else { return Ok(()) };
        let accepted = accepted.join(", ");
        Err(Problem::Malformed(format!("Unknown parameter {name}. Accepted parameters: {accepted}.")))
    }
}

fn invalid_query() -> Problem {
    Problem::Malformed("The query is not percent-encoded UTF-8.".to_owned())
}

/// Returns whether a query is percent-encoded UTF-8. The query parser accepts any text and replaces invalid parts.
fn is_valid_encoding(query: &str) -> bool {
    has_valid_escapes(query) && percent_decode_str(query).decode_utf8().is_ok()
}

/// Returns whether each percent sign is followed by two hexadecimal digits.
pub fn has_valid_escapes(text: &str) -> bool {
    let is_escape =
        |rest: &str| rest.as_bytes().get(..2).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit));
    text.split('%').skip(1).all(is_escape)
}

/// Parses a number without a sign.
pub fn parse_digits<T: FromStr>(text: &str) -> Option<T> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_percent_encoded_utf8() {
        for valid in ["", "a=b+c", "%C3%bc=%25", "ü"] {
            assert!(is_valid_encoding(valid), "{valid}");
        }
        for invalid in ["%", "a%2", "%zz", "%+1", "%C3", "%ü"] {
            assert!(!is_valid_encoding(invalid), "{invalid}");
        }
    }
}
