//! Sending: composes a message from the fields of a request and delivers it.
//!
//! The checks of the recipients and the size are those of SMTP. The texts of errors about addresses, header fields and
//! attachments are those of Mailpit.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{Request, State};
use base64::engine::general_purpose::STANDARD;
use base64::{DecodeError, Engine as _};
use restante_auth::Grant;
use restante_http_connection::context::Peer;
use restante_http_core::extractors::body;
use restante_http_core::extractors::cancellation::Cancellation;
use restante_http_core::extractors::parameters::RequestGrant;
use restante_http_core::response::problem::Problem;
use restante_http_core::server::Server;
use restante_http_core::uploads::{JSON_SIZE_FACTOR, Upload};
use restante_mail::address::{Address, Alphabet};
use restante_mail::compose::{Attachment, ComposeContext, Draft, LineEnds, MAX_RECIPIENTS};
use serde::Deserialize;
use serde_json::json;

use crate::error::{Error, HandlerResult};
use crate::{content_type, success};

/// The header fields that are made from other members. `X-Tags` is one of them if there are tags.
const RESTRICTED_FIELDS: [&str; 9] =
    ["To", "From", "Cc", "Bcc", "Reply-To", "Date", "Subject", "Content-Type", "Mime-Version"];
const TAGS_FIELD: &str = "X-Tags";

/// Composes a message and delivers it. All errors are JSON.
pub(crate) async fn send(
    State(server): State<Arc<Server>>,
    grant: Result<RequestGrant, Problem>,
    cancellation: Cancellation,
    request: Request,
) -> HandlerResult {
    let result = async {
        let RequestGrant(grant) = grant?;
        deliver(&server, &grant, &cancellation, request).await
    };
    success::json(&json!({ "ID": result.await.map_err(Error::into_json)? }))
}

/// The request.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Fields<'a> {
    from: Person,
    to: Vec<Person>,
    cc: Vec<Person>,
    bcc: Vec<String>,
    reply_to: Vec<Person>,
    subject: String,
    text: String,
    #[serde(rename = "HTML")]
    html: String,
    #[serde(borrow)]
    attachments: Vec<FileFields<'a>>,
    tags: Vec<String>,
    headers: BTreeMap<String, String>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Person {
    name: String,
    email: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct FileFields<'a> {
    /// Most of the request. It is not copied before it is decoded.
    #[serde(borrow)]
    content: Cow<'a, str>,
    filename: String,
    content_type: String,
    #[serde(rename = "ContentID")]
    content_id: String,
}

/// A message, and its envelope.
struct ComposedMessage {
    from: Address,
    recipients: Vec<Address>,
    message: Vec<u8>,
}

/// Delivers the message in a request. Returns its id, or an empty text if the message was discarded.
async fn deliver(
    server: &Server,
    grant: &Grant,
    cancellation: &Cancellation,
    request: Request,
) -> Result<String, Error> {
    let (parts, body) = request.into_parts();
    let ip = parts.extensions.get::<Peer>().and_then(|peer| peer.ip);
    let mut reservation = server.uploads.budget.reservation();
    let max_bytes = server.settings.max_message_bytes;
    let limit = max_bytes.saturating_mul(JSON_SIZE_FACTOR);
    let body = body::read_upload(&parts.headers, body, limit, &mut reservation).await?;
    let context = server.uploads.compose_context();
    let work = server.renderer.work_permit(body.len()).await?;
    let composed = work.run(move || compose(&body, &context)).await.map_err(Problem::from)??;
    let ComposedMessage { from, recipients, message } = composed;
    if message.len() > max_bytes {
        return Err(Problem::MessageTooLarge { bytes: message.len() as u64, max: max_bytes as u64 }.into());
    }
    // The encoded message can be longer than the JSON.
    body::reserve_memory(&mut reservation, message.len()).await?;
    // A large message may take a while to arrive.
    cancellation.check_credentials().await?;
    let login = grant.name().map(str::to_owned);
    let message = message.into();
    let upload = Upload { ip, login, key: None, from: Some(from), recipients, project: None, message };
    let stored = server.uploads.deliver_upload(grant, upload, reservation).await?;
    Ok(stored.first().map(|copy| copy.message.to_string()).unwrap_or_default())
}

