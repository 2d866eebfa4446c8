//! Comparison of a message with the forward rules. Pure functions.

use jiff::Timestamp;
use restante_mail::address::Address;
use restante_mail::message::{Message, Summary};
use restante_mail::mime::Mime;
use restante_search::Query;

use crate::release::parse_recipient;
use crate::settings::{ForwardRule, Settings, Target};

/// The rules, prepared for a batch of messages.
pub(crate) struct Rules<'a> {
    rules: Vec<PreparedRule<'a>>,
}

struct PreparedRule<'a> {
    rule: &'a ForwardRule,
    target: &'a Target,
    query: Option<Query>,
}

/// A message matches at least one rule of a target.
#[derive(Debug)]
pub(crate) struct Match<'a> {
    pub(crate) target: &'a Target,
    /// The first copy that matches.
    pub(crate) copy: &'a Summary,
    /// The recipients that the target allows, each once. Not empty.
    pub(crate) recipients: Vec<String>,
}

/// The matches of a message, one per target.
pub(crate) struct Matches<'a> {
    pub(crate) matches: Vec<Match<'a>>,
    /// The number of recipients that targets do not allow.
    pub(crate) not_allowed: u64,
}

impl<'a> Rules<'a> {
    /// Prepares the rules. Times in queries are relative to `now`.
    pub(crate) fn new(settings: &'a Settings, now: Timestamp) -> Self {
        let prepare = |rule: &'a ForwardRule| {
            let target = settings.targets.iter().find(|target| target.name == rule.target)?;
            // The expression was checked when the settings were loaded. If it is invalid, nothing matches.
            let query = rule.search.as_deref().map(|text| Query::parse(text, now)).transpose().ok()?;
            Some(PreparedRule { rule, target, query })
        };
        Self { rules: settings.rules.iter().filter_map(prepare).collect() }
    }

    /// Returns whether the source is needed to compare this message.
    pub(crate) fn need_source(&self, message: &Message) -> bool {
        let needs_source = |rule: &PreparedRule<'_>| {
            rule.query.as_ref().is_some_and(Query::needs_source)
                && message.copies().iter().any(|copy| rule.matches_summary(copy))
        };
        self.rules.iter().any(needs_source)
    }

    /// Compares a message with all rules. Rules with the same target are combined.
    pub(crate) fn matches<'m>(&'m self, message: &'m Message, source: Option<&Mime>) -> Matches<'m> {
        let mut result = Matches { matches: Vec::new(), not_allowed: 0 };
        for rule in &self.rules {
            for copy in message.copies() {
                if rule.matches_summary(copy) && rule.matches_query(copy, source) {
                    rule.add_recipients(copy, &mut result);
                }
            }
        }
        result
    }
}

impl<'m> PreparedRule<'m> {
    /// Compares everything except the query.
    fn matches_summary(&self, copy: &Summary) -> bool {
        let ForwardRule { mailboxes, recipients, tags, .. } = self.rule;
        mailboxes.as_ref().is_none_or(|patterns| patterns.match_mailbox(&copy.mailbox))
            && (tags.is_empty() || tags.iter().any(|tag| copy.tags.contains(tag)))
            && recipients.as_ref().is_none_or(|patterns| copy.details.recipients().any(|to| patterns.matches(to)))
    }

    fn matches_query(&self, copy: &Summary, source: Option<&Mime>) -> bool {
        self.query.as_ref().is_none_or(|query| query.matches(copy, source))
    }

    /// Adds the recipients of a copy that matches.
    fn add_recipients(&self, copy: &'m Summary, result: &mut Matches<'m>) {
        let is_selected = |to: &&str| self.rule.recipients.as_ref().is_none_or(|patterns| patterns.matches(to));
        let recipients: Vec<String> = if self.rule.to.is_empty() {
            copy.details.recipients().filter(is_selected).map(str::to_owned).collect()
        } else {
            self.rule.to.iter().map(Address::text).collect()
        };
        for recipient in recipients {
            match parse_recipient(&recipient).filter(|recipient| self.target.allows(recipient)) {
                Some(recipient) => self.add_recipient(copy, recipient, result),
                None => result.not_allowed += 1,
            }
        }
    }

