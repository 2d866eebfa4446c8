//! The rules that choose the project of a message. Conditions that do not concern the header are decided when a recipient
//! is checked, the others when the message is delivered. How rules are written is defined in the settings.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::fmt;
use std::net::IpAddr;

use restante_mail::address::Address;
use restante_mail::envelope::{Envelope, Recipient, reverse_path_text};
use restante_mail::mime::{RawFields, decode_short_field};
use restante_mail::naming::{MAX_PROJECT_CHARS, MailboxName, Project, ProjectError};
use restante_mail::rules::{Condition, Field, FieldTexts};

/// The fields that conditions and names can contain.
pub const FIELDS: [Field; 7] =
    [Field::Login, Field::Key, Field::Listener, Field::Helo, Field::Sender, Field::Recipient, Field::Domain];

/// The part of a message in which header fields are compared.
const MAX_HEADER_BYTES: usize = 64 * 1024;

/// An ordered list of rules, of which the first that matches chooses the project.
#[derive(Clone, Debug, Default)]
pub struct ProjectRules {
    rules: Vec<ProjectRule>,
    /// The names of the header fields in conditions.
    header_names: Vec<String>,
}

/// A rule: messages that meet all conditions are delivered into the project of this name.
#[derive(Clone, Debug)]
pub struct ProjectRule {
    /// The rule as it is written.
    text: String,
    name: Vec<NamePart>,
    conditions: Vec<Condition>,
}

/// A part of the name of a project.
#[derive(Clone, Debug, PartialEq, Eq)]
enum NamePart {
    Text(String),
    Field(Field),
    /// What a wildcard matches. The first one of the rule has the index 0.
    Capture(usize),
}

/// The reason why a text is not the name in a rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuleNameError {
    /// It is not the name of a project.
    #[error(transparent)]
    Project(#[from] ProjectError),
    /// A placeholder is unknown, or refers to a wildcard that not all patterns of its condition have.
    #[error("{{{0}}} is neither a field nor the number of a wildcard in all patterns of a condition")]
    Placeholder(String),
    /// A placeholder stands for a secret.
    #[error("{{key}} would show the API key in the name of the project: use a part of it, as in {{1}} key=shop-*")]
    Secret,
}

impl ProjectRule {
    /// Creates a rule that is written as `text`. In `name`, `{login}` stands for the text of a field, and `{1}` for what the
    /// first wildcard of the conditions matches.
    pub fn new(text: &str, name: &str, conditions: Vec<Condition>) -> Result<Self, RuleNameError> {
        let captures: usize = conditions.iter().map(Condition::capture_count).sum();
        let placeholder = |text: &str| match text.parse::<usize>() {
            Ok(number) if (1..=captures).contains(&number) => Some(NamePart::Capture(number - 1)),
            Ok(_) => None,
            Err(_) => Field::from_name(text).filter(|field| FIELDS.contains(field)).map(NamePart::Field),
        };
        let (mut parts, mut rest) = (Vec::new(), name);
        while let Some((before, after)) = rest.split_once('{') {
            let (inside, after) = after.split_once('}').ok_or(ProjectError)?;
            parts.push(NamePart::Text(before.to_owned()));
            if inside == Field::Key.name() {
                return Err(RuleNameError::Secret);
            }
            parts.push(placeholder(inside).ok_or_else(|| RuleNameError::Placeholder(inside.to_owned()))?);
            rest = after;
        }
        parts.push(NamePart::Text(rest.to_owned()));
        parts.retain(|part| *part != NamePart::Text(String::new()));
        let example = parts.iter().map(|part| if let NamePart::Text(text) = part { text } else { "x" });
        example.collect::<String>().parse::<Project>()?;
        Ok(Self { text: text.to_owned(), name: parts, conditions })
    }

    fn header_names(&self) -> impl Iterator<Item = &String> {
        self.conditions.iter().filter_map(|condition| match condition {
            Condition::Header(name, _) => Some(name),
            _ => None,
        })
    }

