//! The API of Azure Communication Services for email.

use std::sync::Arc;

use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::fmt::rfc2822;
use jiff::{SignedDuration, Timestamp};
use restante_http_core::api::Api;
use restante_http_core::server::SigningKey;
use ring::{digest, hmac};
use serde::Deserialize;
use serde_json::json;

use crate::email::{Content, Email, Parts, Sent, parse_id};
use crate::failure::{Failure, FailureKind};
use crate::files::{self, File};
use crate::incoming::Incoming;
use crate::person::{Contact, Person};
use crate::provider::{Action, Provider, Routes, bearer};
use crate::reply::Reply;
use crate::templates::{TemplateStore, Templates};
use crate::values::{List, Texts};

/// The beginning of a header field Authorization with a signature.
const SIGNATURE_PREFIX: &str = "HMAC-SHA256 SignedHeaders=x-ms-date;host;x-ms-content-sha256&Signature=";
/// The maximum difference between the time of a signature and that of the server.
const MAX_SKEW: SignedDuration = SignedDuration::from_mins(15);

struct Azure;

impl Provider for Azure {
    const NAME: &'static str = "azure";
    // Signatures cover the body.
    const HAS_BODY_KEY: bool = true;

    fn key(headers: &HeaderMap) -> Option<String> {
        bearer(headers)
    }

    fn verify(incoming: &Incoming, keys: &[SigningKey]) -> Result<Option<String>, Failure> {
        if keys.is_empty() || bearer(&incoming.headers).is_some() {
            return Ok(None);
        }
        verify_at(incoming, keys, Timestamp::now()).map(Some)
    }

    fn failure(failure: &Failure) -> Reply {
        let code = match failure.kind {
            FailureKind::Malformed | FailureKind::Missing | FailureKind::Invalid => "BadRequest",
            FailureKind::Unauthorized => "Denied",
            FailureKind::Forbidden => "Forbidden",
            FailureKind::NotFound => "NotFound",
            FailureKind::Exists => "Conflict",
            FailureKind::TooLarge => "RequestEntityTooLarge",
            FailureKind::RateLimited => "TooManyRequests",
            FailureKind::Unavailable => "ServiceUnavailable",
            FailureKind::Internal => "InternalServerError",
        };
        let error = json!({
            "code": code,
            "message": failure.message,
            "target": failure.field,
            "details": [],
            "additionalInfo": [],
        });
        Reply::json(failure.kind.status(), &json!({"error": error}))
    }
}

/// Returns the API.
pub(crate) fn api(templates: &Arc<TemplateStore>) -> Api {
    Routes::new::<Azure>(templates).post("/emails:send", send).get("/emails/operations/{id}", read_operation).api()
}

