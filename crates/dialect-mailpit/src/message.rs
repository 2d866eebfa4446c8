//! One message with its texts and the list of its files.

use std::borrow::Cow;
use std::collections::HashSet;
use std::hash::BuildHasher as _;
use std::sync::Arc;

use axum::extract::State;
use bytes::Bytes;
use data_encoding::HEXLOWER;
use md5::Md5;
use restante_http_core::render::file::utf8_content;
use restante_http_core::render::{Representation, Work};
use restante_http_core::response::json;
use restante_http_core::response::problem::Problem;
use restante_http_core::server::Server;
use restante_mail::message::{Message, Summary};
use restante_mail::mime::{HeaderField, Mime, NamedAddress};
use serde::Serialize;
use sha1::Sha1;
use sha2::{Digest as _, Sha256};

use crate::content::{self, Files, listed_name, part_ids};
use crate::date;
use crate::error::HandlerResult;
use crate::list_unsubscribe::ListUnsubscribe;
use crate::success::json_body;
use crate::summary::{Address, created, sorted_tags};
use crate::target::TargetMessage;

/// The maximum number of addresses of a header field.
const MAX_ADDRESSES: usize = 1000;
/// The approximate size of the JSON without the texts.
const BASE_BYTES: usize = 1024;

/// Returns a message and marks it as read.
pub(crate) async fn message(State(server): State<Arc<Server>>, target: TargetMessage) -> HandlerResult {
    let state = Arc::new(ChangeableState::new(&target.message));
    // The hash function is random, so that no sender can choose texts for which two clients get the same response.
    let version = server.state_hasher.hash_one(&state);
    let write = move |copy: &Summary, mime: &Mime| render(copy, mime, &state);
    let form = Representation::new("mailpit message", Work::Extract);
    let body = server.renderer.render_version(target.message.first(), form, version, write).await?;
    target.mark_as_read(&server).await?;
    Ok(json_body(body))
}

/// What a response contains beside the source of the message. It changes, and depends on the copies that the client may
/// read.
#[derive(Hash)]
struct ChangeableState {
    id: String,
    tags: Vec<String>,
    username: String,
    /// The recipients of the envelope.
    recipients: Vec<String>,
}

impl ChangeableState {
    fn new(message: &Message) -> Self {
        Self {
            id: message.id().to_string(),
            tags: sorted_tags(message).into_iter().map(Cow::into_owned).collect(),
            username: message.first().details.login().unwrap_or_default().to_owned(),
            recipients: message.recipients().map(str::to_owned).collect(),
        }
    }
}

fn render(copy: &Summary, mime: &Mime, state: &ChangeableState) -> Result<Bytes, Problem> {
    let html = content::html(mime);
    let text = content::text(mime, &html);
    let size = json::max_string_len(&text) + json::max_string_len(&html) + BASE_BYTES;
    let (files, ids) = (Files::of(mime), part_ids(mime));
    let list = |indices: Vec<usize>| -> Vec<Attachment<'_>> {
        indices.into_iter().filter_map(|index| Attachment::new(mime, index, &ids[index])).collect()
    };
    let from = sender(mime);
    let return_path = first_value(mime, "Return-Path");
    let return_path = return_path.trim_matches(['<', '>']);
    let [to, cc, bcc, reply_to] = ["To", "Cc", "Bcc", "Reply-To"].map(|name| addresses(mime, name));
    let hidden = hidden_recipients([&to, &cc, &bcc], &state.recipients);
    let hidden = hidden.into_iter().map(|address| Address { name: "", address });
    let document = MessageDocument {
        id: &state.id,
        message_id: first_value(mime, "Message-ID").trim_matches(['<', '>']).to_owned(),
        from: Address { name: &from.name, address: &from.address },
        to: borrowed(&to).collect(),
        cc: borrowed(&cc).collect(),
        bcc: borrowed(&bcc).chain(hidden).collect(),
        reply_to: borrowed(&reply_to).collect(),
        return_path: if return_path.is_empty() { &from.address } else { return_path },
        subject: first_value(mime, "Subject"),
        list_unsubscribe: ListUnsubscribe::new(
            first_value(mime, "List-Unsubscribe"),
            first_value(mime, "List-Unsubscribe-Post"),
        ),
        date: date::header_date(&first_value(mime, "Date")).unwrap_or_else(|| created(copy.received)),
        tags: &state.tags,
        username: &state.username,
        text,
        html,
        size: copy.size,
        inline: list(files.inline),
        attachments: list(files.attachments),
    };
    json::body_with_capacity(&document, size)
}

