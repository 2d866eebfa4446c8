//! Decodes images: JPEG, PNG, GIF, WebP and BMP. The format is that of the content, not that of the name. Of an animation, it is
//! the first frame.
//!
//! The content is of any sender. An image that could take too much memory or time is not decoded.

use std::io::Cursor;

use gif::{DecodeOptions, MemoryLimit};
use image_webp::{UpsamplingMethod, WebPDecodeOptions, WebPDecoder};
use memchr::memmem;
use png::{ColorType, Transformations};
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::options::DecoderOptions;

use super::orientation::Orientation;
use super::scale::{Picture, Rgb, Scaler, WHITE};
use super::{bitmap, jpeg};

/// The maximum number of pixels of an image. It limits the time of decoding.
const MAX_PIXELS: usize = 20_000_000;
/// The maximum width and height of an image. Scaling takes memory for each column.
const MAX_SIDE: usize = 16_384;
/// The maximum memory for decoding an image.
const MAX_DECODE_BYTES: usize = 128 * 1024 * 1024;
/// The maximum memory for the metadata of PNG. With it, [`MAX_PIXELS`] of four bytes are below [`MAX_DECODE_BYTES`].
const MAX_PNG_METADATA_BYTES: usize = 32 * 1024 * 1024;

/// Decodes an image, upright, and scales it to a picture. Returns `None` if it is not an image, or is damaged or too large.
pub(super) fn decode(content: &[u8]) -> Option<Picture> {
    match content {
        [0xFF, 0xD8, 0xFF, ..] => decode_jpeg(content),
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1A, b'\n', ..] => decode_png(content),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => decode_gif(content),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => decode_webp(content),
        [b'B', b'M', ..] => bitmap::decode(content),
        _ => None,
    }
}

/// Returns whether an image of this size may be decoded with `bytes` of memory for each pixel, including the image.
pub(super) fn is_permitted(width: usize, height: usize, bytes: usize) -> bool {
    let is_side = |side: usize| (1..=MAX_SIDE).contains(&side);
    is_side(width) && is_side(height) && width * height <= MAX_PIXELS && width * height <= MAX_DECODE_BYTES / bytes
}

fn decode_jpeg(content: &[u8]) -> Option<Picture> {
    if jpeg::is_slow(content) {
        return None;
    }
    let options = DecoderOptions::default().set_strict_mode(false).set_max_width(MAX_SIDE).set_max_height(MAX_SIDE);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(content), options);
    decoder.decode_headers().ok()?;
    let (width, height) = decoder.dimensions()?;
    // The image, and the coefficients of four colors.
    let bytes = if jpeg::is_buffered(content) { 3 + 8 } else { 3 };
    if !is_permitted(width, height, bytes) {
        return None;
    }
    let orientation = decoder.exif().map_or(Orientation::UPRIGHT, |exif| Orientation::from_exif(exif));
    let mut pixels = vec![0; width * height * 3];
    decoder.decode_into(&mut pixels).ok()?;
    scale(width, height, Channels::Rgb, orientation, &pixels)
}

fn decode_png(content: &[u8]) -> Option<Picture> {
    let limits = png::Limits { bytes: MAX_PNG_METADATA_BYTES };
    let mut decoder = png::Decoder::new_with_limits(Cursor::new(content), limits);
    decoder.set_ignore_text_chunk(true);
    decoder.set_ignore_iccp_chunk(true);
    decoder.set_transformations(Transformations::EXPAND | Transformations::STRIP_16);
    let (width, height) = decoder.read_header_info().ok()?.size();
    let (width, height) = (usize::try_from(width).ok()?, usize::try_from(height).ok()?);
    if !is_permitted(width, height, 4) {
        return None;
    }
    let mut reader = decoder.read_info().ok()?;
    let orientation =
        reader.info().exif_metadata.as_ref().map_or(Orientation::UPRIGHT, |exif| Orientation::from_exif(exif));
    let channels = match reader.output_color_type().0 {
        ColorType::Grayscale => Channels::Gray,
        ColorType::GrayscaleAlpha => Channels::GrayAlpha,
        ColorType::Rgb => Channels::Rgb,
        ColorType::Rgba => Channels::Rgba,
        ColorType::Indexed => return None,
    };
    if reader.info().interlaced {
        let mut pixels = vec![0; reader.output_buffer_size()?];
        reader.next_frame(&mut pixels).ok()?;
        return scale(width, height, channels, orientation, &pixels);
    }
    let mut scaler = Scaler::new(width, height, orientation.is_turned());
    let mut flat = vec![WHITE; width];
    while let Some(row) = reader.next_row().ok()? {
        channels.flatten(row.data(), &mut flat);
        scaler.add(&flat);
    }
    Some(orientation.apply(scaler.finish()?))
}

