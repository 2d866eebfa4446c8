//! The tags that a message gets on arrival: from its header, from plus-addresses, and from rules.

use std::fmt;
use std::str::FromStr;

use restante_mail::envelope::{Envelope, Recipient, reverse_path_text};
use restante_mail::message::Headline;
use restante_mail::naming::MailboxName;
use restante_mail::patterns::Patterns;
use restante_mail::tags::{self, Tags};

/// Where the tags of a new message come from.
#[derive(Clone, Debug, Default)]
pub struct Tagging {
    /// Whether the header field X-Tags is used: tags, separated by commas.
    pub header: bool,
    /// Whether plus-addresses are used: a message to `james+run7@x.org` gets the tag `run7`.
    pub plus_addresses: bool,
    /// The rules.
    pub rules: Vec<TagRule>,
}

/// A rule: messages that match a pattern get a tag. It is written `TAG=FIELD:PATTERN`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TagRule {
    tag: String,
    field: RuleField,
    pattern: Patterns,
}

/// The text that the pattern of a rule is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RuleField {
    /// The sender of the envelope, or the sender in the header.
    From,
    /// A recipient of the envelope, or one in the header.
    To,
    /// The subject.
    Subject,
    /// A mailbox that gets a copy.
    Mailbox,
}

/// The reason why a text is not a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TagRuleError {
    /// It does not have the form `TAG=FIELD:PATTERN`.
    Form,
    /// The field is unknown.
    Field(String),
    /// The tag is invalid.
    Tag(tags::TagError),
}

impl fmt::Display for TagRuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Form => f.write_str("must be TAG=FIELD:PATTERN, for example billing=from:*@billing.example.org"),
            Self::Field(field) => {
                write!(f, "has the unknown field {field:?}; the fields are from, to, subject and mailbox")
            }
            Self::Tag(error) => write!(f, "has an invalid tag: {error}"),
        }
    }
}

impl std::error::Error for TagRuleError {}

impl FromStr for TagRule {
    type Err = TagRuleError;

    fn from_str(text: &str) -> Result<Self, TagRuleError> {
        let (tag, condition) = text.split_once('=').ok_or(TagRuleError::Form)?;
        let (field, pattern) = condition.split_once(':').ok_or(TagRuleError::Form)?;
        let field = match field.trim() {
            "from" => RuleField::From,
            "to" => RuleField::To,
            "subject" => RuleField::Subject,
            "mailbox" => RuleField::Mailbox,
            other => return Err(TagRuleError::Field(other.to_owned())),
        };
        let (tag, pattern) = (tag.trim(), pattern.trim());
        tags::validate(tag).map_err(TagRuleError::Tag)?;
        if pattern.is_empty() {
            return Err(TagRuleError::Form);
        }
        Ok(Self { tag: tag.to_owned(), field, pattern: [pattern].into_iter().collect() })
    }
}

/// A new message, as far as its tags depend on it.
pub(crate) struct TaggedMessage<'a> {
    pub(crate) envelope: &'a Envelope,
    pub(crate) headline: &'a Headline,
    pub(crate) mailboxes: &'a [MailboxName],
    /// The value of the header field X-Tags.
    pub(crate) header_tags: Option<&'a str>,
}

impl Tagging {
    /// Returns the tags of a new message. Invalid tags are ignored.
    pub(crate) fn tags(&self, message: &TaggedMessage<'_>) -> Tags {
        let header = message.header_tags.filter(|_| self.header).into_iter().flat_map(|value| value.split(','));
        let recipients = message.envelope.recipients.iter().filter(|_| self.plus_addresses);
        let plus = recipients.flat_map(plus_tags);
        let rules = self.rules.iter().filter(|rule| rule.matches(message)).map(|rule| rule.tag.as_str());
        Tags::from_valid(header.chain(plus).chain(rules))
    }
}

