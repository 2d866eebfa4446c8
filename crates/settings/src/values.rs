//! Parsers of single values. Each returns the typed value, or a text that says what is accepted. The caller adds the
//! setting, the source and the value.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use regex::{Regex, RegexBuilder};
use restante_mail::duration;
use restante_mailroom::chaos::{TriggerError, Triggers};
use restante_mailroom::policy::Domains;
use restante_mailroom::tagging::{TagRule, TagRuleError};

/// The maximum number of characters in a domain name.
const MAX_DOMAIN_CHARS: usize = 255;
/// The maximum number of characters in a label of a domain name.
const MAX_LABEL_CHARS: usize = 63;
/// The maximum size of a compiled regular expression in bytes.
const MAX_REGEX_BYTES: usize = 1024 * 1024;
/// The maximum number of characters in a base path.
const MAX_BASE_PATH_CHARS: usize = 255;

/// Parses a boolean, in all spellings that are common in configurations.
pub fn parse_boolean(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "t" | "1" | "yes" | "y" | "on" => Ok(true),
        "false" | "f" | "0" | "no" | "n" | "off" => Ok(false),
        _ => Err("must be true or false (also 1, 0, yes, no, on, off)".to_owned()),
    }
}

/// Parses one of several names, in any case of letters.
pub(super) fn choice<T: Copy>(text: &str, choices: &[(&str, T)]) -> Result<T, String> {
    let given = choices.iter().find(|(name, _)| name.eq_ignore_ascii_case(text));
    given.map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        let (last, others) = names.split_last().unwrap_or((&"", &[]));
        format!("must be {} or {last}", others.join(", "))
    })
}

/// Parses a whole number within a range.
pub(super) fn number<T>(text: &str, range: RangeInclusive<u64>) -> Result<T, String>
where
    T: TryFrom<u64>,
{
    let is_digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_digits
        .then(|| text.parse().ok())
        .flatten()
        .filter(|number| range.contains(number))
        .and_then(|number: u64| T::try_from(number).ok())
        .ok_or_else(|| format!("must be a whole number from {} to {}", range.start(), range.end()))
}

/// Parses a number of KiB within a range, and converts it to bytes.
pub(super) fn kibibytes<T>(text: &str, range: RangeInclusive<u64>) -> Result<T, String>
where
    T: TryFrom<u64>,
{
    let kib: u64 = number(text, range).map_err(|allowed| format!("{allowed}, in KiB"))?;
    let bytes = kib.saturating_mul(1024);
    T::try_from(bytes).map_err(|_| "exceeds the address space of this machine".to_owned())
}

/// Parses a number; 0 means no limit.
pub(super) fn optional_limit(text: &str, max: u64) -> Result<Option<usize>, String> {
    match number(text, 0..=max)? {
        0 => Ok(None),
        limit => Ok(Some(limit)),
    }
}

/// Parses a duration within a range whose limits are written like values of settings.
pub(super) fn duration_between(text: &str, min: &str, max: &str) -> Result<Duration, String> {
    let time = duration::parse(text)?;
    if time < duration::parse(min)? || time > duration::parse(max)? {
        return Err(format!("must be a duration from {min} to {max}"));
    }
    Ok(time)
}

/// Parses a duration within a range; 0 means forever.
pub(super) fn optional_duration(text: &str, min: &str, max: &str) -> Result<Option<Duration>, String> {
    if duration::parse(text)?.is_zero() {
        return Ok(None);
    }
    duration_between(text, min, max).map(Some).map_err(|allowed| format!("{allowed}, or 0 for no limit"))
}

/// Parses how long a message is kept; 0 means forever.
pub(super) fn retention_period(text: &str) -> Result<Option<Duration>, String> {
    optional_duration(text, "1s", "876000h")
}

/// Splits a list at commas. Entries are trimmed, and empty ones are dropped.
pub(super) fn split_list(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|item| !item.is_empty()).map(str::to_owned).collect()
}

/// Returns all entries, or all errors at once, so that they can be fixed together.
pub(super) fn collect_all<T>(entries: impl IntoIterator<Item = Result<T, String>>) -> Result<Vec<T>, String> {
    let (mut values, mut errors) = (Vec::new(), Vec::new());
    for entry in entries {
        match entry {
            Ok(entry) => values.push(entry),
            Err(message) if errors.contains(&message) => {}
            Err(message) => errors.push(message),
        }
    }
    if errors.is_empty() { Ok(values) } else { Err(errors.join("; ")) }
}

