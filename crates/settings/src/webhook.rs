//! Parses the webhook settings. URLs may contain tokens, so errors give the number of the entry and nothing of its
//! content.

use restante_webhook::{EventKind, Key, Target};

use super::values::{is_authority, parse_entries};

/// The options that may follow the URL of an entry.
const EVENTS: &str = "events";
const MAILBOXES: &str = "mailboxes";
/// The example in error messages.
const EXAMPLE_URL: &str = "http://ci.example.org:8080/hook";

/// Parses a list of `URL [events=stored|deleted] [mailboxes=PATTERN|PATTERN]`.
pub(super) fn parse_targets(text: &str) -> Result<Vec<Target>, String> {
    parse_entries(text, parse_target)
}

/// Parses the key that signs requests; empty means none.
pub(super) fn parse_key(text: &str) -> Result<Option<Key>, String> {
    if text.is_empty() { Ok(None) } else { Key::parse(text).map(Some) }
}

/// Parses one entry. The error is appended to the number of the entry.
fn parse_target(entry: &str) -> Result<Target, String> {
    let mut words = entry.split_ascii_whitespace();
    let url = words.next().unwrap_or_default();
    check_url(url)?;
    let (mut events, mut mailboxes) = (None, None);
    for word in words {
        let is_repeated = match word.split_once('=') {
            Some((EVENTS, names)) => events.replace(parse_choices(names, parse_event)?).is_some(),
            Some((MAILBOXES, patterns)) => mailboxes.replace(parse_choices(patterns, parse_pattern)?).is_some(),
            _ => return Err(format!("has an unknown option after its URL: must be {EVENTS}=... or {MAILBOXES}=...")),
        };
        if is_repeated {
            return Err(format!("repeats an option: {EVENTS} and {MAILBOXES} may each occur once"));
        }
    }
    let (events, mailboxes) = (events.unwrap_or_default(), mailboxes.unwrap_or_default());
    let target = Target { url: url.to_owned(), events, mailboxes };
    target.validate().map_err(|_| format!("has an invalid URL; an example is {EXAMPLE_URL}"))?;
    Ok(target)
}

/// Parses the parts of `X|Y`.
fn parse_choices<T>(text: &str, parse: fn(&str) -> Result<T, String>) -> Result<Vec<T>, String> {
    text.split('|').map(parse).collect()
}

fn parse_event(name: &str) -> Result<EventKind, String> {
    EventKind::from_name(&name.to_ascii_lowercase()).ok_or_else(|| {
        format!("has an unknown event: must be {EVENTS}=stored, {EVENTS}=deleted or {EVENTS}=stored|deleted")
    })
}

fn parse_pattern(text: &str) -> Result<String, String> {
    if text.is_empty() {
        return Err(format!(
            "has an empty mailbox pattern; an example is {MAILBOXES}=ci-*|qa, where * and ? are wildcards"
        ));
    }
    Ok(text.to_owned())
}

/// Checks a URL. The error is appended to the number of the entry.
fn check_url(text: &str) -> Result<(), String> {
    let (scheme, rest) = text.split_once("://").unwrap_or_default();
    if !["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known)) {
        return Err("does not begin with http:// or https:// (a comma in a URL is written %2C; alternatives are separated by |, \
                    as in events=stored|deleted)"
            .to_owned());
    }
    let (user, authority, path) = split_url(rest);
    if !is_authority(authority) {
        return Err(format!("has a URL without a valid host and port; an example is {EXAMPLE_URL}"));
    }
    let printable = |byte: u8| byte.is_ascii_graphic() && !b"\"<>\\^`{|}".contains(&byte);
    if !user.bytes().chain(path.bytes()).all(printable) {
        return Err("has a character in its URL that must be percent-encoded, such as { as %7B".to_owned());
    }
    Ok(())
}

/// Splits the part after the scheme: user and password, host and port, and the rest.
fn split_url(rest: &str) -> (&str, &str, &str) {
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let (user, authority) = authority.rsplit_once('@').unwrap_or(("", authority));
    (user, authority, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_entries() {
        use EventKind::{Deleted, Stored};
        let table: [(&str, &str, &[EventKind], &[&str]); 6] = [
            ("https://ci.example.org/hook", "https://ci.example.org/hook", &[], &[]),
            ("HTTP://user:pw@[2001:db8::1]:8080?t=1#x", "HTTP://user:pw@[2001:db8::1]:8080?t=1#x", &[], &[]),
            ("http://h events=stored", "http://h", &[Stored], &[]),
            ("http://h  mailboxes=CI-*|q?  events=deleted|Stored", "http://h", &[Deleted, Stored], &["CI-*", "q?"]),
            ("http://h/a%2Cb mailboxes=b=c", "http://h/a%2Cb", &[], &["b=c"]),
            (" , http://h\tmailboxes=james@x.org ,", "http://h", &[], &["james@x.org"]),
        ];
        for (text, url, events, mailboxes) in table {
            let mailboxes = mailboxes.iter().map(ToString::to_string).collect();
            let expected = Target { url: url.to_owned(), events: events.to_vec(), mailboxes };
            assert_eq!(parse_targets(text), Ok(vec![expected]), "{text}");
        }
        assert_eq!(parse_targets(""), Ok(Vec::new()));
        assert_eq!(parse_targets("http://a,https://b events=stored").map(|targets| targets.len()), Ok(2));
    }

    #[test]
    fn errors_do_not_contain_the_entry() {
        let table = [
            ("token", "entry 1 does not begin with http://"),
            ("ftp://token", "entry 1 does not begin with http://"),
            ("http://a,token", "entry 2 does not begin with http:// or https:// (a comma in a URL is written %2C; "),
            (
                "http://a events=stored,deleted",
                "entry 2 does not begin with http:// or https:// (a comma in a URL is written",
            ),
            ("http://1.2.3.256/token", "entry 1 has an invalid URL"),
            ("http://", "entry 1 has a URL without a valid host"),
            ("http:///token", "entry 1 has a URL without a valid host"),
            ("http://token:0", "entry 1 has a URL without a valid host"),
            ("http://u@h:token/", "entry 1 has a URL without a valid host"),
            ("http://h/{token}", "entry 1 has a character in its URL"),
            ("http://h/token\u{fc}", "entry 1 has a character in its URL"),
            ("http://h token", "entry 1 has an unknown option after its URL"),
            ("http://h Events=stored", "entry 1 has an unknown option after its URL"),
            ("http://h events=", "entry 1 has an unknown event"),
            ("http://h events=stored|token", "entry 1 has an unknown event"),
            ("http://h mailboxes=token|", "entry 1 has an empty mailbox pattern"),
            ("http://h events=stored events=deleted", "entry 1 repeats an option"),
        ];
        for (text, expected) in table {
            let error = parse_targets(text).expect_err(text);
            assert!(error.starts_with(expected) && !error.contains("token"), "{text}: {error}");
        }
        let error = parse_targets("x,http://h,y z").expect_err("two mistakes");
        assert!(error.contains("entry 1 ") && error.contains("; entry 3 "), "{error}");
    }
}
