//! Decoding of uuencode, the encoding that preceded MIME: as the transfer encoding of a part, or inside of a text
//! between the lines `begin 644 name` and `end`. The decoded content is never longer than the encoded one.

use std::ops::Range;
use std::sync::LazyLock;

use memchr::memmem;

use super::charset::{decode_unlabelled, one_line};
use super::line::LineSpan;

/// The maximum number of bytes that one line encodes.
const MAX_LINE_BYTES: usize = 63;
/// The number of bytes that a full line encodes. Every line of a file except the last one is full.
const FULL_LINE_BYTES: usize = 45;
/// The maximum number of characters after the data of a line, such as a checksum.
const MAX_TRAILING_CHARS: usize = 2;
/// The maximum number of spaces that may be missing at the end of a line: as many as fill up its last bytes.
const MAX_LOST_BLANKS: usize = 3;

/// Finds a line that starts with `begin `. Every plain text is searched for it, so the searcher is built once.
static BEGIN: LazyLock<memmem::Finder<'static>> = LazyLock::new(|| memmem::Finder::new(b"\nbegin "));

/// A uuencoded file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Block {
    /// The range from the `begin` line to the `end` line, both included.
    pub(super) range: Range<usize>,
    /// The file name in the `begin` line.
    pub(super) name: String,
}

/// Finds the next file in a text, from `start` on. A file ends at the line `end` or at the end of the text. Ordinary
/// text that only resembles a file is skipped.
pub(super) fn find(text: &[u8], start: usize) -> Option<Block> {
    find_if(text, start, is_credible)
}

/// Finds the next file that satisfies `accepts`. Its arguments are the data lines and whether `end` follows them.
fn find_if(text: &[u8], start: usize, accepts: impl Fn(&[u8], bool) -> bool) -> Option<Block> {
    let mut pos = start;
    loop {
        pos = next_begin(text, pos)?;
        let line = LineSpan::at(text, pos);
        let Some(name) = parse_begin_line(&text[pos..line.end]) else {
            pos = line.next_start;
            continue;
        };
        // No data line starts like a `begin` line, so each line is read only once.
        let (data_end, next, ended) = find_data_end(text, line.next_start);
        if (ended || next == text.len()) && accepts(&text[line.next_start..data_end], ended) {
            return Some(Block { range: pos..next, name });
        }
        pos = next;
    }
}

/// Decodes the file in a body that declares uuencode. Returns the content and the number of invalid lines, or `None` if
/// there is no file.
pub(super) fn decode(text: &[u8]) -> Option<(Vec<u8>, usize)> {
    let block = find_if(text, 0, |data, ended| ended || !data.is_empty())?;
    let mut content = Vec::with_capacity(block.range.len() / 4 * 3);
    let mut pos = LineSpan::at(text, block.range.start).next_start;
    let (end, _, ended) = find_data_end(text, pos);
    let mut broken = usize::from(!ended);
    while pos < end {
        let line = LineSpan::at(text, pos);
        broken += usize::from(!decode_line(&text[pos..line.end], &mut content));
        pos = line.next_start;
    }
    Some((content, broken))
}

/// Returns the name of the first file in the body of a part.
pub(super) fn file_name(text: &[u8]) -> Option<String> {
    let begin = next_begin(text, 0)?;
    parse_begin_line(&text[begin..LineSpan::at(text, begin).end])
}

/// Returns whether a line of the text may be the first line of a file.
pub(super) fn has_begin_line(text: &[u8]) -> bool {
    next_begin(text, 0).is_some()
}

/// Returns the position of the next line that starts with `begin `.
fn next_begin(text: &[u8], start: usize) -> Option<usize> {
    let rest = text.get(start..)?;
    if rest.starts_with(b"begin ") {
        return Some(start);
    }
    BEGIN.find(rest).map(|at| start + at + 1)
}

/// Parses a line `begin 644 name` and returns the name. A mode of four digits must start with a zero: `begin 2024
/// plans` is text.
fn parse_begin_line(line: &[u8]) -> Option<String> {
    let rest = line.strip_prefix(b"begin ")?;
    let mode = rest.iter().take_while(|b| matches!(b, b'0'..=b'7')).count();
    let name = rest[mode..].strip_prefix(b" ")?;
    let name = one_line(&decode_unlabelled(name));
    let is_mode = mode == 3 || mode == 4 && rest[0] == b'0';
    (is_mode && !name.is_empty()).then_some(name)
}

/// Returns the end of the data lines from `start` on, the position where the text continues, and whether an `end` line
/// was found.
fn find_data_end(text: &[u8], start: usize) -> (usize, usize, bool) {
    let mut pos = start;
    while pos < text.len() {
        let line = LineSpan::at(text, pos);
        let content = &text[pos..line.end];
        if content.trim_ascii_end() == b"end" {
            return (pos, line.next_start, true);
        }
        if !is_data_line(content) {
            return (pos, pos, false);
        }
        pos = line.next_start;
    }
    (pos, pos, false)
}

/// Returns whether a line can contain data: a length, and not more characters than the length allows. Spaces at its end
/// may be missing.
fn is_data_line(line: &[u8]) -> bool {
    let Some((&first, rest)) = line.split_first() else { return true };
    let Some(length) = decode_digit(first) else { return false };
    rest.len() <= usize::from(length).div_ceil(3) * 4 + MAX_TRAILING_CHARS
        && rest.iter().all(|&b| decode_digit(b).is_some())
}

