//! The API of Microsoft Graph for sending mail, and the token endpoint of the Microsoft identity platform.

use std::sync::Arc;

use axum::http::{HeaderMap, HeaderName, StatusCode};
use restante_http_core::api::Api;
use restante_mail::compose::Attachment;
use serde::Deserialize;
use serde_json::json;

use crate::email::{Content, Email, Parts, Sent};
use crate::failure::{Failure, FailureKind};
use crate::incoming::{Incoming, decode_base64};
use crate::pairs::Pair;
use crate::person::{Contact, Person};
use crate::provider::{Action, Provider, Routes, bearer};
use crate::reply::Reply;
use crate::templates::{TemplateStore, Templates};
use crate::values::{List, Text};
use crate::{oauth, raw};

/// The field of a form that becomes the access token.
const SECRETS: [&str; 1] = ["client_secret"];
/// The member with header fields. Their names begin with `X-`.
const HEADERS: &str = "message.internetMessageHeaders";
const FILE_TYPE: &str = "#microsoft.graph.fileAttachment";

struct Graph;

impl Provider for Graph {
    const NAME: &'static str = "graph";
    const HAS_BODY_KEY: bool = true;

    fn key(headers: &HeaderMap) -> Option<String> {
        bearer(headers)
    }

    fn body_key(incoming: &Incoming) -> Option<String> {
        oauth::secret(incoming, &SECRETS)
    }

    fn failure(failure: &Failure) -> Reply {
        let field = failure.field.as_deref().unwrap_or_default();
        let code = match failure.kind {
            FailureKind::Malformed => "BadRequest",
            _ if field.starts_with(HEADERS) || field.starts_with("headers") => "InvalidInternetMessageHeader",
            _ if ["to", "cc", "bcc"].contains(&field) || field.contains("ecipients") => "ErrorInvalidRecipients",
            FailureKind::Missing | FailureKind::Invalid | FailureKind::Exists => "ErrorInvalidRequest",
            FailureKind::Unauthorized => "InvalidAuthenticationToken",
            FailureKind::Forbidden => "ErrorAccessDenied",
            FailureKind::NotFound => "ResourceNotFound",
            FailureKind::TooLarge => "ErrorMessageSizeExceeded",
            FailureKind::RateLimited => "ApplicationThrottled",
            FailureKind::Unavailable => "ServiceNotAvailable",
            FailureKind::Internal => "InternalServerError",
        };
        Reply::json(
            failure.kind.status(),
            &json!({"error": {"code": code, "message": failure.message, "innerError": {}}}),
        )
    }
}

/// Returns the API.
pub(crate) fn api(templates: &Arc<TemplateStore>) -> Api {
    let mut routes = Routes::new::<Graph>(templates).post("/{tenant}/oauth2/v2.0/token", token);
    for version in ["v1.0", "beta"] {
        for user in ["me", "users/{user}"] {
            let path = format!("/{version}/{user}");
            routes = routes.get(&path, read_user).post(&format!("{path}/sendMail"), send);
        }
    }
    routes.api()
}

fn token(incoming: &Incoming, _: &Templates<'_>) -> Result<Action, Failure> {
    oauth::token(incoming, &SECRETS)
}

fn read_user(incoming: &Incoming, _: &Templates<'_>) -> Result<Action, Failure> {
    let user = raw::user(incoming.path_value("user"))?.address.text();
    let body = json!({"id": user, "displayName": user, "mail": user, "userPrincipalName": user});
    Action::json(&body)
}

