//! Completes every response: its form, its security headers, the metrics and the log of errors of the store.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::Response;
use restante_http_core::response::problem::Problem;
use restante_http_core::response::success::SAME_ORIGIN;
use restante_metrics::{method_label, route_label};

use crate::middleware::Mount;

const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");
const OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");
const DNS_PREFETCH: HeaderName = HeaderName::from_static("x-dns-prefetch-control");

/// A request whose response is not complete yet.
pub(super) struct OpenRequest {
    start: Instant,
    route: String,
    method: &'static str,
}

impl OpenRequest {
    pub(super) fn new(mount: &Mount, request: &Request) -> Self {
        let template = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
        let (route, method) = (route_label(template, &mount.prefix), method_label(request.method()));
        Self { start: Instant::now(), route, method }
    }

    /// Adds security headers to the response, and writes an error as the API reports it. Counts the request and measures its
    /// duration.
    pub(super) fn complete(self, mount: &Mount, mut response: Response) -> Response {
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
        mount.server.settings.metrics.requests.count_response(
            self.route,
            self.method,
            response.status(),
            self.start.elapsed(),
        );
        response
    }
}
