//! The header of a message. Mailpit writes hidden recipients into the message, as a field `Bcc`. Here they are added to this
//! response only.

use std::hash::BuildHasher as _;
use std::sync::Arc;

use axum::extract::State;
use bytes::Bytes;
use restante_mail::message::Summary;
use restante_mail::mime::Mime;

use crate::dialects::mailpit::message::{addresses, hidden_recipients};
use crate::dialects::mailpit::success::{HandlerResult, json_body};
use crate::dialects::mailpit::target::TargetMessage;
use crate::response::json;
use crate::response::message_json::HeaderMap;
use crate::response::problem::Problem;
use crate::state::Server;
use crate::state::message::MailpitForm;

/// Returns the values of all header fields by canonical names, in alphabetical order. They are unfolded and not decoded.
pub(crate) async fn headers(State(server): State<Arc<Server>>, target: TargetMessage) -> HandlerResult {
    let recipients: Arc<[String]> = target.message.recipients().map(str::to_owned).collect();
    // The response depends on the recipients that the client may see.
    let version = server.state_hasher.hash_one(&recipients);
    let write = move |copy: &Summary, mime: &Mime| render(copy, mime, &recipients);
    Ok(json_body(target.render(&server, MailpitForm::Headers, version, write).await?))
}

fn render(copy: &Summary, mime: &Mime, recipients: &[String]) -> Result<Bytes, Problem> {
    json::body(&HeaderMap::sorted_from_mime(mime, |map| {
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
    }))
}
