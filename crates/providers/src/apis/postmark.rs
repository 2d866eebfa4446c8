//! The API of Postmark. Its paths that Resend has too are in [`super::resend_postmark`]. Messages with the token
//! `POSTMARK_API_TEST` are stored like others.

use std::sync::Arc;

use axum::http::{HeaderMap, StatusCode};
use jiff::Timestamp;
use restante_http_core::api::Api;
use restante_mail::mime::NamedAddress;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::email::{Content, Email, Parts, Sent, parse_id, uuid};
use crate::failure::{Failure, FailureKind};
use crate::files::{self, File};
use crate::incoming::Incoming;
use crate::json_templates::{body, find, put, stored_members};
use crate::pairs::{Pair, pairs};
use crate::person::Person;
use crate::provider::{Action, Provider, Routes, header_key};
use crate::reply::Reply;
use crate::stored::StoredEmail;
use crate::templates::{TEMPLATE, Template, TemplateSource, TemplateStore, TemplateUse, Templates};
use crate::text_budget::TextBudget;
use crate::values::{List, MAX_RAW_BYTES, Texts, text_of};

const MAX_BATCH: usize = 500;
/// The maximum length of an address in an error message.
const MAX_SHOWN_CHARS: usize = 200;
/// The name of the content of a template in its layout.
const LAYOUT_CONTENT: &str = "@content";

pub(crate) struct Postmark;

impl Provider for Postmark {
    const NAME: &'static str = "postmark";

    fn key(headers: &HeaderMap) -> Option<String> {
        header_key(headers, "x-postmark-server-token").or_else(|| header_key(headers, "x-postmark-account-token"))
    }

    fn failure(failure: &Failure) -> Reply {
        let status = match failure.kind {
            FailureKind::Malformed
            | FailureKind::Missing
            | FailureKind::Invalid
            | FailureKind::Exists
            | FailureKind::NotFound => StatusCode::UNPROCESSABLE_ENTITY,
            kind => kind.status(),
        };
        Reply::json(status, &error(failure))
    }
}

/// Returns the code of an error.
pub(crate) fn error_code(failure: &Failure) -> u16 {
    let field = failure.field.as_deref().unwrap_or_default();
    match failure.kind {
        FailureKind::Malformed => 402,
        FailureKind::Invalid if field == "Messages" => 410,
        FailureKind::Missing if field == "Name" => 1120,
        FailureKind::Missing | FailureKind::Invalid | FailureKind::TooLarge => 300,
        FailureKind::Unauthorized | FailureKind::Forbidden => 10,
        FailureKind::NotFound if field == TEMPLATE => 1101,
        FailureKind::NotFound => 701,
        FailureKind::Exists => 1122,
        FailureKind::RateLimited => 429,
        FailureKind::Unavailable => 100,
        FailureKind::Internal => 500,
    }
}

fn error(failure: &Failure) -> Value {
    let message = match (failure.kind, failure.field.as_deref()) {
        (FailureKind::Missing, Some("to")) => "Zero recipients specified",
        _ => &failure.message,
    };
    json!({"ErrorCode": error_code(failure), "Message": message})
}

/// Returns the API.
pub(crate) fn api(templates: &Arc<TemplateStore>) -> Api {
    Routes::new::<Postmark>(templates)
        .post("/email", send)
        .post("/email/withTemplate", send)
        .post("/email/batch", |incoming, templates| {
            let List(messages) = incoming.json()?;
            send_batch(incoming, templates, messages)
        })
        .post("/email/batchWithTemplates", |incoming, templates| {
            let Batch { messages } = incoming.json()?;
            send_batch(incoming, templates, messages.0)
        })
        .post("/email/bulk", send_bulk)
        .get("/email/bulk/{id}", read_bulk)
        .get("/messages/outbound/{id}/details", read)
        .post("/templates/validate", |_, _| Action::json(&validation()))
        .get("/messages/outbound", |_, _| list("Messages"))
        .get("/senders", |_, _| list("SenderSignatures"))
        .get("/servers", |_, _| list("Servers"))
        .get("/deliverystats", |_, _| Action::json(&json!({"InactiveMails": 0, "Bounces": []})))
        .get("/server", |_, _| {
            Action::json(
                &json!({"ID": 1, "Name": "Restante", "ApiTokens": [], "Color": "grey", "SmtpApiActivated": true}),
            )
        })
        .get("/message-streams", |_, _| {
            let stream =
                json!({"ID": "outbound", "ServerID": 1, "Name": "Outbound", "MessageStreamType": "Transactional"});
            Action::json(&json!({"MessageStreams": [stream], "TotalCount": 1}))
        })
        .api()
}