    fn add_recipient(&self, copy: &'m Summary, recipient: String, result: &mut Matches<'m>) {
        match result.matches.iter_mut().find(|matched| matched.target.name == self.target.name) {
            Some(matched) if matched.recipients.contains(&recipient) => {}
            Some(matched) => matched.recipients.push(recipient),
            None => result.matches.push(Match { target: self.target, copy, recipients: vec![recipient] }),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use restante_mail::details::{DetailFields, Details};
    use restante_mail::message::{Flags, Headline, MessageId};
    use restante_mail::patterns::Patterns;
    use restante_mail::tags::Tags;

    use super::*;
    use crate::recipients::RecipientPatterns;
    use crate::settings::{TargetTls, Verification};

    fn target(name: &str, allowed: &[&str], blocked: &[&str]) -> Target {
        Target {
            name: name.to_owned(),
            host: "smtp.test".to_owned(),
            port: 25,
            tls: TargetTls::None,
            verification: Verification::System,
            login: None,
            timeout: Duration::from_secs(1),
            connections: 1,
            return_path: None,
            from: None,
            allowed: patterns(allowed),
            blocked: patterns(blocked),
        }
    }

    fn patterns(texts: &[&str]) -> RecipientPatterns {
        RecipientPatterns::parse(texts).unwrap()
    }

    /// Returns a message with a copy for each mailbox, with its recipients and tag.
    fn message(copies: &[(&str, &[&str], &str)]) -> Message {
        let copy = |((mailbox, recipients, tag), id): (&(&str, &[&str], &str), u64)| {
            let recipients: Vec<String> = recipients.iter().map(ToString::to_string).collect();
            let fields = DetailFields { host: "mx.test", recipients: &recipients, ..DetailFields::default() };
            Summary {
                mailbox: (*mailbox).to_owned().into(),
                id: MessageId::from(id),
                message: MessageId::from(1),
                number: 1,
                headline: Headline::new("Ann <ann@x.org>", ["bob@x.org"], "Your invoice"),
                received: Timestamp::UNIX_EPOCH,
                size: 100,
                seen: false,
                flags: Flags::default(),
                modseq: 1,
                tags: Tags::from_valid([*tag].into_iter().filter(|tag| !tag.is_empty())),
                details: Details::new(&fields),
            }
        };
        Message::group(copies.iter().zip(1..).map(copy)).remove(0)
    }

    /// Returns the matches as `target: recipients`.
    fn describe(settings: &Settings, message: &Message) -> Vec<String> {
        let rules = Rules::new(settings, Timestamp::UNIX_EPOCH);
        let source = Mime::parse("Subject: Your invoice\r\n\r\nPlease pay.\r\n".into());
        let Matches { matches, not_allowed } = rules.matches(message, Some(&source));
        let matches =
            matches.iter().map(|matched| format!("{}: {}", matched.target.name, matched.recipients.join(" ")));
        matches.chain((not_allowed > 0).then(|| format!("not allowed: {not_allowed}"))).collect()
    }

    #[test]
    fn rules_select_messages_and_recipients() {
        let everything = || ForwardRule { target: "main".to_owned(), ..ForwardRule::default() };
        let mailboxes = |names: &[&str]| Some(Patterns::from_iter(names));
        let address =
            |text: &str| restante_mail::address::Address::parse(text, restante_mail::address::Alphabet::Ascii);
        let search = |text: &str| ForwardRule { search: Some(text.to_owned()), ..everything() };
        let table = [
            (everything(), vec!["main: bob@x.org eve@y.org carol@x.org"]),
            (ForwardRule { mailboxes: mailboxes(&["CAR*"]), ..everything() }, vec!["main: carol@x.org"]),
            (ForwardRule { mailboxes: mailboxes(&["dave"]), ..everything() }, vec![]),
            (ForwardRule { tags: vec!["run7".to_owned()], ..everything() }, vec!["main: carol@x.org"]),
            (ForwardRule { recipients: Some(patterns(&["*@y.org"])), ..everything() }, vec!["main: eve@y.org"]),
            (search("subject:invoice"), vec!["main: bob@x.org eve@y.org carol@x.org"]),
            (search("subject:invoice mailbox:carol"), vec!["main: carol@x.org"]),
            (search("pay"), vec!["main: bob@x.org eve@y.org carol@x.org"]),
            (search("refund"), vec![]),
            (ForwardRule { to: vec![address("ops@z.org").unwrap()], ..everything() }, vec!["main: ops@z.org"]),
            (
                ForwardRule {
                    to: vec![address("ops@z.org").unwrap()],
                    recipients: Some(patterns(&["nobody@*"])),
                    ..everything()
                },
                vec![],
            ),
            (ForwardRule { target: "unknown".to_owned(), ..everything() }, vec![]),
        ];
        let message = message(&[("bob", &["bob@x.org", "eve@y.org"], ""), ("carol", &["carol@x.org"], "run7")]);
        for (rule, expected) in table {
            let settings = Settings {
                targets: vec![target("main", &["*"], &[])],
                rules: vec![rule.clone()],
                ..Settings::default()
            };
            assert_eq!(describe(&settings, &message), expected, "{rule:?}");
        }
    }

    #[test]
    fn targets_decide_about_recipients() {
        let message = message(&[("bob", &["bob@x.org", "eve@y.org", "eve@y.org"], "")]);
        let rule = |name: &str| ForwardRule { target: name.to_owned(), ..ForwardRule::default() };
        let table: [(&[&str], &[&str], &[&str]); 5] = [
            (&[], &[], &["not allowed: 3"]),
            (&["*"], &[], &["main: bob@x.org eve@y.org"]),
            (&["*@x.org"], &[], &["main: bob@x.org", "not allowed: 2"]),
            (&["*"], &["/^EVE@/"], &["main: bob@x.org", "not allowed: 2"]),
            (&["*"], &["*"], &["not allowed: 3"]),
        ];
        for (allowed, blocked, expected) in table {
            let targets = vec![target("main", allowed, blocked)];
            let settings = Settings { targets, rules: vec![rule("main")], ..Settings::default() };
            assert_eq!(describe(&settings, &message), expected, "{allowed:?} {blocked:?}");
        }
        let targets = vec![target("main", &["*@x.org"], &[]), target("other", &["*@y.org"], &[])];
        let rules = vec![rule("main"), rule("other"), rule("main")];
        let settings = Settings { targets, rules, ..Settings::default() };
        assert_eq!(describe(&settings, &message), ["main: bob@x.org", "other: eve@y.org", "not allowed: 5"]);
    }

    #[test]
    fn source_is_read_only_if_a_rule_needs_it() {
        let rule = |mailbox: &str, search: &str| ForwardRule {
            target: "main".to_owned(),
            mailboxes: Some(Patterns::from_iter([mailbox])),
            search: Some(search.to_owned()),
            ..ForwardRule::default()
        };
        let message = message(&[("bob", &["bob@x.org"], "")]);
        for (mailbox, search, expected) in [("bob", "pay", true), ("bob", "is:unread", false), ("carol", "pay", false)]
        {
            let settings = Settings {
                targets: vec![target("main", &["*"], &[])],
                rules: vec![rule(mailbox, search)],
                ..Settings::default()
            };
            let rules = Rules::new(&settings, Timestamp::UNIX_EPOCH);
            assert_eq!(rules.need_source(&message), expected, "{mailbox} {search}");
        }
    }
}
