//! The API of Mandrill (Mailchimp Transactional). A message is sent to each recipient separately if `preserve_recipients` is false, or
//! if there are merge variables or metadata for single recipients. Otherwise all recipients see each other. Templates are not
//! stored.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use axum::http::{HeaderMap, StatusCode};
use restante_http_core::api::Api;
use restante_mail::message::MessageId;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::email::{Content, Email, Parts, Sent, parse_id, uuid};
use crate::failure::{Failure, FailureKind};
use crate::files::{self, File};
use crate::incoming::Incoming;
use crate::person::Person;
use crate::provider::{Action, Provider, Routes, bearer};
use crate::raw;
use crate::reply::Reply;
use crate::stored::StoredEmail;
use crate::templates::{TEMPLATE, Template, TemplateSource, TemplateStore, TemplateUse, Templates};
use crate::text_budget::TextBudget;
use crate::values::{List, Texts};
use crate::variables::Variables;

struct Mandrill;

impl Provider for Mandrill {
    const NAME: &'static str = "mandrill";
    const HAS_BODY_KEY: bool = true;

    /// Clients have the key in the body. A token can also be in the header.
    fn key(headers: &HeaderMap) -> Option<String> {
        bearer(headers)
    }

    fn body_key(incoming: &Incoming) -> Option<String> {
        #[derive(Deserialize)]
        struct Keyed {
            key: Option<String>,
        }

        incoming.json::<Keyed>().ok()?.key
    }

    fn failure(failure: &Failure) -> Reply {
        let (code, name) = match failure.kind {
            FailureKind::Unauthorized | FailureKind::Forbidden => (-1, "Invalid_Key"),
            FailureKind::Malformed | FailureKind::Missing | FailureKind::Invalid => (-2, "ValidationError"),
            FailureKind::NotFound if failure.field.as_deref() == Some(TEMPLATE) => (5, "Unknown_Template"),
            FailureKind::NotFound => (11, "Unknown_Message"),
            _ => (-99, "GeneralError"),
        };
        let body = json!({"status": "error", "code": code, "name": name, "message": failure.message});
        Reply::json(failure.kind.status(), &body)
    }
}

/// Returns the API.
pub(crate) fn api(templates: &Arc<TemplateStore>) -> Api {
    let routes = Routes::new::<Mandrill>(templates);
    (0..=4).fold(routes, |routes, minor| routes.post(&format!("/api/1.{minor}/{{group}}/{{call}}"), call)).api()
}

fn call(incoming: &Incoming, _: &Templates<'_>) -> Result<Action, Failure> {
    let (group, call) = (incoming.path_value("group"), incoming.path_value("call"));
    match (group, call.strip_suffix(".json").unwrap_or(call)) {
        ("messages", "send" | "send-template" | "send-mc-template") => send(incoming),
        ("messages", "send-raw") => send_raw(incoming),
        ("messages", "info") => read(incoming, info),
        ("messages", "content") => read(incoming, content),
        ("users", "ping") => Action::json(&"PONG!"),
        ("users", "ping2") => Action::json(&json!({"PING": "PONG!"})),
        ("users", "info") => {
            Action::json(&json!({"username": "restante", "reputation": 100, "backlog": 0, "stats": {}}))
        }
        ("users", "senders") | ("senders" | "templates", "list") | ("senders", "domains") => Action::json(&json!([])),
        (_, call) => Err(Failure::new(FailureKind::Invalid, format!("Unknown method \"{call}\""))),
    }
}

#[derive(Deserialize)]
struct SendRequest<'a> {
    #[serde(borrow, default)]
    message: Message<'a>,
    template_name: Option<String>,
    #[serde(borrow, default)]
    template_content: List<Variable<'a>>,
    send_at: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Message<'a> {
    html: Option<String>,
    text: Option<String>,
    subject: Option<String>,
    from_email: Option<String>,
    from_name: Option<String>,
    to: List<Recipient>,
    headers: Texts,
    important: Option<bool>,
    preserve_recipients: Option<bool>,
    bcc_address: Option<String>,
    merge_language: Option<String>,
    #[serde(borrow)]
    global_merge_vars: List<Variable<'a>>,
    #[serde(borrow)]
    merge_vars: List<MergeVars<'a>>,
    tags: List<String>,
    subaccount: Option<String>,
    metadata: Texts,
    recipient_metadata: List<RecipientMetadata>,
    #[serde(borrow)]
    attachments: List<File<'a>>,
    #[serde(borrow)]
    images: List<File<'a>>,
}

#[derive(Deserialize)]
struct Recipient {
    #[serde(default)]
    email: String,
    name: Option<String>,
    /// `to`, `cc` or `bcc`.
    #[serde(rename = "type")]
    kind: Option<String>,
}

#[derive(Deserialize)]
struct Variable<'a> {
    name: String,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct MergeVars<'a> {
    #[serde(default)]
    rcpt: String,
    #[serde(borrow, default)]
    vars: List<Variable<'a>>,
}

