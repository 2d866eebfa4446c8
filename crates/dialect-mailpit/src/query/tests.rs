//! Which messages match a query, as tables.

use jiff::Timestamp;
use restante_mail::details::{DetailFields, Details};
use restante_mail::message::{Flags, Headline, Message, Summary};
use restante_mail::mime::{Mime, header_summary, summarize};
use restante_mail::tags::Tags;

use super::Query;
use super::evaluate::Decision;
use super::search_text::search_text;

const MAIL: &str = "From: \"Ann, B\" <Ann@x.org>\r\nFrom: second@x.org\r\nTo: Bob <bob@x.org>, carl@x.org\r\n\
    Cc: D\u{e9}sir\u{e9}e <d@x.org>\r\nReply-To: Support <re@x.org>\r\nSubject: =?utf-8?q?Your_Code,_Gr=C3=BC=C3=9Fe?=\r\n\
    Message-ID: <Id-1@x.org>\r\nX-Other: hidden\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n\
    --b\r\n\r\nThe  text;\r\nwith (lines) and 100%\r\n\
    --b\r\nContent-Disposition: attachment; filename=\"In Voice.pdf\"\r\n\r\nx\r\n\
    --b\r\nContent-Type: image/png; name=logo.png\r\nContent-Disposition: inline\r\n\r\nx\r\n--b--\r\n";

/// Random texts: letters whose lower case has another length or another form at the end of a word, separators, and few
/// other letters, so that parts of texts are found.
pub(super) const TEXT: &str = "[aAbBÄßẞİıΣς<>,;()\"@. -]{0,12}";

/// Returns a message as it is after its delivery to these recipients.
pub(super) fn deliver(source: &str, recipients: &[&str], tags: &[&str]) -> Message {
    let (header, preview) = summarize(source.as_bytes());
    let recipients: Vec<String> = recipients.iter().map(|&recipient| recipient.to_owned()).collect();
    let fields =
        DetailFields { sender: "bounce@x.org", recipients: &recipients, ..DetailFields::of_source(&header, &preview) };
    let to = header.to.clone().unwrap_or_default();
    let copy = Summary {
        mailbox: "bob".to_owned().into(),
        id: 17.into(),
        message: 17.into(),
        number: 1,
        headline: Headline::new(
            header.from.as_deref().unwrap_or_default(),
            to.iter().map(String::as_str),
            &header.subject,
        ),
        received: "2026-11-16T12:00:00.5Z".parse::<Timestamp>().unwrap(),
        size: 2048,
        seen: false,
        flags: Flags::default(),
        modseq: 1,
        tags: Tags::new(tags.iter().copied()).unwrap(),
        details: Details::new(&fields),
    };
    Message::group([copy]).remove(0)
}

/// Returns whether a message matches, and whether its summary was enough to know.
fn matches(query: &str, message: &Message, source: &str) -> (bool, bool) {
    let query = Query::parse(query, Some("UTC")).unwrap();
    let (by_source, _) = query.check_source(message, source.to_owned().into());
    match query.check_summary(message) {
        decision if decision.is_undecided() => (by_source, false),
        decision => {
            assert_eq!(decision == Decision::Match, by_source, "{query:?}");
            (by_source, true)
        }
    }
}

fn text_of(message: &Message, source: &str) -> String {
    search_text(message, &header_summary(source.as_bytes()), &Mime::parse(source.to_owned().into()))
}

#[test]
fn search_text_has_fields_body_and_file_names() {
    let message = deliver(MAIL, &["bob@x.org", "eve@x.org"], &[]);
    let expected = "ann b ann@x.org your code grüße bob bob@x.org carl@x.org désirée d@x.org eve@x.org support re@x.org \
        bounce@x.org the text with lines and 100% in voice.pdf";
    assert_eq!(text_of(&message, MAIL), expected);
}

#[test]
fn attachments_are_found_by_name() {
    let part = |header: &str| format!("--b\r\nContent-Type: {header}\r\n\r\nx\r\n");
    let source = format!(
        "Content-Type: multipart/encrypted; boundary=b\r\n\r\n{}{}{}--b--\r\n",
        part("application/pgp-encrypted; name=version.asc"),
        part("application/octet-stream\r\nContent-Disposition: inline; filename=encrypted.asc"),
        part("image/png\r\nContent-Disposition: inline; filename=logo.png"),
    );
    let single = "Content-Type: application/pdf; name=single.pdf\r\n\r\nx\r\n";
    for (source, query, expected) in [
        (source.as_str(), "\"encrypted.asc\"", true),
        (&source, "version.asc", false),
        (&source, "logo.png", false),
        (single, "single.pdf", true),
    ] {
        assert_eq!(matches(query, &deliver(source, &[], &[]), source), (expected, false), "{query}");
    }
}

