//! Small pictures of the images of a message: JPEG of 180 by 120 pixels. A file that is not an image, or is too large, has a
//! white picture.

use std::io::Cursor;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderValue;
use bytes::Bytes;
use image::codecs::jpeg::JpegEncoder;
use image::imageops::FilterType;
use image::metadata::Orientation;
use image::{
    DynamicImage, ImageDecoder as _, ImageFormat, ImageReader, ImageResult, Limits, Rgba, RgbaImage, imageops,
};
use restante_http_core::render::file::{FileHeaders, SANDBOX_POLICY, isolated_response};
use restante_http_core::render::{Representation, Work};
use restante_http_core::response::etag::IfNoneMatch;
use restante_http_core::response::problem::{Problem, internal_error};
use restante_http_core::server::Server;
use restante_mail::message::Summary;
use restante_mail::mime::Mime;

use crate::content::Files;
use crate::error::{Error, HandlerResult};
use crate::parts::PartId;
use crate::target::TargetMessage;

const JPEG: HeaderValue = HeaderValue::from_static("image/jpeg");
const WIDTH: u32 = 180;
const HEIGHT: u32 = 120;
const QUALITY: u8 = 70;
const WHITE: Rgba<u8> = Rgba([255; 4]);
/// The maximum number of pixels of an image. It limits the time of decoding.
const MAX_PIXELS: u64 = 20_000_000;
/// The maximum width and height of an image. Scaling takes memory for each column.
const MAX_SIDE: u32 = 16_384;
/// The maximum memory for decoding an image.
const MAX_DECODE_BYTES: u64 = 128 * 1024 * 1024;
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
    let image = if is_image { decode(&mime.content(part)).ok().flatten() } else { None };
    encode(&place(image)).map_err(|error| internal_error(&error))
}

/// Decodes an image, upright. Returns `None` if it has too many pixels, or if decoding takes too much memory.
fn decode(content: &[u8]) -> ImageResult<Option<DynamicImage>> {
    let mut reader = ImageReader::new(Cursor::new(content)).with_guessed_format()?;
    let mut limits = Limits::default();
    limits.max_image_width = Some(MAX_SIDE);
    limits.max_image_height = Some(MAX_SIDE);
    limits.max_alloc = Some(MAX_DECODE_BYTES);
    reader.limits(limits.clone());
    let bytes_per_pixel = decoder_bytes_per_pixel(reader.format(), content);
    let mut decoder = reader.into_decoder()?;
    let (width, height) = decoder.dimensions();
    let pixels = u64::from(width) * u64::from(height);
    if pixels > MAX_PIXELS || pixels * bytes_per_pixel > MAX_DECODE_BYTES {
        return Ok(None);
    }
    // What remains is for the buffers of the decoder.
    limits.reserve(decoder.total_bytes())?;
    decoder.set_limits(limits)?;
    // An image with damaged metadata is shown as it is.
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let is_turned = !matches!(
        orientation,
        Orientation::NoTransforms | Orientation::Rotate180 | Orientation::FlipHorizontal | Orientation::FlipVertical
    );
    let (width, height) = if is_turned { (HEIGHT, WIDTH) } else { (WIDTH, HEIGHT) };
    // Turned last, because turning takes a copy.
    let mut image = scale(DynamicImage::from_decoder(decoder)?, width, height);
    image.apply_orientation(orientation);
    Ok(Some(image))
}

/// Returns the number of bytes for each pixel that decoding takes at most, including the image. It is zero for formats whose
/// decoders observe the limit on memory.
fn decoder_bytes_per_pixel(format: Option<ImageFormat>, content: &[u8]) -> u64 {
    match format {
        Some(ImageFormat::WebP) => {
            // The flags of an extended file: it is animated, or has transparency.
            let flags = content.get(12..21).and_then(|header| header.strip_prefix(b"VP8X")).map_or(0, |rest| rest[4]);
            // The image, the canvas and a frame, or the image and the planes of its colors and of its transparency.
            if flags & 0x12 == 0 { 7 } else { 12 }
        }
        // The coefficients of a progressive image with four components. The marker is not in compressed data.
        Some(ImageFormat::Jpeg) if after_metadata(content).windows(2).any(|bytes| bytes == [0xFF, 0xC2]) => 11,
        _ => 0,
    }
}

