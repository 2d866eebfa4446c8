//! The API of Mailgun, versions 3 and 4. Requests are forms.

use std::collections::HashMap;
use std::sync::Arc;

use axum::http::{HeaderMap, Method, StatusCode};
use axum::routing::MethodFilter;
use bytes::Bytes;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use restante_http_core::api::Api;
use restante_mail::compose::{Attachment, MAX_RECIPIENTS};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::email::{Content, Email, Parts, Sent};
use crate::failure::{Failure, FailureKind};
use crate::incoming::Incoming;
use crate::multipart::{self, FormField};
use crate::person::Person;
use crate::provider::{Action, Provider, Routes, basic};
use crate::raw::{from_message, with_fields};
use crate::reply::Reply;
use crate::templates::{Template, TemplateSource, TemplateStore, TemplateUse, Templates};
use crate::values::{Texts, merge_objects};
use crate::versions;

/// The user name of all API keys.
const USER: &str = "api";
/// The field with variables as a JSON object.
const VARIABLES_FIELD: &str = "x-mailgun-variables";
/// The maximum length of the variables of all recipients.
const MAX_VARIABLES_BYTES: usize = 4 * 1024 * 1024;
/// What is before and after the name of a variable of a recipient.
const DELIMITERS: [&str; 2] = ["%recipient", "%"];
/// The maximum number of recipients of all messages of a batch together.
const MAX_BATCH_RECIPIENTS: usize = 10_000;
/// The characters of a file name that a Content-ID cannot contain.
const NOT_IN_CONTENT_ID: &AsciiSet = &CONTROLS.add(b' ').add(b'<').add(b'>');

struct Mailgun;

impl Provider for Mailgun {
    const NAME: &'static str = "mailgun";

    fn key(headers: &HeaderMap) -> Option<String> {
        basic(headers).filter(|(user, _)| user == USER).map(|(_, password)| password)
    }

    fn failure(failure: &Failure) -> Reply {
        let message = match (failure.kind, &failure.field) {
            (FailureKind::Unauthorized, _) => {
                return Reply::empty(StatusCode::UNAUTHORIZED).with_body("text/plain", "Forbidden");
            }
            (FailureKind::Missing, Some(field)) => &format!("{field} parameter is missing"),
            _ => &failure.message,
        };
        Reply::json(failure.kind.status(), &json!({"message": message}))
    }
}

/// Returns the API.
pub(crate) fn api(templates: &Arc<TemplateStore>) -> Api {
    let changes = MethodFilter::GET.or(MethodFilter::PUT).or(MethodFilter::DELETE);
    let mut routes = Routes::new::<Mailgun>(templates)
        .post("/v3/{domain}/messages", send)
        .post("/v3/{domain}/messages.mime", send_mime)
        .get("/v3/{domain}/templates", list_templates)
        .post("/v3/{domain}/templates", create_template)
        .on(changes, "/v3/{domain}/templates/{template}", template)
        .post("/v3/{domain}/templates/{template}/versions", put_version)
        .on(MethodFilter::PUT, "/v3/{domain}/templates/{template}/versions/{tag}", put_version);
    for version in ["v3", "v4"] {
        let path = format!("/{version}/domains");
        routes = routes
            .get(&path, |_, _| Action::json(&json!({"items": [], "total_count": 0})))
            .post(&path, |incoming, _| domain(&form(incoming)?.required("name")?, "Domain has been created"))
            .get(&format!("{path}/{{domain}}"), |incoming, _| domain(incoming.path_value("domain"), ""))
            .on(MethodFilter::PUT, &format!("{path}/{{domain}}/verify"), |incoming, _| {
                domain(incoming.path_value("domain"), "Domain DNS records have been updated")
            });
    }
    routes.api()
}

/// A form.
struct Form(Vec<FormField>);

fn form(incoming: &Incoming) -> Result<Form, Failure> {
    if incoming.media_type() == "multipart/form-data" {
        let content_type = incoming.header("content-type").unwrap_or_default();
        return multipart::parse(content_type, &incoming.body).map(Form);
    }
    let field = |(name, value)| FormField { name, value: Bytes::from(value), filename: None, content_type: None };
    Ok(Form(incoming.form()?.into_iter().map(field).collect()))
}

impl Form {
    /// Returns the values of all fields whose names begin like this, with the rest of their names.
    fn prefixed(&self, prefix: &str) -> impl Iterator<Item = (&str, String)> {
        let fields = self.0.iter();
        fields.filter_map(move |field| Some((field.name.strip_prefix(prefix)?, text(&field.value))))
    }

    /// Returns the values of all fields of this name.
    fn all(&self, name: &str) -> impl Iterator<Item = String> {
        self.prefixed(name).filter(|(rest, _)| rest.is_empty()).map(|(_, value)| value)
    }