/// Verifies the signature of a request. It contains no id of its key, so that all keys are tried. Returns the id.
fn verify_at(incoming: &Incoming, keys: &[SigningKey], now: Timestamp) -> Result<String, Failure> {
    let denied = |message: &str| Failure::new(FailureKind::Unauthorized, message);
    let header = |name: &str| incoming.header(name).unwrap_or_default();
    let signature = header(header::AUTHORIZATION.as_str()).strip_prefix(SIGNATURE_PREFIX);
    let signature = signature.ok_or_else(|| denied("The request has no signature with an access key."))?;
    let signature = STANDARD.decode(signature.trim()).unwrap_or_default();
    let (date, hash) = (header("x-ms-date"), header("x-ms-content-sha256"));
    let signed_at = rfc2822::parse(date).map_err(|_| denied("The header field x-ms-date is not a date."))?;
    if now.duration_since(signed_at.timestamp()).abs() > MAX_SKEW {
        return Err(denied("The date of the signature differs by more than 15 minutes from that of the server."));
    }
    if hash != STANDARD.encode(digest::digest(&digest::SHA256, &incoming.body)) {
        return Err(denied("The header field x-ms-content-sha256 is not the hash of the body."));
    }
    let target = incoming.uri.path_and_query().map_or("/", |target| target.as_str());
    let host = incoming.uri.authority().map_or_else(|| header(header::HOST.as_str()), |host| host.as_str());
    let text = format!("{}\n{target}\n{date};{host};{hash}", incoming.method);
    let has_signed = |key: &&SigningKey| {
        // Anybody can sign with an empty secret, and that of another provider need not be base64.
        STANDARD.decode(key.secret.expose()).is_ok_and(|secret| {
            let key = hmac::Key::new(hmac::HMAC_SHA256, &secret);
            !secret.is_empty() && hmac::verify(&key, text.as_bytes(), &signature).is_ok()
        })
    };
    let key = keys.iter().find(has_signed);
    key.map(|key| key.id.clone()).ok_or_else(|| denied("The signature of the request is wrong."))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SendRequest<'a> {
    #[serde(default)]
    sender_address: String,
    #[serde(default)]
    content: Body,
    #[serde(default)]
    recipients: Recipients,
    #[serde(default)]
    reply_to: List<Contact>,
    #[serde(borrow, default)]
    attachments: List<File<'a>>,
    #[serde(default)]
    headers: Texts,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Body {
    #[serde(default)]
    subject: String,
    plain_text: Option<String>,
    html: Option<String>,
}

#[derive(Default, Deserialize)]
struct Recipients {
    #[serde(default)]
    to: List<Contact>,
    #[serde(default)]
    cc: List<Contact>,
    #[serde(default)]
    bcc: List<Contact>,
}

fn send(incoming: &Incoming, _: &Templates<'_>) -> Result<Action, Failure> {
    let SendRequest { sender_address, content, recipients, reply_to, attachments, headers } = incoming.json()?;
    if content.subject.is_empty() {
        return Err(Failure::missing("content.subject"));
    }
    if [&content.plain_text, &content.html].into_iter().flatten().all(String::is_empty) {
        return Err(Failure::missing("content.plainText"));
    }
    let parts = Parts {
        subject: content.subject,
        text: content.plain_text,
        html: content.html,
        attachments: files::attachments("attachments", "contentInBase64", &attachments)?,
    };
    let email = Email {
        from: Some(Person::parse("senderAddress", &sender_address)?),
        to: Contact::people("recipients.to", "address", &recipients.to.0)?,
        cc: Contact::people("recipients.cc", "address", &recipients.cc.0)?,
        bcc: Contact::people("recipients.bcc", "address", &recipients.bcc.0)?,
        reply_to: Contact::people("replyTo", "address", &reply_to.0)?,
        content: Content::Parts(parts),
        headers: headers.0,
        ..Email::default()
    };
    Ok(Action::Send(vec![email], accepted))
}

fn accepted(incoming: &Incoming, sent: &[Sent]) -> Reply {
    let id = sent[0].uuid();
    let uri = incoming.uri.to_string();
    // The path of the request ends like this, perhaps after that of a project.
    let base = uri.split("emails:send").next().unwrap_or_default();
    let query = incoming.uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    Reply::json(StatusCode::ACCEPTED, &json!({"id": id, "status": "Running", "error": null}))
        .with(HeaderName::from_static("operation-location"), format!("{base}emails/operations/{id}{query}"))
        .with(header::RETRY_AFTER, "0")
}

/// Returns the state of an operation. Each id of a sent message is that of an operation that has succeeded, even if the message
/// was deleted.
fn read_operation(incoming: &Incoming, _: &Templates<'_>) -> Result<Action, Failure> {
    let id = incoming.path_value("id");
    parse_id(id).ok_or_else(|| Failure::new(FailureKind::NotFound, "The operation does not exist."))?;
    let body = json!({"id": id, "status": "Succeeded", "error": null});
    Action::json(&body)
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;

    const DATE: &str = "Thu, 19 Nov 2026 02:00:00 GMT";
    const HASH: &str = "RBNvo1WzZ4oRRq0W9+hknpT7T8If536DEMBg9hyq/4o=";
    const SIGNATURE: &str = "gsC1QXD1IEd0VeGcZvmtm6HbZVZLCB0RP6xcfbMrx0k=";
    /// The signature with an empty secret.
    const EMPTY_SIGNATURE: &str = "Rzr9myVLCHllONLXolqYFfGGaBr7rWWzDT+Yes4K3zE=";

    fn verify(authorization: &str, path: &str, date: &str, body: &str, now: &str) -> Option<String> {
        let request = Request::post(format!("http://localhost:9000{path}"))
            .header("authorization", authorization)
            .header("x-ms-date", date)
            .header("x-ms-content-sha256", HASH)
            .body(())
            .unwrap();
        let incoming = Incoming::new(&request.into_parts().0, Vec::new(), body.into());
        let keys = [("other", "bm90"), ("empty", ""), ("text", "*"), ("azure", "YWNjZXNzLWtleQ==")]
            .map(|(id, secret)| SigningKey { id: id.to_owned(), secret: restante_proto::Secret::new(secret) });
        verify_at(&incoming, &keys, now.parse().unwrap()).ok()
    }

    #[test]
    fn signatures_are_verified() {
        let signed = |signature: &str| format!("{SIGNATURE_PREFIX}{signature}");
        let (path, now) = ("/emails:send?api-version=2025-09-01", "2026-11-19T02:14:00Z");
        let table = [
            (signed(SIGNATURE), path, DATE, "{}", now, true),
            (signed(SIGNATURE), path, DATE, "{}", "2026-11-19T02:16:00Z", false),
            (signed(SIGNATURE), path, DATE, "[]", now, false),
            (signed(SIGNATURE), path, "Thu, 19 Nov 2026 02:00:01 GMT", "{}", now, false),
            (signed(SIGNATURE), path, "now", "{}", now, false),
            (signed(SIGNATURE), "/emails:send", DATE, "{}", now, false),
            (signed(EMPTY_SIGNATURE), path, DATE, "{}", now, false),
            (signed(""), path, DATE, "{}", now, false),
            (SIGNATURE.to_owned(), path, DATE, "{}", now, false),
        ];
        for (authorization, path, date, body, now, is_valid) in table {
            let expected = is_valid.then(|| "azure".to_owned());
            assert_eq!(
                verify(&authorization, path, date, body, now),
                expected,
                "{authorization} {path} {date} {body} {now}"
            );
        }
    }
}
