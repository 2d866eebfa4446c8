//! The login page: plain HTML in the style of the web interface. It works without scripts and, because all links are
//! relative, under any base path.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use restante_html::push_escaped;

use crate::response::embedded_assets;
use crate::response::success::{HTML, NO_STORE, SAME_ORIGIN};

const POLICY: HeaderValue = HeaderValue::from_static(embedded_assets::LOGIN_POLICY);

/// Returns the page with the path to return to, the user name that was typed before, and an error message.
pub(crate) fn form(status: StatusCode, next: &str, user: &str, error: Option<&str>) -> Response {
    let mut response = Response::new(Body::from(page(next, user, error)));
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

fn page(next: &str, user: &str, error: Option<&str>) -> String {
    let escaped = |text: &str| {
        let mut html = String::new();
        push_escaped(&mut html, text);
        html
    };
    let (hash, style) = (embedded_assets::HASH, embedded_assets::STYLE);
    let (next, user) = (escaped(next), escaped(user));
    let note = error.map(|sentence| format!("<p class=\"note bad\" role=\"alert\">{}</p>\n", escaped(sentence)));
    let note = note.unwrap_or_default();
    // If the user name is known, the focus is on the password.
    let (first, second) = if user.is_empty() { (" autofocus", "") } else { ("", " autofocus") };
    format!(
        r#"<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Log in - Restante</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<link rel="icon" href="./assets/{hash}/icon.svg" type="image/svg+xml">
<style>{style}</style>
</head>
<body>
<main>
<form class="login sheet" method="post" action="./login">
<h1 class="brand"><svg class="brand-mark" viewBox="0 0 32 32" aria-hidden="true"><path d="M4 7h24v18H4z"/><path d="m4 8 12 9 12-9"/><path class="brand-stamp" d="M21 17h5v6h-5z"/></svg> Restante</h1>
{note}<input type="hidden" name="next" value="{next}">
<label for="user">User name</label>
<input class="field" id="user" name="user" type="text" value="{user}" autocomplete="username" autocapitalize="none" spellcheck="false"{first}>
<label for="password">Password or token</label>
<input class="field" id="password" name="password" type="password" autocomplete="current-password" required{second}>
<button class="button main" type="submit">Log in</button>
</form>
</main>
</body>
</html>
"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_input() {
        let page = page("\"><script>1</script>", "\"onfocus='x'", Some("<b>"));
        assert!(!page.contains("<script") && !page.contains("\"onfocus") && !page.contains("<b>"), "{page}");
        assert!(page.contains("value=\"&quot;&gt;&lt;script&gt;1&lt;/script&gt;\""), "{page}");
    }
}
