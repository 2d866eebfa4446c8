//! The API of Gmail for sending mail, and the token endpoint of Google.

use std::sync::Arc;

use axum::http::{HeaderMap, StatusCode, header};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE;
use bytes::Bytes;
use restante_http_core::api::Api;
use restante_mail::mime::Mime;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::email::{Sent, parse_id};
use crate::failure::{Failure, FailureKind};
use crate::incoming::{Incoming, decode_base64, decode_base64_url};
use crate::provider::{Action, Provider, Routes, bearer};
use crate::reply::Reply;
use crate::stored::StoredEmail;
use crate::templates::{TemplateStore, Templates};
use crate::values::Text;
use crate::{oauth, raw};

/// The fields of a form of which one becomes the access token.
const SECRETS: [&str; 2] = ["refresh_token", "assertion"];
/// The maximum length of the beginning of the text in responses, in characters.
const SNIPPET_CHARS: usize = 200;

struct Gmail;

impl Provider for Gmail {
    const NAME: &'static str = "gmail";
    const HAS_BODY_KEY: bool = true;

    fn key(headers: &HeaderMap) -> Option<String> {
        bearer(headers)
    }

    fn body_key(incoming: &Incoming) -> Option<String> {
        oauth::secret(incoming, &SECRETS)
    }

    fn failure(failure: &Failure) -> Reply {
        let (status, reason) = match failure.kind {
            FailureKind::Malformed => ("INVALID_ARGUMENT", "parseError"),
            FailureKind::Missing | FailureKind::Invalid => ("INVALID_ARGUMENT", "invalidArgument"),
            FailureKind::Unauthorized => ("UNAUTHENTICATED", "authError"),
            FailureKind::Forbidden => ("PERMISSION_DENIED", "forbidden"),
            FailureKind::NotFound => ("NOT_FOUND", "notFound"),
            FailureKind::Exists => ("ALREADY_EXISTS", "duplicate"),
            FailureKind::TooLarge => ("INVALID_ARGUMENT", "uploadTooLarge"),
            FailureKind::RateLimited => ("RESOURCE_EXHAUSTED", "rateLimitExceeded"),
            FailureKind::Unavailable => ("UNAVAILABLE", "backendError"),
            FailureKind::Internal => ("INTERNAL", "internalError"),
        };
        let message = match failure.field.as_deref() {
            Some("to") if failure.kind == FailureKind::Missing => "Recipient address required",
            _ => &failure.message,
        };
        let code = failure.kind.status();
        let errors = [json!({"message": message, "domain": "global", "reason": reason})];
        let error = json!({"code": code.as_u16(), "message": message, "errors": errors, "status": status});
        Reply::json(code, &json!({"error": error}))
    }
}

/// Returns the API.
pub(crate) fn api(templates: &Arc<TemplateStore>) -> Api {
    Routes::new::<Gmail>(templates)
        .post("/gmail/v1/users/{user}/messages/send", send)
        .post("/upload/gmail/v1/users/{user}/messages/send", upload)
        .get("/gmail/v1/users/{user}/messages", |_, _| Action::json(&json!({"messages": [], "resultSizeEstimate": 0})))
        .get("/gmail/v1/users/{user}/messages/{id}", read)
        .get("/gmail/v1/users/{user}/settings/sendAs", |incoming, _| {
            let address = raw::user(incoming.path_value("user"))?.address.text();
            Action::json(&json!({"sendAs": [{"sendAsEmail": address, "isDefault": true, "isPrimary": true}]}))
        })
        .get("/gmail/v1/users/{user}/profile", read_profile)
        .post("/token", token)
        .api()
}

fn token(incoming: &Incoming, _: &Templates<'_>) -> Result<Action, Failure> {
    oauth::token(incoming, &SECRETS)
}

#[derive(Deserialize)]
struct SendRequest<'a> {
    #[serde(borrow)]
    raw: Option<Text<'a>>,
}

fn send(incoming: &Incoming, _: &Templates<'_>) -> Result<Action, Failure> {
    let SendRequest { raw } = incoming.json()?;
    let Text(raw) = raw.ok_or_else(|| Failure::missing("raw"))?;
    let decode = if raw.contains(['+', '/']) { decode_base64 } else { decode_base64_url };
    send_message(incoming, decode("raw", &raw)?)
}

