//! The regular expressions for names and ids in the description. The regular expression engines of JavaScript, Python, Go
//! and Rust all accept them. They match the usual forms: the server also accepts other forms of an address, such as quoted
//! local parts, and some matching texts are not valid, because the patterns do not check the lengths and hyphens of
//! domain labels, white space and symbols beyond ASCII, the length and the levels of folders, or whether a number of 20 digits is too large.

use std::sync::LazyLock;

use proptest::prelude::*;
use regex::Regex;
use restante_mail::address::{Address, Alphabet};
use restante_mail::message::MessageId;
use restante_mail::naming::Naming;
use restante_mail::tags::{self, MAX_TAG_CHARS};
use serde_json::Value;

use super::document;

const ALL: [Naming; 3] = [Naming::Local, Naming::Full, Naming::Domain];

/// Matches every mailbox name under every naming: a local part, a local part with a domain, or a domain, in lower case.
/// A domain can be an address literal. The name of a folder can follow.
const MAILBOX_NAME: &str = r#"^(([a-z0-9][a-z0-9-]{0,61})?[a-z0-9]:)?([^\x00-\x20A-Z"(),.:;<>@\[\\\]\x7F-\xA0]+(\.[^\x00-\x20A-Z"(),.:;<>@\[\\\]\x7F-\xA0]+)*(@([^\x00-,./:-^`{-\xA0]+(\.[^\x00-,./:-^`{-\xA0]+)*|\[[0-9a-fipv:.]+\]))?|\[[0-9a-fipv:.]+\])(,[^\x00-\x1F%*\x7F-\x9F]+)?$"#;

static DEFINITIONS: LazyLock<Value> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../../../http-openapi/src/api/definitions.json")).expect("JSON")
});

/// Returns the pattern in a definition of the description.
pub(super) fn definition(name: &str) -> &'static str {
    DEFINITIONS[name]["pattern"].as_str().expect("a pattern")
}

fn matches(pattern: &str, text: &str) -> bool {
    Regex::new(pattern).expect("a pattern").is_match(text)
}

fn matches_definition(name: &str, text: &str) -> bool {
    matches(definition(name), text)
}

#[test]
fn names_and_addresses() {
    // The text, whether it is a mailbox name, and whether a path accepts it.
    let table = [
        ("bob", true, true),
        ("first.last", true, true),
        ("+label", true, true),
        ("chars!#$%&'*-/=?^_`.{|}~", true, true),
        ("james@x.org", true, true),
        ("jöran@bücher.example", true, true),
        ("a@[ipv6:2001:db8::1]", true, true),
        ("[192.0.2.1]", true, true),
        ("bob,Sent", true, true),
        ("shop:a@[ipv6:2001:db8::1],Archive/2024, a:b", true, true),
        ("bob,Entwürfe\u{a0}x", true, true),
        ("Bob+Shop@Example.org,Sent", false, true),
        ("bob,", false, false),
        (",Sent", false, false),
        ("bob,a*", false, false),
        ("bob,a%", false, false),
        ("bob,a\"", true, true),
        ("bob,a\\b", true, true),
        ("bob,a\nb", false, false),
        ("Bob+Shop@Example.org", false, true),
        ("a@[IPv6:2001:DB8::1]", false, true),
        ("", false, false),
        ("a b", false, false),
        ("a..b", false, false),
        (".a", false, false),
        ("a@", false, false),
        ("a@b@c", false, false),
        ("a\u{7f}", false, false),
        ("a\n", false, false),
        ("[x", false, false),
    ];
    for (text, is_name, is_accepted_in_path) in table {
        assert_eq!(matches(MAILBOX_NAME, text), is_name, "{text:?}");
        assert_eq!(matches_definition("name-or-address", text), is_accepted_in_path, "{text:?}");
    }
}

#[test]
fn ids() {
    for text in ["1", "17", "1794699770123456", "18446744073709551615"] {
        assert!(
            text.parse::<MessageId>().is_ok()
                && matches_definition("id", text)
                && matches_definition("id-or-latest", text),
            "{text}"
        );
        assert!(matches_definition("ids", text) && matches_definition("ids", &format!("{text},17")), "{text}");
    }
    for text in ["", "0", "017", "+17", "-1", "17 ", "x", "184467440737095516150"] {
        assert!(
            text.parse::<MessageId>().is_err()
                && !matches_definition("id", text)
                && !matches_definition("id-or-latest", text),
            "{text}"
        );
    }
    assert!(matches_definition("id-or-latest", "latest") && !matches_definition("id", "latest"));
    assert!(matches_definition("ids", "") && !matches_definition("ids", "1,,2"));
}

#[test]
fn addresses() {
    for text in ["bob@x.org", "Bob+Shop@Example.org", "jöran@bücher.example", "o'neil@localhost"] {
        assert!(Address::parse(text, Alphabet::Utf8).is_ok() && matches_definition("address", text), "{text}");
        assert!(matches_definition("address-or-empty", text), "{text}");
    }
    for text in ["", "bob", "bob@", "@x.org", "a b@x.org", "a..b@x.org", "a@b@c", "a@x.org\n", "a@x..org"] {
        assert!(Address::parse(text, Alphabet::Utf8).is_err() && !matches_definition("address", text), "{text:?}");
        assert_eq!(matches_definition("address-or-empty", text), text.is_empty(), "{text:?}");
    }
}

#[test]
fn tags_have_the_pattern() {
    let longest = "x".repeat(MAX_TAG_CHARS);
    for text in ["a", "run 7", "a  b", "-_.@$", "Größe", "版本", longest.as_str()] {
        assert!(tags::validate(text).is_ok() && matches_definition("tag", text), "{text}");
    }
    for text in ["", "a,b", "a\tb", "#1", "%1", "a:b", "a\u{80}", &format!("{longest}x")] {
        assert!(tags::validate(text).is_err() && !matches_definition("tag", text), "{text:?}");
    }
    assert!(
        !matches_definition("tag", " a") && !matches_definition("tag", "a ") && !matches_definition("tag", " "),
        "spaces at the ends are ignored"
    );
}

/// Attributes of types cannot refer to constants, so the types repeat the patterns.
#[tokio::test]
async fn types_repeat_the_patterns() {
    let document = document().await;
    let pattern =
        |schema: &str, field: &str| document["components"]["schemas"][schema]["properties"][field]["pattern"].clone();
    for schema in ["MessageRecord", "Identifier", "MessageCopy"] {
        assert_eq!(pattern(schema, "mailbox"), MAILBOX_NAME);
        assert_eq!(pattern(schema, "id"), definition("id"));
    }
    assert_eq!(pattern("Mailbox", "name"), MAILBOX_NAME);
    for schema in ["Newest", "MessageEntry"] {
        assert_eq!(pattern(schema, "id"), definition("id"));
    }
}

proptest! {
    #[test]
    fn every_name_matches(text in "[a-zA-Z+.\\-\\[\\]\"@:0-9İßΣ\u{300}-\u{310}]{1,30}|.{1,30}|[a-zA-ZΣİ+]{1,8}@[a-zA-Z.]{1,8}|\\[[0-9a-f:]{2,9}\\]|[a-z@]{1,5},.{1,20}") {
        for naming in ALL {
            if let Ok(name) = naming.parse_mailbox(&text) {
                prop_assert!(matches(MAILBOX_NAME, name.as_str()), "{} under {}", name, naming);
                prop_assert!(matches_definition("name-or-address", name.as_str()), "{} under {}", name, naming);
            }
        }
    }
}
