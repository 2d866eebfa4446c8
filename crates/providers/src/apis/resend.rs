//! The API of Resend. The paths that Postmark has too are in [`super::resend_postmark`].

use std::cell::RefCell;
use std::sync::Arc;

use axum::http::{HeaderMap, StatusCode};
use axum::routing::MethodFilter;
use bytes::Bytes;
use restante_http_core::api::Api;
use restante_mail::compose::Attachment;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use crate::email::{Content, Email, Parts, Sent, parse_id, uuid};
use crate::failure::{Failure, FailureKind, MISSING_KEY};
use crate::incoming::{Incoming, decode_base64};
use crate::json_templates::{body, find, put, stored_members};
use crate::pairs::{self, Pair};
use crate::person::Person;
use crate::provider::{Action, Provider, Routes, bearer};
use crate::reply::Reply;
use crate::stored::StoredEmail;
use crate::templates::{Template, TemplateSource, TemplateStore, TemplateUse, Templates};
use crate::text_budget::TextBudget;
use crate::values::{List, OneOrMany, Text, Texts, merge_objects};

const MAX_BATCH: usize = 100;
/// What is wrong with an address, in the words of Resend.
const ADDRESS_FORM: &str =
    "The email address needs to follow the `email@example.com` or `Name <email@example.com>` format.";

pub(crate) struct Resend;

impl Provider for Resend {
    const NAME: &'static str = "resend";

    fn key(headers: &HeaderMap) -> Option<String> {
        bearer(headers)
    }

    fn failure(failure: &Failure) -> Reply {
        let field = failure.field.as_deref().unwrap_or_default();
        let (status, name) = match failure.kind {
            FailureKind::Malformed => (StatusCode::BAD_REQUEST, "validation_error"),
            FailureKind::Missing => (StatusCode::UNPROCESSABLE_ENTITY, "missing_required_field"),
            FailureKind::Invalid if field.starts_with("attachments") => {
                (StatusCode::UNPROCESSABLE_ENTITY, "invalid_attachment")
            }
            FailureKind::Invalid | FailureKind::Exists => (StatusCode::UNPROCESSABLE_ENTITY, "validation_error"),
            FailureKind::Unauthorized if field == MISSING_KEY => (StatusCode::UNAUTHORIZED, "missing_api_key"),
            FailureKind::Unauthorized | FailureKind::Forbidden => (StatusCode::FORBIDDEN, "invalid_api_key"),
            FailureKind::NotFound => (StatusCode::NOT_FOUND, "not_found"),
            FailureKind::RateLimited => (StatusCode::TOO_MANY_REQUESTS, "rate_limit_exceeded"),
            kind => (kind.status(), "application_error"),
        };
        let message = match failure.kind {
            FailureKind::Missing => &format!("Missing `{field}` field."),
            FailureKind::Unauthorized if field != MISSING_KEY => "API key is invalid",
            _ => &failure.message,
        };
        Reply::json(status, &json!({"name": name, "statusCode": status.as_u16(), "message": message}))
    }
}

/// Returns the API.
pub(crate) fn api(templates: &Arc<TemplateStore>) -> Api {
    Routes::new::<Resend>(templates)
        .get("/emails", |_, _| list(&[]))
        .post("/emails", send)
        .get("/emails/receiving", |_, _| list(&[]))
        .post("/emails/batch", send_batch)
        .get("/emails/{id}", read)
        .on(MethodFilter::PATCH, "/emails/{id}", confirm)
        .post("/emails/{id}/cancel", confirm)
        .get("/domains/{id}", |incoming, _| domain(incoming.path_value("id")))
        .on(MethodFilter::PATCH, "/domains/{id}", |incoming, _| named("domain", incoming.path_value("id")))
        .on(MethodFilter::DELETE, "/domains/{id}", |incoming, _| deleted("domain", incoming.path_value("id")))
        .post("/domains/{id}/verify", |incoming, _| named("domain", incoming.path_value("id")))
        .post("/templates/{id}/publish", publish_template)
        .post("/templates/{id}/duplicate", duplicate_template)
        .api()
}

