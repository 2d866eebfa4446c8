//! The API of Postal.

use std::sync::Arc;

use axum::http::{HeaderMap, StatusCode};
use restante_http_core::api::Api;
use restante_mail::message::MessageId;
use serde::Deserialize;
use serde_json::{Map, json};

use crate::email::{Content, Email, Parts, Sent};
use crate::failure::{Failure, FailureKind};
use crate::files::{self, File};
use crate::incoming::{Incoming, decode_base64};
use crate::person::Person;
use crate::provider::{Action, Provider, Routes, header_key};
use crate::reply::Reply;
use crate::stored::StoredEmail;
use crate::templates::{TemplateStore, Templates};
use crate::values::{List, OneOrMany, Text, Texts};

struct Postal;

impl Provider for Postal {
    const NAME: &'static str = "postal";

    fn key(headers: &HeaderMap) -> Option<String> {
        header_key(headers, "x-server-api-key")
    }

    fn failure(failure: &Failure) -> Reply {
        let Failure { kind, field, message } = failure;
        let field = field.as_deref().unwrap_or_default();
        let (status, code) = match kind {
            FailureKind::Malformed => ("parameter-error", "ParameterError"),
            FailureKind::Missing => match field {
                "to" => ("error", "NoRecipients"),
                "from" => ("error", "FromAddressMissing"),
                "plain_body" => ("error", "NoContent"),
                _ => ("parameter-error", "ParameterError"),
            },
            FailureKind::Unauthorized | FailureKind::Forbidden => ("error", "InvalidServerAPIKey"),
            FailureKind::NotFound => ("error", "MessageNotFound"),
            // A wrong address has the index of its list.
            FailureKind::Invalid if field == "to" => ("error", "TooManyToAddresses"),
            FailureKind::Invalid if field == "cc" => ("error", "TooManyCCAddresses"),
            FailureKind::Invalid if field == "bcc" => ("error", "TooManyBCCAddresses"),
            FailureKind::Invalid | FailureKind::Exists => ("error", "ValidationError"),
            _ => ("error", "Error"),
        };
        // Postal reports all errors of requests with the status 200.
        let http_status = match kind {
            FailureKind::TooLarge | FailureKind::RateLimited | FailureKind::Unavailable | FailureKind::Internal => {
                kind.status()
            }
            _ => StatusCode::OK,
        };
        let data = json!({"code": code, "message": message});
        Reply::json(http_status, &json!({"status": status, "time": 0.0, "flags": {}, "data": data}))
    }
}

/// Returns the API.
pub(crate) fn api(templates: &Arc<TemplateStore>) -> Api {
    Routes::new::<Postal>(templates)
        .post("/api/v1/send/message", send)
        .post("/api/v1/send/raw", send_raw)
        .post("/api/v1/messages/message", read)
        .api()
}

#[derive(Deserialize)]
struct SendRequest<'a> {
    #[serde(default)]
    to: OneOrMany<String>,
    #[serde(default)]
    cc: OneOrMany<String>,
    #[serde(default)]
    bcc: OneOrMany<String>,
    #[serde(default)]
    from: String,
    sender: Option<String>,
    subject: Option<String>,
    tag: Option<String>,
    reply_to: Option<String>,
    plain_body: Option<String>,
    html_body: Option<String>,
    #[serde(borrow, default)]
    attachments: List<File<'a>>,
    #[serde(default)]
    headers: Texts,
}

#[derive(Deserialize)]
struct RawRequest<'a> {
    #[serde(default)]
    mail_from: String,
    #[serde(default)]
    rcpt_to: OneOrMany<String>,
    #[serde(borrow, default)]
    data: Text<'a>,
}

fn send(incoming: &Incoming, _: &Templates<'_>) -> Result<Action, Failure> {
    let request: SendRequest<'_> = incoming.json()?;
    let parts = Parts {
        subject: request.subject.unwrap_or_default(),
        text: request.plain_body,
        html: request.html_body,
        attachments: files::attachments("attachments", "data", &request.attachments)?,
    };
    if [&parts.text, &parts.html].into_iter().flatten().all(String::is_empty) && parts.attachments.is_empty() {
        return Err(Failure::missing("plain_body"));
    }
    let sender = request.sender.map(|sender| ("Sender".to_owned(), sender));
    let email = Email {
        from: Some(Person::parse("from", &request.from)?),
        to: people("to", &request.to)?,
        cc: people("cc", &request.cc)?,
        bcc: people("bcc", &request.bcc)?,
        reply_to: Person::parse_list("reply_to", &request.reply_to.unwrap_or_default())?,
        content: Content::Parts(parts),
        headers: request.headers.0.into_iter().chain(sender).collect(),
        tags: request.tag.into_iter().collect(),
        ..Email::default()
    };
    Ok(Action::Send(vec![email], accepted))
}

fn people(field: &str, texts: &OneOrMany<String>) -> Result<Vec<Person>, Failure> {
    Person::limited(field, Person::parse_all(field, &texts.0)?)
}

fn send_raw(incoming: &Incoming, _: &Templates<'_>) -> Result<Action, Failure> {
    let request: RawRequest<'_> = incoming.json()?;
    let email = Email {
        from: Some(Person::parse("mail_from", &request.mail_from)?),
        to: Person::parse_all("rcpt_to", &request.rcpt_to.0)?,
        content: Content::Raw(decode_base64("data", &request.data.0)?),
        ..Email::default()
    };
    Ok(Action::Send(vec![email], accepted))
}

/// Returns the response for a message. All recipients have the same id, because they get the same message.
fn accepted(_: &Incoming, sent: &[Sent]) -> Reply {
    let sent = &sent[0];
    let message = json!({"id": sent.id.number(), "token": sent.hex()});
    let messages: Map<_, _> = sent.recipients().map(|person| (person.address.text(), message.clone())).collect();
    success(&json!({"message_id": sent.message_id, "messages": messages}))
}

fn success(data: &serde_json::Value) -> Reply {
    Reply::json(StatusCode::OK, &json!({"status": "success", "time": 0.0, "flags": {}, "data": data}))
}

#[derive(Deserialize)]
struct ReadRequest {
    id: u64,
}

fn read(incoming: &Incoming, _: &Templates<'_>) -> Result<Action, Failure> {
    let ReadRequest { id } = incoming.json()?;
    let reply = |email: &StoredEmail| {
        let header = &email.header;
        let details = json!({
            "rcpt_to": email.recipient().address,
            "mail_from": email.sender().address,
            "subject": header.subject,
            "message_id": header.message_id,
            "timestamp": email.received.as_second(),
            "direction": "outgoing",
            "bounce": false,
        });
        success(&json!({
            "id": email.id.number(),
            "token": email.hex(),
            "status": {"status": "Sent", "held": false},
            "details": details,
            "plain_body": email.text,
            "html_body": email.html,
        }))
    };
    Ok(Action::Read(MessageId::from(id), reply))
}
