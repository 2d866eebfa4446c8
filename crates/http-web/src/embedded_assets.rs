//! The files of the web interface, embedded by the build script: each in the compressed forms that are smaller, or as it is. The
//! build script generates the table from the folder `ui/`; this file contains its types and the response with a file.

use std::io::Read as _;
use std::sync::OnceLock;

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use flate2::bufread::GzDecoder;
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
    /// The file as it is, once it was decompressed for a client.
    decompressed: OnceLock<Bytes>,
}

/// An encoded form of a file.
#[derive(Debug)]
pub struct EncodedFile {
    /// Its content coding.
    pub coding: Coding,
    /// The entity tag.
    tag: &'static str,
    /// Its content. `None` for a file as it is that also has a form in gzip: it is decompressed from that form for the first client
    /// that requests it.
    pub content: Option<&'static [u8]>,
}

impl EmbeddedFile {
    /// Returns the response with the file in the coding that the client prefers, or 304 if the client has it already.
    pub fn response(&'static self, accept_encoding: &AcceptEncoding, if_none_match: &IfNoneMatch) -> Response {
        let form = accept_encoding.best(&self.plain, self.compressed, |form| form.coding);
        let tag = HeaderValue::from_static(form.tag);
        let mut response = Response::new(Body::new(NoBody));
        if if_none_match.matches(&tag) {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
        } else {
            *response.body_mut() = Body::from(
                form.content
                    .map_or_else(|| self.decompressed.get_or_init(|| self.decompress()).clone(), Bytes::from_static),
            );
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

    /// Returns the file as it is, from its form in gzip.
    fn decompress(&self) -> Bytes {
        let gzip = self.compressed.iter().find(|form| form.coding == Coding::Gzip);
        let mut content = Vec::new();
        // The build script has written what is decompressed here, so this cannot fail.
        let _ = GzDecoder::new(gzip.and_then(|form| form.content).unwrap_or_default()).read_to_end(&mut content);
        content.into()
    }
}
