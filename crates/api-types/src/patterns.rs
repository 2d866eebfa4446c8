//! Regular expressions for names and ids in the OpenAPI document. The regular expression engines of JavaScript, Python,
//! Go and Rust all accept them. Attributes of types cannot refer to constants, so the types repeat the patterns; a test
//! compares them.

/// Matches every mailbox name under every naming: a local part, a local part with a domain, or a domain, in lower case.
/// A domain can be an address literal. Some matching texts are not valid names: the pattern does not check the lengths
/// and hyphens of domain labels, or white space beyond Latin-1.
pub const MAILBOX_NAME: &str = r#"^([^\x00-\x20A-Z"(),.:;<>@\[\\\]\x7F-\xA0]+(\.[^\x00-\x20A-Z"(),.:;<>@\[\\\]\x7F-\xA0]+)*(@([^\x00-,./:-^`{-\xA0]+(\.[^\x00-,./:-^`{-\xA0]+)*|\[[0-9a-fipv:.]+\]))?|\[[0-9a-fipv:.]+\])$"#;

/// Matches what [`MAILBOX_NAME`] matches, in upper and lower case: a mailbox name, or an address whose local part needs
/// no quotes. The server also accepts other forms of an address, such as quoted local parts.
pub const NAME_OR_ADDRESS: &str = r#"^([^\x00-\x20"(),.:;<>@\[\\\]\x7F-\xA0]+(\.[^\x00-\x20"(),.:;<>@\[\\\]\x7F-\xA0]+)*(@([^\x00-,./:-@\[-^`{-\xA0]+(\.[^\x00-,./:-@\[-^`{-\xA0]+)*|\[[0-9A-FIPVa-fipv:.]+\]))?|\[[0-9A-FIPVa-fipv:.]+\])$"#;

/// Matches the id of a message or session: a 64-bit number without leading zeros. A number of 20 digits can be too
/// large.
pub const ID: &str = "^[1-9][0-9]{0,19}$";

/// Matches [`ID`] and the word `latest`, which stands for the newest message.
pub const ID_OR_LATEST: &str = "^(latest|[1-9][0-9]{0,19})$";

/// Matches a list of ids, separated by commas. It can be empty.
pub const IDS: &str = "^([1-9][0-9]{0,19}(,[1-9][0-9]{0,19})*)?$";

/// The part that [`ADDRESS`] and [`ADDRESS_OR_EMPTY`] share.
macro_rules! address {
    () => {
        r#"[^\x00-\x20"(),.:;<>@\[\\\]\x7F-\xA0]+(\.[^\x00-\x20"(),.:;<>@\[\\\]\x7F-\xA0]+)*@[^\x00-,./:-@\[-^`{-\xA0]+(\.[^\x00-,./:-@\[-^`{-\xA0]+)*"#
    };
}

/// Matches an address whose local part needs no quotes, with a domain name. Like [`NAME_OR_ADDRESS`], it does not check
/// lengths and hyphens. The server also accepts quoted local parts and address literals.
pub const ADDRESS: &str = concat!("^", address!(), "$");

/// Matches [`ADDRESS`], and an empty text, which is the null sender.
pub const ADDRESS_OR_EMPTY: &str = concat!("^(", address!(), ")?$");

/// Matches a tag without spaces at its ends. Some matching texts are not valid tags: the pattern does not exclude symbols
/// beyond ASCII.
pub const TAG: &str = r"^[^\x00-,/:-?\[-^`{-\xA0]([^\x00-\x1F!-,/:-?\[-^`{-\xA0]{0,62}[^\x00-,/:-?\[-^`{-\xA0])?$";

/// Matches a duration: a number of seconds, or numbers with units.
pub const DURATION: &str = r"^([0-9]+(\.[0-9]+)?|([0-9]+(\.[0-9]+)?(ms|s|m|h))+)$";

/// Matches the text of a header field: one without line breaks and other control characters.
pub const LINE: &str = r"^[^\x00-\x1F\x7F-\x9F]*$";

/// Matches the name of a header field.
pub const FIELD_NAME: &str = "^[!-9;-~]{1,70}$";

/// Matches base64 with padding.
pub const BASE64: &str = "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?$";

