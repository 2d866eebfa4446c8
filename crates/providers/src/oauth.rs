//! The token endpoints of OAuth 2.0 (RFC 6749 section 3.2). They grant nothing: the access token is a secret of the request, so that
//! a client whose secret is an API key gets that key.

use axum::http::StatusCode;
use serde_json::json;

use crate::failure::Failure;
use crate::incoming::Incoming;
use crate::provider::Action;
use crate::reply::Reply;

/// The lifetime of access tokens that responses contain. Restante does not limit it.
const LIFETIME_SECONDS: u32 = 3599;

/// Returns the secret in a request to a token endpoint: the first of these fields of the form that has a value.
pub(crate) fn secret(incoming: &Incoming, names: &[&str]) -> Option<String> {
    if !incoming.uri.path().trim_end_matches('/').ends_with("/token") {
        return None;
    }
    let form = incoming.form().ok()?;
    let find = |name: &&str| form.iter().find(|(known, value)| known == name && !value.is_empty());
    names.iter().find_map(find).map(|(_, value)| value.clone())
}

/// Responds to a request for an access token.
pub(crate) fn token(incoming: &Incoming, names: &[&str]) -> Result<Action, Failure> {
    let Some(secret) = secret(incoming, names) else {
        let problem = format!("The form must have the field {}.", names.join(" or "));
        let body = json!({"error": "invalid_request", "error_description": problem});
        return Ok(Action::Reply(Reply::json(StatusCode::BAD_REQUEST, &body)));
    };
    let body = json!({
        "token_type": "Bearer",
        "expires_in": LIFETIME_SECONDS,
        "ext_expires_in": LIFETIME_SECONDS,
        "access_token": secret,
    });
    Action::json(&body)
}
