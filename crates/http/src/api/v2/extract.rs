//! What tests want out of a message: its links, the one-time codes in it, the ways to unsubscribe, and the tree of its parts.
//! How these are found is the business of the crate for extraction; the content of a part is served by `attachment`.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use restante_extract::{Code, Found, Kind, Link, Method, Seen, Unsubscribe, Way};
use restante_mail::message::Summary;
use restante_mail::mime::{Disposition, Mime, Part, Role};

use crate::extractors::parameters::{OneMessage, OnePart};
use crate::response::etag::{Extract, Known};
use crate::response::json;
use crate::response::links::Purpose;
use crate::response::message_json::{field, optional};
use crate::response::problem::Problem;
use crate::state::Server;
use crate::state::attachment::{Piece, content};
use crate::state::message::Form;

type Answer = Result<Response, Problem>;

/// The links of a message.
pub(crate) async fn links(State(server): State<Arc<Server>>, target: OneMessage, known: Known) -> Answer {
    let write = |_: &Summary, mime: &Mime| list("links", &restante_extract::links(mime), link);
    server.tell_json(&server.find(&target).await?, &known, Form::Extract(Extract::Links), write).await
}

/// What may be one-time codes in a message.
pub(crate) async fn codes(State(server): State<Arc<Server>>, target: OneMessage, known: Known) -> Answer {
    let write = |_: &Summary, mime: &Mime| list("codes", &restante_extract::codes(mime), code);
    server.tell_json(&server.find(&target).await?, &known, Form::Extract(Extract::Codes), write).await
}

/// The ways to get off the list that a message came by.
pub(crate) async fn unsubscribe(State(server): State<Arc<Server>>, target: OneMessage, known: Known) -> Answer {
    let write = |_: &Summary, mime: &Mime| ways(&restante_extract::unsubscribe(mime));
    server.tell_json(&server.find(&target).await?, &known, Form::Extract(Extract::Unsubscribe), write).await
}

/// The parts of a message, depth first.
pub(crate) async fn parts(State(server): State<Arc<Server>>, target: OneMessage, known: Known) -> Answer {
    let write = |_: &Summary, mime: &Mime| {
        let parts: Vec<_> = mime.parts().iter().zip(mime.roles()).enumerate().collect();
        list("parts", &parts, |out, (index, (one, role))| part(out, mime, *index, one, *role))
    };
    server.tell_json(&server.find(&target).await?, &known, Form::Extract(Extract::Parts), write).await
}

/// The content of a part, which may be a text or contain other parts.
pub(crate) async fn part_content(State(server): State<Arc<Server>>, target: OnePart, known: Known) -> Answer {
    server.file(&server.find(&target.of).await?, Piece::Part(target.index), &known, Purpose::View).await
}

/// An object with one list in it.
fn list<T>(name: &str, items: &[T], item: impl FnMut(&mut Vec<u8>, &T)) -> Bytes {
    let mut out = Vec::new();
    json::display(&mut out, format_args!("{{\"{name}\":"));
    json::array(&mut out, items, item);
    out.extend_from_slice(b"}\n");
    out.shrink_to_fit();
    out.into()
}

fn link(out: &mut Vec<u8>, one: &Link) {
    let place = match one.place {
        Found::Html => "html",
        Found::Text => "text",
        Found::Header => "header",
    };
    let kind = match one.kind() {
        Kind::Http => "http",
        Kind::Mailto => "mailto",
        Kind::Other => "other",
    };
    out.push(b'{');
    field(out, "href", &one.href);
    out.push(b',');
    field(out, "text", &one.text);
    out.push(b',');
    optional(out, "image-alt", one.image_alt.as_deref());
    json::display(out, format_args!(",\"where\":\"{place}\",\"kind\":\"{kind}\"}}"));
}

fn code(out: &mut Vec<u8>, one: &Code) {
    let place = match one.place {
        Seen::Subject => "subject",
        Seen::Text => "text",
        Seen::Html => "html",
    };
    out.push(b'{');
    field(out, "code", &one.code);
    json::display(out, format_args!(",\"score\":{},", one.score));
    field(out, "before", &one.before);
    out.push(b',');
    field(out, "after", &one.after);
    json::display(out, format_args!(",\"where\":\"{place}\"}}"));
}

fn ways(of: &Unsubscribe) -> Bytes {
    let mut out = Vec::new();
    json::display(&mut out, format_args!("{{\"one-click\":{},\"links\":", of.one_click));
    json::array(&mut out, &of.links, |out, Way { href, kind }| {
        let kind = match kind {
            Method::Https => "https",
            Method::Http => "http",
            Method::Mailto => "mailto",
        };
        out.push(b'{');
        field(out, "href", href);
        json::display(out, format_args!(",\"kind\":\"{kind}\"}}"));
    });
    out.push(b',');
    optional(&mut out, "list-id", of.list_id.as_deref());
    out.extend_from_slice(b"}\n");
    out.into()
}

fn part(out: &mut Vec<u8>, mime: &Mime, index: usize, one: &Part, role: Role) {
    let disposition = one.disposition.map(|disposition| match disposition {
        Disposition::Inline => "inline",
        Disposition::Attachment => "attachment",
    });
    json::display(out, format_args!("{{\"index\":{index},\"parent\":"));
    match one.parent {
        Some(parent) => json::display(out, parent),
        None => out.extend_from_slice(b"null"),
    }
    json::display(out, format_args!(",\"depth\":{},", one.depth));
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
    let (size, role) = (content(mime, one).len(), role_of(one, role));
    json::display(out, format_args!(",\"size\":{size},\"role\":\"{role}\"}}"));
}

/// What a part is for. One that has a name for links and does not say how to be shown is meant to be a piece of the HTML.
fn role_of(part: &Part, role: Role) -> &'static str {
    match (role, part.disposition) {
        (Role::Multipart, _) => "container",
        (Role::Text, _) => "text",
        (Role::Html, _) => "html",
        (Role::Attachment(_), Some(Disposition::Inline)) => "inline",
        (Role::Attachment(_), None) if part.content_id.is_some() => "inline",
        (Role::Attachment(_), _) => "attachment",
    }
}
