//! Scales an image to a smaller picture. A pixel of the picture is the mean of the area of the image that it covers. The rows
//! are added one by one, so that a decoder does not have to keep them, and the time is that of adding each pixel once.

use super::{HEIGHT, WIDTH};

pub(super) type Rgb = [u8; 3];
pub(super) const WHITE: Rgb = [255; 3];

/// An image that is not larger than the box that it was scaled to.
#[derive(Debug)]
pub(super) struct Picture {
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) pixels: Vec<Rgb>,
}

/// The part of a side of an image that is in the picture, and its length there.
#[derive(Clone, Copy, Debug)]
struct Span {
    start: usize,
    length: usize,
    scaled: usize,
}

impl Span {
    /// Returns a span of `length` pixels in the middle of a side.
    fn middle(side: usize, length: usize, scaled: usize) -> Self {
        Self { start: (side - length) / 2, length, scaled }
    }

    /// Returns where a pixel of the picture ends: the number of whole pixels of the image, and the part of the next one, as a
    /// fraction of `scaled`.
    fn end(self, pixel: usize) -> (usize, usize) {
        let end = (pixel + 1) * self.length;
        (end / self.scaled, end % self.scaled)
    }
}

/// Returns the columns and the rows of an image that are in the picture. It fills the box if both of its sides are large
/// enough, otherwise it fits into the box. A small image is not enlarged.
fn spans(width: usize, height: usize, box_width: usize, box_height: usize) -> (Span, Span) {
    let is_wide = width * box_height > height * box_width;
    let scaled = |side: usize, numerator: usize, denominator: usize| (side * numerator + denominator / 2) / denominator;
    if width >= box_width && height >= box_height {
        // The rest of the longer side is cut off.
        let (columns, rows) = if is_wide {
            (scaled(height, box_width, box_height), height)
        } else {
            (width, scaled(width, box_height, box_width))
        };
        (Span::middle(width, columns, box_width), Span::middle(height, rows, box_height))
    } else {
        let (columns, rows) = if width <= box_width && height <= box_height {
            (width, height)
        } else if is_wide {
            (box_width, scaled(height, box_width, width).max(1))
        } else {
            (scaled(width, box_height, height).max(1), box_height)
        };
        (Span::middle(width, width, columns), Span::middle(height, height, rows))
    }
}

/// Scales an image whose rows are added from the top to the bottom.
#[derive(Debug)]
pub(super) struct Scaler {
    columns: Span,
    rows: Span,
    /// The end of each column of the picture, see [`Span::end`].
    column_ends: Vec<(usize, usize)>,
    /// The number of rows of the image that were added.
    added: usize,
    /// The sums of all pixels above the current row, for each column of the picture.
    sums: Vec<[u64; 3]>,
    /// The same at the end of the last row of the picture.
    sums_before: Vec<[u64; 3]>,
    pixels: Vec<Rgb>,
}

impl Scaler {
    /// Creates a scaler for an image that is turned later if `is_turned`.
    pub(super) fn new(width: usize, height: usize, is_turned: bool) -> Self {
        let (box_width, box_height) = (usize::from(WIDTH), usize::from(HEIGHT));
        let (box_width, box_height) = if is_turned { (box_height, box_width) } else { (box_width, box_height) };
        let (columns, rows) = spans(width, height, box_width, box_height);
        Self {
            columns,
            rows,
            column_ends: (0..columns.scaled).map(|column| columns.end(column)).collect(),
            added: 0,
            sums: vec![[0; 3]; columns.scaled],
            sums_before: vec![[0; 3]; columns.scaled],
            pixels: Vec::with_capacity(columns.scaled * rows.scaled),
        }
    }

    /// Adds the next row of the image.
    pub(super) fn add(&mut self, row: &[Rgb]) {
        let number = self.added;
        self.added += 1;
        let Some(number) = number.checked_sub(self.rows.start).filter(|&number| number < self.rows.length) else {
            return;
        };
        let row = self.sums_of(&row[self.columns.start..][..self.columns.length]);
        // At most one row of the picture ends in this row, or at its end.
        let (whole, part) = self.rows.end(self.pixels.len() / self.columns.scaled);
        if whole == number {
            self.write_row(&row, part);
        }
        for (sum, value) in self.sums.as_flattened_mut().iter_mut().zip(row.as_flattened()) {
            *sum += u64::from(*value);
        }
        let (whole, part) = self.rows.end(self.pixels.len() / self.columns.scaled);
        if (whole, part) == (number + 1, 0) {
            self.write_row(&row, 0);
        }
    }

