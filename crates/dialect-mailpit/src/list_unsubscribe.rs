//! The header fields List-Unsubscribe and List-Unsubscribe-Post, checked as Mailpit checks them. `restante_extract` finds
//! the links of more messages, but does not judge how they are written.

use serde::Serialize;

/// The field List-Unsubscribe: its links, and what is wrong with it.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct ListUnsubscribe {
    header: String,
    links: Vec<String>,
    errors: String,
    header_post: String,
}

impl ListUnsubscribe {
    /// Checks the values of List-Unsubscribe and List-Unsubscribe-Post. Everything is empty without the first one.
    pub(crate) fn new(header: String, header_post: String) -> Self {
        if header.is_empty() {
            return Self::default();
        }
        let (links, errors) = check(&header);
        Self { header, links, errors: errors.join(", "), header_post }
    }
}

/// Returns the valid links of a value, and the errors.
fn check(value: &str) -> (Vec<String>, Vec<String>) {
    let without_comments = remove_comments(value.trim());
    let value = without_comments.trim();
    let failed = |error: String| (Vec::new(), vec![error]);
    let links: Vec<&str> = between(value, '<', '>').collect();
    if links.is_empty() {
        return failed(format!("\"{value}\" no valid unsubscribe links found"));
    }
    if !value.starts_with('<') || !value.ends_with('>') {
        return failed(format!("\"{value}\" should be enclosed in <>"));
    }
    if links.len() > 2 {
        return failed(format!("\"{value}\" should include a maximum of one email and one HTTP link"));
    }
    if between(value, '>', '<').any(|separator| separator.trim() != ",") {
        return failed(format!("\"{value}\" <> should be split with a comma and optional spaces"));
    }
    let (mut valid, mut errors) = (Vec::new(), Vec::new());
    let (mut has_mail, mut has_http) = (false, false);
    for link in links {
        match check_link(link, &mut has_mail, &mut has_http) {
            Ok(()) => valid.push(link.to_owned()),
            Err(error) => errors.push(error),
        }
    }
    (valid, errors)
}

/// Checks one link. At most one link for mail and one for HTTP is valid.
fn check_link(link: &str, has_mail: &mut bool, has_http: &mut bool) -> Result<(), String> {
    if link.contains(char::is_whitespace) {
        return Err(format!("\"{link}\" should not contain spaces"));
    }
    let starts_with_name = |rest: &str| rest.starts_with(|first: char| first.is_ascii_alphanumeric());
    if link.strip_prefix("mailto:").is_some_and(starts_with_name) {
        if std::mem::replace(has_mail, true) {
            return Err(format!("\"{link}\" should only contain one mailto:"));
        }
    } else if http_rest(link).is_some_and(starts_with_name) {
        if std::mem::replace(has_http, true) {
            return Err(format!("\"{link}\" should only contain one HTTP link"));
        }
    } else {
        return Err(format!("\"{link}\" should start with either http(s):// or mailto:"));
    }
    check_url(link).map_err(|error| format!("parse {link:?}: {error}"))
}

/// Returns the part of an HTTP URL after the two slashes, in which the host comes first.
fn http_rest(link: &str) -> Option<&str> {
    let (scheme, rest) = link.split_once("://")?;
    (scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https")).then_some(rest)
}

/// Checks the characters, the escapes and the port of a URL.
fn check_url(link: &str) -> Result<(), String> {
    if link.contains(|c: char| c.is_ascii_control()) {
        return Err("net/url: invalid control character in URL".to_owned());
    }
    // The rest of a mail address is opaque.
    let Some(rest) = http_rest(link) else { return Ok(()) };
    let (location, _) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, path) = location.split_at(location.find('/').unwrap_or(location.len()));
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let (name, port) = host.split_at(host.rfind(':').unwrap_or(host.len()));
    if !port.chars().skip(1).all(|c| c.is_ascii_digit()) {
        return Err(format!("invalid port {port:?} after host"));
    }
    if let Some(invalid) = name.chars().find(|c| "\"\\^`{|}#".contains(*c)) {
        return Err(format!("invalid character {:?} in host name", invalid.to_string()));
    }
    for text in [authority, path] {
        for (at, _) in text.match_indices('%') {
            let escape: String = text[at..].chars().take(3).collect();
            if escape.len() < 3 || !escape[1..].bytes().all(|byte| byte.is_ascii_hexdigit()) {
                return Err(format!("invalid URL escape {escape:?}"));
            }
        }
    }
    Ok(())
}