#[derive(Deserialize)]
struct SendRequest<'a> {
    from: Option<String>,
    #[serde(default)]
    to: OneOrMany<String>,
    #[serde(default)]
    cc: OneOrMany<String>,
    #[serde(default)]
    bcc: OneOrMany<String>,
    #[serde(default, alias = "replyTo")]
    reply_to: OneOrMany<String>,
    subject: Option<String>,
    text: Option<String>,
    html: Option<String>,
    #[serde(default)]
    headers: Texts,
    #[serde(borrow, default)]
    attachments: List<File<'a>>,
    #[serde(default)]
    tags: List<Pair>,
    #[serde(alias = "scheduledAt")]
    scheduled_at: Option<String>,
    #[serde(borrow)]
    template: Option<UsedTemplate<'a>>,
}

#[derive(Deserialize)]
struct File<'a> {
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    filename: Option<String>,
    #[serde(alias = "contentType")]
    content_type: Option<String>,
    #[serde(alias = "contentId")]
    content_id: Option<String>,
    inline_content_id: Option<String>,
}

#[derive(Deserialize)]
struct UsedTemplate<'a> {
    id: String,
    #[serde(borrow)]
    variables: Option<&'a RawValue>,
}

fn send(incoming: &Incoming, templates: &Templates<'_>) -> Result<Action, Failure> {
    let email = email(incoming.json()?, templates, &incoming.budget)?;
    Ok(Action::Send(vec![email], |_, sent| Reply::json(StatusCode::OK, &id(&sent[0]))))
}

fn send_batch(incoming: &Incoming, templates: &Templates<'_>) -> Result<Action, Failure> {
    let List(requests) = incoming.json()?;
    if !(1..=MAX_BATCH).contains(&requests.len()) {
        return Err(Failure::new(FailureKind::Invalid, format!("A batch must have 1 to {MAX_BATCH} emails.")));
    }
    let budget = &incoming.budget;
    let emails = requests.into_iter().map(|request| email(request, templates, budget));
    if incoming.header("x-batch-validation") == Some("permissive") {
        return Ok(Action::SendEach(emails.collect(), permissive_reply));
    }
    let reply = |_: &Incoming, sent: &[Sent]| {
        Reply::json(StatusCode::OK, &json!({"data": sent.iter().map(id).collect::<Vec<_>>()}))
    };
    Ok(Action::Send(emails.collect::<Result<_, _>>()?, reply))
}

fn permissive_reply(_: &Incoming, results: &[Result<Sent, Failure>]) -> Reply {
    let errors = results.iter().enumerate().filter_map(|(index, result)| {
        let failure = result.as_ref().err()?;
        Some(json!({"index": index, "message": failure.message}))
    });
    let data: Vec<_> = results.iter().flatten().map(id).collect();
    Reply::json(StatusCode::OK, &json!({"data": data, "errors": errors.collect::<Vec<_>>()}))
}

fn id(sent: &Sent) -> serde_json::Value {
    json!({"id": sent.uuid()})
}

fn email(request: SendRequest<'_>, templates: &Templates<'_>, budget: &TextBudget) -> Result<Email, Failure> {
    let stored = request.template.as_ref().and_then(|used| templates.find(&used.id));
    let stored = stored.map(|template| stored_members::<StoredTemplate>(&template)).transpose()?;
    if request.template.is_none() {
        if request.subject.is_none() {
            return Err(Failure::missing("subject"));
        }
        if request.text.is_none() && request.html.is_none() {
            return Err(Failure::missing("html` or `text"));
        }
    }
    let files = request.attachments.0.into_iter().enumerate().map(|(index, file)| attachment(index, file));
    let parts = Parts {
        subject: request.subject.unwrap_or_default(),
        text: request.text,
        html: request.html,
        attachments: files.collect::<Result<_, _>>()?,
    };
    let default = stored.as_ref();
    let from = request.from.as_deref().or(default.and_then(|template| template.from.as_deref())).unwrap_or_default();
    let reply_to = match (&request.reply_to.0[..], default) {
        ([], Some(template)) => &template.reply_to.0,
        (own, _) => own,
    };
    let mut email = Email {
        from: Some(Person::parse("from", from).map_err(|failure| address_failure("from", failure))?),
        to: Person::limited("to", people("to", &request.to.0)?)?,
        cc: people("cc", &request.cc.0)?,
        bcc: people("bcc", &request.bcc.0)?,
        reply_to: people("reply_to", reply_to)?,
        content: Content::default(),
        headers: request.headers.0,
        tags: pairs::tags(&request.tags.0),
        metadata: Vec::new(),
        scheduled: request.scheduled_at,
    };
    email.content = match request.template {
        None => Content::Parts(parts),
        Some(used) => Content::Template(template_use(&used, stored, budget)?, parts),
    };
    budget.add(email)
}

