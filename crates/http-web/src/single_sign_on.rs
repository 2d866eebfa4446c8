//! Login and logout with an identity provider. The provider redirects the browser back to this server, which is a request from
//! another site. So the cookie of a started login is `SameSite=Lax`, like that of a session.

use std::sync::Arc;

use axum::extract::{FromRequestParts as _, Request, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use restante_auth::{AuthService, AuthorizationResponse, DenialReason, SingleSignOnError};
use restante_http_connection::context::Peer;
use restante_http_core::credentials::cookies;
use restante_http_core::extractors::query::QueryPairs;
use restante_http_core::extractors::request_context::{BaseUrl, RequestHost, RequestProject, project_path};
use restante_http_core::paths::{self, relative_root};
use restante_http_core::response::problem::Problem;
use restante_http_core::response::success::see_other;
use restante_http_core::server::Server;

use crate::login::{Cookie, MAX_NEXT_BYTES, auth, set_cookie, start_session};
use crate::plain_page::{message_page, no_access, redirect_page};

/// The name of the cookie of a started login.
const LOGIN_COOKIE: &str = "restante-login";
/// The maximum number of these cookies that are checked.
const MAX_COOKIES: usize = 4;

/// What the handlers need to know about a request.
struct Context {
    auth: Arc<AuthService>,
    /// The URL under which the browser sees the server.
    base: Arc<str>,
    /// The path of the project of the request below that of the server, such as `/p/shop`, or empty.
    project_path: String,
    /// The path to the root of the server or of the project.
    root: String,
    query: QueryPairs,
    is_secure: bool,
}

impl Context {
    async fn new(server: &Arc<Server>, parts: &mut Parts) -> Result<Self, Problem> {
        let auth = auth(server)?;
        if !auth.authenticator.has_single_sign_on() {
            return Err(Problem::NoSuchPath);
        }
        let project_path = project_path(&parts.extensions);
        // The provider knows the URLs of the server, not those of a project.
        parts.extensions.remove::<RequestProject>();
        let BaseUrl(base) = BaseUrl::from_request_parts(parts, server).await?;
        Ok(Self {
            auth: auth.clone(),
            base,
            project_path,
            root: relative_root(&server.settings.base_path, parts.uri.path()),
            query: QueryPairs::parse_leniently(&parts.uri).unwrap_or_default(),
            is_secure: parts.extensions.get::<RequestHost>().is_some_and(|host| host.scheme == "https"),
        })
    }

    /// Returns the URL to which the provider redirects the browser after the login.
    fn callback(&self) -> String {
        format!("{}{}", self.base, paths::LOGIN_OIDC_CALLBACK)
    }
}

/// Redirects to the identity provider.
pub(crate) async fn start(State(server): State<Arc<Server>>, request: Request) -> Result<Response, Problem> {
    let context = Context::new(&server, &mut request.into_parts().0).await?;
    let next = context.query.first("next").filter(|next| next.len() <= MAX_NEXT_BYTES).unwrap_or_default();
    let next = match context.project_path.strip_prefix('/') {
        Some(project) => format!("{project}/{next}"),
        None => next.to_owned(),
    };
    let started = match context.auth.authenticator.start_single_sign_on(&context.callback(), &next).await {
        Ok(started) => started,
        Err(error) => return Ok(error_page(&server, &context.root, error)),
    };
    let mut response = see_other(started.url)?;
    let cookie = Cookie {
        name: LOGIN_COOKIE,
        value: &started.cookie,
        path: paths::LOGIN_OIDC,
        lifetime: started.lifetime,
        is_secure: context.is_secure,
    };
    set_cookie(&mut response, &cookie, &server.settings)?;
    Ok(response)
}

/// Completes a login when the identity provider redirects back, and redirects to the page that the user wanted to open.
pub(crate) async fn complete(State(server): State<Arc<Server>>, request: Request) -> Result<Response, Problem> {
    let (mut parts, _) = request.into_parts();
    let context = Context::new(&server, &mut parts).await?;
    let response = AuthorizationResponse {
        state: context.query.first("state").unwrap_or_default(),
        code: context.query.first("code"),
        error: context.query.first("error"),
        error_description: context.query.first("error_description"),
        issuer: context.query.first("iss"),
    };
    let cookies: Vec<&str> = cookies(&parts.headers, LOGIN_COOKIE).take(MAX_COOKIES).collect();
    let client = parts.extensions.get::<Peer>().and_then(|peer| peer.ip).into();
    let authenticator = &context.auth.authenticator;
    let completed = match authenticator.complete_single_sign_on(&context.callback(), &cookies, response, client).await {
        Ok(completed) => completed,
        Err(error) => return Ok(error_page(&server, &context.root, error)),
    };
    let (login, next) = (&completed.login, &completed.next);
    let mut response = start_session(&server, &context.auth, login, &context.root, next, context.is_secure)?;
    let ended = Cookie { name: LOGIN_COOKIE, path: paths::LOGIN_OIDC, ..Cookie::default() };
    set_cookie(&mut response, &ended, &server.settings)?;
    Ok(response)
}

/// Leads to the page of the identity provider that ends the login there, if it has one. The login here was ended before.
pub(crate) async fn log_out(State(server): State<Arc<Server>>, request: Request) -> Result<Response, Problem> {
    let context = Context::new(&server, &mut request.into_parts().0).await?;
    let login_page = format!("{}{}", context.base, paths::LOGIN);
    let url = context.auth.authenticator.provider_logout_url(&login_page).await.unwrap_or_else(|error| {
        log_error(&server, &error);
        None
    });
    let Some(url) = url else { return see_other(format!("{}{}", context.root, &paths::LOGIN[1..])) };
    let sentence = "You are logged out of this server. The identity provider logs you out there too.";
    Ok(redirect_page("Logged out", &context.root, sentence, (&url, "Continue")))
}

/// Returns the page that says why a login failed.
fn error_page(server: &Server, root: &str, error: SingleSignOnError) -> Response {
    let (status, sentence) = match &error {
        SingleSignOnError::Denied(denied) => match denied.reason {
            DenialReason::NoAccess => return no_access(root, denied.clone(), true),
            DenialReason::TooMany => {
                (StatusCode::TOO_MANY_REQUESTS, "Too many logins have failed. Try again in a minute.")
            }
            _ => (
                StatusCode::FORBIDDEN,
                "The login was not completed. It may have taken too long, or another one was started in this browser.",
            ),
        },
        SingleSignOnError::Provider(cause) => {
            log_error(server, cause);
            let sentence = "The identity provider could not be used. The log of the server contains the cause.";
            (StatusCode::BAD_GATEWAY, sentence)
        }
    };
    let login = format!("{root}{}", &paths::LOGIN[1..]);
    let mut response = message_page(status, "Login failed", root, sentence, Some((&login, "Log in again")));
    if let SingleSignOnError::Denied(denied) = error {
        // The middleware logs it.
        response.extensions_mut().insert(denied);
    }
    response
}

fn log_error(server: &Server, error: &str) {
    if server.log_throttles.provider_errors.should_log() {
        tracing::error!(setting = "auth.oidcissuer", error, "the identity provider cannot be used");
    }
}
