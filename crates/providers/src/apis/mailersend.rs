//! The API of MailerSend. A message with several recipients in `to` is sent once if all of them have the same personalization.
//! Otherwise each of them gets a message of its own, which also goes to the recipients of `cc` and `bcc`.

use std::collections::HashMap;
use std::sync::Arc;

use axum::http::{HeaderMap, HeaderName, StatusCode};
use restante_http_core::api::Api;
use restante_mail::message::MessageId;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use crate::email::{Content, Email, Parts, Sent, parse_id};
use crate::failure::{Failure, FailureKind};
use crate::files::{self, File};
use crate::incoming::{Incoming, unix_time};
use crate::pairs::Pair;
use crate::person::{Contact, Person};
use crate::provider::{Action, Provider, Routes, bearer};
use crate::reply::Reply;
use crate::stored::StoredEmail;
use crate::templates::{TemplateSource, TemplateStore, TemplateUse, Templates};
use crate::text_budget::TextBudget;
use crate::values::{List, OneOrMany};
use crate::variables::Variables;

const MESSAGE_ID: HeaderName = HeaderName::from_static("x-message-id");

struct MailerSend;

impl Provider for MailerSend {
    const NAME: &'static str = "mailersend";

    fn key(headers: &HeaderMap) -> Option<String> {
        bearer(headers)
    }

    fn failure(failure: &Failure) -> Reply {
        let Failure { kind, message, .. } = failure;
        let body = match (kind, failure.dotted_field()) {
            (FailureKind::Unauthorized, _) => json!({"message": "Unauthenticated."}),
            (FailureKind::Missing | FailureKind::Invalid, Some(field)) => {
                json!({"message": message, "errors": {field: [message]}})
            }
            _ => json!({"message": message}),
        };
        let status = match kind {
            FailureKind::Missing | FailureKind::Invalid | FailureKind::Exists => StatusCode::UNPROCESSABLE_ENTITY,
            kind => kind.status(),
        };
        Reply::json(status, &body)
    }
}

/// Returns the API.
pub(crate) fn api(templates: &Arc<TemplateStore>) -> Api {
    let empty = |_: &Incoming, _: &Templates<'_>| Action::json(&json!({"data": [], "links": {}, "meta": {"total": 0}}));
    let quota = |_: &Incoming, _: &Templates<'_>| {
        let body = json!({"quota": 100_000, "remaining": 100_000, "reset": "2100-01-01T00:00:00Z"});
        Action::json(&body)
    };
    Routes::new::<MailerSend>(templates)
        .post("/v1/email", send)
        .post("/v1/bulk-email", send_bulk)
        .get("/v1/bulk-email/{id}", read_bulk)
        .get("/v1/domains", empty)
        .get("/v1/domains/{id}", |incoming, _| {
            let id = incoming.path_value("id");
            let data = json!({"id": id, "name": id, "is_verified": true, "is_dns_active": true});
            Action::json(&json!({"data": data}))
        })
        .get("/v1/identities", empty)
        .get("/v1/messages", empty)
        .get("/v1/messages/{id}", read)
        .get("/v1/templates", empty)
        .get("/v1/api-quota", quota)
        .api()
}

#[derive(Deserialize)]
struct SendRequest<'a> {
    from: Option<Contact>,
    #[serde(default)]
    to: List<Contact>,
    #[serde(default)]
    cc: List<Contact>,
    #[serde(default)]
    bcc: List<Contact>,
    #[serde(default)]
    reply_to: OneOrMany<Contact>,
    subject: Option<String>,
    text: Option<String>,
    html: Option<String>,
    #[serde(borrow, default)]
    attachments: List<File<'a>>,
    template_id: Option<String>,
    #[serde(default)]
    tags: List<String>,
    #[serde(borrow, default)]
    personalization: List<Personalization<'a>>,
    #[serde(default)]
    headers: List<Pair>,
    in_reply_to: Option<String>,
    precedence_bulk: Option<bool>,
    list_unsubscribe: Option<String>,
    #[serde(default)]
    references: OneOrMany<String>,
    /// A Unix time.
    #[serde(borrow)]
    send_at: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Personalization<'a> {
    #[serde(default)]
    email: String,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
}

fn send(incoming: &Incoming, _: &Templates<'_>) -> Result<Action, Failure> {
    let emails = emails("", &incoming.json()?, &incoming.budget)?;
    let reply = |_: &Incoming, sent: &[Sent]| {
        // Clients read the body as JSON if the content type is that of JSON.
        Reply::empty(StatusCode::ACCEPTED).with(MESSAGE_ID, sent[0].hex()).with_body("text/html; charset=utf-8", "")
    };
    Ok(Action::Send(emails, reply))
}

fn send_bulk(incoming: &Incoming, _: &Templates<'_>) -> Result<Action, Failure> {
    let List(requests) = incoming.json()?;
    let budget = &incoming.budget;
    let mut all = Vec::new();
    for (index, request) in requests.iter().enumerate() {
        all.extend(emails(&format!("message.{index}."), request, budget)?);
    }
    if all.is_empty() {
        return Err(Failure::missing("message"));
    }
    let reply = |_: &Incoming, sent: &[Sent]| {
        let body = json!({"message": "The bulk email is being processed.", "bulk_email_id": sent[0].hex()});
        Reply::json(StatusCode::ACCEPTED, &body)
    };
    Ok(Action::Send(all, reply))
}

fn message_id(incoming: &Incoming) -> Result<MessageId, Failure> {
    parse_id(incoming.path_value("id")).ok_or_else(|| Failure::new(FailureKind::NotFound, "Resource not found."))
}

