//! Files of senders as documents of a browser. The policy of the response forbids scripts and requests, but browsers connect
//! to other hosts before they apply it, for example for `<link rel=preconnect>` or a frame, which reveals that the file is
//! open. So HTML is shown without such elements, an SVG as an image, and other XML as text: it has entities and prefixes, so
//! that its elements are known only to an XML parser.

use axum::http::HeaderValue;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use restante_mail::mime::{Mime, Part};

use crate::response::inert_html::disarm;
use crate::response::success::{HTML, UTF8_TEXT};

const SVG: &str = "image/svg+xml";

/// The form in which a browser shows a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DocumentForm {
    /// As HTML without elements that act on their own.
    Html,
    /// As an image in a document. Browsers load nothing for an image.
    Image,
    /// As text.
    Text,
}

impl DocumentForm {
    /// Returns the form for files of this type. `None` if a browser may show them as they are.
    pub(super) fn of(content_type: &str) -> Option<Self> {
        match content_type {
            "text/html" => Some(Self::Html),
            SVG => Some(Self::Image),
            "text/xml" | "application/xml" | "text/xsl" => Some(Self::Text),
            other => other.ends_with("+xml").then_some(Self::Text),
        }
    }

    pub(super) fn content_type(self) -> HeaderValue {
        match self {
            Self::Html | Self::Image => HTML,
            Self::Text => UTF8_TEXT,
        }
    }

    /// Returns the document, in UTF-8.
    pub(super) fn render(self, mime: &Mime, part: &Part) -> Bytes {
        match self {
            Self::Html => disarm(&mime.text_as_sent(part)).into(),
            Self::Image => {
                let image = STANDARD.encode(mime.content(part));
                format!("<!doctype html><img alt=\"\" src=\"data:{SVG};base64,{image}\">").into()
            }
            Self::Text => mime.text_as_sent(part).into(),
        }
    }
}
