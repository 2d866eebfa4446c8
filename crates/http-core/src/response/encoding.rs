//! Content codings: which of them a client accepts, and which it prefers (RFC 9110 section 12.5.3).
//!
//! Only embedded files have several codings, and the build script compresses them. `tower_http` does not replace this:
//! its choice of a coding is private, `CompressionLayer` compresses at run time, and `ServeDir` derives entity tags
//! from modification times and ignores `*`.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};

/// The supported content codings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    /// RFC 7932.
    Brotli,
    /// RFC 1952.
    Gzip,
    /// No coding.
    Identity,
}

impl Coding {
    /// Returns the value of `Content-Encoding`, or `None` if the header is left out.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Self::Brotli => Some("br"),
            Self::Gzip => Some("gzip"),
            Self::Identity => None,
        }
    }
}

/// The preference of a client for a coding, in thousandths. 0 means not acceptable.
type Weight = u16;

/// The codings that a client accepts, with their weights: `Accept-Encoding`. The names are in lower case. `*` stands for all
/// codings that the client does not name.
#[derive(Debug)]
pub struct AcceptEncoding(Vec<(String, Weight)>);

impl AcceptEncoding {
    fn from_headers(headers: &HeaderMap) -> Self {
        let parse = |element: &str| {
            let (name, parameter) = element.split_once(';').unwrap_or((element, "q=1"));
            let name = match name.trim().to_ascii_lowercase() {
                // An old name of gzip (RFC 9110 section 8.4.1.3).
                name if name == "x-gzip" => "gzip".to_owned(),
                name => name,
            };
            Some((name, parse_weight(parameter.trim())?))
        };
        let lines = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|line| line.to_str().ok());
        Self(lines.flat_map(|line| line.split(',')).filter_map(parse).collect())
    }

    /// Returns the form whose coding the client prefers. Among equals, compressed forms come first, in their order. If
    /// none is acceptable, the header is ignored (RFC 9110 section 12.4.1), and the plain form is returned.
    pub fn best<'f, T>(&self, plain: &'f T, smaller: &'f [T], coding: impl Fn(&T) -> Coding) -> &'f T {
        let weight = |form: &T| self.weight(coding(form));
        // `max_by_key` returns the last of several equal elements.
        let best = smaller.iter().rev().max_by_key(|form| weight(form));
        best.filter(|best| weight(best) > 0 && weight(best) >= weight(plain)).unwrap_or(plain)
    }

    fn weight(&self, coding: Coding) -> Weight {
        // The last element with a name counts.
        let find = |name: &str| self.0.iter().rev().find(|(found, _)| found == name).map(|(_, weight)| *weight);
        // `identity` is acceptable unless it is excluded, but a coding that the client names is better.
        let (name, default) = coding.name().map_or(("identity", 1), |name| (name, 0));
        find(name).or_else(|| find("*")).unwrap_or(default)
    }
}

/// Parses `q=` and a number from 0 to 1 with at most three decimals (RFC 9110 section 12.4.2).
fn parse_weight(parameter: &str) -> Option<Weight> {
    let value = parameter.strip_prefix("q=").or_else(|| parameter.strip_prefix("Q="))?;
    let (whole, decimals) = value.split_once('.').unwrap_or((value, ""));
    if decimals.len() > 3 || !decimals.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let thousandths = format!("{decimals:0<3}").parse().ok()?;
    match whole {
        "0" => Some(thousandths),
        "1" if thousandths == 0 => Some(1000),
        _ => None,
    }
}

impl<S: Sync> FromRequestParts<S> for AcceptEncoding {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::from_headers(&parts.headers))
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn best(lines: &[&'static str], smaller: &[Coding]) -> &'static str {
        let lines = lines.iter().map(|&line| (header::ACCEPT_ENCODING, HeaderValue::from_static(line)));
        let accepted = AcceptEncoding::from_headers(&lines.collect());
        accepted.best(&Coding::Identity, smaller, |coding| *coding).name().unwrap_or("identity")
    }

    #[test]
    fn selects_preferred_coding() {
        let table: [(&[&'static str], &str); 27] = [
            (&[], "identity"),
            (&[""], "identity"),
            (&["gzip, deflate, br, zstd"], "br"),
            (&["gzip, deflate"], "gzip"),
            (&["x-gzip"], "gzip"),
            (&["GZip;Q=1"], "gzip"),
            (&["gzip", "br"], "br"),
            (&["zstd"], "identity"),
            (&["identity"], "identity"),
            (&["*"], "br"),
            (&["br;q=0, *"], "gzip"),
            (&["*;q=0.1, gzip;q=0.2"], "gzip"),
            (&["br;q=0.5, gzip;q=0.8"], "gzip"),
            (&["br;q=0.8, gzip;q=0.8"], "br"),
            (&["gzip ; q=0.001"], "gzip"),
            (&["identity;q=0.5, gzip;q=0.4"], "identity"),
            (&["identity, gzip;q=0.9"], "identity"),
            (&["identity;q=0, gzip"], "gzip"),
            (&["*;q=0, gzip"], "gzip"),
            (&["br;q=0, gzip;q=0.000"], "identity"),
            // No supported coding is acceptable.
            (&["identity;q=0"], "identity"),
            (&["*;q=0"], "identity"),
            (&["identity;q=0, zstd"], "identity"),
            // Elements that cannot be parsed are ignored.
            (&["br;q=2, gzip"], "gzip"),
            (&["br;q=0.1234, gzip;q=0.1"], "gzip"),
            (&["br;q=-1, gzip;q=x, ;;,=,"], "identity"),
            (&["br;q=1.001"], "identity"),
        ];
        for (lines, expected) in table {
            assert_eq!(best(lines, &[Coding::Brotli, Coding::Gzip]), expected, "{lines:?}");
        }
    }

    #[test]
    fn selects_among_available_codings() {
        assert_eq!(best(&["br, gzip"], &[Coding::Gzip]), "gzip");
        assert_eq!(best(&["br, gzip"], &[]), "identity");
        assert_eq!(best(&["identity;q=0, br"], &[Coding::Gzip]), "identity");
    }
}
