//! Tokens that are found only in the body of a request, and the grant of a request in the project of its path.

use axum::http::Extensions;
use restante_auth::runs::is_run_token;
use restante_auth::{DenialReason, Grant};
use restante_http_connection::context::Peer;

use crate::extractors::request_context::RequestProject;
use crate::response::problem::{Challenge, Problem};
use crate::server::Server;

/// Checks the token in the body of a request whose credentials are in its body, or the id of the key that has signed it. Returns
/// its grant. Without authentication, only the tokens of leased runs are checked.
pub async fn check_late_token(
    server: &Server,
    extensions: &Extensions,
    token: Option<&str>,
    is_signed: bool,
) -> Result<Grant, Problem> {
    let ip = extensions.get::<Peer>().and_then(|peer| peer.ip);
    let denied = |denied| Problem::Denied(denied, Challenge::Program);
    let grant = match (&server.settings.auth, token) {
        (Some(auth), Some(token)) if auth.is_enabled() || is_run_token(token) => {
            let authenticator = &auth.authenticator;
            let login = if is_signed {
                authenticator.check_signing_key(token, ip.into()).await
            } else {
                authenticator.check_token(token, ip.into()).await
            };
            login.map_err(denied)?.grant
        }
        (Some(auth), None) if auth.is_enabled() => return Err(denied(DenialReason::NoCredentials.into())),
        _ => Grant::EVERYTHING,
    };
    grant_in_project(grant, extensions)
}

/// Returns the part of a grant in the project in the path of a request, if there is one. Fails if the grant covers nothing
/// there.
pub fn grant_in_project(grant: Grant, extensions: &Extensions) -> Result<Grant, Problem> {
    match extensions.get() {
        None => Ok(grant),
        Some(RequestProject(project)) if grant.covers_some_of(project) => Ok(grant.in_project(project.clone())),
        Some(_) => Err(Problem::ProjectNotAllowed),
    }
}