    /// Returns the first value of a field. `None` if it is empty.
    fn get(&self, name: &str) -> Option<String> {
        self.all(name).next().filter(|value| !value.is_empty())
    }

    fn required(&self, name: &str) -> Result<String, Failure> {
        self.get(name).ok_or_else(|| Failure::missing(name))
    }

    /// Returns the addresses in all fields of this name. Each can contain several.
    fn people(&self, name: &str) -> Result<Vec<Person>, Failure> {
        let mut people = Vec::new();
        for text in self.all(name) {
            let parsed = Person::parse_list(name, &text);
            let invalid = |_| Failure::invalid(name, "parameter is not a valid address. please check documentation");
            people.extend(parsed.map_err(invalid)?);
            if people.len() > MAX_RECIPIENTS {
                return Err(Failure::invalid(name, &format!("parameter has more than {MAX_RECIPIENTS} addresses")));
            }
        }
        Ok(people)
    }

    /// Returns the values that complete messages have too.
    fn common(&self, email: Email) -> Result<Email, Failure> {
        let to = self.people("to")?;
        if to.is_empty() {
            return Err(Failure::missing("to"));
        }
        let mut email = Email { to, scheduled: self.get("o:deliverytime"), ..email };
        email.tags.extend(self.all("o:tag"));
        email.metadata.extend(self.prefixed("v:").map(|(name, value)| (name.to_owned(), value)));
        for (name, value) in self.prefixed("h:") {
            match name.to_ascii_lowercase().as_str() {
                VARIABLES_FIELD => {
                    let variables = serde_json::from_str::<Texts>(&value);
                    email.metadata.extend(variables.map_err(|_| Failure::invalid(name, "is not a JSON object"))?.0);
                }
                _ => email.headers.push((name.to_owned(), value)),
            }
        }
        Ok(email)
    }

    /// Returns the data of a template as JSON.
    fn template_data(&self) -> Result<String, Failure> {
        let texts = self.prefixed("v:").map(|(name, value)| (name.to_owned(), Value::String(value)));
        let mut headers = self.prefixed("h:");
        let header = headers.find(|(name, value)| name.eq_ignore_ascii_case(VARIABLES_FIELD) && !value.is_empty());
        let objects = [Some(Value::Object(texts.collect()).to_string()), header.map(|(_, value)| value)];
        let objects: Vec<_> = objects.into_iter().chain([self.get("t:variables")]).flatten().collect();
        merge_objects("t:variables", objects.iter().map(String::as_str))
    }

    fn email(&self) -> Result<Email, Failure> {
        let from = self.people("from")?.into_iter().next().ok_or_else(|| Failure::missing("from"))?;
        let mut parts = Parts {
            subject: self.get("subject").unwrap_or_default(),
            text: self.get("text"),
            html: self.get("html"),
            attachments: self.0.iter().filter_map(attachment).collect(),
        };
        let amp = self.get("amp-html");
        let template = self.get("template");
        if template.is_none() && amp.is_none() && parts.text.is_none() && parts.html.is_none() {
            let message = "Need at least one of 'text', 'html', 'amp-html' or 'template' parameters specified";
            return Err(Failure::new(FailureKind::Invalid, message));
        }
        parts.attachments.extend(amp.map(|amp| Attachment {
            content_type: Some("text/x-amp-html".to_owned()),
            content: amp.into(),
            ..Attachment::default()
        }));
        let content = match template {
            Some(name) => {
                let data = self.template_data()?;
                Content::Template(TemplateUse { source: TemplateSource::Stored(name), data }, parts)
            }
            None => Content::Parts(parts),
        };
        let (cc, bcc) = (self.people("cc")?, self.people("bcc")?);
        self.common(Email { from: Some(from), cc, bcc, content, ..Email::default() })
    }
}

fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(value).into_owned()
}

/// Returns the file of a field. HTML refers to an inline one by its name.
fn attachment(field: &FormField) -> Option<Attachment> {
    let FormField { name, filename, content_type, value } = field;
    if name != "attachment" && name != "inline" {
        return None;
    }
    let content_id = filename.as_ref().filter(|_| name == "inline");
    Some(Attachment {
        filename: filename.clone(),
        // Some clients send this type for all files.
        content_type: content_type.clone().filter(|kind| kind != "application/octet-stream"),
        content: value.clone(),
        content_id: content_id.map(|id| utf8_percent_encode(id, NOT_IN_CONTENT_ID).to_string()),
    })
}