/// Removes comments in parentheses. A parenthesis that is not closed is not a comment.
fn remove_comments(value: &str) -> String {
    let (mut kept, mut rest) = (String::with_capacity(value.len()), value);
    while let Some(start) = rest.find('(')
        && let Some(len) = rest[start..].find(')')
    {
        kept.push_str(&rest[..start]);
        rest = &rest[start + len + 1..];
    }
    kept + rest
}

/// Returns the texts between a start and the next end. They do not overlap.
fn between(value: &str, start: char, end: char) -> impl Iterator<Item = &str> {
    let mut rest = value;
    std::iter::from_fn(move || {
        let (_, text) = rest.split_once(start)?;
        let (found, after) = text.split_once(end)?;
        rest = after;
        Some(found)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_checked() {
        let table: &[(&str, &[&str], &str)] = &[
            ("<mailto:a@x.org>", &["mailto:a@x.org"], ""),
            ("<https://x.org/u?a=%zz>", &["https://x.org/u?a=%zz"], ""),
            (" <https://x.org/u> ,\t<mailto:a@x.org?subject=b> ", &["https://x.org/u", "mailto:a@x.org?subject=b"], ""),
            ("(hello) <HTTP://x.org> (bye)", &["HTTP://x.org"], ""),
            ("https://x.org", &[], "\"https://x.org\" no valid unsubscribe links found"),
            ("a <https://x.org>", &[], "\"a <https://x.org>\" should be enclosed in <>"),
            (
                "<https://x.org> <mailto:a@x>",
                &[],
                "\"<https://x.org> <mailto:a@x>\" <> should be split with a comma and optional spaces",
            ),
            (
                "<https://x.org>,<mailto:a@x>,<mailto:b@x>",
                &[],
                "\"<https://x.org>,<mailto:a@x>,<mailto:b@x>\" should include a maximum of one email and one HTTP link",
            ),
            ("<https://x.org/a b>", &[], "\"https://x.org/a b\" should not contain spaces"),
            ("<mailto:a@x>,<mailto:b@x>", &["mailto:a@x"], "\"mailto:b@x\" should only contain one mailto:"),
            ("<http://x>,<https://y>", &["http://x"], "\"https://y\" should only contain one HTTP link"),
            ("<ftp://x>", &[], "\"ftp://x\" should start with either http(s):// or mailto:"),
            ("<Mailto:a@x>", &[], "\"Mailto:a@x\" should start with either http(s):// or mailto:"),
            ("<mailto: a@x>", &[], "\"mailto: a@x\" should not contain spaces"),
            ("<http://x.org/%zz>", &[], "parse \"http://x.org/%zz\": invalid URL escape \"%zz\""),
            ("<http://x.org/%a>", &[], "parse \"http://x.org/%a\": invalid URL escape \"%a\""),
            ("<http://x.org:80a/>", &[], "parse \"http://x.org:80a/\": invalid port \":80a\" after host"),
            ("<http://u%zz@x/>", &[], "parse \"http://u%zz@x/\": invalid URL escape \"%zz\""),
            ("<http://x^y/>", &[], "parse \"http://x^y/\": invalid character \"^\" in host name"),
            ("<http://a\\b/>", &[], "parse \"http://a\\\\b/\": invalid character \"\\\\\" in host name"),
            ("<>", &[], "\"\" should start with either http(s):// or mailto:"),
            (
                "<x>,<y>",
                &[],
                "\"x\" should start with either http(s):// or mailto:, \"y\" should start with either http(s):// or mailto:",
            ),
        ];
        for (header, links, errors) in table {
            let found = ListUnsubscribe::new((*header).to_owned(), "post".to_owned());
            assert_eq!(
                (found.links.as_slice(), found.errors.as_str()),
                (&*links.iter().map(ToString::to_string).collect::<Vec<_>>(), *errors),
                "{header}"
            );
            assert_eq!((found.header.as_str(), found.header_post.as_str()), (*header, "post"));
        }
    }

    #[test]
    fn nothing_is_reported_without_the_header() {
        assert_eq!(ListUnsubscribe::new(String::new(), "post".to_owned()), ListUnsubscribe::default());
    }
}