#[derive(Deserialize)]
struct SendRequest<'a> {
    #[serde(borrow, alias = "Message")]
    message: Option<Message<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Message<'a> {
    subject: Option<String>,
    body: Option<Body>,
    from: Option<Recipient>,
    sender: Option<Recipient>,
    #[serde(default)]
    to_recipients: List<Recipient>,
    #[serde(default)]
    cc_recipients: List<Recipient>,
    #[serde(default)]
    bcc_recipients: List<Recipient>,
    #[serde(default)]
    reply_to: List<Recipient>,
    #[serde(borrow, default)]
    attachments: List<File<'a>>,
    #[serde(default)]
    internet_message_headers: List<Pair>,
    #[serde(default)]
    categories: List<String>,
    importance: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Body {
    content_type: Option<String>,
    content: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Recipient {
    #[serde(default)]
    email_address: Contact,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct File<'a> {
    #[serde(rename = "@odata.type")]
    kind: Option<String>,
    name: Option<String>,
    content_type: Option<String>,
    #[serde(borrow)]
    content_bytes: Option<Text<'a>>,
    content_id: Option<String>,
    is_inline: Option<bool>,
}

fn send(incoming: &Incoming, _: &Templates<'_>) -> Result<Action, Failure> {
    let user = incoming.path_value("user");
    let email = if incoming.media_type() == "text/plain" {
        let text = str::from_utf8(&incoming.body).map_err(Failure::malformed)?;
        raw::sent_by(user, raw::from_message(decode_base64("The body", text)?)?)?
    } else {
        let SendRequest { message } = incoming.json()?;
        email(user, message.ok_or_else(|| Failure::missing("message"))?)?
    };
    Ok(Action::Send(vec![email], accepted))
}

fn email(user: &str, message: Message<'_>) -> Result<Email, Failure> {
    let Body { content_type, content } = message.body.unwrap_or(Body { content_type: None, content: None });
    let is_html = content_type.is_some_and(|kind| kind.eq_ignore_ascii_case("html"));
    let (text, html) = if is_html { (None, content) } else { (content, None) };
    let files = message.attachments.0.into_iter().enumerate();
    let sender = message.sender.map(|sender| person("message.sender", sender)).transpose()?;
    let from = message.from.map(|from| person("message.from", from)).transpose()?;
    let mut headers = Vec::new();
    for (index, Pair { name, value }) in message.internet_message_headers.0.into_iter().enumerate() {
        if !name.get(..2).is_some_and(|start| start.eq_ignore_ascii_case("x-")) {
            return Err(Failure::invalid(
                format!("{HEADERS}[{index}]"),
                "has a name that does not start with 'x-' or 'X-'",
            ));
        }
        headers.push((name, value));
    }
    if let Some(sender) = sender.as_ref().filter(|_| from.is_some() && from != sender) {
        headers.push(("Sender".to_owned(), sender.quoted()));
    }
    let importance = message.importance.filter(|importance| !importance.eq_ignore_ascii_case("normal"));
    headers.extend(importance.map(|importance| ("Importance".to_owned(), importance)));
    Ok(Email {
        from: Some(from.or(sender).map_or_else(|| raw::user(user), Ok)?),
        to: people("toRecipients", &message.to_recipients)?,
        cc: people("ccRecipients", &message.cc_recipients)?,
        bcc: people("bccRecipients", &message.bcc_recipients)?,
        reply_to: people("replyTo", &message.reply_to)?,
        content: Content::Parts(Parts {
            subject: message.subject.unwrap_or_default(),
            text,
            html,
            attachments: files.map(|(index, file)| attachment(index, file)).collect::<Result<_, _>>()?,
        }),
        headers,
        tags: message.categories.0,
        ..Email::default()
    })
}

fn person(field: &str, Recipient { email_address }: Recipient) -> Result<Person, Failure> {
    email_address.person(&format!("{field}.emailAddress.address"))
}

fn people(field: &str, people: &List<Recipient>) -> Result<Vec<Person>, Failure> {
    Contact::people(
        &format!("message.{field}"),
        "emailAddress.address",
        people.0.iter().map(|recipient| &recipient.email_address),
    )
}

fn attachment(index: usize, file: File<'_>) -> Result<Attachment, Failure> {
    let field = format!("message.attachments[{index}]");
    if file.kind.is_some_and(|kind| kind != FILE_TYPE) {
        return Err(Failure::invalid(
            field,
            &format!("is not of the type {FILE_TYPE}, which is the only supported one"),
        ));
    }
    let content = file.content_bytes.ok_or_else(|| Failure::missing(format!("{field}.contentBytes")))?;
    Ok(Attachment {
        filename: file.name,
        content_type: file.content_type,
        content: decode_base64(&format!("{field}.contentBytes"), &content.0)?,
        content_id: file.content_id.filter(|_| file.is_inline == Some(true)),
    })
}

fn accepted(incoming: &Incoming, sent: &[Sent]) -> Reply {
    let reply = Reply::empty(StatusCode::ACCEPTED).with(HeaderName::from_static("request-id"), sent[0].uuid());
    match incoming.headers.get("client-request-id") {
        Some(id) => reply.with(HeaderName::from_static("client-request-id"), id.clone()),
        None => reply,
    }
}