impl TagRule {
    fn matches(&self, message: &TaggedMessage<'_>) -> bool {
        let matches = |text: &str| self.pattern.matches(text);
        let TaggedMessage { envelope, headline, .. } = message;
        match self.field {
            RuleField::From => {
                matches(reverse_path_text(&envelope.from).as_ref()) || matches(address_of(headline.from()))
            }
            RuleField::To => {
                envelope.recipients.iter().any(|recipient| matches(&recipient.address.to_string()))
                    || headline.to().any(|recipient| matches(address_of(recipient)))
            }
            RuleField::Subject => matches(headline.subject()),
            RuleField::Mailbox => message.mailboxes.iter().any(|mailbox| matches(mailbox.as_str())),
        }
    }
}

/// Returns the parts of a local part after the plus signs.
fn plus_tags(recipient: &Recipient) -> impl Iterator<Item = &str> {
    recipient.address.local().split('+').skip(1)
}

/// Returns the address of `Display Name <address>`.
fn address_of(text: &str) -> &str {
    text.rsplit_once('<').map_or(text, |(_, address)| address.trim_end_matches('>'))
}

#[cfg(test)]
mod tests {
    use restante_mail::address::{Address, Alphabet};
    use restante_mail::envelope::Peer;
    use restante_mail::naming::Naming;

    use super::*;

    fn envelope(from: &str, to: &[&str]) -> Envelope {
        let address = |text: &str| Address::parse(text, Alphabet::Utf8).unwrap();
        Envelope {
            peer: Peer { ip: None, helo: "laptop".to_owned() },
            login: None,
            from: (!from.is_empty()).then(|| address(from)),
            recipients: to.iter().map(|to| Recipient::new(address(to), Naming::Local).unwrap()).collect(),
        }
    }

    #[test]
    fn tags_come_from_header_plus_address_and_rules() {
        let rules = [
            "billing=from:*@billing.example.org",
            "errors = subject:*error*",
            "qa=to:*@qa.*",
            "boxes=mailbox:ci-*",
            "run7=subject:*",
        ];
        let tagging = Tagging {
            header: true,
            plus_addresses: true,
            rules: rules.iter().map(|rule| rule.parse().unwrap()).collect(),
        };
        let headline = Headline::new("Billing <no-reply@billing.example.org>", ["QA <a@qa.example.org>"], "An ERROR");
        let envelope = envelope("", &["ci-1+run7+x@x.org", "bob@x.org"]);
        let mailboxes: Vec<_> = envelope.recipients.iter().map(|recipient| recipient.mailbox.clone()).collect();
        let message = TaggedMessage {
            envelope: &envelope,
            headline: &headline,
            mailboxes: &mailboxes,
            header_tags: Some("Release 7, a,b,, <no>"),
        };
        let tags = tagging.tags(&message);
        assert_eq!(
            tags.iter().collect::<Vec<_>>(),
            ["Release 7", "a", "b", "run7", "x", "billing", "errors", "qa", "boxes"]
        );
        assert!(Tagging::default().tags(&message).is_empty(), "everything is disabled");
        let other = Headline::new("<ann@x.org>", ["<bob@x.org>"], "Hello");
        let message = TaggedMessage { headline: &other, mailboxes: &[], header_tags: None, ..message };
        let tagging = Tagging { header: true, plus_addresses: false, ..tagging };
        assert_eq!(tagging.tags(&message).iter().collect::<Vec<_>>(), ["run7"]);
    }

    #[test]
    fn invalid_rules_are_refused() {
        let table = [
            ("billing", TagRuleError::Form),
            ("billing=from", TagRuleError::Form),
            ("billing=from:", TagRuleError::Form),
            ("billing=sender:x", TagRuleError::Field("sender".to_owned())),
            ("=from:x", TagRuleError::Tag(tags::TagError::Empty)),
            ("a/b=from:x", TagRuleError::Tag(tags::TagError::Character('/'))),
        ];
        for (rule, error) in table {
            assert_eq!(rule.parse::<TagRule>(), Err(error), "{rule}");
        }
    }
}
