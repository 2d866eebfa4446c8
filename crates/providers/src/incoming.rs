//! A request that has been read completely, and its body as JSON or as a form.

use axum::extract::Query;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, Uri, header};
use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::Bytes;
use jiff::Timestamp;
use restante_http_core::extractors::parameters::path_value;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::failure::Failure;
use crate::text_budget::TextBudget;
use crate::values::text_of;

/// The maximum number of fields of a form, and of parameters of a query.
pub(crate) const MAX_PAIRS: usize = 10_000;
/// Decodes base64 with or without padding.
const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_padding_mode(DecodePaddingMode::Indifferent)
    .with_decode_allow_trailing_bits(true);
const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LENIENT);
const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT);

/// A request.
#[derive(Debug)]
pub(crate) struct Incoming {
    pub(crate) method: Method,
    /// The URI as the client sees it, with the path of a project.
    pub(crate) uri: Uri,
    pub(crate) headers: HeaderMap,
    /// The names and values of the parameters of the path.
    pub(crate) path: Vec<(String, String)>,
    pub(crate) body: Bytes,
    /// The size that the texts of its messages may have.
    pub(crate) budget: TextBudget,
}

impl Incoming {
    pub(crate) fn new(parts: &Parts, path: Vec<(String, String)>, body: Vec<u8>) -> Self {
        let Parts { method, uri, headers, .. } = parts;
        let (method, uri, headers) = (method.clone(), uri.clone(), headers.clone());
        let budget = TextBudget::new(body.len());
        Self { method, uri, headers, path, body: body.into(), budget }
    }

    /// Returns the value with this name in the path, or an empty text.
    pub(crate) fn path_value(&self, name: &str) -> &str {
        path_value(&self.path, name)
    }

    /// Returns the value of a header field, if it is text.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Returns the first value of a parameter of the query.
    pub(crate) fn query_value(&self, name: &str) -> Option<String> {
        let Query(pairs) = Query::<Vec<(String, String)>>::try_from_uri(&self.uri).ok()?;
        pairs.into_iter().take(MAX_PAIRS).find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// Parses the body as JSON. The content type does not matter, because not all clients send one. serde_json limits the
    /// depth; lists of unlimited length must be of the types in [`crate::values`].
    pub(crate) fn json<'a, T: Deserialize<'a>>(&'a self) -> Result<T, Failure> {
        serde_json::from_slice(&self.body).map_err(Failure::malformed)
    }

    /// Parses the body as a form, `application/x-www-form-urlencoded`.
    pub(crate) fn form(&self) -> Result<Vec<(String, String)>, Failure> {
        let text = str::from_utf8(&self.body).map_err(Failure::malformed)?;
        parse_form(text)
    }

    /// Returns the content type in lower case, without its parameters.
    pub(crate) fn media_type(&self) -> String {
        let value = self.header(header::CONTENT_TYPE.as_str()).unwrap_or_default();
        value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
    }
}

/// Parses a form.
pub(crate) fn parse_form(text: &str) -> Result<Vec<(String, String)>, Failure> {
    if text.split('&').nth(MAX_PAIRS).is_some() {
        return Err(Failure::malformed(format_args!("it has more than {MAX_PAIRS} fields")));
    }
    let decode = |text: &str| -> String {
        let text = text.replace('+', " ");
        percent_encoding::percent_decode_str(&text).decode_utf8_lossy().into_owned()
    };
    let pairs = text.split('&').filter(|pair| !pair.is_empty());
    Ok(pairs.map(|pair| pair.split_once('=').unwrap_or((pair, ""))).map(|(k, v)| (decode(k), decode(v))).collect())
}

/// Returns a time in seconds since 1970, as a number or a text, as a date.
pub(crate) fn unix_time(value: &RawValue) -> String {
    let text = text_of(value);
    let time = text.parse().ok().and_then(|seconds| Timestamp::from_second(seconds).ok());
    time.map_or(text, |time| time.to_string())
}

/// Decodes the base64 in a member of a request. Line breaks are ignored, and padding may be missing.
pub(crate) fn decode_base64(field: &str, text: &str) -> Result<Bytes, Failure> {
    decode_with(&STANDARD, field, text)
}

/// Decodes base64 with the alphabet for URLs (RFC 4648 section 5).
pub(crate) fn decode_base64_url(field: &str, text: &str) -> Result<Bytes, Failure> {
    decode_with(&URL_SAFE, field, text)
}

fn decode_with(engine: &GeneralPurpose, field: &str, text: &str) -> Result<Bytes, Failure> {
    let decoded = if text.contains(|c: char| c.is_ascii_whitespace()) {
        engine.decode(text.replace(|c: char| c.is_ascii_whitespace(), ""))
    } else {
        engine.decode(text)
    };
    decoded.map(Bytes::from).map_err(|_| Failure::invalid(field, "is not base64"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_forms() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let table = [
            ("", vec![]),
            ("a=b&c", vec![pair("a", "b"), pair("c", "")]),
            (
                "to=ann%40x.org&s=a+b%C3%BC&s=%FF",
                vec![pair("to", "ann@x.org"), pair("s", "a bü"), pair("s", "\u{fffd}")],
            ),
        ];
        for (text, expected) in table {
            assert_eq!(parse_form(text).unwrap(), expected, "{text}");
        }
        assert!(parse_form(&"a=b&".repeat(MAX_PAIRS + 1)).is_err());
    }

    #[test]
    fn decodes_base64_leniently() {
        let table = [("aGk=", Some("hi")), ("aGk", Some("hi")), ("aG\r\nk=", Some("hi")), ("", Some("")), ("a*", None)];
        for (text, expected) in table {
            assert_eq!(decode_base64("x", text).ok(), expected.map(|text| Bytes::from(text.as_bytes())), "{text}");
        }
        assert_eq!(decode_base64_url("x", "_-8").unwrap(), Bytes::from_static(&[0xff, 0xef]));
    }
}