    /// Returns whether all conditions are met. Conditions about the header are met as long as the header is not known.
    fn matches(&self, message: &Message<'_>) -> bool {
        let is_undecided =
            |condition: &Condition| message.header.is_none() && matches!(condition, Condition::Header(..));
        self.conditions.iter().all(|condition| is_undecided(condition) || condition.matches(message))
    }

    /// Returns the project of a message that meets all conditions. Returns `None` if nothing remains of the text for a
    /// placeholder.
    fn project(&self, message: &Message<'_>) -> Option<Project> {
        let captures = || self.conditions.iter().flat_map(|condition| condition.captures(message));
        let mut name = String::new();
        for part in &self.name {
            match part {
                NamePart::Text(text) => name.push_str(text),
                NamePart::Field(field) => name.push_str(&project_text(&message.first_text(*field)?)?),
                NamePart::Capture(index) => name.push_str(&project_text(&captures().nth(*index)?)?),
            }
        }
        name.truncate(MAX_PROJECT_CHARS);
        name.trim_end_matches('-').parse().ok()
    }
}

impl fmt::Display for ProjectRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Collects rules in their order.
impl FromIterator<ProjectRule> for ProjectRules {
    fn from_iter<T: IntoIterator<Item = ProjectRule>>(rules: T) -> Self {
        let rules = Vec::from_iter(rules);
        let header_names = rules.iter().flat_map(ProjectRule::header_names).cloned().collect();
        Self { rules, header_names }
    }
}

impl ProjectRules {
    /// Returns the rules.
    pub fn iter(&self) -> impl Iterator<Item = &ProjectRule> {
        self.rules.iter()
    }

    /// Returns the project of a message for one recipient, the rule that chooses it and the number of the rule. `source` is
    /// the message.
    pub fn choose(
        &self,
        envelope: &Envelope,
        recipient: &Address,
        source: &[u8],
    ) -> Option<(Project, &ProjectRule, usize)> {
        let header = self.header_values(source);
        let (project, index) = self.decide(&Message::new(envelope, recipient, Some(&header))).0?;
        Some((project, &self.rules[index], index + 1))
    }

    /// Sets the project of a recipient, as far as it does not depend on the header. With `ignore_header`, it never does.
    pub(crate) fn assign(&self, envelope: &Envelope, recipient: &mut Recipient, ignore_header: bool) {
        if self.rules.is_empty() {
            return;
        }
        let (chosen, awaits_header) = self.decide(&Message::new(envelope, &recipient.address, None));
        if let Some((project, _)) = chosen {
            recipient.mailbox = recipient.mailbox.in_project(&project);
        }
        recipient.awaits_header = awaits_header && !ignore_header;
    }

    /// Returns the envelope with the projects that depend on the header.
    pub(crate) fn assign_by_header<'a>(&self, envelope: &'a Envelope, source: &[u8]) -> Cow<'a, Envelope> {
        if !envelope.recipients.iter().any(|recipient| recipient.awaits_header) {
            return Cow::Borrowed(envelope);
        }
        let header = self.header_values(source);
        let mut decided = Cow::Borrowed(envelope);
        // Without these fields no condition about the header is met, so the projects are those from RCPT.
        if header.is_empty() {
            return decided;
        }
        for (index, recipient) in
            envelope.recipients.iter().enumerate().filter(|(_, recipient)| recipient.awaits_header)
        {
            let mailbox = MailboxName::from(recipient.mailbox.without_project().to_owned());
            let (chosen, _) = self.decide(&Message::new(envelope, &recipient.address, Some(&header)));
            let mailbox = match chosen {
                Some((project, _)) => mailbox.in_project(&project),
                None => mailbox,
            };
            if mailbox != recipient.mailbox {
                decided.to_mut().recipients[index].mailbox = mailbox;
            }
        }
        decided
    }

    /// Returns the project that the first matching rule chooses, and the index of the rule. If the header is not known, its
    /// rules are skipped; the second value says whether one of them could match before.
    fn decide(&self, message: &Message<'_>) -> (Option<(Project, usize)>, bool) {
        let mut awaits_header = false;
        for (index, rule) in self.rules.iter().enumerate().filter(|(_, rule)| rule.matches(message)) {
            if message.header.is_none() && rule.header_names().next().is_some() {
                awaits_header = true;
            } else if let Some(project) = rule.project(message) {
                return (Some((project, index)), awaits_header);
            }
        }
        (None, awaits_header)
    }

    /// Returns the names and values of the header fields in conditions.
    fn header_values<'a>(&self, source: &'a [u8]) -> Vec<(&'a [u8], String)> {
        let fields = RawFields::new(&source[..source.len().min(MAX_HEADER_BYTES)]);
        let is_used = |name: &[u8]| self.header_names.iter().any(|used| used.as_bytes().eq_ignore_ascii_case(name));
        fields.filter(|(name, _)| is_used(name)).map(|(name, value)| (name, decode_short_field(value))).collect()
    }
}

