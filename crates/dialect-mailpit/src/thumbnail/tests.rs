//! Files of all formats: whole, damaged, and made to take much memory.

use std::borrow::Cow;
use std::sync::LazyLock;

use jpeg_encoder::SamplingFactor;
use png::{BitDepth, ColorType};
use proptest::prelude::*;

use super::decode::decode;
use super::scale::{Picture, Rgb, WHITE};
use super::*;

const RED: Rgb = [200, 0, 0];

/// Returns a PNG file in which all rows have these bytes.
fn png(width: u32, height: u32, color: ColorType, depth: BitDepth, row: &[u8]) -> Vec<u8> {
    png_with(width, height, color, |info, data| {
        info.bit_depth = depth;
        info.palette = (color == ColorType::Indexed).then(|| Cow::from([[0, 0, 200], RED].concat()));
        *data = row.repeat(usize::try_from(height).unwrap());
    })
}

fn png_with(
    width: u32,
    height: u32,
    color: ColorType,
    change: impl FnOnce(&mut png::Info<'_>, &mut Vec<u8>),
) -> Vec<u8> {
    let mut out = Vec::new();
    let mut info = png::Info::with_size(width, height);
    (info.color_type, info.bit_depth) = (color, BitDepth::Eight);
    let mut data = Vec::new();
    change(&mut info, &mut data);
    let mut encoder = png::Encoder::with_info(&mut out, info).unwrap();
    encoder.set_filter(png::Filter::NoFilter);
    encoder.write_header().unwrap().write_image_data(&data).unwrap();
    out
}

fn red_png(width: u32, height: u32) -> Vec<u8> {
    png(width, height, ColorType::Rgb, BitDepth::Eight, &RED.repeat(width.try_into().unwrap()))
}

/// Returns a PNG file with one number for each pixel, in seven passes.
fn interlaced_png() -> Vec<u8> {
    // The first column and row, and the steps to the next ones.
    let passes = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)];
    let row = |y: u8, left: u8, step: usize| [0].into_iter().chain((left..8).step_by(step).map(move |x| y * 8 + x));
    let rows =
        passes.iter().flat_map(|&(left, top, step, down)| (top..8).step_by(down).flat_map(move |y| row(y, left, step)));
    // The same bytes are one row of another image. Its filter is the first byte.
    let bytes: Vec<u8> = rows.skip(1).collect();
    let file = png(bytes.len().try_into().unwrap(), 1, ColorType::Grayscale, BitDepth::Eight, &bytes);
    let start = file.windows(4).position(|name| name == b"IDAT").unwrap();
    let length = u32::from_be_bytes(*file[start - 4..].first_chunk().unwrap());
    let mut out = Vec::new();
    let mut info = png::Info::with_size(8, 8);
    (info.color_type, info.bit_depth, info.interlaced) = (ColorType::Grayscale, BitDepth::Eight, true);
    let mut writer = png::Encoder::with_info(&mut out, info).unwrap().write_header().unwrap();
    let data = &file[start + 4..][..length.try_into().unwrap()];
    writer.write_chunk(png::chunk::IDAT, data).unwrap();
    drop(writer);
    out
}

fn jpeg(width: u16, height: u16, pixels: &[u8], change: impl FnOnce(&mut Encoder<&mut Vec<u8>>)) -> Vec<u8> {
    let mut out = Vec::new();
    let mut encoder = Encoder::new(&mut out, 95);
    change(&mut encoder);
    encoder.encode(pixels, width, height, jpeg_encoder::ColorType::Rgb).unwrap();
    out
}

fn red_jpeg(width: u32, height: u32, change: impl FnOnce(&mut Encoder<&mut Vec<u8>>)) -> Vec<u8> {
    let pixels = RED.repeat((width * height).try_into().unwrap());
    jpeg(width.try_into().unwrap(), height.try_into().unwrap(), &pixels, change)
}

