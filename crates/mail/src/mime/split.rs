//! The splitter: finds the parts of a message in one pass over its bytes. It does not recurse and does not copy. The
//! open multiparts are an explicit stack, and everything that a sender could enlarge has a limit. A message/rfc822 part
//! is a leaf: its content is another message.

use std::collections::HashSet;

use bytes::Bytes;
use memchr::memmem;

use super::defect::{Defect, Defects};
use super::header::{self, Fields, HeaderField, RawField};
use super::line::LineSpan;
use super::part::{ContentFields, Part};
use super::transfer_encoding::TransferEncoding;
use super::uuencode;

/// The maximum depth of nested multiparts. A deeper multipart is not split: it is a file, or a text if the message has no
/// other text.
pub const MAX_DEPTH: usize = 50;
/// The maximum number of parts. The rest of the message stays in the last part.
pub const MAX_PARTS: usize = 1000;
/// The maximum number of header fields that are kept. Of the others, only those that describe the content are used.
pub const MAX_FIELDS: usize = 1000;
/// The number of bytes that are searched for the boundary of a multipart that declares none.
const BOUNDARY_SEARCH_BYTES: usize = 16 * 1024;
/// The maximum number of declared boundaries that are remembered, and the maximum length of one, in bytes.
const MAX_DECLARED_BOUNDARIES: usize = 1000;
const MAX_BOUNDARY_BYTES: usize = 256;

/// The maximum number of comparisons of a line with an open boundary on the path of a delivery: about ten milliseconds.
/// Ordinary messages need a few hundred.
const MAX_COMPARISONS: usize = 400_000;
/// The cost of a line that may be a delimiter, in comparisons, in addition to one for each open boundary.
const LINE_COMPARISONS: usize = 8;
/// The cost of a search for a boundary that is not declared, in comparisons.
const GUESS_COMPARISONS: usize = 4096;

/// The parts of a message, depth first, and the header of the message.
pub(super) struct Split {
    pub(super) header: Vec<HeaderField>,
    pub(super) parts: Vec<Part>,
    pub(super) defects: Defects,
    /// Whether the header has more fields than are kept.
    pub(super) omits_fields: bool,
    /// Whether the message has parts that were not found because of a limit.
    pub(super) omits_parts: bool,
}

/// Splits a message into its parts. There is always at least one.
pub(super) fn split(source: &Bytes) -> Split {
    let mut splitter = Splitter::new(source);
    let (mut header, mut omits_fields) = (Vec::new(), false);
    let body = splitter.begin_part(None, 0, |field| {
        if header.len() < MAX_FIELDS {
            header.push(HeaderField::new(source, field));
        } else {
            omits_fields = true;
        }
    });
    splitter.split_body(body);
    let Splitter { parts, defects, omits_parts, .. } = splitter;
    Split { header, parts, defects, omits_fields, omits_parts }
}

/// Splits a message by the rules of MIME alone. See [`mime_parts`](super::mime_parts).
pub(super) fn split_structure(source: &[u8]) -> Vec<Part> {
    let mut splitter = Splitter { is_structure: true, ..Splitter::new(source) };
    let body = splitter.begin_part(None, 0, |_| ());
    splitter.split_body(body);
    splitter.parts[0].body.end = source.len();
    splitter.parts
}

/// Splits a message whose header was already parsed. `root` is the message itself, with the ranges of its header and
/// its body. After [`MAX_COMPARISONS`], the rest of the message stays in the last part. Also returns whether the message has
/// parts that were not found because of a limit.
pub(super) fn split_parts(source: &[u8], root: Part) -> (Vec<Part>, bool) {
    let mut splitter = Splitter { comparisons_left: MAX_COMPARISONS, ..Splitter::new(source) };
    let body = root.body.start;
    splitter.add_part(root);
    splitter.split_body(body);
    (splitter.parts, splitter.omits_parts)
}

/// A multipart whose end was not found yet.
struct OpenMultipart {
    part: usize,
    boundary: Vec<u8>,
    /// The number of parts that were found in it.
    children: usize,
}

