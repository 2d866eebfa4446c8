//! The JSON of the REST API: listings and messages, field by field in the order of the specification.

use std::sync::Arc;

use bytes::Bytes;
use restante_mail::message::Summary;
use restante_mail::mime::{Attachment, Mime};

use super::json;
use super::links::{self, Purpose};

/// What a summary record takes, roughly.
const RECORD: usize = 320;

/// A listing: an array of summary records.
pub(super) fn listing(messages: &[Arc<Summary>]) -> Bytes {
    let mut out = Vec::with_capacity(messages.len() * RECORD + 3);
    json::array(&mut out, messages, |out, message| {
        out.push(b'{');
        summary(out, message);
        out.push(b'}');
    });
    out.push(b'\n');
    // The body may be remembered for a while, and the guess of its size was generous.
    out.shrink_to_fit();
    out.into()
}

/// A message: the fields of its summary record, then what its MIME view says.
pub(super) fn message(of: &Summary, mime: &Mime, base_url: &str) -> Bytes {
    let (text, html) = (mime.text(), mime.html());
    let mut out = Vec::with_capacity(text.len() + html.len() + 8 * RECORD);
    out.push(b'{');
    summary(&mut out, of);
    out.extend_from_slice(b",\"body\":{");
    field(&mut out, "text", &text);
    out.push(b',');
    field(&mut out, "html", &html);
    out.extend_from_slice(b"},\"header\":{");
    for (index, (name, values)) in mime.header_map().iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        json::string(&mut out, name);
        out.push(b':');
        json::array(&mut out, values, |out, value| json::string(out, value));
    }
    out.extend_from_slice(b"},\"attachments\":");
    json::array(&mut out, mime.attachments().iter().enumerate(), |out, (index, file)| {
        attachment(out, of, index, file, base_url);
    });
    out.extend_from_slice(b"}\n");
    out.shrink_to_fit();
    out.into()
}

fn summary(out: &mut Vec<u8>, of: &Summary) {
    field(out, "mailbox", of.mailbox.as_str());
    json::display(out, format_args!(",\"id\":\"{}\",", of.id));
    field(out, "from", &of.from);
    out.extend_from_slice(b",\"to\":");
    json::array(out, &of.to, |out, to| json::string(out, to));
    out.push(b',');
    field(out, "subject", &of.subject);
    json::display(
        out,
        format_args!(
            ",\"date\":\"{}\",\"posix-millis\":{},\"size\":{},\"seen\":{}",
            of.received.strftime("%Y-%m-%dT%H:%M:%S%.6f+00:00"),
            of.received.as_millisecond(),
            of.size,
            of.seen
        ),
    );
}

fn attachment(out: &mut Vec<u8>, of: &Summary, index: usize, file: &Attachment<'_>, base_url: &str) {
    let link = |purpose| links::attachment(base_url, purpose, of, index, &file.filename);
    out.push(b'{');
    field(out, "filename", &file.filename);
    out.push(b',');
    field(out, "content-type", &file.content_type);
    out.push(b',');
    field(out, "download-link", &link(Purpose::Download));
    out.push(b',');
    field(out, "view-link", &link(Purpose::View));
    out.push(b',');
    field(out, "md5", &file.md5_hex());
    out.push(b'}');
}

/// Appends a field with a string as its value. The name must need no escapes.
fn field(out: &mut Vec<u8>, name: &str, value: &str) {
    json::display(out, format_args!("\"{name}\":"));
    json::string(out, value);
}
