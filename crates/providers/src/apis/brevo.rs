//! The API of Brevo, version 3.

use std::sync::Arc;

use axum::http::{HeaderMap, Method, StatusCode};
use axum::routing::MethodFilter;
use restante_http_core::api::Api;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::email::{Content, Email, Parts, Sent};
use crate::failure::{Failure, FailureKind};
use crate::files::{self, File};
use crate::incoming::Incoming;
use crate::json_templates::{body, stored_members};
use crate::pairs::override_values;
use crate::person::{Contact, Person};
use crate::provider::{Action, Provider, Routes, header_key};
use crate::reply::Reply;
use crate::templates::{Template, TemplateSource, TemplateStore, TemplateUse, Templates};
use crate::text_budget::TextBudget;
use crate::values::{List, OneOrMany, Texts, merge_objects};
use crate::variables::Variables;

/// The maximum number of recipients of a request.
const MAX_RECIPIENTS: usize = 2000;

struct Brevo;

impl Provider for Brevo {
    const NAME: &'static str = "brevo";

    fn key(headers: &HeaderMap) -> Option<String> {
        header_key(headers, "api-key")
    }

    fn failure(failure: &Failure) -> Reply {
        let (code, message) = match (failure.kind, &failure.field) {
            (FailureKind::Missing, Some(field)) => ("missing_parameter", &format!("{field} is missing")),
            (FailureKind::Missing, None) => ("missing_parameter", &failure.message),
            (FailureKind::Unauthorized, _) => ("unauthorized", &"Key not found".to_owned()),
            (FailureKind::Forbidden, _) => ("permission_denied", &failure.message),
            (FailureKind::NotFound, _) => ("document_not_found", &failure.message),
            (FailureKind::Exists, _) => ("duplicate_parameter", &failure.message),
            (FailureKind::Malformed, _) => ("bad_request", &failure.message),
            (FailureKind::RateLimited, _) => ("too_many_requests", &failure.message),
            (FailureKind::Unavailable | FailureKind::Internal, _) => ("internal_error", &failure.message),
            (FailureKind::Invalid | FailureKind::TooLarge, _) => ("invalid_parameter", &failure.message),
        };
        Reply::json(failure.kind.status(), &json!({"code": code, "message": message}))
    }
}

/// Returns the API.
pub(crate) fn api(templates: &Arc<TemplateStore>) -> Api {
    let changes = MethodFilter::GET.or(MethodFilter::PUT).or(MethodFilter::DELETE);
    Routes::new::<Brevo>(templates)
        .post("/v3/smtp/email", send)
        .get("/v3/smtp/emails", |_, _| Action::json(&json!({"count": 0, "transactionalEmails": []})))
        .get("/v3/account", account)
        .get("/v3/senders", |_, _| Action::json(&json!({"senders": []})))
        .get("/v3/senders/domains", |_, _| Action::json(&json!({"domains": []})))
        .get("/v3/smtp/templates", list_templates)
        .post("/v3/smtp/templates", create_template)
        .on(changes, "/v3/smtp/templates/{id}", template)
        .api()
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct SendRequest<'a> {
    sender: Option<Sender>,
    to: List<Contact>,
    cc: List<Contact>,
    bcc: List<Contact>,
    reply_to: Option<Contact>,
    subject: Option<String>,
    html_content: Option<String>,
    text_content: Option<String>,
    #[serde(borrow)]
    attachment: List<File<'a>>,
    headers: Texts,
    params: Option<&'a RawValue>,
    tags: OneOrMany<String>,
    template_id: Option<&'a RawValue>,
    message_versions: List<Version<'a>>,
    scheduled_at: Option<String>,
}

/// A message for some of the recipients. It has the values of the request that it does not replace.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Version<'a> {
    to: List<Contact>,
    cc: List<Contact>,
    bcc: List<Contact>,
    reply_to: Option<Contact>,
    subject: Option<String>,
    html_content: Option<String>,
    text_content: Option<String>,
    headers: Texts,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Sender {
    /// The id of a sender that was stored at the provider.
    id: Option<u64>,
    #[serde(flatten)]
    contact: Contact,
}

impl Sender {
    fn person(mut self) -> Result<Person, Failure> {
        if let (Some(id), true) = (self.id, self.contact.email.is_empty()) {
            self.contact.email = format!("sender-{id}@example.com");
        }
        self.contact.person("sender.email")
    }
}