/// Returns a GIF file with a red frame at a place, after which there is a blue one.
fn gif(width: u16, height: u16, frame: [u16; 4], is_transparent: bool) -> Vec<u8> {
    let mut out = Vec::new();
    let palette = [[0, 0, 200], RED].concat();
    let mut encoder = gif::Encoder::new(&mut out, width, height, &palette).unwrap();
    let [left, top, frame_width, frame_height] = frame;
    for color in [1, 0] {
        let buffer = vec![color; usize::from(frame_width) * usize::from(frame_height)];
        let transparent = is_transparent.then_some(color);
        let frame = gif::Frame { left, top, transparent, ..frame_of(frame_width, frame_height, buffer) };
        encoder.write_frame(&frame).unwrap();
    }
    drop(encoder);
    out
}

fn frame_of(width: u16, height: u16, buffer: Vec<u8>) -> gif::Frame<'static> {
    gif::Frame { width, height, buffer: buffer.into(), ..gif::Frame::default() }
}

fn red_gif(width: u32, height: u32) -> Vec<u8> {
    let (width, height) = (width.try_into().unwrap(), height.try_into().unwrap());
    gif(width, height, [0, 0, width, height], false)
}

fn webp(
    width: u32,
    height: u32,
    pixel: &[u8],
    change: impl FnOnce(&mut image_webp::WebPEncoder<&mut Vec<u8>>),
) -> Vec<u8> {
    let mut out = Vec::new();
    let mut encoder = image_webp::WebPEncoder::new(&mut out);
    change(&mut encoder);
    let color = if pixel.len() == 4 { image_webp::ColorType::Rgba8 } else { image_webp::ColorType::Rgb8 };
    encoder.encode(&pixel.repeat((width * height).try_into().unwrap()), width, height, color).unwrap();
    out
}

fn red_webp(width: u32, height: u32) -> Vec<u8> {
    webp(width, height, &RED, |_| ())
}

fn riff_chunk(name: [u8; 4], content: &[u8]) -> Vec<u8> {
    [name.as_slice(), &u32::try_from(content.len()).unwrap().to_le_bytes(), content].concat()
}

/// Returns the first three bytes of a number, which begin with the lowest one.
fn three_bytes(value: u32) -> Vec<u8> {
    value.to_le_bytes()[..3].to_vec()
}

/// Returns a WebP file with the flags and the size of an extended header, and these chunks.
fn extended_webp(flags: u8, width: u32, height: u32, chunks: &[Vec<u8>]) -> Vec<u8> {
    let header = [vec![flags, 0, 0, 0], three_bytes(width - 1), three_bytes(height - 1)].concat();
    riff_chunk(*b"RIFF", &[b"WEBP", riff_chunk(*b"VP8X", &header).as_slice(), &chunks.concat()].concat())
}

/// Returns an animation with one red frame of this size in the middle, in few bytes.
fn animation(width: u32, height: u32, frame_width: u32, frame_height: u32) -> Vec<u8> {
    // Half of the first column and row.
    let (left, top) = ((width - frame_width) / 4, (height - frame_height) / 4);
    let place = [left, top, frame_width - 1, frame_height - 1, 100].map(three_bytes).concat();
    // After the header of the file, there is one chunk.
    let frame = [&place, [0].as_slice(), &red_webp(frame_width, frame_height)[12..]].concat();
    extended_webp(0x12, width, height, &[riff_chunk(*b"ANIM", &[0; 6]), riff_chunk(*b"ANMF", &frame)])
}

/// Returns a BMP file with these rows, which begins with the lowest one.
fn bmp(width: i32, height: i32, bits: u16, compression: u32, extra: &[u8], rows: &[u8]) -> Vec<u8> {
    let size = 40_u32;
    let offset = 14 + size + u32::try_from(extra.len()).unwrap();
    let header = [
        b"BM".as_slice(),
        &[0; 8],
        &offset.to_le_bytes(),
        &size.to_le_bytes(),
        &width.to_le_bytes(),
        &height.to_le_bytes(),
        &1_u16.to_le_bytes(),
        &bits.to_le_bytes(),
        &compression.to_le_bytes(),
        &[0; 20],
    ];
    [header.concat().as_slice(), extra, rows].concat()
}

