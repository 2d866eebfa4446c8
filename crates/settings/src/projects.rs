//! Parses the rules that choose projects: `NAME [CONDITION=VALUE|VALUE ...]; ...`.

use restante_mail::rules::{Condition, Field};
use restante_mailroom::projects::{FIELDS, ProjectRule, ProjectRules};

use super::options::{decode_list, parse_entries, split_words};

const MAX_RULES: usize = 100;
const MAX_CONDITIONS: usize = 10;

/// The example in error messages.
const EXAMPLE: &str = "shop login=shop-*; acme domain=acme.test|*.acme.test; {1} login=*-ci";

/// Parses a list of rules.
pub(super) fn parse_project_rules(text: &str) -> Result<ProjectRules, String> {
    let parse = |entry: &str| parse_rule(entry).map_err(|error| format!("{error}; an example is {EXAMPLE}"));
    parse_entries(text, ["rule", "rules"], MAX_RULES, parse).map(ProjectRules::from_iter)
}

fn parse_rule(entry: &str) -> Result<ProjectRule, String> {
    let words = split_words(entry)?;
    let (name, conditions) = words.split_first().ok_or("is empty")?;
    if conditions.len() > MAX_CONDITIONS {
        return Err(format!("has {} conditions: must be at most {MAX_CONDITIONS}", conditions.len()));
    }
    let conditions = conditions.iter().map(|word| parse_condition(word)).collect::<Result<_, _>>()?;
    ProjectRule::new(entry, name, conditions).map_err(|error| format!("has the invalid name {name:?}: {error}"))
}

fn parse_condition(word: &str) -> Result<Condition, String> {
    let unknown = || {
        let fields = FIELDS.map(Field::name).join(", ");
        format!("has the unknown condition {word:?}: the conditions are {fields}, client and header")
    };
    let (name, values) = word.split_once('=').ok_or_else(unknown)?;
    match name {
        "client" => {
            let networks: Result<_, String> = decode_list(name, values)?.iter().map(|value| value.parse()).collect();
            networks.map(Condition::Client).map_err(|error| format!("has an invalid value of {name}: {error}"))
        }
        "header" => {
            let is_name = |name: &str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic());
            let parts = values.split_once(':').filter(|(header, _)| is_name(header));
            let (header, patterns) =
                parts.ok_or("has an invalid value of header: must be NAME:PATTERN, such as X-Application:shop")?;
            Ok(Condition::Header(header.to_owned(), decode_list(name, patterns)?.iter().collect()))
        }
        _ => {
            let field = Field::from_name(name).filter(|field| FIELDS.contains(field)).ok_or_else(unknown)?;
            Ok(Condition::Text(field, decode_list(name, values)?.iter().collect()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_rules() {
        let rules = "shop login=shop-*; acme domain=*.acme.test ;; srs header=X-Application:srs;{1} login=*-ci; \
                     legacy client=10.1.0.0/16|192.0.2.1 helo=legacy-*;two header=\"X-App:two words|%3B\" header=X-B:*;\n\
                     {2}-{domain}-x sender=*@* listener=:2526; shop key=SG.shop*; {1} key=re_*; rest";
        let texts: Vec<String> = parse_project_rules(rules).unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(texts.len(), 10, "{texts:?}");
        assert_eq!((texts[1].as_str(), texts[9].as_str()), ("acme domain=*.acme.test", "rest"));
        assert_eq!(parse_project_rules("").unwrap().iter().count(), 0);
    }

    #[test]
    fn errors_name_the_rule_and_what_is_accepted() {
        let many = "a; ".repeat(MAX_RULES + 1);
        let long = format!("a{}", " helo=x".repeat(MAX_CONDITIONS + 1));
        let table = [
            (
                "login=shop-*",
                "rule 1 (login=shop-*) has the invalid name \"login=shop-*\": the name of a project has 1",
            ),
            ("a; Shop", "rule 2 (Shop) has the invalid name \"Shop\": the name of a project has 1 to 63 letters"),
            (
                "a b",
                "rule 1 (a b) has the unknown condition \"b\": the conditions are login, key, listener, helo, sender",
            ),
            ("a subject=x", "rule 1 (a subject=x) has the unknown condition \"subject=x\": "),
            ("a login=", "rule 1 (a login=) has an empty value of login"),
            ("a login=x|", "rule 1 (a login=x|) has an empty value of login"),
            ("a login=%", "rule 1 (a login=%) has a % without two hexadecimal digits"),
            ("a helo=\"x", "rule 1 (a helo=\"x) has no closing quote"),
            (
                "a client=10",
                "rule 1 (a client=10) has an invalid value of client: \"10\" is not a network: expected an IP",
            ),
            ("a header=x", "rule 1 (a header=x) has an invalid value of header: must be NAME:PATTERN, such as"),
            ("a header=:x", "rule 1 (a header=:x) has an invalid value of header: "),
            ("{1}", "rule 1 ({1}) has the invalid name \"{1}\": {1} is neither a field nor the number of a wildcard"),
            ("{2} login=*|a*-*", "rule 1 ({2} login=*|a*-*) has the invalid name \"{2}\": {2} is neither"),
            ("{0} login=*", "rule 1 ({0} login=*) has the invalid name"),
            ("{subject}", "rule 1 ({subject}) has the invalid name \"{subject}\": {subject} is neither a field"),
            ("x-{key} key=*", "rule 1 (x-{key} key=*) has the invalid name \"x-{key}\": {key} would show the API key"),
            ("a{login", "rule 1 (a{login) has the invalid name \"a{login\": the name of a project"),
            ("-{login}", "rule 1 (-{login}) has the invalid name"),
            (&many, "has 101 rules: must be at most 100"),
            (&long, "rule 1 (a helo=x helo=x"),
        ];
        for (text, expected) in table {
            let error = parse_project_rules(text).expect_err(text);
            assert!(error.starts_with(expected), "{text}: {error}");
            assert!(error.ends_with(EXAMPLE) || text.len() > 100, "{error}");
        }
        assert!(
            parse_project_rules(&long).unwrap_err().contains(") has 11 conditions: must be at most 10; an example")
        );
    }
}