/// Matches a Content-ID, with or without angle brackets.
pub const CONTENT_ID: &str = "^<?[!-;=?-~]+>?$";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use regex::Regex;
    use restante_mail::address::{Address, Alphabet};
    use restante_mail::message::MessageId;
    use restante_mail::naming::Naming;
    use restante_mail::tags::{self, MAX_TAG_CHARS};
    use serde_json::Value;
    use utoipa::PartialSchema;

    use super::*;
    use crate::{Identifier, Mailbox, MessageCopy, MessageEntry, MessageRecord, Newest};

    fn matches(pattern: &str, text: &str) -> bool {
        Regex::new(pattern).expect("a pattern").is_match(text)
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
            assert_eq!(matches(NAME_OR_ADDRESS, text), is_accepted_in_path, "{text:?}");
        }
    }

    #[test]
    fn ids() {
        for text in ["1", "17", "1794699770123456", "18446744073709551615"] {
            assert!(text.parse::<MessageId>().is_ok() && matches(ID, text) && matches(ID_OR_LATEST, text), "{text}");
            assert!(matches(IDS, text) && matches(IDS, &format!("{text},17")), "{text}");
        }
        for text in ["", "0", "017", "+17", "-1", "17 ", "x", "184467440737095516150"] {
            assert!(text.parse::<MessageId>().is_err() && !matches(ID, text) && !matches(ID_OR_LATEST, text), "{text}");
        }
        assert!(matches(ID_OR_LATEST, "latest") && !matches(ID, "latest"));
        assert!(matches(IDS, "") && !matches(IDS, "1,,2"));
    }

    #[test]
    fn addresses() {
        for text in ["bob@x.org", "Bob+Shop@Example.org", "jöran@bücher.example", "o'neil@localhost"] {
            assert!(Address::parse(text, Alphabet::Utf8).is_ok() && matches(ADDRESS, text), "{text}");
            assert!(matches(ADDRESS_OR_EMPTY, text), "{text}");
        }
        for text in ["", "bob", "bob@", "@x.org", "a b@x.org", "a..b@x.org", "a@b@c", "a@x.org\n", "a@x..org"] {
            assert!(Address::parse(text, Alphabet::Utf8).is_err() && !matches(ADDRESS, text), "{text:?}");
            assert_eq!(matches(ADDRESS_OR_EMPTY, text), text.is_empty(), "{text:?}");
        }
    }

    #[test]
    fn tags_have_the_pattern() {
        let longest = "x".repeat(MAX_TAG_CHARS);
        for text in ["a", "run 7", "a  b", "-_.@", "Größe", "版本", longest.as_str()] {
            assert!(tags::validate(text).is_ok() && matches(TAG, text), "{text}");
        }
        for text in ["", "a,b", "a\tb", "#1", "a:b", "a\u{80}", &format!("{longest}x")] {
            assert!(tags::validate(text).is_err() && !matches(TAG, text), "{text:?}");
        }
        assert!(!matches(TAG, " a") && !matches(TAG, "a ") && !matches(TAG, " "), "spaces at the ends are ignored");
    }

    #[test]
    fn types_repeat_the_patterns() {
        let pattern = |schema: utoipa::openapi::RefOr<utoipa::openapi::Schema>, field: &str| -> Value {
            serde_json::to_value(schema).expect("JSON")["properties"][field]["pattern"].take()
        };
        for schema in [MessageRecord::schema(), Identifier::schema(), MessageCopy::schema()] {
            assert_eq!(pattern(schema.clone(), "mailbox"), MAILBOX_NAME);
            assert_eq!(pattern(schema, "id"), ID);
        }
        assert_eq!(pattern(Mailbox::schema(), "name"), MAILBOX_NAME);
        assert_eq!(pattern(Newest::schema(), "id"), ID);
        assert_eq!(pattern(MessageEntry::schema(), "id"), ID);
    }

    proptest! {
        #[test]
        fn every_name_matches(text in "[a-zA-Z+.\\-\\[\\]\"@:0-9İßΣ\u{300}-\u{310}]{1,30}|.{1,30}|[a-zA-ZΣİ+]{1,8}@[a-zA-Z.]{1,8}|\\[[0-9a-f:]{2,9}\\]") {
            for naming in Naming::ALL {
                if let Ok(name) = naming.parse_mailbox(&text) {
                    prop_assert!(matches(MAILBOX_NAME, name.as_str()), "{} under {}", name, naming);
                    prop_assert!(matches(NAME_OR_ADDRESS, name.as_str()), "{} under {}", name, naming);
                }
            }
        }
    }
}
