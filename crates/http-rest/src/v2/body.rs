//! The decoded body of a message, as text that a browser does not render, or as a file.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderValue;
use axum::response::Response;
use bytes::Bytes;
use restante_http_core::extractors::messages::PathCopy;
use restante_http_core::extractors::query::{FromQuery, Parsed, QueryPairs};
use restante_http_core::render::file::{FileHeaders, SANDBOX_POLICY, disposition, isolated_response};
use restante_http_core::render::{Representation, Work};
use restante_http_core::response::etag::IfNoneMatch;
use restante_http_core::response::links::Purpose;
use restante_http_core::response::problem::Problem;
use restante_http_core::response::success::{HTML, TwoPartBody, UTF8_TEXT};
use restante_http_core::server::Server;
use restante_mail::message::Summary;
use restante_mail::mime::{Mime, message_filename};

/// In a file, this mark takes precedence over a charset that the HTML declares (HTML Standard, section 13.2.3.1).
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The forms of the body of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyFormat {
    /// Its HTML, as it was sent.
    Html,
    /// Its text, made from the HTML if there is no other.
    Text,
}

impl BodyFormat {
    fn name(self) -> &'static str {
        match self {
            Self::Html => "html",
            Self::Text => "text",
        }
    }
}

/// The requested form, from `?format=`.
impl FromQuery for BodyFormat {
    fn from_query(query: &QueryPairs) -> Result<Self, Problem> {
        let format = query.choice("format", [("html", Self::Html), ("text", Self::Text)])?;
        format.ok_or_else(|| Problem::Malformed("The parameter format must be html or text.".to_owned()))
    }
}

/// Returns the HTML or the text of a message.
pub(crate) async fn body(
    State(server): State<Arc<Server>>,
    PathCopy(copy): PathCopy,
    Parsed(format): Parsed<BodyFormat>,
    Parsed(purpose): Parsed<Purpose>,
    if_none_match: IfNoneMatch,
) -> Result<Response, Problem> {
    let representation = Representation::new("v2 body", Work::Extract).with_parameter(format.name());
    let headers = file_headers(&copy, format, purpose, representation.etag(&server.renderer.etags, &copy));
    if if_none_match.matches(&headers.tag) {
        return Ok(isolated_response(None, headers));
    }
    let body = server.renderer.render(&copy, representation, move |_, mime| decoded_body(mime, format)).await?;
    let needs_mark = matches!((format, purpose), (BodyFormat::Html, Purpose::Download)) && !body.is_ascii();
    let mark = Bytes::from_static(if needs_mark { BYTE_ORDER_MARK } else { b"" });
    Ok(isolated_response(Some(Body::new(TwoPartBody { first: mark, second: body })), headers))
}

fn decoded_body(mime: &Mime, format: BodyFormat) -> Result<Bytes, Problem> {
    let body = match format {
        BodyFormat::Html if mime.has_html() => mime.html(),
        BodyFormat::Html => return Err(Problem::NoHtml),
        BodyFormat::Text => mime.text(),
    };
    Ok(body.into())
}

/// Returns the headers of the response. HTML to show has the type of a text, so that browsers do not render it.
fn file_headers(summary: &Summary, format: BodyFormat, purpose: Purpose, tag: HeaderValue) -> FileHeaders {
    let (content_type, extension) = match (format, purpose) {
        (_, Purpose::View) => {
            return FileHeaders { content_type: UTF8_TEXT, disposition: None, policy: SANDBOX_POLICY, tag };
        }
        (BodyFormat::Html, Purpose::Download) => (HTML, "html"),
        (BodyFormat::Text, Purpose::Download) => (UTF8_TEXT, "txt"),
    };
    let filename = message_filename(summary.headline.subject(), extension);
    FileHeaders { content_type, disposition: Some(disposition(purpose, &filename)), policy: SANDBOX_POLICY, tag }
}
