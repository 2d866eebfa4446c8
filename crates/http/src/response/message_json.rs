//! The JSON of the REST API: listings and messages, field by field in the order of the specification.

use bytes::Bytes;
use jiff::Timestamp;
use jiff::tz::Offset;
use restante_mail::message::Summary;
use restante_mail::mime::{Attachment, Defect, Mime};

use crate::response::links::Purpose;
use crate::response::{json, links};

/// What a summary record takes beside its texts, roughly.
const RECORD: usize = 192;

/// How long the listing of these messages becomes, roughly.
pub(crate) fn listing_size(messages: &[Summary]) -> usize {
    messages.iter().map(record_size).sum()
}

/// A listing: an array of summary records.
pub(crate) fn listing(messages: &[Summary]) -> Bytes {
    let mut out = Vec::with_capacity(listing_size(messages) + 3);
    json::array(&mut out, messages, record);
    out.push(b'\n');
    // The body may be remembered for a while, and the guess of its size was generous.
    out.shrink_to_fit();
    out.into()
}

/// A summary record, appended to what is there.
pub(crate) fn record(out: &mut Vec<u8>, of: &Summary) {
    out.push(b'{');
    summary(out, of);
    out.push(b'}');
}

/// A summary record on its own, for those who are told of messages.
pub fn summary_record(of: &Summary) -> String {
    let mut out = Vec::with_capacity(record_size(of));
    record(&mut out, of);
    String::from_utf8_lossy(&out).into_owned()
}

/// How long a summary record becomes, roughly.
pub(crate) fn record_size(of: &Summary) -> usize {
    RECORD + of.mailbox.as_str().len() + of.headline.text_len()
}

/// A message: the fields of its summary record, then what its MIME view says.
pub(crate) fn message(of: &Summary, mime: &Mime, base_url: &str) -> Bytes {
    let (text, html) = (mime.compatible_text(), mime.html());
    // The texts are most of it, and room for them at once is half of what growing to it would take.
    let mut out = Vec::with_capacity(json::longest(&text) + json::longest(&html) + record_size(of) + 8 * RECORD);
    out.push(b'{');
    summary(&mut out, of);
    out.extend_from_slice(b",\"body\":{");
    field(&mut out, "text", &text);
    out.push(b',');
    field(&mut out, "html", &html);
    out.extend_from_slice(b"},");
    header(&mut out, mime);
    out.extend_from_slice(b",\"attachments\":");
    json::array(&mut out, mime.attachments().iter().enumerate(), |out, (index, file)| {
        attachment(out, of, index, file, base_url);
    });
    out.extend_from_slice(b"}\n");
    out.shrink_to_fit();
    out.into()
}

/// Appends the fields of a summary record.
pub(crate) fn summary(out: &mut Vec<u8>, of: &Summary) {
    field(out, "mailbox", of.mailbox.as_str());
    json::display(out, format_args!(",\"id\":\"{}\",", of.id));
    field(out, "from", of.headline.from());
    out.extend_from_slice(b",\"to\":");
    json::array(out, of.headline.to(), json::string);
    out.push(b',');
    field(out, "subject", of.headline.subject());
    out.extend_from_slice(b",\"date\":\"");
    date(out, of.received);
    let (millis, size, seen) = (of.received.as_millisecond(), of.size, of.seen);
    json::display(out, format_args!("\",\"posix-millis\":{millis},\"size\":{size},\"seen\":{seen}"));
}

/// Appends the field with the mail's header by canonical names.
pub(crate) fn header(out: &mut Vec<u8>, mime: &Mime) {
    out.extend_from_slice(b"\"header\":");
    json::object(out, &mime.header_map(), |out, (name, values)| {
        json::string(out, name);
        out.push(b':');
        json::array(out, values, |out, value| json::string(out, value));
    });
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

/// Appends the records of these messages as the last member of an object.
pub(crate) fn ending_in(mut object: Vec<u8>, messages: &[Summary]) -> Bytes {
    object.reserve(listing_size(messages) + 32);
    object.extend_from_slice(b"\"messages\":");
    json::array(&mut object, messages, record);
    object.extend_from_slice(b"}\n");
    object.into()
}

/// Appends what is wrong with a message.
pub(crate) fn defect(out: &mut Vec<u8>, Defect { name, detail, severe }: &Defect) {
    out.push(b'{');
    field(out, "name", name);
    out.push(b',');
    field(out, "detail", detail);
    json::display(out, format_args!(",\"severe\":{severe}}}"));
}

/// Appends a field with a string as its value. The name must need no escapes.
pub(crate) fn field(out: &mut Vec<u8>, name: &str, value: &str) {
    out.push(b'"');
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
    json::string(out, value);
}

/// Appends a field whose value is a string, or null. The name must need no escapes.
pub(crate) fn optional(out: &mut Vec<u8>, name: &str, value: Option<&str>) {
    match value {
        Some(value) => field(out, name, value),
        None => json::display(out, format_args!("\"{name}\":null")),
    }
}

/// Appends a time in UTC as RFC 3339 has it, always with six digits of fractional seconds and a numeric offset.
pub(crate) fn date(out: &mut Vec<u8>, time: Timestamp) {
    let at = Offset::UTC.to_datetime(time);
    json::display(
        out,
        format_args!(
            "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}+00:00",
            at.year(),
            at.month(),
            at.day(),
            at.hour(),
            at.minute(),
            at.second(),
            at.subsec_nanosecond() / 1000
        ),
    );
}

#[cfg(test)]
mod tests {
    use restante_mail::message::Headline;

    use super::*;

    #[test]
    fn a_listing_is_made_of_records_and_its_length_is_foreseen() {
        let (short, long) = ("<a@example.org>", "x".repeat(2000));
        let table = [(short, vec![short], ""), (&long, vec![short; 3], "Hello"), (short, vec![&long; 9], &long)];
        for (from, to, subject) in table {
            let message = Summary {
                mailbox: "test".to_owned().into(),
                id: 1_794_699_770_123_456.into(),
                headline: Headline::new(from, to, subject),
                received: Timestamp::UNIX_EPOCH,
                size: 1000,
                seen: false,
            };
            assert_eq!(listing(std::slice::from_ref(&message)), format!("[{}]\n", summary_record(&message)));
            let messages = vec![message; 10];
            let (foreseen, length) = (listing_size(&messages), listing(&messages).len());
            assert!(length <= foreseen && foreseen < length * 5 / 4, "{length} {foreseen}");
        }
    }
}
