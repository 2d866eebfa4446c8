//! The JSON of messages: events equal the types that describe them, and sizes are estimated.

use jiff::Timestamp;
use proptest::prelude::*;
use restante_api_types::MessageEntry;
use restante_auth::Grant;
use restante_http_core::response::json;
use restante_http_core::response::message_json::entries_size;
use restante_mail::details::{DetailFields, Details};
use restante_mail::message::{self, Flags, Headline, Summary};
use restante_mail::tags::Tags;
use restante_mailroom::events::{Event, MessageCopies};

use crate::live::frame::{Change, ChangedMessage, MessageChange, add_message, render_change};

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
        flags: Flags::default(),
        modseq: 1,
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

proptest! {
    #[test]
    fn frames_with_messages_equal_serialized_type(message in whole_messages()) {
        let copy = message.first().clone();
        let single = message::Message::group([copy.clone()]).pop().expect("a message");
        let stored = Event::Stored(copy.clone(), MessageCopies::default());
        let deleted = Event::Deleted(copy.clone());
        let table = [(&stored, ChangedMessage::from(&single)), (&deleted, ChangedMessage::deleted(&copy, None))];
        for (event, message) in table {
            let typed = MessageChange { change: Change::new(event, None), message };
            let serialized = restante_api_types::json::to_vec(&typed).expect("JSON");
            prop_assert_eq!(add_message(&render_change(event), event, &Grant::EVERYTHING), serialized);
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
            flags: Flags::default(),
            modseq: 1,
            tags: Tags::new(["run 7"]).expect("a tag"),
            details: Details::new(&fields),
        };
        let messages = vec![message::Message::group(vec![copy; copies]).pop().expect("a message"); 10];
        let entries: Vec<MessageEntry<'_>> = messages.iter().map(Into::into).collect();
        let (estimate, length) = (entries_size(&messages), json::body(&entries).expect("JSON").len());
        assert!(length <= estimate && estimate < length * 5, "{length} {estimate}");
    }
}