struct Splitter<'a> {
    source: &'a [u8],
    parts: Vec<Part>,
    open: Vec<OpenMultipart>,
    /// The part that the current lines belong to. `None` in a preamble or an epilogue.
    leaf: Option<usize>,
    /// The first multipart that was not opened because of its depth.
    unopened: Option<usize>,
    declared: DeclaredBoundaries,
    /// Whether blank parts are kept, texts are not searched for uuencoded files, and multiparts include their closing
    /// boundary and their epilogue.
    is_structure: bool,
    /// The multiparts whose closing boundary was found, but not the end of their epilogue, and their depth. Only if
    /// `is_structure` is set.
    closed: Vec<(usize, usize)>,
    /// The number of comparisons of a line with a boundary that are still permitted.
    comparisons_left: usize,
    defects: Defects,
    /// Whether parts were not found because of a limit.
    omits_parts: bool,
}

impl<'a> Splitter<'a> {
    fn new(source: &'a [u8]) -> Self {
        Self {
            source,
            parts: Vec::new(),
            open: Vec::new(),
            leaf: None,
            unopened: None,
            declared: DeclaredBoundaries::default(),
            is_structure: false,
            closed: Vec::new(),
            comparisons_left: usize::MAX,
            defects: Defects::default(),
            omits_parts: false,
        }
    }

    /// Splits the body that starts here, after the header of the root was parsed.
    fn split_body(&mut self, body: usize) {
        self.find_parts(body);
        if let Some(unopened) = self.unopened
            && !self.parts.iter().any(|part| part.is_text() && !part.is_attachment())
        {
            "text/plain".clone_into(&mut self.parts[unopened].content_type);
        }
    }

    fn find_parts(&mut self, body: usize) {
        let finder = memmem::Finder::new(b"\n--");
        let mut pos = body;
        while !self.open.is_empty() && pos > 0 {
            // The byte before `pos` ends a line, so the next line can already be a boundary.
            let Some(offset) = finder.find(&self.source[pos - 1..]) else { break };
            let start = pos + offset;
            let line = LineSpan::at(self.source, start);
            pos = line.next_start;
            self.comparisons_left = self.comparisons_left.saturating_sub(LINE_COMPARISONS + self.open.len());
            if self.comparisons_left == 0 {
                self.omits_parts = true;
                break;
            }
            let Some((level, closes)) = self.match_delimiter(start, &line) else { continue };
            if !closes && self.parts.len() == MAX_PARTS {
                self.stop_at_part_limit();
                return;
            }
            self.end_parts_at(start, level + 1);
            if closes {
                self.close_multipart(start, true);
            } else {
                self.open[level].children += 1;
                pos = self.begin_part(Some(level), line.next_start, |_| ());
            }
        }
        let end = self.last_part_end();
        self.end_parts_at(end, 0);
    }

    /// Returns which open multipart the line at `start` delimits, and whether the line closes it. RFC 2046 section
    /// 5.1.1: a line that starts with the boundary is enough. But it must not be the delimiter of another multipart,
    /// which can belong to a message inside of this one. And a part must follow.
    fn match_delimiter(&mut self, start: usize, line: &LineSpan) -> Option<(usize, bool)> {
        let text = &self.source[start..line.end];
        if let Some(found) = match_boundary(&self.open, text) {
            return Some(found);
        }
        let text = text[2..].trim_ascii_end();
        let begins = |open: &OpenMultipart| text.starts_with(&open.boundary);
        let longest = |(level, open): &(usize, &OpenMultipart)| (open.boundary.len(), *level);
        let (level, open) = self.open.iter().enumerate().filter(|(_, open)| begins(open)).max_by_key(longest)?;
        let closes = text[open.boundary.len()..].starts_with(b"--");
        if self.declared.contains(self.source, start, text) || !closes && !self.is_part_start(line.next_start) {
            return None;
        }
        self.defects.add_minor(Defect::BOUNDARY, "The line of a boundary contains other text. The text is ignored.");
        Some((level, closes))
    }

