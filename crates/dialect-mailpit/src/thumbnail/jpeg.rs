//! The markers of JPEG that tell how much memory and time the decoder takes.

use memchr::memmem;

/// The maximum number of scans. The decoder needs time for each, even if it has no data. Cameras and programs write about ten; an
/// image in the metadata has others.
const MAX_SCANS: usize = 32;
/// The marker of the frame of a progressive image.
const PROGRESSIVE_FRAME: u8 = 0xC2;
/// The marker of a scan. Compressed data follow its segment.
const SCAN: u8 = 0xDA;
/// The name of metadata that are in several segments. For each segment, the decoder reads all that came before.
const LONG_METADATA: &[u8] = b"http://ns.adobe.com/xmp/extension/\0";
/// The maximum number of such segments, which have up to 64 KiB.
const MAX_LONG_METADATA: usize = 1000;

/// Returns whether decoding could take much longer than the size of the image suggests.
pub(super) fn is_slow(content: &[u8]) -> bool {
    // What follows the image, such as a video, contains the bytes of any marker; compressed data do not.
    let image = &content[..end_of_image(content).unwrap_or(content.len())];
    let has_more = |pattern: &[u8], max: usize| memmem::find_iter(image, pattern).nth(max).is_some();
    has_more(&[0xFF, 0xDA], MAX_SCANS) || has_more(LONG_METADATA, MAX_LONG_METADATA)
}

/// Returns whether the decoder keeps all coefficients of an image until its end: if the image is progressive, or its first scan
/// does not have all colors. It is true too for headers that the decoder may read in another way than this function.
pub(super) fn is_buffered(content: &[u8]) -> bool {
    reads_in_one_scan(content) != Some(true)
}

/// Returns whether the image is sequential with all colors in one scan, or `None` if its headers are not clear.
fn reads_in_one_scan(content: &[u8]) -> Option<bool> {
    let mut rest = content.strip_prefix(&[0xFF, 0xD8])?;
    let mut colors = None;
    loop {
        let (marker, segment) = first_segment(rest)?;
        match marker {
            PROGRESSIVE_FRAME => return None,
            // The frame of a sequential image. Its last header is the number of colors.
            0xC0 | 0xC1 => colors = Some(*segment.get(5)?),
            SCAN => return Some(colors == Some(*segment.first()?)),
            _ => {}
        }
        rest = &rest[4 + segment.len()..];
    }
}

/// Returns the position of the marker at the end of the image, or `None` if its segments are not clear.
fn end_of_image(content: &[u8]) -> Option<usize> {
    let mut rest = content.strip_prefix(&[0xFF, 0xD8])?;
    while !rest.starts_with(&[0xFF, 0xD9]) {
        let (marker, segment) = first_segment(rest)?;
        rest = &rest[4 + segment.len()..];
        if marker == SCAN {
            // In compressed data, 0 follows the byte 0xFF. Markers of restarts are between them.
            let is_data = |next: u8| matches!(next, 0 | 0xD0..=0xD7 | 0xFF);
            rest = &rest[rest.windows(2).position(|pair| pair[0] == 0xFF && !is_data(pair[1]))?..];
        }
    }
    Some(content.len() - rest.len())
}

/// Returns the marker of the first segment and its content, or `None` for what the decoder may read in another way.
fn first_segment(content: &[u8]) -> Option<(u8, &[u8])> {
    let &[0xFF, marker, high, low, ..] = content else { return None };
    let length = usize::from(u16::from_be_bytes([high, low]));
    let segment = content.get(4..2 + length)?;
    let is_clear = match marker {
        // The decoder reads too much of a very short segment APP0.
        0xE0 => length >= 7,
        // Frames, tables, scans, metadata and comments.
        0xC0 | 0xC1 | PROGRESSIVE_FRAME | 0xC4 | SCAN | 0xDB | 0xDD | 0xE1..=0xEF | 0xFE => true,
        _ => false,
    };
    is_clear.then_some((marker, segment))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_depends_on_the_headers() {
        let frame = |marker: u8| [0xFF, marker, 0, 8, 8, 0, 1, 0, 1, 3].as_slice().to_vec();
        let scan = |colors: u8| vec![0xFF, 0xDA, 0, 3, colors];
        let metadata = |marker: u8| vec![0xFF, marker, 0, 7, 0xFF, 0xC2, 0, 0, 0];
        let table: [(&[Vec<u8>], bool); 14] = [
            (&[frame(0xC0), scan(3)], false),
            (&[frame(0xC1), scan(3)], false),
            (&[frame(0xC2), scan(3)], true),
            (&[frame(0xC0), scan(1)], true),
            (&[scan(3), frame(0xC0)], true),
            (&[metadata(0xE0), metadata(0xE1), metadata(0xE2), metadata(0xFE), frame(0xC0), scan(3)], false),
            (&[metadata(0xE1), frame(0xC2), scan(3)], true),
            // Another image after this one.
            (&[frame(0xC0), scan(3), vec![0xFF, 0xD9, 0xFF, 0xD8], frame(0xC2), scan(1)], false),
            (&[vec![0xFF, 0xE0, 0, 6, 0, 0, 0, 0], frame(0xC0), scan(3)], true),
            (&[vec![0xFF], frame(0xC0), scan(3)], true),
            (&[vec![0], frame(0xC0), scan(3)], true),
            (&[vec![0xFF, 0xE1, 0, 0], frame(0xC0), scan(3)], true),
            (&[frame(0xC0), vec![0xFF, 0xE1, 0xFF, 0xFF]], true),
            (&[frame(0xC0)], true),
        ];
        for (segments, expected) in table {
            let content = [&[0xFF, 0xD8], segments.concat().as_slice()].concat();
            assert_eq!(is_buffered(&content), expected, "{content:02X?}");
        }
        assert!(is_buffered(b""));
    }

    #[test]
    fn scans_are_counted_up_to_the_end_of_the_image() {
        let scan = [0xFF, 0xDA, 0, 3, 1, 7, 0xFF, 0, 0xFF, 0xD0, 8];
        let (start, end) = ([0xFF, 0xD8], [0xFF, 0xD9]);
        let few = [&start, scan.repeat(MAX_SCANS).as_slice(), &end].concat();
        let comment = |length: u8| [&[0xFF, 0xFE, 0, length][..], &end].concat();
        let table = [
            (few.clone(), false),
            ([&few[..], &scan.repeat(100)].concat(), false),
            ([&start[..], &scan.repeat(MAX_SCANS + 1), &end].concat(), true),
            // The end is in a comment, and so not the end of the image.
            ([&start[..], &comment(4), &scan.repeat(MAX_SCANS + 1), &end].concat(), true),
            ([&start[..], &scan, &comment(4), &scan.repeat(MAX_SCANS), &end].concat(), true),
            // Segments that are not clear.
            ([&start[..], &[0], &end, &scan.repeat(MAX_SCANS + 1)].concat(), true),
            ([&start[..], &comment(1), &scan.repeat(MAX_SCANS + 1)].concat(), true),
            ([&start[..], &scan.repeat(MAX_SCANS + 1)].concat(), true),
        ];
        for (content, expected) in table {
            assert_eq!(is_slow(&content), expected, "{content:02X?}");
        }
    }
}
