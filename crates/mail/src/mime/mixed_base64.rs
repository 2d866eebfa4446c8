//! Decoding of bodies that declare base64 but are not only base64: text that was never encoded, a footer that a mailing
//! list added after the padding, or several encoded segments in sequence. Base64 is decoded, other text is kept.

use std::ops::Range;

use super::base64::{
    DecodedContent, ExpectedContent, decode_base64, has_non_text_controls, is_base64_digit, is_plain_utf8,
};
use super::line::LineSpan;

/// A run of at least this many digits is base64, regardless of its content: no word is that long.
const LONG_RUN_DIGITS: usize = 60;
/// A run with padding, or in an unknown charset, must have this many digits to be base64 regardless of its content.
const MEDIUM_RUN_DIGITS: usize = 16;
/// An incomplete run must have this many digits.
const INCOMPLETE_RUN_DIGITS: usize = 6;
/// One foreign character is allowed per this number of characters of a damaged line.
const CHARACTERS_PER_FOREIGN: usize = 8;
/// Lines of one run have the same length; only the last may be shorter. A damaged line may be longer by this number of
/// characters.
const LINE_TOLERANCE: usize = 3;

/// Decodes the runs of base64 in a body. Lines between them are kept if the content is text, otherwise dropped.
pub(super) fn decode(encoded: &[u8], expected: ExpectedContent) -> DecodedContent<Vec<u8>> {
    let mut output = Output { encoded, expected, written: Vec::new(), copied_to: 0, broken: 0, foreign_lines: 0 };
    let mut run: Option<Run> = None;
    let mut pos = 0;
    while pos < encoded.len() {
        let line = LineSpan::at(encoded, pos);
        let end = pos + encoded[pos..line.end].trim_ascii_end().len();
        for segment in (Segments { encoded, rest: pos..end }) {
            let Some(found) = Run::from_segment(encoded, segment, expected) else {
                output.end_run(run.take());
                continue;
            };
            let padded = found.padding > 0;
            run = match run.take() {
                Some(open) if open.continues_with(&found, expected) => Some(open.join(&found)),
                other => {
                    output.end_run(other);
                    Some(found)
                }
            };
            if padded {
                output.end_run(run.take());
            }
        }
        pos = line.next_start;
    }
    output.end_run(run);
    output.finish()
}

/// The segments of one line without trailing whitespace. A segment ends with padding or with the line. Whitespace
/// around segments is omitted.
struct Segments<'a> {
    encoded: &'a [u8],
    rest: Range<usize>,
}

impl Iterator for Segments<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        let text = &self.encoded[self.rest.clone()];
        let start = self.rest.start + text.iter().position(|b| !b.is_ascii_whitespace())?;
        let text = &self.encoded[start..self.rest.end];
        let padding = memchr::memchr(b'=', text).unwrap_or(text.len());
        let after = text[padding..].iter().position(|&b| b != b'=').map_or(text.len(), |len| padding + len);
        // Some gateways end a line with an exclamation mark.
        let rest = &text[after..];
        let end = if rest.iter().all(|&b| b == b'!') { text.len() } else { after };
        self.rest.start = start + end;
        Some(start..start + text[..end].trim_ascii_end().len())
    }
}

/// A sequence of lines that look like base64.
#[derive(Clone)]
struct Run {
    range: Range<usize>,
    digits: usize,
    padding: usize,
    foreign: usize,
    /// The length of the last line.
    last_len: usize,
    /// The number of digits of the last line, and its start.
    last_digits: usize,
    last_start: usize,
}

impl Run {
    /// Creates a run of one segment if the segment can be base64: it contains no whitespace and almost no foreign
    /// characters. A file contains no words, so one foreign character is tolerated in a segment of any length.
    fn from_segment(encoded: &[u8], range: Range<usize>, expected: ExpectedContent) -> Option<Self> {
        let text = &encoded[range.clone()];
        if text.iter().any(u8::is_ascii_whitespace) {
            return None;
        }
        let digits = text.iter().filter(|&&b| is_base64_digit(b)).count();
        let padding = memchr::memchr_iter(b'=', text).count();
        let marks = text.iter().rev().take_while(|&&b| b == b'!').count();
        let foreign = text.len() - digits - padding - marks;
        let tolerated = (text.len() / CHARACTERS_PER_FOREIGN).max(usize::from(expected == ExpectedContent::Binary));
        (digits > 0 && foreign <= tolerated).then(|| Self {
            last_len: text.len() - marks,
            last_digits: digits,
            last_start: range.start,
            range,
            digits,
            padding,
            foreign,
        })
    }

