//! Parsers of single values. Each returns the typed value, or a sentence that says what is allowed; the caller adds
//! the setting's name, where the value came from and the value itself.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use restante_mailroom::policy::Domains;

use super::duration;

/// The most characters in a domain name.
const MAX_DOMAIN_CHARS: usize = 255;
/// The most characters in one label of it.
const MAX_LABEL_CHARS: usize = 63;
/// The most characters in a base path.
const MAX_BASE_PATH_CHARS: usize = 255;

/// A truth value, in all the spellings that configurations in the wild use.
pub fn boolean(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "t" | "1" | "yes" | "y" | "on" => Ok(true),
        "false" | "f" | "0" | "no" | "n" | "off" => Ok(false),
        _ => Err("must be true or false (also 1, 0, yes, no, on, off)".to_owned()),
    }
}

/// A whole number within bounds.
pub(super) fn number<T>(text: &str, range: RangeInclusive<u64>) -> Result<T, String>
where
    T: TryFrom<u64>,
{
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits
        .then(|| text.parse().ok())
        .flatten()
        .filter(|number| range.contains(number))
        .and_then(|number: u64| T::try_from(number).ok())
        .ok_or_else(|| format!("must be a whole number from {} to {}", range.start(), range.end()))
}

/// A number of KiB within bounds, as bytes.
pub(super) fn kibibytes<T>(text: &str, range: RangeInclusive<u64>) -> Result<T, String>
where
    T: TryFrom<u64>,
{
    let bytes = number::<u64>(text, range)?.saturating_mul(1024);
    T::try_from(bytes).map_err(|_| "is more than this machine can address".to_owned())
}

/// A number where 0 stands for "no limit".
pub(super) fn optional_limit(text: &str, max: u64) -> Result<Option<usize>, String> {
    match number(text, 0..=max)? {
        0 => Ok(None),
        limit => Ok(Some(limit)),
    }
}

/// A length of time within bounds, given in seconds.
pub(super) fn duration_in_seconds(text: &str, range: RangeInclusive<u64>) -> Result<Duration, String> {
    let time = duration::parse(text)?;
    let (low, high) = (*range.start(), *range.end());
    if time < Duration::from_secs(low) || time > Duration::from_secs(high) {
        return Err(format!("must be a length of time from {low}s to {high}s"));
    }
    Ok(time)
}

/// A length of time within bounds, which stand here as an operator writes them.
pub(super) fn duration_between(text: &str, least: &str, most: &str) -> Result<Duration, String> {
    let time = duration::parse(text)?;
    if time < duration::parse(least)? || time > duration::parse(most)? {
        return Err(format!("must be a length of time from {least} to {most}"));
    }
    Ok(time)
}

/// A length of time where 0 stands for "for ever".
pub(super) fn optional_duration(text: &str, range: RangeInclusive<u64>) -> Result<Option<Duration>, String> {
    if duration::parse(text)?.is_zero() {
        return Ok(None);
    }
    duration_in_seconds(text, range).map(Some).map_err(|allowed| format!("{allowed}, or 0 for no limit"))
}

/// The entries of a list: separated by commas, trimmed, empty ones dropped.
pub(super) fn split_list(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|item| !item.is_empty()).map(str::to_owned).collect()
}

/// Every entry, or all that is wrong with them: whoever mends one mistake should not meet the next one then.
pub(super) fn collect_all<T>(entries: impl IntoIterator<Item = Result<T, String>>) -> Result<Vec<T>, String> {
    let (mut good, mut wrong) = (Vec::new(), Vec::new());
    for entry in entries {
        match entry {
            Ok(entry) => good.push(entry),
            Err(message) if wrong.contains(&message) => {}
            Err(message) => wrong.push(message),
        }
    }
    if wrong.is_empty() { Ok(good) } else { Err(wrong.join("; ")) }
}

/// A list whose entries have a parser of their own.
pub(super) fn parsed_list<T>(text: &str) -> Result<Vec<T>, String>
where
    T: FromStr<Err = String>,
{
    collect_all(split_list(text).iter().map(|item| item.parse()))
}

