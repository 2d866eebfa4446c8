//! Health checks for supervisors such as Kubernetes, load balancers and `restante health`: whether the server is alive,
//! and whether it is ready.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use restante_store::StoreError;

use crate::response::problem::Problem;
use crate::response::success;
use crate::state::Server;

/// Always succeeds: a response shows that the process serves requests.
pub(crate) async fn live() -> Response {
    ok()
}

/// Checks the listeners and the store.
pub(crate) async fn ready(State(server): State<Arc<Server>>) -> Result<Response, Problem> {
    server.settings.readiness.check()?;
    let Err(error) = server.mailroom.usage().await else { return Ok(ok()) };
    if !server.mailroom.is_shared() {
        return Err(error.into());
    }
    // A shared store logs by itself that it is unavailable, and supervisors send this request frequently.
    tracing::debug!(%error, "not ready");
    let mut response = Problem::from(error).into_response();
    response.extensions_mut().remove::<StoreError>();
    Ok(response)
}

fn ok() -> Response {
    let mut response = Response::new(Body::from("ok\n"));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response.headers_mut().insert(header::CACHE_CONTROL, success::NO_STORE);
    response
}