/// Returns whether lines that can contain data are a file and not words in capitals. All lines except the last one must
/// declare the same length and have it. Longer runs of spaces, or `end`, may be missing if at least one full line is
/// complete.
fn is_credible(data: &[u8], ended: bool) -> bool {
    let mut first_length = None;
    let (mut is_last, mut has_full, mut has_short) = (false, false, false);
    let mut pos = 0;
    while pos < data.len() {
        let line = LineSpan::at(data, pos);
        let content = &data[pos..line.end];
        pos = line.next_start;
        let length = content.first().copied().and_then(decode_digit).map_or(0, usize::from);
        if length == 0 {
            continue;
        }
        let first = *first_length.get_or_insert(length);
        if is_last || length > first {
            return false;
        }
        is_last = length < first;
        let characters = length.div_ceil(3) * 4;
        has_full |= length == FULL_LINE_BYTES && content.len() > characters;
        has_short |= content.len() + MAX_LOST_BLANKS <= characters;
    }
    first_length.is_some() && (has_full || ended && !has_short)
}

/// Appends the data of a line. Returns whether the line is complete.
fn decode_line(line: &[u8], content: &mut Vec<u8>) -> bool {
    let Some((&first, rest)) = line.split_first() else { return true };
    let length = decode_digit(first).map_or(0, usize::from).min(MAX_LINE_BYTES);
    let groups = rest.chunks(4).take(length.div_ceil(3));
    let start = content.len();
    for group in groups {
        let bits = (0..4).fold(0_u32, |bits, n| {
            bits << 6 | u32::from(group.get(n).copied().and_then(decode_digit).unwrap_or_default())
        });
        content.extend_from_slice(&bits.to_be_bytes()[1..]);
    }
    let is_complete = content.len() - start >= length;
    content.truncate(start + length);
    is_complete
}

/// Returns the value of a character: six bits. The grave accent replaces the space.
fn decode_digit(byte: u8) -> Option<u8> {
    matches!(byte, b' '..=b'`').then(|| (byte - b' ') & 63)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "begin 644 hello.txt\n+2&5L;&\\@=V]R;&0 \n`\nend\n";

    #[test]
    fn finds_and_decodes_files() {
        assert_eq!(decode(FILE.as_bytes()), Some((b"Hello world".to_vec(), 0)));
        assert_eq!(decode(FILE.replace('\n', "\r\n").as_bytes()), Some((b"Hello world".to_vec(), 0)));
        let text = format!("Hi,\n{FILE}Jane\n");
        let block = find(text.as_bytes(), 0);
        assert_eq!(block, Some(Block { range: 4..4 + FILE.len(), name: "hello.txt".to_owned() }));
        assert_eq!(file_name(text.as_bytes()).as_deref(), Some("hello.txt"));
    }

    #[test]
    fn ignores_text_that_resembles_a_file() {
        let table = [
            "begin with me\nend\n",
            "begin 644 x\nthis is no data\nend\n",
            "begin 9 x\n`\nend\n",
            "begin 644 \n`\nend\n",
            "begin 644 x\n",
            "we begin 644 x\n`\nend\n",
            "begin 644 x\n`\nend\n",
            "begin 644 cut\n+2&5L;&\\@=V]R;&0\n",
            "begin 2024 budget planning\nSOON\nOK\n",
            "begin 2024 budget planning\n#2&5L\n`\nend\n",
            "begin 100 metres before the\nend\n",
            "begin 100 metres before the\nSOON\nend\n",
            "begin 100 metres before the\n\"YES\"\nSOON\nend\n",
            "begin 100 metres before the\n\n\nend\n",
            "",
        ];
        for text in table {
            assert_eq!(find(text.as_bytes(), 0), None, "{text}");
        }
    }

    #[test]
    fn accepts_lines_without_trailing_spaces() {
        let full = format!("M{}\n", "2&5L".repeat(15));
        let table = [
            "begin 644 x\n#2&5L\n\nend\n".to_owned(),
            "begin 644 x\n+2&5L;&\\@=V]R;&0\n`\nend\n".to_owned(),
            format!("begin 644 x\n{full}"),
            format!("begin 0644 x\nM\n{full}M2&5L\n#2\n\nend\n"),
        ];
        for text in table {
            assert_eq!(find(text.as_bytes(), 0).map(|block| block.range), Some(0..text.len()), "{text}");
        }
    }

    #[test]
    fn decodes_damaged_files() {
        let table: &[(&str, &[u8], usize)] = &[
            ("begin 644 cut\n+2&5L;&\\@=V]R;&0\n", b"Hello world", 1),
            ("begin 644 cut\n+2&5L;&\\@\n`\nend", b"Hello ", 1),
            ("begin 644 empty\nend\n", b"", 0),
            ("begin 644 checksum\n#2&5L8A\n`\nend\n", b"Hel", 0),
            ("begin 644 first\nno data\nbegin 644 second\n#2&5L\n`\nend\n", b"Hel", 0),
        ];
        for (text, content, broken) in table {
            assert_eq!(decode(text.as_bytes()), Some((content.to_vec(), *broken)), "{text}");
        }
    }
}
