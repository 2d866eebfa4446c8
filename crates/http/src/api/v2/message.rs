//! A message as our own page reads it: everything but the HTML, which the page shows in a frame.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use restante_mail::message::Summary;
use restante_mail::mime::{Attachment, Disposition, HeaderField, Mime, Part, Role};

use crate::extractors::parameters::OneMessage;
use crate::response::etag::Known;
use crate::response::inline_images::Links;
use crate::response::message_json::{defect, field, optional};
use crate::response::problem::Problem;
use crate::response::{json, message_json};
use crate::state::Server;
use crate::state::message::Form;

/// The message as JSON.
pub(crate) async fn details(
    State(server): State<Arc<Server>>,
    target: OneMessage,
    known: Known,
) -> Result<Response, Problem> {
    server.tell_json(&server.find(&target).await?, &known, Form::Details, message).await
}

fn message(of: &Summary, mime: &Mime) -> Bytes {
    let text = mime.text();
    let remote = restante_html::remote_hosts(&mime.html(), &Links::new(mime, of, ""));
    let mut out = Vec::with_capacity(json::longest(&text) + 2 * message_json::record_size(of));
    out.push(b'{');
    message_json::summary(&mut out, of);
    out.push(b',');
    field(&mut out, "text", &text);
    json::display(&mut out, format_args!(",\"html\":{},\"remote\":", mime.has_html()));
    json::array(&mut out, &remote, |out, host| json::string(out, host));
    out.extend_from_slice(b",\"headers\":");
    json::array(&mut out, mime.header(), header);
    out.extend_from_slice(b",\"attachments\":");
    json::array(&mut out, mime.attachments().iter().enumerate(), |out, (index, file)| attachment(out, index, file));
    out.extend_from_slice(b",\"parts\":");
    json::array(&mut out, mime.parts().iter().zip(mime.roles()), |out, (one, role)| part(out, one, role));
    out.extend_from_slice(b",\"defects\":");
    json::array(&mut out, &mime.defects(), defect);
    out.extend_from_slice(b"}\n");
    out.shrink_to_fit();
    out.into()
}

fn header(out: &mut Vec<u8>, one: &HeaderField) {
    let (value, decoded) = (one.value(), one.decoded());
    out.push(b'{');
    field(out, "name", &one.written_name());
    out.push(b',');
    field(out, "value", &value);
    if decoded != value {
        out.push(b',');
        field(out, "decoded", &decoded);
    }
    out.push(b'}');
}

fn attachment(out: &mut Vec<u8>, index: usize, file: &Attachment<'_>) {
    let (size, md5) = file.measured();
    json::display(out, format_args!("{{\"index\":{index},"));
    field(out, "filename", &file.filename);
    out.push(b',');
    field(out, "content-type", &file.content_type);
    json::display(out, format_args!(",\"size\":{size},"));
    field(out, "md5", &md5);
    out.push(b',');
    optional(out, "content-id", file.part.content_id.as_deref());
    out.push(b'}');
}

fn part(out: &mut Vec<u8>, one: &Part, role: Role) {
    let (role, attachment) = match role {
        Role::Multipart => ("multipart", None),
        Role::Text => ("text", None),
        Role::Html => ("html", None),
        Role::Attachment(index) => ("attachment", Some(index)),
    };
    let disposition = one.disposition.map(|disposition| match disposition {
        Disposition::Inline => "inline",
        Disposition::Attachment => "attachment",
    });
    json::display(out, format_args!("{{\"depth\":{},", one.depth));
    field(out, "content-type", &one.content_type);
    out.push(b',');
    optional(out, "charset", one.charset.as_deref());
    out.push(b',');
    field(out, "encoding", &one.encoding_name);
    out.push(b',');
    optional(out, "disposition", disposition);
    out.push(b',');
    optional(out, "filename", one.filename.as_deref());
    out.push(b',');
    optional(out, "content-id", one.content_id.as_deref());
    json::display(out, format_args!(",\"size\":{},\"role\":\"{role}\",\"attachment\":", one.body.len()));
    match attachment {
        Some(index) => json::display(out, index),
        None => out.extend_from_slice(b"null"),
    }
    out.push(b'}');
}
