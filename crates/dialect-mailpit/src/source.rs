//! The source of a message, and its header. Mailpit writes hidden recipients into the message, as a field `Bcc`. Here they
//! are added to the header only.

use std::hash::BuildHasher as _;
use std::sync::Arc;

use axum::extract::State;
use axum::http::header;
use axum::http::request::Parts;
use bytes::Bytes;
use restante_http_core::extractors::query::QueryPairs;
use restante_http_core::render::file::disposition;
use restante_http_core::render::{Representation, Work};
use restante_http_core::response::etag::IfNoneMatch;
use restante_http_core::response::links::Purpose;
use restante_http_core::response::message_json::HeaderMap;
use restante_http_core::response::problem::Problem;
use restante_http_core::response::{json, success};
use restante_http_core::server::Server;
use restante_mail::message::Summary;
use restante_mail::mime::Mime;

use crate::error::HandlerResult;
use crate::message::{addresses, hidden_recipients};
use crate::success::json_body;
use crate::target::TargetMessage;

/// Returns the source of a message. With `dl=1` it is a file to save.
pub(crate) async fn raw(
    State(server): State<Arc<Server>>,
    target: TargetMessage,
    if_none_match: IfNoneMatch,
    parts: Parts,
) -> HandlerResult {
    let is_download = QueryPairs::parse_leniently(&parts.uri)?.has("dl", "1");
    let mut response = server.renderer.source_response(target.message.first(), &if_none_match).await?;
    response.headers_mut().insert(header::CONTENT_TYPE, success::UTF8_TEXT);
    if is_download {
        let filename = format!("{}.eml", target.message.id());
        response.headers_mut().insert(header::CONTENT_DISPOSITION, disposition(Purpose::Download, &filename));
    }
    Ok(response)
}

/// Returns the values of all header fields by canonical names, in alphabetical order. They are unfolded and not decoded.
pub(crate) async fn headers(State(server): State<Arc<Server>>, target: TargetMessage) -> HandlerResult {
    let recipients: Arc<[String]> = target.message.recipients().map(str::to_owned).collect();
    // The response depends on the recipients that the client may see.
    let version = server.state_hasher.hash_one(&recipients);
    let write = move |copy: &Summary, mime: &Mime| render(copy, mime, &recipients);
    let form = Representation::new("mailpit headers", Work::Extract);
    Ok(json_body(server.renderer.render_version(target.message.first(), form, version, write).await?))
}

fn render(copy: &Summary, mime: &Mime, recipients: &[String]) -> Result<Bytes, Problem> {
    let mut map = mime.header_map();
    if copy.details.is_from_http() {
        // The first one is that of this server. Mailpit adds none to a message that was not sent by SMTP.
        map.iter_mut().filter(|(name, _)| name == "Received").for_each(|(_, values)| drop(values.drain(..1)));
        map.retain(|(_, values)| !values.is_empty());
    }
    if map.iter().all(|(name, _)| name != "Bcc") {
        let [to, cc] = ["To", "Cc"].map(|name| addresses(mime, name));
        let hidden = hidden_recipients([&to, &cc, &[]], recipients);
        map.extend((!hidden.is_empty()).then(|| ("Bcc".to_owned(), vec![hidden.join(", ")])));
    }
    map.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
    json::body(&HeaderMap(map))
}
