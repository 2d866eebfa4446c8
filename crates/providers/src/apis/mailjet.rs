//! The API of Mailjet, version 3.1. The token is the secret key, which is the password of Basic authentication.

use std::sync::Arc;

use axum::http::{HeaderMap, StatusCode, header};
use restante_http_core::api::Api;
use restante_mail::compose::Attachment;
use restante_mail::message::MessageId;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::email::{Content, Email, Parts, Sent, uuid};
use crate::failure::{Failure, FailureKind};
use crate::files::{self, File};
use crate::incoming::Incoming;
use crate::person::{Contact, Person};
use crate::provider::{Action, Provider, Routes, basic, bearer};
use crate::reply::Reply;
use crate::stored::StoredEmail;
use crate::templates::{TemplateSource, TemplateStore, TemplateUse, Templates};
use crate::text_budget::TextBudget;
use crate::values::{List, Texts};
use crate::variables::Variables;

struct Mailjet;

impl Provider for Mailjet {
    const NAME: &'static str = "mailjet";

    fn key(headers: &HeaderMap) -> Option<String> {
        basic(headers).map(|(_, secret)| secret).or_else(|| bearer(headers))
    }

    fn failure(failure: &Failure) -> Reply {
        Reply::json(failure.kind.status(), &error(failure))
    }
}

/// Returns the API.
pub(crate) fn api(templates: &Arc<TemplateStore>) -> Api {
    let empty = |_: &Incoming, _: &Templates<'_>| Action::json(&json!({"Count": 0, "Data": [], "Total": 0}));
    Routes::new::<Mailjet>(templates)
        .post("/v3.1/send", send)
        .get("/v3/REST/message/{id}", read)
        .get("/v3/REST/sender", empty)
        .get("/v3/REST/user", empty)
        .get("/v3/REST/apikey", empty)
        .api()
}