/// A message and one of its recipients.
struct Message<'a> {
    envelope: &'a Envelope,
    recipient: &'a Address,
    /// The names and values of header fields. `None` if they are not known yet.
    header: Option<&'a [(&'a [u8], String)]>,
    /// The texts of both addresses, so that each rule does not create them again.
    sender_text: OnceCell<String>,
    recipient_text: OnceCell<String>,
}

impl<'a> Message<'a> {
    fn new(envelope: &'a Envelope, recipient: &'a Address, header: Option<&'a [(&'a [u8], String)]>) -> Self {
        Self { envelope, recipient, header, sender_text: OnceCell::new(), recipient_text: OnceCell::new() }
    }

    fn first_text(&self, field: Field) -> Option<String> {
        let mut first = None;
        self.any_text(field, &mut |text| first.replace(text.to_owned()).is_none());
        first
    }
}

impl FieldTexts for Message<'_> {
    fn any_text(&self, field: Field, visit: &mut dyn FnMut(&str) -> bool) -> bool {
        let Envelope { peer, login, key, listener, from, .. } = self.envelope;
        match field {
            Field::Login => login.as_deref().is_some_and(visit),
            Field::Key => key.as_deref().is_some_and(visit),
            Field::Listener => listener.as_deref().is_some_and(|addr| visit(addr) || port(addr).is_some_and(visit)),
            Field::Helo => !peer.helo.is_empty() && visit(&peer.helo),
            Field::Sender => visit(self.sender_text.get_or_init(|| reverse_path_text(from))),
            Field::Recipient => visit(self.recipient_text.get_or_init(|| self.recipient.text())),
            Field::Domain => visit(self.recipient.domain()),
            Field::From | Field::To | Field::Subject | Field::Mailbox => false,
        }
    }

    fn any_header(&self, name: &str, visit: &mut dyn FnMut(&str) -> bool) -> bool {
        let has_name = |(found, _): &&(&[u8], String)| found.eq_ignore_ascii_case(name.as_bytes());
        self.header.into_iter().flatten().filter(has_name).any(|(_, value)| visit(value))
    }

    fn client(&self) -> Option<IpAddr> {
        self.envelope.peer.ip
    }
}

/// Returns the port of a TCP listener, with its colon.
fn port(addr: &str) -> Option<&str> {
    addr.rfind(':').map(|colon| &addr[colon..]).filter(|_| !addr.starts_with("unix:"))
}