    /// Returns whether the next line belongs to this run. In a file, a line that ends within a group of four digits is
    /// continued.
    fn continues_with(&self, next: &Self, expected: ExpectedContent) -> bool {
        let is_split_group = expected == ExpectedContent::Binary && self.padding == 0 && !self.digits.is_multiple_of(4);
        is_split_group || next.last_len <= self.last_len + LINE_TOLERANCE
    }

    fn join(self, next: &Self) -> Self {
        Self {
            range: self.range.start..next.range.end,
            digits: self.digits + next.digits,
            padding: next.padding,
            foreign: self.foreign + next.foreign,
            ..*next
        }
    }

    /// Decodes the run if it is base64. Words can look like base64, but they do not decode to text.
    fn decode(&self, encoded: &[u8], expected: ExpectedContent, first: bool) -> Option<Vec<u8>> {
        let complete = match self.padding {
            0 => self.digits.is_multiple_of(4),
            _ => self.digits % 4 > 1,
        };
        let (decoded, _) = decode_base64(&encoded[self.range.clone()]);
        let decodes_to_text = match expected {
            ExpectedContent::Binary => {
                let is_certain = self.padding > 0 || self.digits >= MEDIUM_RUN_DIGITS;
                return (first || complete && is_certain && self.foreign == 0).then_some(decoded);
            }
            ExpectedContent::Utf8Text => is_plain_utf8(&decoded),
            ExpectedContent::Text => !has_non_text_controls(&decoded) && self.digits >= MEDIUM_RUN_DIGITS,
        };
        let long = self.digits >= LONG_RUN_DIGITS || self.padding > 0 && complete && self.digits >= MEDIUM_RUN_DIGITS;
        let padded = expected == ExpectedContent::Text && self.padding > 0 && complete;
        let enough = complete || self.digits >= INCOMPLETE_RUN_DIGITS;
        (enough && decodes_to_text || self.foreign == 0 && (long || padded)).then_some(decoded)
    }

    /// Returns the run without its last line if that line makes it incomplete and is a word, not the truncated end of
    /// the run.
    fn without_trailing_word(&self, encoded: &[u8]) -> Option<Self> {
        let digits = self.digits - self.last_digits;
        let word = &encoded[self.last_start..self.range.end];
        if digits == 0 || self.padding > 0 || self.digits.is_multiple_of(4) || !digits.is_multiple_of(4) {
            return None;
        }
        let end = self.range.start + encoded[self.range.start..self.last_start].trim_ascii_end().len();
        let is_word = word.iter().all(u8::is_ascii_alphabetic) && !is_plain_utf8(&decode_base64(word).0);
        is_word.then(|| Self { range: self.range.start..end, digits, ..self.clone() })
    }
}

/// The content decoded so far.
struct Output<'a> {
    encoded: &'a [u8],
    expected: ExpectedContent,
    written: Vec<u8>,
    /// The position up to which the body was written or dropped.
    copied_to: usize,
    broken: usize,
    foreign_lines: usize,
}