fn people(field: &str, texts: &[String]) -> Result<Vec<Person>, Failure> {
    Person::parse_all(field, texts).map_err(|failure| address_failure(field, failure))
}

fn address_failure(field: &str, failure: Failure) -> Failure {
    match failure.kind {
        FailureKind::Missing => failure,
        _ => Failure { message: format!("Invalid `{field}` field. {ADDRESS_FORM}"), ..failure },
    }
}

fn attachment(index: usize, file: File<'_>) -> Result<Attachment, Failure> {
    let field = format!("attachments[{index}].content");
    let Some(content) = file.content else {
        return Err(Failure::invalid(field, "is required, because the server does not download files"));
    };
    Ok(Attachment {
        filename: file.filename,
        content_type: file.content_type,
        content: file_content(&field, content)?,
        content_id: file.content_id.or(file.inline_content_id),
    })
}

/// Returns the content of a file: base64, a list of bytes, or the JSON of a buffer of Node.js. A list of bytes is shorter than the
/// request, so its length is not limited otherwise.
fn file_content(field: &str, value: &RawValue) -> Result<Bytes, Failure> {
    #[derive(Deserialize)]
    struct Buffer {
        data: Vec<u8>,
    }

    let text = value.get();
    let bytes: Result<Vec<u8>, _> = match text.as_bytes().first() {
        Some(b'[') => serde_json::from_str(text),
        Some(b'{') => serde_json::from_str(text).map(|Buffer { data }| data),
        _ => {
            let Text(text) = serde_json::from_str(text).map_err(Failure::malformed)?;
            return decode_base64(field, &text);
        }
    };
    bytes.map(Bytes::from).map_err(|_| Failure::invalid(field, "is neither base64 nor a list of bytes"))
}

fn email_id(incoming: &Incoming) -> Result<restante_mail::message::MessageId, Failure> {
    parse_id(incoming.path_value("id")).ok_or_else(|| Failure::new(FailureKind::NotFound, "Email not found"))
}

fn read(incoming: &Incoming, _: &Templates<'_>) -> Result<Action, Failure> {
    let reply = |email: &StoredEmail| {
        let header = &email.header;
        let tags = email.tags().map(|tag| tag.split_once('.').unwrap_or((tag, "")));
        let tags = tags.map(|(name, value)| json!({"name": name, "value": value}));
        let body = json!({
            "object": "email",
            "id": uuid(email.id),
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
            "scheduled_at": email.scheduled(),
            "tags": tags.collect::<Vec<_>>(),
        });
        Reply::json(StatusCode::OK, &body)
    };
    Ok(Action::Read(email_id(incoming)?, reply))
}

/// Responds to a change of the scheduled time. Nothing changes, because messages do not wait for it.
fn confirm(incoming: &Incoming, _: &Templates<'_>) -> Result<Action, Failure> {
    let reply = |email: &StoredEmail| Reply::json(StatusCode::OK, &json!({"object": "email", "id": uuid(email.id)}));
    Ok(Action::Read(email_id(incoming)?, reply))
}

/// Returns the response with the kind and the id of a thing.
fn named(object: &str, id: &str) -> Result<Action, Failure> {
    Action::json(&json!({"object": object, "id": id}))
}

fn deleted(object: &str, id: &str) -> Result<Action, Failure> {
    Action::json(&json!({"object": object, "id": id, "deleted": true}))
}

pub(crate) fn list_domains(_: &Incoming, _: &Templates<'_>) -> Result<Action, Failure> {
    list(&[])
}

fn list(items: &[serde_json::Value]) -> Result<Action, Failure> {
    Action::json(&json!({"object": "list", "has_more": false, "data": items}))
}

/// Returns a domain. All domains are verified, and their names are their ids.
fn domain(name: &str) -> Result<Action, Failure> {
    Action::json(
        &json!({"object": "domain", "id": name, "name": name, "status": "verified", "region": "us-east-1", "records": []}),
    )
}

pub(crate) fn create_domain(incoming: &Incoming, _: &Templates<'_>) -> Result<Action, Failure> {
    #[derive(Deserialize)]
    struct Domain {
        name: Option<String>,
    }

    domain(&incoming.json::<Domain>()?.name.ok_or_else(|| Failure::missing("name"))?)
}

