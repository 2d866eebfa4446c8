//! Metrics for Prometheus and for clients of Inbucket.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use restante_http_connection::work::WorkPermit;
use restante_http_core::extractors::parameters::RequireAdmin;
use restante_http_core::response::problem::{Problem, internal_error};
use restante_http_core::response::success;
use restante_http_core::server::Server;
use restante_metrics::Scrape;

/// The path for Prometheus.
pub(crate) const METRICS_PATH: &str = "/metrics";
/// The path for the status page of Inbucket's web interface.
pub(crate) const VARS_PATH: &str = "/debug/vars";

/// Returns all metrics in the exposition format of Prometheus.
pub(crate) async fn metrics(_: RequireAdmin, State(server): State<Arc<Server>>) -> Result<Response, Problem> {
    let settings = &server.settings;
    let scrape = Scrape::collect(settings.metrics.clone(), &server.mailroom).await;
    let registry = settings.registry.clone();
    let text = WorkPermit::acquire(&server.scrape_permits).await?.run(move || scrape.into_text(&registry)).await?;
    let content_type = HeaderValue::from_static(Scrape::CONTENT_TYPE);
    let headers = [(header::CONTENT_TYPE, content_type), (header::CACHE_CONTROL, success::NO_STORE)];
    Ok((headers, Body::from(text.map_err(|error| internal_error(&error))?)).into_response())
}

/// Returns the metrics that clients of Inbucket use.
pub(crate) async fn vars(_: RequireAdmin, State(server): State<Arc<Server>>) -> Result<Response, Problem> {
    success::no_store_json(&server.settings.metrics.vars(&server.mailroom).await)
}