    /// Returns whether the header of a part can start here.
    fn is_part_start(&self, start: usize) -> bool {
        let line = LineSpan::at(self.source, start);
        let text = &self.source[start..line.end];
        text.is_empty() || header::field_name_len(text).is_some()
    }

    /// Returns the end of the last part of an unclosed multipart: the end of the source, or the start of a delimiter
    /// that was truncated there.
    fn last_part_end(&self) -> usize {
        let end = self.source.len();
        let (Some(_), Some(leaf)) = (self.open.last(), self.leaf) else { return end };
        let body = &self.source[self.parts[leaf].body.start..];
        let lines = body.strip_suffix(b"\n").unwrap_or(body);
        let lines = lines.strip_suffix(b"\r").unwrap_or(lines);
        let last = memchr::memrchr(b'\n', lines).map_or(0, |feed| feed + 1);
        let Some(text) = lines[last..].strip_prefix(b"--") else { return end };
        if self.open.iter().any(|open| open.boundary.starts_with(text)) { end - body.len() + last } else { end }
    }

    /// Parses the header of a part and calls `record` with each of its fields. `level` is the index of the open multipart
    /// that contains the part. Returns the start of its body.
    fn begin_part(&mut self, level: Option<usize>, start: usize, mut record: impl FnMut(&RawField)) -> usize {
        let source = self.source;
        let (parent, number) = level.map(|level| (self.open[level].part, self.open[level].children)).unzip();
        let open = &self.open;
        let mut content = ContentFields::default();
        let mut count = 0_usize;
        let mut fields = Fields::new(source, start, |line| match_boundary(open, line).is_some());
        for field in &mut fields {
            count += 1;
            // Fields that describe the content are used beyond the limit too.
            content.record(source, &field);
            record(&field);
        }
        let body = fields.body_start();
        let dropped_fields = if parent.is_none() { count.saturating_sub(MAX_FIELDS) } else { 0 };
        self.record_header_defects(dropped_fields, fields.malformed_lines, fields.missing_empty_line);
        let default_type = match parent.map(|p| self.parts[p].content_type.as_str()) {
            // RFC 2046 section 5.1.5.
            Some("multipart/digest") => "message/rfc822",
            _ => "text/plain",
        };
        let mut part = content.into_part(default_type, &mut self.defects);
        part.parent = parent;
        part.number = number.unwrap_or_default();
        part.depth = self.open.len();
        part.header = start..body;
        part.body = body..source.len();
        self.add_part(part);
        body
    }

    /// Adds a part. A multipart is opened; any other part becomes the leaf that the next lines belong to.
    fn add_part(&mut self, mut part: Part) {
        let index = self.parts.len();
        self.leaf = Some(index);
        if part.is_multipart() {
            if part.depth >= MAX_DEPTH {
                self.omits_parts = true;
                self.unopened.get_or_insert(index);
                self.defects.add_severe(
                    Defect::LIMIT,
                    format!("Multiparts that are nested deeper than {MAX_DEPTH} levels are not split."),
                );
                "application/octet-stream".clone_into(&mut part.content_type);
            } else if let Some(boundary) = self.boundary_for(&part) {
                self.open.push(OpenMultipart { part: index, boundary, children: 0 });
                self.leaf = None;
            } else {
                self.defects.add_severe(Defect::BOUNDARY, "A multipart declares no boundary. It is read as text.");
                "text/plain".clone_into(&mut part.content_type);
            }
        }
        self.parts.push(part);
    }

    /// Returns the declared boundary, or a boundary found in the body.
    fn boundary_for(&mut self, part: &Part) -> Option<Vec<u8>> {
        if part.boundary.is_some() {
            return part.boundary.clone();
        }
        self.comparisons_left = self.comparisons_left.saturating_sub(GUESS_COMPARISONS);
        let guess = guess_boundary(self.source, part.body.start, &self.open)?;
        self.defects
            .add_severe(Defect::BOUNDARY, "A multipart declares no boundary. The boundary was detected in its body.");
        Some(guess)
    }

