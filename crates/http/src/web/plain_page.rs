//! Pages that the server writes itself: plain HTML in the style of the web interface, without scripts.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use restante_html::push_escaped;

use crate::response::embedded_assets;
use crate::response::success::{HTML, NO_STORE, SAME_ORIGIN};

const POLICY: HeaderValue = HeaderValue::from_static(embedded_assets::LOGIN_POLICY);

/// The mark and the name of the web interface, as the content of a heading.
pub(super) const BRAND: &str = r#"<svg class="brand-mark" viewBox="0 0 32 32" aria-hidden="true"><path d="M4 7h24v18H4z"/><path d="m4 8 12 9 12-9"/><path class="brand-stamp" d="M21 17h5v6h-5z"/></svg> Restante"#;

/// Returns a page with this title and this HTML. `root` is the path to the root of the server, with a slash at its end.
pub(super) fn response(status: StatusCode, title: &str, root: &str, main: &str) -> Response {
    let mut response = Response::new(Body::from(document(title, root, main)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HTML);
    headers.insert(header::CACHE_CONTROL, NO_STORE);
    headers.insert(header::CONTENT_SECURITY_POLICY, POLICY);
    headers.insert(header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    // With `no-referrer`, browsers would send the form with the origin `null` (Fetch Standard, section 3.1), which is
    // refused.
    headers.insert(header::REFERRER_POLICY, SAME_ORIGIN);
    response
}

/// Returns a text as HTML.
pub(super) fn escaped(text: &str) -> String {
    let mut html = String::new();
    push_escaped(&mut html, text);
    html
}

fn document(title: &str, root: &str, main: &str) -> String {
    let (hash, style) = (embedded_assets::HASH, embedded_assets::STYLE);
    let (title, root) = (escaped(title), escaped(root));
    format!(
        r#"<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>{title} - Restante</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<link rel="icon" href="{root}assets/{hash}/icon.svg" type="image/svg+xml">
<style>{style}</style>
</head>
<body>
<main>
{main}</main>
</body>
</html>
"#
    )
}
