//! Attachments, to save or to look at.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;

use crate::extractors::parameters::OneAttachment;
use crate::response::etag::Known;
use crate::response::links::Purpose;
use crate::response::problem::Problem;
use crate::state::Server;
use crate::state::attachment::Piece;

/// An attachment as a file to save.
pub(crate) async fn download(
    State(server): State<Arc<Server>>,
    target: OneAttachment,
    known: Known,
) -> Result<Response, Problem> {
    server.file(&server.find(&target.of).await?, Piece::Attachment(target.index), &known, Purpose::Download).await
}

/// An attachment to look at.
pub(crate) async fn view(
    State(server): State<Arc<Server>>,
    target: OneAttachment,
    known: Known,
) -> Result<Response, Problem> {
    server.file(&server.find(&target.of).await?, Piece::Attachment(target.index), &known, Purpose::View).await
}
