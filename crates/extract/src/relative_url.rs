//! Resolution of relative URLs against the base URL of their document (RFC 3986 section 5.2).

/// Resolves `reference` against the base URL. Returns a relative reference unchanged if there is no base, or if the
/// base is not a hierarchical URL.
pub(crate) fn resolve_url(reference: &str, base: Option<&str>) -> String {
    let unchanged = || reference.to_owned();
    if scheme(reference).is_some() {
        return unchanged();
    }
    let Some(base) = base.and_then(BaseUrl::new) else { return unchanged() };
    if reference.starts_with("//") {
        return format!("{}:{reference}", base.scheme);
    }
    let (path, rest) = reference.split_at(reference.find(['?', '#']).unwrap_or(reference.len()));
    if !path.is_empty() {
        let folder = base.path.rfind('/').map_or("/", |slash| &base.path[..=slash]);
        let path = if path.starts_with('/') { path.to_owned() } else { format!("{folder}{path}") };
        return format!("{}{}{rest}", base.origin, remove_dot_segments(&path));
    }
    let query = if rest.starts_with('?') { "" } else { base.query };
    format!("{}{}{query}{rest}", base.origin, base.path)
}

/// Returns the scheme of a URL, if it has one.
pub(crate) fn scheme(url: &str) -> Option<&str> {
    let (scheme, _) = url.split_once(':')?;
    let is_scheme_char = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    (scheme.starts_with(|c: char| c.is_ascii_alphabetic()) && scheme.chars().all(is_scheme_char)).then_some(scheme)
}

/// The parts of a base URL that relative URLs inherit.
struct BaseUrl<'a> {
    scheme: &'a str,
    /// Scheme and authority.
    origin: &'a str,
    path: &'a str,
    /// The query with its question mark.
    query: &'a str,
}

impl<'a> BaseUrl<'a> {
    fn new(url: &'a str) -> Option<Self> {
        let scheme = scheme(url)?;
        let authority = url[scheme.len()..].strip_prefix("://")?;
        let start = url.len() - authority.len();
        let end = authority.find(['/', '?', '#']).map_or(url.len(), |len| start + len);
        let (origin, rest) = url.split_at(end);
        let rest = rest.split('#').next().unwrap_or_default();
        let (path, query) = rest.split_at(rest.find('?').unwrap_or(rest.len()));
        Some(Self { scheme, origin, path, query })
    }
}

/// Removes the segments `.` and `..` from a path (RFC 3986 section 5.2.4).
fn remove_dot_segments(path: &str) -> String {
    let mut output_segments: Vec<&str> = Vec::new();
    let mut segments = path.split('/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        let is_last = segments.peek().is_none();
        match segment {
            "." | ".." => {
                if segment == ".." {
                    output_segments.pop();
                }
                if is_last {
                    output_segments.push("");
                }
            }
            segment => output_segments.push(segment),
        }
    }
    format!("/{}", output_segments.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resolves_relative_urls() {
        let base = "https://example.org/mail/index.html?x=1#top";
        let table = [
            ("https://other.example/", "https://other.example/"),
            ("mailto:a@example.org", "mailto:a@example.org"),
            ("//cdn.example/x", "https://cdn.example/x"),
            ("/verify?code=1", "https://example.org/verify?code=1"),
            ("verify", "https://example.org/mail/verify"),
            ("../verify", "https://example.org/verify"),
            ("./a/./b/..", "https://example.org/mail/a/"),
            ("../../../x", "https://example.org/x"),
            ("?y=2", "https://example.org/mail/index.html?y=2"),
            ("#end", "https://example.org/mail/index.html?x=1#end"),
            ("a?b=/../c", "https://example.org/mail/a?b=/../c"),
        ];
        for (reference, expected) in table {
            assert_eq!(resolve_url(reference, Some(base)), expected, "{reference}");
        }
        assert_eq!(resolve_url("a/b", None), "a/b");
        assert_eq!(resolve_url("a/b", Some("mailto:x@example.org")), "a/b");
        assert_eq!(resolve_url("a", Some("https://example.org")), "https://example.org/a");
    }
}