fn send(incoming: &Incoming, templates: &Templates<'_>) -> Result<Action, Failure> {
    let form = form(incoming)?;
    let mut email = form.email()?;
    if let Content::Template(TemplateUse { source: TemplateSource::Stored(name), .. }, _) = &mut email.content {
        let id = name.to_lowercase();
        let version = form.get("t:version").map(|tag| versions::key(&id, &tag));
        let found = version.into_iter().chain([id]).find(|id| templates.find(id).is_some());
        found.unwrap_or_else(|| name.clone()).clone_into(name);
    }
    queue(incoming, &form, email)
}

fn send_mime(incoming: &Incoming, _: &Templates<'_>) -> Result<Action, Failure> {
    let form = form(incoming)?;
    let message = form.0.iter().find(|field| field.name == "message").map(|field| field.value.clone());
    let email = from_message(message.ok_or_else(|| Failure::missing("message"))?)?;
    let email = with_fields(email, "X-Mailgun-Tag", VARIABLES_FIELD);
    if email.from.is_none() {
        return Err(Failure::missing("from"));
    }
    let email = form.common(Email { cc: Vec::new(), bcc: Vec::new(), ..email })?;
    queue(incoming, &form, email)
}

/// Sends a message, or one for each recipient. In the test mode of Mailgun, nothing is sent.
fn queue(incoming: &Incoming, form: &Form, email: Email) -> Result<Action, Failure> {
    let emails = match form.get("recipient-variables") {
        Some(variables) => batch(incoming, &email, &variables)?,
        None => vec![email],
    };
    if form.get("o:testmode").is_some_and(|mode| matches!(mode.as_str(), "yes" | "true" | "True")) {
        return Ok(Action::Reply(queued(&format!("test@{}", incoming.path_value("domain")))));
    }
    Ok(Action::Send(emails, |_, sent: &[Sent]| queued(&sent[0].message_id)))
}

/// Returns a message for each recipient. Variables of the recipient are replaced everywhere.
fn batch(incoming: &Incoming, email: &Email, variables: &str) -> Result<Vec<Email>, Failure> {
    let invalid = || Failure::invalid("recipient-variables", "parameter is not valid JSON");
    if variables.len() > MAX_VARIABLES_BYTES {
        return Err(invalid());
    }
    let all: HashMap<String, &RawValue> = serde_json::from_str(variables).map_err(|_| invalid())?;
    let all: HashMap<String, &RawValue> =
        all.into_iter().map(|(address, variables)| (address.to_lowercase(), variables)).collect();
    if email.to.len() * (1 + email.cc.len() + email.bcc.len()) > MAX_BATCH_RECIPIENTS {
        return Err(Failure::invalid(
            "to",
            &format!("and the other lists have more than {MAX_BATCH_RECIPIENTS} recipients"),
        ));
    }
    let budget = &incoming.budget;
    let personalize = |to: &Person| {
        let variables =
            all.get(&to.address.text().to_lowercase()).map(|variables| serde_json::from_str(variables.get()));
        let Texts(variables) = variables.transpose().map_err(|_| invalid())?.unwrap_or_default();
        let mut copy = Email { to: vec![to.clone()], ..email.clone() };
        let mut no_parts = Parts::default();
        let parts = match &mut copy.content {
            Content::Parts(parts) | Content::Template(_, parts) => parts,
            Content::Raw(message) => {
                if let Ok(text) = str::from_utf8(message) {
                    *message = budget.replace(text, DELIMITERS, |name| variable(to, &variables, name))?.into();
                }
                &mut no_parts
            }
        };
        let texts = [Some(&mut parts.subject), parts.text.as_mut(), parts.html.as_mut()].into_iter().flatten();
        let pairs = copy.headers.iter_mut().chain(&mut copy.metadata).map(|(_, value)| value);
        for text in texts.chain(pairs).chain(&mut copy.tags) {
            *text = budget.replace(text, DELIMITERS, |name| variable(to, &variables, name))?;
        }
        if let Content::Template(template, _) = &mut copy.content {
            let value = |name: &str| variable(to, &variables, name).map(|value| escape_json(&value));
            template.data = budget.replace(&template.data, DELIMITERS, value)?;
        }
        copy.headers.retain(|(_, value)| !value.is_empty());
        budget.add(copy)
    };
    email.to.iter().map(personalize).collect()
}

/// Returns the value of `%recipient.name%` or of a variable that all recipients have. `name` is the text after `%recipient`.
fn variable(to: &Person, variables: &[(String, String)], name: &str) -> Option<String> {
    let words = || to.name.split_whitespace();
    match name {
        "" | "_email" => Some(to.address.text()),
        "_name" => Some(to.name.clone()),
        "_fname" => Some(words().next().unwrap_or_default().to_owned()),
        "_lname" => Some(words().next_back().unwrap_or_default().to_owned()),
        _ => {
            let name = name.strip_prefix('.')?;
            variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
        }
    }
}

