//! The header of files of messages.

use super::*;

/// Requests a file of a message. Checks that it cannot run scripts or be used by other pages, also if it is not modified, and that
/// HEAD has the same header.
pub(crate) async fn request_isolated_file(server: &TestServer, path: &str) -> TestResponse {
    let response = server.request(&format!("GET {path}")).await;
    assert_eq!(response.status, 200, "{path}");
    let policy = response.header("content-security-policy");
    assert!(policy.starts_with("sandbox; default-src 'none'") && !policy.contains("allow-scripts"), "{path}: {policy}");
    let expected = [
        ("x-content-type-options", "nosniff"),
        ("x-dns-prefetch-control", "off"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-resource-policy", "same-origin"),
        ("cross-origin-opener-policy", "same-origin"),
    ];
    for (name, value) in expected {
        assert_eq!(response.header(name), value, "{path}");
    }
    let again = server.request(&format!("GET {path}\nIf-None-Match: {}", response.header("etag"))).await;
    assert_eq!((again.status.as_u16(), again.body.len()), (304, 0), "{path}");
    assert_eq!(again.header("content-security-policy"), policy, "{path}");
    let head = server.request(&format!("HEAD {path}")).await;
    let length = response.body.len().to_string();
    assert_eq!((head.status.as_u16(), head.body.len(), head.header("content-length")), (200, 0, &*length), "{path}");
    response
}
