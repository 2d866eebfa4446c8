//! The API described for programs, as OpenAPI 3.1, and for people, as a page that is made from that. `document` puts the
//! description together: `paths` says what the operations do, in the words that `operation` has for it, and
//! `refusals` is what can go wrong. The schemas of answers are those of the types that handlers serialise; those of request bodies
//! are in `request_bodies`. Nothing of this takes part in answering
//! requests: the tests hold it against the routes and against real answers.

mod document;
mod operation;
mod page;
mod paths;
mod reference;
mod refusals;
mod request_bodies;

use std::sync::{Arc, OnceLock};

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use restante_http_connection::work::WorkPermit;

use crate::extractors::request_context::BaseUrl;
use crate::response::etag::Known;
use crate::response::problem::{Problem, fault};
use crate::response::success;
use crate::response::success::Nothing;
use crate::state::Server;
use page::Page;

/// Where programs find the description.
pub(super) const DOCUMENT: &str = "/api/openapi.json";

/// The description as it is kept, once somebody has asked for it: nobody has to wait for it at the start, and few ask.
#[derive(Default)]
pub(super) struct Description(OnceLock<Kept>);

struct Kept {
    json: Bytes,
    page: Page,
}

/// The description for programs.
pub(super) async fn document(
    State(server): State<Arc<Server>>,
    Extension(description): Extension<Arc<Description>>,
    known: Known,
) -> Result<Response, Problem> {
    let tag = server.tags.description();
    if known.includes(&tag) {
        return Ok(success::not_modified(success::JSON, tag));
    }
    Ok(success::json(description.of(&server).await?.json.clone(), tag))
}

/// The description for people.
pub(super) async fn docs(
    State(server): State<Arc<Server>>,
    Extension(description): Extension<Arc<Description>>,
    BaseUrl(base): BaseUrl,
    known: Known,
) -> Result<Response, Problem> {
    let tag = server.tags.docs();
    let mut response = Response::new(Body::new(Nothing));
    if known.includes(&tag) {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    } else {
        *response.body_mut() = Body::from(description.of(&server).await?.page.for_server_at(&base));
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

/// The description in lines, of a server that could be anywhere: for those who make a client without having one.
pub fn openapi() -> serde_json::Result<String> {
    let mut text = document::of("").to_pretty_json()?;
    text.push('\n');
    Ok(text)
}

impl Description {
    async fn of(&self, server: &Server) -> Result<&Kept, Problem> {
        let Self(kept) = self;
        if let Some(kept) = kept.get() {
            return Ok(kept);
        }
        let root = server.settings.root().to_owned();
        let made = WorkPermit::acquire(&server.heavy).await?.run(move || made(&root)).await?;
        let made = made.map_err(|error| fault(&error))?;
        Ok(kept.get_or_init(|| made))
    }
}

fn made(root: &str) -> serde_json::Result<Kept> {
    let document = document::of(root);
    let mut json = document.to_json()?;
    json.push('\n');
    Ok(Kept { json: json.into(), page: Page::of(&serde_json::to_value(document)?) })
}
