//! Converts the arguments of a script into a request. Unknown options and options of the wrong type are ignored, as
//! scripts expect.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mlua::{Lua, Table, Value};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use restante_http_client::Request;
use restante_mail::duration;

use super::budget::{RequestBudget, RequestError};
use crate::modules::convert::{to_number, to_text_prefix};

/// The maximum number of header fields, and of cookies, of a request.
const MAX_PAIRS: usize = 1000;

/// The maximum length of an invalid value in an error.
const MAX_SHOWN_BYTES: usize = 100;

/// Parses a request. Without the option `timeout` its duration is not limited.
pub(super) fn parse_request(
    budget: &mut RequestBudget<'_>,
    method: &Value,
    url: &Value,
    options: &Value,
) -> Result<Request, RequestError> {
    let method = budget.text(method)?.to_uppercase();
    let url = if url.is_nil() { String::new() } else { budget.text(url)? };
    let mut request = Request { method, url, timeout: Duration::MAX, ..Request::default() };
    let Value::Table(options) = options else { return Ok(request) };

    if let Some(query) = parse_form(budget, &options.raw_get("query")?)? {
        request.url = with_query(&request.url, &String::from_utf8_lossy(&query));
    }
    if let Value::Table(cookies) = options.raw_get("cookies")? {
        request.headers.push(("Cookie".to_owned(), cookie_header(budget, &cookies)?));
    }
    if let Value::String(body) = options.raw_get("body")? {
        request.body = Some(budget.bytes(&body)?);
    } else if let Some(form) = parse_form(budget, &options.raw_get("form")?)? {
        request.headers.push(("Content-Type".to_owned(), "application/x-www-form-urlencoded".to_owned()));
        request.body = Some(form);
    }
    if let Value::Table(auth) = options.raw_get("auth")? {
        request.headers.push(("Authorization".to_owned(), basic_authorization(budget, &auth)?));
    }
    let timeout: Value = options.raw_get("timeout")?;
    if !timeout.is_nil() {
        request.timeout = parse_timeout(budget.lua, &timeout)?;
    }
    // Last, because explicit headers override those that result from other options.
    if let Value::Table(headers) = options.raw_get("headers")? {
        for (name, value) in sorted_pairs(budget, &headers)? {
            request.headers.retain(|(existing, _)| !existing.eq_ignore_ascii_case(&name));
            request.headers.push((name, value));
        }
    }
    Ok(request)
}

/// Returns a string as it is and a table as an encoded form. Returns `None` for other types.
fn parse_form(budget: &mut RequestBudget<'_>, value: &Value) -> Result<Option<Vec<u8>>, RequestError> {
    match value {
        Value::String(text) => budget.bytes(text).map(Some),
        Value::Table(table) => {
            let mut form = String::new();
            for (name, value) in form_fields(budget, table)? {
                let before = form.len();
                if !form.is_empty() {
                    form.push('&');
                }
                push_escaped(&mut form, &name);
                form.push('=');
                push_escaped(&mut form, &value);
                // The fields remain in memory until the whole form is built.
                budget.charge(form.len() - before)?;
            }
            Ok(Some(form.into_bytes()))
        }
        _ => Ok(None),
    }
}

/// Returns the fields of a form, sorted by name. A list is one field for each of its values.
fn form_fields(budget: &mut RequestBudget<'_>, table: &Table) -> Result<Vec<(String, String)>, RequestError> {
    let mut fields = Vec::new();
    for pair in table.pairs::<Value, Value>() {
        let (name, value) = pair?;
        let Value::Table(list) = value else {
            fields.push((budget.text(&name)?, budget.text(&value)?));
            continue;
        };
        for value in list.sequence_values::<Value>() {
            fields.push((budget.text(&name)?, budget.text(&value?)?));
        }
    }
    fields.sort_by(|first, second| first.0.cmp(&second.0));
    Ok(fields)
}

/// Returns the pairs of a table as texts, sorted by name.
fn sorted_pairs(budget: &mut RequestBudget<'_>, table: &Table) -> Result<Vec<(String, String)>, RequestError> {
    let mut pairs = Vec::new();
    for pair in table.pairs::<Value, Value>() {
        let (name, value) = pair?;
        if pairs.len() == MAX_PAIRS {
            return Err(RequestError::Invalid(format!("a request has at most {MAX_PAIRS} header fields and cookies")));
        }
        pairs.push((budget.text(&name)?, budget.text(&value)?));
    }
    pairs.sort_unstable();
    Ok(pairs)
}

/// Appends text in form encoding: a blank becomes a plus, everything but letters, digits and `-._~` is escaped.
fn push_escaped(out: &mut String, text: &str) {
    const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
    for piece in utf8_percent_encode(text, ESCAPED) {
        out.push_str(if piece == "%20" { "+" } else { piece });
    }
}

/// Replaces the query of a URL.
fn with_query(url: &str, query: &str) -> String {
    let (url, fragment) = url.find('#').map_or((url, ""), |position| url.split_at(position));
    let base = url.split_once('?').map_or(url, |(base, _)| base);
    format!("{base}?{query}{fragment}")
}

/// Returns the value of the Cookie field. Characters that would end a cookie early are removed.
fn cookie_header(budget: &mut RequestBudget<'_>, cookies: &Table) -> Result<String, RequestError> {
    let strip = |text: &str| text.replace(|c: char| c == ';' || c.is_control(), "");
    let cookies = sorted_pairs(budget, cookies)?;
    let cookies: Vec<_> = cookies.iter().map(|(name, value)| format!("{}={}", strip(name), strip(value))).collect();
    Ok(cookies.join("; "))
}

fn basic_authorization(budget: &mut RequestBudget<'_>, auth: &Table) -> Result<String, RequestError> {
    let (user, pass): (Value, Value) = (auth.raw_get("user")?, auth.raw_get("pass")?);
    if user.is_nil() || pass.is_nil() {
        return Err(RequestError::Invalid("auth needs the fields user and pass".to_owned()));
    }
    let credentials = format!("{}:{}", budget.text(&user)?, budget.text(&pass)?);
    Ok(format!("Basic {}", STANDARD.encode(credentials)))
}

/// Parses a number of seconds, or a text such as `1m30s`.
fn parse_timeout(lua: &Lua, value: &Value) -> Result<Duration, RequestError> {
    let timeout = match value {
        Value::String(_) => duration::parse(&to_text_prefix(lua, value, MAX_SHOWN_BYTES)?).ok(),
        // A value too large for a duration means no limit.
        other => to_number(other).filter(|seconds| *seconds >= 0.0).map(from_seconds),
    };
    match timeout {
        Some(timeout) => Ok(timeout),
        None => Err(RequestError::Invalid(format!("{:?} is no timeout", to_text_prefix(lua, value, MAX_SHOWN_BYTES)?))),
    }
}

fn from_seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn query_replaces_that_of_the_url() {
        let table = [
            ("http://x/", "http://x/?a=1"),
            ("http://x/?b=2", "http://x/?a=1"),
            ("http://x/?b=2#c?d", "http://x/?a=1#c?d"),
        ];
        for (url, expected) in table {
            assert_eq!(with_query(url, "a=1"), expected);
        }
    }
}
