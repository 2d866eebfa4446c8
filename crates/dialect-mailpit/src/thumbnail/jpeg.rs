//! The markers of JPEG that tell how much memory and time the decoder takes.

use memchr::memmem;

/// The maximum number of scans. The decoder needs time for each, even if it has no data. Cameras and programs write about ten; an
/// image in the metadata or after this one has others.
const MAX_SCANS: usize = 32;
/// The name of metadata that are in several segments. For each segment, the decoder reads all that came before.
const LONG_METADATA: &[u8] = b"http://ns.adobe.com/xmp/extension/\0";
/// The maximum number of such segments, which have up to 64 KiB.
const MAX_LONG_METADATA: usize = 1000;

/// Returns whether decoding could take much longer than the size of the image suggests.
pub(super) fn is_slow(content: &[u8]) -> bool {
    // The marker of a scan is not in compressed data.
    let has_more = |pattern: &[u8], max: usize| memmem::find_iter(content, pattern).nth(max).is_some();
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
        let &[0xFF, marker, high, low, ..] = rest else { return None };
        let length = usize::from(u16::from_be_bytes([high, low]));
        let segment = rest.get(4..2 + length)?;
        match marker {
            // The frame of a sequential image. Its last header is the number of colors.
            0xC0 | 0xC1 => colors = Some(*segment.get(5)?),
            // The scan. Compressed data follow.
            0xDA => return Some(colors == Some(*segment.first()?)),
            // The decoder reads too much of a very short segment APP0.
            0xE0 if length >= 7 => {}
            // Tables, metadata and comments.
            0xC4 | 0xDB | 0xDD | 0xE1..=0xEF | 0xFE => {}
            _ => return None,
        }
        rest = &rest[2 + length..];
    }
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
}
