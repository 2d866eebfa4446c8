//! Turns a picture as the metadata of a camera (Exif) says.

use super::scale::Picture;

/// The field of the metadata with the orientation.
const ORIENTATION: u32 = 0x112;
/// The type of a field of 16-bit numbers.
const SHORT: u32 = 3;

/// How an image has to be turned or mirrored, with the numbers of Exif.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Orientation(u8);

impl Orientation {
    pub(super) const UPRIGHT: Self = Self(1);

    /// Reads the orientation from the metadata. An image with other or damaged metadata is shown as it is.
    pub(super) fn from_exif(exif: &[u8]) -> Self {
        read_orientation(exif).unwrap_or(Self::UPRIGHT)
    }

    /// Returns whether the width of the image is its height after turning.
    pub(super) fn is_turned(self) -> bool {
        self.0 >= 5
    }

    pub(super) fn apply(self, picture: Picture) -> Picture {
        if self == Self::UPRIGHT {
            return picture;
        }
        let Picture { width, height, pixels } = picture;
        let (turned_width, turned_height) = if self.is_turned() { (height, width) } else { (width, height) };
        let source = |x: usize, y: usize| match self.0 {
            2 => (width - 1 - x, y),
            3 => (width - 1 - x, height - 1 - y),
            4 => (x, height - 1 - y),
            5 => (y, x),
            6 => (y, height - 1 - x),
            7 => (width - 1 - y, height - 1 - x),
            8 => (width - 1 - y, x),
            _ => (x, y),
        };
        let places = (0..turned_height).flat_map(|y| (0..turned_width).map(move |x| (x, y)));
        let turned = places.map(|(x, y)| source(x, y)).map(|(x, y)| pixels[y * width + x]);
        Picture { width: turned_width, height: turned_height, pixels: turned.collect() }
    }
}

/// Reads the orientation from the first directory of a TIFF file.
fn read_orientation(exif: &[u8]) -> Option<Orientation> {
    let is_little = match exif.get(..4)? {
        [b'I', b'I', 42, 0] => true,
        [b'M', b'M', 0, 42] => false,
        _ => return None,
    };
    let number = |bytes: &[u8]| {
        let add = |sum: u32, byte: &u8| sum << 8 | u32::from(*byte);
        if is_little { bytes.iter().rev().fold(0, add) } else { bytes.iter().fold(0, add) }
    };
    let directory = exif.get(usize::try_from(number(exif.get(4..8)?)).ok()?..)?;
    let count = usize::try_from(number(directory.get(..2)?)).ok()?;
    // A field has its number, its type, the number of values, and the value.
    let field = directory[2..].chunks_exact(12).take(count).find(|field| number(&field[..2]) == ORIENTATION)?;
    if number(&field[2..4]) != SHORT || number(&field[4..8]) != 1 {
        return None;
    }
    u8::try_from(number(&field[8..10])).ok().filter(|value| (1..=8).contains(value)).map(Orientation)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns metadata with a field before the orientation.
    fn exif(is_little: bool, orientation: u16) -> Vec<u8> {
        let short = |value: u16| if is_little { value.to_le_bytes() } else { value.to_be_bytes() };
        let long = |value: u32| if is_little { value.to_le_bytes() } else { value.to_be_bytes() };
        let field = |tag: u16, value: u16| [&short(tag)[..], &short(3), &long(1), &short(value), &[0; 2]].concat();
        let start = if is_little { b"II" } else { b"MM" };
        [&start[..], &short(42), &long(8), &short(2), &field(0x100, 7), &field(0x112, orientation)].concat()
    }

    #[test]
    fn orientations_are_read() {
        for is_little in [true, false] {
            for value in 1..=8 {
                assert_eq!(Orientation::from_exif(&exif(is_little, value.into())), Orientation(value));
            }
            for value in [0, 9, 256 + 3, u16::MAX] {
                assert_eq!(Orientation::from_exif(&exif(is_little, value)), Orientation::UPRIGHT);
            }
        }
    }

    #[test]
    fn damaged_metadata_has_no_orientation() {
        let exif = exif(true, 6);
        for length in 0..exif.len() - 2 {
            assert_eq!(Orientation::from_exif(&exif[..length]), Orientation::UPRIGHT, "{length}");
        }
        // The place of the directory, the number of fields, the type, and the number of values.
        for (place, value) in [(4, 255), (7, 255), (8, 1), (24, 4), (26, 2)] {
            let mut damaged = exif.clone();
            damaged[place] = value;
            assert_eq!(Orientation::from_exif(&damaged), Orientation::UPRIGHT, "{place}");
        }
    }

    #[test]
    fn pictures_are_turned() {
        // The rows of the picture for each orientation. It is "ab", "cd", "ef" as it was taken.
        let table = [
            (1, "ab cd ef"),
            (2, "ba dc fe"),
            (3, "fe dc ba"),
            (4, "ef cd ab"),
            (5, "ace bdf"),
            (6, "eca fdb"),
            (7, "fdb eca"),
            (8, "bdf ace"),
        ];
        for (orientation, expected) in table {
            let pixels = b"abcdef".iter().map(|&letter| [letter; 3]).collect();
            let turned = Orientation(orientation).apply(Picture { width: 2, height: 3, pixels });
            let text: Vec<u8> = turned.pixels.iter().map(|pixel| pixel[0]).collect();
            let rows: Vec<_> = text.chunks(turned.width).map(String::from_utf8_lossy).collect();
            assert_eq!((rows.join(" ").as_str(), turned.height), (expected, rows.len()), "{orientation}");
        }
    }
}
