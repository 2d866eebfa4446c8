//! A message as the web page of Inbucket reads it: its text and its HTML ready to be put into a page.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use restante_mail::message::Summary;
use restante_mail::mime::Mime;

use crate::extractors::parameters::OneMessage;
use crate::response::etag::Known;
use crate::response::inline_images::Links;
use crate::response::message_json::{defect, field};
use crate::response::problem::Problem;
use crate::response::{json, message_json};
use crate::state::Server;
use crate::state::message::Form;

/// The message as JSON.
pub(crate) async fn compat(
    State(server): State<Arc<Server>>,
    target: OneMessage,
    known: Known,
) -> Result<Response, Problem> {
    let root = server.settings.root().to_owned();
    server.tell_json(&server.find(&target).await?, &known, Form::Compat, move |of, mime| message(of, mime, &root)).await
}

fn message(of: &Summary, mime: &Mime, root: &str) -> Bytes {
    // Inbucket's page shows no line breaks but these.
    let text = restante_html::linked(&mime.compatible_text()).replace('\n', "<br/>\n");
    let html = restante_html::sanitised(&mime.html(), &Links::new(mime, of, root));
    let mut out = Vec::with_capacity(json::longest(&text) + json::longest(&html) + 2 * message_json::record_size(of));
    out.push(b'{');
    message_json::summary(&mut out, of);
    out.push(b',');
    message_json::header(&mut out, mime);
    out.push(b',');
    field(&mut out, "text", &text);
    out.push(b',');
    field(&mut out, "html", &html);
    out.extend_from_slice(b",\"attachments\":");
    json::array(&mut out, mime.attachments().iter().enumerate(), |out, (index, file)| {
        json::display(out, format_args!("{{\"id\":\"{index}\","));
        field(out, "filename", &file.filename);
        out.push(b',');
        field(out, "content-type", &file.content_type);
        out.push(b'}');
    });
    out.extend_from_slice(b",\"errors\":");
    json::array(&mut out, &mime.defects(), defect);
    out.extend_from_slice(b"}\n");
    out.shrink_to_fit();
    out.into()
}
