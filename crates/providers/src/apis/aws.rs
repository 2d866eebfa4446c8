//! What both versions of the API of Amazon SES share: keys, errors, ids, templates and limits.

use std::sync::Arc;

use axum::http::StatusCode;
use jiff::Timestamp;
use restante_mail::compose::{ComposeContext, Draft};
use ring::rand::{SecureRandom as _, SystemRandom};

use super::sigv4;
use crate::email::{Email, Parts, Sent};
use crate::failure::{Failure, FailureKind, MISSING_KEY};
use crate::incoming::decode_base64;
use crate::person::Person;
use crate::raw;
use crate::templates::{Template, TemplateSource, TemplateUse, Templates};
use crate::text_budget::TextBudget;

/// The name of both providers. Therefore they have the same templates.
pub(crate) const NAME: &str = "ses";
/// The header field with the id of a request.
pub(crate) const REQUEST_ID_FIELD: &str = "x-amzn-requestid";
/// The maximum number of recipients of a message, and of messages in a request.
const MAX_RECIPIENTS: usize = 50;
/// The maximum length of the name of a template.
const MAX_TEMPLATE_NAME_CHARS: usize = 64;
/// The maximum size of a template in a request to send.
const MAX_TEMPLATE_BYTES: usize = 512 * 1024;

/// An error as each version of the API reports it.
pub(crate) struct AwsError {
    pub(crate) status: StatusCode,
    /// The type in version 2.
    pub(crate) kind: &'static str,
    /// The code in version 1.
    pub(crate) code: &'static str,
    /// The status of a message in a request with several, in version 2.
    pub(crate) entry_kind: &'static str,
    /// The same in version 1.
    pub(crate) entry_code: &'static str,
}

impl From<&Failure> for AwsError {
    fn from(failure: &Failure) -> Self {
        let Failure { kind, field, .. } = failure;
        let (status, kind, code) = match (kind, field.as_deref()) {
            (FailureKind::Unauthorized, Some(sigv4::SIGNATURE)) => {
                (403, "InvalidSignatureException", "SignatureDoesNotMatch")
            }
            (FailureKind::Unauthorized, Some(MISSING_KEY)) => {
                (403, "MissingAuthenticationTokenException", "MissingAuthenticationToken")
            }
            (FailureKind::Unauthorized, _) => (403, "UnrecognizedClientException", "InvalidClientTokenId"),
            (FailureKind::Forbidden, _) => (403, "AccessDeniedException", "AccessDenied"),
            (FailureKind::NotFound, _) => (404, "NotFoundException", "TemplateDoesNotExist"),
            (FailureKind::Exists, _) => (400, "AlreadyExistsException", "AlreadyExists"),
            (FailureKind::TooLarge, _) | (FailureKind::Invalid, None) => (400, "MessageRejected", "MessageRejected"),
            (FailureKind::RateLimited, _) => (429, "TooManyRequestsException", "Throttling"),
            (FailureKind::Unavailable, _) => (503, "ServiceUnavailableException", "ServiceUnavailable"),
            (FailureKind::Internal, _) => (500, "InternalServiceErrorException", "InternalFailure"),
            (FailureKind::Invalid, Some("Action")) => (400, "BadRequestException", "InvalidAction"),
            (FailureKind::Malformed | FailureKind::Missing | FailureKind::Invalid, _) => {
                (400, "BadRequestException", "InvalidParameterValue")
            }
        };
        let (entry_kind, entry_code) = match code {
            "TemplateDoesNotExist" => ("TEMPLATE_NOT_FOUND", code),
            "MessageRejected" => ("MESSAGE_REJECTED", code),
            "InvalidParameterValue" => ("INVALID_PARAMETER", code),
            "Throttling" => ("ACCOUNT_THROTTLED", "AccountThrottled"),
            "ServiceUnavailable" => ("TRANSIENT_FAILURE", "TransientFailure"),
            _ => ("FAILED", "Failed"),
        };
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Self { status, kind, code, entry_kind, entry_code }
    }
}

/// Returns the id of a request. It is random.
pub(crate) fn request_id() -> String {
    let mut bytes = [0; 16];
    // Without random bytes, it is an id that several requests have, which is no problem.
    let _ = SystemRandom::new().fill(&mut bytes);
    let id = format!("{:032x}", u128::from_be_bytes(bytes));
    [&id[..8], &id[8..12], &id[12..16], &id[16..20], &id[20..]].join("-")
}

/// Returns the id of a message in the form of SES. Its first 16 digits are those of its id.
pub(crate) fn message_id(sent: &Sent) -> String {
    format!("{}-{}-000000", sent.hex(), sent.uuid())
}

/// The recipients of a message.
#[derive(Debug, Default)]
pub(crate) struct Recipients {
    pub(crate) to: Vec<Person>,
    pub(crate) cc: Vec<Person>,
    pub(crate) bcc: Vec<Person>,
}

impl Recipients {
    /// Parses the addresses of each list.
    pub(crate) fn parse<T: AsRef<str>>(to: &[T], cc: &[T], bcc: &[T]) -> Result<Self, Failure> {
        let parse = |field: &str, list: &[T]| Person::parse_all(&format!("Destination.{field}"), list);
        Ok(Self { to: parse("ToAddresses", to)?, cc: parse("CcAddresses", cc)?, bcc: parse("BccAddresses", bcc)? })
    }

