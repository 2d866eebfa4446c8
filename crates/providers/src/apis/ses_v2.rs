//! The API of Amazon SES, version 2.

use std::sync::Arc;

use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::routing::MethodFilter;
use restante_http_core::api::Api;
use restante_http_core::server::SigningKey;
use serde::Deserialize;
use serde_json::{Value, json};

use super::aws::{self, AwsError, Recipients};
use super::sigv4;
use crate::email::{self, Email, Parts, Sent};
use crate::failure::{Failure, FailureKind};
use crate::files::{File, attachments};
use crate::incoming::Incoming;
use crate::pairs::{Pair, override_values, pairs, tags};
use crate::person::Person;
use crate::provider::{Action, Provider, Routes};
use crate::reply::Reply;
use crate::templates::{Template, TemplateSource, TemplateStore, Templates};
use crate::text_budget::TextBudget;
use crate::values::{List, Text};

struct SesV2;

impl Provider for SesV2 {
    const NAME: &'static str = aws::NAME;
    const IS_KEY_SIGNING: bool = true;

    fn key(headers: &HeaderMap) -> Option<String> {
        sigv4::access_key_id(headers)
    }

    fn verify(incoming: &Incoming, keys: &[SigningKey]) -> Result<Option<String>, Failure> {
        sigv4::verify(incoming, keys)
    }

    fn failure(failure: &Failure) -> Reply {
        let AwsError { status, kind, .. } = failure.into();
        respond(status, &json!({"message": failure.message})).with(HeaderName::from_static("x-amzn-errortype"), kind)
    }
}

/// Returns the API.
pub(crate) fn api(templates: &Arc<TemplateStore>) -> Api {
    const TEMPLATE: &str = "/v2/email/templates/{id}";
    const IDENTITY: &str = "/v2/email/identities/{id}";
    const CONFIGURATION: &str = "/v2/email/configuration-sets/{id}";
    const SUPPRESSED: &str = "/v2/email/suppression/addresses";
    Routes::new::<SesV2>(templates)
        .post("/v2/email/outbound-emails", send)
        .post("/v2/email/outbound-bulk-emails", send_bulk)
        .get("/v2/email/templates", list_templates)
        .post("/v2/email/templates", |incoming, templates| store_template(incoming.json()?, templates, true))
        .get(TEMPLATE, get_template)
        .on(MethodFilter::PUT, TEMPLATE, update_template)
        .on(MethodFilter::DELETE, TEMPLATE, delete_template)
        .post("/v2/email/templates/{id}/render", render_template)
        .get("/v2/email/account", |_, _| Ok(ok(&account())))
        .get("/v2/email/identities", |_, _| Ok(ok(&json!({"EmailIdentities": []}))))
        .post("/v2/email/identities", create_identity)
        .get(IDENTITY, |incoming, _| Ok(ok(&identity(incoming.path_value("id")))))
        .on(MethodFilter::DELETE, IDENTITY, done)
        .on(MethodFilter::PUT, &format!("{IDENTITY}/dkim"), done)
        .on(MethodFilter::PUT, &format!("{IDENTITY}/mail-from"), done)
        .get("/v2/email/configuration-sets", |_, _| Ok(ok(&json!({"ConfigurationSets": []}))))
        .post("/v2/email/configuration-sets", done)
        .get(CONFIGURATION, |incoming, _| Ok(ok(&json!({"ConfigurationSetName": incoming.path_value("id")}))))
        .on(MethodFilter::DELETE, CONFIGURATION, done)
        .post(&format!("{CONFIGURATION}/event-destinations"), done)
        .get(SUPPRESSED, |_, _| Ok(ok(&json!({"SuppressedDestinationSummaries": []}))))
        .on(MethodFilter::PUT, SUPPRESSED, done)
        .get(&format!("{SUPPRESSED}/{{id}}"), |_, _| {
            Err(Failure::new(FailureKind::NotFound, "The email address is not on the suppression list."))
        })
        .on(MethodFilter::DELETE, &format!("{SUPPRESSED}/{{id}}"), done)
        .api()
}