    /// Ends the leaf and all open multiparts from `level` on, before the boundary line at `line` or at the end of the
    /// source.
    fn end_parts_at(&mut self, line: usize, level: usize) {
        if let Some(leaf) = self.leaf.take() {
            let part = &mut self.parts[leaf];
            part.body.end = strip_line_break(self.source, line).max(part.body.start);
            self.finish_leaf(leaf);
        }
        while let Some((part, _)) = self.closed.pop_if(|(_, depth)| *depth >= level) {
            let part = &mut self.parts[part];
            part.body.end = strip_line_break(self.source, line).max(part.body.start);
        }
        while self.open.len() > level {
            self.close_multipart(line, false);
        }
    }

    /// Processes a leaf after its end was found. Blank text between two delimiters is not a part. An unnamed uuencoded
    /// file gets the name in its first line. Uuencoded files inside of a text become parts.
    fn finish_leaf(&mut self, leaf: usize) {
        if self.is_structure {
            return;
        }
        let part = &self.parts[leaf];
        let is_blank = |range: &std::ops::Range<usize>| self.source[range.clone()].trim_ascii().is_empty();
        if leaf > 0 && is_blank(&part.header) && is_blank(&part.body) {
            // The leaf is the part that was added last.
            self.parts.truncate(leaf);
            return;
        }
        match part.transfer_encoding {
            TransferEncoding::Uuencode if part.filename.is_none() && !part.is_text() => {
                self.parts[leaf].filename = uuencode::file_name(&self.source[part.body.clone()]);
            }
            TransferEncoding::Identity if part.content_type == "text/plain" && !part.is_attachment() => {
                self.extract_uuencoded_files(leaf);
            }
            _ => {}
        }
    }

    /// Adds a part for each uuencoded file inside of a text.
    fn extract_uuencoded_files(&mut self, leaf: usize) {
        let part = &self.parts[leaf];
        let (body, depth) = (part.body.clone(), part.depth + 1);
        let text = &self.source[body.clone()];
        let (mut pos, mut number) = (0, 0);
        while self.parts.len() < MAX_PARTS
            && depth <= MAX_DEPTH
            && let Some(uuencode::Block { range, name }) = uuencode::find(text, pos)
        {
            pos = range.end;
            number += 1;
            let file =
                Part::uuencoded_file(leaf, number, depth, name, body.start + range.start..body.start + range.end);
            self.parts.push(file);
        }
    }

    /// Closes the innermost open multipart. RFC 2046 section 5.1.2: an outer boundary also closes the inner multiparts.
    fn close_multipart(&mut self, line: usize, has_end: bool) {
        let Some(open) = self.open.pop() else { return };
        let part = &mut self.parts[open.part];
        part.body.end = strip_line_break(self.source, line).max(part.body.start);
        let empty = self.source[part.body.clone()].trim_ascii().is_empty();
        if has_end && self.is_structure {
            self.closed.push((open.part, self.open.len()));
        }
        if open.children == 0 && !empty {
            "text/plain".clone_into(&mut part.content_type);
            self.defects.add_severe(
                Defect::BOUNDARY,
                "The boundary of a multipart does not occur in its body. The multipart is read as text.",
            );
        } else if !has_end {
            self.defects.add_minor(Defect::BOUNDARY, "A multipart has no closing boundary.");
        }
    }

    /// Leaves the rest of the message in the last leaf, because the limit of parts is reached.
    fn stop_at_part_limit(&mut self) {
        self.omits_parts = true;
        self.defects.add_severe(
            Defect::LIMIT,
            format!("The message has more than {MAX_PARTS} parts. The last part contains the rest."),
        );
        let last = self.leaf.take().unwrap_or(self.parts.len() - 1);
        self.parts[last].body.end = self.source.len();
        while !self.open.is_empty() {
            self.close_multipart(self.source.len(), true);
        }
        for (part, _) in self.closed.drain(..) {
            self.parts[part].body.end = self.source.len();
        }
    }