fn send(incoming: &Incoming, templates: &Templates<'_>) -> Result<Action, Failure> {
    let mut request: SendRequest<'_> = incoming.json()?;
    let versions = std::mem::take(&mut request.message_versions.0);
    let template = request.template_id.map(|id| id.get().trim_matches('"').to_owned()).filter(|id| id != "null");
    let (to, params) = (std::mem::take(&mut request.to), request.params);
    let stored = template.as_ref().and_then(|id| templates.find(id)).map(|template| stored_members(&template));
    let defaults: TemplateRequest = stored.transpose()?.unwrap_or_default();
    request.sender = request.sender.or(defaults.sender);
    let mut common = common(request, template.is_some())?;
    if common.reply_to.is_empty() {
        common.reply_to = Person::parse_list("replyTo", &defaults.reply_to.unwrap_or_default())?;
    }
    let budget = &incoming.budget;
    let make = |field: &str, version: Version<'_>| {
        let params =
            budget.merge_objects("params", [params, version.params].into_iter().flatten().map(RawValue::get))?;
        budget.add(email(field, &common, version, template.as_deref(), &params, budget)?)
    };
    if versions.is_empty() {
        let email = make("", Version { to, ..Version::default() })?;
        return Ok(Action::Send(vec![email], |_, sent| created(&json!({"messageId": message_id(&sent[0])}))));
    }
    let versions = versions.into_iter().enumerate();
    let emails = versions.map(|(index, version)| make(&format!("messageVersions[{index}]."), version));
    let emails = emails.collect::<Result<Vec<_>, _>>()?;
    if emails.iter().map(|email| email.to.len() + email.cc.len() + email.bcc.len()).sum::<usize>() > MAX_RECIPIENTS {
        return Err(Failure::invalid("messageVersions", &format!("has more than {MAX_RECIPIENTS} recipients")));
    }
    let reply =
        |_: &Incoming, sent: &[Sent]| created(&json!({"messageIds": sent.iter().map(message_id).collect::<Vec<_>>()}));
    Ok(Action::Send(emails, reply))
}

/// Returns what all messages of a request have in common.
fn common(request: SendRequest<'_>, is_template: bool) -> Result<Email, Failure> {
    let parts = Parts {
        subject: request.subject.unwrap_or_default(),
        text: request.text_content.filter(|text| !text.is_empty()),
        html: request.html_content.filter(|html| !html.is_empty()),
        attachments: files::attachments("attachment", "content", &request.attachment)?,
    };
    let from = match request.sender {
        Some(sender) => sender.person()?,
        None if is_template => Person::unknown_sender()?,
        None => return Err(Failure::missing("sender")),
    };
    Ok(Email {
        from: Some(from),
        cc: Contact::people("cc", "email", &request.cc.0)?,
        bcc: Contact::people("bcc", "email", &request.bcc.0)?,
        reply_to: request.reply_to.map(|contact| contact.person("replyTo.email")).transpose()?.into_iter().collect(),
        content: Content::Parts(parts),
        headers: request.headers.0,
        tags: request.tags.0,
        scheduled: request.scheduled_at,
        ..Email::default()
    })
}

/// Returns a message with the common values and those of a version. `field` is the beginning of the names of its members.
fn email(
    field: &str,
    common: &Email,
    version: Version<'_>,
    template: Option<&str>,
    params: &str,
    budget: &TextBudget,
) -> Result<Email, Failure> {
    let name = |name: &str| format!("{field}{name}");
    let mut email = common.clone();
    email.to = Contact::people(&name("to"), "email", &version.to.0)?;
    if email.to.is_empty() {
        return Err(Failure::missing(name("to")));
    }
    if !version.cc.0.is_empty() {
        email.cc = Contact::people(&name("cc"), "email", &version.cc.0)?;
    }
    if !version.bcc.0.is_empty() {
        email.bcc = Contact::people(&name("bcc"), "email", &version.bcc.0)?;
    }
    if let Some(contact) = version.reply_to {
        email.reply_to = vec![contact.person(&name("replyTo.email"))?];
    }
    override_values(&mut email.headers, version.headers.0);
    let Content::Parts(mut parts) = email.content else { return Ok(email) };
    parts.subject = version.subject.unwrap_or(parts.subject);
    parts.text = version.text_content.or(parts.text);
    parts.html = version.html_content.or(parts.html);
    if template.is_none() && parts.subject.is_empty() {
        return Err(Failure::missing(name("subject")));
    }
    if template.is_none() && parts.text.is_none() && parts.html.is_none() {
        return Err(Failure::missing("either htmlContent, textContent or templateId"));
    }
    if let Some(id) = template {
        let template =
            TemplateUse { source: TemplateSource::Stored(id.to_owned()), data: format!("{{\"params\":{params}}}") };
        return Ok(Email { content: Content::Template(template, parts), ..email });
    }
    let params = Variables::new(serde_json::from_str(params).map_err(Failure::malformed)?);
    let value = |name: &str| params.get(name.strip_prefix("params.")?).map(str::to_owned);
    for text in [Some(&mut parts.subject), parts.text.as_mut(), parts.html.as_mut()].into_iter().flatten() {
        *text = budget.replace(text, ["{{", "}}"], value)?;
    }
    Ok(Email { content: Content::Parts(parts), ..email })
}

