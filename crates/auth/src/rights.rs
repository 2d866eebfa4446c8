//! The rights of a user or token, as an operator writes them: scopes, then patterns of mailboxes.

use std::fmt;
use std::str::FromStr;

use restante_mail::naming::Project;
use restante_mail::patterns::Patterns;

use crate::grant::{Grant, Scope, Scopes};

/// The maximum number of mailbox patterns.
const MAX_PATTERNS: usize = 100;
/// The maximum length of a pattern in bytes.
const MAX_PATTERN_BYTES: usize = 255;
/// The text of [`Rights::EVERYTHING`].
const ALL: &str = "all";

/// What a user or token may do. It is written as scopes with commas between them, then patterns with spaces between them:
/// `read,write shop:* ci-*`. Without patterns, the scopes are granted in all mailboxes. `all` stands for all scopes in all
/// mailboxes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rights {
    /// The scopes.
    pub scopes: Scopes,
    /// The mailboxes, as patterns; empty means all.
    pub mailboxes: Vec<String>,
}

impl Rights {
    /// All scopes in all mailboxes.
    pub const EVERYTHING: Self = Self { scopes: Scopes::ALL, mailboxes: Vec::new() };

    /// Checks the limits. The error says what is wrong.
    pub fn check(&self) -> Result<(), String> {
        let is_valid =
            |text: &str| !text.is_empty() && text.len() <= MAX_PATTERN_BYTES && !text.chars().any(char::is_control);
        if self.scopes == Scopes::default() {
            return Err("at least one scope is needed".to_owned());
        }
        if self.mailboxes.iter().any(String::is_empty) {
            return Err("a mailbox pattern is empty".to_owned());
        }
        if self.mailboxes.len() > MAX_PATTERNS || !self.mailboxes.iter().all(|pattern| is_valid(pattern)) {
            return Err(format!(
                "at most {MAX_PATTERNS} mailbox patterns of at most {MAX_PATTERN_BYTES} bytes are allowed, without control characters"
            ));
        }
        Ok(())
    }

    /// Returns the grant of a user or token of this name.
    pub fn grant(&self, name: &str) -> Grant {
        let patterns = (!self.mailboxes.is_empty()).then(|| Patterns::from_iter(&self.mailboxes));
        Grant::new(name, self.scopes, patterns)
    }
}

/// Returns patterns for these mailboxes of each of these projects: for all mailboxes of them if none is given. Without
/// projects, returns the patterns as they are.
pub fn patterns_in_projects(projects: &[Project], mailboxes: &[String]) -> Vec<String> {
    if projects.is_empty() {
        return mailboxes.to_vec();
    }
    let in_project = |project: &Project| {
        let prefix = project.prefix();
        let names: Vec<String> = if mailboxes.is_empty() { vec!["*".to_owned()] } else { mailboxes.to_vec() };
        names.into_iter().map(move |name| format!("{prefix}{name}"))
    };
    projects.iter().flat_map(in_project).collect()
}

impl FromStr for Rights {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut words = text.split_whitespace();
        let scopes = words.next().ok_or("scopes are missing, for example: read,write shop:*")?;
        let mailboxes: Vec<String> = words.map(str::to_owned).collect();
        let scopes = if scopes == ALL {
            Scopes::ALL
        } else {
            let parse = |scope: &str| scope.parse::<Scope>();
            scopes.split(',').map(parse).collect::<Result<_, _>>().map_err(|allowed| {
                format!("{scopes:?} must be {ALL} or scopes with commas between them; a scope must be {allowed}")
            })?
        };
        let rights = Self { scopes, mailboxes };
        rights.check().map(|()| rights)
    }
}

impl fmt::Display for Rights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.scopes == Scopes::ALL {
            f.write_str(ALL)?;
        } else {
            let scopes: Vec<&str> = self.scopes.iter().map(Scope::name).collect();
            f.write_str(&scopes.join(","))?;
        }
        self.mailboxes.iter().try_for_each(|pattern| write!(f, " {pattern}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_and_writes_rights() {
        for text in ["all", "read", "read,write shop:*", "all shop:* acme:bob", "admin,relay"] {
            assert_eq!(text.parse::<Rights>().unwrap().to_string(), text);
        }
        assert_eq!("all".parse(), Ok(Rights::EVERYTHING));
        let table = [
            ("", "scopes are missing"),
            ("shop:*", "\"shop:*\" must be all or scopes"),
            ("read,", "\"read,\" must be all or scopes"),
        ];
        for (text, expected) in table {
            let error = text.parse::<Rights>().unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
        let many = format!("read{}", " a".repeat(MAX_PATTERNS + 1));
        assert!(many.parse::<Rights>().is_err());
        let grant = "read shop:*".parse::<Rights>().unwrap().grant("ann");
        assert_eq!(grant.home().map(Project::as_str), Some("shop"));
        assert!(grant.allows(Scope::Read, &"shop:x".to_owned().into()) && !grant.allows_somewhere(Scope::Write));
    }

    #[test]
    fn patterns_are_in_all_projects() {
        let projects = ["shop", "acme"].map(|name| name.parse().unwrap());
        let mailboxes = ["bob".to_owned()];
        assert_eq!(patterns_in_projects(&projects, &[]), ["shop:*", "acme:*"]);
        assert_eq!(patterns_in_projects(&projects, &mailboxes), ["shop:bob", "acme:bob"]);
        assert_eq!(patterns_in_projects(&[], &mailboxes), mailboxes);
    }
}