/// Returns the response with an empty list of this name.
fn list(name: &str) -> Result<Action, Failure> {
    Action::json(&json!({"TotalCount": 0, name: []}))
}

pub(crate) fn list_domains(_: &Incoming, _: &Templates<'_>) -> Result<Action, Failure> {
    list("Domains")
}

/// Returns the result of the validation of a template. All templates are valid, and none is rendered.
fn validation() -> Value {
    let part = json!({"ContentIsValid": true, "ValidationErrors": [], "RenderedContent": ""});
    json!({"AllContentIsValid": true, "Subject": part, "TextBody": part, "HtmlBody": part, "SuggestedTemplateModel": {}})
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Message<'a> {
    from: Option<String>,
    to: Option<String>,
    cc: Option<String>,
    bcc: Option<String>,
    reply_to: Option<String>,
    subject: Option<String>,
    html_body: Option<String>,
    text_body: Option<String>,
    tag: Option<String>,
    #[serde(default)]
    metadata: Texts,
    #[serde(default)]
    headers: List<Pair>,
    #[serde(borrow, default)]
    attachments: List<File<'a>>,
    #[serde(borrow)]
    template_id: Option<&'a RawValue>,
    template_alias: Option<String>,
    #[serde(borrow)]
    template_model: Option<&'a RawValue>,
    /// What differs between the messages of a bulk request.
    #[serde(borrow, default)]
    messages: List<BulkMessage<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Batch<'a> {
    #[serde(borrow)]
    messages: List<Message<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct BulkMessage<'a> {
    to: Option<String>,
    cc: Option<String>,
    bcc: Option<String>,
    #[serde(default)]
    metadata: Texts,
    #[serde(default)]
    headers: List<Pair>,
    #[serde(borrow)]
    template_model: Option<&'a RawValue>,
}

fn send(incoming: &Incoming, templates: &Templates<'_>) -> Result<Action, Failure> {
    let email = email(incoming.json()?, templates, &incoming.budget)?;
    Ok(Action::Send(vec![email], |_, sent| Reply::json(StatusCode::OK, &result(&sent[0]))))
}

fn send_batch(incoming: &Incoming, templates: &Templates<'_>, messages: Vec<Message<'_>>) -> Result<Action, Failure> {
    check_count(messages.len())?;
    let budget = &incoming.budget;
    let emails = messages.into_iter().map(|message| email(message, templates, budget)).collect();
    let reply = |_: &Incoming, results: &[Result<Sent, Failure>]| {
        let results = results.iter().map(|sent| sent.as_ref().map_or_else(error, result));
        Reply::json(StatusCode::OK, &results.collect::<Vec<_>>())
    };
    Ok(Action::SendEach(emails, reply))
}

fn check_count(count: usize) -> Result<(), Failure> {
    if count <= MAX_BATCH {
        return Ok(());
    }
    let message =
        format!("Batch message limit exceeded. A batch has at most {MAX_BATCH} messages, but this one has {count}.");
    Err(Failure { field: Some("Messages".to_owned()), ..Failure::new(FailureKind::Invalid, message) })
}

