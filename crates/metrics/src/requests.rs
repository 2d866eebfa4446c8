//! HTTP requests by route. All labels come from the server: a route is the template that matched, a method is one of
//! the standard ones, and a status is one of the server's. A client cannot add labels.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use http::{Method, StatusCode};
use prometheus_client::metrics::histogram::Histogram;

/// The label of an unknown route or method.
const OTHER: &str = "other";

/// The upper bounds of the histogram of response times, in seconds.
const BUCKETS: [f64; 11] = [0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0];

/// The requests of all routes.
#[derive(Debug)]
pub struct Requests {
    other: Arc<Route>,
    table: RwLock<RouteTable>,
}

/// The routes that were requested so far. There are at most as many as the router has.
#[derive(Debug, Default)]
struct RouteTable {
    routes: Vec<Arc<Route>>,
    /// Several templates can have one route: with and without the base path.
    by_template: HashMap<Box<str>, Arc<Route>>,
}

/// The requests of one route.
#[derive(Debug)]
pub struct Route {
    name: Box<str>,
    seconds: Histogram,
    responses: Mutex<BTreeMap<ResponseKey, u64>>,
}

/// The method and status of a response.
pub(super) type ResponseKey = (&'static str, u16);

impl Requests {
    /// Returns the route of a template below a base path, or the route of requests without a matching template.
    pub fn route(&self, template: Option<&str>, base_path: &str) -> Arc<Route> {
        let Some(template) = template else { return self.other.clone() };
        let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(route) = table.by_template.get(template) {
            return route.clone();
        }
        drop(table);
        self.table.write().unwrap_or_else(PoisonError::into_inner).get_or_insert(template, base_path)
    }

    /// Returns all routes that were requested, ordered by name.
    pub(super) fn routes(&self) -> Vec<Arc<Route>> {
        let mut routes = self.table.read().unwrap_or_else(PoisonError::into_inner).routes.clone();
        if !self.other.responses().is_empty() {
            routes.push(self.other.clone());
        }
        routes.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        routes
    }
}

impl Default for Requests {
    fn default() -> Self {
        Self { other: Arc::new(Route::new(OTHER)), table: RwLock::default() }
    }
}

impl RouteTable {
    fn get_or_insert(&mut self, template: &str, base_path: &str) -> Arc<Route> {
        let name = match template.strip_prefix(base_path).unwrap_or(template) {
            "" => "/",
            name => name,
        };
        let found = self.routes.iter().find(|route| &*route.name == name).cloned();
        let route = found.unwrap_or_else(|| {
            let route = Arc::new(Route::new(name));
            self.routes.push(route.clone());
            route
        });
        self.by_template.insert(template.into(), route.clone());
        route
    }
}

impl Route {
    fn new(name: &str) -> Self {
        Self { name: name.into(), seconds: Histogram::new(BUCKETS), responses: Mutex::default() }
    }

    /// Counts a response that was sent after this duration.
    pub fn count_response(&self, method: &'static str, status: StatusCode, duration: Duration) {
        self.seconds.observe(duration.as_secs_f64());
        *self.responses.lock().unwrap_or_else(PoisonError::into_inner).entry((method, status.as_u16())).or_default() +=
            1;
    }

    /// Returns the label of the route.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the response times.
    pub(super) fn seconds(&self) -> &Histogram {
        &self.seconds
    }

    /// Returns the number of responses by method and status.
    pub(super) fn responses(&self) -> BTreeMap<ResponseKey, u64> {
        self.responses.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
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
    fn routes_with_and_without_the_base_path_are_counted_together() {
        let requests = Requests::default();
        let duration = Duration::from_millis(1);
        for template in ["/livez", "/mail/livez", "/mail/livez", "/mail", "/mail/", "/"] {
            requests.route(Some(template), "/mail").count_response("GET", StatusCode::OK, duration);
        }
        requests.route(None, "/mail").count_response("GET", StatusCode::NOT_FOUND, duration);
        let counted: Vec<_> = requests.routes().iter().map(|route| (route.name.clone(), route.responses())).collect();
        let expected: [(Box<str>, BTreeMap<ResponseKey, u64>); 3] = [
            ("/".into(), [(("GET", 200), 3)].into()),
            ("/livez".into(), [(("GET", 200), 3)].into()),
            ("other".into(), [(("GET", 404), 1)].into()),
        ];
        assert_eq!(counted, expected);
    }

    #[test]
    fn unknown_methods_share_a_label() {
        for (method, expected) in [("GET", "GET"), ("DELETE", "DELETE"), ("get", "other"), ("BREW", "other")] {
            assert_eq!(method_label(&Method::from_bytes(method.as_bytes()).unwrap()), expected);
        }
    }
}