/// Converts a text to a part of the name of a project: in lower case, with hyphens instead of other characters. Returns
/// `None` if nothing remains.
fn project_text(text: &str) -> Option<String> {
    let convert = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let converted: String = text.chars().map(convert).take(MAX_PROJECT_CHARS).collect();
    Some(converted.trim_matches('-').to_owned()).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use restante_mail::address::Alphabet;
    use restante_mail::envelope::Peer;
    use restante_mail::naming::Naming;

    use super::*;

    fn address(text: &str) -> Address {
        Address::parse(text, Alphabet::Utf8).unwrap()
    }

    fn envelope() -> Envelope {
        Envelope {
            peer: Peer { ip: Some([10, 1, 2, 3].into()), helo: "Legacy-7.test".to_owned() },
            login: Some("Shop_QA-ci".to_owned()),
            key: Some("SG.Shop-x.y".into()),
            listener: Some("localhost:2526".into()),
            from: Some(address("Ann@x.org")),
            recipients: Vec::new(),
        }
    }

    /// Creates a rule. A condition is a field, or the name of a header field with a colon, and its patterns.
    fn rule(name: &str, conditions: &[(&str, &[&str])]) -> Result<ProjectRule, RuleNameError> {
        let condition = |(field, patterns): &(&str, &[&str])| match Field::from_name(field) {
            Some(field) => Condition::Text(field, patterns.iter().collect()),
            None if *field == "client" => {
                Condition::Client(patterns.iter().map(|network| network.parse().unwrap()).collect())
            }
            None => Condition::Header(field.trim_end_matches(':').to_owned(), patterns.iter().collect()),
        };
        ProjectRule::new("", name, conditions.iter().map(condition).collect())
    }

    #[test]
    fn first_rule_whose_conditions_are_met_chooses_the_project() {
        type Rule = (&'static str, &'static [(&'static str, &'static [&'static str])]);
        // The rules, and the project.
        let table: [(&[Rule], Option<&str>); 27] = [
            (&[], None),
            (&[("rest", &[])], Some("rest")),
            (&[("shop", &[("login", &["shop*"])])], Some("shop")),
            (&[("acme", &[("login", &["acme*"])]), ("shop", &[("login", &["shop*"])]), ("b", &[])], Some("shop")),
            (&[("a", &[("login", &["acme*", "SHOP_QA-CI"])])], Some("a")),
            (&[("a", &[("key", &["re_*", "sg.shop*"])])], Some("a")),
            (&[("a", &[("key", &["SG.shop"])])], None),
            (&[("{1}", &[("key", &["sg.*.*"])])], Some("shop-x")),
            (&[("a", &[("helo", &["legacy-*"]), ("client", &["10.1.0.0/16"])])], Some("a")),
            (&[("a", &[("helo", &["legacy-*"]), ("client", &["10.2.0.0/16"])])], None),
            (&[("a", &[("listener", &[":2526"])])], Some("a")),
            (&[("a", &[("listener", &["localhost:*"])])], Some("a")),
            (&[("a", &[("listener", &[":25", "2526"])])], None),
            (&[("a", &[("sender", &["ann@x.org"])])], Some("a")),
            (&[("a", &[("recipient", &["bob@*"])])], Some("a")),
            (&[("a", &[("domain", &["*.acme.test"])])], Some("a")),
            (&[("a", &[("domain", &["acme.test"])])], None),
            (&[("a", &[("x-application:", &["S?S"])])], Some("a")),
            (&[("a", &[("x-other:", &["*"])])], None),
            (&[("{1}", &[("login", &["*-ci"])])], Some("shop-qa")),
            (&[("{2}-{1}", &[("helo", &["*-7*"]), ("domain", &["*.test"])])], Some("test-legacy")),
            (&[("{3}", &[("helo", &["*-7*"]), ("domain", &["*.acme.test"])])], Some("qa")),
            (&[("{1}", &[("x-application:", &["s*"])])], Some("rs")),
            (&[("team-{login}", &[])], Some("team-shop-qa-ci")),
            (&[("{listener}", &[])], Some("localhost-2526")),
            (&[("{2}x", &[("login", &["shop?*"])]), ("b", &[])], Some("qa-cix")),
            // Nothing remains of the text.
            (&[("{1}x", &[("login", &["shop?*"])]), ("b", &[])], Some("b")),
        ];
        let source = b"X-Application: one\r\nX-Application:\r\n =?utf-8?q?srs?=\r\n\r\nX-Other: body";
        for (rules, expected) in table {
            let rules: ProjectRules = rules.iter().map(|(name, conditions)| rule(name, conditions).unwrap()).collect();
            let chosen = rules.choose(&envelope(), &address("Bob@qa.ACME.test"), source);
            assert_eq!(chosen.map(|(project, ..)| project.to_string()).as_deref(), expected, "{rules:?}");
        }
    }

    #[test]
    fn missing_fields_meet_no_condition() {
        let message = Envelope { login: None, key: None, listener: None, from: None, ..envelope() };
        let message = Envelope { peer: Peer { ip: None, helo: String::new() }, ..message };
        for field in ["login", "listener", "helo"] {
            let rules = [rule("a", &[(field, &["*"])]), rule(&format!("{{{field}}}"), &[])];
            let rules: ProjectRules = rules.into_iter().map(Result::unwrap).collect();
            assert!(rules.choose(&message, &address("bob@x.org"), b"").is_none(), "{field}");
        }
        let rules: ProjectRules = rule("a", &[("key", &["*"])]).into_iter().collect();
        assert!(rules.choose(&message, &address("bob@x.org"), b"").is_none());
        let rules: ProjectRules = rule("a", &[("client", &["0.0.0.0/0", "::/0"])]).into_iter().collect();
        assert!(rules.choose(&message, &address("bob@x.org"), b"").is_none());
    }

    #[test]
    fn names_are_cut_to_the_maximum_length() {
        let rules: ProjectRules = rule("{login}-{helo}", &[]).into_iter().collect();
        for (login, expected) in [("x".repeat(100), "x".repeat(63)), ("x".repeat(62), "x".repeat(62))] {
            let envelope = Envelope { login: Some(login), ..envelope() };
            let (project, ..) = rules.choose(&envelope, &address("bob@x.org"), b"").unwrap();
            assert_eq!(project.as_str(), expected);
        }
    }

    #[test]
    fn header_decides_at_delivery() {
        type Rule = (&'static str, &'static [(&'static str, &'static [&'static str])]);
        const BY_HEADER: Rule = ("srs", &[("X-App:", &["srs"])]);
        const BY_BOTH: Rule = ("both", &[("login", &["shop*"]), ("X-App:", &["srs"])]);
        const BY_OTHER_LOGIN: Rule = ("other", &[("login", &["acme*"]), ("X-App:", &["srs"])]);
        const BY_DOMAIN: Rule = ("acme", &[("domain", &["acme.test"])]);
        // The rules; the mailbox at RCPT and whether the header may change it; the mailbox with the header, and without.
        let table: [(&[Rule], &str, bool, &str, &str); 6] = [
            (&[BY_HEADER], "bob", true, "srs:bob", "bob"),
            (&[BY_HEADER, BY_DOMAIN], "acme:bob", true, "srs:bob", "acme:bob"),
            (&[BY_DOMAIN, BY_HEADER], "acme:bob", false, "acme:bob", "acme:bob"),
            (&[BY_BOTH], "bob", true, "both:bob", "bob"),
            (&[BY_OTHER_LOGIN], "bob", false, "bob", "bob"),
            (&[BY_OTHER_LOGIN, BY_HEADER], "bob", true, "srs:bob", "bob"),
        ];
        for (rules, at_rcpt, awaits_header, with_header, without_header) in table {
            let rules: ProjectRules = rules.iter().map(|(name, conditions)| rule(name, conditions).unwrap()).collect();
            let mut envelope = envelope();
            for ignore_header in [true, false] {
                let mut recipient = Recipient::new(address("bob@acme.test"), Naming::Local).unwrap();
                rules.assign(&envelope, &mut recipient, ignore_header);
                assert_eq!(recipient.mailbox.as_str(), at_rcpt, "{rules:?}");
                assert_eq!(recipient.awaits_header, awaits_header && !ignore_header, "{rules:?}");
                envelope.recipients = vec![recipient];
            }
            for (source, expected) in [
                ("x-app: SRS\r\n\r\n", with_header),
                ("X-App: a\r\n\r\nX-App: srs", without_header),
                ("X-Other: srs\r\n\r\nX-App: srs", without_header),
            ] {
                let decided = rules.assign_by_header(&envelope, source.as_bytes());
                assert_eq!(decided.recipients[0].mailbox.as_str(), expected, "{source:?} {rules:?}");
            }
        }
    }
}
