//! The conditions of rules: a field of a message, and the patterns that its texts are compared with. The rules that choose
//! projects and tags consist of them. How a rule is written is defined next to its kind.

use std::net::IpAddr;

use crate::named_enum;
use crate::network::Network;
use crate::patterns::Patterns;

named_enum! {
    /// A field whose texts are compared with patterns.
    pub enum Field {
        /// The name with which the client has logged in.
        Login = "login",
        /// The API key of a request to the API of a provider.
        Key = "key",
        /// The address of the listener.
        Listener = "listener",
        /// The name in EHLO.
        Helo = "helo",
        /// The sender of the envelope.
        Sender = "sender",
        /// A recipient of the envelope.
        Recipient = "recipient",
        /// The domain of a recipient of the envelope.
        Domain = "domain",
        /// The sender of the envelope or of the header.
        From = "from",
        /// A recipient of the envelope or of the header.
        To = "to",
        /// The subject.
        Subject = "subject",
        /// The mailbox.
        Mailbox = "mailbox",
    }
}

/// Provides the fields of a message, a recipient or a copy.
pub trait FieldTexts {
    /// Calls `visit` with each text of a field until it returns true. Returns whether it has.
    fn any_text(&self, field: Field, visit: &mut dyn FnMut(&str) -> bool) -> bool;

    /// Does the same with the decoded values of the header fields of this name.
    fn any_header(&self, _name: &str, _visit: &mut dyn FnMut(&str) -> bool) -> bool {
        false
    }

    /// Returns the address of the client.
    fn client(&self) -> Option<IpAddr> {
        None
    }
}

/// A condition of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// A text of the field matches a pattern.
    Text(Field, Patterns),
    /// The value of a header field of this name matches a pattern.
    Header(String, Patterns),
    /// The client is in one of these networks.
    Client(Vec<Network>),
}

impl Condition {
    /// Returns whether the condition is met.
    pub fn matches(&self, texts: &impl FieldTexts) -> bool {
        match self {
            Self::Text(field, patterns) => texts.any_text(*field, &mut |text| patterns.matches(text)),
            Self::Header(name, patterns) => texts.any_header(name, &mut |text| patterns.matches(text)),
            Self::Client(networks) => {
                texts.client().is_some_and(|client| networks.iter().any(|network| network.contains(client)))
            }
        }
    }

    /// Returns what the wildcards match in the first text that matches, see [`Patterns::captures`].
    pub fn captures(&self, texts: &impl FieldTexts) -> Vec<String> {
        let mut captures = None;
        let mut capture = |patterns: &Patterns, text: &str| {
            captures = patterns.captures(text);
            captures.is_some()
        };
        match self {
            Self::Text(field, patterns) => texts.any_text(*field, &mut |text| capture(patterns, text)),
            Self::Header(name, patterns) => texts.any_header(name, &mut |text| capture(patterns, text)),
            Self::Client(_) => false,
        };
        captures.unwrap_or_default()
    }

    /// Returns the number of texts that [`Self::captures`] returns if the condition is met.
    pub fn capture_count(&self) -> usize {
        match self {
            Self::Text(_, patterns) | Self::Header(_, patterns) => patterns.capture_count(),
            Self::Client(_) => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message with two recipients and two header fields.
    struct Message;

    impl FieldTexts for Message {
        fn any_text(&self, field: Field, visit: &mut dyn FnMut(&str) -> bool) -> bool {
            field == Field::Recipient && ["ann@x.org", "bob@y.org"].into_iter().any(visit)
        }

        fn any_header(&self, name: &str, visit: &mut dyn FnMut(&str) -> bool) -> bool {
            name == "X-App" && ["one", "two"].into_iter().any(visit)
        }

        fn client(&self) -> Option<IpAddr> {
            Some([10, 1, 2, 3].into())
        }
    }

    #[test]
    fn compares_any_text_with_any_pattern() {
        let recipient = |patterns: &[&str]| Condition::Text(Field::Recipient, patterns.iter().collect());
        let header = |name: &str, pattern: &str| Condition::Header(name.to_owned(), [pattern].iter().collect());
        let client = |networks: &[&str]| Condition::Client(networks.iter().map(|text| text.parse().unwrap()).collect());
        let table: [(Condition, Option<&[&str]>); 9] = [
            (recipient(&["*@y.org"]), Some(&["bob"])),
            (recipient(&["*@z.org", "?nn@*"]), Some(&["a"])),
            (recipient(&["*@z.org"]), None),
            (Condition::Text(Field::Sender, ["*"].iter().collect()), None),
            (header("X-App", "t*"), Some(&["wo"])),
            (header("X-App", "three"), None),
            (header("X-Other", "*"), None),
            (client(&["192.0.2.1", "10.1.0.0/16"]), Some(&[])),
            (client(&["10.2.0.0/16"]), None),
        ];
        for (condition, captures) in table {
            assert_eq!(condition.matches(&Message), captures.is_some(), "{condition:?}");
            assert_eq!(condition.captures(&Message), captures.unwrap_or_default(), "{condition:?}");
        }
    }
}
