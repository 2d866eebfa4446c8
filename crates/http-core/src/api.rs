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
        Self { name, routes, credentials, error_form: |_, response| response }
    }
}
