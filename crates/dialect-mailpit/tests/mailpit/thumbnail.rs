//! Small pictures of files.

use std::io::Cursor;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use image::{DynamicImage, ImageFormat, Rgb, RgbImage, RgbaImage};

use crate::support::*;

const RED: Rgb<u8> = Rgb([200, 0, 0]);

fn encoded(image: impl Into<DynamicImage>, format: ImageFormat) -> Vec<u8> {
    let mut out = Cursor::new(Vec::new());
    image.into().write_to(&mut out, format).unwrap();
    out.into_inner()
}

fn red(width: u32, height: u32, format: ImageFormat) -> Vec<u8> {
    encoded(RgbImage::from_pixel(width, height, RED), format)
}

/// Returns a picture of a file with this type and content.
async fn thumbnail(content_type: &str, content: &[u8]) -> RgbImage {
    let server = TestServer::new();
    let mail = format!(
        "Content-Type: {content_type}; name=a\r\nContent-Transfer-Encoding: base64\r\n\r\n{}\r\n",
        STANDARD.encode(content)
    );
    server.add_message(0, "test", &mail).await;
    let path = "/api/v1/message/latest/part/0/thumb";
    let response = server.request(&format!("GET {path}")).await;
    assert_eq!((response.status.as_u16(), response.header("content-type")), (200, "image/jpeg"));
    let again = server.request(&format!("GET {path}\nIf-None-Match: {}", response.header("etag"))).await;
    assert_eq!(again.status, 304);
    let picture = image::load_from_memory_with_format(&response.body, ImageFormat::Jpeg).unwrap();
    assert_eq!((picture.width(), picture.height()), (180, 120));
    picture.into_rgb8()
}

fn is_red(picture: &RgbImage, x: u32, y: u32) -> bool {
    let [red, green, _] = picture.get_pixel(x, y).0;
    red > 150 && green < 80
}

fn is_white(picture: &RgbImage) -> bool {
    picture.pixels().all(|pixel| pixel.0.iter().all(|&value| value > 250))
}

#[tokio::test]
async fn pictures_are_filled_or_centered() {
    // The size of the image, and the distance from the left and the top to the image in the picture.
    for (width, height, left, top) in
        [(200, 200, 0, 0), (180, 120, 0, 0), (20, 20, 80, 50), (360, 60, 0, 45), (60, 240, 75, 0)]
    {
        let picture = thumbnail("image/png", &red(width, height, ImageFormat::Png)).await;
        assert!(is_red(&picture, 90, 60) && is_red(&picture, left + 2, top + 2), "{width} {height}");
        assert!(left < 10 || !is_red(&picture, left - 10, 60), "{width} {height}");
        assert!(top < 10 || !is_red(&picture, 90, top - 10), "{width} {height}");
    }
}

#[tokio::test]
async fn formats_are_recognized_by_their_content() {
    for format in [ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::Gif, ImageFormat::WebP, ImageFormat::Bmp] {
        assert!(is_red(&thumbnail("image/x", &red(200, 200, format)).await, 90, 60), "{format:?}");
    }
    let transparent = encoded(RgbaImage::new(200, 200), ImageFormat::Png);
    assert!(is_white(&thumbnail("image/png", &transparent).await));
}

#[tokio::test]
async fn other_files_have_a_white_picture() {
    let image = red(200, 200, ImageFormat::Png);
    let mut damaged = image.clone();
    damaged.truncate(60);
    // Images that claim to be very large, in few bytes.
    let claimed_size = |width: u32, height: u32| {
        let mut bitmap = red(1, 1, ImageFormat::Bmp);
        bitmap[18..22].copy_from_slice(&width.to_le_bytes());
        bitmap[22..26].copy_from_slice(&height.to_le_bytes());
        bitmap
    };
    let wide = red(16_385, 1, ImageFormat::Png);
    let table: [(&str, &[u8]); 8] = [
        ("application/pdf", &image),
        ("text/csv", &image),
        ("image/png", b""),
        ("image/png", b"not an image"),
        ("image/png", &damaged),
        ("image/bmp", &claimed_size(16_384, 16_384)),
        ("image/png", &wide),
        ("image/bmp", &claimed_size(5_000, 4_001)),
    ];
    for (content_type, content) in table {
        assert!(is_white(&thumbnail(content_type, content).await), "{content_type} of {} bytes", content.len());
    }
}

/// Returns an animated image with one red frame in the middle, in few bytes.
fn animation(width: u32, height: u32) -> Vec<u8> {
    let side = 1000;
    let chunk = |name: &[u8; 4], content: &[u8]| {
        let length = u32::try_from(content.len()).unwrap().to_le_bytes();
        [name.as_slice(), &length, content].concat()
    };
    let number = |value: u32| value.to_le_bytes()[..3].to_vec();
    let canvas = [vec![0x12, 0, 0, 0], number(width - 1), number(height - 1)].concat();
    let place = [(width - side) / 4, (height - side) / 4, side - 1, side - 1, 100].map(number).concat();
    // After the header of the file, there is one chunk.
    let picture = &red(side, side, ImageFormat::WebP)[12..];
    let frame = [&place, [0].as_slice(), picture].concat();
    let chunks = [chunk(b"VP8X", &canvas), chunk(b"ANIM", &[0; 6]), chunk(b"ANMF", &frame)].concat();
    chunk(b"RIFF", &[b"WEBP".as_slice(), &chunks].concat())
}

/// A decoder takes a multiple of the size of the image for an animation.
#[tokio::test]
async fn memory_for_animations_is_limited() {
    assert!(is_red(&thumbnail("image/webp", &animation(1200, 1200)).await, 90, 60));
    let large = animation(3500, 3500);
    assert!(large.len() < 2000, "{}", large.len());
    assert!(is_white(&thumbnail("image/webp", &large).await));
}

#[tokio::test]
async fn missing_parts_have_no_picture() {
    let server = TestServer::with_everything().await;
    let response = server.request("GET /api/v1/message/latest/part/9/thumb").await;
    assert_eq!((response.status.as_u16(), response.text()), (400, "attachment not found"));
}