fn upload(incoming: &Incoming, _: &Templates<'_>) -> Result<Action, Failure> {
    match incoming.query_value("uploadType").as_deref() {
        Some("media") => send_message(incoming, incoming.body.clone()),
        Some("multipart") => send_message(incoming, related_message(incoming)?),
        _ => Err(Failure::invalid("uploadType", "must be media or multipart. This server has no resumable uploads")),
    }
}

/// Returns the message in a body of the type `multipart/related`, whose first part is metadata.
fn related_message(incoming: &Incoming) -> Result<Bytes, Failure> {
    let content_type = incoming.header(header::CONTENT_TYPE.as_str()).unwrap_or_default();
    let source = [b"Content-Type: ", content_type.as_bytes(), b"\r\n\r\n", &*incoming.body].concat();
    let mime = Mime::parse(source.into());
    let part = mime.parts().iter().find(|part| part.parent == Some(0) && part.content_type == "message/rfc822");
    let part = part.ok_or_else(|| Failure::malformed("no part has the type message/rfc822"))?;
    Ok(mime.content(part))
}

fn send_message(incoming: &Incoming, message: Bytes) -> Result<Action, Failure> {
    let email = raw::sent_by(incoming.path_value("user"), raw::from_message(message)?)?;
    let reply = |_: &Incoming, sent: &[Sent]| Reply::json(StatusCode::OK, &message_ids(&sent[0].hex()));
    Ok(Action::Send(vec![email], reply))
}

fn message_ids(id: &str) -> Value {
    json!({"id": id, "threadId": id, "labelIds": ["SENT"]})
}

fn read_profile(incoming: &Incoming, _: &Templates<'_>) -> Result<Action, Failure> {
    let address = raw::user(incoming.path_value("user"))?.address.text();
    let body = json!({"emailAddress": address, "messagesTotal": 0, "threadsTotal": 0, "historyId": "1"});
    Action::json(&body)
}

fn read_raw(email: &StoredEmail) -> Reply {
    let mut body = message_ids(&email.hex());
    body["raw"] = json!(URL_SAFE.encode(&email.source));
    Reply::json(StatusCode::OK, &body)
}

fn read(incoming: &Incoming, _: &Templates<'_>) -> Result<Action, Failure> {
    let id = parse_id(incoming.path_value("id"));
    let id = id.ok_or_else(|| Failure::new(FailureKind::NotFound, "Requested entity was not found."))?;
    if incoming.query_value("format").as_deref() == Some("raw") {
        return Ok(Action::Read(id, read_raw));
    }
    let reply = |email: &StoredEmail| {
        let header = &email.header;
        let fields = [
            ("From", header.from.clone()),
            ("To", header.to.as_ref().map(|to| to.join(", "))),
            ("Cc", Some(header.cc.join(", ")).filter(|cc| !cc.is_empty())),
            ("Subject", Some(header.subject.clone())),
            ("Message-ID", Some(format!("<{}>", header.message_id))),
        ];
        let fields = fields.into_iter().filter_map(|(name, value)| Some(json!({"name": name, "value": value?})));
        let bodies = [("text/plain", &email.text), ("text/html", &email.html)];
        let part = |(kind, text): (&str, &Option<String>)| {
            let text = text.as_ref()?;
            Some(json!({"mimeType": kind, "body": {"size": text.len(), "data": URL_SAFE.encode(text)}}))
        };
        let mut body = message_ids(&email.hex());
        body["snippet"] =
            json!(email.text.as_deref().unwrap_or_default().chars().take(SNIPPET_CHARS).collect::<String>());
        body["internalDate"] = json!(email.received.as_millisecond().to_string());
        body["payload"] = json!({
            "mimeType": "multipart/alternative",
            "headers": fields.collect::<Vec<_>>(),
            "parts": bodies.into_iter().filter_map(part).collect::<Vec<_>>(),
        });
        Reply::json(StatusCode::OK, &body)
    };
    Ok(Action::Read(id, reply))
}
