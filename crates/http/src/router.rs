//! Builds the service of a listener from its APIs.

use std::collections::HashSet;
use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::middleware::from_fn_with_state;
use axum::routing::get;
use restante_http_core::api::{Api, Route};
use restante_http_core::response::problem::Problem;
use restante_http_core::server::{Server, Settings};
use restante_mailroom::Mailroom;

use crate::apis::{Apis, ListenerApis, ServerInfo, path_shape};
use crate::middleware::{self, Mount, cors};
use crate::project_paths;

/// The HTTP service. Its listeners share the caches and limits.
pub struct Service {
    server: Arc<Server>,
    apis: Apis,
}

impl Service {
    /// Creates the service.
    pub fn new(mailroom: Arc<Mailroom>, settings: Settings, info: ServerInfo) -> Self {
        Self::with_server(Arc::new(Server::new(mailroom, settings)), info)
    }

    /// Creates the service with this state. Tests change the limits of a state before.
    pub fn with_server(server: Arc<Server>, info: ServerInfo) -> Self {
        Self { server, apis: Apis::new(info) }
    }

    /// Returns the service of a listener. It serves all paths under the base path and at the root, because some clients drop the
    /// base path.
    pub fn router(&self, listener: &ListenerApis) -> Router {
        let base = self.server.settings.base_path.as_str();
        let mut routes =
            Routes { server: &self.server, is_main: listener.is_main, router: Router::new(), shapes: HashSet::new() };
        let apis = || {
            let mounts = listener.mounts.iter();
            mounts.flat_map(|(prefix, name)| self.apis.get(*name).iter().map(move |api| (prefix, api)))
        };
        if !base.is_empty() {
            if listener.is_main {
                let home = vec![(String::new(), get(restante_http_web::redirect_to_home))];
                routes.add(base, &Api::new("web", home));
            }
            for (prefix, api) in apis() {
                routes.add(&format!("{base}{prefix}"), api);
            }
        }
        for (prefix, api) in apis() {
            routes.add(prefix, api);
        }
        for (prefix, api) in apis() {
            routes.add_optional(prefix, api);
        }
        if listener.is_main {
            routes.add("", &Api::new("web", restante_http_web::root_routes()));
        }
        let unknown = self.unknown_paths(listener).with_state(self.server.clone());
        let routes = routes.router.with_state(self.server.clone());
        let in_project = routes.clone().fallback_service(unknown.clone());
        let base_path: Arc<str> = base.into();
        routes.fallback(async move |request: Request| {
            project_paths::respond(&base_path, in_project, unknown, request).await
        })
    }

    /// Returns the service for paths that no API of the listener has. A listener with one API responds in its form, others in that
    /// of the REST API.
    fn unknown_paths(&self, listener: &ListenerApis) -> Router<Arc<Server>> {
        let (router, api) = if listener.is_main {
            (Router::new().fallback(restante_http_web::not_found), &self.apis.web)
        } else {
            let apis = listener.mounts.iter().flat_map(|(_, name)| self.apis.get(*name)).collect::<Vec<_>>();
            let api = if let [api] = apis[..] { api } else { &self.apis.rest };
            (Router::new().fallback(async || Problem::NoSuchPath), api)
        };
        with_checks(router, &self.server, listener.is_main, "", api)
    }
}

/// A router in which the first of several routes with the same path wins. A base path can equal any path of the server,
/// and so can the paths below it. Other APIs with the same path were refused before.
struct Routes<'s> {
    server: &'s Arc<Server>,
    is_main: bool,
    router: Router<Arc<Server>>,
    shapes: HashSet<String>,
}

impl Routes<'_> {
    fn add(&mut self, prefix: &str, api: &Api) {
        self.add_routes(prefix, api, api.all_routes());
    }

    fn add_optional(&mut self, prefix: &str, api: &Api) {
        self.add_routes(prefix, api, api.optional_routes.iter().cloned());
    }

    fn add_routes(&mut self, prefix: &str, api: &Api, added: impl Iterator<Item = Route>) {
        let mut router = Router::new();
        for (path, handlers) in added {
            let path = format!("{prefix}{path}");
            if self.shapes.insert(path_shape(&path)) {
                router = router.route(&path, handlers);
            }
        }
        let router = router.method_not_allowed_fallback(async || Problem::MethodNotAllowed);
        let checked = with_checks(router, self.server, self.is_main, prefix, api);
        self.router = std::mem::take(&mut self.router).merge(checked);
    }
}

/// Adds the middleware of every request of an API.
fn with_checks(
    router: Router<Arc<Server>>,
    server: &Arc<Server>,
    is_main: bool,
    prefix: &str,
    api: &Api,
) -> Router<Arc<Server>> {
    let mount = Arc::new(Mount {
        server: server.clone(),
        prefix: prefix.to_owned(),
        has_login_page: is_main,
        credentials: api.credentials,
        error_form: api.error_form,
    });
    let router = router.layer(from_fn_with_state(mount.clone(), middleware::process));
    // Outside of authentication: preflight requests have no credentials.
    if server.settings.cors.is_some() { router.layer(from_fn_with_state(mount, cors::apply_cors)) } else { router }
}