#[test]
fn html_is_searched_instead_of_text() {
    let source = "Content-Type: multipart/alternative; boundary=b\r\n\r\n--b\r\n\r\nplain\r\n\
        --b\r\nContent-Type: text/html\r\n\r\n<p>rich</p>\r\n--b--\r\n";
    for (source, expected) in [(source.to_owned(), "rich"), (source.replace("rich", ""), "plain")] {
        let message = deliver(&source, &[], &[]);
        assert_eq!(text_of(&message, &source), format!("bounce@x.org {expected}"));
    }
}

#[test]
fn terms_match_the_summary() {
    let message = deliver(MAIL, &["bob@x.org", "eve@x.org"], &["Release 7"]);
    let table = [
        ("", true),
        ("from:ann@X.org", true),
        ("from:second", false),
        ("from:\"ann, b\"", false),
        ("-from:nobody", true),
        ("to:bob", true),
        ("to:CARL@", true),
        ("to:eve", false),
        ("to:name", false),
        ("cc:désirée", true),
        ("cc:bob", false),
        ("bcc:eve@x.org", true),
        ("bcc:bob", false),
        ("reply-to:support", true),
        ("reply-to:re@x.org", true),
        ("addressed:eve", true),
        ("addressed:support", true),
        ("addressed:nobody", false),
        ("-addressed:eve", false),
        ("subject:code,", true),
        ("subject:\"your code\"", true),
        ("subject:GRÜSSE", false),
        ("subject:GRÜ", true),
        ("!subject:code", false),
        ("message-id:<ID-1@x.org>", true),
        ("message-id:other", false),
        ("tag:\"release 7\"", true),
        ("tag:release", false),
        ("-tag:release", true),
        ("is:tagged", true),
        ("-is:tagged", false),
        ("is:unread -is:read", true),
        ("is:read", false),
        ("has:attachment has:inline", true),
        ("-has:attachments", false),
        ("larger:2k", false),
        ("smaller:2k", false),
        ("-larger:2k", false),
        ("larger:2047 smaller:2049", true),
        ("-smaller:2047", true),
        ("after:2026-11-16 before:2026-11-17", true),
        ("after:2026-11-16T12:00:00.5Z before:2026-11-16T12:00:00.5Z", true),
        ("-after:2026-11-16T12:00:00.5Z -before:2026-11-16T12:00:00.5Z", true),
        ("before:2026-11-16", false),
        ("-before:2026-11-16", true),
        ("-after:2026-11-16", false),
        // Words that the summary contains.
        ("ann code grüße bounce@x.org", true),
        ("-bob", false),
        ("nothing from:nobody", false),
    ];
    for (query, expected) in table {
        assert_eq!(matches(query, &message, MAIL), (expected, true), "{query}");
    }
}

#[test]
fn words_match_the_source() {
    let message = deliver(MAIL, &["bob@x.org"], &[]);
    let table = [
        ("text", true),
        ("TEX", true),
        ("ext", true),
        ("\"the text with lines\"", true),
        ("\"text; with (lines\"", true),
        ("\"grüße bob\"", true),
        ("\"lines the\"", false),
        ("100%", true),
        ("1%0", false),
        ("voice.pdf", true),
        ("logo.png", false),
        ("hidden", false),
        ("-hidden", true),
        ("-lines", false),
        ("code lines from:ann", true),
    ];
    for (query, expected) in table {
        assert_eq!(matches(query, &message, MAIL), (expected, false), "{query}");
    }
}

