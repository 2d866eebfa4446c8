//! The query language as tables: queries that match, queries that do not, and the errors of invalid queries.

use bytes::Bytes;
use jiff::Timestamp;
use proptest::prelude::*;
use restante_mail::details::Details;
use restante_mail::message::{Flags, Headline, Summary};
use restante_mail::mime::Mime;
use restante_mail::naming::Naming;
use restante_mail::tags::Tags;

use super::Query;

fn now() -> Timestamp {
    "2026-11-15T18:30:00Z".parse().unwrap()
}

fn query(text: &str) -> Query {
    Query::parse(text, now()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn message() -> (Summary, Mime) {
    let source = "Received: from mx\r\nFrom: \"\u{c9}mile Zola\" <no-reply@shop.example.org>\r\nTo: ann@x.org, bob@y.org\r\n\
        Cc: Carla <carla@z.org>\r\nSubject: Votre code\r\nX-Campaign: Spring Sale 2026\r\n\
        Content-Type: multipart/mixed; boundary=b\r\n\r\n\
        --b\r\nContent-Type: text/html; charset=utf-8\r\n\r\n<p>Your one-time <b>code</b> is 424242, or <i>na\u{ef}ve</i>.</p>\
        <p>\u{78ba}\u{8a8d}\u{30b3}\u{30fc}\u{30c9}</p>\r\n\
        --b\r\nContent-Disposition: attachment; filename=\"Invoice-77.pdf\"\r\n\r\nx\r\n--b--\r\n";
    let summary = Summary {
        mailbox: Naming::Local.parse_mailbox("ann.b").unwrap(),
        id: 7.into(),
        headline: Headline::new(
            "\u{c9}mile Zola <no-reply@shop.example.org>",
            ["<ann@x.org>", "<bob@y.org>"],
            "Votre code",
        ),
        received: "2026-11-15T12:00:00Z".parse().unwrap(),
        size: 2000,
        seen: false,
        flags: Flags::default(),
        modseq: 1,
        message: 7.into(),
        number: 1,
        tags: Tags::new(["Release", "run 7"]).unwrap(),
        details: Details::default(),
    };
    (summary, Mime::parse(Bytes::from(source)))
}

#[test]
fn queries_match_the_expected_messages() {
    let (summary, mime) = message();
    let table = [
        ("", true),
        ("code", true),
        ("CODE your", true),
        ("code nothing", false),
        ("emile", true),
        ("naïve NAIVE", true),
        ("cod", true),
        ("cod*", true),
        ("ode", false),
        ("\"cod\"", false),
        ("\"code\"", true),
        ("\"cod\"*", true),
        ("c", true),
        ("-cod", false),
        ("-\"cod\"", true),
        ("codes", false),
        ("\"one-time code is\"", true),
        ("\"code one\"", false),
        ("\"your one\" code", true),
        ("\"one tim\"*", true),
        ("\"one tim\"", false),
        ("one-tim*", true),
        ("one-tim", true),
        ("one-t", true),
        ("on-time", false),
        ("time-one", false),
        ("確認", true),
        ("認確", false),
        ("no-reply@shop.example.org", true),
        ("reply@shop.example", true),
        ("shop.exa", true),
        ("sho.example", false),
        ("\"shop.exa\"", false),
        ("\"shop.example\"", true),
        ("from:shop.exa", true),
        ("from:\"shop.exa\"", false),
        ("no-reply@shop.example.o", true),
        ("from:zol", true),
        ("from:\"zol\"", false),
        ("carla", true),
        ("cc:carla", true),
        ("cc:carla@z.org", true),
        ("from:zola", true),
        ("from:ann", false),
        ("to:bob", true),
        ("to:\"org bob\"", false),
        ("From:\"emile zola\"", true),
        ("subject:votre", true),
        ("subject:your", false),
        ("body:your", true),
        ("body:votre", false),
        ("body:4242*", true),
        ("body:4242", true),
        ("body:\"4242\"", false),
        ("subject:vot", true),
        ("subject:\"vot\"", false),
        ("to:bo", true),
        ("to:\"bo\"", false),
        ("cc:car", true),
        ("確", true),
        ("\"確認コ\"", true),
        ("émi", true),
        ("filename:invoice-77.pdf", true),
        ("filename:inv*", true),
        ("filename:inv", true),
        ("filename:invoice-7", true),
        ("filename:\"invoice-7\"", false),
        ("filename:77.doc", false),
        ("header:x-campaign", true),
        ("header:X-Campaign=sale", true),
        ("header:X-Campaign=\"spring sale\"", true),
        ("header:X-Campaign=\"sale spring\"", false),
        ("header:X-Campaign=spr*", true),
        ("header:X-Campaign=spr", true),
        ("header:X-Campaign=\"spr\"", false),
        ("header:X-Campaign=\"spring sa\"*", true),
        ("header:X-Campaign=ale", false),
        ("header:X-Campaign=votre", false),
        ("header:Subject=votre", true),
        ("header:received=mx", true),
        ("header:received=from", true),
        ("header:received=\"fro\"", false),
        ("header:content_type=multi", true),
        ("header:x", false),
        ("sale", false),
        ("mailbox:ann.b", true),
        ("mailbox:ANN.B", true),
        ("mailbox:ann", false),
        ("mailbox:ann*", true),
        ("tag:release", true),
        ("tag:RELEASE", true),
        ("tag:\"run 7\"", true),
        ("tag:run", false),
        ("-tag:release", false),
        ("mailbox:\"ann.b\"", true),
        ("has:attachment", true),
        ("is:unseen", true),
        ("is:seen", false),
        ("-is:seen", true),
        ("before:2026-11-15", false),
        ("before:2026-11-16", true),
        ("after:today", true),
        ("after:2h", false),
        ("after:7h before:6h", true),
        ("before:2026-11-15T12:00Z", false),
        ("after:2026-11-15T12:00Z", true),
        ("larger:1k", true),
        ("larger:2000", false),
        ("smaller:2001", true),
        ("smaller:2M larger:1k", true),
        ("-code", false),
        ("-nothing", true),
        ("-\"code one\" your", true),
        ("nothing or code", true),
        ("code or nothing", true),
        ("nothing or never", false),
        ("code nothing or never", false),
        ("code your or never nothing", true),
        ("nothing (code or your)", false),
        ("code (nothing or your)", true),
        ("(nothing OR (code (your)))", true),
        ("-(code nothing)", true),
        ("-(code or nothing)", false),
        ("a or b or c or code", true),
        ("code - & your", true),
        ("Re: code", true),
        ("Fwd: code", false),
        ("is:unseen or body:nothing", true),
        ("\"or\"", true),
        ("12:30", false),
        ("https://shop.example.org/x", false),
    ];
    for (text, expected) in table {
        assert_eq!(query(text).matches(&summary, Some(&mime)), expected, "{text}");
    }
}

#[test]
fn reports_syntax_errors_with_position() {
    let table = [
        ("\"abc", 0, "never closed"),
        ("a (b", 2, "never closed"),
        ("a) b", 1, "never opened"),
        ("a ()", 3, "parentheses are empty"),
        ("or a", 0, "precede this \"or\""),
        ("a or", 4, "follow this \"or\""),
        ("(a or) b", 5, "follow this \"or\""),
        ("a -or b", 3, "minus sign"),
        ("--a", 1, "only one minus sign"),
        ("* & -", 0, "no word to search for"),
        ("a \u{1f389}", 2, "no word to search for"),
        ("a -&", 2, "a word must follow"),
        ("é form:ann", 2, "unknown field form"),
        ("from:", 5, "a word must follow from:"),
        ("from:@", 5, "a word must follow from:"),
        ("subject:\"!\"", 9, "a word must follow subject:"),
        ("code:your", 0, "unknown field code"),
        ("a*b", 1, "end of a word"),
        ("\"a\"b", 3, "after the closing quotation"),
        ("a\"b\"", 1, "before the opening quotation"),
        ("from:a\"b\"", 6, "before the opening quotation"),
        ("header:", 7, "name of a header field"),
        ("header:\"a b\"", 8, "name of a header field"),
        ("header:x=", 7, "follow the equals sign"),
        ("header:x*", 7, "in full"),
        ("mailbox:", 8, "name of a mailbox"),
        ("has:html", 4, "attachment"),
        ("is:read", 3, "seen or unseen"),
        ("before:soon", 7, "a date such as"),
        ("after:", 6, "a date such as"),
        ("larger:big", 7, "a size such as"),
        ("smaller:1*", 8, "a size such as"),
    ];
    for (text, position, problem) in table {
        let error = Query::parse(text, now()).unwrap_err();
        assert!(error.to_string().contains(problem), "{text}: {error}");
        assert_eq!(error.position(), position, "{text}: {error}");
    }
}

#[test]
fn length_terms_and_nesting_are_limited() {
    let within_limit =
        [format!("{}a{}", "(".repeat(16), ")".repeat(16)), "a ".repeat(64), format!("-{}", "x".repeat(4095))];
    for text in &within_limit {
        query(text);
    }
    let over_limit =
        [format!("{}a{}", "(".repeat(17), ")".repeat(17)), "a ".repeat(65), "x".repeat(4097), "(".repeat(4097)];
    for text in &over_limit {
        let error = Query::parse(text, now()).unwrap_err();
        assert!(error.to_string().contains("at most"), "{error}");
    }
}

#[test]
fn knows_whether_the_source_is_needed() {
    let (summary, mime) = message();
    let table = [
        ("", false),
        ("from:zola to:bob subject:code -is:seen larger:1k before:today mailbox:ann*", false),
        ("code", true),
        ("body:code", true),
        ("cc:carla", true),
        ("header:x", true),
        ("filename:x", true),
        ("from:zola or has:attachment", true),
    ];
    for (text, expected) in table {
        let query = query(text);
        assert_eq!(query.needs_source(), expected, "{text}");
        if !expected {
            assert_eq!(query.matches(&summary, None), query.matches(&summary, Some(&mime)), "{text}");
        }
    }
    assert!(query("votre").matches(&summary, None), "words of the summary are found without the source");
    assert!(!query("424242").matches(&summary, None));
}

#[test]
fn read_mark_alone_can_exclude_messages() {
    // Whether a message can match if it is marked as read, and if it is not.
    let table = [
        ("", true, true),
        ("code", true, true),
        ("-code", true, true),
        ("is:seen", true, false),
        ("is:unseen", false, true),
        ("-is:seen", false, true),
        ("code is:unseen", false, true),
        ("code or is:unseen", true, true),
        ("-(code or is:unseen)", true, false),
        ("is:seen is:unseen", false, false),
        ("is:seen or is:unseen", true, true),
        ("tag:other", false, false),
        ("tag:release is:seen", true, false),
    ];
    let (unseen_message, _) = message();
    let seen_message = Summary { seen: true, ..unseen_message.clone() };
    for (text, seen, unseen) in table {
        let query = query(text);
        assert_eq!((query.may_match(&seen_message), query.may_match(&unseen_message)), (seen, unseen), "{text}");
    }
}

#[test]
fn queries_can_be_combined() {
    let (summary, mime) = message();
    let table = [
        ("", "release", true),
        ("code", "release", true),
        ("code or nothing", "other", false),
        ("zzz", "release", false),
    ];
    for (text, tag, is_match) in table {
        assert_eq!(query(text).and(Query::for_tag(tag)).matches(&summary, Some(&mime)), is_match, "{text} {tag}");
    }
    assert!(query("").and(query("")).matches(&summary, None));
}

proptest! {
    #[test]
    fn any_text_is_parsed_or_rejected(text in prop_oneof![
        any::<String>(),
        prop::collection::vec(prop::sample::select(vec![
            "(", ")", "-", "or", " ", "\"", "*", ":", "=", "from:", "header:", "x", "é", "確", "before:", "2h", "larger:", "1k", "is:", "seen",
        ]), 0..40).prop_map(|parts| parts.concat()),
    ]) {
        let (summary, mime) = message();
        match Query::parse(&text, now()) {
            Ok(query) => { query.matches(&summary, Some(&mime)); }
            Err(error) => prop_assert!(error.position() <= text.chars().count()),
        }
    }
}
