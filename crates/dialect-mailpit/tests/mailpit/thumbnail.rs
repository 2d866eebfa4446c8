//! Small pictures of files.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;

use crate::support::*;

const WIDTH: usize = 180;
const HEIGHT: usize = 120;
const RED: [u8; 3] = [200, 0, 0];

/// Returns a red image as a PNG file.
fn red(width: u32, height: u32) -> Vec<u8> {
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, width, height);
    encoder.set_color(png::ColorType::Rgb);
    let pixels = RED.repeat(usize::try_from(width * height).unwrap());
    encoder.write_header().unwrap().write_image_data(&pixels).unwrap();
    file
}

/// The pixels of a picture, row by row.
struct Picture {
    pixels: Vec<[u8; 3]>,
    file: Vec<u8>,
}

/// Returns a picture of a file with this type and content.
async fn thumbnail(content_type: &str, content: &[u8]) -> Picture {
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
    let mut decoder = JpegDecoder::new(ZCursor::new(&response.body));
    let pixels = decoder.decode().unwrap();
    assert_eq!(decoder.dimensions(), Some((WIDTH, HEIGHT)));
    Picture { pixels: pixels.as_chunks().0.to_vec(), file: response.body.to_vec() }
}

fn is_red(picture: &Picture, x: usize, y: usize) -> bool {
    let [red, green, _] = picture.pixels[y * WIDTH + x];
    red > 150 && green < 80
}

fn is_white(picture: &Picture) -> bool {
    picture.pixels.as_flattened().iter().all(|&value| value > 250)
}

#[tokio::test]
async fn pictures_are_filled_or_centered() {
    // The size of the image, and the distance from the left and the top to the image in the picture.
    for (width, height, left, top) in
        [(200, 200, 0, 0), (180, 120, 0, 0), (20, 20, 80, 50), (360, 60, 0, 45), (60, 240, 75, 0)]
    {
        let picture = thumbnail("image/png", &red(width, height)).await;
        assert!(is_red(&picture, 90, 60) && is_red(&picture, left + 2, top + 2), "{width} {height}");
        assert!(left < 10 || !is_red(&picture, left - 10, 60), "{width} {height}");
        assert!(top < 10 || !is_red(&picture, 90, top - 10), "{width} {height}");
    }
}

#[tokio::test]
async fn formats_are_recognized_by_their_content() {
    let picture = thumbnail("image/x", &red(200, 200)).await;
    assert!(is_red(&picture, 90, 60));
    // The picture is a JPEG itself. Phones append a video to a JPEG.
    let scans = [0xFF, 0xDA].repeat(100);
    for jpeg in [picture.file.clone(), [picture.file, scans].concat()] {
        assert!(is_red(&thumbnail("image/x", &jpeg).await, 90, 60));
    }
}

#[tokio::test]
async fn other_files_have_a_white_picture() {
    let image = red(200, 200);
    let wide = red(16_385, 1);
    let table: [(&str, &[u8]); 6] = [
        ("application/pdf", &image),
        ("text/csv", &image),
        ("image/png", b""),
        ("image/png", b"not an image"),
        ("image/png", &image[..60]),
        ("image/png", &wide),
    ];
    for (content_type, content) in table {
        assert!(is_white(&thumbnail(content_type, content).await), "{content_type} of {} bytes", content.len());
    }
}

#[tokio::test]
async fn missing_parts_have_no_picture() {
    let server = TestServer::with_everything().await;
    let response = server.request("GET /api/v1/message/latest/part/9/thumb").await;
    assert_eq!((response.status.as_u16(), response.text()), (400, "attachment not found"));
}