fn red_bmp(width: u32, height: u32) -> Vec<u8> {
    let mut row = [0, 0, 200].repeat(width.try_into().unwrap());
    row.resize(row.len().next_multiple_of(4), 0);
    let rows = row.repeat(height.try_into().unwrap());
    bmp(width.try_into().unwrap(), height.try_into().unwrap(), 24, 0, &[], &rows)
}

/// Returns whether two colors are the same, except for the losses of JPEG.
fn is_near(color: Rgb, expected: Rgb) -> bool {
    color.iter().zip(expected).all(|(value, expected)| value.abs_diff(expected) < 8)
}

fn is_all(picture: &Picture, color: Rgb) -> bool {
    picture.pixels.iter().all(|&pixel| is_near(pixel, color))
}

type Write = fn(u32, u32) -> Vec<u8>;

/// The formats, with a function that writes a red image.
const FORMATS: [(&str, Write); 8] = [
    ("PNG", red_png),
    ("JPEG", |width, height| red_jpeg(width, height, |_| ())),
    ("JPEG without subsampling", |width, height| {
        red_jpeg(width, height, |encoder| encoder.set_sampling_factor(SamplingFactor::R_4_4_4))
    }),
    ("progressive JPEG", |width, height| red_jpeg(width, height, |encoder| encoder.set_progressive(true))),
    ("GIF", red_gif),
    ("WebP", red_webp),
    ("animated WebP", |width, height| animation(width, height, width, height)),
    ("BMP", red_bmp),
];

#[test]
fn formats_and_sizes() {
    // The size of the image, and that of the picture.
    let table = [
        ((200, 200), (180, 120)),
        ((180, 120), (180, 120)),
        ((271, 183), (180, 120)),
        ((20, 20), (20, 20)),
        ((1, 1), (1, 1)),
        ((360, 60), (180, 30)),
        ((60, 240), (30, 120)),
    ];
    for (name, write) in FORMATS {
        for ((width, height), size) in table {
            let Some(picture) = decode(&write(width, height)) else { panic!("{name} {width} {height}") };
            assert_eq!((picture.width, picture.height), size, "{name} {width} {height}");
            assert!(is_all(&picture, RED), "{name} {width} {height} {:?}", picture.pixels[0]);
        }
    }
}

#[test]
fn pixels_of_png() {
    use BitDepth::{Eight, Four, One, Sixteen, Two};
    let table = [
        (ColorType::Indexed, One, vec![0xFF; 3], RED),
        (ColorType::Indexed, Two, vec![0x55; 5], RED),
        (ColorType::Indexed, Four, vec![0x11; 10], RED),
        (ColorType::Indexed, Eight, vec![1; 20], RED),
        (ColorType::Grayscale, One, vec![0; 3], [0; 3]),
        (ColorType::Grayscale, Four, vec![0x33; 10], [51; 3]),
        (ColorType::Grayscale, Eight, vec![77; 20], [77; 3]),
        (ColorType::Grayscale, Sixteen, [77, 1].repeat(20), [77; 3]),
        (ColorType::GrayscaleAlpha, Eight, [0, 255].repeat(20), [0; 3]),
        (ColorType::GrayscaleAlpha, Eight, [0, 55].repeat(20), [200; 3]),
        (ColorType::Rgb, Sixteen, [200, 9, 0, 9, 0, 9].repeat(20), RED),
        (ColorType::Rgba, Eight, [200, 0, 0, 255].repeat(20), RED),
        (ColorType::Rgba, Eight, [200, 0, 0, 0].repeat(20), WHITE),
        (ColorType::Rgba, Sixteen, [0, 0, 0, 0, 0, 0, 51, 0].repeat(20), [204; 3]),
    ];
    for (color, depth, row, expected) in table {
        let picture = decode(&png(20, 20, color, depth, &row)).unwrap();
        assert!(picture.pixels.iter().all(|&pixel| pixel == expected), "{color:?} {depth:?} {:?}", picture.pixels[0]);
    }
    let picture = decode(&interlaced_png()).unwrap();
    assert!(picture.pixels.iter().zip(0..64).all(|(&pixel, number)| pixel == [number; 3]), "{:?}", picture.pixels);
}

