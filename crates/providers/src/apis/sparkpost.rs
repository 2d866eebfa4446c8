//! The API of SparkPost. The recipients with the same `header_to`, data, metadata and tags get one message. To has the addresses of
//! `header_to` that are recipients of the message, Cc has those of the field Cc, and the other recipients are in neither.
//! Templates are not stored.

use std::collections::HashMap;
use std::sync::Arc;

use axum::http::{HeaderMap, StatusCode, header};
use restante_http_core::api::Api;
use restante_mail::compose::Attachment;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use crate::email::{Content, Email, Parts, Sent};
use crate::failure::{Failure, FailureKind};
use crate::files::{self, File};
use crate::incoming::Incoming;
use crate::person::Person;
use crate::provider::{Action, Provider, Routes, header_key};
use crate::raw;
use crate::reply::Reply;
use crate::templates::{TemplateSource, TemplateStore, TemplateUse, Templates};
use crate::text_budget::TextBudget;
use crate::values::{List, Text, Texts};
use crate::variables::{Variables, escape_html};

struct SparkPost;

impl Provider for SparkPost {
    const NAME: &'static str = "sparkpost";

    /// The whole field is the key. A token can also have a scheme.
    fn key(headers: &HeaderMap) -> Option<String> {
        let key = header_key(headers, header::AUTHORIZATION.as_str())?;
        Some(key.rsplit(' ').next().unwrap_or_default().to_owned())
    }

    fn failure(failure: &Failure) -> Reply {
        let (status, message, code) = match failure.kind {
            FailureKind::Malformed => (StatusCode::BAD_REQUEST, "invalid data format/type", "1300"),
            FailureKind::Missing => (StatusCode::UNPROCESSABLE_ENTITY, "required field is missing", "1400"),
            FailureKind::Invalid => (StatusCode::UNPROCESSABLE_ENTITY, "invalid data format/type", "1300"),
            FailureKind::Unauthorized => {
                return Reply::json(StatusCode::UNAUTHORIZED, &json!({"errors": [{"message": "Unauthorized."}]}));
            }
            FailureKind::Forbidden => (StatusCode::FORBIDDEN, "Forbidden.", "1901"),
            FailureKind::NotFound => (StatusCode::NOT_FOUND, "resource not found", "1600"),
            FailureKind::RateLimited => (StatusCode::TOO_MANY_REQUESTS, "Too many requests", "1900"),
            kind => (kind.status(), "Message generation failed", "1902"),
        };
        let error = json!({"message": message, "description": failure.message, "code": code});
        Reply::json(status, &json!({"errors": [error]}))
    }
}

/// Returns the API.
pub(crate) fn api(templates: &Arc<TemplateStore>) -> Api {
    Routes::new::<SparkPost>(templates)
        .post("/api/v1/transmissions", send)
        .get("/api/v1/sending-domains", |_, _| Action::json(&json!({"results": []})))
        .get("/api/v1/account", |_, _| {
            Action::json(&json!({"results": {"company_name": "Restante", "status": "active"}}))
        })
        .api()
}

#[derive(Deserialize)]
struct Transmission<'a> {
    #[serde(borrow, default)]
    recipients: List<Recipient<'a>>,
    #[serde(borrow, default)]
    content: Inline<'a>,
    #[serde(borrow)]
    substitution_data: Option<&'a RawValue>,
    campaign_id: Option<String>,
    #[serde(default)]
    metadata: Texts,
    #[serde(default)]
    options: Options,
}

#[derive(Deserialize)]
struct Recipient<'a> {
    address: Mailbox,
    #[serde(borrow)]
    substitution_data: Option<&'a RawValue>,
    #[serde(borrow)]
    metadata: Option<&'a RawValue>,
    #[serde(default)]
    tags: List<String>,
}

