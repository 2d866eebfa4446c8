//! The paths of a project: all paths of a listener are also below `/p/PROJECT`. There they see only the mailboxes of this
//! project, whose names are relative to it. So clients of every API work in a project with another base URL.

use axum::Router;
use axum::extract::Request;
use axum::http::Uri;
use axum::http::uri::PathAndQuery;
use axum::response::{IntoResponse as _, Response};
use restante_http_connection::clean_path::path_and_query;
use restante_http_core::extractors::request_context::RequestProject;
use restante_http_core::paths::{PROJECTS, below_base};
use restante_http_core::response::problem::Problem;
use restante_http_core::response::success::permanent_redirect;
use restante_mail::naming::Project;
use tower::ServiceExt as _;

/// Returns the response to a request for a path that has no route. A path below `/p/PROJECT` has the response of `routes` to
/// the rest of it, others that of `unknown`.
pub(crate) async fn respond(base_path: &str, routes: Router, unknown: Router, mut request: Request) -> Response {
    let path = request.uri().path();
    let below = below_base(base_path, path);
    let Some(ProjectPath { project, rest }) = ProjectPath::parse(below) else { return send(unknown, request).await };
    if rest.is_empty() {
        return permanent_redirect(format!("./{project}/")).unwrap_or_else(Problem::into_response);
    }
    let base = path.strip_suffix(below).unwrap_or_default();
    let path = path_and_query(request.uri(), &format!("{base}{rest}"));
    let mut parts = request.uri().clone().into_parts();
    parts.path_and_query = PathAndQuery::try_from(path).ok();
    let Ok(uri) = Uri::from_parts(parts) else { return send(unknown, request).await };
    *request.uri_mut() = uri;
    request.extensions_mut().insert(RequestProject(project));
    send(routes, request).await
}

async fn send(router: Router, request: Request) -> Response {
    let Ok(response) = router.oneshot(request).await;
    response
}

/// A path below `/p/PROJECT`.
#[derive(Debug, PartialEq, Eq)]
struct ProjectPath<'p> {
    project: Project,
    /// The rest of the path. It is empty, or begins with a slash.
    rest: &'p str,
}

impl<'p> ProjectPath<'p> {
    /// Parses a path below the base path.
    fn parse(path: &'p str) -> Option<Self> {
        let path = path.strip_prefix(PROJECTS)?.strip_prefix('/')?;
        let (project, rest) = path.split_at(path.find('/').unwrap_or(path.len()));
        Some(Self { project: project.parse().ok()?, rest })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_paths_of_projects() {
        let table = [
            ("/p/shop/", Some(("shop", "/"))),
            ("/p/shop/m/bob?x", Some(("shop", "/m/bob?x"))),
            ("/p/shop", Some(("shop", ""))),
            ("/p/shop/p/acme/", Some(("shop", "/p/acme/"))),
            ("/p/", None),
            ("/p", None),
            ("/p//x", None),
            ("/p/Shop/", None),
            ("/p/a%2fb/", None),
            ("/px/shop/", None),
            ("/m/bob", None),
        ];
        for (path, expected) in table {
            let parsed = ProjectPath::parse(path);
            assert_eq!(parsed.as_ref().map(|parsed| (parsed.project.as_str(), parsed.rest)), expected, "{path}");
        }
    }
}
