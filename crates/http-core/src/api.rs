//! The description of an API: what the server needs to know to serve it.

use std::sync::Arc;

use axum::extract::Request;
use axum::response::Response;
use axum::routing::MethodRouter;

use crate::credentials::Credentials;
use crate::response::problem::Problem;
use crate::server::Server;

/// An API.
#[derive(Clone)]
pub struct Api {
    /// Its name in settings and error messages.
    pub name: &'static str,
    /// Its paths and their handlers.
    pub routes: Vec<Route>,
    /// Further paths, which are served only by listeners on which no other API has them.
    pub optional_routes: Vec<Route>,
    /// Whether all paths may end in a slash.
    pub allows_trailing_slash: bool,
    /// Reads the credentials of a request. The first parameter is the template of its path, without a prefix.
    pub credentials: fn(&str, &Request) -> Credentials,
    /// Writes an error as the API reports it. The response has the status and the headers of a problem document.
    pub error_form: fn(&Problem, Response) -> Response,
}

/// A path, and the handlers of its methods.
pub type Route = (String, MethodRouter<Arc<Server>>);

impl Api {
    /// Creates an API that reads credentials from headers and reports problem documents.
    pub fn new(name: &'static str, routes: Vec<Route>) -> Self {
        let credentials = |_: &str, request: &_| Credentials::from_headers(request);
        let error_form = |_: &_, response| response;
        Self { name, routes, optional_routes: Vec::new(), allows_trailing_slash: false, credentials, error_form }
    }

    /// Returns all paths and their handlers, except for optional ones.
    pub fn all_routes(&self) -> impl Iterator<Item = Route> {
        let with_slash = |(path, handlers): &Route| (format!("{path}/"), handlers.clone());
        self.routes.iter().flat_map(move |route| {
            let second = (self.allows_trailing_slash && !route.0.ends_with('/')).then(|| with_slash(route));
            [route.clone()].into_iter().chain(second)
        })
    }
}
