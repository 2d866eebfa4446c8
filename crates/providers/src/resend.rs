//! The API of Resend.

use std::sync::Arc;

use axum::http::{HeaderMap, StatusCode};
use restante_http_core::api::Api;
use restante_mail::compose::Attachment;
use serde::Deserialize;
use serde_json::json;

use crate::email::{Content, Email, Parts, Sent, parse_id};
use crate::failure::{Failure, FailureKind};
use crate::incoming::{Incoming, decode_base64};
use crate::person::Person;
use crate::provider::{Action, Provider, Routes, bearer};
use crate::reply::Reply;
use crate::stored::StoredEmail;
use crate::templates::{TemplateStore, Templates};
use crate::values::{List, OneOrMany, Text, Texts};

struct Resend;

impl Provider for Resend {
    const NAME: &'static str = "resend";

    fn key(headers: &HeaderMap) -> Option<String> {
        bearer(headers)
    }

    fn failure(failure: &Failure) -> Reply {
        let (status, name) = match failure.kind {
            FailureKind::Missing => (StatusCode::UNPROCESSABLE_ENTITY, "missing_required_field"),
            FailureKind::Malformed | FailureKind::Invalid | FailureKind::Exists => {
                (StatusCode::UNPROCESSABLE_ENTITY, "validation_error")
            }
            FailureKind::Unauthorized => (StatusCode::UNAUTHORIZED, "missing_api_key"),
            FailureKind::Forbidden => (StatusCode::FORBIDDEN, "invalid_api_key"),
            FailureKind::NotFound => (StatusCode::NOT_FOUND, "not_found"),
            FailureKind::RateLimited => (StatusCode::TOO_MANY_REQUESTS, "rate_limit_exceeded"),
            kind => (kind.status(), "application_error"),
        };
        let body = json!({"name": name, "statusCode": status.as_u16(), "message": failure.message});
        Reply::json(status, &body)
    }
}

/// Returns the API.
pub(crate) fn api(templates: &Arc<TemplateStore>) -> Api {
    Routes::new::<Resend>(templates)
        .post("/emails", send)
        .post("/emails/batch", send_batch)
        .get("/emails/{id}", read)
        .api()
}

#[derive(Deserialize)]
struct SendRequest<'a> {
    #[serde(default)]
    from: String,
    #[serde(default)]
    to: OneOrMany<String>,
    #[serde(default)]
    cc: OneOrMany<String>,
    #[serde(default)]
    bcc: OneOrMany<String>,
    #[serde(default, alias = "replyTo")]
    reply_to: OneOrMany<String>,
    #[serde(default)]
    subject: String,
    text: Option<String>,
    html: Option<String>,
    #[serde(default)]
    headers: Texts,
    #[serde(borrow, default)]
    attachments: List<File<'a>>,
    #[serde(default)]
    tags: List<Tag>,
    scheduled_at: Option<String>,
}

#[derive(Deserialize)]
struct File<'a> {
    #[serde(borrow)]
    content: Option<Text<'a>>,
    filename: Option<String>,
    #[serde(alias = "contentType")]
    content_type: Option<String>,
    #[serde(alias = "contentId")]
    content_id: Option<String>,
}

#[derive(Deserialize)]
struct Tag {
    name: String,
    #[serde(default)]
    value: String,
}

fn send(incoming: &Incoming, _: &Templates<'_>) -> Result<Action, Failure> {
    let email = email(incoming.json()?)?;
    Ok(Action::Send(vec![email], |_, sent| Reply::json(StatusCode::OK, &id(&sent[0]))))
}

fn send_batch(incoming: &Incoming, _: &Templates<'_>) -> Result<Action, Failure> {
    let List(requests) = incoming.json()?;
    let emails = requests.into_iter().map(email).collect::<Result<_, _>>()?;
    let reply = |_: &Incoming, sent: &[Sent]| {
        Reply::json(StatusCode::OK, &json!({"data": sent.iter().map(id).collect::<Vec<_>>()}))
    };
    Ok(Action::Send(emails, reply))
}

fn id(sent: &Sent) -> serde_json::Value {
    json!({"id": sent.uuid()})
}

fn email(request: SendRequest<'_>) -> Result<Email, Failure> {
    let files = request.attachments.0.into_iter().enumerate().map(|(index, file)| attachment(index, file));
    let parts = Parts {
        subject: request.subject,
        text: request.text,
        html: request.html,
        attachments: files.collect::<Result<_, _>>()?,
    };
    Ok(Email {
        from: Some(Person::parse("from", &request.from)?),
        to: Person::parse_all("to", &request.to.0)?,
        cc: Person::parse_all("cc", &request.cc.0)?,
        bcc: Person::parse_all("bcc", &request.bcc.0)?,
        reply_to: Person::parse_all("reply_to", &request.reply_to.0)?,
        content: Content::Parts(parts),
        headers: request.headers.0,
        tags: request.tags.0.into_iter().map(|Tag { name, value }| format!("{name}.{value}")).collect(),
        metadata: Vec::new(),
        scheduled: request.scheduled_at,
    })
}

fn attachment(index: usize, file: File<'_>) -> Result<Attachment, Failure> {
    let field = format!("attachments[{index}].content");
    let Some(content) = file.content else {
        return Err(Failure::invalid(field, "is required, because the server does not download files"));
    };
    Ok(Attachment {
        filename: file.filename,
        content_type: file.content_type,
        content: decode_base64(&field, &content.0)?,
        content_id: file.content_id,
    })
}

fn read(incoming: &Incoming, _: &Templates<'_>) -> Result<Action, Failure> {
    let id =
        parse_id(incoming.path_value("id")).ok_or_else(|| Failure::new(FailureKind::NotFound, "Email not found"))?;
    let reply = |email: &StoredEmail| {
        let header = &email.header;
        let body = json!({
            "object": "email",
            "id": crate::email::uuid(email.id),
            "to": header.to,
            "from": header.from,
            "created_at": email.received.to_string(),
            "subject": header.subject,
            "html": email.html,
            "text": email.text,
            "bcc": header.bcc,
            "cc": header.cc,
            "reply_to": header.reply_to,
            "last_event": "delivered",
        });
        Reply::json(StatusCode::OK, &body)
    };
    Ok(Action::Read(id, reply))
}
