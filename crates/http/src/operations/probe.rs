//! Health checks for supervisors such as Kubernetes, load balancers and `restante health`: whether the server is alive,
//! and whether it is ready.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use restante_http_core::response::problem::Problem;
use restante_http_core::response::success;
use restante_http_core::server::Server;

/// Always succeeds: a response shows that the process serves requests.
pub(crate) async fn live() -> Response {
    let headers = [(header::CONTENT_TYPE, success::UTF8_TEXT), (header::CACHE_CONTROL, success::NO_STORE)];
    (headers, Body::from("ok\n")).into_response()
}

/// Checks the listeners and the store.
pub(crate) async fn ready(State(server): State<Arc<Server>>) -> Result<Response, Problem> {
    server.settings.readiness.check().map_err(Problem::NotReady)?;
    let Err(error) = server.mailroom.usage().await else { return Ok(live().await) };
    if !server.mailroom.is_shared() {
        return Err(error.into());
    }
    // A shared store logs by itself that it is unavailable, and supervisors send this request frequently.
    tracing::debug!(%error, "not ready");
    let mut response = Problem::from(error).into_response();
    response.extensions_mut().remove::<Arc<Problem>>();
    Ok(response)
}