fn send_bulk(incoming: &Incoming, templates: &Templates<'_>) -> Result<Action, Failure> {
    let mut message: Message<'_> = incoming.json()?;
    let List(copies) = std::mem::take(&mut message.messages);
    check_count(copies.len())?;
    if copies.is_empty() {
        return Err(Failure::missing("to"));
    }
    // All texts of a bulk request can have variables.
    message.template_model.get_or_insert(RawValue::NULL);
    let (common, budget) = (email_without_recipients(message, templates)?, &incoming.budget);
    let emails = copies.into_iter().map(|copy| {
        let mut email = common.clone();
        email.metadata.extend(copy.metadata.0);
        if !copy.headers.0.is_empty() {
            email.headers = pairs(copy.headers);
        }
        if let (Content::Template(template, _), Some(model)) = (&mut email.content, copy.template_model) {
            template.data = budget.merge_objects("TemplateModel", [template.data.as_str(), model.get()])?;
        }
        budget.add(add_recipients(email, [copy.to, copy.cc, copy.bcc])?)
    });
    Ok(Action::Send(emails.collect::<Result<_, _>>()?, |_, sent| {
        let body = json!({
            "ID": sent[0].uuid(),
            "Status": "Accepted",
            "SubmittedAt": Timestamp::now().to_string(),
            "TotalMessages": sent.len(),
            "PercentageCompleted": 100,
        });
        Reply::json(StatusCode::OK, &body)
    }))
}

/// Responds about a bulk request. Its id is that of its first message.
fn read_bulk(incoming: &Incoming, _: &Templates<'_>) -> Result<Action, Failure> {
    let reply = |email: &StoredEmail| {
        let body = json!({
            "Id": uuid(email.id),
            "SubmittedAt": email.received.to_string(),
            "PercentageCompleted": 100,
            "Status": "Completed",
            "Subject": email.header.subject,
        });
        Reply::json(StatusCode::OK, &body)
    };
    Ok(Action::Read(message_id(incoming)?, reply))
}

fn email(mut message: Message<'_>, templates: &Templates<'_>, budget: &TextBudget) -> Result<Email, Failure> {
    let recipients = [message.to.take(), message.cc.take(), message.bcc.take()];
    if message.template_id.is_none() && message.template_alias.is_none() {
        message.template_model = None;
    }
    budget.add(add_recipients(email_without_recipients(message, templates)?, recipients)?)
}

fn add_recipients(email: Email, [to, cc, bcc]: [Option<String>; 3]) -> Result<Email, Failure> {
    let list = |field: &str, text: Option<String>| people(field, text.as_deref());
    Ok(Email { to: list("To", to)?, cc: list("Cc", cc)?, bcc: list("Bcc", bcc)?, ..email })
}

fn email_without_recipients(message: Message<'_>, templates: &Templates<'_>) -> Result<Email, Failure> {
    let from = people("From", message.from.as_deref())?.into_iter().next();
    let mut parts = Parts {
        subject: message.subject.unwrap_or_default(),
        text: message.text_body,
        html: message.html_body,
        attachments: files::attachments("Attachments", "Content", &message.attachments)?,
    };
    let data = message.template_model.map(|model| model.get().trim()).filter(|model| *model != "null");
    let data = data.unwrap_or("{}");
    if data.len() > MAX_RAW_BYTES {
        return Err(Failure::invalid("TemplateModel", &format!("has more than {MAX_RAW_BYTES} bytes")));
    }
    let name = message.template_id.map(text_of).filter(|id| !id.is_empty()).or(message.template_alias);
    let source = match name {
        Some(name) => Some(find_source(&name, templates)?),
        None if [&parts.text, &parts.html].into_iter().flatten().all(String::is_empty) => {
            let message = "Provide either email TextBody or HtmlBody or both.";
            return Err(Failure::new(FailureKind::Invalid, message));
        }
        None if message.template_model.is_some() => {
            let (text, html) = (parts.text.take(), parts.html.take());
            let subject = std::mem::take(&mut parts.subject);
            Some(TemplateSource::Inline(Template { subject, text, html, ..Template::default() }))
        }
        None => None,
    };
    let content = match source {
        Some(source) => Content::Template(TemplateUse { source, data: data.to_owned() }, parts),
        None => Content::Parts(parts),
    };
    Ok(Email {
        from: Some(from.ok_or_else(|| invalid_address("From", ""))?),
        reply_to: people("ReplyTo", message.reply_to.as_deref())?,
        content,
        headers: pairs(message.headers),
        tags: message.tag.into_iter().collect(),
        metadata: message.metadata.0,
        ..Email::default()
    })
}

