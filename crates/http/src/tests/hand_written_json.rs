//! Compares the JSON that hot paths write by hand with the types that describe it.

use jiff::Timestamp;
use proptest::prelude::*;
use restante_api_types::{MessageEntry, MessageRecord, WholeMessage};
use restante_auth::Grant;
use restante_mail::details::{DetailFields, Details};
use restante_mail::message::{self, Headline, Summary};
use restante_mail::mime::{self, Mime};
use restante_mail::tags::Tags;
use restante_mailroom::events::{Event, MessageCopies};
use restante_search::ExcerptPart;

use crate::api::v2::messages::MessageEntries;
use crate::live::frame::{Change, ChangedMessage, MessageChange, add_message, render_change};
use crate::response::entry_json::{EntryPage, Excerpt, entries, entries_size, entry_body, whole_message};
use crate::response::links::Purpose;
use crate::response::message_json::{Attachment, Body, HeaderMap, Message, complete_record, listing, message};
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

/// Returns messages with one to three copies, with and without details and tags.
fn whole_messages() -> impl Strategy<Value = message::Message> {
    let text = ".{0,20}|[\\x00-\\x7f]{0,20}";
    let texts = (text, text, text, prop::collection::vec(text, 0..3), prop::collection::vec(text, 0..3));
    let details = (texts, any::<Option<[u8; 4]>>(), any::<Option<u32>>()).prop_map(|(texts, ip, attachments)| {
        let (sender, login, snippet, cc, recipients) = texts;
        let fields = DetailFields {
            sender: &sender,
            helo: &snippet,
            ip: ip.map(Into::into),
            login: Some(&login),
            host: "mx",
            attachments: attachments.unwrap_or_default(),
            snippet: &snippet,
            cc: &cc,
            recipients: &recipients,
            ..DetailFields::default()
        };
        attachments.map_or_else(Details::default, |_| Details::new(&fields))
    });
    let tags = prop::collection::vec("[a-zé0-9 .@_-]{1,9}", 0..4);
    let copy = (summaries(), details, tags, any::<u32>()).prop_map(|(summary, details, tags, number)| {
        let tags = Tags::from_valid(tags.iter().map(String::as_str));
        Summary { details, tags, number, message: 7.into(), ..summary }
    });
    let copies = prop::collection::vec(copy, 1..4);
    copies.prop_map(|copies| message::Message::group(copies).pop().expect("a message"))
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
        record: complete_record(summary, mime),
        body: Body { text: mime.inbucket_text(), html: mime.html() },
        header: HeaderMap::from_mime(mime),
        attachments: mime.attachments().into_iter().enumerate().map(attachment).collect(),
    }
}

fn excerpts() -> impl Strategy<Value = Excerpt> {
    let part = ("[a-z\"é ]{0,9}", any::<bool>()).prop_map(|(text, is_hit)| ExcerptPart { text, is_hit });
    prop::collection::vec(part, 0..3)
}

fn excerpt_records(excerpt: &Excerpt) -> Vec<restante_api_types::ExcerptPart<'_>> {
    let mut records = Vec::new();
    for ExcerptPart { text, is_hit } in excerpt {
        records.push(restante_api_types::ExcerptPart { text: text.into(), hit: *is_hit });
    }
    records
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
    fn whole_messages_equal_serialized_types(
        messages in prop::collection::vec(whole_messages(), 0..4),
        next in any::<Option<u64>>(),
        mailbox in prop::option::of("[a-z@.\"\\\\é]{1,9}"),
        search in prop::option::of((prop::collection::vec(excerpts(), 0..4), any::<bool>())),
    ) {
        let typed = MessageEntries {
            messages: messages.iter().map(Into::into).collect(),
            next: next.map(|id| id.to_string()),
            mailbox: mailbox.as_deref(),
            excerpts: search.as_ref().map(|(excerpts, _)| excerpts.iter().map(excerpt_records).collect()),
            complete: search.as_ref().map(|(_, is_complete)| *is_complete),
        };
        let name = mailbox.clone().map(Into::into);
        let page = EntryPage {
            messages: &messages,
            next: next.map(Into::into),
            mailbox: name.as_ref(),
            search: search.as_ref().map(|(excerpts, is_complete)| (excerpts.as_slice(), *is_complete)),
        };
        prop_assert_eq!(entries(page), json::body(&typed).expect("JSON"));
        for message in &messages {
            prop_assert_eq!(entry_body(message), json::body(&MessageEntry::from(message)).expect("JSON"));
            prop_assert_eq!(whole_message(message), json::body(&WholeMessage::from(message)).expect("JSON"));
        }
    }

    #[test]
    fn frames_with_messages_equal_serialized_type(message in whole_messages()) {
        let copy = message.first().clone();
        let single = message::Message::group([copy.clone()]).pop().expect("a message");
        let stored = Event::Stored(copy.clone(), MessageCopies::default());
        let deleted = Event::Deleted(copy.clone());
        let table = [(&stored, ChangedMessage::from(&single)), (&deleted, ChangedMessage::from(&copy))];
        for (event, message) in table {
            let typed = MessageChange { change: event.into(), message };
            let serialized = restante_api_types::json::to_vec(&typed).expect("JSON");
            prop_assert_eq!(add_message(&render_change(event), event, &Grant::EVERYTHING), serialized);
        }
    }

    #[test]
    fn frames_equal_serialized_type(summary in summaries()) {
        for event in [Event::Stored(summary.clone(), MessageCopies::default()), Event::Deleted(summary)] {
            let serialized = restante_api_types::json::to_vec(&Change::from(&event)).expect("JSON");
            prop_assert_eq!(render_change(&event), serialized);
        }
    }
}

#[test]
fn size_of_entries_is_estimated() {
    let (short, long) = ("<a@example.org>", "x".repeat(2000));
    for (from, subject, copies) in [(short, "", 1), (short, "Hello", 3), (&long, &long, 20)] {
        let recipients = ["somebody@example.org".to_owned()];
        let fields =
            DetailFields { sender: short, snippet: "Hello", recipients: &recipients, ..DetailFields::default() };
        let copy = Summary {
            mailbox: "somebody".to_owned().into(),
            id: 1_794_699_770_123_456.into(),
            message: 1_794_699_770_123_456.into(),
            number: 1,
            headline: Headline::new(from, [short], subject),
            received: Timestamp::UNIX_EPOCH,
            size: 1000,
            seen: false,
            tags: Tags::new(["run 7"]).expect("a tag"),
            details: Details::new(&fields),
        };
        let messages = vec![message::Message::group(vec![copy; copies]).pop().expect("a message"); 10];
        let (estimate, length) =
            (entries_size(&messages), entries(EntryPage { messages: &messages, ..EntryPage::default() }).len());
        assert!(length <= estimate && estimate < length * 5, "{length} {estimate}");
    }
}
