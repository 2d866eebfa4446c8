//! The response to a path that does not exist: a page for a browser, a problem document for a program.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};

use crate::middleware::request_checks::is_page_request;
use crate::paths;
use crate::response::problem::Problem;
use crate::state::Server;
use crate::web::plain_page::{self, BRAND, escaped};

/// Returns the response to a request for an unknown path.
pub(crate) async fn not_found(State(server): State<Arc<Server>>, request: Request) -> Response {
    if is_page_request(&server.settings, &request) {
        page(&paths::relative_root(&server.settings.base_path, request.uri().path()))
    } else {
        Problem::NoSuchPath.into_response()
    }
}

/// Returns the page. `root` is the relative path to the root, so that the links also work with a proxy that removes a
/// prefix of the path.
fn page(root: &str) -> Response {
    let main = format!(
        r#"<div class="login sheet">
<p class="brand">{BRAND}</p>
<h1>Page not found</h1>
<p>There is no page at this address. Check the address, or go to the inbox to see all messages.</p>
<a class="button main" href="{}">Go to the inbox</a>
</div>
"#,
        escaped(root)
    );
    plain_page::response(StatusCode::NOT_FOUND, "Page not found", root, &main)
}
