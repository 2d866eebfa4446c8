//! The API of SendGrid, version 3.

use std::sync::Arc;

use axum::http::{HeaderMap, HeaderName, Method, StatusCode};
use axum::routing::MethodFilter;
use restante_http_core::api::Api;
use restante_mail::compose::{Attachment, MAX_RECIPIENTS};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::email::{Content, Email, Parts, Sent};
use crate::failure::{Failure, FailureKind};
use crate::files::{self, File};
use crate::incoming::{Incoming, unix_time};
use crate::pairs::override_values;
use crate::person::Contact;
use crate::provider::{Action, Provider, Routes, bearer};
use crate::reply::Reply;
use crate::templates::{Template, TemplateSource, TemplateStore, TemplateUse, Templates};
use crate::values::{List, Texts};
use crate::versions;

const MESSAGE_ID: HeaderName = HeaderName::from_static("x-message-id");
/// The beginning of the ids of templates that are rendered with `dynamic_template_data`.
const DYNAMIC_PREFIX: &str = "d-";
/// The maximum size of the texts in which the substitutions of a request are searched, for all substitutions together.
const MAX_SEARCHED_BYTES: usize = 256 * 1024 * 1024;

struct SendGrid;

impl Provider for SendGrid {
    const NAME: &'static str = "sendgrid";

    fn key(headers: &HeaderMap) -> Option<String> {
        bearer(headers)
    }

    fn failure(failure: &Failure) -> Reply {
        let message = match failure.kind {
            FailureKind::Unauthorized => "The provided authorization grant is invalid, expired, or revoked",
            FailureKind::Forbidden => "access forbidden",
            _ => &failure.message,
        };
        // Indices are members: personalizations.0.to.1.email
        let field = failure.dotted_field();
        let errors = json!({"errors": [{"message": message, "field": field, "help": null}]});
        Reply::json(failure.kind.status(), &errors)
    }
}

