//! The tags that a message gets on arrival: from its header, from plus-addresses, and from rules. Tags that depend on a
//! recipient of the envelope or on a mailbox are set only on the copies of this recipient or mailbox. A client that may
//! read only one copy does not learn about other recipients.

use std::str::FromStr;

use restante_mail::address::{Address, Alphabet};
use restante_mail::envelope::{Recipient, ReversePath, reverse_path_text};
use restante_mail::message::Headline;
use restante_mail::mime::HeaderSummary;
use restante_mail::naming::MailboxName;
use restante_mail::rules::{Condition, Field, FieldTexts};
use restante_mail::tags::{self, Tags};
use thiserror::Error;

/// The maximum number of tags from the header. The sender must not prevent the tags of rules, whose number is limited by
/// [`tags::MAX_TAGS`] together with them.
const MAX_HEADER_TAGS: usize = 10;

/// Where the tags of a new message come from.
#[derive(Clone, Debug, Default)]
pub struct Tagging {
    /// Whether the header field X-Tags is used: tags, separated by commas.
    pub header: bool,
    /// Whether plus-addresses are used: a message to `james+run7@x.org` gets the tag `run7`.
    pub plus_addresses: bool,
    /// Whether the addresses in From, To, Cc and Bcc are used in the same way.
    pub plus_header: bool,
    /// The rules.
    pub rules: Vec<TagRule>,
}

/// A rule: messages that match a pattern get a tag. It is written `TAG=FIELD:PATTERN`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TagRule {
    tag: String,
    condition: Condition,
}

/// The reason why a text is not a rule.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TagRuleError {
    /// It does not have the right form.
    #[error("must be TAG=FIELD:PATTERN, for example billing=from:*@billing.example.org")]
    Form,
    /// The field is unknown.
    #[error("has the unknown field {0:?}; the fields are from, to, subject and mailbox")]
    Field(String),
    /// The tag is invalid.
    #[error("has an invalid tag: {0}")]
    Tag(tags::TagError),
}

impl FromStr for TagRule {
    type Err = TagRuleError;

    fn from_str(text: &str) -> Result<Self, TagRuleError> {
        let (tag, condition) = text.split_once('=').ok_or(TagRuleError::Form)?;
        let (field, pattern) = condition.split_once(':').ok_or(TagRuleError::Form)?;
        let (tag, field, pattern) = (tag.trim(), field.trim(), pattern.trim());
        let is_known = |field: &Field| [Field::From, Field::To, Field::Subject, Field::Mailbox].contains(field);
        let known = Field::from_name(field).filter(is_known).ok_or_else(|| TagRuleError::Field(field.to_owned()))?;
        tags::validate(tag).map_err(TagRuleError::Tag)?;
        if pattern.is_empty() {
            return Err(TagRuleError::Form);
        }
        Ok(Self { tag: tag.to_owned(), condition: Condition::Text(known, [pattern].into_iter().collect()) })
    }
}

/// A new message, as far as the tags of all copies depend on it.
pub(crate) struct TaggedMessage<'a> {
    /// The sender of the envelope.
    pub(crate) from: &'a ReversePath,
    pub(crate) headline: &'a Headline,
    /// Whether the recipients of the headline are not those of the envelope, which other copies must not reveal.
    pub(crate) has_to: bool,
    pub(crate) header: &'a HeaderSummary,
}

/// A new copy, as far as its own tags depend on it.
pub(crate) struct TaggedCopy<'a, R> {
    pub(crate) mailbox: &'a MailboxName,
    /// The recipients of this copy.
    pub(crate) recipients: R,
    /// The addresses of these recipients.
    pub(crate) addresses: &'a [String],
}

