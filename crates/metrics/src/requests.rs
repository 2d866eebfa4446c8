//! HTTP requests by route. All labels come from the server: a route is the template that matched, a method is one of
//! the standard ones, and a status is one of the server's. A client cannot add labels.

use std::time::Duration;

use http::{Method, StatusCode};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::exposition::Total;

/// The label of an unknown route or method.
const OTHER: &str = "other";

/// The upper bounds of the histogram of response times, in seconds.
const BUCKETS: [f64; 11] = [0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0];

/// The requests of all routes.
#[derive(Debug)]
pub struct Requests {
    responses: Family<ResponseLabels, Total>,
    seconds: Family<RouteLabels, Histogram, fn() -> Histogram>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResponseLabels {
    method: &'static str,
    route: String,
    status: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RouteLabels {
    route: String,
}

impl Requests {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let requests =
            Self { responses: Family::default(), seconds: Family::new_with_constructor(|| Histogram::new(BUCKETS)) };
        registry.register("restante_http_requests_total", "Requests that got a response", requests.responses.clone());
        registry.register(
            "restante_http_request_seconds",
            "Time from the header of a request to the header of its response",
            requests.seconds.clone(),
        );
        requests
    }

    /// Counts a response that was sent after this duration.
    pub fn count_response(&self, route: String, method: &'static str, status: StatusCode, duration: Duration) {
        let labels = ResponseLabels { method, route, status: status.as_u16() };
        self.responses.get_or_create(&labels).inc();
        self.seconds.get_or_create(&RouteLabels { route: labels.route }).observe(duration.as_secs_f64());
    }
}

/// Returns the label of the route of a template below a base path, or of requests without a matching template. A route has
/// the same label with and without the base path.
pub fn route_label(template: Option<&str>, base_path: &str) -> String {
    let name = template.map_or(OTHER, |template| template.strip_prefix(base_path).unwrap_or(template));
    if name.is_empty() { "/".to_owned() } else { name.to_owned() }
}

/// Returns the label of a method. A client can send any method (RFC 9110 section 9.1); unknown ones share a label.
pub fn method_label(method: &Method) -> &'static str {
    const STANDARD: [&str; 9] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"];
    STANDARD.into_iter().find(|standard| *standard == method.as_str()).unwrap_or(OTHER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_have_one_label_with_and_without_the_base_path() {
        let templates = [Some("/livez"), Some("/mail/livez"), Some("/mail"), Some("/mail/"), Some("/"), None];
        let labels = templates.map(|template| route_label(template, "/mail"));
        assert_eq!(labels, ["/livez", "/livez", "/", "/", "/", "other"]);
    }

    #[test]
    fn unknown_methods_share_a_label() {
        for (method, expected) in [("GET", "GET"), ("DELETE", "DELETE"), ("get", "other"), ("BREW", "other")] {
            assert_eq!(method_label(&Method::from_bytes(method.as_bytes()).unwrap()), expected);
        }
    }
}
