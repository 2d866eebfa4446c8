//! Login and logout through a page. The cookie is `SameSite=Lax`: browsers send it if the user follows a link from
//! another site, but not with forms, frames and scripts of other sites. `Strict` would also exclude the link.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::Response;
use restante_auth::{AuthService, DenialReason, Denied, VerifiedLogin};
use restante_http_connection::context::Peer;
use restante_http_core::credentials::{SESSION_COOKIE, session_cookies};
use restante_http_core::extractors::body;
use restante_http_core::extractors::query::QueryPairs;
use restante_http_core::extractors::request_context::RequestHost;
use restante_http_core::paths;
use restante_http_core::response::problem::{Problem, internal_error};
use restante_http_core::response::success::see_other;
use restante_http_core::server::{Server, Settings};

use crate::plain_page::{LoginKinds, login_form};

/// The maximum size of the form.
const MAX_FORM_BYTES: usize = 16 * 1024;
/// The maximum length of the path to return to after the login.
pub(crate) const MAX_NEXT_BYTES: usize = 2048;

/// Returns the login page.
pub(crate) async fn form(State(server): State<Arc<Server>>, uri: Uri) -> Result<Response, Problem> {
    let kinds = login_kinds(auth(&server)?);
    let query = QueryPairs::parse_leniently(&uri).unwrap_or_default();
    Ok(login_form(StatusCode::OK, kinds, query.first("next").unwrap_or_default(), "", None))
}

/// Checks the form, and redirects to the page that the user wanted to open.
pub(crate) async fn log_in(State(server): State<Arc<Server>>, request: Request) -> Result<Response, Problem> {
    let auth = auth(&server)?.clone();
    let extensions = request.extensions();
    let ip = extensions.get::<Peer>().and_then(|peer| peer.ip);
    let is_secure = extensions.get::<RequestHost>().is_some_and(|host| host.scheme == "https");
    let form = read_form(request).await?;
    let [user, password, next] = ["user", "password", "next"].map(|name| form.first(name).unwrap_or_default());
    let checked = auth.authenticator.check_password(user, password, ip.into()).await;
    let login = match checked {
        Ok(login) => login,
        Err(denied) => return Ok(refused_form(login_kinds(&auth), next, user, denied)),
    };
    start_session(&server, &auth, &login, "./", next, is_secure)
}

/// Ends a login, and redirects to the login page, or to that which also ends the login at the identity provider.
pub(crate) async fn log_out(State(server): State<Arc<Server>>, headers: HeaderMap) -> Result<Response, Problem> {
    let authenticator = &auth(&server)?.authenticator;
    let ended: Vec<bool> = session_cookies(&headers).map(|cookie| authenticator.log_out(cookie)).collect();
    let is_account = ended.contains(&true) && authenticator.has_single_sign_on();
    let mut response = see_other(format!(".{}", if is_account { paths::LOGOUT_OIDC } else { paths::LOGIN }))?;
    set_cookie(&mut response, &Cookie { name: SESSION_COOKIE, ..Cookie::default() }, &server.settings)?;
    Ok(response)
}

pub(crate) fn auth(server: &Server) -> Result<&Arc<AuthService>, Problem> {
    server.settings.required_auth().ok_or(Problem::NoSuchPath)
}

/// Without users, only the identity provider is offered, if there is one. Programs use tokens without this page.
fn login_kinds(auth: &AuthService) -> LoginKinds {
    let single_sign_on = auth.authenticator.has_single_sign_on();
    LoginKinds { password: auth.authenticator.has_users() || !single_sign_on, single_sign_on }
}

/// Sets the session cookie of a login, and redirects to the page that the user wanted to open. `root` is the path from the
/// current page to the root of the server.
pub(crate) fn start_session(
    server: &Server,
    auth: &AuthService,
    login: &VerifiedLogin,
    root: &str,
    next: &str,
    is_secure: bool,
) -> Result<Response, Problem> {
    let (value, lifetime) =
        auth.authenticator.create_session_cookie(login).ok_or_else(|| internal_error(&"the random source failed"))?;
    let mut response = see_other(redirect_target(root, next))?;
    let cookie = Cookie { name: SESSION_COOKIE, value: &value, lifetime, is_secure, ..Cookie::default() };
    set_cookie(&mut response, &cookie, &server.settings)?;
    Ok(response)
}

