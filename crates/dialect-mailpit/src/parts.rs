//! The files of a message. They are isolated like all files of senders.

use std::sync::Arc;

use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use restante_http_core::extractors::parameters::{path_value, path_values};
use restante_http_core::render::file::{FileCharset, SelectedPart};
use restante_http_core::response::etag::IfNoneMatch;
use restante_http_core::response::links::Purpose;
use restante_http_core::response::problem::Problem;
use restante_http_core::response::viewer::Viewer;
use restante_http_core::server::Server;

use crate::content::{Files, listed_name};
use crate::error::{Error, HandlerResult};
use crate::target::TargetMessage;

/// The maximum length of the id of a part. It has one component for each level, of at most three digits.
const MAX_PART_ID_BYTES: usize = 256;
/// The file name of a part that has none.
const DEFAULT_FILENAME: &str = "part";

/// The id of a part, from `{part}`: numbers, separated by dots.
pub(crate) struct PartId(pub(crate) Arc<str>);

impl FromRequestParts<Arc<Server>> for PartId {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, server: &Arc<Server>) -> Result<Self, Error> {
        let values: Vec<(String, String)> = path_values(parts, server).await?;
        let id = path_value(&values, "part");
        let is_valid = id.len() <= MAX_PART_ID_BYTES && id.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        if is_valid { Ok(Self(id.into())) } else { Err(Error::NOT_FOUND) }
    }
}

/// Returns the content of a file. A text that declares a charset is converted to UTF-8, because the sizes and checksums in
/// the list of files are those of the converted text.
pub(crate) async fn part(
    State(server): State<Arc<Server>>,
    target: TargetMessage,
    PartId(id): PartId,
    if_none_match: IfNoneMatch,
    viewer: Viewer,
) -> HandlerResult {
    let copy = target.message.first();
    let tag = server.renderer.etags.of(&("mailpit part", copy.id, &id));
    let response =
        server.renderer.selected_file_response(copy, tag, &if_none_match, (Purpose::View, viewer), move |mime| {
            let part = &mime.parts()[Files::find(mime, &id).ok_or(Problem::NoSuchPart)?];
            let filename = listed_name(part).unwrap_or(DEFAULT_FILENAME).to_owned();
            Ok(SelectedPart { part, filename, charset: FileCharset::Utf8 })
        });
    Ok(response.await?)
}