/// Returns a text as it is written inside of a JSON string.
fn escape_json(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

fn queued(id: &str) -> Reply {
    Reply::json(StatusCode::OK, &json!({"id": format!("<{id}>"), "message": "Queued. Thank you."}))
}

/// Returns the description of a domain. All domains are verified.
fn domain(name: &str, message: &str) -> Result<Action, Failure> {
    Action::json(&json!({
        "message": message,
        "domain": {
            "name": name, "state": "active", "type": "custom", "is_disabled": false, "spam_action": "disabled",
            "wildcard": false, "created_at": "Thu, 01 Jan 2026 00:00:00 UTC",
        },
        "receiving_dns_records": [],
        "sending_dns_records": [],
    }))
}

fn list_templates(_: &Incoming, templates: &Templates<'_>) -> Result<Action, Failure> {
    let items: Vec<_> = versions::templates(templates).iter().map(|template| describe(template)).collect();
    Action::json(&json!({"items": items, "paging": {}}))
}

fn create_template(incoming: &Incoming, templates: &Templates<'_>) -> Result<Action, Failure> {
    let form = form(incoming)?;
    let name = form.required("name")?;
    if templates.find(&name.to_lowercase()).is_some() {
        return Err(Failure::new(FailureKind::Invalid, format!("template with name '{name}' already exists")));
    }
    let tag = form.get("tag").unwrap_or_else(|| "initial".to_owned());
    let template = changed(&form, Template { id: name.to_lowercase(), name: tag, ..Template::default() })?;
    templates.put(template.clone())?;
    Action::json(&json!({"message": "template has been stored", "template": describe(&template)}))
}

fn find(incoming: &Incoming, templates: &Templates<'_>) -> Result<Template, Failure> {
    let template = templates.find(&incoming.path_value("template").to_lowercase());
    template.map(Arc::unwrap_or_clone).ok_or_else(|| Failure::new(FailureKind::NotFound, "template not found"))
}

/// Adds or changes a version of a template. The active one is the template itself, whose name is the tag of the version.
fn put_version(incoming: &Incoming, templates: &Templates<'_>) -> Result<Action, Failure> {
    let (template, form) = (find(incoming, templates)?, form(incoming)?);
    let tag = Some(incoming.path_value("tag")).filter(|tag| !tag.is_empty()).map(str::to_owned);
    let tag = tag.map_or_else(|| form.required("tag"), Ok)?;
    let key = versions::key(&template.id, &tag);
    let is_active = tag == template.name;
    let known = if is_active { Some(template.clone()) } else { templates.find(&key).map(Arc::unwrap_or_clone) };
    let known = known.unwrap_or_else(|| Template { extra: template.extra.clone(), ..Template::default() });
    let mut version = changed(&form, Template { id: key, name: tag, ..known })?;
    let becomes_active = !is_active && form.get("active").as_deref() == Some("yes");
    if becomes_active {
        templates.remove(&version.id);
        templates.put(Template { id: versions::key(&template.id, &template.name), ..template.clone() })?;
    }
    if is_active || becomes_active {
        version.id = template.id;
    }
    templates.put(version.clone())?;
    Action::json(&json!({"message": "version has been stored", "template": describe(&version)}))
}

/// Reads, changes or removes a template.
fn template(incoming: &Incoming, templates: &Templates<'_>) -> Result<Action, Failure> {
    let template = find(incoming, templates)?;
    let (template, message) = match incoming.method {
        Method::GET => (template, ""),
        Method::DELETE => {
            versions::remove(templates, &template.id);
            (template, "template has been deleted")
        }
        _ => {
            let template = changed(&form(incoming)?, template)?;
            templates.put(template.clone())?;
            (template, "template has been updated")
        }
    };
    Action::json(&json!({"message": message, "template": describe(&template)}))
}

/// Returns a template with the values of a form.
fn changed(form: &Form, template: Template) -> Result<Template, Failure> {
    let headers = form.get("headers").map(|headers| serde_json::from_str::<Texts>(&headers)).transpose();
    let Texts(headers) = headers.map_err(|_| Failure::invalid("headers", "is not a JSON object"))?.unwrap_or_default();
    let subject = headers.into_iter().find(|(name, _)| name.eq_ignore_ascii_case("subject")).map(|(_, value)| value);
    Ok(Template {
        subject: subject.unwrap_or(template.subject),
        html: form.get("template").or(template.html),
        extra: form.get("description").unwrap_or(template.extra),
        ..template
    })
}

fn describe(Template { id, name, subject, html, extra, .. }: &Template) -> Value {
    let headers = json!({"Subject": subject});
    let version =
        json!({"tag": name, "engine": "handlebars", "active": !id.contains('/'), "template": html, "headers": headers});
    json!({"name": id.split('/').next(), "description": extra, "version": version})
}
