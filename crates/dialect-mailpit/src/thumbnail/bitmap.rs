//! Decodes BMP: 1 to 32 bits for each pixel, with a palette, with masks, or with a run length encoding.

use super::decode::{is_permitted, on_white};
use super::scale::{Picture, Rgb, Scaler, WHITE};

/// The length of the header of the file. The header of the image follows.
const FILE_HEADER: usize = 14;
/// The length of the oldest header of an image. It has sides of 16 bits, and colors without a fourth byte.
const CORE_HEADER: usize = 12;
/// The place of the masks, in the header or after it.
const MASKS: usize = 54;
/// The length of the first header with a mask for transparency.
const HEADER_WITH_ALPHA: usize = 56;

/// The compression in the header of an image.
const NONE: u32 = 0;
const RUNS_OF_BYTES: u32 = 1;
const RUNS_OF_HALF_BYTES: u32 = 2;
const WITH_MASKS: u32 = 3;

/// How the pixels of a row are stored.
enum Pixels {
    /// An index into the palette with this number of bits.
    Indices(usize, Box<[Rgb; 256]>),
    /// Blue, green and red, in this number of bytes.
    Bytes(usize),
    /// A little-endian number with this number of bytes, and the masks of red, green, blue and alpha.
    Masks(usize, [Mask; 4]),
}

/// The bits of a color.
#[derive(Clone, Copy)]
struct Mask(u32);

impl Mask {
    /// Returns a mask of bits without gaps.
    fn new(bits: u32) -> Option<Self> {
        let shifted = bits.checked_shr(bits.trailing_zeros()).unwrap_or(0);
        (shifted & shifted.wrapping_add(1) == 0).then_some(Self(bits))
    }

    /// Returns the value of a color, or 255 if it has no bits.
    fn read(self, pixel: u32) -> u8 {
        if self.0 == 0 {
            return u8::MAX;
        }
        let shift = self.0.trailing_zeros();
        let (value, max) = (u64::from((pixel & self.0) >> shift), u64::from(self.0 >> shift));
        u8::try_from((value * 255 + max / 2) / max).unwrap_or(u8::MAX)
    }
}

pub(super) fn decode(content: &[u8]) -> Option<Picture> {
    let short = |place: usize| Some(u16::from_le_bytes(*content.get(place..)?.first_chunk()?));
    let long = |place: usize| Some(u32::from_le_bytes(*content.get(place..)?.first_chunk()?));
    let header = usize::try_from(long(FILE_HEADER)?).ok()?;
    let is_core = header == CORE_HEADER;
    if !matches!(header, CORE_HEADER | 40 | 52 | HEADER_WITH_ALPHA | 108 | 124) {
        return None;
    }
    let (width, height) =
        if is_core { (u32::from(short(18)?), i32::from(short(20)?)) } else { (long(18)?, long(22)?.cast_signed()) };
    // Most files begin with the last row.
    let is_top_down = height < 0;
    let (width, height) = (usize::try_from(width).ok()?, usize::try_from(height.unsigned_abs()).ok()?);
    if !is_permitted(width, height, 1) {
        return None;
    }
    let planes_at = if is_core { 22 } else { 26 };
    let (planes, bits) = (short(planes_at)?, usize::from(short(planes_at + 2)?));
    let compression = if is_core { NONE } else { long(30)? };
    if planes != 1 || is_top_down && !matches!(compression, NONE | WITH_MASKS) {
        return None;
    }
    let palette = || {
        let used = if is_core { 0 } else { usize::try_from(long(46)?).ok()? };
        let count = if used == 0 { 1 << bits } else { used };
        let size = if is_core { 3 } else { 4 };
        let stored = content.get(FILE_HEADER + header..)?.get(..count.checked_mul(size)?)?;
        let mut colors = Box::new([[0; 3]; 256]);
        for (color, stored) in colors.iter_mut().zip(stored.chunks_exact(size)) {
            *color = [stored[2], stored[1], stored[0]];
        }
        (count <= 1 << bits).then_some(colors)
    };
    let data = content.get(usize::try_from(long(10)?).ok()?..)?;
    let pixels = match (compression, bits) {
        (NONE, 1 | 2 | 4 | 8) => Pixels::Indices(bits, palette()?),
        (NONE, 16) => Pixels::Masks(2, [Mask(0x7C00), Mask(0x3E0), Mask(0x1F), Mask(0)]),
        (NONE, 24 | 32) => Pixels::Bytes(bits / 8),
        (WITH_MASKS, 16 | 32) => {
            let alpha = if header >= HEADER_WITH_ALPHA { long(MASKS + 12)? } else { 0 };
            let masks = [long(MASKS)?, long(MASKS + 4)?, long(MASKS + 8)?, alpha];
            if masks[..3].contains(&0) {
                return None;
            }
            let masks = masks.map(Mask::new);
            Pixels::Masks(bits / 8, [masks[0]?, masks[1]?, masks[2]?, masks[3]?])
        }
        (RUNS_OF_BYTES, 8) | (RUNS_OF_HALF_BYTES, 4) => {
            let indices = expand_runs(data, bits, width, height)?;
            return scale(&indices, width, width, height, is_top_down, &Pixels::Indices(8, palette()?));
        }
        _ => return None,
    };
    // A row has a multiple of four bytes.
    scale(data, (width * bits).div_ceil(32) * 4, width, height, is_top_down, &pixels)
}