#[test]
fn pixels_of_jpeg() {
    for color in [jpeg_encoder::ColorType::Luma, jpeg_encoder::ColorType::Cmyk] {
        let mut out = Vec::new();
        // Black in both.
        let pixels: &[u8] = if color == jpeg_encoder::ColorType::Luma { &[0] } else { &[255; 4] };
        Encoder::new(&mut out, 95).encode(&pixels.repeat(400), 20, 20, color).unwrap();
        assert!(is_all(&decode(&out).unwrap(), [0; 3]), "{color:?}");
    }
}

#[test]
fn pixels_of_gif() {
    assert!(is_all(&decode(&gif(20, 20, [0, 0, 20, 20], true)).unwrap(), WHITE));
    // A frame that is smaller than the image, or not inside of it.
    for (frame, columns, rows) in [([5, 4, 10, 8], 5..15, 4..12), ([15, 15, 30, 40], 15..20, 15..20)] {
        let picture = decode(&gif(20, 20, frame, false)).unwrap();
        for (index, &pixel) in picture.pixels.iter().enumerate() {
            let is_inside = columns.contains(&(index % 20)) && rows.contains(&(index / 20));
            assert_eq!(pixel, if is_inside { RED } else { WHITE }, "{frame:?} {index}");
        }
    }
}

#[test]
fn pixels_of_webp() {
    assert!(is_all(&decode(&webp(20, 20, &[200, 0, 0, 0], |_| ())).unwrap(), WHITE));
    assert!(is_all(&decode(&webp(20, 20, &[0, 0, 0, 55], |_| ())).unwrap(), [200; 3]));
    let picture = decode(&animation(20, 20, 10, 10)).unwrap();
    assert!(picture.pixels[0] == WHITE && is_near(picture.pixels[10 * 20 + 10], RED));
}

/// The height, the bits of a pixel, the compression, what follows the header, and the rows of a BMP file.
type Bmp = (i32, u16, u32, Vec<u8>, Vec<u8>);