fn people(field: &str, text: Option<&str>) -> Result<Vec<Person>, Failure> {
    let text = text.unwrap_or_default();
    let people = Person::parse_list(field, text).map_err(|_| {
        let wrong = text.split(',').find(|part| Person::parse(field, part).is_err()).unwrap_or(text);
        invalid_address(field, wrong.rsplit('<').next().unwrap_or_default().trim_end_matches(['>', ' ']))
    })?;
    Person::limited(field, people)
}

fn invalid_address(field: &str, address: &str) -> Failure {
    let address: String = address.trim().chars().take(MAX_SHOWN_CHARS).collect();
    Failure::new(FailureKind::Invalid, format!("Invalid '{field}' address: '{address}'."))
}

/// Returns the result of a message. It has only the lists that the request has.
fn result(sent: &Sent) -> Value {
    let mut body = json!({
        "SubmittedAt": Timestamp::now().to_string(),
        "MessageID": sent.uuid(),
        "ErrorCode": 0,
        "Message": "OK",
    });
    for (name, people) in [("To", &sent.to), ("Cc", &sent.cc), ("Bcc", &sent.bcc)] {
        if !people.is_empty() {
            body[name] = people.iter().map(Person::quoted).collect::<Vec<_>>().join(", ").into();
        }
    }
    body
}

fn message_id(incoming: &Incoming) -> Result<restante_mail::message::MessageId, Failure> {
    let not_found = || Failure::new(FailureKind::NotFound, "This message was not found.");
    parse_id(incoming.path_value("id")).ok_or_else(not_found)
}

fn read(incoming: &Incoming, _: &Templates<'_>) -> Result<Action, Failure> {
    let reply = |email: &StoredEmail| {
        let header = &email.header;
        let recipients = |texts: &[String]| -> Vec<Value> {
            let people = texts.iter().map(|text| NamedAddress::from_display(text));
            people.map(|NamedAddress { name, address }| json!({"Email": address, "Name": name})).collect()
        };
        let body = json!({
            "MessageID": uuid(email.id),
            "MessageStream": "outbound",
            "To": recipients(header.to.as_deref().unwrap_or_default()),
            "Cc": recipients(&header.cc),
            "Bcc": recipients(&header.bcc),
            "Tag": email.tags().next(),
            "ReceivedAt": email.received.to_string(),
            "From": header.from,
            "Subject": header.subject,
            "Status": "Sent",
            "TextBody": email.text,
            "HtmlBody": email.html,
            "MessageEvents": [],
        });
        Reply::json(StatusCode::OK, &body)
    };
    Ok(Action::Read(message_id(incoming)?, reply))
}

/// The members of a stored template.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct StoredTemplate {
    #[serde(default)]
    subject: String,
    html_body: Option<String>,
    text_body: Option<String>,
    layout_template: Option<String>,
    template_type: Option<String>,
}

/// Returns the template with this id or alias as it is rendered, in its layout.
fn find_source(name: &str, templates: &Templates<'_>) -> Result<TemplateSource, Failure> {
    let Some(found) = templates.find(name) else { return Ok(TemplateSource::Stored(name.to_owned())) };
    let StoredTemplate { subject, mut html_body, mut text_body, layout_template, .. } = stored_members(&found)?;
    if let Some(layout) = layout_template.and_then(|layout| templates.find(&layout)) {
        let layout: StoredTemplate = stored_members(&layout)?;
        html_body = in_layout(layout.html_body.as_ref(), html_body);
        text_body = in_layout(layout.text_body.as_ref(), text_body);
    }
    Ok(TemplateSource::Inline(Template { subject, text: text_body, html: html_body, ..Template::default() }))
}

