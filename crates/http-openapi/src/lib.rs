//! The description of the API: as an OpenAPI 3.1 document for programs, and as a page for people that is rendered from
//! the document.
//!
//! - `api`: the operations, the schemas of request bodies, and some schemas of responses, as JSON files. The other schemas
//!   of responses are those of the types that handlers serialize
//! - `data`: reads the files; `operation`: the operations in them
//! - `document`: the document
//! - `page`: the page
//!
//! Nothing here takes part in serving other requests. Tests compare the description with the routes and with real
//! responses.

mod data;
mod document;
mod operation;
mod page;

use std::sync::{Arc, OnceLock};

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use axum::routing::get;
use bytes::Bytes;
use restante_http_connection::work::WorkPermit;
use restante_http_core::api::Route;
use restante_http_core::extractors::request_context::BaseUrl;
use restante_http_core::paths;
use restante_http_core::response::etag::IfNoneMatch;
use restante_http_core::response::problem::{Problem, internal_error};
use restante_http_core::response::success;
use restante_http_core::response::success::NoBody;
use restante_http_core::server::Server;
use utoipa::openapi::{RefOr, Schema};

use page::Page;

/// Schemas with their names.
pub type Schemas = Vec<(String, RefOr<Schema>)>;

/// The path of the OpenAPI document.
const DOCUMENT_PATH: &str = "/api/openapi.json";

/// The rendered description. It is rendered at the first request, because few clients need it and the start of the
/// server must not wait for it.
struct ApiDescription {
    rendered: OnceLock<RenderedDescription>,
    schemas: fn() -> Schemas,
    /// The hash in the paths of the files of the web interface.
    assets_hash: &'static str,
}

struct RenderedDescription {
    json: Bytes,
    page: Page,
}

/// Returns the routes of the document and the page. `schemas` are those of the types that handlers serialize; `assets_hash` is in
/// the paths of the files of the web interface, some of which the page uses.
pub fn routes(schemas: fn() -> Schemas, assets_hash: &'static str) -> Vec<Route> {
    let description = Extension(Arc::new(ApiDescription::new(schemas, assets_hash)));
    vec![
        (DOCUMENT_PATH.to_owned(), get(document).layer(description.clone())),
        (paths::DOCS.to_owned(), get(docs).layer(description)),
    ]
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
    Ok(success::json(description.get_or_render(&server).await?.json.clone(), tag))
}

/// Returns the API page.
async fn docs(
    State(server): State<Arc<Server>>,
    Extension(description): Extension<Arc<ApiDescription>>,
    BaseUrl(base): BaseUrl,
    if_none_match: IfNoneMatch,
) -> Result<Response, Problem> {
    let tag = server.renderer.etags.of(&"page");
    let mut response = Response::new(Body::new(NoBody));
    if if_none_match.matches(&tag) {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    } else {
        *response.body_mut() = Body::from(description.get_or_render(&server).await?.page.with_base_url(&base));
    }
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, success::HTML);
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(page::POLICY));
    headers.insert(header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    headers.insert(header::REFERRER_POLICY, success::NO_REFERRER);
    headers.insert(header::CACHE_CONTROL, success::NO_CACHE);
    headers.insert(header::ETAG, tag);
    Ok(response)
}

/// Returns the OpenAPI document with line breaks, for a server at any URL. Used to generate clients without a running
/// server.
pub fn openapi(schemas: Schemas) -> serde_json::Result<String> {
    let mut text = document::build("", schemas)?.to_pretty_json()?;
    text.push('\n');
    Ok(text)
}

impl ApiDescription {
    fn new(schemas: fn() -> Schemas, assets_hash: &'static str) -> Self {
        Self { rendered: OnceLock::new(), schemas, assets_hash }
    }

    async fn get_or_render(&self, server: &Server) -> Result<&RenderedDescription, Problem> {
        if let Some(rendered) = self.rendered.get() {
            return Ok(rendered);
        }
        let (root, schemas, hash) = (server.settings.link_root().to_owned(), self.schemas, self.assets_hash);
        let rendered = WorkPermit::acquire(&server.renderer.work_permits)
            .await?
            .run(move || render(&root, schemas(), hash))
            .await?;
        let rendered = rendered.map_err(|error| internal_error(&error))?;
        Ok(self.rendered.get_or_init(|| rendered))
    }
}

fn render(root: &str, schemas: Schemas, assets_hash: &str) -> serde_json::Result<RenderedDescription> {
    let document = document::build(root, schemas)?;
    let mut json = document.to_json()?;
    json.push('\n');
    Ok(RenderedDescription {
        json: json.into(),
        page: Page::from_document(&serde_json::to_value(document)?, assets_hash),
    })
}
