//! Delivery over HTTP instead of SMTP: a complete message, or its fields as JSON. After the request is read, delivery
//! is the same as over SMTP.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use restante_api_types::MessageRecord;
use restante_http_connection::context::Peer;
use restante_http_core::extractors::body;
use restante_http_core::extractors::cancellation::Cancellation;
use restante_http_core::extractors::parameters::{PathAddress, RequestGrant};
use restante_http_core::extractors::query::{FromQuery, Parsed, QueryPairs};
use restante_http_core::extractors::request_context::LinkRoot;
use restante_http_core::response::links::encode_segment;
use restante_http_core::response::problem::Problem;
use restante_http_core::response::success;
use restante_http_core::server::Server;
use restante_http_core::uploads::{JSON_SIZE_FACTOR, Upload};
use restante_mail::address::{Address, Alphabet};
use restante_mail::compose::{Attachment, ComposeContext, Draft, LineEnds};
use restante_mail::envelope::ReversePath;
use restante_mail::message::Summary;
use restante_mail::mime::{NamedAddress, header_summary};
use restante_net::Reservation;
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// Delivers a message to a mailbox.
pub(crate) async fn inject(
    State(server): State<Arc<Server>>,
    RequestGrant(grant): RequestGrant,
    PathAddress { address: recipient, project }: PathAddress,
    Parsed(Sender(sender)): Parsed<Sender>,
    LinkRoot(root): LinkRoot,
    cancellation: Cancellation,
    request: Request,
) -> Result<Response, Problem> {
    let ip = request.extensions().get::<Peer>().and_then(|peer| peer.ip);
    let mut reservation = server.uploads.budget.reservation();
    let message = read_message(&server, request, &recipient, &mut reservation).await?;
    // A large message may take a while to arrive.
    cancellation.check_credentials().await?;
    let from = sender.unwrap_or_else(|| sender_from_header(&message));
    let upload = Upload { ip, login: None, key: None, from, recipients: vec![recipient], project, message };
    let stored = server.uploads.deliver_upload(&grant, upload, reservation).await?;
    stored_response(&root, &stored)
}

/// The sender of the envelope, from `?from=`. An empty value is the null sender of bounces.
pub(crate) struct Sender(Option<ReversePath>);

impl FromQuery for Sender {
    fn from_query(query: &QueryPairs) -> Result<Self, Problem> {
        let invalid = |error| Problem::Malformed(format!("The parameter from must be an address or empty: {error}."));
        let parse = |from: &str| match from {
            "" => Ok(None),
            address => Address::parse(address, Alphabet::Utf8).map(Some).map_err(invalid),
        };
        query.text("from")?.map(parse).transpose().map(Self)
    }
}

/// Reads the message in a request. Its memory is reserved when this returns.
async fn read_message(
    server: &Server,
    request: Request,
    recipient: &Address,
    reservation: &mut Reservation,
) -> Result<Bytes, Problem> {
    let max_bytes = server.settings.max_message_bytes;
    let (parts, body) = request.into_parts();
    let is_json = match body::media_type(&parts.headers).unwrap_or_default().as_str() {
        "message/rfc822" => false,
        "application/json" => true,
        _ => return Err(Problem::NotMessage),
    };
    let limit = if is_json { max_bytes.saturating_mul(JSON_SIZE_FACTOR) } else { max_bytes };
    let body = body::read_upload(&parts.headers, body, limit, reservation).await?;
    if !is_json {
        return if body.is_empty() { Err(Problem::InvalidMessage("it is empty".to_owned())) } else { Ok(body.into()) };
    }
    let context = server.uploads.compose_context();
    let to = recipient.to_string();
    let work = server.renderer.work_permit(body.len()).await?;
    let message = work.run(move || compose_message(&body, to, &context)).await??;
    if message.len() > max_bytes {
        return Err(Problem::MessageTooLarge { bytes: message.len() as u64, max: max_bytes as u64 });
    }
    // The encoded message can be longer than the JSON.
    body::reserve_memory(reservation, message.len()).await?;
    Ok(message.into())
}

/// The fields of a new message as JSON.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct MessageFields<'a> {
    from: String,
    #[serde(default)]
    to: Vec<String>,
    #[serde(default)]
    cc: Vec<String>,
    #[serde(default)]
    subject: String,
    text: Option<String>,
    html: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default, borrow)]
    attachments: Vec<JsonObject<AttachmentFields<'a>>>,
    date: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct AttachmentFields<'a> {
    filename: Option<String>,
    content_type: Option<String>,
    /// Most of the request. It is not copied before it is decoded.
    #[serde(borrow)]
    content: Cow<'a, str>,
    content_id: Option<String>,
}

/// A value that must be a JSON object. By itself, a derived `Deserialize` also accepts an array of the values.
struct JsonObject<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for JsonObject<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Members<T> {
            type Value = T;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<T, A::Error> {
                T::deserialize(MapAccessDeserializer::new(members))
            }
        }

        deserializer.deserialize_map(Members(PhantomData)).map(Self)
    }
}

fn compose_message(json: &[u8], recipient: String, context: &ComposeContext) -> Result<Vec<u8>, Problem> {
    let JsonObject(fields): JsonObject<MessageFields<'_>> = serde_json::from_slice(json).map_err(|error| {
        if error.is_data() { Problem::InvalidMessage(error.to_string()) } else { Problem::InvalidJson(error) }
    })?;
    let files = fields.attachments.into_iter().enumerate().map(decode_attachment);
    let date = fields
        .date
        .map(|date| date.parse().map_err(|_| invalid_message("date is not a time such as 2026-11-15T10:00:00Z")));
    let draft = Draft {
        from: fields.from,
        to: if fields.to.is_empty() { vec![recipient] } else { fields.to },
        cc: fields.cc,
        reply_to: Vec::new(),
        subject: fields.subject,
        text: fields.text,
        html: fields.html,
        line_ends: LineEnds::Crlf,
        headers: fields.headers.into_iter().collect(),
        attachments: files.collect::<Result<_, _>>()?,
        date: date.transpose()?,
    };
    draft.compose(context).map_err(|error| Problem::InvalidMessage(error.to_string()))
}

fn decode_attachment(
    (index, JsonObject(file)): (usize, JsonObject<AttachmentFields<'_>>),
) -> Result<Attachment, Problem> {
    let content = STANDARD.decode(file.content.as_bytes());
    let content =
        content.map_err(|_| Problem::InvalidMessage(format!("attachments[{index}].content is not base64")))?;
    Ok(Attachment {
        filename: file.filename,
        content_type: file.content_type,
        content: content.into(),
        content_id: file.content_id,
    })
}

/// Returns the address of the author in the message header, if it can be the sender of an envelope.
fn sender_from_header(message: &[u8]) -> ReversePath {
    let author = NamedAddress::from_display(&header_summary(message).from?);
    Address::parse(&author.address, Alphabet::Utf8).ok()
}

/// Returns the response with the copies that were stored, if any.
fn stored_response(root: &str, stored: &[Summary]) -> Result<Response, Problem> {
    let mut response =
        success::no_store_member("messages", stored.iter().map(MessageRecord::from).collect::<Vec<_>>())?;
    let Some(first) = stored.first() else { return Ok(response) };
    *response.status_mut() = StatusCode::CREATED;
    let location = format!("{root}/api/v1/mailbox/{}/{}", encode_segment(first.mailbox.shown()), first.id);
    if let Ok(location) = HeaderValue::try_from(location) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    Ok(response)
}

fn invalid_message(problem: &str) -> Problem {
    Problem::InvalidMessage(problem.to_owned())
}
