//! Authenticates requests, and refuses those without valid credentials. The extractors in `extractors::parameters`
//! check what the credentials allow. Without authentication, all requests may do everything, except for those with the token
//! of a leased run.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use restante_auth::runs::is_run_token;
use restante_auth::{AuthService, Authenticator, DenialReason, Denied, Grant, VerifiedLogin};
use restante_http_connection::clean_path::path_and_query;
use restante_http_connection::context::Peer;
use restante_http_core::credentials::Credentials;
use restante_http_core::extractors::accepted_credentials::AcceptedCredentials;
use restante_http_core::extractors::late_token::grant_in_project;
use restante_http_core::extractors::request_context::{AllowedOrigin, FETCH_MODE, has_origin, is_page_navigation};
use restante_http_core::paths::{
    ASSETS, ICON, LIVE, LOGIN, LOGIN_OIDC, LOGIN_OIDC_CALLBACK, LOGOUT, LOGOUT_OIDC, READY, ROBOTS, below_base,
    relative_root,
};
use restante_http_core::response::links::encode_segment;
use restante_http_core::response::problem::{Challenge, Problem};
use restante_http_core::response::success::see_other;
use restante_http_core::response::viewer::is_browser;
use restante_http_core::server::Settings;
use restante_metrics::Protocol;

use crate::middleware::Mount;

const REQUESTED_WITH: HeaderName = HeaderName::from_static("x-requested-with");

/// The paths that need no credentials: probes, the login, and the files that its page needs.
const PUBLIC_PATHS: [&str; 10] =
    [LIVE, READY, LOGIN, LOGIN_OIDC, LOGIN_OIDC_CALLBACK, LOGOUT, LOGOUT_OIDC, ASSETS, ICON, ROBOTS];

/// The user of a request, as an authenticating proxy names it.
struct ProxyUser {
    name: String,
    groups: String,
}

/// Authenticates a request and adds its grant as an extension. Logs the request if access is denied.
pub(super) async fn authenticate(mount: &Mount, mut request: Request, next: Next) -> Response {
    if let Some(auth) = &mount.server.settings.auth
        && (auth.is_enabled() || has_run_token(mount, &request))
    {
        // Boxed, so that the future of a request without authentication is small.
        return Box::pin(authenticate_by(auth, mount, request, next)).await;
    }
    match grant_in_project(Grant::EVERYTHING, request.extensions()) {
        Ok(grant) => {
            request.extensions_mut().insert(grant);
            next.run(request).await
        }
        Err(problem) => problem.into_response(),
    }
}

/// Returns whether the credentials of a request are the token of a leased run, valid or not.
fn has_run_token(mount: &Mount, request: &Request) -> bool {
    match (mount.credentials)(mount.route_template(request), request) {
        Credentials::Token(token) | Credentials::Basic { password: token, .. } => is_run_token(&token),
        Credentials::Missing | Credentials::Cookies(_) | Credentials::SigningKey(_) | Credentials::InBody => false,
    }
}

async fn authenticate_by(auth: &Arc<AuthService>, mount: &Mount, mut request: Request, next: Next) -> Response {
    let ip = request.extensions().get::<Peer>().and_then(|peer| peer.ip);
    let (method, uri) = (request.method().clone(), request.uri().clone());
    let mut user = None;
    let response = match check_request(mount, auth, &mut request, ip).await {
        Ok(()) => {
            user = request.extensions().get::<Grant>().and_then(Grant::name).map(str::to_owned);
            next.run(request).await
        }
        Err(response) => response,
    };
    // The login page is not a problem document, so it has the denial itself.
    let problem = response.extensions().get::<Arc<Problem>>();
    let denied =
        problem.and_then(|problem| problem.denial()).or_else(|| response.extensions().get::<Denied>().cloned());
    if let Some(denied) = denied {
        let denied = Denied::new(denied.name.as_deref().or(user.as_deref()), denied.reason);
        mount.server.settings.metrics.count_denial(Protocol::Http, denied.reason);
        // The query is left out, because it may contain a token.
        auth.log_denial(Protocol::Http.log_name(), ip, &format_args!("{method} {}", uri.path()), &denied);
    }
    response
}