fn message_id(sent: &Sent) -> String {
    format!("<{}>", sent.message_id)
}

fn created(body: &Value) -> Reply {
    Reply::json(StatusCode::CREATED, body)
}

fn account(_: &Incoming, _: &Templates<'_>) -> Result<Action, Failure> {
    let body = json!({
        "email": "restante@localhost",
        "firstName": "",
        "lastName": "",
        "companyName": "Restante",
        "address": {"street": "", "city": "", "zipCode": "", "country": ""},
        "plan": [{"type": "free", "creditsType": "sendLimit", "credits": 1_000_000}],
        "relay": {"enabled": false},
    });
    Action::json(&body)
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct TemplateRequest {
    template_name: Option<String>,
    subject: Option<String>,
    html_content: Option<String>,
    sender: Option<Sender>,
    reply_to: Option<String>,
}

fn list_templates(_: &Incoming, templates: &Templates<'_>) -> Result<Action, Failure> {
    let list: Vec<_> = templates.list().iter().map(|template| describe(template)).collect();
    Action::json(&json!({"count": list.len(), "templates": list}))
}

fn create_template(incoming: &Incoming, templates: &Templates<'_>) -> Result<Action, Failure> {
    let number = templates.new_number();
    put(incoming, templates, &Template { id: number.to_string(), extra: "{}".to_owned(), ..Template::default() })?;
    Ok(Action::Reply(created(&json!({"id": number}))))
}

/// Stores a template with the members of a request.
fn put(incoming: &Incoming, templates: &Templates<'_>, template: &Template) -> Result<(), Failure> {
    let content = json!({"htmlContent": template.html}).to_string();
    let members = merge_objects("template", [template.extra.as_str(), &content, body(incoming)?])?;
    let request: TemplateRequest = serde_json::from_str(&members).map_err(Failure::malformed)?;
    templates.put(Template {
        id: template.id.clone(),
        name: request.template_name.ok_or_else(|| Failure::missing("templateName"))?,
        subject: request.subject.ok_or_else(|| Failure::missing("subject"))?,
        html: Some(request.html_content.ok_or_else(|| Failure::missing("htmlContent"))?),
        extra: merge_objects("template", [members.as_str(), "{\"htmlContent\":null}"])?,
        ..Template::default()
    })
}

/// Reads, changes or removes a template.
fn template(incoming: &Incoming, templates: &Templates<'_>) -> Result<Action, Failure> {
    let template = templates.find(incoming.path_value("id"));
    let template = template.ok_or_else(|| Failure::new(FailureKind::NotFound, "Template ID does not exist"))?;
    match incoming.method {
        Method::GET => return Action::json(&describe(&template)),
        Method::DELETE => drop(templates.remove(&template.id)),
        _ => put(incoming, templates, &template)?,
    }
    Ok(Action::Reply(Reply::empty(StatusCode::NO_CONTENT)))
}

fn describe(template: &Template) -> Value {
    let stored: Value = serde_json::from_str(&template.extra).unwrap_or_default();
    json!({
        "id": template.id.parse::<u64>().unwrap_or_default(),
        "name": template.name,
        "subject": template.subject,
        "isActive": true,
        "testSent": false,
        "sender": stored["sender"],
        "replyTo": stored["replyTo"],
        "htmlContent": template.html,
    })
}
