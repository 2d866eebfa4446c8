//! Patterns of recipients: who messages may be sent to.

use regex::{Regex, RegexBuilder};
use restante_http_client::Host;
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
        let matches = |address: &str| {
            self.wildcards.matches(address) || self.expressions.iter().any(|expression| expression.is_match(address))
        };
        matches(address) || (ascii != address && matches(&ascii))
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

/// Returns an address or pattern with its international labels as ASCII (`xn--…`). Labels with wildcards stay as they are.
fn with_ascii_domain(address: &str) -> String {
    let Some((local, domain)) = address.rsplit_once('@') else { return address.to_owned() };
    if domain.is_ascii() {
        return address.to_owned();
    }
    let to_ascii = |label: &str| match Host::parse(label) {
        Ok(Host::Domain(ascii)) if !label.is_ascii() => ascii,
        _ => label.to_owned(),
    };
    let labels: Vec<String> = domain.split('.').map(to_ascii).collect();
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
        for pattern in ["*@b\u{fc}cher.example", "*@xn--bcher-kva.example", "*@*.example"] {
            let patterns = RecipientPatterns::parse([pattern]).unwrap();
            for address in ["ann@b\u{fc}cher.example", "ann@B\u{dc}CHER.example", "ann@XN--bcher-kva.example"] {
                assert!(patterns.matches(address), "{pattern} {address}");
            }
        }
        assert!(RecipientPatterns::parse(["*"]).unwrap().matches("ann@example.org"));
        assert!(!RecipientPatterns::default().matches("ann@example.org"), "nothing is allowed by default");
        for invalid in ["", "/(/"] {
            assert!(RecipientPatterns::parse([invalid]).is_err(), "{invalid}");
        }
    }
}
