//! The document for the preview frame: the sanitized HTML of a message, or its text if it has no HTML. The policy of
//! the response makes it harmless even if the sanitizer misses something.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use restante_html::{self, ColorScheme, PreviewOptions};
use restante_mail::mime::Mime;

use crate::extractors::messages::PathCopy;
use crate::extractors::parameters::{query_pairs, text_parameter};
use crate::response::etag::IfNoneMatch;
use crate::response::inline_images::EmbeddedImages;
use crate::response::preview_policy::{POLICY, POLICY_WITH_REMOTE};
use crate::response::problem::Problem;
use crate::response::success;
use crate::response::success::NoBody;
use crate::state::Server;
use crate::state::message::Representation;

/// The appearance of the preview, from the query.
#[derive(Debug)]
pub(crate) struct PreviewParameters(PreviewOptions);

impl<S: Sync> FromRequestParts<S> for PreviewParameters {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let pairs = query_pairs(parts)?;
        let malformed = |sentence: &str| Problem::Malformed(sentence.to_owned());
        let remote = match text_parameter(&pairs, "remote")? {
            None | Some("0") => false,
            Some("1") => true,
            Some(_) => return Err(malformed("The parameter remote must be 0 or 1.")),
        };
        let scheme = match text_parameter(&pairs, "scheme")? {
            None => None,
            Some("light") => Some(ColorScheme::Light),
            Some("dark") => Some(ColorScheme::Dark),
            Some(_) => return Err(malformed("The parameter scheme must be light or dark.")),
        };
        Ok(Self(PreviewOptions { allow_remote: remote, scheme }))
    }
}

/// Returns the preview of a message.
pub(crate) async fn preview(
    State(server): State<Arc<Server>>,
    PreviewParameters(options): PreviewParameters,
    PathCopy(summary): PathCopy,
    if_none_match: IfNoneMatch,
) -> Result<Response, Problem> {
    let representation = Representation::Preview(options);
    let tag = representation.etag(&server.etags, &summary);
    if if_none_match.matches(&tag) {
        let mut response = frame_response(Body::new(NoBody), tag, options);
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        return Ok(response);
    }
    let document = server.render(&summary, representation, move |_, mime| Ok(document(mime, options))).await?;
    Ok(frame_response(Body::from(document), tag, options))
}

/// Returns the document. For a message without HTML it shows the text, so that the frame is never empty.
fn document(mime: &Mime, options: PreviewOptions) -> Bytes {
    let html = if mime.has_html() {
        mime.html()
    } else {
        format!("<div style=\"white-space:pre-wrap\">{}</div>", restante_html::linkify(&mime.text()))
    };
    let mut document = restante_html::render_preview(&html, &EmbeddedImages::new(mime), options);
    document.shrink_to_fit();
    document.into()
}

fn frame_response(document: Body, tag: HeaderValue, options: PreviewOptions) -> Response {
    let mut response = Response::new(document);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, success::HTML);
    headers.insert(header::CONTENT_SECURITY_POLICY, if options.allow_remote { POLICY_WITH_REMOTE } else { POLICY });
    headers.insert(header::REFERRER_POLICY, success::NO_REFERRER);
    headers.insert(header::CACHE_CONTROL, success::PRIVATE);
    headers.insert(header::ETAG, tag);
    response
}
