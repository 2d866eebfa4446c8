//! Health checks and metrics.

mod metrics;
mod probe;

use axum::routing::get;
use restante_http_core::api::Api;
use restante_http_core::paths;

/// Returns health checks and metrics as an API.
pub(crate) fn api() -> Api {
    let routes = vec![
        (paths::LIVE.to_owned(), get(probe::live)),
        (paths::READY.to_owned(), get(probe::ready)),
        (metrics::METRICS_PATH.to_owned(), get(metrics::metrics)),
        (metrics::VARS_PATH.to_owned(), get(metrics::vars)),
    ];
    Api::new("operations", routes)
}
