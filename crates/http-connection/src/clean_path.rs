//! Paths without repeated slashes and dot segments.

use axum::http::{Request, Uri};

/// Returns a path without repeated slashes and dot segments (RFC 3986 section 5.2.4), or `None` if it has neither.
/// Names stay percent-encoded. The result begins with exactly one slash.
pub fn clean_path(path: &str) -> Option<String> {
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
    // Browsers treat a backslash in a redirect as a slash.
    let joined = segments.join("/").replace('\\', "%5C");
    let ends_in_slash = !segments.is_empty() && ["/", "/.", "/.."].iter().any(|end| path.ends_with(end));
    let cleaned = format!("/{joined}{}", if ends_in_slash { "/" } else { "" });
    (cleaned != path).then_some(cleaned)
}

/// Removes repeated slashes and dot segments from the path of a request that changes something, before it is routed. A
/// GET is redirected instead, by the request checks.
pub fn clean_request_path<B>(request: &mut Request<B>) {
    if request.method().is_safe() {
        return;
    }
    let Some(path) = clean_path(request.uri().path()) else { return };
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
pub fn path_and_query(uri: &Uri, path: &str) -> String {
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
            assert_eq!(clean_path(path).as_deref(), expected, "{path}");
        }
    }
}