    fn record_header_defects(&mut self, dropped_fields: usize, malformed_lines: usize, missing_empty_line: bool) {
        if dropped_fields > 0 {
            self.defects.add_severe(
                Defect::LIMIT,
                format!("A header has more than {MAX_FIELDS} fields. Fields that are not shown: {dropped_fields}."),
            );
        }
        if malformed_lines > 0 {
            self.defects.add_severe(
                Defect::HEADER,
                format!("A header contains lines that are not fields. Ignored lines: {malformed_lines}."),
            );
        }
        if missing_empty_line {
            self.defects.add_minor(Defect::HEADER, "There is no empty line between a header and its body.");
        }
    }
}

/// The boundaries that a message declares. The source is searched only as far as necessary.
#[derive(Default)]
struct DeclaredBoundaries {
    boundaries: HashSet<Vec<u8>>,
    /// The position up to which the source was searched.
    searched_to: usize,
}

impl DeclaredBoundaries {
    /// Returns whether the text of a delimiter matches a boundary that is declared before `end`.
    fn contains(&mut self, source: &[u8], end: usize, text: &[u8]) -> bool {
        let finder = memmem::Finder::new(b"oundary=");
        while self.boundaries.len() < MAX_DECLARED_BOUNDARIES
            && let Some(at) = finder.find(&source[self.searched_to.min(end)..end])
        {
            self.searched_to += at + b"oundary=".len();
            let value = &source[self.searched_to..end.min(self.searched_to + MAX_BOUNDARY_BYTES)];
            let quoted = value.strip_prefix(b"\"");
            let ends = |b: &u8| if quoted.is_some() { *b == b'"' } else { *b == b';' || b.is_ascii_whitespace() };
            let value = quoted.unwrap_or(value).split(ends).next().unwrap_or_default();
            self.boundaries.insert(value.trim_ascii_end().to_vec());
        }
        self.searched_to = end.max(self.searched_to);
        self.boundaries.contains(text) || text.strip_suffix(b"--").is_some_and(|text| self.boundaries.contains(text))
    }
}

/// Returns which open multipart a line delimits, innermost first, and whether the line closes it. Trailing whitespace
/// was added in transit (RFC 2046 section 5.1.1).
fn match_boundary(open: &[OpenMultipart], line: &[u8]) -> Option<(usize, bool)> {
    let text = line.strip_prefix(b"--")?.trim_ascii_end();
    open.iter().enumerate().rev().find_map(|(level, open)| match text.strip_prefix(open.boundary.as_slice())? {
        b"" => Some((level, false)),
        b"--" => Some((level, true)),
        _ => None,
    })
}

/// Guesses the boundary of a multipart that declares none: the first line that starts with `--` and is followed by a
/// Content-* field.
fn guess_boundary(source: &[u8], body: usize, open: &[OpenMultipart]) -> Option<Vec<u8>> {
    let window = &source[..source.len().min(body + BOUNDARY_SEARCH_BYTES)];
    let mut pos = body;
    while pos < window.len() {
        let line = LineSpan::at(window, pos);
        let text = &window[pos..line.end];
        if text.starts_with(b"--") && match_boundary(open, text).is_some() {
            return None;
        }
        let next = window.get(line.next_start..line.next_start + 8).unwrap_or_default();
        if text.len() > 2 && text.starts_with(b"--") && next.eq_ignore_ascii_case(b"content-") {
            return Some(text[2..].trim_ascii_end().to_vec());
        }
        pos = line.next_start;
    }
    None
}

