//! Line numbers of offsets in a text.

/// The number of bytes between two offsets whose line is stored.
const BLOCK_BYTES: usize = 256;

/// Converts offsets in a text to line numbers.
pub(crate) struct Lines<'a> {
    text: &'a str,
    /// The number of line feeds before each block.
    before: Vec<u32>,
}

impl<'a> Lines<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        let mut total = 0;
        let before = text.as_bytes().chunks(BLOCK_BYTES).map(|block| {
            let before = total;
            total += count_line_feeds(block);
            before
        });
        Self { text, before: before.collect() }
    }

    /// Returns the number of the line that contains the offset. The first line is 1.
    pub(crate) fn line(&self, offset: usize) -> u32 {
        let offset = offset.min(self.text.len());
        let block = offset / BLOCK_BYTES;
        let before = self.before.get(block).or(self.before.last()).copied().unwrap_or(0);
        let start = if block < self.before.len() { block } else { block.saturating_sub(1) } * BLOCK_BYTES;
        1 + before + count_line_feeds(&self.text.as_bytes()[start..offset])
    }

    /// Returns the offset of a slice of the text.
    pub(crate) fn offset_of(&self, slice: &str) -> usize {
        slice.as_ptr().addr().saturating_sub(self.text.as_ptr().addr())
    }
}

fn count_line_feeds(bytes: &[u8]) -> u32 {
    memchr::memchr_iter(b'\n', bytes).fold(0, |count, _| count + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_lines() {
        let text = format!("a\nb{}\nc", "\r\n".repeat(1000));
        let lines = Lines::new(&text);
        let expected = |offset: usize| text[..offset].split('\n').count();
        for offset in 0..=text.len() {
            assert_eq!(lines.line(offset) as usize, expected(offset), "{offset}");
        }
        assert_eq!(Lines::new("").line(5), 1);
        assert_eq!(Lines::new(&"\n".repeat(BLOCK_BYTES)).line(BLOCK_BYTES), 257);
        assert_eq!(lines.offset_of(&text[2..3]), 2);
    }
}