fn decode_gif(content: &[u8]) -> Option<Picture> {
    let mut options = DecodeOptions::new();
    // The index of a color for each pixel of the frame, which may be larger than the image.
    options.set_memory_limit(MemoryLimit::Bytes(u64::try_from(MAX_PIXELS).ok()?.try_into().ok()?));
    let mut decoder = options.read_info(content).ok()?;
    let (width, height) = (usize::from(decoder.width()), usize::from(decoder.height()));
    if !is_permitted(width, height, 1) {
        return None;
    }
    let frame = decoder.next_frame_info().ok()??;
    let (left, top) = (usize::from(frame.left), usize::from(frame.top));
    let (frame_width, frame_height) = (usize::from(frame.width), usize::from(frame.height));
    let transparent = frame.transparent;
    if frame_width == 0 || frame_height == 0 || frame_width * frame_height > MAX_PIXELS {
        return None;
    }
    let mut colors = [WHITE; 256];
    for (color, &value) in colors.iter_mut().zip(decoder.palette().ok()?.as_chunks().0) {
        *color = value;
    }
    if let Some(index) = transparent {
        colors[usize::from(index)] = WHITE;
    }
    let mut indices = vec![0; frame_width * frame_height];
    decoder.read_into_buffer(&mut indices).ok()?;
    let mut scaler = Scaler::new(width, height, false);
    let mut row = vec![WHITE; width];
    for y in 0..height {
        row.fill(WHITE);
        let frame_row = y.checked_sub(top).and_then(|y| indices.chunks_exact(frame_width).nth(y));
        for (pixel, &index) in row.iter_mut().skip(left).zip(frame_row.unwrap_or_default()) {
            *pixel = colors[usize::from(index)];
        }
        scaler.add(&row);
    }
    scaler.finish()
}

fn decode_webp(content: &[u8]) -> Option<Picture> {
    // The faster method. After scaling, the difference is small.
    let mut options = WebPDecodeOptions::default();
    options.lossy_upsampling = UpsamplingMethod::Simple;
    let mut decoder = WebPDecoder::new_with_options(Cursor::new(content), options).ok()?;
    // A part of the file cannot be larger than the file.
    decoder.set_memory_limit(content.len());
    let (width, height) = decoder.dimensions();
    let (width, height) = (usize::try_from(width).ok()?, usize::try_from(height).ok()?);
    // The image, the canvas and a frame, or the image and the planes of its colors and of its transparency. Without both, the
    // image and its colors.
    let bytes = if decoder.is_animated() || decoder.has_alpha() && decoder.is_lossy() { 12 } else { 7 };
    if !is_permitted(width, height, bytes) || has_larger_frame(content, width, height) {
        return None;
    }
    let orientation = match decoder.exif_metadata() {
        Ok(Some(exif)) => Orientation::from_exif(&exif),
        _ => Orientation::UPRIGHT,
    };
    let channels = if decoder.has_alpha() { Channels::Rgba } else { Channels::Rgb };
    let mut pixels = vec![0; decoder.output_buffer_size()?];
    decoder.read_image(&mut pixels).ok()?;
    scale(width, height, channels, orientation, &pixels)
}

/// Returns whether a WebP file has a lossy frame that is larger than the image. The decoder refuses it only after decoding.
fn has_larger_frame(content: &[u8], width: usize, height: usize) -> bool {
    memmem::find_iter(content, b"VP8 ").any(|start| match content[start..] {
        [_, _, _, _, _, _, _, _, _, _, _, 0x9D, 0x01, 0x2A, w0, w1, h0, h1, ..] => {
            let side = |bytes: [u8; 2]| usize::from(u16::from_le_bytes(bytes) & 0x3FFF);
            side([w0, w1]) > width || side([h0, h1]) > height
        }
        _ => false,
    })
}

/// The channels of a pixel, with a byte for each.
#[derive(Clone, Copy, Debug)]
enum Channels {
    Gray,
    GrayAlpha,
    Rgb,
    Rgba,
}

impl Channels {
    fn count(self) -> usize {
        match self {
            Self::Gray => 1,
            Self::GrayAlpha => 2,
            Self::Rgb => 3,
            Self::Rgba => 4,
        }
    }

    /// Writes a row as colors on a white background.
    fn flatten(self, row: &[u8], flat: &mut [Rgb]) {
        match self {
            Self::Gray => {
                for (pixel, &gray) in flat.iter_mut().zip(row) {
                    *pixel = [gray; 3];
                }
            }
            Self::GrayAlpha => {
                for (pixel, &[gray, alpha]) in flat.iter_mut().zip(row.as_chunks().0) {
                    *pixel = [on_white(gray, alpha); 3];
                }
            }
            Self::Rgb => flat.as_flattened_mut().copy_from_slice(row),
            Self::Rgba => {
                for (pixel, &[red, green, blue, alpha]) in flat.iter_mut().zip(row.as_chunks().0) {
                    *pixel = [red, green, blue].map(|value| on_white(value, alpha));
                }
            }
        }
    }
}

/// Returns a value of a color on a white background.
pub(super) fn on_white(value: u8, alpha: u8) -> u8 {
    let missing = (u32::from(255 - value) * u32::from(alpha) + 127) / 255;
    // The product of two bytes divided by 255 is a byte.
    255 - u8::try_from(missing).unwrap_or(u8::MAX)
}

/// Scales decoded pixels, and turns the picture. Turning it last takes a small copy.
fn scale(width: usize, height: usize, channels: Channels, orientation: Orientation, pixels: &[u8]) -> Option<Picture> {
    let mut scaler = Scaler::new(width, height, orientation.is_turned());
    let mut flat = vec![WHITE; width];
    for row in pixels.chunks_exact(width * channels.count()) {
        channels.flatten(row, &mut flat);
        scaler.add(&flat);
    }
    Some(orientation.apply(scaler.finish()?))
}
