//! The body of a message as a page of its own, which tests open in a browser or read.
//!
//! The HTML is that of the sender. So the response has the same policy as our own preview: its own origin, no scripts, no
//! forms, nothing from the network. A program gets links to the images of the message. A browser gets the images in the
//! document, because a document with its own origin cannot load them from this server.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::header;
use axum::http::request::Parts;
use bytes::Bytes;
use restante_auth::Grant;
use restante_http_core::extractors::parameters::{LATEST, RequestGrant};
use restante_http_core::extractors::query::QueryPairs;
use restante_http_core::extractors::request_context::project_path;
use restante_http_core::render::file::{FileHeaders, SANDBOX_POLICY, isolated_response};
use restante_http_core::render::{Representation, Work};
use restante_http_core::response::etag::IfNoneMatch;
use restante_http_core::response::inert_html::disarm;
use restante_http_core::response::inline_images::embedded_images;
use restante_http_core::response::preview_policy;
use restante_http_core::response::problem::Problem;
use restante_http_core::response::success;
use restante_http_core::response::viewer::{self, Viewer};
use restante_http_core::server::Server;
use restante_mail::message::Summary;
use restante_mail::mime::Mime;

use crate::content;
use crate::error::{Error, HandlerResult};
use crate::target::{MESSAGE_NOT_FOUND, TargetMessage};
use crate::view_html::{PartLinks, link_parts, open_new_windows};

/// The text of the status 404 for a message without HTML.
const NO_HTML: &str = "This message does not contain a HTML part";

/// Returns the HTML (`{id}.html`) or the text (`{id}.txt`) of a message and marks it as read, or redirects to its page in
/// the web interface (`{id}`).
pub(crate) async fn view(
    State(server): State<Arc<Server>>,
    RequestGrant(grant): RequestGrant,
    Path(file): Path<String>,
    if_none_match: IfNoneMatch,
    mut parts: Parts,
) -> HandlerResult {
    if let Some(id) = file.strip_suffix(".html") {
        let target = find(&server, &mut parts, grant, id).await?;
        html(&server, &target, &if_none_match, &parts).await
    } else if let Some(id) = file.strip_suffix(".txt") {
        let target = find(&server, &mut parts, grant, id).await?;
        text(&server, &target, &if_none_match).await
    } else if file == LATEST {
        redirect_to_latest(&server, &mut parts, grant).await
    } else {
        let id = find(&server, &mut parts, grant, &file).await?.message.id();
        Ok(success::found(format!("{}/messages/{id}", root_path(&server, &parts)))?)
    }
}

/// Returns the message with this id. Unlike below `/api`, the text of the status 404 is the same for all ids.
async fn find(server: &Server, parts: &mut Parts, grant: Grant, id: &str) -> Result<TargetMessage, Error> {
    match TargetMessage::find(server, parts, grant, id).await {
        Err(Error::Problem(Problem::NoSuchMessage)) => Err(Error::NotFound(MESSAGE_NOT_FOUND)),
        result => result,
    }
}

async fn html(server: &Server, target: &TargetMessage, if_none_match: &IfNoneMatch, parts: &Parts) -> HandlerResult {
    let embeds_images = Viewer::of(&parts.headers) == Viewer::Browser;
    let opens_windows = QueryPairs::parse_leniently(&parts.uri)?.has("embed", "1");
    let root = root_path(server, parts);
    let parameter = format!("{embeds_images} {opens_windows} {root}");
    let form = Representation::new("mailpit html", Work::Extract).with_parameter(parameter);
    let tag = form.etag(&server.renderer.etags, target.message.first());
    let headers = FileHeaders { content_type: success::HTML, disposition: None, policy: preview_policy::POLICY, tag };
    let base = format!("{root}/api/v1/message/{}/part/", target.message.id());
    let write = move |_: &Summary, mime: &Mime| document(mime, embeds_images, opens_windows, &base);
    let mut response = body_response(server, target, if_none_match, form, headers, write).await?;
    response.headers_mut().append(header::VARY, viewer::VARY);
    Ok(response)
}

async fn text(server: &Server, target: &TargetMessage, if_none_match: &IfNoneMatch) -> HandlerResult {
    let form = Representation::new("mailpit text", Work::Extract);
    let tag = form.etag(&server.renderer.etags, target.message.first());
    let headers = FileHeaders { content_type: success::UTF8_TEXT, disposition: None, policy: SANDBOX_POLICY, tag };
    let write = |_: &Summary, mime: &Mime| Ok(content::text(mime, &content::html(mime)).into());
    body_response(server, target, if_none_match, form, headers, write).await
}

/// Returns a form of the body, unless the client has it already, and marks the message as read.
async fn body_response(
    server: &Server,
    target: &TargetMessage,
    if_none_match: &IfNoneMatch,
    form: Representation,
    headers: FileHeaders,
    write: impl Fn(&Summary, &Mime) -> Result<Bytes, Problem> + Send + Sync + 'static,
) -> HandlerResult {
    let rendered = if if_none_match.matches(&headers.tag) {
        Ok(None)
    } else {
        server.renderer.render(target.message.first(), form, write).await.map(Some)
    };
    let body = match rendered {
        // It counts as read all the same.
        Err(Problem::NoHtml) => Err(Error::NotFound(NO_HTML)),
        body => Ok(body?),
    };
    target.mark_as_read(server).await?;
    Ok(isolated_response(body?.map(Body::from), headers))
}

/// Returns the document.
fn document(mime: &Mime, embeds_images: bool, opens_windows: bool, base: &str) -> Result<Bytes, Problem> {
    let html = content::html(mime);
    if html.is_empty() {
        return Err(Problem::NoHtml);
    }
    let linked = if embeds_images {
        link_parts(&html, &embedded_images(mime), true)
    } else {
        link_parts(&html, &PartLinks::new(mime, base.to_owned()), false)
    };
    Ok(disarm(&if opens_windows { open_new_windows(&linked) } else { linked }).into())
}

/// Returns the path of the root, or of the project of the request, as browsers see it.
fn root_path(server: &Server, parts: &Parts) -> String {
    format!("{}{}", server.settings.public_path(), project_path(&parts.extensions))
}

/// Redirects to the newest message. If there is none, to the start page.
async fn redirect_to_latest(server: &Server, parts: &mut Parts, grant: Grant) -> HandlerResult {
    let root = root_path(server, parts);
    match TargetMessage::find(server, parts, grant, LATEST).await {
        Ok(target) => Ok(success::found(format!("{root}/view/{}", target.message.id()))?),
        Err(Error::NotFound(_)) => Ok(success::found(format!("{root}/"))?),
        Err(error) => Err(error),
    }
}
