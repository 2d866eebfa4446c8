//! Pages that the server writes itself: plain HTML in the style of the web interface, without scripts. These are the login
//! page, and messages such as that for a path that does not exist. All links are relative, so they work under any base path, and with a
//! proxy that removes a prefix of the path.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use restante_auth::Denied;
use restante_html::push_escaped;
use restante_http_core::extractors::request_context::is_page_request;
use restante_http_core::paths;
use restante_http_core::response::links::encode_segment;
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
    let sentence = "There is no page at this address. Check the address, or go to the inbox to see all messages.";
    message_page(StatusCode::NOT_FOUND, "Page not found", root, sentence, Some((root, "Go to the inbox")))
}

/// Returns the page for an account without access. Only accounts of the identity provider have a link to log out. `root` is the
/// path to the root of the server, with a slash at its end.
pub fn no_access(root: &str, denied: Denied, has_logout: bool) -> Response {
    let name = denied.name.as_deref().unwrap_or_default();
    let sentence = format!("You are logged in as {name}. Your account has no access to this server.");
    let logout = format!("{root}{}", &paths::LOGOUT_OIDC[1..]);
    let link = has_logout.then_some((logout.as_str(), "Log out"));
    let mut response = message_page(StatusCode::FORBIDDEN, "No access", root, &sentence, link);
    // The middleware logs it.
    response.extensions_mut().insert(denied);
    response
}

/// Returns a page with a message and a link.
pub(super) fn message_page(
    status: StatusCode,
    title: &str,
    root: &str,
    sentence: &str,
    link: Option<(&str, &str)>,
) -> Response {
    let (heading, sentence) = (escaped(title), escaped(sentence));
    let link =
        link.map(|(url, text)| format!("<a class=\"button main\" href=\"{}\">{}</a>\n", escaped(url), escaped(text)));
    let main = format!(
        r#"<div class="login sheet">
<p class="brand">{BRAND}</p>
<h1>{heading}</h1>
<p>{sentence}</p>
{}</div>
"#,
        link.unwrap_or_default()
    );
    response(status, title, root, &main)
}

/// Returns a page with a message and a link, which the browser follows at once. The link can lead to another host, which a
/// redirect after a form or a request of a script cannot.
pub(super) fn redirect_page(title: &str, root: &str, sentence: &str, link: (&str, &str)) -> Response {
    let mut response = message_page(StatusCode::OK, title, root, sentence, Some(link));
    if let Ok(refresh) = HeaderValue::try_from(format!("0; url={}", link.0)) {
        response.headers_mut().insert(header::REFRESH, refresh);
    }
    response
}

/// How users can log in.
#[derive(Clone, Copy, Debug)]
pub(super) struct LoginKinds {
    /// With a password or token.
    pub(super) password: bool,
    /// With the identity provider.
    pub(super) single_sign_on: bool,
}

/// Returns the login page with the path to return to, the user name that was typed before, and an error message.
pub(super) fn login_form(
    status: StatusCode,
    kinds: LoginKinds,
    next: &str,
    user: &str,
    error: Option<&str>,
) -> Response {
    response(status, "Log in", "./", &login_form_html(kinds, next, user, error))
}

fn login_form_html(kinds: LoginKinds, next: &str, user: &str, error: Option<&str>) -> String {
    let note = error.map(|sentence| format!("<p class=\"note bad\" role=\"alert\">{}</p>\n", escaped(sentence)));
    let note = note.unwrap_or_default();
    let fields = if kinds.password { password_fields_html(next, user) } else { String::new() };
    let query = if next.is_empty() { String::new() } else { format!("?next={}", encode_segment(next)) };
    let class = if kinds.password { "button" } else { "button main" };
    let link = format!("<a class=\"{class}\" href=\".{}{query}\">Log in with single sign-on</a>\n", paths::LOGIN_OIDC);
    let link = if kinds.single_sign_on { link } else { String::new() };
    format!(
        r#"<form class="login sheet" method="post" action="./login">
<h1 class="brand">{BRAND}</h1>
{note}{fields}{link}</form>
"#
    )
}

fn password_fields_html(next: &str, user: &str) -> String {
    let (next, user) = (escaped(next), escaped(user));
    // If the user name is known, the focus is on the password.
    let (first, second) = if user.is_empty() { (" autofocus", "") } else { ("", " autofocus") };
    format!(
        r#"<input type="hidden" name="next" value="{next}">
<label for="user">User name</label>
<input class="field" id="user" name="user" type="text" value="{user}" autocomplete="username" autocapitalize="none" spellcheck="false"{first}>
<label for="password">Password or token</label>
<input class="field" id="password" name="password" type="password" autocomplete="current-password" required{second}>
<button class="button main" type="submit">Log in</button>
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
        let kinds = LoginKinds { password: true, single_sign_on: true };
        let form = login_form_html(kinds, "\"><script>1</script>", "\"onfocus='x'", Some("<b>"));
        assert!(!form.contains("<script") && !form.contains("\"onfocus") && !form.contains("<b>"), "{form}");
        assert!(form.contains("value=\"&quot;&gt;&lt;script&gt;1&lt;/script&gt;\""), "{form}");
        assert!(form.contains("href=\"./login/oidc?next=%22%3E%3Cscript%3E1%3C%2Fscript%3E\""), "{form}");
    }
}