#[test]
fn long_lists_are_read_from_the_source() {
    let cc: Vec<String> = (0..200).map(|number| format!("person{number:03}@x.org")).collect();
    let source = format!("From: a@x.org\r\nCc: {}\r\n\r\nHi\r\n", cc.join(", "));
    let message = deliver(&source, &["person199@x.org", "eve@x.org"], &[]);
    for (query, expected) in [
        ("cc:person000", (true, true)),
        ("cc:person199", (true, false)),
        ("-cc:person199", (false, false)),
        ("cc:person200", (false, false)),
        ("addressed:person150", (true, false)),
        ("to:person199", (false, false)),
        ("bcc:eve", (true, false)),
        ("-bcc:eve", (false, false)),
        ("bcc:person", (false, false)),
        ("-bcc:person", (true, false)),
        ("-addressed:eve", (false, false)),
        ("eve@x.org", (true, false)),
        ("-eve@x.org", (false, false)),
        ("-person199@x.org", (false, false)),
    ] {
        assert_eq!(matches(query, &message, &source), expected, "{query}");
    }
}

#[test]
fn long_values_are_read_from_the_source() {
    let long = |length: usize| "x".repeat(length);
    let many = |name: &str| (0..200).map(|number| format!("{name}{number:03}@x.org")).collect::<Vec<_>>().join(",");
    let table = [
        // The summary has the beginning only, the source is read completely.
        (format!("Reply-To: {}\r\n", many("re")), "reply-to:re199", Some(true)),
        (format!("Message-ID: <{}end@x.org>\r\n", long(2000)), "message-id:end@x.org", Some(true)),
        (format!("From: {} end\r\n", long(300)), "from:end", Some(true)),
        // The source has more than is read of it.
        (format!("Subject: {} end\r\n", long(5000)), "subject:end", None),
        (format!("Message-ID: <{}end@x.org>\r\n", long(5000)), "message-id:end@x.org", None),
        (format!("From: {} end <a@x.org>\r\n", long(600)), "from:end", None),
        (format!("To: {}last@x.org\r\n", "a@x.org,".repeat(1000)), "to:last", None),
        (format!("To: {}last@x.org\r\n", "a@x.org,".repeat(1000)), "addressed:last", None),
        // Whether the recipient is hidden is not known either.
        (format!("To: {}bob@x.org\r\n", "a@x.org,".repeat(1000)), "bcc:bob", None),
    ];
    for (header, query, is_met) in table {
        let source = format!("{header}\r\nHi\r\n");
        let message = deliver(&source, &["bob@x.org"], &[]);
        assert_eq!(matches(query, &message, &source), (is_met == Some(true), false), "{query}");
        let excluded = format!("-{query}");
        assert_eq!(matches(&excluded, &message, &source), (is_met == Some(false), false), "{excluded}");
    }
}

#[test]
fn values_that_are_not_stored_are_read_from_the_source() {
    let mut copy = deliver(MAIL, &["bob@x.org"], &[]).into_copies().remove(0);
    copy.details = Details::from_encoded("ann@x.org\nlaptop\n\n\nmx\n0\nHello\n0\nbob@x.org\n");
    let message = Message::group([copy]).remove(0);
    for query in ["reply-to:support", "message-id:id-1", "cc:d@x.org", "has:attachment", "has:inline"] {
        assert_eq!(matches(query, &message, MAIL), (true, false), "{query}");
        assert_eq!(matches(&format!("-{query}"), &message, MAIL), (false, false), "{query}");
    }
}

/// An excluded part could be among those that were not counted.
#[test]
fn parts_that_are_not_counted_are_read_from_the_source() {
    let mut copy = deliver(MAIL, &["bob@x.org"], &[]).into_copies().remove(0);
    let (header, preview) = summarize(MAIL.split("Content-Disposition").next().unwrap().as_bytes());
    let start = DetailFields { omits_parts: true, ..DetailFields::of_source(&header, &preview) };
    let incomplete = [
        Details::default(),
        Details::new(&start),
        // Written by earlier versions.
        Details::from_encoded("ann@x.org\nlaptop\n\n\nmx\n0\nHello\n0\nbob@x.org\n"),
        Details::from_encoded("ann@x.org\nlaptop\n\n\nmx\n7\nHello\n0 0 0\nbob@x.org\n"),
    ];
    let plain = "From: ann@x.org\r\n\r\nHi\r\n";
    for details in incomplete {
        copy.details = details;
        let message = Message::group([copy.clone()]).remove(0);
        for query in ["has:attachment", "has:inline"] {
            let excluded = format!("-{query}");
            assert_eq!(matches(query, &message, MAIL), (true, false), "{query} {message:?}");
            assert_eq!(matches(&excluded, &message, MAIL), (false, false), "{excluded} {message:?}");
            assert_eq!(matches(query, &message, plain), (false, false), "{query} {message:?}");
            assert_eq!(matches(&excluded, &message, plain), (true, false), "{excluded} {message:?}");
        }
    }
}