/// Parses all entries of a list. An error begins with the number of its entry.
pub(super) fn parse_entries<T>(text: &str, parse: impl Fn(&str) -> Result<T, String>) -> Result<Vec<T>, String> {
    let parse = |(entry, number): (&String, usize)| parse(entry).map_err(|message| format!("entry {number} {message}"));
    collect_all(split_list(text).iter().zip(1..).map(parse))
}

/// Parses a list of values that implement `FromStr`.
pub(super) fn parsed_list<T>(text: &str) -> Result<Vec<T>, String>
where
    T: FromStr<Err = String>,
{
    collect_all(split_list(text).iter().map(|item| item.parse()))
}

/// Splits `key:value,key:value` into pairs.
pub(super) fn split_params(text: &str) -> impl Iterator<Item = Result<(String, String), String>> {
    split_list(text).into_iter().map(|item| match item.split_once(':') {
        Some((key, value)) => Ok((key.trim().to_ascii_lowercase(), value.trim().to_owned())),
        None => Err(format!("{item:?} is not of the form KEY:VALUE, such as maxkb:10240")),
    })
}

/// Parses a regular expression; empty means none.
pub(super) fn regular_expression(text: &str) -> Result<Option<Regex>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    let regex = RegexBuilder::new(text).size_limit(MAX_REGEX_BYTES).build();
    regex.map(Some).map_err(|error| {
        let error = error.to_string();
        let reason = error.lines().last().unwrap_or_default().trim_start_matches("error: ");
        format!("must be a regular expression such as @example[.]org$: {reason}")
    })
}

/// Parses a path; empty means none.
pub(super) fn optional_path(text: &str) -> Option<PathBuf> {
    (!text.is_empty()).then(|| PathBuf::from(text))
}

/// Parses a host name and converts it to lower case: RFC 1123 section 2.1, and the underscore that private networks
/// use. Unlike the domain of a mail address it may contain doubled hyphens, as in the names of preview environments.
pub(super) fn host_name(text: &str) -> Result<String, String> {
    let label = |label: &str| {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        (1..=MAX_LABEL_CHARS).contains(&label.len())
            && label.bytes().all(allowed)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    if text.len() > MAX_DOMAIN_CHARS || !text.split('.').all(label) {
        return Err("must be a host name such as mail.example.org".to_owned());
    }
    Ok(text.to_ascii_lowercase())
}

/// Parses a list of domains, which may contain the wildcards `*` and `?`.
pub(super) fn domain_patterns(text: &str) -> Result<Domains, String> {
    let allowed = |c: char| c.is_alphanumeric() || "-_.*?[]:".contains(c);
    let patterns: Vec<String> = collect_all(split_list(text).into_iter().map(|item| {
        if item.len() <= MAX_DOMAIN_CHARS && item.chars().all(allowed) {
            Ok(item)
        } else {
            Err(format!("{item:?} is not a domain such as example.org or *.example.org (* and ? are wildcards)"))
        }
    }))?;
    Ok(patterns.into_iter().collect())
}

/// Parses a list of rules for tags.
pub(super) fn tag_rules(text: &str) -> Result<Vec<TagRule>, String> {
    let parse = |item: &String| item.parse().map_err(|error: TagRuleError| format!("{item:?} {error}"));
    collect_all(split_list(text).iter().map(parse))
}

/// Parses the simulated failures of SMTP. Returns `None` if there are none.
pub(super) fn chaos_triggers(text: &str) -> Result<Option<Triggers>, String> {
    let is_blank = text.chars().all(|c| c == ',' || c.is_whitespace());
    let triggers = text.parse().map_err(|error: TriggerError| error.to_string())?;
    Ok(Some(triggers).filter(|_| !is_blank))
}

/// Parses a prefix of all paths: empty, or `/x/y` without a trailing slash.
pub(super) fn base_path(text: &str) -> Result<String, String> {
    let segment = |segment: &str| {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        !segment.is_empty() && segment.bytes().all(allowed) && segment != "." && segment != ".."
    };
    let inner = text.trim_matches('/');
    if inner.is_empty() {
        return Ok(String::new());
    }
    if inner.len() > MAX_BASE_PATH_CHARS || !inner.split('/').all(segment) {
        return Err("must be a path such as /mail, of letters, digits, '-', '.', '_', '~'".to_owned());
    }
    Ok(format!("/{inner}"))
}

/// Parses a public URL and removes the trailing slash; empty means none.
pub(super) fn public_url(text: &str) -> Result<Option<String>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    let error = || "must be a URL such as https://mail.example.org/path, without user, query or fragment".to_owned();
    let (scheme, rest) = text.split_once("://").ok_or_else(error)?;
    let scheme = scheme.to_ascii_lowercase();
    let (authority, path) = match rest.find('/') {
        Some(slash) => rest.split_at(slash),
        None => (rest, ""),
    };
    let printable = |byte: u8| byte.is_ascii_graphic() && !b"\"<>\\^`{|}?#".contains(&byte);
    let is_valid =
        matches!(scheme.as_str(), "http" | "https") && is_authority(authority) && path.bytes().all(printable);
    if !is_valid {
        return Err(error());
    }
    let path = path.trim_end_matches('/');
    Ok(Some(format!("{scheme}://{}{path}", authority.to_ascii_lowercase())))
}