/// Returns a response with the id of the request.
fn respond(status: StatusCode, body: &Value) -> Reply {
    Reply::json(status, body).with(HeaderName::from_static(aws::REQUEST_ID_FIELD), aws::request_id())
}

fn ok(body: &Value) -> Action {
    Action::Reply(respond(StatusCode::OK, body))
}

/// Responds to requests for changes that have no effect.
fn done(_: &Incoming, _: &Templates<'_>) -> Result<Action, Failure> {
    Ok(ok(&json!({})))
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct SendRequest<'a> {
    from_email_address: Option<String>,
    #[serde(default)]
    destination: Option<Destination>,
    #[serde(default)]
    reply_to_addresses: List<String>,
    #[serde(borrow)]
    content: Content<'a>,
    #[serde(default)]
    email_tags: List<Pair>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Destination {
    to_addresses: List<String>,
    cc_addresses: List<String>,
    bcc_addresses: List<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Content<'a> {
    #[serde(borrow)]
    simple: Option<Simple<'a>>,
    raw: Option<Raw<'a>>,
    template: Option<TemplateContent<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Simple<'a> {
    subject: Data,
    body: Body,
    #[serde(default)]
    headers: List<Pair>,
    #[serde(borrow, default)]
    attachments: List<File<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Body {
    text: Option<Data>,
    html: Option<Data>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Data {
    data: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Raw<'a> {
    #[serde(borrow)]
    data: Text<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct TemplateContent<'a> {
    template_name: Option<String>,
    template_arn: Option<String>,
    template_content: Option<Texts>,
    template_data: Option<String>,
    #[serde(default)]
    headers: List<Pair>,
    #[serde(borrow, default)]
    attachments: List<File<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Texts {
    subject: Option<String>,
    text: Option<String>,
    html: Option<String>,
}

fn send(incoming: &Incoming, _: &Templates<'_>) -> Result<Action, Failure> {
    let SendRequest { from_email_address, destination, reply_to_addresses, content, email_tags } = incoming.json()?;
    let recipients = recipients(destination)?;
    let from = from_email_address.map(|from| Person::parse("FromEmailAddress", &from)).transpose()?;
    let email = match content {
        Content { raw: Some(Raw { data }), .. } => aws::raw_email(&data.0, from, recipients)?,
        Content { simple: Some(simple), .. } => simple_email(simple, from, recipients)?,
        Content { template: Some(mut template), .. } => {
            let (headers, files) = (
                std::mem::take(&mut template.headers),
                attachments("Attachments", "RawContent", &template.attachments)?,
            );
            let source =
                source(template.template_name.as_deref(), template.template_arn.as_deref(), template.template_content)?;
            let template = aws::template_use(&source, template.template_data.as_deref(), &incoming.budget)?;
            let content = email::Content::Template(template, Parts { attachments: files, ..Parts::default() });
            let from = Some(from.ok_or_else(|| Failure::missing("FromEmailAddress"))?);
            aws::with_recipients(Email { from, content, headers: pairs(headers), ..Email::default() }, recipients)?
        }
        _ => return Err(Failure::missing("Content")),
    };
    let tags = [email.tags, tags(&email_tags.0)].concat();
    let email = Email { reply_to: reply_to(&reply_to_addresses)?, tags, ..email };
    let reply = |_: &Incoming, sent: &[Sent]| respond(StatusCode::OK, &json!({"MessageId": aws::message_id(&sent[0])}));
    Ok(Action::Send(vec![email], reply))
}

fn simple_email(simple: Simple<'_>, from: Option<Person>, recipients: Recipients) -> Result<Email, Failure> {
    let Simple { subject, body: Body { text, html }, headers, attachments: files } = simple;
    if text.is_none() && html.is_none() {
        return Err(Failure::missing("Content.Simple.Body"));
    }
    let (text, html) = (text.map(|text| text.data), html.map(|html| html.data));
    let parts =
        Parts { subject: subject.data, text, html, attachments: attachments("Attachments", "RawContent", &files)? };
    let from = Some(from.ok_or_else(|| Failure::missing("FromEmailAddress"))?);
    let content = email::Content::Parts(parts);
    aws::with_recipients(Email { from, content, headers: pairs(headers), ..Email::default() }, recipients)
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct BulkRequest<'a> {
    from_email_address: Option<String>,
    #[serde(default)]
    reply_to_addresses: List<String>,
    #[serde(default)]
    default_email_tags: List<Pair>,
    #[serde(borrow)]
    default_content: Content<'a>,
    bulk_email_entries: List<BulkEntry>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct BulkEntry {
    destination: Option<Destination>,
    #[serde(default)]
    replacement_tags: List<Pair>,
    replacement_email_content: Option<Replacement>,
    #[serde(default)]
    replacement_headers: List<Pair>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Replacement {
    replacement_template: Option<ReplacementTemplate>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ReplacementTemplate {
    replacement_template_data: Option<String>,
}

/// What all messages of a request have in common.
struct Common {
    email: Email,
    source: TemplateSource,
    data: String,
    headers: Vec<(String, String)>,
    tags: Vec<Pair>,
    parts: Parts,
}

fn send_bulk(incoming: &Incoming, _: &Templates<'_>) -> Result<Action, Failure> {
    let request: BulkRequest<'_> = incoming.json()?;
    let from = request.from_email_address.ok_or_else(|| Failure::missing("FromEmailAddress"))?;
    let template = request.default_content.template.ok_or_else(|| Failure::missing("DefaultContent.Template"))?;
    let parts =
        Parts { attachments: attachments("Attachments", "RawContent", &template.attachments)?, ..Parts::default() };
    let common = Common {
        email: Email {
            from: Some(Person::parse("FromEmailAddress", &from)?),
            reply_to: reply_to(&request.reply_to_addresses)?,
            ..Email::default()
        },
        source: source(template.template_name.as_deref(), template.template_arn.as_deref(), template.template_content)?,
        data: template.template_data.unwrap_or_default(),
        headers: pairs(template.headers),
        tags: request.default_email_tags.0,
        parts,
    };
    let entries = request.bulk_email_entries.0;
    aws::check_count(entries.len())?;
    let budget = &incoming.budget;
    let mut emails = Vec::with_capacity(entries.len());
    for entry in entries {
        emails.push(match bulk_email(&common, entry, budget) {
            Ok(email) => Ok(budget.add(email)?),
            Err(failure) => Err(failure),
        });
    }
    let reply = |_: &Incoming, results: &[Result<Sent, Failure>]| {
        let result = |result: &Result<Sent, Failure>| match result {
            Ok(sent) => json!({"Status": "SUCCESS", "MessageId": aws::message_id(sent)}),
            Err(failure) => json!({"Status": AwsError::from(failure).entry_kind, "Error": failure.message}),
        };
        respond(StatusCode::OK, &json!({"BulkEmailEntryResults": results.iter().map(result).collect::<Vec<_>>()}))
    };
    Ok(Action::SendEach(emails, reply))
}

fn bulk_email(common: &Common, entry: BulkEntry, budget: &TextBudget) -> Result<Email, Failure> {
    let BulkEntry { destination, replacement_tags, replacement_email_content, replacement_headers } = entry;
    let replacement = replacement_email_content.and_then(|content| content.replacement_template);
    let data = replacement.and_then(|template| template.replacement_template_data).unwrap_or_default();
    let template = aws::template_use(&common.source, [common.data.as_str(), data.as_str()], budget)?;
    let mut headers = common.headers.clone();
    override_values(&mut headers, pairs(replacement_headers));
    let email = Email {
        content: email::Content::Template(template, common.parts.clone()),
        headers,
        tags: tags(common.tags.iter().chain(&replacement_tags.0)),
        ..common.email.clone()
    };
    aws::with_recipients(email, recipients(destination)?)
}

fn recipients(destination: Option<Destination>) -> Result<Recipients, Failure> {
    let Destination { to_addresses, cc_addresses, bcc_addresses } = destination.unwrap_or_default();
    Recipients::parse(&to_addresses.0, &cc_addresses.0, &bcc_addresses.0)
}

fn reply_to(addresses: &List<String>) -> Result<Vec<Person>, Failure> {
    Person::parse_all("ReplyToAddresses", &addresses.0)
}

fn source(name: Option<&str>, arn: Option<&str>, texts: Option<Texts>) -> Result<TemplateSource, Failure> {
    match texts {
        Some(texts) => Ok(TemplateSource::Inline(template(String::new(), texts))),
        None => Ok(TemplateSource::Stored(aws::template_name(name, arn)?)),
    }
}

fn template(id: String, Texts { subject, text, html }: Texts) -> Template {
    Template { id, subject: subject.unwrap_or_default(), text, html, ..Template::default() }
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct TemplateRequest {
    #[serde(default)]
    template_name: String,
    template_content: Option<Texts>,
}

fn store_template(request: TemplateRequest, templates: &Templates<'_>, is_new: bool) -> Result<Action, Failure> {
    let texts = request.template_content.ok_or_else(|| Failure::missing("TemplateContent"))?;
    aws::store_template(templates, template(request.template_name, texts), is_new)?;
    Ok(ok(&json!({})))
}

fn update_template(incoming: &Incoming, templates: &Templates<'_>) -> Result<Action, Failure> {
    let template_name = incoming.path_value("id").to_owned();
    store_template(TemplateRequest { template_name, ..incoming.json()? }, templates, false)
}

fn list_templates(_: &Incoming, templates: &Templates<'_>) -> Result<Action, Failure> {
    let names: Vec<_> = templates.list().iter().map(|template| json!({"TemplateName": template.id})).collect();
    Ok(ok(&json!({"TemplatesMetadata": names})))
}

fn get_template(incoming: &Incoming, templates: &Templates<'_>) -> Result<Action, Failure> {
    let template = aws::find_template(templates, incoming.path_value("id"))?;
    let content = json!({"Subject": template.subject, "Text": template.text, "Html": template.html});
    Ok(ok(&json!({"TemplateName": template.id, "TemplateContent": content})))
}

fn delete_template(incoming: &Incoming, templates: &Templates<'_>) -> Result<Action, Failure> {
    let template = aws::find_template(templates, incoming.path_value("id"))?;
    templates.remove(&template.id);
    Ok(ok(&json!({})))
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct RenderRequest {
    template_data: String,
}

/// Responds with the message that a template and its data make.
fn render_template(incoming: &Incoming, templates: &Templates<'_>) -> Result<Action, Failure> {
    let template = aws::find_template(templates, incoming.path_value("id"))?;
    let RenderRequest { template_data } = incoming.json()?;
    Ok(ok(&json!({"RenderedTemplate": aws::render(templates, &template, &template_data, &incoming.budget)?})))
}

fn account() -> Value {
    json!({
        "DedicatedIpAutoWarmupEnabled": false,
        "EnforcementStatus": "HEALTHY",
        "ProductionAccessEnabled": true,
        "SendQuota": {"Max24HourSend": 50000.0, "MaxSendRate": 100.0, "SentLast24Hours": 0.0},
        "SendingEnabled": true,
        "SuppressionAttributes": {"SuppressedReasons": []},
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct IdentityRequest {
    email_identity: String,
}

fn create_identity(incoming: &Incoming, _: &Templates<'_>) -> Result<Action, Failure> {
    let IdentityRequest { email_identity } = incoming.json()?;
    if email_identity.is_empty() {
        return Err(Failure::missing("EmailIdentity"));
    }
    Ok(ok(&identity(&email_identity)))
}

/// Describes an identity. Each one is verified.
fn identity(name: &str) -> Value {
    json!({
        "IdentityType": if name.contains('@') { "EMAIL_ADDRESS" } else { "DOMAIN" },
        "VerifiedForSendingStatus": true,
        "VerificationStatus": "SUCCESS",
        "FeedbackForwardingStatus": true,
        "DkimAttributes": {"SigningEnabled": true, "Status": "SUCCESS", "Tokens": []},
    })
}
