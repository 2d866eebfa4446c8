//! Lines of a message source. They end in CRLF, or in a bare LF if the sender is not compliant.

use memchr::memchr;

/// The end of a line's text and the start of the next line.
pub(super) struct LineSpan {
    pub(super) end: usize,
    pub(super) next_start: usize,
}

impl LineSpan {
    pub(super) fn at(source: &[u8], start: usize) -> Self {
        match memchr(b'\n', &source[start..]) {
            Some(offset) => {
                let feed = start + offset;
                let cr = feed > start && source[feed - 1] == b'\r';
                Self { end: feed - usize::from(cr), next_start: feed + 1 }
            }
            None => Self { end: source.len(), next_start: source.len() },
        }
    }
}