/// Returns the API.
pub(crate) fn api(templates: &Arc<TemplateStore>) -> Api {
    let changes = MethodFilter::GET.or(MethodFilter::PATCH).or(MethodFilter::DELETE);
    Routes::new::<SendGrid>(templates)
        .post("/v3/mail/send", send)
        .get("/v3/scopes", |_, _| Action::json(&json!({"scopes": ["mail.send"]})))
        .get("/v3/user/account", |_, _| Action::json(&json!({"type": "paid", "reputation": 100})))
        .get("/v3/user/credits", |_, _| Action::json(&json!({"remain": 1_000_000, "total": 1_000_000, "used": 0})))
        .get("/v3/verified_senders", |_, _| Action::json(&json!({"results": []})))
        .get("/v3/whitelabel/domains", |_, _| Action::json(&json!([])))
        .get("/v3/templates", list_templates)
        .post("/v3/templates", create_template)
        .on(changes, "/v3/templates/{id}", template)
        .post("/v3/templates/{id}/versions", create_version)
        .on(changes, "/v3/templates/{id}/versions/{version}", version)
        .post("/v3/templates/{id}/versions/{version}/activate", activate_version)
        .api()
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct SendRequest<'a> {
    #[serde(borrow)]
    personalizations: List<Personalization<'a>>,
    from: Contact,
    reply_to: Option<Contact>,
    reply_to_list: List<Contact>,
    subject: Option<String>,
    content: List<Body>,
    attachments: List<File<'a>>,
    /// The id of a template. Empty if there is none.
    template_id: Option<String>,
    headers: Texts,
    sections: Texts,
    categories: List<String>,
    custom_args: Texts,
    send_at: Option<&'a RawValue>,
    mail_settings: MailSettings,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Personalization<'a> {
    to: List<Contact>,
    cc: List<Contact>,
    bcc: List<Contact>,
    from: Option<Contact>,
    subject: Option<String>,
    headers: Texts,
    substitutions: Texts,
    #[serde(borrow)]
    dynamic_template_data: Option<&'a RawValue>,
    custom_args: Texts,
    send_at: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Body {
    #[serde(rename = "type")]
    content_type: String,
    value: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct MailSettings {
    sandbox_mode: Setting,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Setting {
    enable: bool,
}

fn send(incoming: &Incoming, templates: &Templates<'_>) -> Result<Action, Failure> {
    let mut request: SendRequest<'_> = incoming.json()?;
    request.template_id = request.template_id.filter(|id| !id.is_empty());
    let personalizations = std::mem::take(&mut request.personalizations.0);
    check_request(&request, &personalizations)?;
    let is_sandbox = request.mail_settings.sandbox_mode.enable;
    let common = Common::new(request, templates)?;
    let (budget, mut searched) = (&incoming.budget, MAX_SEARCHED_BYTES);
    let personalize =
        |(index, personalization)| budget.add(common.personalize(index, personalization, &mut searched)?);
    let emails = personalizations.into_iter().enumerate().map(personalize).collect::<Result<Vec<_>, _>>()?;
    if is_sandbox {
        return Ok(Action::Reply(Reply::empty(StatusCode::OK)));
    }
    let reply = |_: &Incoming, sent: &[Sent]| Reply::empty(StatusCode::ACCEPTED).with(MESSAGE_ID, sent[0].hex());
    Ok(Action::Send(emails, reply))
}

/// Fails if a request has a value missing that SendGrid requires, or too many recipients.
fn check_request(request: &SendRequest<'_>, personalizations: &[Personalization<'_>]) -> Result<(), Failure> {
    let missing = |field: &str, message: &str| Err(Failure { message: message.to_owned(), ..Failure::missing(field) });
    if personalizations.is_empty() {
        let message = "The personalizations field is required and must have at least one personalization.";
        return missing("personalizations", message);
    }
    let has_subject = |subject: &Option<String>| subject.as_ref().is_some_and(|subject| !subject.is_empty());
    if request.template_id.is_none() {
        if !has_subject(&request.subject) && !personalizations.iter().all(|one| has_subject(&one.subject)) {
            let message = "The subject is required. You can get around this requirement if you use a template with a \
                           subject defined or if every personalization has a subject defined.";
            return missing("subject", message);
        }
        if request.content.0.is_empty() {
            return missing("content", "Unless a valid template_id is provided, the content parameter is required.");
        }
    }
    if let Some(index) = request.content.0.iter().position(|body| body.value.is_empty()) {
        let message = "The content value must be a string at least one character in length.";
        return missing(&format!("content[{index}].value"), message);
    }
    let count = personalizations.iter().map(|one| one.to.0.len() + one.cc.0.len() + one.bcc.0.len()).sum::<usize>();
    if count > MAX_RECIPIENTS {
        return Err(Failure::invalid("personalizations", &format!("have more than {MAX_RECIPIENTS} recipients")));
    }
    Ok(())
}

/// What all messages of a request have in common.
struct Common {
    email: Email,
    parts: Parts,
    template: Option<String>,
    /// The version of a legacy template. Its texts contain those of the request.
    legacy: Option<Template>,
    sections: Vec<(String, String)>,
}

impl Common {
    fn new(request: SendRequest<'_>, templates: &Templates<'_>) -> Result<Self, Failure> {
        let mut parts = Parts {
            subject: request.subject.unwrap_or_default(),
            attachments: files::attachments("attachments", "content", &request.attachments)?,
            ..Parts::default()
        };
        for Body { content_type, value } in request.content.0 {
            match content_type.split(';').next().unwrap_or_default().trim() {
                "text/plain" => parts.text = Some(value),
                "text/html" => parts.html = Some(value),
                _ => parts.attachments.push(Attachment {
                    content_type: Some(content_type),
                    content: value.into(),
                    ..Attachment::default()
                }),
            }
        }
        let (mut template, mut legacy) = (request.template_id, None);
        if let Some(found) = template.as_ref().and_then(|id| templates.find(id)) {
            let version = find_version(templates, &found, &found.extra)
                .map_err(|_| Failure::invalid("template_id", "is the id of a template without an active version"))?;
            if found.id.starts_with(DYNAMIC_PREFIX) {
                // The texts of the template have precedence.
                if !version.subject.is_empty() {
                    parts.subject.clear();
                }
                (parts.text, parts.html, template) = (None, None, Some(version.id));
            } else {
                (template, legacy) = (None, Some(version));
            }
        }
        let reply_to = request.reply_to.iter().chain(&request.reply_to_list.0);
        let email = Email {
            from: Some(request.from.person("from.email")?),
            reply_to: Contact::people("reply_to", "email", reply_to)?,
            headers: request.headers.0,
            tags: request.categories.0,
            metadata: request.custom_args.0,
            scheduled: request.send_at.map(unix_time),
            ..Email::default()
        };
        Ok(Self { email, parts, template, legacy, sections: request.sections.0 })
    }

    /// Returns the message of a personalization.
    fn personalize(&self, index: usize, one: Personalization<'_>, searched: &mut usize) -> Result<Email, Failure> {
        let field = |name: &str| format!("personalizations[{index}].{name}");
        if one.to.0.is_empty() {
            return Err(Failure::missing(field("to")));
        }
        let (mut email, mut parts) = (self.email.clone(), self.parts.clone());
        if let Some(subject) = one.subject.filter(|subject| !subject.is_empty()) {
            parts.subject = subject;
        }
        if let Some(version) = &self.legacy {
            parts = in_legacy(version, parts, searched)?;
        }
        for text in [Some(&mut parts.subject), parts.text.as_mut(), parts.html.as_mut()].into_iter().flatten() {
            replace(text, &one.substitutions.0, searched)?;
            replace(text, &self.sections, searched)?;
        }
        email.content = match &self.template {
            Some(id) => {
                let data = one.dynamic_template_data.map_or_else(|| object(one.substitutions.0), ToString::to_string);
                Content::Template(TemplateUse { source: TemplateSource::Stored(id.clone()), data }, parts)
            }
            None => Content::Parts(parts),
        };
        if let Some(from) = one.from {
            email.from = Some(from.person(&field("from.email"))?);
        }
        email.to = Contact::people(&field("to"), "email", &one.to.0)?;
        email.cc = Contact::people(&field("cc"), "email", &one.cc.0)?;
        email.bcc = Contact::people(&field("bcc"), "email", &one.bcc.0)?;
        email.scheduled = one.send_at.map(unix_time).or(email.scheduled);
        override_values(&mut email.headers, one.headers.0);
        override_values(&mut email.metadata, one.custom_args.0);
        Ok(email)
    }
}

/// Returns the texts of a legacy template, which contain those of a request.
fn in_legacy(version: &Template, parts: Parts, searched: &mut usize) -> Result<Parts, Failure> {
    let mut fill = |text: Option<&String>, tag: &str, value: Option<String>| -> Result<Option<String>, Failure> {
        let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(value) };
        let mut filled = text.clone();
        replace(&mut filled, &[(tag.to_owned(), value.unwrap_or_default())], searched)?;
        Ok(Some(filled))
    };
    Ok(Parts {
        subject: fill(Some(&version.subject), "<%subject%>", Some(parts.subject))?.unwrap_or_default(),
        text: fill(version.text.as_ref(), "<%body%>", parts.text)?,
        html: fill(version.html.as_ref(), "<%body%>", parts.html)?,
        attachments: parts.attachments,
    })
}

/// Replaces each name in a text by its value, one after the other. Fails if the texts that are searched or replaced are too large.
fn replace(text: &mut String, values: &[(String, String)], searched: &mut usize) -> Result<(), Failure> {
    for (name, value) in values.iter().filter(|(name, _)| !name.is_empty()) {
        let count = text.matches(name.as_str()).count();
        let bytes = text.len() + count.saturating_mul(value.len());
        *searched = searched.checked_sub(bytes).ok_or_else(|| {
            Failure::new(FailureKind::TooLarge, "The texts with substitutions are too large together.")
        })?;
        if count > 0 {
            *text = text.replace(name, value);
        }
    }
    Ok(())
}

/// Returns values as a JSON object.
fn object(values: Vec<(String, String)>) -> String {
    let members = values.into_iter().map(|(name, value)| (name, Value::String(value)));
    Value::Object(members.collect()).to_string()
}

fn reply(status: StatusCode, body: &Value) -> Action {
    Action::Reply(Reply::json(status, body))
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct TemplateRequest {
    name: Option<String>,
    generation: Option<String>,
    subject: Option<String>,
    html_content: Option<String>,
    plain_content: Option<String>,
    active: Option<u8>,
}

fn list_templates(_: &Incoming, templates: &Templates<'_>) -> Result<Action, Failure> {
    let list = versions::templates(templates);
    let mut list: Vec<Value> = list.iter().map(|template| describe(templates, template)).collect();
    for version in list.iter_mut().filter_map(|template| template["versions"].as_array_mut()).flatten() {
        // Lists have no texts.
        (version["html_content"], version["plain_content"]) = Default::default();
    }
    Action::json(&json!({"result": list, "templates": list, "_metadata": {"count": list.len()}}))
}

/// Stores a template. Its member `extra` will have the id of its active version.
fn create_template(incoming: &Incoming, templates: &Templates<'_>) -> Result<Action, Failure> {
    let request: TemplateRequest = incoming.json()?;
    let name = request.name.filter(|name| !name.is_empty()).ok_or_else(|| Failure::missing("name"))?;
    let prefix = if request.generation.as_deref() == Some("dynamic") { DYNAMIC_PREFIX } else { "" };
    let template = Template { id: format!("{prefix}{:032x}", templates.new_number()), name, ..Template::default() };
    templates.put(template.clone())?;
    Ok(reply(StatusCode::CREATED, &describe(templates, &template)))
}

/// Reads, changes or removes a template.
fn template(incoming: &Incoming, templates: &Templates<'_>) -> Result<Action, Failure> {
    let mut template = find(incoming, templates)?;
    match incoming.method {
        Method::GET => {}
        Method::DELETE => {
            versions::remove(templates, &template.id);
            return Ok(Action::Reply(Reply::empty(StatusCode::NO_CONTENT)));
        }
        _ => {
            template.name = incoming.json::<TemplateRequest>()?.name.unwrap_or(template.name);
            templates.put(template.clone())?;
        }
    }
    Action::json(&describe(templates, &template))
}

fn create_version(incoming: &Incoming, templates: &Templates<'_>) -> Result<Action, Failure> {
    let template = find(incoming, templates)?;
    let id = versions::key(&template.id, &format!("{:032x}", templates.new_number()));
    let request: TemplateRequest = incoming.json()?;
    let request = TemplateRequest { active: request.active.or(Some(1)), ..request };
    put_version(templates, template, Template { id, ..Template::default() }, request, StatusCode::CREATED)
}

/// Reads, changes or removes a version.
fn version(incoming: &Incoming, templates: &Templates<'_>) -> Result<Action, Failure> {
    let template = find(incoming, templates)?;
    let version = find_version(templates, &template, incoming.path_value("version"))?;
    match incoming.method {
        Method::GET => Action::json(&describe_version(&template, &version)),
        Method::DELETE => {
            templates.remove(&version.id);
            Ok(Action::Reply(Reply::empty(StatusCode::NO_CONTENT)))
        }
        _ => put_version(templates, template, version, incoming.json()?, StatusCode::OK),
    }
}

fn activate_version(incoming: &Incoming, templates: &Templates<'_>) -> Result<Action, Failure> {
    let template = find(incoming, templates)?;
    let version = find_version(templates, &template, incoming.path_value("version"))?;
    let request = TemplateRequest { active: Some(1), ..TemplateRequest::default() };
    put_version(templates, template, version, request, StatusCode::OK)
}

/// Stores a version with the values of a request.
fn put_version(
    templates: &Templates<'_>,
    mut template: Template,
    version: Template,
    request: TemplateRequest,
    status: StatusCode,
) -> Result<Action, Failure> {
    let version = Template {
        name: request.name.unwrap_or(version.name),
        subject: request.subject.unwrap_or(version.subject),
        text: request.plain_content.filter(|text| !text.is_empty()).or(version.text),
        html: request.html_content.or(version.html),
        ..version
    };
    templates.put(version.clone())?;
    if request.active == Some(1) {
        version_id(&version).clone_into(&mut template.extra);
        templates.put(template.clone())?;
    }
    Ok(reply(status, &describe_version(&template, &version)))
}

fn find(incoming: &Incoming, templates: &Templates<'_>) -> Result<Template, Failure> {
    find_key(templates, incoming.path_value("id"))
}

fn find_version(templates: &Templates<'_>, template: &Template, id: &str) -> Result<Template, Failure> {
    find_key(templates, &versions::key(&template.id, id))
}

fn find_key(templates: &Templates<'_>, key: &str) -> Result<Template, Failure> {
    let template = templates.find(key);
    template.map(Arc::unwrap_or_clone).ok_or_else(|| Failure::new(FailureKind::NotFound, "not found"))
}

fn describe(templates: &Templates<'_>, template: &Template) -> Value {
    let versions = versions::versions(templates, &template.id);
    let versions: Vec<_> = versions.iter().map(|version| describe_version(template, version)).collect();
    let generation = if template.id.starts_with(DYNAMIC_PREFIX) { "dynamic" } else { "legacy" };
    json!({"id": template.id, "name": template.name, "generation": generation, "versions": versions})
}

/// Returns the id of a version without that of its template.
fn version_id(version: &Template) -> &str {
    version.id.rsplit('/').next().unwrap_or_default()
}

fn describe_version(template: &Template, version: &Template) -> Value {
    let id = version_id(version);
    json!({
        "id": id,
        "template_id": template.id,
        "active": u8::from(id == template.extra),
        "name": version.name,
        "subject": version.subject,
        "html_content": version.html,
        "plain_content": version.text,
    })
}