fn compose(json: &[u8], context: &ComposeContext) -> Result<ComposedMessage, Error> {
    let fields: Fields<'_> = restante_go_json::parse(json).map_err(Error::text)?;
    let mut recipients = Vec::new();
    let to = parse_people("To", fields.to, &mut recipients)?;
    let cc = parse_people("Cc", fields.cc, &mut recipients)?;
    let bcc = fields.bcc.into_iter().map(|email| Person { name: String::new(), email }).collect();
    parse_people("Bcc", bcc, &mut recipients)?;
    let reply_to = parse_people("Reply-To", fields.reply_to, &mut Vec::new())?;
    let headers = parse_headers(fields.headers, &fields.tags)?;
    let attachments = fields.attachments.into_iter().map(decode_file).collect::<Result<_, _>>()?;
    let failed = |problem: &str| Error::text(format!("error building message: {problem}"));
    if fields.from.email.is_empty() {
        return Err(failed("from not set"));
    }
    if recipients.is_empty() {
        return Err(failed("no recipients (to, cc, bcc) set"));
    }
    if recipients.len() > MAX_RECIPIENTS {
        return Err(failed(&format!("more than {MAX_RECIPIENTS} recipients")));
    }
    let from = address_of(&fields.from.email).ok_or_else(|| failed("from is not an address"))?;
    let html = Some(fields.html).filter(|html| !html.is_empty());
    let draft = Draft {
        from: fields.from.named(&from),
        to,
        cc,
        reply_to,
        subject: on_one_line(&fields.subject),
        // The text of a message without a text part is made from its HTML.
        text: Some(fields.text).filter(|text| !text.is_empty() || html.is_none()),
        html,
        line_ends: LineEnds::Unchanged,
        headers,
        attachments,
        date: None,
    };
    let message = draft.compose(context).map_err(|error| failed(&error.to_string()))?;
    Ok(ComposedMessage { from, recipients, message })
}

/// Returns the members of a list as a draft has them, and adds their addresses to `addresses`.
fn parse_people(field: &str, people: Vec<Person>, addresses: &mut Vec<Address>) -> Result<Vec<String>, Error> {
    let parse = |person: Person| match address_of(&person.email) {
        Some(address) => {
            let text = person.named(&address);
            addresses.push(address);
            Ok(text)
        }
        None => Err(Error::text(format!("invalid {field} address: {}", person.email))),
    };
    people.into_iter().map(parse).collect()
}

impl Person {
    /// Returns the name and the address as text.
    fn named(&self, address: &Address) -> String {
        format!("{} <{address}>", on_one_line(&self.name))
    }
}

/// Returns the address in a text such as `ann@example.org` or `Ann <ann@example.org>`.
pub(super) fn address_of(text: &str) -> Option<Address> {
    let text = text.trim();
    let address = text.strip_suffix('>').and_then(|text| text.rsplit_once('<')).map_or(text, |(_, address)| address);
    Address::parse(address.trim(), Alphabet::Utf8).ok()
}

/// Returns the header fields of a draft.
fn parse_headers(headers: BTreeMap<String, String>, tags: &[String]) -> Result<Vec<(String, String)>, Error> {
    let is_restricted = |name: &str| {
        RESTRICTED_FIELDS.iter().any(|field| field.eq_ignore_ascii_case(name))
            || (!tags.is_empty() && name.eq_ignore_ascii_case(TAGS_FIELD))
    };
    if let Some(name) = headers.keys().find(|name| is_restricted(name)) {
        return Err(Error::text(format!("cannot overwrite header: \"{name}\"")));
    }
    let mut fields: Vec<_> = headers.into_iter().map(|(name, value)| (name, on_one_line(&value))).collect();
    if !tags.is_empty() {
        fields.push((TAGS_FIELD.to_owned(), on_one_line(&tags.join(", "))));
    }
    Ok(fields)
}

/// Replaces line breaks and other control characters by spaces. A field of a draft must not have any.
fn on_one_line(text: &str) -> String {
    text.replace(char::is_control, " ")
}

fn decode_file(file: FileFields<'_>) -> Result<Attachment, Error> {
    // Pages read files as data URLs, and send them as they are.
    let encoded = file.content.rsplit(',').next().unwrap_or_default();
    let has_lines = encoded.contains(['\r', '\n']);
    let decoded = if has_lines { STANDARD.decode(encoded.replace(['\r', '\n'], "")) } else { STANDARD.decode(encoded) };
    let content = decoded.map_err(|error| {
        let at = match error {
            DecodeError::InvalidByte(at, _) => at,
            _ => encoded.len() / 4 * 4,
        };
        let problem = format!("illegal base64 data at input byte {at}");
        Error::text(format!("error decoding base64 attachment \"{}\": {problem}", file.filename))
    })?;
    let content_type = Some(file.content_type).filter(|kind| !kind.is_empty());
    Ok(Attachment {
        filename: Some(file.filename).filter(|name| !name.is_empty()),
        content_type: Some(content_type.unwrap_or_else(|| content_type::detect(&content).to_owned())),
        content: content.into(),
        content_id: Some(file.content_id).filter(|id| !id.is_empty()),
    })
}
