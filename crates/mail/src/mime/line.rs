//! Lines of a mail's source, which end in CRLF or, in mails that were written carelessly, in a bare LF.

use memchr::memchr;

/// A line of the source: where its text ends and where the next line starts.
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