/// Returns the login page with the reason of the refusal.
fn refused_form(kinds: LoginKinds, next: &str, user: &str, denied: Denied) -> Response {
    let (status, sentence) = match denied.reason {
        DenialReason::TooMany => (StatusCode::TOO_MANY_REQUESTS, "Too many logins have failed. Try again in a minute."),
        DenialReason::Expired => (StatusCode::FORBIDDEN, "The token has expired."),
        _ => (StatusCode::FORBIDDEN, "The user name or the password is wrong."),
    };
    let mut response = login_form(status, kinds, next, user, Some(sentence));
    response.extensions_mut().insert(denied);
    response
}

async fn read_form(request: Request) -> Result<QueryPairs, Problem> {
    let (parts, body) = request.into_parts();
    let body = body::read(&parts.headers, body, MAX_FORM_BYTES).await?;
    // A form is encoded like a query (HTML Standard, section 4.10.22.7).
    let query = Uri::try_from([b"/?", &body[..]].concat()).ok();
    let form = query.and_then(|uri| QueryPairs::parse_leniently(&uri).ok());
    form.ok_or_else(|| Problem::Malformed("The form cannot be read.".to_owned()))
}

/// Returns the location after the login: the requested page if it belongs to this server, otherwise the inbox. The
/// location is relative and begins with a dot, so that it cannot name another host.
fn redirect_target(root: &str, next: &str) -> String {
    let path = next.split(['?', '#']).next().unwrap_or_default();
    let has_parent_segment = path.split(['/', '\\']).any(|segment| segment == "..");
    let is_printable = next.bytes().all(|byte| byte.is_ascii_graphic());
    let is_login = ["login", "logout"].contains(&path.split('/').next().unwrap_or_default());
    if has_parent_segment || !is_printable || next.len() > MAX_NEXT_BYTES || is_login {
        return root.to_owned();
    }
    format!("{root}{next}")
}

/// A cookie that only this server reads. Without a value it is deleted.
#[derive(Default)]
pub(crate) struct Cookie<'a> {
    pub(crate) name: &'a str,
    pub(crate) value: &'a str,
    /// The part of the path below the root of the server.
    pub(crate) path: &'a str,
    pub(crate) lifetime: Duration,
    pub(crate) is_secure: bool,
}

pub(crate) fn set_cookie(response: &mut Response, cookie: &Cookie<'_>, settings: &Settings) -> Result<(), Problem> {
    let Cookie { name, value, path, lifetime, is_secure } = cookie;
    let path = format!("{}{path}", settings.public_path());
    let path = if path.is_empty() { "/" } else { &path };
    let (seconds, secure) = (lifetime.as_secs(), if *is_secure { "; Secure" } else { "" });
    let cookie = format!("{name}={value}; Path={path}; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}");
    response
        .headers_mut()
        .append(header::SET_COOKIE, HeaderValue::try_from(cookie).map_err(|error| internal_error(&error))?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirect_leads_to_no_other_host() {
        for next in ["m/ann", "m/ann/7?x=1", "monitor#x", "status?next=../x", ""] {
            assert_eq!(redirect_target("./", next), format!("./{next}"));
        }
        // After a dot and a slash these are paths of this server.
        for next in
            ["/evil.example", "//evil.example", "https://evil.example", "javascript:alert(1)", "\\\\evil.example"]
        {
            assert_eq!(redirect_target("./", next), format!("./{next}"));
        }
        for next in
            ["../x", "a/../../x", "a\\..\\x", "a b", "a\r\nSet-Cookie: x", "jürgen", "login?next=login", "login/oidc"]
        {
            assert_eq!(redirect_target("./", next), "./", "{next}");
        }
        assert_eq!(redirect_target("./", &"x".repeat(MAX_NEXT_BYTES + 1)), "./");
    }
}