    fn is_empty(&self) -> bool {
        self.to.is_empty() && self.cc.is_empty() && self.bcc.is_empty()
    }
}

/// Adds the recipients to a message, of which it must have at least one.
pub(crate) fn with_recipients(email: Email, recipients: Recipients) -> Result<Email, Failure> {
    let Recipients { to, cc, bcc } = recipients;
    let count = to.len() + cc.len() + bcc.len();
    if count == 0 {
        return Err(Failure::missing("Destination"));
    }
    if count > MAX_RECIPIENTS {
        return Err(Failure::new(FailureKind::Invalid, format!("Recipient count exceeds {MAX_RECIPIENTS}.")));
    }
    Ok(Email { to, cc, bcc, ..email })
}

/// Creates a complete message from base64. Without recipients, those of its header get it. The sender has precedence over that of
/// the header, which gets the field From if it has none.
pub(crate) fn raw_email(data: &str, from: Option<Person>, recipients: Recipients) -> Result<Email, Failure> {
    let email = raw::from_message(decode_base64("RawMessage.Data", data)?)?;
    let mut email = raw::with_fields(email, "X-SES-MESSAGE-TAGS", "");
    let recipients =
        if recipients.is_empty() { Recipients { to: email.to, cc: email.cc, bcc: email.bcc } } else { recipients };
    (email.to, email.cc, email.bcc) = Default::default();
    if let (None, Some(from)) = (&email.from, &from) {
        email.headers.push(("From".to_owned(), from.display()));
    }
    email.from = from.or(email.from);
    if email.from.is_none() {
        return Err(Failure::new(FailureKind::Invalid, "Missing required header 'From'."));
    }
    with_recipients(email, recipients)
}

/// Checks the number of messages in a request.
pub(crate) fn check_count(count: usize) -> Result<(), Failure> {
    match count {
        0 => Err(Failure::missing("Destinations")),
        1..=MAX_RECIPIENTS => Ok(()),
        _ => Err(Failure::new(FailureKind::Invalid, format!("Destination count exceeds {MAX_RECIPIENTS}."))),
    }
}

/// Creates the use of a template with the members of each of these objects. An empty text is an empty object.
pub(crate) fn template_use<'a>(
    source: &TemplateSource,
    data: impl IntoIterator<Item = &'a str>,
    budget: &TextBudget,
) -> Result<TemplateUse, Failure> {
    if let TemplateSource::Inline(Template { subject, text, html, .. }) = source {
        let texts = [Some(subject), text.as_ref(), html.as_ref()].into_iter().flatten();
        if texts.map(String::len).sum::<usize>() > MAX_TEMPLATE_BYTES {
            return Err(Failure::invalid("TemplateContent", &format!("has more than {MAX_TEMPLATE_BYTES} bytes")));
        }
    }
    let data = data.into_iter().filter(|data| !data.trim().is_empty());
    Ok(TemplateUse { source: source.clone(), data: budget.merge_objects("TemplateData", data)? })
}

/// Returns the name of a template, which can be given as its ARN.
pub(crate) fn template_name(name: Option<&str>, arn: Option<&str>) -> Result<String, Failure> {
    let name = name.or_else(|| arn?.rsplit('/').next()).unwrap_or_default();
    if name.is_empty() {
        return Err(Failure::missing("TemplateName"));
    }
    if name.chars().count() > MAX_TEMPLATE_NAME_CHARS || name.contains(char::is_control) {
        return Err(Failure::invalid("TemplateName", "is not a valid name"));
    }
    Ok(name.to_owned())
}

/// Returns a stored template.
pub(crate) fn find_template(templates: &Templates<'_>, name: &str) -> Result<Arc<Template>, Failure> {
    let name = template_name(Some(name), None)?;
    let missing = || Failure::new(FailureKind::NotFound, format!("Template {name} does not exist."));
    templates.find(&name).ok_or_else(missing)
}

/// Returns the message that a stored template and its data make.
pub(crate) fn render(
    templates: &Templates<'_>,
    template: &Template,
    data: &str,
    budget: &TextBudget,
) -> Result<String, Failure> {
    let template = template_use(&TemplateSource::Stored(template.id.clone()), [data], budget)?;
    let Parts { subject, text, html, .. } = templates.render(&template, Parts::default(), budget)?;
    let from = "sender@example.org".to_owned();
    let context = ComposeContext::new(Timestamp::now(), "localhost", 0);
    let message = Draft { from, subject, text, html, ..Draft::default() }.compose(&context)?;
    Ok(String::from_utf8_lossy(&message).into_owned())
}

/// Stores a template: a new one, or one that exists.
pub(crate) fn store_template(templates: &Templates<'_>, template: Template, is_new: bool) -> Result<(), Failure> {
    let name = template_name(Some(&template.id), None)?;
    if !is_new {
        find_template(templates, &name)?;
    } else if templates.find(&name).is_some() {
        return Err(Failure::new(FailureKind::Exists, format!("Template {name} already exists.")));
    }
    templates.put(Template { name: name.clone(), id: name, ..template })
}
