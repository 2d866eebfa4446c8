//! Reads the credentials of a request: an `Authorization` header, a session cookie or, where a browser cannot set
//! headers, a token in the query.

use axum::extract::Request;
use axum::http::{HeaderMap, header};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::extractors::query::QueryPairs;

/// The name of the session cookie.
pub const SESSION_COOKIE: &str = "restante";
/// The query parameter with a token. Queries end up in logs and browser histories, so it is accepted only where
/// browsers offer no other way: for WebSockets and event streams.
const TOKEN_PARAMETER: &str = "access_token";
/// The maximum number of session cookies that are checked. There can be one for each parent of the request's path.
const MAX_COOKIES: usize = 4;

/// The credentials of a request.
#[derive(Debug, PartialEq, Eq)]
pub enum Credentials {
    /// None, or of an unsupported kind.
    Missing,
    /// A user name and a password, which may be a token (RFC 7617).
    Basic {
        /// The user name.
        user: String,
        /// The password.
        password: String,
    },
    /// A token (RFC 6750).
    Token(String),
    /// The session cookies of a browser.
    Cookies(Vec<String>),
    /// The id of the key that has signed the request. The handler verifies the signature.
    SigningKey(String),
    /// In the body of the request. The handler checks them with [`check_late_token`].
    ///
    /// [`check_late_token`]: crate::extractors::late_token::check_late_token
    InBody,
}

impl Credentials {
    /// Returns the credentials of a request. Those that a program sets explicitly have precedence over cookies, which
    /// browsers add.
    pub fn from_headers(request: &Request) -> Self {
        if request.headers().contains_key(header::AUTHORIZATION) {
            return parse_authorization(request.headers()).unwrap_or(Self::Missing);
        }
        let cookies: Vec<String> = session_cookies(request.headers()).take(MAX_COOKIES).map(str::to_owned).collect();
        if cookies.is_empty() { Self::Missing } else { Self::Cookies(cookies) }
    }

    /// Returns the credentials in the `Authorization` header, if there is exactly one and its scheme is supported.
    pub fn from_authorization(headers: &HeaderMap) -> Option<Self> {
        parse_authorization(headers)
    }

    /// Returns the credentials of a request that may have a token in its query.
    pub fn from_headers_or_query(request: &Request) -> Self {
        if !request.headers().contains_key(header::AUTHORIZATION)
            && let Ok(query) = QueryPairs::parse_leniently(request.uri())
            && let Some(token) = query.first(TOKEN_PARAMETER)
        {
            return Self::Token(token.to_owned());
        }
        Self::from_headers(request)
    }
}

/// Returns the values of the session cookies.
pub fn session_cookies(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    cookies(headers, SESSION_COOKIE)
}

/// Returns the values of the cookies with this name (RFC 6265 section 4.2).
pub fn cookies<'h>(headers: &'h HeaderMap, name: &'static str) -> impl Iterator<Item = &'h str> {
    let lines = headers.get_all(header::COOKIE).into_iter().filter_map(|line| line.to_str().ok());
    let pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.filter(move |(key, _)| *key == name).map(|(_, value)| value)
}

/// Parses the `Authorization` header if there is exactly one and its scheme is supported.
fn parse_authorization(headers: &HeaderMap) -> Option<Credentials> {
    let mut values = headers.get_all(header::AUTHORIZATION).into_iter();
    let (Some(value), None) = (values.next(), values.next()) else { return None };
    let (scheme, rest) = value.to_str().ok()?.split_once(' ')?;
    let rest = rest.trim();
    if scheme.eq_ignore_ascii_case("bearer") {
        return Some(Credentials::Token(rest.to_owned()));
    }
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let text = String::from_utf8(STANDARD.decode(rest).ok()?).ok()?;
    let (user, password) = text.split_once(':')?;
    Some(Credentials::Basic { user: user.to_owned(), password: password.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::{HeaderName, HeaderValue};

    fn headers(name: &HeaderName, values: &[&'static str]) -> HeaderMap {
        values.iter().map(|value| (name.clone(), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn parses_authorization() {
        let basic =
            |user: &str, password: &str| Some(Credentials::Basic { user: user.into(), password: password.into() });
        let table: &[(&[&'static str], Option<Credentials>)] = &[
            (&["Basic YW5uOm9uZTp0d28="], basic("ann", "one:two")),
            (&["basic  Og=="], basic("", "")),
            (&["Bearer rst_x"], Some(Credentials::Token("rst_x".to_owned()))),
            (&["bearer  rst_x "], Some(Credentials::Token("rst_x".to_owned()))),
            (&["Basic YW5u"], None),
            (&["Basic !"], None),
            (&["Basic /w=="], None),
            (&["Digest x"], None),
            (&["Bearer"], None),
            (&[""], None),
            (&["Bearer a", "Bearer b"], None),
        ];
        for (values, expected) in table {
            assert_eq!(&parse_authorization(&headers(&header::AUTHORIZATION, values)), expected, "{values:?}");
        }
    }

    #[test]
    fn parses_session_cookies() {
        let table: &[(&[&'static str], &[&str])] = &[
            (&[], &[]),
            (&["restante=a"], &["a"]),
            (&["x=y; restante=a;restante=b=c"], &["a", "b=c"]),
            (&["restante=a", "restante=b"], &["a", "b"]),
            (&["Restante=a; xrestante=b; restante; =restante"], &[]),
        ];
        for (values, expected) in table {
            let headers = headers(&header::COOKIE, values);
            assert_eq!(session_cookies(&headers).collect::<Vec<_>>(), *expected, "{values:?}");
        }
    }
}
