//! Paths that the request checks know beside the handlers: probes, pages and assets. All others are in the table of routes, or
//! with their handlers.

use axum::http::{Request, Uri};

/// Whether the process serves at all. Who gets no answer here should start it again.
pub(crate) const LIVE: &str = "/livez";
/// Whether mail can be read and taken in now. Who gets no 200 here should send clients elsewhere, or wait.
pub(crate) const READY: &str = "/readyz";
/// Where the form is, and where it is sent.
pub(crate) const LOGIN: &str = "/login";
/// Where a login is ended.
pub(crate) const LOGOUT: &str = "/logout";
/// The pages, as templates without a final slash: any site may link to them. They contain no mail; their scripts load it.
const PAGES: [&str; 10] =
    ["", "/m", "/m/{name}", "/m/{name}/{id}", "/monitor", "/status", "/search", "/sessions", LOGIN, DOCS];
/// Where robots look.
pub(crate) const ROBOTS: &str = "/robots.txt";
/// Where browsers look for an icon when they show what is no page of ours.
pub(crate) const ICON: &str = "/favicon.ico";
/// The page that describes the API.
pub(crate) const DOCS: &str = "/api/docs";
/// Where the files of the pages are.
pub(crate) const ASSETS: &str = "/assets/{hash}/{*path}";

/// Returns whether a template of a path is that of a page.
pub(crate) fn is_page(template: &str) -> bool {
    PAGES.contains(&template.strip_suffix('/').unwrap_or(template))
}

/// Returns a path without repeated slashes and dot segments (RFC 3986 section 5.2.4); `None` if it has neither. Names in it stay
/// percent-encoded. The result begins with exactly one slash.
pub(crate) fn cleaned(path: &str) -> Option<String> {
    if !path.contains("//") && !path.contains("/.") {
        return None;
    }
    let mut segments: Vec<&str> = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => {
                segments.pop();
            }
            name => segments.push(name),
        }
    }
    // A browser takes a backslash in a redirect for a slash.
    let joined = segments.join("/").replace('\\', "%5C");
    let ends_in_slash = !segments.is_empty() && ["/", "/.", "/.."].iter().any(|end| path.ends_with(end));
    let cleaned = format!("/{joined}{}", if ends_in_slash { "/" } else { "" });
    (cleaned != path).then_some(cleaned)
}

/// Replaces the path of a request that changes something by its cleaned form, before it is routed. A GET is redirected
/// instead, by the request checks.
pub(crate) fn clean<B>(request: &mut Request<B>) {
    if request.method().is_safe() {
        return;
    }
    let Some(path) = cleaned(request.uri().path()) else { return };
    if let Some(uri) = with_path(request.uri(), &path) {
        *request.uri_mut() = uri;
    }
}

/// Returns a URI with another path and the same query.
fn with_path(uri: &Uri, path: &str) -> Option<Uri> {
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(path_and_query(uri, path).try_into().ok()?);
    Uri::from_parts(parts).ok()
}

/// Returns a path with the query of a URI.
pub(crate) fn path_and_query(uri: &Uri, path: &str) -> String {
    match uri.query() {
        Some(query) => format!("{path}?{query}"),
        None => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cleaned_paths() {
        let table = [
            ("/", None),
            ("/api/v1/mailbox/a", None),
            ("/api/v1/mailbox/.a", None),
            ("/api/v1/mailbox/a.", None),
            ("/api/v1/mailbox/a%2F%2Fb", None),
            ("/api/v1/mailbox/..a/", None),
            ("//", Some("/")),
            ("//evil.example", Some("/evil.example")),
            ("//api/v1//mailbox///a", Some("/api/v1/mailbox/a")),
            ("/api/v1/./mailbox/a/.", Some("/api/v1/mailbox/a/")),
            ("/x/../api/v1/mailbox/a", Some("/api/v1/mailbox/a")),
            ("/../../m/a", Some("/m/a")),
            ("/m/a/..", Some("/m/")),
            ("/..", Some("/")),
            ("/m//a//", Some("/m/a/")),
            ("/./\\evil.example", Some("/%5Cevil.example")),
        ];
        for (path, expected) in table {
            assert_eq!(cleaned(path).as_deref(), expected, "{path}");
        }
    }
}
