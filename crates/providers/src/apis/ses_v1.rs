//! The API of Amazon SES, version 1: forms as requests, and XML as responses.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::http::{HeaderMap, HeaderName, StatusCode};
use restante_html::push_escaped;
use restante_http_core::api::Api;
use restante_http_core::server::SigningKey;

use super::aws::{self, AwsError, Recipients};
use super::sigv4;
use crate::email::{Content, Email, Parts, Sent};
use crate::failure::Failure;
use crate::incoming::{Incoming, MAX_PAIRS};
use crate::person::Person;
use crate::provider::{Action, Provider, Routes};
use crate::reply::Reply;
use crate::templates::{Template, TemplateSource, TemplateStore, Templates};
use crate::text_budget::TextBudget;

const NAMESPACE: &str = "http://ses.amazonaws.com/doc/2010-12-01/";
/// The path on listeners with pages. On others there is also that of SES, which is the root.
const PATH: &str = "/ses";
/// The maximum number of characters of an unknown action that are shown.
const MAX_SHOWN_CHARS: usize = 100;
/// Changes that have no effect.
const ACTIONS_WITHOUT_EFFECT: [&str; 10] = [
    "VerifyEmailIdentity",
    "VerifyEmailAddress",
    "DeleteIdentity",
    "SetIdentityFeedbackForwardingEnabled",
    "SetIdentityNotificationTopic",
    "CreateConfigurationSet",
    "CreateConfigurationSetEventDestination",
    "DeleteConfigurationSet",
    "SetIdentityMailFromDomain",
    "UpdateAccountSendingEnabled",
];

struct SesV1;

impl Provider for SesV1 {
    const NAME: &'static str = aws::NAME;
    const IS_KEY_SIGNING: bool = true;

    fn key(headers: &HeaderMap) -> Option<String> {
        sigv4::access_key_id(headers)
    }

    fn verify(incoming: &Incoming, keys: &[SigningKey]) -> Result<Option<String>, Failure> {
        sigv4::verify(incoming, keys)
    }

    fn failure(failure: &Failure) -> Reply {
        let AwsError { status, code, .. } = failure.into();
        // Clients recognize these errors by their codes.
        let is_bad_request = matches!(code, "TemplateDoesNotExist" | "Throttling");
        let status = if is_bad_request { StatusCode::BAD_REQUEST } else { status };
        let kind = if status.is_server_error() { "Receiver" } else { "Sender" };
        let error = [element("Type", kind), element("Code", code), element("Message", &failure.message)].concat();
        respond(status, |id| {
            format!(
                "<ErrorResponse xmlns=\"{NAMESPACE}\">{}{}</ErrorResponse>",
                container("Error", &error),
                element("RequestId", id)
            )
        })
    }
}

/// Returns the API.
pub(crate) fn api(templates: &Arc<TemplateStore>) -> Api {
    Routes::new::<SesV1>(templates).post(PATH, handle).post_optional("/", handle).api()
}

/// Returns a response whose body contains the id of the request.
fn respond(status: StatusCode, body: impl FnOnce(&str) -> String) -> Reply {
    let id = aws::request_id();
    let body = body(&id);
    Reply::empty(status).with_body("text/xml", body).with(HeaderName::from_static(aws::REQUEST_ID_FIELD), id)
}

/// Returns the response to an action.
fn result(action: &str, result: &str) -> Reply {
    respond(StatusCode::OK, |id| {
        let (result, metadata) =
            (container(&format!("{action}Result"), result), container("ResponseMetadata", &element("RequestId", id)));
        format!("<{action}Response xmlns=\"{NAMESPACE}\">{result}{metadata}</{action}Response>")
    })
}

/// Returns an element with a text. Characters that XML cannot contain are replaced (XML 1.0 section 2.2).
fn element(name: &str, text: &str) -> String {
    let is_invalid = |c: char| (c.is_ascii_control() && !"\t\n\r".contains(c)) || matches!(c, '\u{fffe}' | '\u{ffff}');
    let mut escaped = String::new();
    push_escaped(&mut escaped, &text.replace(is_invalid, "\u{fffd}"));
    // A parser converts CR to LF (section 2.11).
    container(name, &escaped.replace('\r', "&#13;"))
}

/// Returns an element with elements.
fn container(name: &str, content: &str) -> String {
    format!("<{name}>{content}</{name}>")
}

/// The parameters of a request. Members of structures are separated by dots, and the items of a list `x` are `x.member.1` and so on.
struct Parameters(BTreeMap<String, String>);

impl Parameters {
    fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    fn required(&self, name: &str) -> Result<&str, Failure> {
        self.get(name).filter(|value| !value.is_empty()).ok_or_else(|| Failure::missing(name))
    }

    fn owned(&self, name: &str) -> Option<String> {
        self.get(name).map(str::to_owned)
    }

