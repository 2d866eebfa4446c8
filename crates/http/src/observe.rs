//! What the server tells about itself in numbers, to Prometheus and to clients of Inbucket, and the counting of requests.

use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderValue, header};
use axum::response::Response;
use restante_metrics::{Route, Scrape, method_label};

use super::problem::Problem;
use super::target::Administrator;
use super::{Server, Turn, fault, reply};

/// Where Prometheus looks.
pub(super) const METRICS: &str = "/metrics";
/// Where the status page of Inbucket's web interface looks.
pub(super) const VARS: &str = "/debug/vars";

/// Everything, for Prometheus.
pub(super) async fn metrics(_: Administrator, State(server): State<Arc<Server>>) -> Result<Response, Problem> {
    let settings = &server.settings;
    let scrape = Scrape::take(settings.metrics.clone(), &server.mailroom, settings.extensions.counts()).await;
    let text = Turn::away(&server.scrapes).await?.work(move || scrape.into_text()).await?;
    let mut response = Response::new(Body::from(text.map_err(|error| fault(&error))?));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(Scrape::CONTENT_TYPE));
    response.headers_mut().insert(header::CACHE_CONTROL, reply::NO_STORE);
    Ok(response)
}

/// What clients of Inbucket know.
pub(super) async fn vars(_: Administrator, State(server): State<Arc<Server>>) -> Result<Response, Problem> {
    reply::current(&server.settings.metrics.vars(&server.mailroom).await).map_err(|error| fault(&error))
}

/// A request that is being answered.
pub(super) struct Asked {
    route: Arc<Route>,
    method: &'static str,
    at: Instant,
}

impl Asked {
    /// Takes note of a request. Nothing is allocated: this happens to every one of them.
    pub(super) fn now(server: &Server, request: &Request) -> Self {
        let template = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
        Self {
            route: server.settings.metrics.requests.route(template, &server.settings.base_path),
            method: method_label(request.method()),
            at: Instant::now(),
        }
    }

    /// Counts it, now that there is an answer.
    pub(super) fn answered(self, response: &Response) {
        self.route.answered(self.method, response.status(), self.at.elapsed());
    }
}
