//! The description of the API as an OpenAPI 3.1 document. The web interface shows it as a page.
//!
//! - `api`: the operations, the schemas of request bodies, and some schemas of responses, as JSON files. The other schemas
//!   of responses are those of the types that handlers serialize
//! - `data`: reads the files; `operation`: the operations in them
//! - `document`: the document
//!
//! Nothing here takes part in serving other requests. Tests compare the description with the routes and with real
//! responses.

mod data;
mod document;
mod operation;

use std::sync::{Arc, OnceLock};

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use bytes::Bytes;
use restante_http_connection::work::WorkPermit;
use restante_http_core::api::Route;
use restante_http_core::response::etag::IfNoneMatch;
use restante_http_core::response::problem::{Problem, internal_error};
use restante_http_core::response::success;
use restante_http_core::server::Server;
use utoipa::openapi::{RefOr, Schema};

/// Schemas with their names.
pub type Schemas = Vec<(String, RefOr<Schema>)>;

/// The path of the OpenAPI document.
const DOCUMENT_PATH: &str = "/api/openapi.json";

/// The rendered description. It is rendered at the first request, because few clients need it and the start of the
/// server must not wait for it.
struct ApiDescription {
    json: OnceLock<Bytes>,
    schemas: fn() -> Schemas,
}

/// Returns the route of the document. `schemas` are those of the types that handlers serialize.
pub fn routes(schemas: fn() -> Schemas) -> Vec<Route> {
    let description = Extension(Arc::new(ApiDescription { json: OnceLock::new(), schemas }));
    vec![(DOCUMENT_PATH.to_owned(), get(document).layer(description))]
}

/// Returns the OpenAPI document.
async fn document(
    State(server): State<Arc<Server>>,
    Extension(description): Extension<Arc<ApiDescription>>,
    if_none_match: IfNoneMatch,
) -> Result<Response, Problem> {
    let tag = server.renderer.etags.of(&"document");
    if if_none_match.matches(&tag) {
        return Ok(success::not_modified(success::JSON, tag));
    }
    Ok(success::json(description.get_or_render(&server).await?.clone(), tag))
}

/// Returns the OpenAPI document with line breaks, for a server at any URL. Used to generate clients without a running
/// server.
pub fn openapi(schemas: Schemas) -> serde_json::Result<String> {
    let mut text = document::build("", schemas)?.to_pretty_json()?;
    text.push('\n');
    Ok(text)
}

impl ApiDescription {
    async fn get_or_render(&self, server: &Server) -> Result<&Bytes, Problem> {
        if let Some(json) = self.json.get() {
            return Ok(json);
        }
        let (root, schemas) = (server.settings.link_root().to_owned(), self.schemas);
        let rendered =
            WorkPermit::acquire(&server.renderer.work_permits).await?.run(move || render(&root, schemas())).await?;
        let rendered = rendered.map_err(|error| internal_error(&error))?;
        Ok(self.json.get_or_init(|| rendered))
    }
}

fn render(root: &str, schemas: Schemas) -> serde_json::Result<Bytes> {
    let mut json = document::build(root, schemas)?.to_json()?;
    json.push('\n');
    Ok(json.into())
}
