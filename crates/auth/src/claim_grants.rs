//! The rights of accounts that are managed elsewhere: by an identity provider, or by an authenticating proxy. Both describe an
//! account by claims, and rules grant rights to accounts with certain claims.

use std::str::FromStr;

use restante_mail::patterns::Patterns;
use serde_json::{Map, Value};

use crate::rights::Rights;

/// The claims of an account: a JSON object.
pub(crate) type Claims = Map<String, Value>;

/// The maximum number of rules.
const MAX_RULES: usize = 100;
/// The maximum length of the name of a claim and of a pattern in bytes.
const MAX_TEXT_BYTES: usize = 255;
/// The example in error messages.
const EXAMPLE: &str = "groups=qa -> read,write shop:*";

/// An ordered list of rules, written as `CLAIM=PATTERN -> RIGHTS` with semicolons or line breaks between them:
/// `groups=qa -> read,write shop:*; groups=admin -> all`. The first rule that matches an account decides. If none does, the
/// account has no access.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClaimGrants {
    text: String,
    rules: Vec<ClaimRule>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct ClaimRule {
    claim: String,
    pattern: Patterns,
    rights: Rights,
}

impl ClaimGrants {
    /// Returns true if there are no rules, so that no account has access.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Returns the rules as they were written.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the rights that each rule grants.
    pub(crate) fn rights(&self) -> impl Iterator<Item = &Rights> {
        self.rules.iter().map(|rule| &rule.rights)
    }

    /// Returns the number of the first rule that matches these claims.
    pub(crate) fn find(&self, claims: &Claims) -> Option<usize> {
        self.rules.iter().position(|rule| rule.matches(claims))
    }
}

impl ClaimRule {
    /// Returns true if the claim is a text that matches the pattern, or a list with such a text.
    fn matches(&self, claims: &Claims) -> bool {
        match find_claim(claims, &self.claim) {
            Some(Value::String(text)) => self.pattern.matches(text),
            Some(Value::Array(values)) => {
                values.iter().filter_map(Value::as_str).any(|text| self.pattern.matches(text))
            }
            _ => false,
        }
    }
}

/// Returns a claim. A dot in its name separates the names of nested objects, unless there is a claim with the whole name.
fn find_claim<'c>(mut claims: &'c Claims, mut name: &str) -> Option<&'c Value> {
    loop {
        if let Some(value) = claims.get(name) {
            return Some(value);
        }
        let (first, rest) = name.split_once('.')?;
        (claims, name) = (claims.get(first)?.as_object()?, rest);
    }
}

impl FromStr for ClaimGrants {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let entries = text.split([';', '\n']).map(str::trim).filter(|entry| !entry.is_empty()).zip(1..);
        let rules: Vec<ClaimRule> = entries
            .map(|(entry, number): (_, usize)| entry.parse().map_err(|error| format!("entry {number} {error}")))
            .collect::<Result<_, String>>()?;
        if rules.len() > MAX_RULES {
            return Err(format!("must have at most {MAX_RULES} entries"));
        }
        Ok(Self { text: text.to_owned(), rules })
    }
}

impl FromStr for ClaimRule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_valid = |text: &&str| !text.is_empty() && text.len() <= MAX_TEXT_BYTES;
        let (condition, rights) = text.split_once("->").unwrap_or((text, ""));
        let condition = condition.split_once('=').map(|(claim, pattern)| [claim.trim(), pattern.trim()]);
        match condition.filter(|parts| parts.iter().all(is_valid)) {
            Some([claim, pattern]) if !rights.is_empty() => Ok(Self {
                claim: claim.to_owned(),
                pattern: Patterns::from_iter([pattern]),
                rights: rights.parse().map_err(|error| format!("has invalid rights: {error}"))?,
            }),
            _ => Err(format!("{text:?} must have the form CLAIM=PATTERN -> RIGHTS; an example is {EXAMPLE}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_first_matching_rule_decides() {
        let grants: ClaimGrants =
            "groups=qa -> read,write shop:*; groups=Admin*->all\nemail=*@acme.test -> read acme:*; \
             realm_access.roles=ops -> admin; https://acme.test/team=cn=a,ou=b -> relay;"
                .parse()
                .unwrap();
        let table = [
            (json!({"groups": ["qa", "admins"]}), Some(0)),
            (json!({"groups": "QA"}), Some(0)),
            (json!({"groups": ["dev", "admins"], "email": "a@acme.test"}), Some(1)),
            (json!({"email": "a@acme.test", "groups": []}), Some(2)),
            (json!({"realm_access": {"roles": ["dev", "ops"]}}), Some(3)),
            (json!({"realm_access.roles": "ops"}), Some(3)),
            (json!({"https://acme.test/team": "cn=a,ou=b"}), Some(4)),
            (json!({"email": "a@acme.test.example"}), None),
            (json!({"groups": {"qa": true}, "realm_access": "roles"}), None),
            (json!({"groups": [7, null, ["qa"]], "email": null}), None),
            (json!({}), None),
        ];
        for (claims, expected) in table {
            assert_eq!(grants.find(claims.as_object().unwrap()), expected, "{claims}");
        }
        let rights: Vec<String> = grants.rights().map(ToString::to_string).collect();
        assert_eq!(rights, ["read,write shop:*", "all", "read acme:*", "admin", "relay"]);
        assert!(" ;\n".parse::<ClaimGrants>().unwrap().is_empty() && !grants.is_empty());
    }

    #[test]
    fn errors_name_the_entry() {
        let form = "must have the form CLAIM=PATTERN -> RIGHTS; an example is groups=qa -> read,write shop:*";
        let table = [
            ("groups=qa", format!("entry 1 \"groups=qa\" {form}")),
            ("a=b -> all; groups -> all", format!("entry 2 \"groups -> all\" {form}")),
            ("=qa -> all", format!("entry 1 \"=qa -> all\" {form}")),
            ("groups= -> all", format!("entry 1 \"groups= -> all\" {form}")),
            ("groups=qa -> ", format!("entry 1 \"groups=qa ->\" {form}")),
            ("groups=qa -> everything", "entry 1 has invalid rights: \"everything\" must be all or scopes".to_owned()),
        ];
        for (text, expected) in table {
            let error = text.parse::<ClaimGrants>().unwrap_err();
            assert!(error.starts_with(&expected), "{error}");
        }
        assert!("a=b -> all;".repeat(MAX_RULES + 1).parse::<ClaimGrants>().is_err());
    }
}
