//! Requests over HTTP, by route. What is counted under is known to the server: a route is the template that matched, a
//! method is one of the standard ones, a status is our own. A client can choose between them and add nothing.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use http::{Method, StatusCode};
use prometheus_client::metrics::histogram::Histogram;

/// What stands in for a route or method that is none of ours.
const OTHER: &str = "other";

/// The upper bounds of the histogram of response times, in seconds.
const BUCKETS: [f64; 11] = [0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0];

/// All requests.
#[derive(Debug)]
pub struct Requests {
    other: Arc<Route>,
    table: RwLock<RouteTable>,
}

/// The routes that were asked for so far. There are as many of them as the router has.
#[derive(Debug, Default)]
struct RouteTable {
    routes: Vec<Arc<Route>>,
    /// Several templates lead to one route: with the base path and without it.
    by_template: HashMap<Box<str>, Arc<Route>>,
}

/// The requests for one route.
#[derive(Debug)]
pub struct Route {
    name: Box<str>,
    seconds: Histogram,
    responses: Mutex<BTreeMap<ResponseKey, u64>>,
}

/// What is told apart about answers.
pub(super) type ResponseKey = (&'static str, u16);

impl Requests {
    /// The route of a template below a base path, or the one for requests that no template matches.
    pub fn route(&self, template: Option<&str>, base: &str) -> Arc<Route> {
        let Some(template) = template else { return self.other.clone() };
        let known = self.table.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(route) = known.by_template.get(template) {
            return route.clone();
        }
        drop(known);
        self.table.write().unwrap_or_else(PoisonError::into_inner).get_or_insert(template, base)
    }

    /// All routes that were asked for, by name.
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
    fn get_or_insert(&mut self, template: &str, base: &str) -> Arc<Route> {
        let name = match template.strip_prefix(base).unwrap_or(template) {
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

    /// Counts a request that was answered after so long.
    pub fn count_response(&self, method: &'static str, status: StatusCode, after: Duration) {
        self.seconds.observe(after.as_secs_f64());
        *self.responses.lock().unwrap_or_else(PoisonError::into_inner).entry((method, status.as_u16())).or_default() +=
            1;
    }

    /// What the route is called in a label.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// How long its answers took.
    pub(super) fn seconds(&self) -> &Histogram {
        &self.seconds
    }

    /// How many answers there were of which kind.
    pub(super) fn responses(&self) -> BTreeMap<ResponseKey, u64> {
        self.responses.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// What a method is called in a label. Anybody can make one up (RFC 9110 section 9.1), and those are all one.
pub fn method_label(method: &Method) -> &'static str {
    const STANDARD: [&str; 9] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"];
    STANDARD.into_iter().find(|standard| *standard == method.as_str()).unwrap_or(OTHER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_is_one_with_the_base_path_and_without() {
        let requests = Requests::default();
        let after = Duration::from_millis(1);
        for template in ["/livez", "/mail/livez", "/mail/livez", "/mail", "/mail/", "/"] {
            requests.route(Some(template), "/mail").count_response("GET", StatusCode::OK, after);
        }
        requests.route(None, "/mail").count_response("GET", StatusCode::NOT_FOUND, after);
        let counted: Vec<_> = requests.routes().iter().map(|route| (route.name.clone(), route.responses())).collect();
        let expected: [(Box<str>, BTreeMap<ResponseKey, u64>); 3] = [
            ("/".into(), [(("GET", 200), 3)].into()),
            ("/livez".into(), [(("GET", 200), 3)].into()),
            ("other".into(), [(("GET", 404), 1)].into()),
        ];
        assert_eq!(counted, expected);
    }

    #[test]
    fn methods_that_somebody_made_up_are_all_one() {
        for (method, expected) in [("GET", "GET"), ("DELETE", "DELETE"), ("get", "other"), ("BREW", "other")] {
            assert_eq!(method_label(&Method::from_bytes(method.as_bytes()).unwrap()), expected);
        }
    }
}