fn in_layout(layout: Option<&String>, content: Option<String>) -> Option<String> {
    let (Some(layout), Some(inner)) = (layout, &content) else { return content };
    let Some((before, after)) = around_content(layout) else { return content };
    Some([before, inner, after].concat())
}

/// Returns what a layout has before and after `{{{@content}}}`, in which spaces can be.
fn around_content(layout: &str) -> Option<(&str, &str)> {
    layout.match_indices(LAYOUT_CONTENT).find_map(|(at, name)| {
        let before = layout[..at].trim_end().strip_suffix("{{{")?;
        Some((before, layout[at + name.len()..].trim_start().strip_prefix("}}}")?))
    })
}

/// Fails if a layout has no place for the content of templates.
fn check_layout(template: &StoredTemplate) -> Result<(), Failure> {
    let bodies = [("HtmlBody", &template.html_body), ("TextBody", &template.text_body)];
    let lacks_content =
        |text: &Option<String>| text.as_ref().is_some_and(|text| !text.is_empty() && around_content(text).is_none());
    match bodies.into_iter().find(|(_, text)| lacks_content(text)) {
        Some((name, _)) if template.template_type.as_deref() == Some("Layout") => {
            Err(Failure::invalid(name, "of a layout must contain {{{@content}}}"))
        }
        _ => Ok(()),
    }
}

/// Returns what lists have of a template.
fn summary(template: &Template) -> Value {
    let id: u64 = template.id.parse().unwrap_or_default();
    let stored: Value = serde_json::from_str(&template.extra).unwrap_or_default();
    json!({
        "TemplateId": id,
        "Name": template.name,
        "Active": true,
        "Alias": template.alias,
        "TemplateType": stored.get("TemplateType").and_then(Value::as_str).unwrap_or("Standard"),
        "LayoutTemplate": stored.get("LayoutTemplate"),
    })
}

pub(crate) fn create_template(incoming: &Incoming, templates: &Templates<'_>) -> Result<Action, Failure> {
    let id = templates.new_number().to_string();
    Action::json(&summary(&put(templates, id, "Name", &[body(incoming)?], check_layout)?))
}

pub(crate) fn update_template(incoming: &Incoming, templates: &Templates<'_>) -> Result<Action, Failure> {
    let template = find(incoming, templates)?;
    let objects = [template.extra.as_str(), body(incoming)?];
    Action::json(&summary(&put(templates, template.id.clone(), "Name", &objects, check_layout)?))
}

pub(crate) fn read_template(incoming: &Incoming, templates: &Templates<'_>) -> Result<Action, Failure> {
    let template = find(incoming, templates)?;
    let StoredTemplate { subject, html_body, text_body, .. } = stored_members(&template)?;
    let mut body = summary(&template);
    body["Subject"] = subject.into();
    body["HtmlBody"] = html_body.into();
    body["TextBody"] = text_body.into();
    body["AssociatedServerId"] = 1.into();
    Action::json(&body)
}

pub(crate) fn delete_template(incoming: &Incoming, templates: &Templates<'_>) -> Result<Action, Failure> {
    let template = find(incoming, templates)?;
    templates.remove(&template.id);
    Action::json(&json!({"ErrorCode": 0, "Message": format!("Template {} removed.", template.id)}))
}

pub(crate) fn list_templates(_: &Incoming, templates: &Templates<'_>) -> Result<Action, Failure> {
    let list: Vec<_> = templates.list().iter().map(|template| summary(template)).collect();
    Action::json(&json!({"TotalCount": list.len(), "Templates": list}))
}