impl Tagging {
    /// Returns the tags of all copies of a new message: those that reveal nothing about the recipients of other copies.
    /// Invalid tags are ignored.
    pub(crate) fn common_tags(&self, message: &TaggedMessage<'_>) -> Tags {
        let header_tags = message.header.tags.as_deref().filter(|_| self.header).into_iter();
        let header_tags = header_tags.flat_map(|value| value.split(',')).filter(|tag| !tag.trim().is_empty());
        let named = if self.plus_header { plus_addresses(message.header) } else { Vec::new() };
        let header_tags = header_tags.chain(named.iter().flat_map(plus_tags)).take(MAX_HEADER_TAGS);
        Tags::from_valid(self.rule_tags(message).chain(header_tags))
    }

    /// Returns the tags of a new copy: `common`, then those of its recipients and its mailbox. Invalid tags are
    /// ignored.
    pub(crate) fn tags<'a, R>(&'a self, common: &Tags, copy: TaggedCopy<'_, R>) -> Tags
    where
        R: Iterator<Item = &'a Recipient>,
    {
        let by_rules: Vec<&str> = self.rule_tags(&copy).collect();
        let recipients = self.plus_addresses.then_some(copy.recipients).into_iter().flatten();
        let own = by_rules.into_iter().chain(recipients.flat_map(|recipient| plus_tags(&recipient.address)));
        common.union(&Tags::from_valid(own))
    }

    /// Returns the tags of the rules that match.
    fn rule_tags(&self, texts: &impl FieldTexts) -> impl Iterator<Item = &str> {
        self.rules.iter().filter(|rule| rule.condition.matches(texts)).map(|rule| rule.tag.as_str())
    }
}

/// The fields of all copies. The recipients of the envelope are not among them.
impl FieldTexts for TaggedMessage<'_> {
    fn any_text(&self, field: Field, visit: &mut dyn FnMut(&str) -> bool) -> bool {
        let headline = self.headline;
        match field {
            Field::From => visit(&reverse_path_text(self.from)) || visit(address_of(headline.from())),
            Field::To => self.has_to && headline.to().any(|recipient| visit(address_of(recipient))),
            Field::Subject => visit(headline.subject()),
            _ => false,
        }
    }
}

/// The fields of one copy.
impl<R> FieldTexts for TaggedCopy<'_, R> {
    fn any_text(&self, field: Field, visit: &mut dyn FnMut(&str) -> bool) -> bool {
        match field {
            Field::To => self.addresses.iter().any(|address| visit(address)),
            Field::Mailbox => visit(self.mailbox.owner_name()),
            _ => false,
        }
    }
}

/// Returns the parts of a local part after the plus signs.
fn plus_tags(address: &Address) -> impl Iterator<Item = &str> {
    address.local().split('+').skip(1)
}

/// Returns the valid addresses with a plus sign in From, To, Cc and Bcc.
fn plus_addresses(header: &HeaderSummary) -> Vec<Address> {
    let named = header.from.as_deref().into_iter().chain(header.recipients()).map(address_of);
    named.filter(|text| text.contains('+')).filter_map(|text| Address::parse(text, Alphabet::Utf8).ok()).collect()
}

/// Returns the address of `Display Name <address>`.
fn address_of(text: &str) -> &str {
    text.rsplit_once('<').map_or(text, |(_, address)| address.trim_end_matches('>'))
}

#[cfg(test)]
mod tests {
    use restante_mail::naming::Naming;

    use super::*;

    fn recipients(addresses: &[&str]) -> Vec<Recipient> {
        let recipient = |text: &&str| Recipient::new(Address::parse(text, Alphabet::Utf8).unwrap(), Naming::Local);
        addresses.iter().map(|address| recipient(address).unwrap()).collect()
    }

    /// Returns the tags of a copy for these recipients, in the mailbox of the first one.
    fn copy_tags(tagging: &Tagging, common: &Tags, addresses: &[&str]) -> Tags {
        let recipients = recipients(addresses);
        let addresses: Vec<_> = recipients.iter().map(|recipient| recipient.address.to_string()).collect();
        let (mailbox, recipients) = (&recipients[0].mailbox, recipients.iter());
        tagging.tags(common, TaggedCopy { mailbox, recipients, addresses: &addresses })
    }

    fn texts(tags: &Tags) -> Vec<&str> {
        tags.iter().collect()
    }

