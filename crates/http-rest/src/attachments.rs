//! Attachments to save or to show.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use axum::routing::{MethodRouter, get};
use restante_http_core::extractors::messages::{PathAttachment, PathCopy, PathPart};
use restante_http_core::extractors::query::Parsed;
use restante_http_core::render::file::PartSelector;
use restante_http_core::response::etag::IfNoneMatch;
use restante_http_core::response::links::Purpose;
use restante_http_core::response::problem::Problem;
use restante_http_core::response::viewer::Viewer;
use restante_http_core::server::Server;

/// Returns the handler that serves an attachment for this purpose. `selector` selects it in one of the lists.
pub(crate) fn serve(selector: fn(usize) -> PartSelector, purpose: Purpose) -> MethodRouter<Arc<Server>> {
    get(
        move |State(server): State<Arc<Server>>,
              attachment: PathAttachment,
              if_none_match: IfNoneMatch,
              viewer: Viewer| async move {
            let PathAttachment(part) = attachment;
            server.renderer.file_response(&part.copy, selector(part.index), &if_none_match, (purpose, viewer)).await
        },
    )
}

/// Returns an attachment as a file to save or as a document to show, as the query requests.
pub(crate) async fn file(
    State(server): State<Arc<Server>>,
    PathAttachment(PathPart { copy, index }): PathAttachment,
    Parsed(purpose): Parsed<Purpose>,
    if_none_match: IfNoneMatch,
    viewer: Viewer,
) -> Result<Response, Problem> {
    server.renderer.file_response(&copy, PartSelector::Attachment(index), &if_none_match, (purpose, viewer)).await
}

/// Returns all attachments as one archive.
pub(crate) async fn archive(
    State(server): State<Arc<Server>>,
    PathCopy(copy): PathCopy,
    if_none_match: IfNoneMatch,
) -> Result<Response, Problem> {
    server.renderer.archive_response(&copy, &if_none_match).await
}