/// Checks the credentials of a request and adds its grant. Returns a response if they are not valid.
async fn check_request(
    mount: &Mount,
    auth: &Arc<AuthService>,
    request: &mut Request,
    ip: Option<IpAddr>,
) -> Result<(), Response> {
    let proxy_user = take_proxy_user(&mount.server.settings, &auth.authenticator, request);
    let template = mount.route_template(request);
    if PUBLIC_PATHS.contains(&template) {
        return Ok(());
    }
    let (credentials, challenge) = ((mount.credentials)(template, request), challenge(request.headers()));
    if proxy_user.is_none() && matches!(credentials, Credentials::InBody) {
        // The request has no grant until its handler has checked them.
        return Ok(());
    }
    // Browsers send cookies automatically, and so does a proxy with the user. Therefore such a request that changes something
    // must prove that it comes from a page of this server.
    let is_automatic = proxy_user.is_some() || matches!(credentials, Credentials::Cookies(_));
    if is_automatic && !request.method().is_safe() && !has_origin(request.headers()) {
        return Err(Problem::ForeignOrigin.into_response());
    }
    let checked = match proxy_user {
        Some(ProxyUser { name, groups }) => auth.authenticator.check_proxy_user(&name, &groups),
        None => check_credentials(auth, credentials, ip).await,
    };
    match checked {
        Ok(login) => {
            let grant = grant_in_project(login.grant.clone(), request.extensions()).map_err(Problem::into_response)?;
            request.extensions_mut().insert(grant);
            request.extensions_mut().insert(AcceptedCredentials::new(auth.clone(), login, challenge));
            Ok(())
        }
        Err(denied) => Err(refusal_response(mount, request, denied, challenge)),
    }
}

/// Removes the header fields of an authenticating proxy from a request, and returns the user if a trusted proxy names exactly
/// one. Pages of other origins cannot use it, as they cannot use cookies.
fn take_proxy_user(settings: &Settings, authenticator: &Authenticator, request: &mut Request) -> Option<ProxyUser> {
    let names = authenticator.user_headers()?;
    let peer = request.extensions().get::<Peer>().copied().unwrap_or_default();
    let is_trusted = settings.trusts(peer) && request.extensions().get::<AllowedOrigin>().is_none();
    let headers = request.headers_mut();
    let mut take = |name: &str| {
        // A second value can come from a client, if the proxy does not remove it.
        let is_single = headers.get_all(name).iter().count() == 1;
        let value = headers.remove(name).filter(|_| is_single)?;
        String::from_utf8(value.as_bytes().to_vec()).ok()
    };
    let (name, groups) = (take(&names.user), take(&names.groups).unwrap_or_default());
    name.filter(|name| is_trusted && !name.is_empty()).map(|name| ProxyUser { name, groups })
}

async fn check_credentials(
    auth: &AuthService,
    credentials: Credentials,
    ip: Option<IpAddr>,
) -> Result<VerifiedLogin, Denied> {
    let authenticator = &auth.authenticator;
    match credentials {
        Credentials::Missing | Credentials::InBody => Err(DenialReason::NoCredentials.into()),
        Credentials::Basic { user, password } => authenticator.check_password(&user, &password, ip.into()).await,
        Credentials::Token(token) => authenticator.check_token(&token, ip.into()).await,
        Credentials::SigningKey(id) => authenticator.check_signing_key(&id, ip.into()).await,
        Credentials::Cookies(cookies) => {
            let mut checked = Err(DenialReason::NoCredentials.into());
            for cookie in cookies {
                checked = authenticator.check_cookie(&cookie).await;
                if checked.is_ok() {
                    break;
                }
            }
            checked
        }
    }
}

