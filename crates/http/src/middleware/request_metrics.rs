//! Counts requests by route, method and status, and measures their duration.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{MatchedPath, Request};
use axum::response::Response;
use restante_metrics::{Route, method_label};

use crate::state::Server;

/// A request that is being answered.
pub(crate) struct Asked {
    route: Arc<Route>,
    method: &'static str,
    at: Instant,
}

impl Asked {
    /// Takes note of a request. Nothing is allocated: this happens to every one of them.
    pub(crate) fn now(server: &Server, request: &Request) -> Self {
        let template = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
        Self {
            route: server.settings.metrics.requests.route(template, &server.settings.base_path),
            method: method_label(request.method()),
            at: Instant::now(),
        }
    }

    /// Counts it, now that there is an answer.
    pub(crate) fn answered(self, response: &Response) {
        self.route.answered(self.method, response.status(), self.at.elapsed());
    }
}