    #[test]
    fn tags_come_from_header_plus_address_and_rules() {
        let rules = [
            "billing=from:*@billing.example.org",
            "errors = subject:*error*",
            "qa=to:*@qa.*",
            "secret=to:*@secret.*",
            "boxes=mailbox:ci-*",
            "run7=subject:*",
        ];
        let tagging = Tagging {
            header: true,
            plus_addresses: true,
            plus_header: false,
            rules: rules.iter().map(|rule| rule.parse().unwrap()).collect(),
        };
        let headline = Headline::new("Billing <no-reply@billing.example.org>", ["QA <a@qa.example.org>"], "An ERROR");
        let header = HeaderSummary { tags: Some("Release 7, a,b,, <no>".to_owned()), ..HeaderSummary::default() };
        let message = TaggedMessage { from: &None, headline: &headline, has_to: true, header: &header };
        let common = tagging.common_tags(&message);
        let expected = ["billing", "errors", "qa", "run7", "Release 7", "a", "b"];
        assert_eq!(texts(&common), expected);
        // The tags of one copy are not those of another.
        let table: [(&[&str], &[&str]); 4] = [
            (&["ci-1+RUN7+x@x.org", "ci-1+y@x.org"], &["boxes", "x", "y"]),
            (&["bob@x.org", "bob@secret.org"], &["secret"]),
            (&["ann@qa.x.org"], &[]),
            (&["cid@x.org"], &[]),
        ];
        for (addresses, own) in table {
            assert_eq!(texts(&copy_tags(&tagging, &common, addresses)), [&expected, own].concat(), "{addresses:?}");
        }
        // The headline has the recipients of the envelope.
        let hidden = TaggedMessage { has_to: false, header: &HeaderSummary::default(), ..message };
        let common = tagging.common_tags(&hidden);
        assert_eq!(texts(&common), ["billing", "errors", "run7"]);
        assert!(copy_tags(&tagging, &common, &["a@qa.example.org"]).contains("qa"));
        assert!(!copy_tags(&tagging, &common, &["bob@x.org"]).contains("qa"));
    }

    #[test]
    fn tags_come_from_the_plus_addresses_of_the_header() {
        let list = |addresses: &[&str]| addresses.iter().map(|&address| address.to_owned()).collect::<Vec<_>>();
        let header = HeaderSummary {
            from: Some("Ann <ann+Run7+x@x.org>".to_owned()),
            to: Some(list(&["<bob+to@x.org>", "<bob@x.org>", "Bob+no <bob>"])),
            cc: list(&["Cid <\"cid+with blank\"@x.org>"]),
            ..HeaderSummary::default()
        };
        let headline = Headline::new("<ann+no@x.org>", ["<bob+no@x.org>"], "Hello");
        let message = TaggedMessage { from: &None, headline: &headline, has_to: true, header: &header };
        let tagging = Tagging { plus_header: true, ..Tagging::default() };
        assert_eq!(texts(&tagging.common_tags(&message)), ["Run7", "x", "to", "with blank"]);
        assert!(Tagging { plus_addresses: true, ..Tagging::default() }.common_tags(&message).is_empty());
    }

    #[test]
    fn disabled_tagging_sets_no_tags() {
        let headline = Headline::new("<ann@x.org>", ["<bob@x.org>"], "Hello");
        let header = HeaderSummary { tags: Some("a".to_owned()), ..HeaderSummary::default() };
        let message = TaggedMessage { from: &None, headline: &headline, has_to: true, header: &header };
        let disabled = Tagging::default();
        assert!(disabled.common_tags(&message).is_empty());
        assert!(copy_tags(&disabled, &Tags::default(), &["bob+run7@x.org"]).is_empty());
        let tagging = Tagging { header: true, rules: vec!["qa=subject:bye*".parse().unwrap()], ..disabled };
        let common = tagging.common_tags(&message);
        assert_eq!(texts(&common), ["a"]);
        assert_eq!(copy_tags(&tagging, &common, &["bob+run7@x.org"]), common);
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
