//! The files of the web interface, embedded by the build script: each as it is and, if that is smaller, compressed. The
//! build script generates the table from the folder `ui/`; this file contains its types and the response with a file.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use restante_http_core::response::encoding::{AcceptEncoding, Coding};
use restante_http_core::response::etag::IfNoneMatch;
use restante_http_core::response::success::NoBody;

include!(concat!(env!("OUT_DIR"), "/ui.rs"));

/// An embedded file.
#[derive(Debug)]
pub struct EmbeddedFile {
    content_type: &'static str,
    /// The file as it is.
    pub plain: EncodedFile,
    /// The compressed forms that are smaller, the smallest first.
    pub compressed: &'static [EncodedFile],
}

/// An encoded form of a file.
#[derive(Debug)]
pub struct EncodedFile {
    /// Its content coding.
    pub coding: Coding,
    /// The entity tag.
    tag: &'static str,
    /// Its content.
    pub content: &'static [u8],
}

impl EmbeddedFile {
    /// Returns the response with the file in the coding that the client prefers, or 304 if the client has it already.
    /// Does not copy the content.
    pub fn response(&'static self, accept_encoding: &AcceptEncoding, if_none_match: &IfNoneMatch) -> Response {
        let form = accept_encoding.best(&self.plain, self.compressed, |form| form.coding);
        let tag = HeaderValue::from_static(form.tag);
        let mut response = Response::new(Body::new(NoBody));
        if if_none_match.matches(&tag) {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
        } else {
            *response.body_mut() = Body::from(Bytes::from_static(form.content));
            if let Some(name) = form.coding.name() {
                response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static(name));
            }
        }
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(self.content_type));
        headers.insert(header::ETAG, tag);
        headers.insert(header::VARY, HeaderValue::from_static("Accept-Encoding"));
        response
    }
}