/// Returns the response to a request that is not authenticated. A browser that opens a page is redirected to the login
/// page; this does not count as a denial.
fn refusal_response(mount: &Mount, request: &Request, denied: Denied, challenge: Challenge) -> Response {
    let is_anonymous = matches!(denied.reason, DenialReason::NoCredentials | DenialReason::Expired);
    if is_anonymous && mount.has_login_page && is_page_navigation(request.method(), request.headers()) {
        return redirect_to_login(&mount.server.settings, request.uri()).unwrap_or_else(Problem::into_response);
    }
    if denied.reason == DenialReason::NoAccess && is_page_navigation(request.method(), request.headers()) {
        let root = relative_root(&mount.server.settings.base_path, request.uri().path());
        return restante_http_web::no_access(&root, denied, false);
    }
    Problem::Denied(denied, challenge).into_response()
}

/// Redirects to the login page, which redirects back. The location is relative, like all links of the pages.
fn redirect_to_login(settings: &Settings, uri: &Uri) -> Result<Response, Problem> {
    let path = below_base(&settings.base_path, uri.path()).trim_start_matches('/');
    let next = path_and_query(uri, path);
    let root = relative_root(&settings.base_path, uri.path());
    see_other(match next.as_str() {
        "" => format!("{root}login"),
        next => format!("{root}login?next={}", encode_segment(next)),
    })
}

/// Returns the challenge for a client. Browsers send Fetch Metadata only over trustworthy connections.
fn challenge(headers: &HeaderMap) -> Challenge {
    let is_page = is_browser(headers) || headers.contains_key(FETCH_MODE) || headers.contains_key(REQUESTED_WITH);
    if is_page { Challenge::Page } else { Challenge::Program }
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderValue, header};

    use axum::http::Method;

    use super::*;

    fn location(base: &str, uri: &str) -> String {
        let settings = Settings { base_path: base.to_owned(), ..Settings::default() };
        let response = redirect_to_login(&settings, &uri.parse().unwrap()).unwrap();
        response.headers()[header::LOCATION].to_str().unwrap().to_owned()
    }

    #[test]
    fn redirects_to_login_and_back() {
        let table = [
            ("", "/", "./login"),
            ("", "/monitor", "./login?next=monitor"),
            ("", "/m/ann/7", "./../../login?next=m%2Fann%2F7"),
            ("", "/m/ann?x=1&y=%2F", "./../login?next=m%2Fann%3Fx%3D1%26y%3D%252F"),
            ("/base", "/base/m/ann", "./../login?next=m%2Fann"),
            ("/base", "/base/", "./login"),
            ("/base", "/m/ann", "./../login?next=m%2Fann"),
            ("/base", "/based/x", "./../login?next=based%2Fx"),
            ("", "//evil.example/x", "./../../login?next=evil.example%2Fx"),
        ];
        for (base, uri, expected) in table {
            assert_eq!(location(base, uri), expected, "{base} {uri}");
        }
    }

    #[test]
    fn distinguishes_browsers_and_programs() {
        type Row = (&'static [(&'static str, &'static str)], bool, Challenge);
        const HTML: (&str, &str) = ("accept", "text/html,application/xhtml+xml,*/*;q=0.8");
        let headers = |pairs: &[(&'static str, &'static str)]| -> HeaderMap {
            let value = |(name, value): &(&'static str, &'static str)| {
                (HeaderName::from_static(name), HeaderValue::from_static(value))
            };
            pairs.iter().map(value).collect()
        };
        let table: &[Row] = &[
            (&[], false, Challenge::Program),
            (&[("accept", "*/*"), ("user-agent", "curl/8")], false, Challenge::Program),
            (&[HTML], true, Challenge::Program),
            (&[HTML, ("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "document")], true, Challenge::Page),
            (&[HTML, ("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "iframe")], false, Challenge::Page),
            (&[("accept", "*/*"), ("user-agent", "Mozilla/5.0 (X11)")], false, Challenge::Page),
            (&[("x-requested-with", "XMLHttpRequest")], false, Challenge::Page),
        ];
        for (pairs, is_navigation, expected) in table {
            let headers = headers(pairs);
            assert_eq!(
                (is_page_navigation(&Method::GET, &headers), challenge(&headers)),
                (*is_navigation, *expected),
                "{pairs:?}"
            );
            assert!(!is_page_navigation(&Method::POST, &headers));
        }
    }
}
