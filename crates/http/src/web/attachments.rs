//! Attachments to save or to show.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;

use crate::extractors::download::DownloadParameter;
use crate::extractors::messages::{PathAttachment, PathCopy};
use crate::response::etag::IfNoneMatch;
use crate::response::links::Purpose;
use crate::response::problem::Problem;
use crate::response::viewer::Viewer;
use crate::state::Server;
use crate::state::attachment::PartSelector;

/// Returns an attachment as a file to save.
pub(crate) async fn download(
    State(server): State<Arc<Server>>,
    PathAttachment { copy, index }: PathAttachment,
    if_none_match: IfNoneMatch,
    viewer: Viewer,
) -> Result<Response, Problem> {
    server.file_response(&copy, PartSelector::Attachment(index), &if_none_match, (Purpose::Download, viewer)).await
}

/// Returns an attachment as a document to show.
pub(crate) async fn view(
    State(server): State<Arc<Server>>,
    PathAttachment { copy, index }: PathAttachment,
    if_none_match: IfNoneMatch,
    viewer: Viewer,
) -> Result<Response, Problem> {
    server.file_response(&copy, PartSelector::Attachment(index), &if_none_match, (Purpose::View, viewer)).await
}

/// Returns an attachment as a document to show. The index is one of the list that Inbucket's web interface gets.
pub(crate) async fn inbucket_view(
    State(server): State<Arc<Server>>,
    PathAttachment { copy, index }: PathAttachment,
    if_none_match: IfNoneMatch,
    viewer: Viewer,
) -> Result<Response, Problem> {
    let purpose = (Purpose::View, viewer);
    server.file_response(&copy, PartSelector::InbucketAttachment(index), &if_none_match, purpose).await
}

/// Returns an attachment as a file to save or as a document to show, as the query requests.
pub(crate) async fn file(
    State(server): State<Arc<Server>>,
    PathAttachment { copy, index }: PathAttachment,
    DownloadParameter(purpose): DownloadParameter,
    if_none_match: IfNoneMatch,
    viewer: Viewer,
) -> Result<Response, Problem> {
    server.file_response(&copy, PartSelector::Attachment(index), &if_none_match, (purpose, viewer)).await
}

/// Returns all attachments as one archive.
pub(crate) async fn archive(
    State(server): State<Arc<Server>>,
    PathCopy(copy): PathCopy,
    if_none_match: IfNoneMatch,
) -> Result<Response, Problem> {
    server.archive_response(&copy, &if_none_match).await
}