/// An address with a name, or a text with both.
#[derive(Deserialize)]
#[serde(untagged)]
enum Mailbox {
    Text(String),
    Members { email: Option<String>, name: Option<String>, header_to: Option<String> },
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Inline<'a> {
    from: Option<Mailbox>,
    subject: Option<String>,
    text: Option<String>,
    html: Option<String>,
    reply_to: Option<String>,
    headers: Texts,
    #[serde(borrow)]
    attachments: List<File<'a>>,
    #[serde(borrow)]
    inline_images: List<File<'a>>,
    template_id: Option<String>,
    #[serde(borrow)]
    email_rfc822: Option<Text<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Options {
    start_time: Option<String>,
}

/// The recipients of one message.
struct Group<'a> {
    /// The addresses of `header_to`, or of the first recipient.
    shown: Vec<Person>,
    recipients: Vec<Person>,
    data: Option<&'a RawValue>,
    metadata: Option<&'a RawValue>,
    tags: Vec<String>,
}

fn send(incoming: &Incoming, _: &Templates<'_>) -> Result<Action, Failure> {
    let request: Transmission<'_> = incoming.json()?;
    let content = &request.content;
    if content.email_rfc822.is_none() && content.template_id.is_none() {
        let missing = [
            ("content.from", content.from.is_none()),
            ("content.subject", content.subject.is_none()),
            ("content.text or content.html", content.text.is_none() && content.html.is_none()),
        ];
        if let Some((field, _)) = missing.into_iter().find(|(_, is_missing)| *is_missing) {
            return Err(Failure::missing(field));
        }
    }
    if request.recipients.0.is_empty() {
        return Err(Failure::missing("recipients"));
    }
    let mut files = files::attachments("attachments", "data", &content.attachments)?;
    files.extend(files::images("inline_images", "data", &content.inline_images)?);
    let budget = &incoming.budget;
    let groups = groups(&request)?;
    let emails = groups.into_iter().map(|group| {
        let email = email(&request, group, &files, budget)?;
        budget.add(email)
    });
    let emails = emails.collect::<Result<_, _>>()?;
    let reply = |_: &Incoming, sent: &[Sent]| {
        let accepted: usize = sent.iter().map(|sent| sent.recipients().count()).sum();
        let id = sent[0].id.number().to_string();
        let results = json!({"total_rejected_recipients": 0, "total_accepted_recipients": accepted, "id": id});
        Reply::json(StatusCode::OK, &json!({"results": results}))
    };
    Ok(Action::Send(emails, reply))
}

/// Returns the recipients of each message. A recipient without data, metadata and tags belongs to the first message with its `header_to`.
fn groups<'a>(request: &'a Transmission<'a>) -> Result<Vec<Group<'a>>, Failure> {
    let mut groups: Vec<Group<'a>> = Vec::new();
    let mut known = HashMap::new();
    for (index, recipient) in request.recipients.0.iter().enumerate() {
        let field = format!("recipients[{index}].address");
        let person = person(&field, &recipient.address)?;
        let shown = match &recipient.address {
            Mailbox::Members { header_to: Some(text), .. } => Person::parse_list(&format!("{field}.header_to"), text)?,
            _ => vec![person.clone()],
        };
        let addresses = shown.iter().map(|person| person.address.text().to_lowercase()).collect::<Vec<_>>().join(",");
        let [data, metadata] = [recipient.substitution_data, recipient.metadata];
        let values = [data, metadata].map(|value| value.map_or("", RawValue::get));
        let key = (addresses.clone(), values, &recipient.tags.0[..]);
        let group = known.get(&key).copied().unwrap_or(groups.len());
        known.entry(key).or_insert(group);
        known.entry((addresses, [""; 2], &[])).or_insert(group);
        if group == groups.len() {
            groups.push(Group { shown, recipients: Vec::new(), data, metadata, tags: recipient.tags.0.clone() });
        }
        groups[group].recipients.push(person);
    }
    Ok(groups)
}