/// Parses an origin and converts it to the form that browsers use: in lower case, without the default port of the
/// scheme.
pub(super) fn origin(text: &str) -> Result<String, String> {
    let error = || format!("{text:?} is neither an origin such as https://app.example:8443 nor *");
    let (scheme, authority) = text.split_once("://").ok_or_else(error)?;
    let (scheme, authority) = (scheme.to_ascii_lowercase(), authority.to_ascii_lowercase());
    let default_port = match scheme.as_str() {
        "http" => ":80",
        "https" => ":443",
        _ => return Err(error()),
    };
    if !is_authority(&authority) {
        return Err(error());
    }
    let authority = authority.strip_suffix(default_port).unwrap_or(&authority);
    Ok(format!("{scheme}://{authority}"))
}

/// Returns the host of an authority, without its port.
pub(super) fn host_of(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => authority,
    }
}

/// Returns true if a text is a valid host with an optional port.
pub(super) fn is_authority(authority: &str) -> bool {
    let host = host_of(authority);
    let has_valid_port = match authority[host.len()..].strip_prefix(':') {
        Some(port) => port.parse::<u16>().is_ok_and(|port| port != 0),
        None => true,
    };
    let has_valid_host = match host.strip_prefix('[').and_then(|h| h.strip_suffix(']')) {
        Some(literal) => literal.parse::<std::net::Ipv6Addr>().is_ok(),
        None => host_name(host).is_ok(),
    };
    has_valid_port && has_valid_host
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_booleans() {
        for text in ["true", "TRUE", "True", "t", "T", "1", "yes", "on", "On"] {
            assert_eq!(parse_boolean(text), Ok(true), "{text}");
        }
        for text in ["false", "FALSE", "False", "f", "F", "0", "no", "off"] {
            assert_eq!(parse_boolean(text), Ok(false), "{text}");
        }
        for text in ["", "2", "truee", " true", "enabled"] {
            assert!(parse_boolean(text).is_err(), "{text}");
        }
    }

    #[test]
    fn parses_numbers() {
        assert_eq!(number::<usize>("200", 1..=1000), Ok(200));
        assert_eq!(optional_limit("0", 10), Ok(None));
        assert_eq!(optional_limit("7", 10), Ok(Some(7)));
        assert_eq!(kibibytes::<u64>("2", 0..=10), Ok(2048));
        for text in ["", "0", "1001", "-1", "+1", "1.0", "1k", "99999999999999999999"] {
            let error = number::<usize>(text, 1..=1000).expect_err(text);
            assert_eq!(error, "must be a whole number from 1 to 1000");
        }
    }

    #[test]
    fn triggers_enable_chaos_with_any_probability() {
        for (text, is_set) in
            [("", false), (" , ", false), ("Sender:451:0", true), ("Sender:450:0", true), ("auth:535:5", true)]
        {
            assert_eq!(chaos_triggers(text).unwrap().is_some(), is_set, "{text}");
        }
        assert!(chaos_triggers("Sender").is_err());
    }

    #[test]
    fn parses_optional_durations() {
        let parse = |text| optional_duration(text, "1s", "1m");
        assert_eq!(parse("0"), Ok(None));
        assert_eq!(parse("0s"), Ok(None));
        assert_eq!(parse("1m"), Ok(Some(Duration::from_mins(1))));
        assert_eq!(parse("61s"), Err("must be a duration from 1s to 1m, or 0 for no limit".to_owned()));
        assert!(parse("999ms").is_err());
    }

    #[test]
    fn parses_durations_within_limits() {
        for (text, expected) in [("100ms", 100), ("1s", 1000), ("1h", 3_600_000)] {
            assert_eq!(duration_between(text, "100ms", "1h"), Ok(Duration::from_millis(expected)), "{text}");
        }
        for text in ["0", "99ms", "1h1ns"] {
            let error = duration_between(text, "100ms", "1h").expect_err(text);
            assert_eq!(error, "must be a duration from 100ms to 1h");
        }
    }

    #[test]
    fn splits_lists() {
        assert_eq!(split_list(""), Vec::<String>::new());
        assert_eq!(split_list(" , ,"), Vec::<String>::new());
        assert_eq!(split_list("a"), ["a"]);
        assert_eq!(split_list(" a ,b,, c d "), ["a", "b", "c d"]);
        assert_eq!(domain_patterns("Example.ORG, *.spam.?"), Ok(["example.org", "*.spam.?"].into_iter().collect()));
        assert!(domain_patterns("user@example.org").is_err());
        assert!(domain_patterns("a b").is_err());
    }

    #[test]
    fn splits_parameters() {
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        let params = |text: &str| split_params(text).collect::<Vec<_>>();
        assert_eq!(params("path:/a:b, MaxKB : 10240 ,"), [Ok(pair("path", "/a:b")), Ok(pair("maxkb", "10240"))]);
        assert_eq!(params(""), []);
        assert!(params("maxkb=10240")[0].is_err());
    }

    #[test]
    fn parses_host_names() {
        for text in
            ["localhost", "mail.example.org", "a_b.c-d", "4.example", "9000--main.example", "xn--bcher-kva.example"]
        {
            assert!(host_name(text).is_ok(), "{text}");
        }
        assert_eq!(host_name("Mail.Example"), Ok("mail.example".to_owned()));
        let (label, name) = ("x".repeat(64), "x.".repeat(128) + "x");
        for text in ["", ".", "a.", ".a", "a..b", "-a", "a-", "a b", "a@b", "a:1", "b\u{fc}cher.example", &label, &name]
        {
            assert!(host_name(text).is_err(), "{text}");
        }
    }

    #[test]
    fn parses_base_paths() {
        for (text, expected) in [("", ""), ("/", ""), ("mail", "/mail"), ("/a/b/", "/a/b")] {
            assert_eq!(base_path(text), Ok(expected.to_owned()), "{text}");
        }
        for text in ["/a//b", "/a/../b", "/a b", "/a?b", "/%41", "/."] {
            assert!(base_path(text).is_err(), "{text}");
        }
    }

    #[test]
    fn parses_origins() {
        let valid = [
            ("http://localhost:3000", "http://localhost:3000"),
            ("HTTPS://App.Example:443", "https://app.example"),
            ("https://app.example:80", "https://app.example:80"),
            ("http://[::1]:80", "http://[::1]"),
        ];
        for (text, expected) in valid {
            assert_eq!(origin(text), Ok(expected.to_owned()));
        }
        for text in
            ["app.example", "null", "ftp://a", "https://", "https://a/", "https://a/b", "https://u@a", "https://a:0"]
        {
            assert!(origin(text).is_err(), "{text}");
        }
    }

    #[test]
    fn parses_public_urls() {
        let valid = [
            ("http://localhost", "http://localhost"),
            ("https://Mail.Example.org:8443/", "https://mail.example.org:8443"),
            ("HTTP://192.0.2.1/a/B/", "http://192.0.2.1/a/B"),
            ("http://[2001:db8::1]:80", "http://[2001:db8::1]:80"),
            ("http://[::1]", "http://[::1]"),
        ];
        for (text, expected) in valid {
            assert_eq!(public_url(text), Ok(Some(expected.to_owned())), "{text}");
        }
        assert_eq!(public_url(""), Ok(None));
        let invalid = [
            "mail.example.org",
            "ftp://a",
            "http://",
            "http:///a",
            "http://a?b",
            "http://a/#b",
            "http://u:p@a",
            "http://a:0",
            "http://a:70000",
            "http://a/ b",
            "http://a:b",
            "http://[::1",
        ];
        for text in invalid {
            assert!(public_url(text).is_err(), "{text}");
        }
    }
}