#[test]
fn pixels_of_bmp() {
    let blue = [0, 0, 200];
    let palette = [[200, 0, 0, 0], [0, 0, 200, 0]].concat();
    let full = |count: usize| [palette.as_slice(), &vec![0; count * 4 - 8]].concat();
    let masks = |values: [u32; 3]| values.map(u32::to_le_bytes).concat();
    // A red pixel and a blue one below another row of them.
    let table: [Bmp; 13] = [
        (2, 1, 0, palette.clone(), [0x80, 0, 0, 0].repeat(2)),
        (2, 2, 0, full(4), [0x40, 0, 0, 0].repeat(2)),
        (2, 4, 0, full(16), [0x10, 0, 0, 0].repeat(2)),
        (2, 8, 0, full(256), [1, 0, 0, 0].repeat(2)),
        (-2, 8, 0, full(256), [1, 0, 0, 0].repeat(2)),
        (2, 16, 0, vec![], [0, 0x64, 25, 0].repeat(2)),
        (2, 16, 3, masks([0xF000, 0xF00, 0xF0]), [0, 0xC0, 0xC0, 0].repeat(2)),
        (2, 24, 0, vec![], [0, 0, 200, 200, 0, 0, 0, 0].repeat(2)),
        (2, 32, 0, vec![], [0, 0, 200, 9, 200, 0, 0, 9].repeat(2)),
        (2, 32, 3, masks([0xFF, 0xFF00, 0xFF_0000]), [200, 0, 0, 9, 0, 0, 200, 9].repeat(2)),
        // A run, single pixels, the end of a row and of the image, and a move.
        (2, 8, 1, full(256), vec![1, 1, 1, 0, 0, 0, 0, 2, 1, 0, 9, 0, 0, 0]),
        (2, 8, 1, full(256), vec![1, 1, 1, 0, 0, 0, 1, 1, 0, 1]),
        (2, 4, 2, full(16), vec![2, 0x10, 0, 0, 2, 0x10, 0, 1]),
    ];
    for (height, bits, compression, extra, rows) in table {
        let file = bmp(2, height, bits, compression, &extra, &rows);
        let Some(picture) = decode(&file) else { panic!("{height} {bits} {compression} {rows:?}") };
        let expected = [RED, blue];
        for (index, &pixel) in picture.pixels.iter().enumerate() {
            // A move skips the last pixel of this file, which then has the first color.
            let is_skipped = rows.contains(&9) && compression == 1 && index == 0;
            let color = if is_skipped { blue } else { expected[index % 2] };
            assert!(is_near(pixel, color), "{height} {bits} {compression} {rows:?} {:?}", picture.pixels);
        }
    }
    // The first row of the file is the last one of the image, unless the height is negative.
    for (height, first) in [(2, 7), (-2, 3)] {
        let rows = [[3; 4], [7; 4]].concat();
        assert_eq!(decode(&bmp(1, height, 24, 0, &[], &rows)).unwrap().pixels[0], [first; 3]);
    }
    // The oldest header.
    let core = [b"BM".as_slice(), &[0; 8], &[26, 0, 0, 0], &[12, 0, 0, 0, 1, 0, 1, 0, 1, 0, 24, 0], &[0, 0, 200, 0]];
    assert_eq!(decode(&core.concat()).unwrap().pixels, [RED]);
}