fn email(
    request: &Transmission<'_>,
    group: Group<'_>,
    files: &[Attachment],
    budget: &TextBudget,
) -> Result<Email, Failure> {
    let content = &request.content;
    let data = [request.substitution_data, group.data].into_iter().flatten().map(RawValue::get);
    let data = budget.merge_objects("substitution_data", data)?;
    budget.take(data.len())?;
    let variables = Variables::new(serde_json::from_str(&data).map_err(Failure::malformed)?);
    let replace = |text: &str| replace(&variables, budget, text, str::to_owned);
    let headers = content.headers.0.iter().map(|(name, value)| Ok((name.clone(), replace(value)?)));
    let mut headers: Vec<_> = headers.collect::<Result<_, Failure>>()?;
    let cc = Person::take_field("Cc", &mut headers)?;
    let own_metadata: Texts = match group.metadata {
        Some(metadata) => serde_json::from_str(metadata.get()).map_err(Failure::malformed)?,
        None => Texts::default(),
    };
    let metadata = [&request.metadata, &own_metadata].into_iter().flat_map(|Texts(members)| members.clone());
    let from = match &content.from {
        None => Person::unknown_sender()?,
        Some(Mailbox::Text(text)) => Person::parse("content.from", &replace(text)?)?,
        Some(Mailbox::Members { email, name, .. }) => {
            let [email, name] = [email, name].map(|text| replace(text.as_deref().unwrap_or_default()));
            Person::new("content.from.email", &name?, &email?)?
        }
    };
    let mut email = Email {
        from: Some(from),
        reply_to: Person::parse_list("content.reply_to", &replace(content.reply_to.as_deref().unwrap_or_default())?)?,
        headers,
        tags: request.campaign_id.iter().cloned().chain(group.tags).collect(),
        metadata: metadata.collect(),
        scheduled: request.options.start_time.clone(),
        ..Email::default()
    };
    if let Some(Text(message)) = &content.email_rfc822 {
        let message = replace(message)?;
        let Email { from, content, .. } = raw::from_message(message.into())?;
        return Ok(Email { to: group.recipients, from, content, headers: Vec::new(), reply_to: Vec::new(), ..email });
    }
    for person in group.recipients {
        let is_same = |other: &&Person| other.address.text().eq_ignore_ascii_case(&person.address.text());
        if let Some(shown) = group.shown.iter().find(is_same) {
            email.to.push(shown.clone());
        } else if let Some(shown) = cc.iter().find(is_same) {
            email.cc.push(shown.clone());
        } else {
            email.bcc.push(person);
        }
    }
    let html = |text: &String| self::replace(&variables, budget, text, escape_html);
    let parts = Parts {
        subject: replace(content.subject.as_deref().unwrap_or_default())?,
        text: content.text.as_deref().map(replace).transpose()?,
        html: content.html.as_ref().map(html).transpose()?,
        attachments: files.to_vec(),
    };
    email.content = match content.template_id.clone() {
        Some(id) => Content::Template(TemplateUse { source: TemplateSource::Stored(id), data }, parts),
        None => Content::Parts(parts),
    };
    Ok(email)
}

/// Returns a text with its variables replaced. Values in three braces are not escaped.
fn replace(
    variables: &Variables,
    budget: &TextBudget,
    text: &str,
    escape: fn(&str) -> String,
) -> Result<String, Failure> {
    let text = budget.replace(text, ["{{{", "}}}"], |name| variables.get(name).map(str::to_owned))?;
    budget.replace(&text, ["{{", "}}"], |name| variables.get(name).map(escape))
}

fn person(field: &str, mailbox: &Mailbox) -> Result<Person, Failure> {
    match mailbox {
        Mailbox::Text(text) => Person::parse(field, text),
        Mailbox::Members { email, name, .. } => {
            let [email, name] = [email, name].map(|text| text.as_deref().unwrap_or_default());
            Person::new(&format!("{field}.email"), name, email)
        }
    }
}