/// The pairs of `key:value,key:value`.
pub(super) fn split_params(text: &str) -> impl Iterator<Item = Result<(String, String), String>> {
    split_list(text).into_iter().map(|item| match item.split_once(':') {
        Some((key, value)) => Ok((key.trim().to_ascii_lowercase(), value.trim().to_owned())),
        None => Err(format!("{item:?} is no KEY:VALUE")),
    })
}

/// A path, or none when empty.
pub(super) fn optional_path(text: &str) -> Option<PathBuf> {
    (!text.is_empty()).then(|| PathBuf::from(text))
}

/// The name of a host, in lower case: RFC 1123 section 2.1, and the underscore that private networks use. Unlike the
/// domain of a mail address it may hold doubled hyphens, as the names of preview environments do.
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

/// A list of domains that may hold the wildcards `*` and `?`.
pub(super) fn domain_patterns(text: &str) -> Result<Domains, String> {
    let allowed = |c: char| c.is_alphanumeric() || "-_.*?[]:".contains(c);
    let patterns: Vec<String> = collect_all(split_list(text).into_iter().map(|item| {
        if item.len() <= MAX_DOMAIN_CHARS && item.chars().all(allowed) {
            Ok(item)
        } else {
            Err(format!("{item:?} is no domain (* and ? are wildcards)"))
        }
    }))?;
    Ok(patterns.into_iter().collect())
}

/// A path to put before all others: empty, or `/x/y` without a slash at the end.
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

/// A public URL without a slash at the end, or none when empty.
pub(super) fn public_url(text: &str) -> Result<Option<String>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    let not_allowed =
        || "must be a URL such as https://mail.example.org/path, without user, query or fragment".to_owned();
    let (scheme, rest) = text.split_once("://").ok_or_else(not_allowed)?;
    let scheme = scheme.to_ascii_lowercase();
    let (authority, path) = match rest.find('/') {
        Some(slash) => rest.split_at(slash),
        None => (rest, ""),
    };
    let printable = |byte: u8| byte.is_ascii_graphic() && !b"\"<>\\^`{|}?#".contains(&byte);
    let good = matches!(scheme.as_str(), "http" | "https") && is_authority(authority) && path.bytes().all(printable);
    if !good {
        return Err(not_allowed());
    }
    let path = path.trim_end_matches('/');
    Ok(Some(format!("{scheme}://{}{path}", authority.to_ascii_lowercase())))
}

/// An origin as browsers write it: in lower case, and without the port that its scheme has by default.
pub(super) fn origin(text: &str) -> Result<String, String> {
    let not_allowed = || format!("{text:?} is no origin such as https://app.example:8443, and not *");
    let (scheme, authority) = text.split_once("://").ok_or_else(not_allowed)?;
    let (scheme, authority) = (scheme.to_ascii_lowercase(), authority.to_ascii_lowercase());
    let default_port = match scheme.as_str() {
        "http" => ":80",
        "https" => ":443",
        _ => return Err(not_allowed()),
    };
    if !is_authority(&authority) {
        return Err(not_allowed());
    }
    let authority = authority.strip_suffix(default_port).unwrap_or(&authority);
    Ok(format!("{scheme}://{authority}"))
}

/// The host in an authority, without its port.
pub(super) fn host_of(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => authority,
    }
}

