//! Completes every response: its form, its security headers, the metrics and the log of errors of the store.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderName, HeaderValue, header};
use axum::middleware::Next;
use axum::response::Response;
use restante_http_core::response::problem::Problem;
use restante_http_core::response::success::SAME_ORIGIN;
use restante_metrics::{method_label, route_label};

use crate::middleware::Mount;

const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");
const OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");
const DNS_PREFETCH: HeaderName = HeaderName::from_static("x-dns-prefetch-control");

/// Adds security headers to every response, and writes errors as the API reports them. Counts requests and measures their
/// duration.
pub(crate) async fn complete_response(State(mount): State<Arc<Mount>>, request: Request, next: Next) -> Response {
    let start = Instant::now();
    let template = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
    let route = route_label(template, &mount.prefix);
    let method = method_label(request.method());
    let mut response = next.run(request).await;
    if let Some(problem) = response.extensions().get::<Arc<Problem>>().cloned() {
        if let Problem::Store(error) = &*problem {
            mount.server.log_throttles.store_errors.log("HTTP request failed", None, error);
        }
        response = (mount.error_form)(&problem, response);
    }
    // Messages are hostile input, and almost every response contains some: browsers must not sniff its type, resolve
    // host names in it, show it in a frame of another site, or load it into a page of another origin.
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(DNS_PREFETCH, HeaderValue::from_static("off"));
    headers.entry(header::X_FRAME_OPTIONS).or_insert(HeaderValue::from_static("SAMEORIGIN"));
    headers.insert(RESOURCE_POLICY, SAME_ORIGIN);
    // A page that opens this one in a window could count its frames, and so find out what is in a mailbox. A page that is
    // opened by a link in a message could replace the message by another page.
    headers.insert(OPENER_POLICY, SAME_ORIGIN);
    mount.server.settings.metrics.requests.count_response(route, method, response.status(), start.elapsed());
    response
}
