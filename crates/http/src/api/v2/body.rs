//! The decoded body of a message, as text that a browser does not render, or as a file.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{FromRequestParts, State};
use axum::http::HeaderValue;
use axum::http::request::Parts;
use axum::response::Response;
use bytes::Bytes;
use restante_mail::message::Summary;
use restante_mail::mime::{Mime, message_filename};

use crate::extractors::download::DownloadParameter;
use crate::extractors::messages::PathCopy;
use crate::extractors::parameters::{query_pairs, text_parameter};
use crate::response::etag::IfNoneMatch;
use crate::response::links::Purpose;
use crate::response::problem::Problem;
use crate::response::success::{HTML, TwoPartBody};
use crate::state::Server;
use crate::state::attachment::{FileHeaders, SANDBOX_POLICY, disposition, isolated_response};
use crate::state::message::{BodyFormat, Representation};

const UTF8_TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
/// In a file, this mark takes precedence over a charset that the HTML declares (HTML Standard, section 13.2.3.1).
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The requested form, from the query.
#[derive(Debug)]
pub(crate) struct FormatParameter(BodyFormat);

impl<S: Sync> FromRequestParts<S> for FormatParameter {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        match text_parameter(&query_pairs(parts)?, "format")? {
            Some("html") => Ok(Self(BodyFormat::Html)),
            Some("text") => Ok(Self(BodyFormat::Text)),
            _ => Err(Problem::Malformed("The parameter format must be html or text.".to_owned())),
        }
    }
}

/// Returns the HTML or the text of a message.
pub(crate) async fn body(
    State(server): State<Arc<Server>>,
    PathCopy(copy): PathCopy,
    FormatParameter(format): FormatParameter,
    DownloadParameter(purpose): DownloadParameter,
    if_none_match: IfNoneMatch,
) -> Result<Response, Problem> {
    let representation = Representation::Body(format);
    let headers = file_headers(&copy, format, purpose, representation.etag(&server.etags, &copy));
    if if_none_match.matches(&headers.tag) {
        return Ok(isolated_response(None, headers));
    }
    let body = server.render(&copy, representation, move |_, mime| decoded_body(mime, format)).await?;
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