fn read(incoming: &Incoming, _: &Templates<'_>) -> Result<Action, Failure> {
    let reply = |email: &StoredEmail| {
        let (id, time) = (email.hex(), email.received.to_string());
        let sent = json!({
            "id": id,
            "from": email.sender().address,
            "subject": email.header.subject,
            "text": email.text,
            "html": email.html,
            "tags": email.tags().collect::<Vec<_>>(),
            "status": "delivered",
            "created_at": time,
            "updated_at": time,
        });
        let data = json!({"id": id, "created_at": time, "updated_at": time, "emails": [sent], "domain": null});
        Reply::json(StatusCode::OK, &json!({"data": data}))
    };
    Ok(Action::Read(message_id(incoming)?, reply))
}

/// Returns the state of a bulk request: that of its first message, because the others are not known.
fn read_bulk(incoming: &Incoming, _: &Templates<'_>) -> Result<Action, Failure> {
    let reply = |email: &StoredEmail| {
        let (id, time) = (email.hex(), email.received.to_string());
        let data = json!({
            "id": id,
            "state": "completed",
            "total_recipients_count": email.header.to.as_ref().map_or(0, Vec::len),
            "suppressed_recipients_count": 0,
            "suppressed_recipients": null,
            "validation_errors_count": 0,
            "validation_errors": null,
            "messages_id": [id],
            "created_at": time,
            "updated_at": time,
        });
        Reply::json(StatusCode::OK, &json!({"data": data}))
    };
    Ok(Action::Read(message_id(incoming)?, reply))
}

/// Returns the messages of a request. `prefix` is the path of the request in a list.
fn emails(prefix: &str, request: &SendRequest<'_>, budget: &TextBudget) -> Result<Vec<Email>, Failure> {
    let field = |name: &str| format!("{prefix}{name}");
    let is_template = request.template_id.is_some();
    let from = match &request.from {
        Some(from) => from.person(&field("from.email"))?,
        None if is_template => Person::unknown_sender()?,
        None => return Err(Failure::missing(field("from.email"))),
    };
    let to = Contact::people(&field("to"), "email", &request.to.0)?;
    let missing = [
        ("to", to.is_empty()),
        ("subject", request.subject.is_none() && !is_template),
        ("text", request.text.is_none() && request.html.is_none() && !is_template),
    ];
    if let Some((name, _)) = missing.into_iter().find(|(_, is_missing)| *is_missing) {
        return Err(Failure::missing(field(name)));
    }
    let files = files::attachments(&field("attachments"), "content", &request.attachments)?;
    let personalization = request.personalization.0.iter();
    let data: HashMap<String, &str> = personalization
        .filter_map(|Personalization { email, data }| Some((email.to_lowercase(), data.as_ref()?.get())))
        .collect();
    let data_of = |person: &Person| data.get(&person.address.text().to_lowercase()).copied().unwrap_or("{}");
    let groups = if to.iter().all(|person| data_of(person) == data_of(&to[0])) {
        vec![to]
    } else {
        to.into_iter().map(|person| vec![person]).collect()
    };
    let mut emails = Vec::with_capacity(groups.len());
    for to in groups {
        let data = budget.merge_objects(&field("personalization"), [data_of(&to[0])])?;
        budget.take(data.len())?;
        let variables = Variables::new(serde_json::from_str(&data).map_err(Failure::malformed)?);
        let value = |name: &str| variables.get(name).map(str::to_owned);
        let render = |text: &Option<String>| match text {
            Some(text) if data != "{}" => {
                let text = budget.replace(text, ["{$", "}"], value)?;
                budget.replace(&text, ["{{", "}}"], value).map(Some)
            }
            text => Ok(text.clone()),
        };
        let parts = Parts {
            subject: render(&request.subject)?.unwrap_or_default(),
            text: render(&request.text)?,
            html: render(&request.html)?,
            attachments: files.clone(),
        };
        let content = match request.template_id.clone() {
            Some(id) => Content::Template(TemplateUse { source: TemplateSource::Stored(id), data }, parts),
            None => Content::Parts(parts),
        };
        emails.push(budget.add(Email {
            from: Some(from.clone()),
            to,
            cc: Contact::people(&field("cc"), "email", &request.cc.0)?,
            bcc: Contact::people(&field("bcc"), "email", &request.bcc.0)?,
            reply_to: Contact::people(&field("reply_to"), "email", &request.reply_to.0)?,
            content,
            headers: headers(request),
            tags: request.tags.0.clone(),
            metadata: Vec::new(),
            scheduled: request.send_at.map(unix_time),
        })?);
    }
    Ok(emails)
}

fn headers(request: &SendRequest<'_>) -> Vec<(String, String)> {
    let own = request.headers.0.iter().map(|Pair { name, value }| (name.as_str(), value.as_str()));
    let reply = request.in_reply_to.iter().map(|id| ("In-Reply-To", id.as_str()));
    let bulk = request.precedence_bulk.iter().filter(|is_bulk| **is_bulk).map(|_| ("Precedence", "bulk"));
    let unsubscribe = request.list_unsubscribe.iter().map(|value| ("List-Unsubscribe", value.as_str()));
    let references = Some(request.references.0.join(" ")).filter(|ids| !ids.is_empty());
    let references = references.iter().map(|ids| ("References", ids.as_str()));
    let fields = own.chain(reply).chain(bulk).chain(unsubscribe).chain(references);
    fields.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}