    /// Returns the sums of the pixels of a row, for each column of the picture. A whole pixel counts `columns.scaled` times.
    fn sums_of(&self, row: &[Rgb]) -> Vec<[u32; 3]> {
        // The largest side, times 255, times the width of the picture, is less than the largest number.
        let weight = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let scaled = weight(self.columns.scaled);
        let (mut sum, mut before, mut start) = ([0; 3], [0; 3], 0);
        let sums = self.column_ends.iter().map(|&(end, part)| {
            for pixel in &row[start..end] {
                sum = [0, 1, 2].map(|color| sum[color] + u32::from(pixel[color]));
            }
            start = end;
            let next = row.get(end).filter(|_| part > 0).unwrap_or(&[0; 3]);
            let here = [0, 1, 2].map(|color| sum[color] * scaled + u32::from(next[color]) * weight(part));
            let column = [0, 1, 2].map(|color| here[color] - before[color]);
            before = here;
            column
        });
        sums.collect()
    }

    /// Writes a row of the picture. It ends after `part` of the current row of the image.
    fn write_row(&mut self, row: &[[u32; 3]], part: usize) {
        let scaled = self.rows.scaled as u64;
        let area = (self.columns.length * self.rows.length) as u64;
        for ((sum, before), row) in self.sums.iter().zip(&mut self.sums_before).zip(row) {
            let here = [0, 1, 2].map(|color| sum[color] * scaled + u64::from(row[color]) * part as u64);
            let mean = |color: usize| (here[color] - before[color] + area / 2) / area;
            self.pixels.push([0, 1, 2].map(|color| u8::try_from(mean(color)).unwrap_or(u8::MAX)));
            *before = here;
        }
    }

    /// Returns the picture, or `None` if rows are missing.
    pub(super) fn finish(self) -> Option<Picture> {
        let (width, height) = (self.columns.scaled, self.rows.scaled);
        (self.pixels.len() == width * height).then_some(Picture { width, height, pixels: self.pixels })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scaled(width: usize, height: usize, pixel: impl Fn(usize, usize) -> Rgb) -> Picture {
        let mut scaler = Scaler::new(width, height, false);
        for y in 0..height {
            scaler.add(&(0..width).map(|x| pixel(x, y)).collect::<Vec<_>>());
        }
        scaler.finish().unwrap()
    }

    #[test]
    fn images_fill_the_box_or_fit_into_it() {
        // The size of the image, the size of the picture, and the first column and row of the image in it.
        let table = [
            ((180, 120), (180, 120), (0, 0)),
            ((360, 240), (180, 120), (0, 0)),
            ((400, 240), (180, 120), (20, 0)),
            ((360, 300), (180, 120), (0, 30)),
            ((16_384, 120), (180, 120), (8102, 0)),
            ((180, 16_384), (180, 120), (0, 8132)),
            ((1, 1), (1, 1), (0, 0)),
            ((179, 119), (179, 119), (0, 0)),
            ((360, 60), (180, 30), (0, 0)),
            ((60, 240), (30, 120), (0, 0)),
            ((16_384, 1), (180, 1), (0, 0)),
            ((1, 16_384), (1, 120), (0, 0)),
            ((181, 119), (180, 118), (0, 0)),
        ];
        for ((width, height), size, start) in table {
            let (columns, rows) = spans(width, height, 180, 120);
            assert_eq!((columns.scaled, rows.scaled), size, "{width} {height}");
            assert_eq!((columns.start, rows.start), start, "{width} {height}");
            let picture = scaled(width, height, |_, _| [9, 99, 199]);
            assert_eq!((picture.width, picture.height), size);
            assert!(picture.pixels.iter().all(|&pixel| pixel == [9, 99, 199]), "{width} {height}");
        }
    }

    #[test]
    fn pixels_are_means_of_the_area() {
        // The second half of a pixel of the image is in the next pixel of the picture.
        let picture = scaled(270, 180, |x, y| [[0, 90, 240][x % 3], [0, 90, 240][y % 3], 255]);
        for (index, pixel) in picture.pixels.iter().enumerate() {
            let mean = |number: usize| [30, 190][number % 2];
            assert_eq!(*pixel, [mean(index % 180), mean(index / 180), 255], "{index}");
        }
    }

    #[test]
    fn small_images_stay_as_they_are() {
        let pixel = |x: usize, y: usize| [x, y, x * y].map(|value| u8::try_from(value % 256).unwrap());
        let picture = scaled(100, 119, pixel);
        assert_eq!((picture.width, picture.height), (100, 119));
        for (index, value) in picture.pixels.iter().enumerate() {
            assert_eq!(*value, pixel(index % 100, index / 100));
        }
    }

    #[test]
    fn pictures_need_all_rows() {
        let mut scaler = Scaler::new(2, 2, false);
        scaler.add(&[WHITE; 2]);
        assert!(scaler.finish().is_none());
    }
}
