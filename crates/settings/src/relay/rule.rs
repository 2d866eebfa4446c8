//! Parses the rules that forward messages: `TARGET [CONDITION=VALUE ...] [to=ADDRESS|...]`.

use restante_mail::tags;
use restante_relay::ForwardRule;
use restante_search::Query;

use super::{Options, is_name, parse_address, split_words};
use crate::values::parse_entries;

const MAILBOXES: &str = "mailboxes";
const RECIPIENTS: &str = "recipients";
const TAGS: &str = "tags";
const SEARCH: &str = "search";
const TO: &str = "to";

const OPTIONS: &[&str] = &[MAILBOXES, RECIPIENTS, TAGS, SEARCH, TO];

/// The example in error messages.
const EXAMPLE: &str = "staging mailboxes=qa-*|ci search=\"subject:error from:ci\"";

/// Parses a list of rules. Whether their targets exist is checked later.
pub(crate) fn parse_rules(text: &str) -> Result<Vec<ForwardRule>, String> {
    parse_entries(text, parse_rule)
}

/// Parses one entry. The error is appended to the number of the entry.
fn parse_rule(entry: &str) -> Result<ForwardRule, String> {
    let words = split_words(entry)?;
    let [target, options @ ..] = &words[..] else { return Err(format!("is empty; an example is {EXAMPLE}")) };
    if !is_name(target) {
        return Err(format!(
            "does not begin with the name of a target (a comma is written %2C); an example is {EXAMPLE}"
        ));
    }
    let options = Options::parse(options, OPTIONS, EXAMPLE)?;
    let mailboxes = options.list(MAILBOXES)?;
    if mailboxes.iter().any(|pattern| pattern.starts_with('/')) {
        return Err(format!(
            "has a regular expression in {MAILBOXES}, which takes only names with the wildcards * and ?"
        ));
    }
    let recipients = options.recipients(RECIPIENTS)?;
    let tags = options.list(TAGS)?;
    if let Some(error) = tags.iter().find_map(|tag| tags::validate(tag).err()) {
        return Err(format!("has an invalid value of {TAGS}: {error}"));
    }
    let to: Result<Vec<_>, String> = options.list(TO)?.iter().map(|text| parse_address(text)).collect();
    Ok(ForwardRule {
        target: target.clone(),
        mailboxes: (!mailboxes.is_empty()).then(|| mailboxes.iter().collect()),
        recipients: (!recipients.is_empty()).then_some(recipients),
        tags,
        search: options.parsed(SEARCH, parse_search)?,
        to: to.map_err(|error| format!("has an invalid value of {TO}: {error}"))?,
    })
}

fn parse_search(text: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        return Err("must be an expression such as subject:error".to_owned());
    }
    Query::parse(text, jiff::Timestamp::now()).map_err(|error| error.to_string().trim_end_matches('.').to_owned())?;
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_rules() {
        let rules = parse_rules(
            "staging, qa mailboxes=QA-*|ci recipients=*@x.org|/^a{1%2C2}@/ tags=error|two%20words \
             search=\"subject:%22disk full%22 or from:ci\" to=me@x.org|you@x.org",
        )
        .unwrap();
        let [all, some] = &rules[..] else { panic!("{rules:?}") };
        assert_eq!(all.target, "staging");
        assert!(all.mailboxes.is_none() && all.recipients.is_none() && all.search.is_none());
        assert!(all.tags.is_empty() && all.to.is_empty());

        assert_eq!(some.target, "qa");
        let mailboxes = some.mailboxes.as_ref().unwrap();
        assert!(mailboxes.matches("qa-1") && mailboxes.matches("ci") && !mailboxes.matches("other"));
        assert_eq!(some.recipients.as_ref().unwrap().texts(), ["*@x.org", "/^a{1,2}@/"]);
        assert_eq!(some.tags, ["error", "two words"]);
        assert_eq!(some.search.as_deref(), Some("subject:\"disk full\" or from:ci"));
        assert_eq!(some.to.iter().map(ToString::to_string).collect::<Vec<_>>(), ["me@x.org", "you@x.org"]);
        assert_eq!(parse_rules("").map(|rules| rules.len()), Ok(0));
    }

    #[test]
    fn reports_errors_with_the_number_of_the_entry() {
        let table = [
            ("mailboxes=qa", "entry 1 does not begin with the name of a target"),
            (
                "a,b c",
                "entry 2 has an unknown option: the options are mailboxes, recipients, tags, search, to; an example",
            ),
            ("a tag=x", "entry 1 has an unknown option"),
            ("a tags=x tags=y", "entry 1 repeats the option tags"),
            ("a mailboxes=", "entry 1 has an empty value of mailboxes"),
            ("a mailboxes=x||y", "entry 1 has an empty value of mailboxes"),
            ("a mailboxes=/^ci-/", "entry 1 has a regular expression in mailboxes, which takes only names"),
            ("a recipients=/(/", "entry 1 has an invalid regular expression in recipients"),
            ("a tags=a!b", "entry 1 has an invalid value of tags: a tag must not contain '!'"),
            ("a search=", "entry 1 has an empty value of search"),
            ("a search=%20", "entry 1 has an invalid value of search: must be an expression such as subject:error"),
            ("a search=(subject:x", "entry 1 has an invalid value of search: "),
            ("a search=\"subject:x", "entry 1 has no closing quote"),
            ("a search=subject:disk full", "entry 1 has an unknown option"),
            ("a to=nobody", "entry 1 has an invalid value of to: the domain is missing"),
            ("a to=a@x.org%0d%0aRCPT", "entry 1 has a control character in to"),
        ];
        for (text, expected) in table {
            let error = parse_rules(text).expect_err(text);
            assert!(error.starts_with(expected), "{text}: {error}");
        }
    }
}
