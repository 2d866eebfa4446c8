//! The API described for programs, as OpenAPI 3.1, and for people, as a page that is made from that. `document` puts the
//! description together: `paths` says what the operations do, in the words that `operation` has for it, `schemas` are the
//! shapes of what goes over the wire, and `refusals` is what can go wrong. Nothing of this takes part in answering
//! requests: the tests hold it against the routes and against real answers.

mod document;
mod operation;
mod page;
mod paths;
mod reference;
mod refusals;
mod schemas;

use std::sync::{Arc, OnceLock};

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;

use super::etag::Known;
use super::links::BaseUrl;
use super::problem::Problem;
use super::reply::{self, Nothing};
use super::{Server, Turn, fault};
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
pub(super) async fn document(State(server): State<Arc<Server>>, known: Known) -> Result<Response, Problem> {
    let tag = server.tags.description();
    if known.includes(&tag) {
        return Ok(reply::not_modified(reply::JSON, tag));
    }
    Ok(reply::json(server.description().await?.json.clone(), tag))
}

/// The description for people.
pub(super) async fn docs(
    State(server): State<Arc<Server>>,
    BaseUrl(base): BaseUrl,
    known: Known,
) -> Result<Response, Problem> {
    let tag = server.tags.docs();
    let mut response = Response::new(Body::new(Nothing));
    if known.includes(&tag) {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    } else {
        *response.body_mut() = Body::from(server.description().await?.page.for_server_at(&base));
    }
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, reply::HTML);
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(page::POLICY));
    headers.insert(header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    headers.insert(header::REFERRER_POLICY, reply::NO_REFERRER);
    headers.insert(header::CACHE_CONTROL, reply::NO_CACHE);
    headers.insert(header::ETAG, tag);
    Ok(response)
}

/// The description in lines, of a server that could be anywhere: for those who make a client without having one.
pub fn openapi() -> serde_json::Result<String> {
    let mut text = document::of("").to_pretty_json()?;
    text.push('\n');
    Ok(text)
}

impl Server {
    async fn description(&self) -> Result<&Kept, Problem> {
        let Description(kept) = &self.description;
        if let Some(kept) = kept.get() {
            return Ok(kept);
        }
        let root = self.settings.root().to_owned();
        let made = Turn::away(&self.heavy).await?.work(move || made(&root)).await?;
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
