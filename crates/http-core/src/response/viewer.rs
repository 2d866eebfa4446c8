//! Whether a browser shows the response as a document, or a program reads it.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};

/// The header in which browsers send how they use the response.
pub const FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");
/// The header fields that decide about the viewer.
pub const VARY: HeaderValue = HeaderValue::from_static("sec-fetch-dest, user-agent, accept");

/// What reads the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Viewer {
    /// A browser that shows the response as a document.
    Browser,
    /// A program, a script of a page, or a browser that shows the response as an image.
    Program,
}

impl Viewer {
    /// Returns what reads the response to a request with these headers.
    pub fn of(headers: &HeaderMap) -> Self {
        let is_document = match headers.get(FETCH_DEST).map(HeaderValue::as_bytes) {
            Some(destination) => matches!(destination, b"document" | b"iframe" | b"frame" | b"embed" | b"object"),
            // Browsers send the header only over trustworthy connections.
            None => is_browser(headers) && accepts_html(headers),
        };
        if is_document { Self::Browser } else { Self::Program }
    }
}

impl<S: Sync> FromRequestParts<S> for Viewer {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::of(&parts.headers))
    }
}

/// Returns whether a browser sends the request. The user agent of all of them begins with `Mozilla/`.
pub fn is_browser(headers: &HeaderMap) -> bool {
    headers.get(header::USER_AGENT).is_some_and(|agent| agent.as_bytes().starts_with(b"Mozilla/"))
}

/// Returns whether the client accepts HTML by name.
pub fn accepts_html(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    values.any(|value| value.split([',', ';']).any(|kind| kind.trim().eq_ignore_ascii_case("text/html")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn browsers_are_recognized_with_and_without_fetch_metadata() {
        let agent = ("user-agent", "Mozilla/5.0");
        let accept = ("accept", "text/html,application/xhtml+xml,*/*;q=0.8");
        let table: [(&[(&str, &str)], Viewer); 9] = [
            (&[], Viewer::Program),
            (&[("accept", "*/*")], Viewer::Program),
            (&[("sec-fetch-dest", "document")], Viewer::Browser),
            (&[("sec-fetch-dest", "iframe"), agent], Viewer::Browser),
            (&[("sec-fetch-dest", "empty"), agent, accept], Viewer::Program),
            (&[("sec-fetch-dest", "image"), agent, accept], Viewer::Program),
            (&[agent, accept], Viewer::Browser),
            (&[agent, ("accept", "image/png,*/*")], Viewer::Program),
            (&[("user-agent", "Java/21"), ("accept", "text/html, image/gif, */*; q=.2")], Viewer::Program),
        ];
        for (fields, expected) in table {
            let fields =
                fields.iter().map(|&(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
            let headers: HeaderMap = fields.collect();
            assert_eq!(Viewer::of(&headers), expected, "{headers:?}");
        }
    }
}