/// The members of a stored template.
#[derive(Deserialize)]
struct StoredTemplate {
    from: Option<String>,
    #[serde(default)]
    reply_to: OneOrMany<String>,
    subject: Option<String>,
    text: Option<String>,
    html: Option<String>,
    #[serde(default)]
    variables: List<Variable>,
}

#[derive(Deserialize)]
struct Variable {
    key: String,
    fallback_value: Option<Box<RawValue>>,
}

/// Returns a template as it is rendered, and its data with the values of variables that the request does not have.
fn template_use(
    used: &UsedTemplate<'_>,
    stored: Option<StoredTemplate>,
    budget: &TextBudget,
) -> Result<TemplateUse, Failure> {
    let data = used.variables.map_or("{}", RawValue::get);
    let Some(stored) = stored else {
        return Ok(TemplateUse { source: TemplateSource::Stored(used.id.clone()), data: data.to_owned() });
    };
    let fallbacks = RefCell::new(serde_json::Map::new());
    let convert = |text: &str| budget.replace(text, ["{{", "}}"], |variable| take_fallback(variable, &fallbacks));
    let template = Template {
        subject: convert(&stored.subject.unwrap_or_default())?,
        text: stored.text.as_deref().map(convert).transpose()?,
        html: stored.html.as_deref().map(convert).transpose()?,
        ..Template::default()
    };
    let mut fallbacks = fallbacks.into_inner();
    for Variable { key, fallback_value } in stored.variables.0 {
        fallbacks.extend(fallback_value.map(|value| (key, serde_json::from_str(value.get()).unwrap_or_default())));
    }
    let fallbacks = serde_json::Value::Object(fallbacks).to_string();
    let data = budget.merge_objects("template.variables", [fallbacks.as_str(), data])?;
    Ok(TemplateUse { source: TemplateSource::Inline(template), data })
}

/// Removes the fallback value from the text between the braces of a variable: `NAME|fallback` or `{NAME|fallback`.
fn take_fallback(variable: &str, fallbacks: &RefCell<serde_json::Map<String, serde_json::Value>>) -> Option<String> {
    let (name, fallback) = variable.split_once(['|', ','])?;
    let key = name.trim_start_matches('{').trim();
    fallbacks.borrow_mut().insert(key.to_owned(), fallback.trim().into());
    Some(format!("{{{{{}}}}}", name.trim()))
}

/// Stores a template with the members of these objects.
fn put_template(templates: &Templates<'_>, id: String, objects: &[&str]) -> Result<Action, Failure> {
    named("template", &put::<StoredTemplate>(templates, id, "name", objects, |_| Ok(()))?.id)
}

pub(crate) fn create_template(incoming: &Incoming, templates: &Templates<'_>) -> Result<Action, Failure> {
    put_template(templates, uuid(templates.new_number().into()), &[body(incoming)?])
}

pub(crate) fn update_template(incoming: &Incoming, templates: &Templates<'_>) -> Result<Action, Failure> {
    let template = find(incoming, templates)?;
    put_template(templates, template.id.clone(), &[&template.extra, body(incoming)?])
}

fn duplicate_template(incoming: &Incoming, templates: &Templates<'_>) -> Result<Action, Failure> {
    let id = uuid(templates.new_number().into());
    put_template(templates, id, &[&find(incoming, templates)?.extra, "{\"alias\":null}"])
}

/// Responds to the publication of a template. Templates can be used before, too.
fn publish_template(incoming: &Incoming, templates: &Templates<'_>) -> Result<Action, Failure> {
    named("template", &find(incoming, templates)?.id)
}

pub(crate) fn read_template(incoming: &Incoming, templates: &Templates<'_>) -> Result<Action, Failure> {
    let template = find(incoming, templates)?;
    let own = json!({"object": "template", "id": template.id, "status": "published"}).to_string();
    let text = merge_objects("template", [template.extra.as_str(), own.as_str()])?;
    Ok(Action::Reply(Reply::empty(StatusCode::OK).with_body("application/json", text)))
}

pub(crate) fn delete_template(incoming: &Incoming, templates: &Templates<'_>) -> Result<Action, Failure> {
    let template = find(incoming, templates)?;
    templates.remove(&template.id);
    deleted("template", &template.id)
}

pub(crate) fn list_templates(_: &Incoming, templates: &Templates<'_>) -> Result<Action, Failure> {
    let item = |template: Arc<Template>| json!({"id": template.id, "name": template.name, "alias": template.alias, "status": "published"});
    list(&templates.list().into_iter().map(item).collect::<Vec<_>>())
}
