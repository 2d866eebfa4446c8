//! The API of Mailtrap, for sending and for sandboxes.

use std::sync::Arc;

use axum::http::{HeaderMap, StatusCode};
use restante_http_core::api::Api;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::email::{Content, Email, Parts, Sent};
use crate::failure::{Failure, FailureKind};
use crate::files::{self, File};
use crate::incoming::Incoming;
use crate::person::Contact;
use crate::provider::{Action, Provider, Routes, bearer, header_key};
use crate::reply::Reply;
use crate::templates::{TemplateSource, TemplateStore, TemplateUse, Templates};
use crate::values::{List, MAX_RAW_BYTES, OneOrMany, Texts};

const MAX_BATCH: usize = 500;

struct Mailtrap;

impl Provider for Mailtrap {
    const NAME: &'static str = "mailtrap";

    fn key(headers: &HeaderMap) -> Option<String> {
        header_key(headers, "api-token").or_else(|| bearer(headers))
    }

    fn failure(failure: &Failure) -> Reply {
        Reply::json(failure.kind.status(), &error(failure))
    }
}

fn error(failure: &Failure) -> Value {
    let message = match (failure.kind, &failure.field) {
        (FailureKind::Missing, Some(field)) => format!("'{field}' is required"),
        (FailureKind::Unauthorized, _) => "Unauthorized".to_owned(),
        _ => failure.message.clone(),
    };
    json!({"success": false, "errors": [message]})
}

/// Returns the API.
pub(crate) fn api(templates: &Arc<TemplateStore>) -> Api {
    Routes::new::<Mailtrap>(templates)
        .post("/api/send", send)
        .post("/api/send/{inbox}", send)
        .post("/api/batch", send_batch)
        .post("/api/batch/{inbox}", send_batch)
        .get("/api/accounts", |_, _| {
            let body = json!([{"id": 1, "name": "Restante", "access_levels": [1000]}]);
            Action::json(&body)
        })
        .api()
}

/// A message, or what the messages of a batch have in common.
#[derive(Default, Deserialize)]
struct SendRequest<'a> {
    from: Option<Contact>,
    to: Option<List<Contact>>,
    cc: Option<List<Contact>>,
    bcc: Option<List<Contact>>,
    reply_to: Option<OneOrMany<Contact>>,
    subject: Option<String>,
    text: Option<String>,
    html: Option<String>,
    #[serde(borrow)]
    attachments: Option<List<File<'a>>>,
    headers: Option<Texts>,
    custom_variables: Option<Texts>,
    category: Option<String>,
    template_uuid: Option<String>,
    #[serde(borrow)]
    template_variables: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Batch<'a> {
    #[serde(borrow, default)]
    base: SendRequest<'a>,
    #[serde(borrow, default)]
    requests: List<SendRequest<'a>>,
}

fn send(incoming: &Incoming, _: &Templates<'_>) -> Result<Action, Failure> {
    let email = email(Email::default(), incoming.json()?).and_then(check_content)?;
    let reply = |incoming: &Incoming, sent: &[Sent]| Reply::json(StatusCode::OK, &result(incoming, &sent[0]));
    Ok(Action::Send(vec![email], reply))
}

fn send_batch(incoming: &Incoming, _: &Templates<'_>) -> Result<Action, Failure> {
    let Batch { base, requests } = incoming.json()?;
    if !(1..=MAX_BATCH).contains(&requests.0.len()) {
        return Err(Failure::new(FailureKind::Invalid, format!("A batch must have 1 to {MAX_BATCH} requests.")));
    }
    let (base, budget) = (email(Email::default(), base)?, &incoming.budget);
    let add = |request| budget.add(email(base.clone(), request).and_then(check_content)?);
    let emails = requests.0.into_iter().map(add).collect();
    let reply = |incoming: &Incoming, results: &[Result<Sent, Failure>]| {
        let responses = results.iter().map(|sent| match sent {
            Ok(sent) => result(incoming, sent),
            Err(failure) => error(failure),
        });
        Reply::json(StatusCode::OK, &json!({"success": true, "responses": responses.collect::<Vec<_>>()}))
    };
    Ok(Action::SendEach(emails, reply))
}

/// Returns the result of a message: an id for each recipient, or only one from a sandbox.
fn result(incoming: &Incoming, sent: &Sent) -> Value {
    let count = if incoming.path_value("inbox").is_empty() { sent.recipients().count() } else { 1 };
    json!({"success": true, "message_ids": vec![sent.uuid(); count]})
}

/// Returns a message with the members of a request. They replace those of the message.
fn email(mut email: Email, request: SendRequest<'_>) -> Result<Email, Failure> {
    let lists =
        [("to", request.to, &mut email.to), ("cc", request.cc, &mut email.cc), ("bcc", request.bcc, &mut email.bcc)];
    for (field, list, known) in lists {
        if let Some(List(list)) = list {
            *known = Contact::people(field, "email", &list)?;
        }
    }
    if let Some(from) = request.from {
        email.from = Some(from.person("from.email")?);
    }
    if let Some(OneOrMany(reply_to)) = request.reply_to {
        email.reply_to = Contact::people("reply_to", "email", &reply_to)?;
    }
    if let Some(Texts(headers)) = request.headers {
        email.headers = headers;
    }
    if let Some(Texts(variables)) = request.custom_variables {
        email.metadata = variables;
    }
    if let Some(category) = request.category {
        email.tags = vec![category];
    }
    let (template, mut parts) = match email.content {
        Content::Template(template, parts) => (Some(template), parts),
        Content::Parts(parts) => (None, parts),
        Content::Raw(_) => (None, Parts::default()),
    };
    parts.subject = request.subject.unwrap_or(parts.subject);
    parts.text = request.text.or(parts.text);
    parts.html = request.html.or(parts.html);
    if let Some(files) = request.attachments {
        parts.attachments = files::attachments("attachments", "content", &files)?;
    }
    let data = request.template_variables.map(RawValue::get);
    if data.is_some_and(|data| data.len() > MAX_RAW_BYTES) {
        return Err(Failure::invalid("template_variables", &format!("has more than {MAX_RAW_BYTES} bytes")));
    }
    let template = match (request.template_uuid, template) {
        (Some(id), _) => {
            Some(TemplateUse { source: TemplateSource::Stored(id), data: data.unwrap_or("{}").to_owned() })
        }
        (None, Some(TemplateUse { source, data: known })) => {
            Some(TemplateUse { source, data: data.map_or(known, str::to_owned) })
        }
        (None, None) => None,
    };
    email.content = match template {
        Some(template) => Content::Template(template, parts),
        None => Content::Parts(parts),
    };
    Ok(email)
}

/// Fails if a message has neither a template nor a subject and a text.
fn check_content(email: Email) -> Result<Email, Failure> {
    if email.from.is_none() {
        return Err(Failure::missing("from"));
    }
    if let Content::Parts(parts) = &email.content {
        if parts.subject.is_empty() {
            return Err(Failure::missing("subject"));
        }
        if parts.text.is_none() && parts.html.is_none() {
            return Err(Failure::new(FailureKind::Invalid, "must specify either text or html body"));
        }
    }
    Ok(email)
}