/// Returns the error of a request or of a message.
fn error(failure: &Failure) -> Value {
    let code = match failure.kind {
        FailureKind::Malformed => "mj-0002",
        FailureKind::Missing => "mj-0003",
        FailureKind::Invalid | FailureKind::Exists => "mj-0004",
        FailureKind::Unauthorized | FailureKind::Forbidden => "mj-0015",
        FailureKind::NotFound => "mj-0010",
        _ => "mj-0001",
    };
    json!({
        "ErrorIdentifier": "00000000-0000-0000-0000-000000000000",
        "ErrorCode": code,
        "StatusCode": failure.kind.status().as_u16(),
        "ErrorMessage": failure.message,
        "ErrorRelatedTo": failure.field.iter().collect::<Vec<_>>(),
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct SendRequest<'a> {
    #[serde(borrow, default)]
    messages: List<Message<'a>>,
    /// The values of members that messages do not have.
    #[serde(borrow, default)]
    globals: Message<'a>,
    #[serde(default)]
    sandbox_mode: bool,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Message<'a> {
    from: Option<Contact>,
    sender: Option<Contact>,
    to: Option<List<Contact>>,
    cc: Option<List<Contact>>,
    bcc: Option<List<Contact>>,
    reply_to: Option<Contact>,
    subject: Option<String>,
    text_part: Option<String>,
    #[serde(rename = "HTMLPart")]
    html_part: Option<String>,
    #[serde(borrow)]
    attachments: Option<List<File<'a>>>,
    #[serde(borrow)]
    inlined_attachments: Option<List<File<'a>>>,
    headers: Option<Texts>,
    #[serde(rename = "CustomID")]
    custom_id: Option<String>,
    event_payload: Option<String>,
    custom_campaign: Option<String>,
    #[serde(rename = "TemplateID", borrow)]
    template_id: Option<&'a RawValue>,
    template_language: Option<bool>,
    #[serde(borrow)]
    variables: Option<&'a RawValue>,
}

fn send(incoming: &Incoming, _: &Templates<'_>) -> Result<Action, Failure> {
    let SendRequest { messages: List(messages), globals, sandbox_mode } = incoming.json()?;
    if messages.is_empty() {
        return Err(Failure::missing("Messages"));
    }
    let global_files = files(&globals)?.unwrap_or_default();
    let budget = &incoming.budget;
    let emails = messages.iter().map(|message| {
        let files = files(message)?.unwrap_or_else(|| global_files.clone());
        let email = email(message, &globals, files, budget)?;
        budget.add(email)
    });
    let emails: Vec<Result<Email, Failure>> = emails.collect();
    if sandbox_mode {
        let no_id = MessageId::from(0);
        let sent = |Email { to, cc, bcc, .. }| Sent { id: no_id, message_id: String::new(), to, cc, bcc };
        let results: Vec<_> = emails.into_iter().map(|email| email.map(sent)).collect();
        return Ok(Action::Reply(results_reply(incoming, &results)));
    }
    Ok(Action::SendEach(emails, results_reply))
}

/// Returns the files of a message, or `None` if it has no list of them.
fn files(message: &Message<'_>) -> Result<Option<Vec<Attachment>>, Failure> {
    let Message { attachments, inlined_attachments, .. } = message;
    if attachments.is_none() && inlined_attachments.is_none() {
        return Ok(None);
    }
    let mut files = Vec::new();
    if let Some(list) = attachments {
        files = files::attachments("Attachments", "Base64Content", list)?;
        for file in &mut files {
            file.content_id = None;
        }
    }
    if let Some(list) = inlined_attachments {
        files.extend(files::attachments("InlinedAttachments", "Base64Content", list)?);
    }
    Ok(Some(files))
}

fn email(
    message: &Message<'_>,
    globals: &Message<'_>,
    attachments: Vec<Attachment>,
    budget: &TextBudget,
) -> Result<Email, Failure> {
    macro_rules! member {
        ($name:ident) => {
            message.$name.as_ref().or(globals.$name.as_ref())
        };
    }
    let data = [globals.variables, message.variables].into_iter().flatten().map(RawValue::get);
    let data = budget.merge_objects("Variables", data)?;
    budget.take(data.len())?;
    let variables = Variables::new(serde_json::from_str(&data).map_err(Failure::malformed)?);
    let is_template = member!(template_language) == Some(&true);
    let render = |text: Option<&String>| match text {
        Some(text) if is_template => budget.replace(text, ["{{", "}}"], |name| value(&variables, name)).map(Some),
        text => Ok(text.cloned()),
    };
    let parts = Parts {
        subject: render(member!(subject))?.unwrap_or_default(),
        text: render(member!(text_part))?,
        html: render(member!(html_part))?,
        attachments,
    };
    let template = member!(template_id);
    if template.is_none() && parts.text.is_none() && parts.html.is_none() {
        return Err(Failure {
            message: "At least \"HTMLPart\", \"TextPart\" or \"TemplateID\" must be provided.".to_owned(),
            ..Failure::missing("HTMLPart")
        });
    }
    let content = match template {
        Some(id) => {
            let source = TemplateSource::Stored(id.get().trim_matches('"').to_owned());
            Content::Template(TemplateUse { source, data }, parts)
        }
        None => Content::Parts(parts),
    };
    let from = match member!(from) {
        Some(from) => from.person("From.Email")?,
        None if template.is_some() => Person::unknown_sender()?,
        None => return Err(Failure::missing("From")),
    };
    let to = people("To", member!(to))?;
    if to.is_empty() {
        return Err(Failure::missing("To"));
    }
    let mut headers = member!(headers).map(|Texts(headers)| headers.clone()).unwrap_or_default();
    if let Some(sender) = member!(sender) {
        headers.push(("Sender".to_owned(), sender.person("Sender.Email")?.quoted()));
    }
    let reply_to = member!(reply_to).map(|reply_to| reply_to.person("ReplyTo.Email")).transpose()?;
    let payload_members = |payload: &String| match serde_json::from_str(payload) {
        Ok(Texts(members)) => members,
        Err(_) => vec![("EventPayload".to_owned(), payload.clone())],
    };
    let mut metadata = member!(event_payload).map(payload_members).unwrap_or_default();
    metadata.extend(member!(custom_id).map(|id| ("CustomID".to_owned(), id.clone())));
    Ok(Email {
        from: Some(from),
        to,
        cc: people("Cc", member!(cc))?,
        bcc: people("Bcc", member!(bcc))?,
        reply_to: reply_to.into_iter().collect(),
        content,
        headers,
        tags: member!(custom_campaign).cloned().into_iter().collect(),
        metadata,
        scheduled: None,
    })
}

fn people(field: &str, list: Option<&List<Contact>>) -> Result<Vec<Person>, Failure> {
    Contact::people(field, "Email", list.into_iter().flat_map(|List(contacts)| contacts))
}

/// Returns the value of `var:name` or `var:name:"default"`.
fn value(variables: &Variables, expression: &str) -> Option<String> {
    let name = expression.strip_prefix("var:")?;
    let (name, default) = name.split_once(':').map_or((name, None), |(name, default)| (name, Some(default)));
    let default = default.map(|text| text.trim_matches('"'));
    variables.get(name.trim()).or(default).map(str::to_owned)
}

/// What the response repeats of a request.
#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Echo {
    messages: List<EchoMessage>,
}

#[derive(Deserialize)]
struct EchoMessage {
    #[serde(rename = "CustomID")]
    custom_id: Option<String>,
}

fn results_reply(incoming: &Incoming, results: &[Result<Sent, Failure>]) -> Reply {
    let host = incoming.header(header::HOST.as_str()).unwrap_or("api.mailjet.com");
    let Echo { messages: List(requests) } = incoming.json().unwrap_or_default();
    let custom_ids = requests.into_iter().map(|message| message.custom_id).chain(std::iter::repeat(None));
    let messages = results.iter().zip(custom_ids).map(|(result, custom_id)| match result {
        Err(failure) => json!({"Status": "error", "Errors": [error(failure)]}),
        Ok(sent) => {
            let entries = |people: &[Person]| people.iter().map(|person| entry(host, sent, person)).collect::<Vec<_>>();
            let [to, cc, bcc] = [&sent.to, &sent.cc, &sent.bcc].map(|people| entries(people));
            json!({"Status": "success", "CustomID": custom_id.unwrap_or_default(), "To": to, "Cc": cc, "Bcc": bcc})
        }
    });
    let messages: Vec<_> = messages.collect();
    let status = if results.iter().all(Result::is_ok) { StatusCode::OK } else { StatusCode::BAD_REQUEST };
    Reply::json(status, &json!({"Messages": messages}))
}

fn entry(host: &str, sent: &Sent, person: &Person) -> Value {
    let id = sent.id.number();
    json!({
        "Email": person.address.text(),
        "MessageUUID": sent.uuid(),
        "MessageID": id,
        "MessageHref": format!("https://{host}/v3/REST/message/{id}"),
    })
}

fn read(incoming: &Incoming, _: &Templates<'_>) -> Result<Action, Failure> {
    let id: u64 =
        incoming.path_value("id").parse().map_err(|_| Failure::new(FailureKind::NotFound, "Object not found"))?;
    let reply = |email: &StoredEmail| {
        let data = json!({
            "ID": email.id.number(),
            "UUID": uuid(email.id),
            "ArrivedAt": email.received.to_string(),
            "Status": "sent",
            "Subject": email.header.subject,
        });
        Reply::json(StatusCode::OK, &json!({"Count": 1, "Data": [data], "Total": 1}))
    };
    Ok(Action::Read(id.into(), reply))
}
