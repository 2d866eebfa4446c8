//! Compares the JSON that hot paths write by hand with the types that describe it.

use jiff::Timestamp;
use proptest::prelude::*;
use restante_api_types::MessageRecord;
use restante_mail::details::Details;
use restante_mail::message::{Headline, Summary};
use restante_mail::mime::{self, Mime};
use restante_mail::tags::Tags;
use restante_mailroom::events::{Event, MessageCopies};

use crate::live::frame::{Change, render_change};
use crate::response::links::Purpose;
use crate::response::message_json::{Attachment, Body, HeaderMap, Message, listing, message};
use crate::response::{json, links};

/// Returns summaries with any texts, including control characters and characters that JSON escapes.
fn summaries() -> impl Strategy<Value = Summary> {
    let text = ".{0,20}|[\\x00-\\x7f]{0,20}";
    let texts = (text, text, prop::collection::vec(text, 0..4), "[a-z@.\"\\\\é]{1,9}");
    let numbers = (any::<u64>(), 0..4_000_000_000_000_000_i64, any::<u64>(), any::<bool>());
    (texts, numbers).prop_map(|((from, subject, to, mailbox), (id, micros, size, seen))| Summary {
        mailbox: mailbox.into(),
        id: id.into(),
        headline: Headline::new(&from, to.iter().map(String::as_str), &subject),
        received: Timestamp::from_microsecond(micros).expect("a time"),
        size,
        seen,
        message: id.into(),
        number: 1,
        tags: Tags::default(),
        details: Details::default(),
    })
}

fn typed_message<'a>(summary: &'a Summary, mime: &Mime, base_url: &str) -> Message<'a> {
    let attachment = |(index, file): (usize, mime::Attachment<'_>)| Attachment {
        download_link: links::attachment(base_url, Purpose::Download, summary, index, &file.filename),
        view_link: links::attachment(base_url, Purpose::View, summary, index, &file.filename),
        md5: file.md5_hex(),
        filename: file.filename,
        content_type: file.content_type,
    };
    Message {
        record: summary.into(),
        body: Body { text: mime.inbucket_text(), html: mime.html() },
        header: HeaderMap::from_mime(mime),
        attachments: mime.attachments().into_iter().enumerate().map(attachment).collect(),
    }
}

proptest! {
    #[test]
    fn listings_equal_serialized_type(messages in prop::collection::vec(summaries(), 0..4)) {
        let records: Vec<MessageRecord<'_>> = messages.iter().map(Into::into).collect();
        prop_assert_eq!(listing(&messages), json::body(&records).expect("JSON"));
    }

    #[test]
    fn messages_equal_serialized_type(
        summary in summaries(),
        header in "[a-zA-Z\\-]{1,9}: [\\x01-\\x09\\x0b\\x0c\\x0e-\\x7fé\"]{0,20}",
        text in "[\\x00-\\x7fé]{0,40}",
        file in "[a-z\"\\x08 é]{0,9}",
    ) {
        let source = format!(
            "{header}\r\nX-Twice: 1\r\nx-twice: 2\r\nContent-Type: multipart/mixed; boundary=\"-=-\"\r\n\r\n---=-\r\n\
             Content-Type: text/plain; charset=utf-8\r\n\r\n{text}\r\n---=-\r\nContent-Type: text/html\r\n\r\n<p>{text}\r\n---=-\r\n\
             Content-Type: image/png\r\nContent-Disposition: attachment; filename=\"{file}\"\r\n\r\n{text}\r\n---=---\r\n"
        );
        let mime = Mime::parse(source.into());
        let typed_message = typed_message(&summary, &mime, "http://x.test/mail");
        prop_assert_eq!(message(&summary, &mime, "http://x.test/mail"), json::body(&typed_message).expect("JSON"));
    }

    #[test]
    fn frames_equal_serialized_type(summary in summaries()) {
        for event in [Event::Stored(summary.clone(), MessageCopies::default()), Event::Deleted(summary)] {
            let serialized = restante_api_types::json::to_vec(&Change::from(&event)).expect("JSON");
            prop_assert_eq!(render_change(&event), serialized);
        }
    }
}