#[test]
fn terms_that_the_parsed_part_of_a_message_does_not_decide_do_not_match() {
    let head = "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\nfirst\r\n";
    let file = "--b\r\nContent-Disposition: attachment\r\n\r\nx\r\n";
    let encoded = "--b\r\nContent-Transfer-Encoding: base64\r\n\r\na2VlcA==\r\n";
    let parts = |count: usize| "--b\r\n\r\npart\r\n".repeat(count);
    let level = |number| format!("Content-Type: multipart/mixed; boundary=b{number}\r\n\r\n--b{number}\r\n");
    let levels: String = (0..60).map(level).collect();
    let fields = "X-Filler: x\r\n".repeat(1000);
    let table = [
        (format!("{head}{}{encoded}--b--\r\n", parts(1000)), "keep", None),
        (format!("{head}{}{file}--b--\r\n", parts(1000)), "first", Some(true)),
        (format!("{head}{}{file}--b--\r\n", parts(1000)), "has:attachment", None),
        (format!("{head}{}{file}--b--\r\n", parts(1000)), "has:inline", None),
        (format!("{head}{file}{}--b--\r\n", parts(1000)), "has:attachment", Some(true)),
        (format!("{levels}Content-Transfer-Encoding: base64\r\n\r\na2VlcA==\r\n"), "keep", None),
        (format!("{fields}Reply-To: keep at x\r\n\r\nHi\r\n"), "keep", None),
        (format!("{fields}\r\nHi\r\n"), "has:attachment", Some(false)),
    ];
    for (source, query, is_met) in table {
        let message = deliver(&source, &["bob@x.org"], &[]);
        assert_eq!(matches(query, &message, &source).0, is_met == Some(true), "{query}");
        let excluded = format!("-{query}");
        assert_eq!(matches(&excluded, &message, &source).0, is_met == Some(false), "{excluded}");
    }
}

/// The index knows only texts.
#[test]
fn undecided_texts_are_distinguished_from_other_undecided_terms() {
    let cc: Vec<String> = (0..200).map(|number| format!("person{number:03}@x.org")).collect();
    let message = deliver(&format!("From: a@x.org\r\nCc: {}\r\n\r\nHi\r\n", cc.join(", ")), &[], &[]);
    let table = [
        ("word", Decision::UndecidedTexts),
        ("word -other is:unread", Decision::UndecidedTexts),
        ("word -cc:person199", Decision::Undecided),
        ("-cc:person199 word", Decision::Undecided),
        ("cc:person199", Decision::Undecided),
        ("word cc:person199 is:read", Decision::NoMatch),
        ("is:unread", Decision::Match),
    ];
    for (query, expected) in table {
        assert_eq!(Query::parse(query, None).unwrap().check_summary(&message), expected, "{query}");
    }
}

#[test]
fn tags_of_all_copies_are_searched() {
    let copies = (1..=3).map(|id: u64| {
        let tags: Vec<String> = (0..10).map(|number| format!("tag {id} {number}")).collect();
        let tags: Vec<&str> = tags.iter().map(String::as_str).collect();
        let copy = deliver(MAIL, &["bob@x.org"], &tags).into_copies().remove(0);
        Summary { id: (16 + id).into(), ..copy }
    });
    let message = Message::group(copies).remove(0);
    assert_eq!(matches("tag:\"tag 3 9\"", &message, MAIL), (true, true));
    assert_eq!(matches("-tag:\"tag 3 9\"", &message, MAIL), (false, true));
}

/// Takes very long if the texts of the message are prepared for each term.
#[test]
fn texts_are_prepared_once_for_all_terms() {
    let to: Vec<String> = (0..1000).map(|number| format!("P{number} <p{number}@x.org>")).collect();
    let source = format!("From: ann@x.org\r\nTo: {}\r\n\r\nHi\r\n", to.join(", "));
    let message = deliver(&source, &[], &[]);
    for field in ["", "to:", "addressed:"] {
        let query = Query::parse(&format!("-{field}nobody ").repeat(64), None).unwrap();
        for _ in 0..20 {
            assert_ne!(query.check_summary(&message), Decision::NoMatch, "{field}");
        }
    }
}
