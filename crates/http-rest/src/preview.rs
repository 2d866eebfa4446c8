//! The document for the preview frame: the sanitized HTML of a message, or its text if it has no HTML. The policy of
//! the response makes it harmless even if the sanitizer misses something.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use restante_html::{self, ColorScheme, PreviewOptions};
use restante_http_core::extractors::messages::PathCopy;
use restante_http_core::extractors::query::{FromQuery, Parsed, QueryPairs};
use restante_http_core::render::file::{FileHeaders, isolated_response};
use restante_http_core::render::{Representation, Work};
use restante_http_core::response::etag::IfNoneMatch;
use restante_http_core::response::inline_images::embedded_images;
use restante_http_core::response::preview_policy::{POLICY, POLICY_WITH_REMOTE};
use restante_http_core::response::problem::Problem;
use restante_http_core::response::success;
use restante_http_core::server::Server;
use restante_mail::mime::Mime;

/// The appearance of the preview, from the query.
pub(crate) struct PreviewQuery(PreviewOptions);

impl FromQuery for PreviewQuery {
    fn from_query(query: &QueryPairs) -> Result<Self, Problem> {
        let allow_remote = query.choice("remote", [("0", false), ("1", true)])?.unwrap_or(false);
        let scheme = query.choice("scheme", [("light", ColorScheme::Light), ("dark", ColorScheme::Dark)])?;
        Ok(Self(PreviewOptions { allow_remote, scheme }))
    }
}

/// Returns the preview of a message.
pub(crate) async fn preview(
    State(server): State<Arc<Server>>,
    Parsed(PreviewQuery(options)): Parsed<PreviewQuery>,
    PathCopy(summary): PathCopy,
    if_none_match: IfNoneMatch,
) -> Result<Response, Problem> {
    let representation = Representation::new("v2 preview", Work::Html).with_parameter(format!("{options:?}"));
    let headers = FileHeaders {
        content_type: success::HTML,
        disposition: None,
        policy: if options.allow_remote { POLICY_WITH_REMOTE } else { POLICY },
        tag: representation.etag(&server.renderer.etags, &summary),
    };
    if if_none_match.matches(&headers.tag) {
        return Ok(isolated_response(None, headers));
    }
    let document = server.renderer.render(&summary, representation, move |_, mime| Ok(document(mime, options))).await?;
    Ok(isolated_response(Some(Body::from(document)), headers))
}

/// Returns the document. For a message without HTML it shows the text, so that the frame is never empty.
fn document(mime: &Mime, options: PreviewOptions) -> Bytes {
    let html = if mime.has_html() {
        mime.html()
    } else {
        format!("<div style=\"white-space:pre-wrap\">{}</div>", restante_html::linkify(&mime.text()))
    };
    let mut document = restante_html::render_preview(&html, &embedded_images(mime), options);
    document.shrink_to_fit();
    document.into()
}