fn scale(
    data: &[u8],
    stride: usize,
    width: usize,
    height: usize,
    is_top_down: bool,
    pixels: &Pixels,
) -> Option<Picture> {
    let mut scaler = Scaler::new(width, height, false);
    let mut flat = vec![WHITE; width];
    for y in 0..height {
        let number = if is_top_down { y } else { height - 1 - y };
        read_row(data.get(number * stride..)?.get(..stride)?, pixels, &mut flat);
        scaler.add(&flat);
    }
    scaler.finish()
}

fn read_row(row: &[u8], pixels: &Pixels, flat: &mut [Rgb]) {
    match pixels {
        Pixels::Indices(bits, colors) => {
            for (x, pixel) in flat.iter_mut().enumerate() {
                *pixel = colors[usize::from(index_at(row, x, *bits))];
            }
        }
        Pixels::Bytes(bytes) => {
            for (pixel, stored) in flat.iter_mut().zip(row.chunks_exact(*bytes)) {
                *pixel = [stored[2], stored[1], stored[0]];
            }
        }
        Pixels::Masks(bytes, [red, green, blue, alpha]) => {
            for (pixel, stored) in flat.iter_mut().zip(row.chunks_exact(*bytes)) {
                let stored = stored.iter().rev().fold(0, |number, byte| number << 8 | u32::from(*byte));
                *pixel = [red, green, blue].map(|mask| on_white(mask.read(stored), alpha.read(stored)));
            }
        }
    }
}

/// Returns an index with this number of bits. The first one has the highest bits of a byte.
fn index_at(row: &[u8], number: usize, bits: usize) -> u8 {
    let place = number * bits;
    row[place / 8] << (place % 8) >> (8 - bits)
}

/// Expands a run length encoding to an index for each pixel. Pixels that are skipped have the first color, and those outside
/// of the image are ignored.
fn expand_runs(data: &[u8], bits: usize, width: usize, height: usize) -> Option<Vec<u8>> {
    let mut indices = vec![0; width * height];
    let (mut x, mut y, mut rest) = (0, 0, data);
    while y < height {
        let &[first, second, ref after @ ..] = rest else { return None };
        rest = after;
        match (first, second) {
            // The end of a row.
            (0, 0) => (x, y) = (0, y + 1),
            // The end of the image.
            (0, 1) => break,
            // A move to the right and to the next rows.
            (0, 2) => {
                let &[right, down, ref after @ ..] = rest else { return None };
                rest = after;
                (x, y) = (x + usize::from(right), y + usize::from(down));
            }
            // Pixels one by one, in a multiple of two bytes.
            (0, count) => {
                let count = usize::from(count);
                let (stored, after) = rest.split_at_checked((count * bits).div_ceil(16) * 2)?;
                rest = after;
                for (number, index) in rest_of_row(&mut indices, width, x, y).iter_mut().take(count).enumerate() {
                    *index = index_at(stored, number, bits);
                }
                x += count;
            }
            // Pixels that repeat one byte.
            (count, byte) => {
                let count = usize::from(count);
                // Two pixels, if an index has half a byte.
                let repeated = [byte; 2];
                for (number, index) in rest_of_row(&mut indices, width, x, y).iter_mut().take(count).enumerate() {
                    *index = index_at(&repeated, number % 2, bits);
                }
                x += count;
            }
        }
    }
    Some(indices)
}

/// Returns the pixels of a row from a column.
fn rest_of_row(indices: &mut [u8], width: usize, x: usize, y: usize) -> &mut [u8] {
    &mut indices[y * width..][x.min(width)..width]
}
