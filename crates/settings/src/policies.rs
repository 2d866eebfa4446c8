//! Parses the limits of some mailboxes: `PATTERN OPTION=VALUE ...; ...`.

use restante_mail::patterns::Patterns;
use restante_store::{MailboxPolicies, MailboxPolicy};

use super::options::{Options, decode, parse_entries, split_words};
use super::table::{MAX_KIB, MAX_MAILBOX_MESSAGES};
use super::values::{kibibytes, number, retention_period};

const MAX_POLICIES: usize = 100;
const OPTIONS: &[&str] = &["retention", "cap", "maxkb"];
/// The example in error messages.
const EXAMPLE: &str = "shop:* retention=24h cap=500 maxkb=10240; run-*:* retention=1h";

/// Parses a list of policies.
pub(super) fn parse_policies(text: &str) -> Result<MailboxPolicies, String> {
    parse_entries(text, ["entry", "entries"], MAX_POLICIES, parse_policy).map(MailboxPolicies::from_iter)
}

fn parse_policy(entry: &str) -> Result<MailboxPolicy, String> {
    let with_example = |error: String| format!("{error}; an example is {EXAMPLE}");
    let words = split_words(entry).map_err(with_example)?;
    let (pattern, options) =
        words.split_first().filter(|(pattern, options)| !pattern.contains('=') && !options.is_empty()).ok_or_else(
            || with_example(format!("must be a pattern of mailboxes and at least one of {}", OPTIONS.join(", "))),
        )?;
    let options = Options::parse(options, OPTIONS, EXAMPLE)?;
    let parse_values = || {
        Ok(MailboxPolicy {
            mailboxes: Patterns::from_iter([decode(pattern)?]),
            retention: options.parsed("retention", |text| Ok(retention_period(text)?.unwrap_or_default()))?,
            messages: options.parsed("cap", |text| number(text, 0..=MAX_MAILBOX_MESSAGES))?,
            bytes: options.parsed("maxkb", |text| kibibytes(text, 0..=MAX_KIB))?,
        })
    };
    parse_values().map_err(with_example)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn parses_policies() {
        let policy =
            |pattern: &str| MailboxPolicy { mailboxes: Patterns::from_iter([pattern]), ..MailboxPolicy::default() };
        let shop = MailboxPolicy {
            retention: Some(Duration::from_hours(24)),
            messages: Some(500),
            bytes: Some(10_240 << 10),
            ..policy("shop:*")
        };
        let run = MailboxPolicy { retention: Some(Duration::from_hours(1)), ..policy("run-*:*") };
        let unlimited =
            MailboxPolicy { retention: Some(Duration::ZERO), messages: Some(0), bytes: Some(0), ..policy("a b") };
        let table = [
            ("", vec![]),
            (" ; ", vec![]),
            (EXAMPLE, vec![shop.clone(), run]),
            ("SHOP:* maxkb=10240 cap=500 retention=1d;", vec![shop]),
            ("a%20b retention=0 cap=0 maxkb=0", vec![unlimited]),
        ];
        for (text, expected) in table {
            assert_eq!(parse_policies(text), Ok(MailboxPolicies::from_iter(expected)), "{text}");
        }
    }

    #[test]
    fn errors_name_the_entry_and_what_is_accepted() {
        let many = "a cap=1; ".repeat(MAX_POLICIES + 1);
        let table = [
            ("shop:*", "entry 1 (shop:*) must be a pattern of mailboxes and at least one of retention, cap, maxkb"),
            ("a cap=1; cap=5", "entry 2 (cap=5) must be a pattern of mailboxes and at least one of"),
            ("a cap", "entry 1 (a cap) has an unknown option: the options are retention, cap, maxkb"),
            ("a size=1", "entry 1 (a size=1) has an unknown option: "),
            ("a cap=1 cap=2", "entry 1 (a cap=1 cap=2) repeats the option cap"),
            ("a cap=", "entry 1 (a cap=) has an empty value of cap"),
            ("a cap=-1", "entry 1 (a cap=-1) has an invalid value of cap: must be a whole number from 0 to 1000000000"),
            ("a maxkb=1M", "entry 1 (a maxkb=1M) has an invalid value of maxkb: must be a whole number from 0 to"),
            ("a retention=5", "entry 1 (a retention=5) has an invalid value of retention: must be a duration such as"),
            (
                "a retention=1ms",
                "entry 1 (a retention=1ms) has an invalid value of retention: must be a duration from 1s",
            ),
            ("% cap=1", "entry 1 (% cap=1) has a % without two hexadecimal digits"),
            (&many, "has 101 entries: must be at most 100"),
        ];
        for (text, expected) in table {
            let error = parse_policies(text).expect_err(text);
            assert!(error.starts_with(expected), "{text}: {error}");
            assert!(text == many || error.ends_with(&format!("; an example is {EXAMPLE}")), "{error}");
        }
    }
}