    /// Returns the names of the items of a list. Items are those with a value, or with a member that has one.
    fn items(&self, list: &str) -> Vec<String> {
        let has_value = |item: &String| {
            let next = self.0.range(item.clone()..).next().and_then(|(name, _)| name.strip_prefix(item.as_str()));
            next.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        (1..=MAX_PAIRS).map(|number| format!("{list}.member.{number}")).take_while(has_value).collect()
    }

    /// Returns the texts of a list.
    fn texts(&self, list: &str) -> Vec<&str> {
        self.items(list).iter().filter_map(|item| self.get(item)).collect()
    }

    fn person(&self, name: &str) -> Result<Option<Person>, Failure> {
        self.get(name).filter(|text| !text.is_empty()).map(|text| Person::parse(name, text)).transpose()
    }

    fn source(&self) -> Result<Option<Person>, Failure> {
        self.person("Source")?.map(Some).ok_or_else(|| Failure::missing("Source"))
    }

    fn recipients(&self, prefix: &str) -> Result<Recipients, Failure> {
        let [to, cc, bcc] = ["To", "Cc", "Bcc"].map(|kind| self.texts(&format!("{prefix}.{kind}Addresses")));
        Recipients::parse(&to, &cc, &bcc)
    }

    fn reply_to(&self) -> Result<Vec<Person>, Failure> {
        Person::parse_all("ReplyToAddresses", &self.texts("ReplyToAddresses"))
    }

    fn tags(&self, list: &str) -> Vec<String> {
        let value = |item: &str, name: &str| self.owned(&format!("{item}.{name}")).unwrap_or_default();
        self.items(list).iter().map(|item| format!("{}.{}", value(item, "Name"), value(item, "Value"))).collect()
    }

    fn template_source(&self) -> Result<TemplateSource, Failure> {
        Ok(TemplateSource::Stored(aws::template_name(self.get("Template"), self.get("TemplateArn"))?))
    }

    /// Returns a map with the same attributes for each identity of the request.
    fn attributes(&self, name: &str, attributes: &[(&str, &str)]) -> String {
        let value = attributes.iter().map(|(name, value)| element(name, value)).collect::<String>();
        let entry =
            |identity: &str| container("entry", &[element("key", identity), container("value", &value)].concat());
        container(name, &self.texts("Identities").into_iter().map(entry).collect::<String>())
    }

    /// Returns the template of a request to store it.
    fn template(&self) -> Template {
        let [subject, text, html] =
            ["SubjectPart", "TextPart", "HtmlPart"].map(|part| self.owned(&format!("Template.{part}")));
        let id = self.owned("Template.TemplateName").unwrap_or_default();
        Template { id, subject: subject.unwrap_or_default(), text, html, ..Template::default() }
    }
}

fn handle(incoming: &Incoming, templates: &Templates<'_>) -> Result<Action, Failure> {
    let parameters = Parameters(incoming.form()?.into_iter().collect());
    let text = match parameters.required("Action")? {
        "SendEmail" => return send(send_email(&parameters)?, |_, sent| sent_reply("SendEmail", sent)),
        "SendRawEmail" => return send(send_raw(&parameters)?, |_, sent| sent_reply("SendRawEmail", sent)),
        "SendTemplatedEmail" => {
            return send(send_templated(&parameters, &incoming.budget)?, |_, sent| {
                sent_reply("SendTemplatedEmail", sent)
            });
        }
        "SendBulkTemplatedEmail" => return send_bulk(incoming, &parameters),
        "CreateTemplate" => {
            aws::store_template(templates, parameters.template(), true)?;
            String::new()
        }
        "UpdateTemplate" => {
            aws::store_template(templates, parameters.template(), false)?;
            String::new()
        }
        "DeleteTemplate" => {
            templates.remove(parameters.required("TemplateName")?);
            String::new()
        }
        "GetTemplate" => template_xml(&*aws::find_template(templates, parameters.required("TemplateName")?)?),
        "TestRenderTemplate" => {
            let template = aws::find_template(templates, parameters.required("TemplateName")?)?;
            element(
                "RenderedTemplate",
                &aws::render(templates, &template, parameters.required("TemplateData")?, &incoming.budget)?,
            )
        }
        "ListTemplates" => {
            let member = |template: &Arc<Template>| container("member", &element("Name", &template.id));
            container("TemplatesMetadata", &templates.list().iter().map(member).collect::<String>())
        }
        "GetSendQuota" => [("Max24HourSend", "50000.0"), ("MaxSendRate", "100.0"), ("SentLast24Hours", "0.0")]
            .map(|(name, value)| element(name, value))
            .concat(),
        "GetSendStatistics" => container("SendDataPoints", ""),
        "GetAccountSendingEnabled" => element("Enabled", "true"),
        "VerifyDomainIdentity" => element("VerificationToken", "restante"),
        "VerifyDomainDkim" => container("DkimTokens", &element("member", "restante")),
        "ListIdentities" => container("Identities", ""),
        "ListConfigurationSets" => container("ConfigurationSets", ""),
        "ListVerifiedEmailAddresses" => container("VerifiedEmailAddresses", ""),
        "GetIdentityVerificationAttributes" => {
            parameters.attributes("VerificationAttributes", &[("VerificationStatus", "Success")])
        }
        "GetIdentityDkimAttributes" => {
            parameters.attributes("DkimAttributes", &[("DkimEnabled", "true"), ("DkimVerificationStatus", "Success")])
        }
        action if ACTIONS_WITHOUT_EFFECT.contains(&action) => String::new(),
        action => {
            let action: String = action.chars().take(MAX_SHOWN_CHARS).collect();
            return Err(Failure::invalid("Action", &format!("{action} is not supported")));
        }
    };
    let action = parameters.required("Action")?;
    Ok(Action::Reply(result(action, &text)))
}

fn template_xml(template: &Template) -> String {
    let texts = [
        ("TemplateName", Some(&template.id)),
        ("SubjectPart", Some(&template.subject)),
        ("TextPart", template.text.as_ref()),
        ("HtmlPart", template.html.as_ref()),
    ];
    let elements = texts.into_iter().filter_map(|(name, text)| Some(element(name, text?)));
    container("Template", &elements.collect::<String>())
}

fn send(email: Email, reply: fn(&Incoming, &[Sent]) -> Reply) -> Result<Action, Failure> {
    Ok(Action::Send(vec![email], reply))
}

fn sent_reply(action: &str, sent: &[Sent]) -> Reply {
    result(action, &element("MessageId", &aws::message_id(&sent[0])))
}

fn send_email(parameters: &Parameters) -> Result<Email, Failure> {
    let [text, html] = ["Text", "Html"].map(|kind| parameters.owned(&format!("Message.Body.{kind}.Data")));
    if text.is_none() && html.is_none() {
        return Err(Failure::missing("Message.Body"));
    }
    let subject = parameters.owned("Message.Subject.Data").ok_or_else(|| Failure::missing("Message.Subject"))?;
    let email = Email {
        from: parameters.source()?,
        reply_to: parameters.reply_to()?,
        content: Content::Parts(Parts { subject, text, html, attachments: Vec::new() }),
        tags: parameters.tags("Tags"),
        ..Email::default()
    };
    aws::with_recipients(email, parameters.recipients("Destination")?)
}

fn send_raw(parameters: &Parameters) -> Result<Email, Failure> {
    let to = Person::parse_all("Destinations", &parameters.texts("Destinations"))?;
    let recipients = Recipients { to, ..Recipients::default() };
    let email = aws::raw_email(parameters.required("RawMessage.Data")?, parameters.person("Source")?, recipients)?;
    Ok(Email { tags: [email.tags, parameters.tags("Tags")].concat(), ..email })
}

fn send_templated(parameters: &Parameters, budget: &TextBudget) -> Result<Email, Failure> {
    let template = aws::template_use(&parameters.template_source()?, [parameters.required("TemplateData")?], budget)?;
    let email = Email {
        from: parameters.source()?,
        reply_to: parameters.reply_to()?,
        content: Content::Template(template, Parts::default()),
        tags: parameters.tags("Tags"),
        ..Email::default()
    };
    aws::with_recipients(email, parameters.recipients("Destination")?)
}

fn send_bulk(incoming: &Incoming, parameters: &Parameters) -> Result<Action, Failure> {
    let common = Email { from: parameters.source()?, reply_to: parameters.reply_to()?, ..Email::default() };
    let (source, tags) = (parameters.template_source()?, parameters.tags("DefaultTags"));
    let default = parameters.get("DefaultTemplateData").unwrap_or_default();
    let destinations = parameters.items("Destinations");
    aws::check_count(destinations.len())?;
    let budget = &incoming.budget;
    let mut emails = Vec::with_capacity(destinations.len());
    for item in destinations {
        let email = || {
            let data = parameters.get(&format!("{item}.ReplacementTemplateData")).unwrap_or_default();
            let content = Content::Template(aws::template_use(&source, [default, data], budget)?, Parts::default());
            let tags = [tags.clone(), parameters.tags(&format!("{item}.ReplacementTags"))].concat();
            let recipients = parameters.recipients(&format!("{item}.Destination"))?;
            aws::with_recipients(Email { content, tags, ..common.clone() }, recipients)
        };
        emails.push(match email() {
            Ok(email) => Ok(budget.add(email)?),
            Err(failure) => Err(failure),
        });
    }
    let reply = |_: &Incoming, results: &[Result<Sent, Failure>]| {
        let member = |result: &Result<Sent, Failure>| {
            let elements = match result {
                Ok(sent) => [element("Status", "Success"), element("MessageId", &aws::message_id(sent))],
                Err(failure) => {
                    [element("Status", AwsError::from(failure).entry_code), element("Error", &failure.message)]
                }
            };
            container("member", &elements.concat())
        };
        result("SendBulkTemplatedEmail", &container("Status", &results.iter().map(member).collect::<String>()))
    };
    Ok(Action::SendEach(emails, reply))
}
