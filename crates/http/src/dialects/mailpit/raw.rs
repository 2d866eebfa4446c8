//! The source of a message.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header;
use axum::http::request::Parts;

use crate::dialects::mailpit::error::TEXT;
use crate::dialects::mailpit::success::HandlerResult;
use crate::dialects::mailpit::target::TargetMessage;
use crate::extractors::parameters::lenient_query_pairs;
use crate::response::etag::IfNoneMatch;
use crate::response::links::Purpose;
use crate::state::Server;
use crate::state::attachment::disposition;

/// Returns the source of a message. With `dl=1` it is a file to save.
pub(crate) async fn raw(
    State(server): State<Arc<Server>>,
    target: TargetMessage,
    if_none_match: IfNoneMatch,
    parts: Parts,
) -> HandlerResult {
    let is_download = lenient_query_pairs(&parts)?.iter().any(|(name, value)| name == "dl" && value == "1");
    let mut response = server.source_response(target.message.first(), &if_none_match).await?;
    response.headers_mut().insert(header::CONTENT_TYPE, TEXT);
    if is_download {
        let filename = format!("{}.eml", target.message.id());
        response.headers_mut().insert(header::CONTENT_DISPOSITION, disposition(Purpose::Download, &filename));
    }
    Ok(response)
}
