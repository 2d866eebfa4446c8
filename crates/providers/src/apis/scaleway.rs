//! The API of Scaleway for transactional email.

use std::sync::Arc;

use axum::http::{HeaderMap, StatusCode};
use jiff::Timestamp;
use restante_http_core::api::Api;
use restante_mail::message::MessageId;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::email::{Content, Email, Parts, Sent, parse_id, uuid};
use crate::failure::{Failure, FailureKind};
use crate::files::{self, File};
use crate::incoming::Incoming;
use crate::pairs::{Pair, pairs};
use crate::person::{Contact, Person};
use crate::provider::{Action, Provider, Routes, header_key};
use crate::reply::Reply;
use crate::stored::StoredEmail;
use crate::templates::{TemplateStore, Templates};
use crate::values::List;

/// The maximum length of a text of the request in the response, in characters.
const MAX_SHOWN_CHARS: usize = 500;

struct Scaleway;

impl Provider for Scaleway {
    const NAME: &'static str = "scaleway";

    fn key(headers: &HeaderMap) -> Option<String> {
        header_key(headers, "x-auth-token")
    }

    fn failure(failure: &Failure) -> Reply {
        let Failure { kind, field, message } = failure;
        let body = match kind {
            FailureKind::Malformed | FailureKind::Missing | FailureKind::Invalid => {
                let reason = if *kind == FailureKind::Missing { "required" } else { "constraint" };
                let detail =
                    |field: &String| json!({"argument_name": field, "reason": reason, "help_message": message});
                let text = if field.is_some() { "invalid argument(s)" } else { message };
                json!({"type": "invalid_arguments", "message": text, "details": field.iter().map(detail).collect::<Vec<_>>()})
            }
            FailureKind::Unauthorized => {
                json!({"type": "denied_authentication", "method": "api_key", "reason": "not_found", "message": message})
            }
            FailureKind::Forbidden => json!({"type": "permissions_denied", "message": message, "details": []}),
            FailureKind::NotFound => json!({"type": "not_found", "resource": "email", "message": message}),
            FailureKind::RateLimited => json!({"type": "too_many_requests", "message": message}),
            _ => json!({"message": message}),
        };
        Reply::json(kind.status(), &body)
    }
}

/// Returns the API.
pub(crate) fn api(templates: &Arc<TemplateStore>) -> Api {
    let path = |end: &str| format!("/transactional-email/v1alpha1/regions/{{region}}/{end}");
    Routes::new::<Scaleway>(templates)
        .post(&path("emails"), send)
        .get(&path("emails/{id}"), read)
        .get(&path("emails"), |_, _| Action::json(&json!({"emails": [], "total_count": 0})))
        .get(&path("domains"), |_, _| Action::json(&json!({"domains": [], "total_count": 0})))
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
    subject: String,
    text: Option<String>,
    html: Option<String>,
    #[serde(borrow, default)]
    attachments: List<File<'a>>,
    #[serde(default)]
    additional_headers: List<Pair>,
    send_before: Option<String>,
}

/// What the response repeats of a request.
#[derive(Default, Deserialize)]
struct Echo {
    project_id: Option<String>,
    from: Option<Contact>,
    #[serde(default)]
    subject: String,
}

fn send(incoming: &Incoming, _: &Templates<'_>) -> Result<Action, Failure> {
    let request: SendRequest<'_> = incoming.json()?;
    if [&request.text, &request.html].into_iter().flatten().all(String::is_empty) {
        return Err(Failure::missing("text"));
    }
    let parts = Parts {
        subject: request.subject,
        text: request.text,
        html: request.html,
        attachments: files::attachments("attachments", "content", &request.attachments)?,
    };
    let email = Email {
        from: Some(request.from.ok_or_else(|| Failure::missing("from"))?.person("from.email")?),
        to: Contact::people("to", "email", &request.to.0)?,
        cc: Contact::people("cc", "email", &request.cc.0)?,
        bcc: Contact::people("bcc", "email", &request.bcc.0)?,
        content: Content::Parts(parts),
        headers: pairs(request.additional_headers),
        scheduled: request.send_before,
        ..Email::default()
    };
    Ok(Action::Send(vec![email], accepted))
}

/// Returns the beginning of a text of the request. Responses repeat it for each recipient.
fn shown(text: &str) -> String {
    text.chars().take(MAX_SHOWN_CHARS).collect()
}

fn accepted(incoming: &Incoming, sent: &[Sent]) -> Reply {
    let Sent { id, message_id, to, cc, bcc } = &sent[0];
    let Echo { project_id, from, subject } = incoming.json().unwrap_or_default();
    let (project, subject) = (shown(&project_id.unwrap_or_default()), shown(&subject));
    let message_id = shown(message_id);
    let from = from.map(|from| shown(&from.email)).unwrap_or_default();
    let email = |person: &Person, kind: &str| {
        let mut email = email(*id, &message_id, &from, &subject);
        let address = person.address.text();
        email["project_id"] = json!(project);
        email["mail_rcpt"] = json!(address);
        email["rcpt_to"] = json!(address);
        email["rcpt_type"] = json!(kind);
        email
    };
    let kinds = [(to, "to"), (cc, "cc"), (bcc, "bcc")];
    let emails = kinds.iter().flat_map(|(people, kind)| people.iter().map(|person| email(person, kind)));
    Reply::json(StatusCode::OK, &json!({"emails": emails.collect::<Vec<_>>()}))
}

fn read(incoming: &Incoming, _: &Templates<'_>) -> Result<Action, Failure> {
    let id = parse_id(incoming.path_value("id"));
    let id = id.ok_or_else(|| Failure::new(FailureKind::NotFound, "resource is not found"))?;
    let reply = |stored: &StoredEmail| {
        let header = &stored.header;
        let mut email = email(stored.id, &header.message_id, &stored.sender().address, &header.subject);
        email["mail_rcpt"] = json!(stored.recipient().address);
        email["status"] = json!("sent");
        Reply::json(StatusCode::OK, &email)
    };
    Ok(Action::Read(id, reply))
}

/// Returns the members that all responses have.
fn email(id: MessageId, message_id: &str, from: &str, subject: &str) -> Value {
    // An id is the time of arrival.
    let micros = i64::try_from(id.number()).unwrap_or_default();
    let time = Timestamp::from_microsecond(micros).unwrap_or_default().to_string();
    json!({
        "id": uuid(id),
        "message_id": message_id,
        "mail_from": from,
        "subject": subject,
        "created_at": time,
        "updated_at": time,
        "status": "new",
        "status_details": null,
        "try_count": 0,
        "last_tries": [],
        "flags": [],
    })
}