/// Returns a JPEG file without the segments of metadata at its start, which can contain any bytes. It begins at the first segment
/// that the decoder may not skip by its length.
fn after_metadata(content: &[u8]) -> &[u8] {
    let mut rest = content.strip_prefix(&[0xFF, 0xD8]).unwrap_or(content);
    while let [0xFF, marker, high, low, ..] = *rest {
        let length = u16::from_be_bytes([high, low]);
        // The decoder reads too much of a very short segment APP0. The others are APP1 and comments.
        let is_skipped = matches!((marker, length), (0xE0, 7..) | (0xE1 | 0xFE, 2..));
        match rest.get(2 + usize::from(length)..) {
            Some(next) if is_skipped => rest = next,
            _ => break,
        }
    }
    rest
}

/// Scales an image to a size: it fills the size if both of its sides are large enough, otherwise it fits into it. A small
/// image is not enlarged.
fn scale(image: DynamicImage, width: u32, height: u32) -> DynamicImage {
    if image.width() >= width && image.height() >= height {
        image.resize_to_fill(width, height, FilterType::Lanczos3)
    } else if image.width() > width || image.height() > height {
        image.resize(width, height, FilterType::Lanczos3)
    } else {
        image
    }
}

/// Places an image in the middle of a white picture.
fn place(image: Option<DynamicImage>) -> RgbaImage {
    let mut picture = RgbaImage::from_pixel(WIDTH, HEIGHT, WHITE);
    if let Some(image) = image {
        let middle = |outer: u32, inner: u32| i64::from(outer.saturating_sub(inner) / 2);
        let (x, y) = (middle(WIDTH, image.width()), middle(HEIGHT, image.height()));
        imageops::overlay(&mut picture, &image.into_rgba8(), x, y);
    }
    picture
}

fn encode(picture: &RgbaImage) -> ImageResult<Bytes> {
    let mut out = Vec::new();
    // JPEG has no transparency.
    let rgb = DynamicImage::from(picture.clone()).into_rgb8();
    JpegEncoder::new_with_quality(&mut out, QUALITY).encode_image(&rgb)?;
    Ok(out.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_progressive_images_is_limited() {
        let mut content = Vec::new();
        JpegEncoder::new(&mut content).encode_image(&DynamicImage::new_rgb8(1, 1)).unwrap();
        let frame = content.windows(2).position(|bytes| bytes == [0xFF, 0xC0]).unwrap();
        let mut decoded = |marker: u8, width: u16, height: u16| {
            content[frame + 1] = marker;
            content[frame + 5..][..2].copy_from_slice(&height.to_be_bytes());
            content[frame + 7..][..2].copy_from_slice(&width.to_be_bytes());
            decode(&content)
        };
        assert!(matches!(decoded(0xC2, 4000, 3100), Ok(None)));
        assert!(matches!(decoded(0xC0, 4472, 4473), Ok(None)));
        assert!(matches!(decoded(0xC0, 1, 1), Ok(Some(_))));
    }

    #[test]
    fn metadata_does_not_make_an_image_progressive() {
        let mut content = Vec::new();
        JpegEncoder::new(&mut content).encode_image(&DynamicImage::new_rgb8(1, 1)).unwrap();
        let bytes_per_pixel = |content: &[u8]| decoder_bytes_per_pixel(Some(ImageFormat::Jpeg), content);
        // The marker is in a segment APP1.
        content.splice(2..2, [0xFF, 0xE1, 0, 6, 0xFF, 0xC2, 0, 0]);
        assert_eq!(bytes_per_pixel(&content), 0);
        assert!(matches!(decode(&content), Ok(Some(_))));
        let frame = content.windows(2).position(|bytes| bytes == [0xFF, 0xC0]).unwrap();
        content[frame + 1] = 0xC2;
        assert_eq!(bytes_per_pixel(&content), 11);
        // A segment whose length is wrong is not skipped.
        assert_eq!(bytes_per_pixel(&[0xFF, 0xD8, 0xFF, 0xE1, 0xFF, 0xFF, 0xFF, 0xC2]), 11);
    }
}