#[derive(Deserialize)]
struct RecipientMetadata {
    #[serde(default)]
    rcpt: String,
    #[serde(default)]
    values: Texts,
}

fn send(incoming: &Incoming) -> Result<Action, Failure> {
    let SendRequest { message, template_name, template_content, send_at } = incoming.json()?;
    let budget = &incoming.budget;
    let mut common = common_email(&message, send_at)?;
    if common.from.is_none() {
        let sender = template_name.as_ref().map(|_| Person::unknown_sender());
        common.from = Some(sender.unwrap_or_else(|| Err(Failure::missing("message.from_email")))?);
    }
    let mut files = files::attachments("attachments", "content", &message.attachments)?;
    files.extend(files::images("images", "content", &message.images)?);
    let mut own_variables: HashMap<String, Vec<&Variable<'_>>> = HashMap::new();
    for MergeVars { rcpt, vars } in &message.merge_vars.0 {
        own_variables.entry(rcpt.to_lowercase()).or_default().extend(&vars.0);
    }
    let mut own_metadata: HashMap<String, Vec<&(String, String)>> = HashMap::new();
    for RecipientMetadata { rcpt, values } in &message.recipient_metadata.0 {
        own_metadata.entry(rcpt.to_lowercase()).or_default().extend(&values.0);
    }
    let mut emails = Vec::new();
    for [to, cc, bcc] in recipients(&message)? {
        let address = to.first().map(|person| person.address.text().to_lowercase()).unwrap_or_default();
        let variables = template_content.0.iter().chain(&message.global_merge_vars.0);
        let variables = variables.chain(own_variables.get(&address).into_iter().flatten().copied());
        let merge = Merge::new(message.merge_language.as_deref(), variables)?;
        budget.take(merge.data.len())?;
        let parts = Parts {
            subject: message.subject.clone().unwrap_or_default(),
            text: message.text.clone(),
            html: message.html.clone(),
            attachments: files.clone(),
        };
        let content = match &template_name {
            None => merge.content(parts, budget)?,
            Some(name) => {
                let source = TemplateSource::Stored(name.clone());
                Content::Template(TemplateUse { source, data: merge.data }, parts)
            }
        };
        let own = own_metadata.get(&address).into_iter().flatten().copied();
        let metadata: BTreeMap<_, _> = message.metadata.0.iter().chain(own).cloned().collect();
        let mut email = Email { to, cc, bcc, content, ..common.clone() };
        email.metadata.extend(metadata);
        emails.push(budget.add(email)?);
    }
    Ok(Action::Send(emails, sent_reply))
}

/// Returns a message without recipients, content and metadata.
fn common_email(message: &Message<'_>, scheduled: Option<String>) -> Result<Email, Failure> {
    let name = message.from_name.as_deref().unwrap_or_default();
    let from = message.from_email.as_deref().map(|email| Person::new("message.from_email", name, email));
    let mut headers = message.headers.0.clone();
    if message.important == Some(true) {
        headers.extend([("X-Priority", "1"), ("Importance", "high")].map(|(n, v)| (n.to_owned(), v.to_owned())));
    }
    let metadata = message.subaccount.iter().map(|name| ("subaccount".to_owned(), name.clone())).collect();
    let tags = message.tags.0.clone();
    Ok(Email { from: from.transpose()?, headers, tags, metadata, scheduled, ..Email::default() })
}

/// Returns the recipients in To, Cc and Bcc of each message.
fn recipients(message: &Message<'_>) -> Result<Vec<[Vec<Person>; 3]>, Failure> {
    let mut lists = [const { Vec::new() }; 3];
    for (index, Recipient { email, name, kind }) in message.to.0.iter().enumerate() {
        let person = Person::new(&format!("message.to[{index}].email"), name.as_deref().unwrap_or_default(), email)?;
        let list = match kind.as_deref() {
            Some("cc") => 1,
            Some("bcc") => 2,
            _ => 0,
        };
        lists[list].push(person);
    }
    if lists.iter().all(Vec::is_empty) {
        return Err(Failure::missing("message.to"));
    }
    let copy = message.bcc_address.as_deref().filter(|address| !address.is_empty());
    let copy = copy.map(|address| Person::new("message.bcc_address", "", address)).transpose()?;
    let is_personal = !message.merge_vars.0.is_empty() || !message.recipient_metadata.0.is_empty();
    if message.preserve_recipients != Some(false) && !is_personal {
        lists[2].extend(copy);
        return Ok(vec![lists]);
    }
    let mut seen = HashSet::new();
    let recipients = lists.into_iter().flatten().filter(|person| seen.insert(person.address.text().to_lowercase()));
    Ok(recipients.map(|person| [vec![person], Vec::new(), copy.iter().cloned().collect()]).collect())
}

/// The merge variables of a message.
struct Merge {
    is_handlebars: bool,
    /// The variables as JSON.
    data: String,
}

