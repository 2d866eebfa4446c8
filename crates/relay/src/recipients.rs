//! Patterns of recipients: who messages may be sent to.

use regex::{Regex, RegexBuilder};
use restante_http_client::{Host, domain_to_unicode};
use restante_mail::patterns::Patterns;

/// The maximum size of a compiled regular expression in bytes.
const MAX_REGEX_BYTES: usize = 1024 * 1024;

/// Patterns of mail addresses. A pattern is compared with the whole address, without regard to case; `*` and `?` are
/// wildcards. A pattern between slashes is a regular expression, which may match a part of the address.
#[derive(Clone, Debug, Default)]
pub struct RecipientPatterns {
    wildcards: Patterns,
    expressions: Vec<Regex>,
    /// The patterns as they were given.
    texts: Vec<String>,
}

impl RecipientPatterns {
    /// Parses patterns. The error is a phrase such as `has an invalid regular expression`.
    pub fn parse<S: AsRef<str>>(patterns: impl IntoIterator<Item = S>) -> Result<Self, String> {
        let (mut wildcards, mut expressions, mut texts) = (Vec::new(), Vec::new(), Vec::new());
        for pattern in patterns {
            let pattern = pattern.as_ref();
            if pattern.is_empty() {
                return Err("has an empty pattern".to_owned());
            }
            match pattern.strip_prefix('/').and_then(|rest| rest.strip_suffix('/')) {
                Some(expression) => {
                    let regex =
                        RegexBuilder::new(expression).case_insensitive(true).size_limit(MAX_REGEX_BYTES).build();
                    expressions.push(regex.map_err(|_| "has an invalid regular expression".to_owned())?);
                }
                None => wildcards.push(pattern.to_owned()),
            }
            texts.push(pattern.to_owned());
        }
        // International domains have two spellings, and are compared in both.
        let spellings = wildcards.iter().flat_map(|pattern| [pattern.clone(), with_ascii_domain(pattern)]);
        Ok(Self { wildcards: spellings.collect(), expressions, texts })
    }

    /// Returns whether any pattern matches the address.
    pub fn matches(&self, address: &str) -> bool {
        let ascii = with_ascii_domain(address);
        let unicode = with_unicode_domain(&ascii);
        let matches = |address: &str| {
            self.wildcards.matches(address) || self.expressions.iter().any(|expression| expression.is_match(address))
        };
        matches(&ascii) || (unicode != ascii && matches(&unicode))
    }

    /// Returns whether there are no patterns. Then nothing matches.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// Returns the patterns as they were given.
    pub fn texts(&self) -> &[String] {
        &self.texts
    }
}

/// Returns an address or pattern with its international labels as ASCII (`xn--…`). Labels that have no such form, also
/// because of wildcards, stay as they are.
pub(crate) fn with_ascii_domain(address: &str) -> String {
    map_labels(address, |label| match Host::parse(label) {
        Ok(Host::Domain(ascii)) if !label.is_ascii() => ascii,
        _ => label.to_owned(),
    })
}

/// Returns an address with its international labels in Unicode.
fn with_unicode_domain(address: &str) -> String {
    map_labels(address, |label| {
        let is_international = label.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("xn--"));
        // An empty text stands for an invalid label.
        let unicode = if is_international { domain_to_unicode(label) } else { String::new() };
        if unicode.is_empty() { label.to_owned() } else { unicode }
    })
}

fn map_labels(address: &str, map: impl Fn(&str) -> String) -> String {
    let Some((local, domain)) = address.rsplit_once('@') else { return address.to_owned() };
    let labels: Vec<String> = domain.split('.').map(map).collect();
    format!("{local}@{}", labels.join("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_wildcards_and_expressions() {
        let patterns = RecipientPatterns::parse(["*@Example.org", "qa?@x.org", "/^ops\\+[0-9]+@/"]).unwrap();
        let table = [
            ("ann@example.org", true),
            ("Ann@EXAMPLE.ORG", true),
            ("ann@example.org.evil.test", false),
            ("ann@sub.example.org", false),
            ("qa1@x.org", true),
            ("qa12@x.org", false),
            ("OPS+7@anywhere.test", true),
            ("xops+7@anywhere.test", false),
        ];
        for (address, expected) in table {
            assert_eq!(patterns.matches(address), expected, "{address}");
        }
        for pattern in
            ["*@b\u{fc}cher.example", "*@xn--bcher-kva.example", "*@*.example", "/@b\u{fc}cher\\./", "/@xn--bch/"]
        {
            let patterns = RecipientPatterns::parse([pattern]).unwrap();
            for address in [
                "ann@b\u{fc}cher.example",
                "ann@B\u{dc}CHER.example",
                "ann@XN--bcher-kva.example",
                "ann@b\u{fc}\u{ff43}her.example",
            ] {
                assert!(patterns.matches(address), "{pattern} {address}");
            }
        }
        // A pattern is compared with the form that is sent: a full-width dot separates labels.
        let one_label = RecipientPatterns::parse(["/@[^.]+\\.example$/"]).unwrap();
        assert!(one_label.matches("ann@a.example") && !one_label.matches("ann@a\u{ff0e}b.example"));
        assert!(RecipientPatterns::parse(["*"]).unwrap().matches("ann@example.org"));
        assert!(!RecipientPatterns::default().matches("ann@example.org"), "nothing is allowed by default");
        for invalid in ["", "/(/"] {
            assert!(RecipientPatterns::parse([invalid]).is_err(), "{invalid}");
        }
    }
}