#[test]
fn pictures_are_upright() {
    const GREEN: Rgb = [0, 200, 0];
    const BLUE: Rgb = [0, 0, 200];
    // The left half is red, and the right half is green above blue.
    let pixel = |x: usize, y: usize| {
        if x < 32 {
            RED
        } else if y < 16 {
            GREEN
        } else {
            BLUE
        }
    };
    let pixels: Vec<u8> = (0..32).flat_map(|y| (0..64).flat_map(move |x| pixel(x, y))).collect();
    let exif =
        |orientation: u8| [b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0", [orientation, 0, 0].as_slice()].concat();
    // The colors left above, right above, left below and right below.
    let table = [
        (1, [RED, GREEN, RED, BLUE]),
        (2, [GREEN, RED, BLUE, RED]),
        (3, [BLUE, RED, GREEN, RED]),
        (4, [RED, BLUE, RED, GREEN]),
        (5, [RED, RED, GREEN, BLUE]),
        (6, [RED, RED, BLUE, GREEN]),
        (7, [BLUE, GREEN, RED, RED]),
        (8, [GREEN, BLUE, RED, RED]),
        (9, [RED, GREEN, RED, BLUE]),
    ];
    for (orientation, corners) in table {
        let exif = exif(orientation);
        let png = png_with(64, 32, ColorType::Rgb, |info, data| {
            info.exif_metadata = Some(exif.clone().into());
            data.clone_from(&pixels);
        });
        let jpeg = jpeg(64, 32, &pixels, |encoder| encoder.add_exif_metadata(&exif).unwrap());
        let mut webp = Vec::new();
        let mut encoder = image_webp::WebPEncoder::new(&mut webp);
        encoder.set_exif_metadata(exif);
        encoder.encode(&pixels, 64, 32, image_webp::ColorType::Rgb8).unwrap();
        for (format, file) in [("PNG", png), ("JPEG", jpeg), ("WebP", webp)] {
            let picture = decode(&file).unwrap();
            let size = if (5..=8).contains(&orientation) { (32, 64) } else { (64, 32) };
            assert_eq!((picture.width, picture.height), size, "{format} {orientation}");
            let color = |x: usize, y: usize| picture.pixels[y * picture.width + x];
            let (right, below) = (picture.width - 1, picture.height - 1);
            let colors = [color(0, 0), color(right, 0), color(0, below), color(right, below)];
            let is_right = colors.iter().zip(corners).all(|(&color, expected)| is_near(color, expected));
            assert!(is_right, "{format} {orientation} {colors:?}");
        }
    }
}

#[test]
fn turned_images_fill_the_picture() {
    let exif = b"II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0";
    let picture = decode(&red_jpeg(240, 400, |encoder| encoder.add_exif_metadata(exif).unwrap())).unwrap();
    assert_eq!((picture.width, picture.height), (180, 120));
}

#[test]
fn other_files_are_not_decoded() {
    let claimed_bmp = |width: i32, height: i32| bmp(width, height, 24, 0, &[], &[0; 64]);
    let mut lossy = [0, 0, 0, 0x9D, 0x01, 0x2A].to_vec();
    lossy.extend([16_000_u16, 16_000].map(u16::to_le_bytes).concat());
    lossy.resize(5000, 0);
    let table: [(&str, Vec<u8>); 18] = [
        ("nothing", vec![]),
        ("text", b"not an image".to_vec()),
        ("TIFF", b"II*\0\x08\0\0\0\0\0\0\0\0\0".to_vec()),
        ("start of JPEG", vec![0xFF, 0xD8, 0xFF]),
        ("start of PNG", b"\x89PNG\r\n\x1A\n".to_vec()),
        ("start of GIF", b"GIF89a".to_vec()),
        ("start of WebP", b"RIFF\0\0\0\0WEBP".to_vec()),
        ("start of BMP", b"BM".to_vec()),
        ("wide PNG", red_png(16_385, 1)),
        ("high PNG", red_png(1, 16_385)),
        ("large BMP", claimed_bmp(16_384, 16_384)),
        ("many pixels", claimed_bmp(5_000, 4_001)),
        ("no rows", claimed_bmp(1, 0)),
        ("negative width", claimed_bmp(-1, 1)),
        ("lowest height", claimed_bmp(1, i32::MIN)),
        // The index of a color for each pixel of the frame.
        ("frame larger than a GIF", {
            let mut file = gif(1, 1, [0, 0, 1, 1], false);
            let frame = file.iter().position(|&byte| byte == b',').unwrap();
            file[frame + 5..frame + 9].fill(0xFF);
            file
        }),
        ("frame larger than a WebP", extended_webp(0, 1, 1, &[riff_chunk(*b"VP8 ", &lossy)])),
        ("large animation", animation(3500, 3500, 100, 100)),
    ];
    for (name, content) in table {
        assert!(content.len() < 60_000, "{name}");
        assert!(decode(&content).is_none(), "{name}");
    }
    assert!(decode(&animation(1200, 1200, 100, 100)).is_some());
}

#[test]
fn memory_of_jpeg_is_limited() {
    let mut content = red_jpeg(1, 1, |_| ());
    let frame = content.windows(2).position(|bytes| bytes == [0xFF, 0xC0]).unwrap();
    let mut decoded = |marker: u8, width: u16, height: u16| {
        content[frame + 1] = marker;
        content[frame + 5..][..2].copy_from_slice(&height.to_be_bytes());
        content[frame + 7..][..2].copy_from_slice(&width.to_be_bytes());
        decode(&content)
    };
    assert!(decoded(0xC2, 4000, 3100).is_none());
    assert!(decoded(0xC0, 4472, 4473).is_none());
    assert!(decoded(0xC0, 1, 1).is_some());
}

#[test]
fn scans_of_jpeg_are_limited() {
    for is_progressive in [false, true] {
        // The last scan again and again.
        let content = red_jpeg(16, 16, |encoder| encoder.set_progressive(is_progressive));
        let start = content.windows(2).rposition(|bytes| bytes == [0xFF, 0xDA]).unwrap();
        let scan = &content[start..content.len() - 2];
        let with_scans = |count: usize| [&content[..start], &scan.repeat(count), &[0xFF, 0xD9]].concat();
        assert!(decode(&with_scans(2)).is_some());
        assert!(decode(&with_scans(33)).is_none());
    }
}

#[test]
fn metadata_of_jpeg_are_limited() {
    let metadata = b"http://ns.adobe.com/xmp/extension/\0AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\x09\0\0\0\0\0\0\0";
    let with_segments = |count: usize| {
        red_jpeg(16, 16, |encoder| {
            for _ in 0..count {
                encoder.add_app_segment(1, metadata.to_vec()).unwrap();
            }
        })
    };
    assert!(decode(&with_segments(1000)).is_some());
    assert!(decode(&with_segments(1001)).is_none());
}

/// Small files of all formats.
static SMALL_FILES: LazyLock<Vec<(&str, Vec<u8>)>> = LazyLock::new(|| {
    let mut files: Vec<_> = FORMATS.iter().map(|&(name, write)| (name, write(19, 17))).collect();
    files.push(("GIF with a small frame", gif(33, 21, [3, 4, 5, 6], true)));
    files.push(("interlaced PNG", interlaced_png()));
    files.push(("BMP with a palette", bmp(2, 2, 1, 0, &[9; 8], &[0x80; 8])));
    files.push(("BMP with masks", bmp(2, 2, 16, 3, &[0, 0xF8, 0, 0, 0xE0, 7, 0, 0, 31, 0, 0, 0], &[7; 8])));
    files.push(("BMP with runs", bmp(9, 2, 8, 1, &[9; 1024], &[0, 3, 1, 2, 3, 0, 0, 2, 1, 1, 255, 9, 0, 1])));
    files.push(("BMP with short runs", bmp(9, 2, 4, 2, &[9; 64], &[0, 3, 1, 2, 0, 2, 1, 1, 255, 9, 0, 1])));
    files
});

#[test]
fn damaged_files_do_not_panic() {
    for (name, content) in SMALL_FILES.iter() {
        assert!(content.len() < 2000, "{name} {}", content.len());
        for length in 0..content.len() {
            let _ = decode(&content[..length]);
        }
        let mut damaged = content.clone();
        for (index, &byte) in content.iter().enumerate() {
            damaged[index] ^= 1 << (index % 8);
            let _ = decode(&damaged);
            damaged[index] = byte;
        }
        assert!(decode(&damaged).is_some(), "{name}");
    }
}

proptest! {
    #[test]
    fn files_with_several_changes_do_not_panic(
        file in 0..SMALL_FILES.len(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..5),
    ) {
        let mut content = SMALL_FILES[file].1.clone();
        for (index, byte) in changes {
            let place = index.index(content.len());
            content[place] = byte;
        }
        let _ = decode(&content);
    }
}

#[test]
fn pictures_are_placed_in_the_middle() {
    let picture = place(Some(Picture { width: 2, height: 2, pixels: vec![RED; 4] }));
    let red: Vec<_> = (0..180 * 120).filter(|&index| picture[index] == RED).collect();
    assert_eq!(red, [59, 60].map(|y| [y * 180 + 89, y * 180 + 90]).concat());
    assert!(place(None).iter().all(|&pixel| pixel == WHITE));
    let encoded = decode(&encode(&picture).unwrap()).unwrap();
    assert_eq!((encoded.width, encoded.height), (180, 120));
    assert!(is_near(encoded.pixels[0], WHITE));
}