/// Returns the position before the line break that precedes a boundary line. The line break belongs to the boundary
/// (RFC 2046 section 5.1.1).
fn strip_line_break(source: &[u8], line: usize) -> usize {
    if line == source.len() {
        return line;
    }
    let text = &source[..line];
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    text.strip_suffix(b"\r").unwrap_or(text).len()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Formats the structure as one line per part: indentation, type and body.
    fn outline(source: &str) -> String {
        let bytes = Bytes::copy_from_slice(source.as_bytes());
        let mut lines = Vec::new();
        for part in split(&bytes).parts {
            let body = if part.is_multipart() { "" } else { &source[part.body.clone()] };
            let line = format!("{}{} {}", "  ".repeat(part.depth), part.content_type, body.escape_debug());
            lines.push(line.trim_end().to_owned());
        }
        lines.join("\n")
    }

    #[test]
    fn structure_has_blank_parts_and_epilogues() {
        let source = "Content-Type: multipart/mixed; boundary=o\n\npre\n--o\n\n\n--o\nContent-Type: \
            multipart/alternative; boundary=i\n\n--i\n\nbegin 644 a\n#86)C\n`\nend\n--i--\nepi\n\n--o\n--o--\nepilogue\n";
        let parts = split_structure(source.as_bytes());
        let bodies: Vec<_> = parts.iter().map(|part| (part.depth, part.number, &source[part.body.clone()])).collect();
        let uuencoded = "begin 644 a\n#86)C\n`\nend";
        let inner = format!("--i\n\n{uuencoded}\n--i--\nepi\n");
        assert_eq!(bodies[0], (0, 0, &source[source.find("pre").unwrap()..]));
        assert_eq!(bodies[1..], [(1, 1, ""), (1, 2, inner.as_str()), (2, 1, uuencoded), (1, 3, "")]);
    }

    #[test]
    fn numbers_count_blank_parts() {
        let source = "Content-Type: multipart/mixed; boundary=o\n\n--o\n\none\n--o\n\n\n--o\nContent-Type: \
            multipart/alternative; boundary=i\n\n--i\n\nbegin 644 a\n#86)C\n`\nend\n--i\n\ntwo\n--i--\n--o\n\nthree\n--o--\n";
        let numbers: Vec<_> = split(&source.into()).parts.iter().map(|part| (part.depth, part.number)).collect();
        assert_eq!(numbers, [(0, 0), (1, 1), (1, 3), (2, 1), (3, 1), (2, 2), (1, 4)]);
    }

    #[test]
    fn splits_messages_into_parts() {
        let table = [
            ("no mime", "Subject: x\r\n\r\nHi\r\n", "text/plain Hi\\r\\n"),
            (
                "two parts, preamble and epilogue",
                "Content-Type: multipart/mixed; boundary=b\r\n\r\npreamble\r\n--b\r\n\r\none\r\n--b  \r\n\
                 Content-Type: text/html\r\n\r\ntwo\r\n\r\n--b--\r\nepilogue\r\n--b\r\n\r\nno part",
                "multipart/mixed\n  text/plain one\n  text/html two\\r\\n",
            ),
            (
                "bare line feeds",
                "Content-Type: multipart/mixed; boundary=\"b\"\n\n--b\n\none\n--b\n\ntwo\n--b--\n",
                "multipart/mixed\n  text/plain one\n  text/plain two",
            ),
            (
                "a boundary that starts like its parent's",
                "Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: multipart/alternative; boundary=b-1\n\n\
                 --b-1\n\none\n--b-1\n\ntwo\n--b-1--\n--b\n\nthree\n--b--\n",
                "multipart/mixed\n  multipart/alternative\n    text/plain one\n    text/plain two\n  text/plain three",
            ),
            (
                "the same boundary twice",
                "Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: multipart/alternative; boundary=b\n\n\
                 --b\n\none\n--b--\n--b\n\ntwo\n--b--\n",
                "multipart/mixed\n  multipart/alternative\n    text/plain one\n  text/plain two",
            ),
            (
                "an outer boundary ends the inner multipart",
                "Content-Type: multipart/mixed; boundary=o\n\n--o\nContent-Type: multipart/alternative; boundary=i\n\n\
                 --i\n\none\n--o\n\ntwo",
                "multipart/mixed\n  multipart/alternative\n    text/plain one\n  text/plain two",
            ),
            (
                "no end",
                "Content-Type: multipart/mixed; boundary=b\n\n--b\n\none\n",
                "multipart/mixed\n  text/plain one\\n",
            ),
            (
                "no boundary declared",
                "Content-Type: multipart/mixed\n\n--b\nContent-Type: text/html\n\none\n--b--\n",
                "multipart/mixed\n  text/html one",
            ),
            ("no boundary found", "Content-Type: multipart/mixed\n\nHi\n", "text/plain Hi\\n"),
            ("a boundary that never occurs", "Content-Type: multipart/mixed; boundary=b\n\nHi\n", "text/plain Hi\\n"),
            ("only a header", "Content-Type: multipart/mixed; boundary=b\n", "multipart/mixed"),
            (
                "parts without an empty line or body",
                "Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/html\n--b\n--b\n\n--b--",
                "multipart/mixed\n  text/html",
            ),
            (
                "a nested message is a leaf",
                "Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: message/rfc822\n\n\
                 Content-Type: multipart/mixed; boundary=c\n\n--c\n\nx\n--b--\n",
                "multipart/mixed\n  message/rfc822 Content-Type: multipart/mixed; boundary=c\\n\\n--c\\n\\nx",
            ),
            (
                "parts of a digest are messages",
                "Content-Type: multipart/digest; boundary=b\n\n--b\n\nSubject: x\n\n--b--\n",
                "multipart/digest\n  message/rfc822 Subject: x\\n",
            ),
            (
                "a boundary is bytes",
                "Content-Type: multipart/mixed; boundary=\" b \"\n\n-- b\n\none\n--b\n-- b\n\
                 Content-Type: multipart/mixed; boundary=\"=?utf-8?Q?b?=\"\n\n--=?utf-8?Q?b?=\n\ntwo\n-- b--\n",
                "multipart/mixed\n  text/plain one\\n--b\n  multipart/mixed\n    text/plain two",
            ),
            (
                "text after the boundary",
                "Content-Type: multipart/mixed; boundary=bound\n\n--bound and more\n\none\n--bound;x\n\
                 Content-Type: text/html\n\ntwo\n--bound--end\nepilogue\n",
                "multipart/mixed\n  text/plain one\n  text/html two",
            ),
            (
                "extra text after every boundary",
                "Content-Type: multipart/mixed; boundary=bound\n\n--bound1\n\none\n--bound1\n\ntwo\n--bound1--\n",
                "multipart/mixed\n  text/plain one\n  text/plain two",
            ),
            (
                "text that begins like a boundary",
                "Content-Type: multipart/mixed; boundary=b\n\n--b\n\none\n--bullet point\ntwo\n--b--\n",
                "multipart/mixed\n  text/plain one\\n--bullet point\\ntwo",
            ),
            (
                "a nested message whose boundary starts with the outer one",
                "Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: message/rfc822\n\n\
                 Content-Type: multipart/mixed; boundary=\"b1\"\n\n--b1\n\nx\n--b1--\n--b\n\ny\n--b--\n",
                "multipart/mixed\n  message/rfc822 Content-Type: multipart/mixed; boundary=\\\"b1\\\"\\n\\n--b1\\n\\nx\\n--b1--\n  text/plain y",
            ),
            (
                "a truncated delimiter",
                "Content-Type: multipart/mixed; boundary=bound\n\n--bound\n\none\n--bou",
                "multipart/mixed\n  text/plain one",
            ),
            (
                "a delimiter truncated after two dashes",
                "Content-Type: multipart/mixed; boundary=bound\n\n--bound\n\none\n--\n",
                "multipart/mixed\n  text/plain one",
            ),
            (
                "a signature is not a delimiter",
                "Content-Type: multipart/mixed; boundary=bound\n\n--bound\n\none\n-- \nJane\n",
                "multipart/mixed\n  text/plain one\\n-- \\nJane\\n",
            ),
            (
                "an end without final dashes",
                "Content-Type: multipart/mixed; boundary=b\n\n--b\n\none\n--b\n",
                "multipart/mixed\n  text/plain one",
            ),
            (
                "a file in a text",
                "Subject: x\n\nHi\nbegin 644 a.txt\n#2&5L\n`\nend\nbye\n",
                "text/plain Hi\\nbegin 644 a.txt\\n#2&5L\\n`\\nend\\nbye\\n\n  application/octet-stream begin 644 a.txt\\n#2&5L\\n`\\nend\\n",
            ),
            ("an empty message", "", "text/plain"),
        ];
        for (description, source, parts) in table {
            assert_eq!(outline(source), parts, "{description}");
        }
    }
}