impl Output<'_> {
    fn end_run(&mut self, run: Option<Run>) {
        let Some(run) = run else { return };
        let is_text = self.expected != ExpectedContent::Binary;
        let run = if is_text { run.without_trailing_word(self.encoded).unwrap_or(run) } else { run };
        let Some(decoded) = run.decode(self.encoded, self.expected, self.written.is_empty()) else { return };
        self.write_foreign(run.range.start);
        self.written.extend_from_slice(&decoded);
        self.broken += run.foreign + usize::from(run.padding == 0 && !run.digits.is_multiple_of(4));
        self.copied_to = run.range.end;
        // The line break after the run is not part of the text that follows.
        let rest = &self.encoded[self.copied_to..];
        let blanks = rest.iter().take_while(|b| matches!(b, b' ' | b'\t' | b'\r')).count();
        if rest.get(blanks) == Some(&b'\n') {
            self.copied_to += blanks + 1;
        }
    }

    /// Writes the text before `end` that is not base64.
    fn write_foreign(&mut self, end: usize) {
        let foreign = &self.encoded[self.copied_to..end];
        self.copied_to = end;
        let lines = foreign.split(|&b| b == b'\n').filter(|line| !line.trim_ascii().is_empty()).count();
        self.foreign_lines += lines;
        if lines == 0 || self.expected == ExpectedContent::Binary {
            return;
        }
        if !self.written.is_empty() && !self.written.ends_with(b"\n") {
            self.written.push(b'\n');
        }
        self.written.extend_from_slice(foreign);
    }

    fn finish(mut self) -> DecodedContent<Vec<u8>> {
        self.write_foreign(self.encoded.len());
        // A file that was never encoded must not be lost.
        if self.expected == ExpectedContent::Binary && self.written.is_empty() {
            self.written = self.encoded.to_vec();
        }
        DecodedContent { content: self.written, broken: self.broken, foreign_lines: self.foreign_lines }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decodes_base64_inside_of_text() {
        let table: &[(&str, &str)] = &[
            // Never encoded.
            ("Hello Sam,\n\nthis is no base64 at all.\n\nJane\n", "Hello Sam,\n\nthis is no base64 at all.\n\nJane\n"),
            ("Hello\nSam\n", "Hello\nSam\n"),
            // A footer after the padding, with and without a blank line.
            ("SGVsbG8gU2Ft\nIQ==\n____\nTea list\n", "Hello Sam!\n____\nTea list\n"),
            ("SGVsbG8gU2FtIQ==\n\n--\nTea list\nJane\n", "Hello Sam!\n\n--\nTea list\nJane\n"),
            // A footer after a text that needs no padding.
            ("SGVsbG8gU2FtIQoK\nRegards\n-- \nTea list", "Hello Sam!\n\nRegards\n-- \nTea list"),
            // The same before the text.
            ("[External mail]\nSGVsbG8gU2FtIQ==\n", "[External mail]\nHello Sam!"),
            ("Notice\nSGVsbG8gU2FtIQ==\n", "Notice\nHello Sam!"),
            // Segments that were encoded separately.
            ("SGVs\nbG8=\nIFNhbQ==\nISEh\n", "Hello Sam!!!"),
            ("SGk=SGk=", "HiHi"),
            ("SGVsbG8gU2FtIQ==\nfooter here\nQnllIGZvciBub3chCg==\n", "Hello Sam!\nfooter here\nBye for now!\n"),
            // Blank lines, blanks, exclamation marks.
            ("\n\nSGVsbG8g\n\n  U2FtIQ==  \n\n", "Hello Sam!"),
            ("SGVsbG8g!\n U2FtIQ==!\n", "Hello Sam!"),
            ("SGVsbG8s!IHdv\ncmxkIQ", "Hello, world!"),
            // Text on the line of the padding.
            ("SGVsbG8gU2FtIQ== sent by phone", "Hello Sam!\n sent by phone"),
        ];
        for (encoded, text) in table {
            let found = decode(encoded.as_bytes(), ExpectedContent::Utf8Text);
            assert_eq!(String::from_utf8_lossy(&found.content), *text, "{encoded:?}");
        }
    }

    #[test]
    fn drops_foreign_lines_of_files() {
        let found = decode(b"AAEC\r\nAwQ=\r\n____\r\nTea mailing list\r\n", ExpectedContent::Binary);
        assert_eq!(found, DecodedContent { content: vec![0, 1, 2, 3, 4], broken: 0, foreign_lines: 2 });
        let found = decode(b"[External]\r\nYWJj*\r\n", ExpectedContent::Binary);
        assert_eq!(found, DecodedContent { content: b"abc".to_vec(), broken: 1, foreign_lines: 1 });
        // Lines of any length, and a foreign character.
        let found = decode(b"AAECAwQFBg\r\ncICQoLDA0ODxARE\r\nhMUFRYX*\r\n", ExpectedContent::Binary);
        assert_eq!((found.content, found.broken), ((0..24).collect(), 1));
    }

    #[test]
    fn keeps_files_that_were_never_encoded() {
        for file in ["%PDF-1.4 ...", "{\"key\": \"value\"}\r\n"] {
            let found = decode(file.as_bytes(), ExpectedContent::Binary);
            assert_eq!((found.content, found.foreign_lines), (file.as_bytes().to_vec(), 1), "{file}");
        }
    }

    #[test]
    fn decodes_text_in_other_charsets() {
        let found = decode(b"8NLJ18XU\r\n____\r\n", ExpectedContent::Text);
        assert_eq!(found.content, b"8NLJ18XU\r\n____\r\n", "too short to detect");
        let found = decode(b"8NLJ18XULCDLwcsgxMXMwT8=\r\n____\r\n", ExpectedContent::Text);
        assert_eq!(found.content, b"\xf0\xd2\xc9\xd7\xc5\xd4, \xcb\xc1\xcb \xc4\xc5\xcc\xc1?\n____\r\n");
    }
}