/// Returns the recipients of the envelope that no list of addresses in the header names.
pub(crate) fn hidden_recipients<'a>(lists: [&[NamedAddress]; 3], recipients: &'a [String]) -> Vec<&'a str> {
    let named: HashSet<String> = lists.into_iter().flatten().map(|named| named.address.to_lowercase()).collect();
    recipients.iter().filter(|address| !named.contains(&address.to_lowercase())).map(String::as_str).collect()
}

/// A message.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct MessageDocument<'a> {
    #[serde(rename = "ID")]
    id: &'a str,
    #[serde(rename = "MessageID")]
    message_id: String,
    from: Address<'a>,
    to: Vec<Address<'a>>,
    cc: Vec<Address<'a>>,
    bcc: Vec<Address<'a>>,
    reply_to: Vec<Address<'a>>,
    return_path: &'a str,
    subject: String,
    list_unsubscribe: ListUnsubscribe,
    date: String,
    tags: &'a [String],
    username: &'a str,
    text: String,
    #[serde(rename = "HTML")]
    html: String,
    size: u64,
    inline: Vec<Attachment<'a>>,
    attachments: Vec<Attachment<'a>>,
}

/// A file of a message.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Attachment<'a> {
    #[serde(rename = "PartID")]
    part_id: &'a str,
    file_name: &'a str,
    content_type: &'a str,
    #[serde(rename = "ContentID")]
    content_id: &'a str,
    size: usize,
    checksums: Checksums,
}

impl<'a> Attachment<'a> {
    /// Returns the file at this index, or `None` if it has no name.
    fn new(mime: &'a Mime, index: usize, part_id: &'a str) -> Option<Self> {
        let part = &mime.parts()[index];
        let file_name = listed_name(part)?;
        let content = utf8_content(mime, part);
        Some(Self {
            part_id,
            file_name,
            content_type: &part.content_type,
            content_id: part.content_id.as_deref().unwrap_or_default(),
            size: content.len(),
            checksums: Checksums::of(&content),
        })
    }
}

/// Digests of the content of a file, in hexadecimal.
#[derive(Serialize)]
struct Checksums {
    #[serde(rename = "MD5")]
    md5: String,
    #[serde(rename = "SHA1")]
    sha1: String,
    #[serde(rename = "SHA256")]
    sha256: String,
}

impl Checksums {
    fn of(content: &[u8]) -> Self {
        Self {
            md5: HEXLOWER.encode(&Md5::digest(content)),
            sha1: HEXLOWER.encode(&<Sha1 as sha1::Digest>::digest(content)),
            sha256: HEXLOWER.encode(&Sha256::digest(content)),
        }
    }
}

/// Returns the decoded value of the first header field of this name. Empty if there is none.
fn first_value(mime: &Mime, name: &str) -> String {
    let field = mime.header().iter().find(|field| field.has_name(name));
    field.map(HeaderField::decoded_value).unwrap_or_default()
}

/// Returns the recipients in the header fields of this name.
pub(crate) fn addresses(mime: &Mime, name: &str) -> Vec<NamedAddress> {
    let fields = mime.header().iter().filter(|field| field.has_name(name));
    let recipients = fields.flat_map(|field| NamedAddress::parse_recipients(field.raw_value(), MAX_ADDRESSES));
    recipients.take(MAX_ADDRESSES).collect()
}

fn borrowed(addresses: &[NamedAddress]) -> impl Iterator<Item = Address<'_>> {
    addresses.iter().map(|NamedAddress { name, address }| Address { name, address })
}

/// Returns the first address of From. If there is none, the text of the field is the name.
fn sender(mime: &Mime) -> NamedAddress {
    let mut fields = mime.header().iter().filter(|field| field.has_name("From"));
    let first = fields.find_map(|field| NamedAddress::parse_list(field.raw_value(), 1).pop());
    first.unwrap_or_else(|| NamedAddress { name: first_value(mime, "From"), address: String::new() })
}
