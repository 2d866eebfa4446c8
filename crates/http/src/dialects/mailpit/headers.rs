//! The header of a message.

use std::sync::Arc;

use axum::extract::State;
use bytes::Bytes;
use restante_mail::message::Summary;
use restante_mail::mime::Mime;

use crate::dialects::mailpit::success::{HandlerResult, json_body};
use crate::dialects::mailpit::target::TargetMessage;
use crate::response::json;
use crate::response::message_json::HeaderMap;
use crate::response::problem::Problem;
use crate::state::Server;
use crate::state::message::MailpitForm;

/// Returns the values of all header fields by canonical names, in alphabetical order. They are unfolded and not decoded.
pub(crate) async fn headers(State(server): State<Arc<Server>>, target: TargetMessage) -> HandlerResult {
    Ok(json_body(target.render(&server, MailpitForm::Headers, 0, render).await?))
}

fn render(_: &Summary, mime: &Mime) -> Result<Bytes, Problem> {
    json::body(&HeaderMap::sorted_from_mime(mime))
}
