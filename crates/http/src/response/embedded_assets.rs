//! The web interface as the build has packed it: every file as it is and, where that is smaller, compressed. The table is
//! written by the build script from the folder `ui/`; here is what its types mean, and how a file becomes an answer.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;

use crate::response::encoding::{AcceptEncoding, Coding};
use crate::response::etag::IfNoneMatch;
use crate::response::success::NoBody;

include!(concat!(env!("OUT_DIR"), "/ui.rs"));

/// A file that is part of the program.
#[derive(Debug)]
pub(crate) struct Packed {
    content_type: &'static str,
    /// The file as it is.
    pub(crate) plain: Form,
    /// The file compressed, as far as that makes it smaller; the smallest first.
    pub(crate) smaller: &'static [Form],
}

/// One way to send a file.
#[derive(Debug)]
pub(crate) struct Form {
    pub(crate) coding: Coding,
    /// Its entity tag.
    tag: &'static str,
    pub(crate) content: &'static [u8],
}

impl Packed {
    /// The file in the form that the client likes best, or that it has it already. Nothing is copied.
    pub(crate) fn answer(&'static self, accepted: &AcceptEncoding, known: &IfNoneMatch) -> Response {
        let form = accepted.best(&self.plain, self.smaller, |form| form.coding);
        let tag = HeaderValue::from_static(form.tag);
        let mut response = Response::new(Body::new(NoBody));
        if known.matches(&tag) {
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
