//! Pages that the server writes itself: plain HTML in the style of the web interface, without scripts. These are the login
//! page, and the page for a path that does not exist. All links are relative, so they work under any base path, and with a
//! proxy that removes a prefix of the path.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use restante_html::push_escaped;
use restante_http_core::extractors::request_context::is_page_request;
use restante_http_core::paths;
use restante_http_core::response::problem::Problem;
use restante_http_core::response::success::{HTML, NO_STORE, SAME_ORIGIN};
use restante_http_core::server::Server;

use crate::embedded_assets;

const POLICY: HeaderValue = HeaderValue::from_static(embedded_assets::LOGIN_POLICY);

/// The mark and the name of the web interface, as the content of a heading.
const BRAND: &str = r#"<svg class="brand-mark" viewBox="0 0 32 32" aria-hidden="true"><path d="M4 7h24v18H4z"/><path d="m4 8 12 9 12-9"/><path class="brand-stamp" d="M21 17h5v6h-5z"/></svg> Restante"#;

/// Returns the response to a request for an unknown path: a page for a browser, a problem document for a program.
pub async fn not_found(State(server): State<Arc<Server>>, request: Request) -> Response {
    if is_page_request(&server.settings, &request) {
        not_found_page(&paths::relative_root(&server.settings.base_path, request.uri().path()))
    } else {
        Problem::NoSuchPath.into_response()
    }
}

fn not_found_page(root: &str) -> Response {
    let main = format!(
        r#"<div class="login sheet">
<p class="brand">{BRAND}</p>
<h1>Page not found</h1>
<p>There is no page at this address. Check the address, or go to the inbox to see all messages.</p>
<a class="button main" href="{}">Go to the inbox</a>
</div>
"#,
        escaped(root)
    );
    response(StatusCode::NOT_FOUND, "Page not found", root, &main)
}

/// Returns the login page with the path to return to, the user name that was typed before, and an error message.
pub(super) fn login_form(status: StatusCode, next: &str, user: &str, error: Option<&str>) -> Response {
    response(status, "Log in", "./", &login_form_html(next, user, error))
}

fn login_form_html(next: &str, user: &str, error: Option<&str>) -> String {
    let (next, user) = (escaped(next), escaped(user));
    let note = error.map(|sentence| format!("<p class=\"note bad\" role=\"alert\">{}</p>\n", escaped(sentence)));
    let note = note.unwrap_or_default();
    // If the user name is known, the focus is on the password.
    let (first, second) = if user.is_empty() { (" autofocus", "") } else { ("", " autofocus") };
    format!(
        r#"<form class="login sheet" method="post" action="./login">
<h1 class="brand">{BRAND}</h1>
{note}<input type="hidden" name="next" value="{next}">
<label for="user">User name</label>
<input class="field" id="user" name="user" type="text" value="{user}" autocomplete="username" autocapitalize="none" spellcheck="false"{first}>
<label for="password">Password or token</label>
<input class="field" id="password" name="password" type="password" autocomplete="current-password" required{second}>
<button class="button main" type="submit">Log in</button>
</form>
"#
    )
}

/// Returns a page with this title and this HTML. `root` is the path to the root of the server, with a slash at its end.
fn response(status: StatusCode, title: &str, root: &str, main: &str) -> Response {
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
fn escaped(text: &str) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_input() {
        let form = login_form_html("\"><script>1</script>", "\"onfocus='x'", Some("<b>"));
        assert!(!form.contains("<script") && !form.contains("\"onfocus") && !form.contains("<b>"), "{form}");
        assert!(form.contains("value=\"&quot;&gt;&lt;script&gt;1&lt;/script&gt;\""), "{form}");
    }
}