impl Merge {
    /// Later variables have precedence. The names of variables of Mailchimp's language are not case-sensitive.
    fn new<'a>(language: Option<&str>, variables: impl Iterator<Item = &'a Variable<'a>>) -> Result<Self, Failure> {
        let is_handlebars = language == Some("handlebars");
        let name = |name: &str| if is_handlebars { name.to_owned() } else { name.to_uppercase() };
        let data: BTreeMap<_, _> = variables.map(|variable| (name(&variable.name), variable.content)).collect();
        Ok(Self { is_handlebars, data: serde_json::to_string(&data).map_err(Failure::malformed)? })
    }

    /// Returns the content of a message with these parts.
    fn content(self, parts: Parts, budget: &TextBudget) -> Result<Content, Failure> {
        let Self { is_handlebars, data } = self;
        if data == "{}" {
            return Ok(Content::Parts(parts));
        }
        let Parts { subject, text, html, attachments } = parts;
        if is_handlebars {
            let source = TemplateSource::Inline(Template { subject, text, html, ..Template::default() });
            return Ok(Content::Template(TemplateUse { source, data }, Parts { attachments, ..Parts::default() }));
        }
        let variables = Variables::new(serde_json::from_str(&data).map_err(Failure::malformed)?);
        let value = |name: &str| variables.get(&name.to_uppercase()).map(str::to_owned);
        let merge = |text: String| budget.replace(&text, ["*|", "|*"], value);
        let (subject, text, html) = (merge(subject)?, text.map(merge).transpose()?, html.map(merge).transpose()?);
        Ok(Content::Parts(Parts { subject, text, html, attachments }))
    }
}

fn send_raw(incoming: &Incoming) -> Result<Action, Failure> {
    #[derive(Deserialize)]
    struct RawRequest {
        #[serde(default)]
        raw_message: String,
        from_email: Option<String>,
        to: Option<List<String>>,
        send_at: Option<String>,
    }

    let RawRequest { raw_message, from_email, to, send_at } = incoming.json()?;
    if raw_message.is_empty() {
        return Err(Failure::missing("raw_message"));
    }
    let email = raw::with_fields(raw::from_message(raw_message.into())?, "X-MC-Tags", "X-MC-Metadata");
    let mut email = Email { scheduled: send_at, ..email };
    if let Some(from) = from_email.filter(|from| !from.is_empty()) {
        email.from = Some(Person::new("from_email", "", &from)?);
    }
    if let Some(List(to)) = to.filter(|to| !to.0.is_empty()) {
        email = Email { to: Person::parse_all("to", &to)?, cc: Vec::new(), bcc: Vec::new(), ..email };
    }
    Ok(Action::Send(vec![email], sent_reply))
}

fn sent_reply(_: &Incoming, sent: &[Sent]) -> Reply {
    let recipients = sent.iter().flat_map(|sent| sent.recipients().map(move |person| (person, sent)));
    let entries = recipients.map(|(person, sent)| {
        json!({"email": person.address.text(), "status": "sent", "_id": shown_id(sent.id), "reject_reason": null})
    });
    Reply::json(StatusCode::OK, &entries.collect::<Vec<_>>())
}

/// Returns an id of a message as 32 hexadecimal digits.
fn shown_id(id: MessageId) -> String {
    uuid(id).replace('-', "")
}

/// Responds about the message with the id in the body.
fn read(incoming: &Incoming, reply: fn(&StoredEmail) -> Reply) -> Result<Action, Failure> {
    #[derive(Deserialize)]
    struct ReadRequest {
        #[serde(default)]
        id: String,
    }

    let ReadRequest { id } = incoming.json()?;
    let not_found = || Failure::new(FailureKind::NotFound, format!("No message exists with the id '{id}'"));
    Ok(Action::Read(parse_id(&id).ok_or_else(not_found)?, reply))
}

/// Returns the members that all responses about a message have.
fn describe(email: &StoredEmail) -> Value {
    json!({
        "ts": email.received.as_second(),
        "_id": shown_id(email.id),
        "subject": email.header.subject,
        "tags": email.tags().collect::<Vec<_>>(),
    })
}

fn info(email: &StoredEmail) -> Reply {
    let mut body = describe(email);
    for (name, value) in
        [("opens", json!(0)), ("clicks", json!(0)), ("state", json!("sent")), ("smtp_events", json!([]))]
    {
        body[name] = value;
    }
    body["sender"] = json!(email.sender().address);
    body["email"] = json!(email.recipient().address);
    Reply::json(StatusCode::OK, &body)
}

fn content(email: &StoredEmail) -> Reply {
    let (from, to) = (email.sender(), email.recipient());
    let mut body = describe(email);
    body["from_email"] = json!(from.address);
    body["from_name"] = json!(from.name);
    body["to"] = json!({"email": to.address, "name": to.name});
    body["text"] = json!(email.text);
    body["html"] = json!(email.html);
    body["attachments"] = json!([]);
    Reply::json(StatusCode::OK, &body)
}