/// Whether it names a host that there can be, and a port if any.
pub(super) fn is_authority(authority: &str) -> bool {
    let host = host_of(authority);
    let port_good = match authority[host.len()..].strip_prefix(':') {
        Some(port) => port.parse::<u16>().is_ok_and(|port| port != 0),
        None => true,
    };
    let host_good = match host.strip_prefix('[').and_then(|h| h.strip_suffix(']')) {
        Some(literal) => literal.parse::<std::net::Ipv6Addr>().is_ok(),
        None => host_name(host).is_ok(),
    };
    port_good && host_good
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn booleans() {
        for text in ["true", "TRUE", "True", "t", "T", "1", "yes", "on", "On"] {
            assert_eq!(boolean(text), Ok(true), "{text}");
        }
        for text in ["false", "FALSE", "False", "f", "F", "0", "no", "off"] {
            assert_eq!(boolean(text), Ok(false), "{text}");
        }
        for text in ["", "2", "truee", " true", "enabled"] {
            assert!(boolean(text).is_err(), "{text}");
        }
    }

    #[test]
    fn numbers() {
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
    fn periods() {
        assert_eq!(optional_duration("0", 1..=60), Ok(None));
        assert_eq!(optional_duration("0s", 1..=60), Ok(None));
        assert_eq!(optional_duration("1m", 1..=60), Ok(Some(Duration::from_mins(1))));
        assert!(optional_duration("61s", 1..=60).is_err());
        assert!(optional_duration("999ms", 1..=60).is_err());
        assert!(duration_in_seconds("0", 1..=60).is_err());
    }

    #[test]
    fn times() {
        for (text, expected) in [("100ms", 100), ("1s", 1000), ("1h", 3_600_000)] {
            assert_eq!(duration_between(text, "100ms", "1h"), Ok(Duration::from_millis(expected)), "{text}");
        }
        for text in ["0", "99ms", "1h1ns"] {
            let error = duration_between(text, "100ms", "1h").expect_err(text);
            assert_eq!(error, "must be a length of time from 100ms to 1h");
        }
    }

    #[test]
    fn lists() {
        assert_eq!(split_list(""), Vec::<String>::new());
        assert_eq!(split_list(" , ,"), Vec::<String>::new());
        assert_eq!(split_list("a"), ["a"]);
        assert_eq!(split_list(" a ,b,, c d "), ["a", "b", "c d"]);
        assert_eq!(domain_patterns("Example.ORG, *.spam.?"), Ok(["example.org", "*.spam.?"].into_iter().collect()));
        assert!(domain_patterns("user@example.org").is_err());
        assert!(domain_patterns("a b").is_err());
    }

    #[test]
    fn parameters() {
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        let params = |text: &str| split_params(text).collect::<Vec<_>>();
        assert_eq!(params("path:/a:b, MaxKB : 10240 ,"), [Ok(pair("path", "/a:b")), Ok(pair("maxkb", "10240"))]);
        assert_eq!(params(""), []);
        assert!(params("maxkb=10240")[0].is_err());
    }

    #[test]
    fn host_names() {
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
    fn base_paths() {
        for (text, expected) in [("", ""), ("/", ""), ("mail", "/mail"), ("/a/b/", "/a/b")] {
            assert_eq!(base_path(text), Ok(expected.to_owned()), "{text}");
        }
        for text in ["/a//b", "/a/../b", "/a b", "/a?b", "/%41", "/."] {
            assert!(base_path(text).is_err(), "{text}");
        }
    }

    #[test]
    fn origins() {
        let good = [
            ("http://localhost:3000", "http://localhost:3000"),
            ("HTTPS://App.Example:443", "https://app.example"),
            ("https://app.example:80", "https://app.example:80"),
            ("http://[::1]:80", "http://[::1]"),
        ];
        for (text, expected) in good {
            assert_eq!(origin(text), Ok(expected.to_owned()));
        }
        for text in
            ["app.example", "null", "ftp://a", "https://", "https://a/", "https://a/b", "https://u@a", "https://a:0"]
        {
            assert!(origin(text).is_err(), "{text}");
        }
    }

    #[test]
    fn public_urls() {
        let good = [
            ("http://localhost", "http://localhost"),
            ("https://Mail.Example.org:8443/", "https://mail.example.org:8443"),
            ("HTTP://192.0.2.1/a/B/", "http://192.0.2.1/a/B"),
            ("http://[2001:db8::1]:80", "http://[2001:db8::1]:80"),
            ("http://[::1]", "http://[::1]"),
        ];
        for (text, expected) in good {
            assert_eq!(public_url(text), Ok(Some(expected.to_owned())), "{text}");
        }
        assert_eq!(public_url(""), Ok(None));
        let bad = [
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
        for text in bad {
            assert!(public_url(text).is_err(), "{text}");
        }
    }
}
