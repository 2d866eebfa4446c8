//! Small pictures of the images of a message: JPEG of 180 by 120 pixels. A file that is not an image, or is too large, has a
//! white picture.
//!
//! - `decode`: the formats, and the limits on memory and time
//! - `jpeg`: the headers of JPEG
//! - `bitmap`: the decoder of BMP
//! - `scale`: scales an image to a smaller picture while its rows are decoded
//! - `orientation`: turns a picture as the metadata of a camera says

mod bitmap;
mod decode;
mod jpeg;
mod orientation;
mod scale;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderValue;
use bytes::Bytes;
use jpeg_encoder::{ColorType, Encoder, EncodingError};
use restante_http_core::render::file::{FileHeaders, SANDBOX_POLICY, isolated_response};
use restante_http_core::render::{Representation, Work};
use restante_http_core::response::etag::IfNoneMatch;
use restante_http_core::response::problem::{Problem, internal_error};
use restante_http_core::server::Server;
use restante_mail::message::Summary;
use restante_mail::mime::Mime;

use self::scale::{Picture, Rgb, WHITE};
use crate::content::Files;
use crate::error::{Error, HandlerResult};
use crate::parts::PartId;
use crate::target::TargetMessage;

const JPEG: HeaderValue = HeaderValue::from_static("image/jpeg");
const WIDTH: u16 = 180;
const HEIGHT: u16 = 120;
const QUALITY: u8 = 70;
/// The text of the status 400 for a part that does not exist.
const NO_SUCH_PART: &str = "attachment not found";

/// Returns a small picture of a file.
pub(crate) async fn thumbnail(
    State(server): State<Arc<Server>>,
    target: TargetMessage,
    PartId(id): PartId,
    if_none_match: IfNoneMatch,
) -> HandlerResult {
    let tag = server.renderer.etags.of(&("mailpit thumbnail", target.message.first().id, &id));
    let headers = FileHeaders { content_type: JPEG, disposition: None, policy: SANDBOX_POLICY, tag };
    if if_none_match.matches(&headers.tag) {
        return Ok(isolated_response(None, headers));
    }
    let form = Representation::new("mailpit thumbnail", Work::Image).with_parameter(id.clone());
    let write = move |_: &Summary, mime: &Mime| render(mime, &id);
    let picture = match server.renderer.render(target.message.first(), form, write).await {
        Err(Problem::NoSuchPart) => return Err(Error::text(NO_SUCH_PART)),
        picture => picture?,
    };
    Ok(isolated_response(Some(Body::from(picture)), headers))
}

fn render(mime: &Mime, id: &str) -> Result<Bytes, Problem> {
    let part = &mime.parts()[Files::find(mime, id).ok_or(Problem::NoSuchPart)?];
    let is_image = part.content_type.starts_with("image/");
    let image = if is_image { decode::decode(&mime.content(part)) } else { None };
    encode(&place(image)).map_err(|error| internal_error(&error))
}

/// Places an image in the middle of a white picture. The image is not larger than the picture.
fn place(image: Option<Picture>) -> Vec<Rgb> {
    let (width, height) = (usize::from(WIDTH), usize::from(HEIGHT));
    let mut picture = vec![WHITE; width * height];
    if let Some(image) = image {
        let (x, y) = ((width - image.width) / 2, (height - image.height) / 2);
        for (target, row) in picture.chunks_exact_mut(width).skip(y).zip(image.pixels.chunks_exact(image.width)) {
            target[x..x + image.width].copy_from_slice(row);
        }
    }
    picture
}

fn encode(picture: &[Rgb]) -> Result<Bytes, EncodingError> {
    let mut out = Vec::new();
    Encoder::new(&mut out, QUALITY).encode(picture.as_flattened(), WIDTH, HEIGHT, ColorType::Rgb)?;
    Ok(out.into())
}
