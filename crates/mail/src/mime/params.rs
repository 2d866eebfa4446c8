//! Parsing of Content-Type and Content-Disposition: a value and its parameters (RFC 2045 section 5.1), with the
//! charsets and continuations of RFC 2231. Deviations of common mail clients are accepted.

use super::charset::{decode, one_line};
use super::encoded_words;
use super::header::unfold;
use super::transfer_encoding;

/// The maximum number of parameters of one field.
const MAX_PARAMETERS: usize = 200;

/// A structured value: `text/plain; charset=utf-8`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StructuredValue {
    /// The value before the parameters, in lower case.
    pub(super) value: String,
    /// Whether other words follow it before the parameters.
    pub(super) has_extra_words: bool,
    parameters: Vec<Parameter>,
}

/// A parameter, joined from its segments but not decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Parameter {
    name: String,
    charset: Option<String>,
    value: Vec<u8>,
}

impl StructuredValue {
    /// Parses the value of a field, folded or not. Never fails. Some senders omit the semicolon after the value, so
    /// whitespace also ends it.
    pub fn parse(field: &[u8]) -> Self {
        let line = unfold(field);
        let end = value_len(&line);
        let word = String::from_utf8_lossy(&line[..end]);
        let next = line[end..].split(|&b| b == b';').next().unwrap_or_default().trim_ascii();
        Self {
            value: one_line(&word).to_ascii_lowercase(),
            has_extra_words: !next.is_empty() && next[0] != b'(' && !next.contains(&b'='),
            parameters: join_segments(split_pairs(&line[end..]).into_iter().map(Segment::new).collect()),
        }
    }

    /// Returns the value before the parameters, in lower case.
    pub fn value(&self) -> &str {
        &self.value
    }

    /// Returns the parameters of a field as they are written, without quotes: the segments of RFC 2231 are not joined or
    /// decoded. Names are in lower case.
    pub fn raw_parameters(field: &[u8]) -> Vec<(String, Vec<u8>)> {
        let line = unfold(field);
        split_pairs(&line[value_len(&line)..])
    }

    /// Returns the text of the parameter with this name, which must be in lower case. `None` if it is missing or empty.
    pub fn parameter(&self, name: &str) -> Option<String> {
        let Parameter { charset, value, .. } = self.find(name)?;
        let text = match charset {
            Some(label) => one_line(&decode(Some(label), value).text),
            None => encoded_words::decode_line(value),
        };
        (!text.is_empty()).then_some(text)
    }

    /// Returns the bytes of a parameter, for values that are only compared.
    pub fn raw_parameter(&self, name: &str) -> Option<&[u8]> {
        self.find(name).map(|parameter| parameter.value.as_slice())
    }

    fn find(&self, name: &str) -> Option<&Parameter> {
        self.parameters.iter().find(|parameter| parameter.name == name)
    }
}

/// One parameter as written. `name*1*=` is segment 1 of `name`, percent-encoded (RFC 2231 sections 3 and 4).
#[derive(Debug)]
struct Segment {
    name: String,
    part_number: Option<usize>,
    is_encoded: bool,
    value: Vec<u8>,
}

/// Returns the length of the value before the parameters.
fn value_len(line: &[u8]) -> usize {
    line.iter().position(|&b| b == b';' || b == b'(' || b.is_ascii_whitespace()).unwrap_or(line.len())
}

/// Splits `; a=1; b="2"` into names, in lower case, and values.
fn split_pairs(line: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut pairs = Vec::new();
    let mut rest = line;
    while pairs.len() < MAX_PARAMETERS {
        let start = rest.iter().position(|&b| b != b';' && !b.is_ascii_whitespace());
        let Some(start) = start else { break };
        rest = &rest[start..];
        let end = rest.iter().position(|&b| b == b'=' || b == b';').unwrap_or(rest.len());
        let name = String::from_utf8_lossy(&rest[..end]).trim().to_ascii_lowercase();
        if rest.get(end) != Some(&b'=') {
            rest = &rest[end..];
            continue;
        }
        let value = rest[end + 1..].trim_ascii_start();
        let (value, used) = if value.first() == Some(&b'"') { parse_quoted(value) } else { parse_bare(value, &name) };
        rest = used;
        pairs.push((name, value));
    }
    pairs
}

impl Segment {
    fn new((written, value): (String, Vec<u8>)) -> Self {
        let (name, encoded) = match written.strip_suffix('*') {
            Some(name) => (name, true),
            None => (written.as_str(), false),
        };
        let numbered = name.rsplit_once('*').and_then(|(name, part)| Some((name, part.parse().ok()?)));
        let (name, part) = numbered.map_or((name, None), |(name, part)| (name, Some(part)));
        Self { name: name.to_owned(), part_number: part, is_encoded: encoded, value }
    }
}

/// Parses a quoted value. Returns its content and the rest. Only `\"` and `\\` are escapes: other backslashes occur in
/// Windows paths.
fn parse_quoted(value: &[u8]) -> (Vec<u8>, &[u8]) {
    let mut content = Vec::new();
    let mut pos = 1;
    while pos < value.len() {
        match (value[pos], value.get(pos + 1)) {
            (b'\\', Some(&next @ (b'"' | b'\\'))) => {
                content.push(next);
                pos += 1;
            }
            (b'"', _) => return (content, &value[pos + 1..]),
            (byte, _) => content.push(byte),
        }
        pos += 1;
    }
    (content, &[])
}

/// Parses an unquoted value. Returns its content and the rest. It ends at whitespace, except for file names, which
/// contain unquoted spaces.
fn parse_bare<'a>(value: &'a [u8], name: &str) -> (Vec<u8>, &'a [u8]) {
    let end = memchr::memchr(b';', value).unwrap_or(value.len());
    let text = value[..end].trim_ascii_end();
    let content = if ["name", "filename", "file"].iter().any(|file| name.starts_with(file)) {
        text
    } else {
        text.split(u8::is_ascii_whitespace).next().unwrap_or_default()
    };
    (content.to_vec(), &value[end..])
}

/// Joins the segments of each parameter. The form of RFC 2231 takes precedence over a plain one of the same name,
/// unless it is empty. Of two equal forms the first is used.
fn join_segments(segments: Vec<Segment>) -> Vec<Parameter> {
    let (mut extended, plain): (Vec<_>, Vec<_>) =
        segments.into_iter().partition(|s| s.is_encoded || s.part_number.is_some());
    // The sort is stable, so the first of two segments with the same number stays first.
    extended.sort_by(|a, b| (&a.name, a.part_number).cmp(&(&b.name, b.part_number)));
    let extended = extended.chunk_by(|a, b| a.name == b.name).map(join_parts).filter(|joined| !joined.value.is_empty());
    let plain = plain.into_iter().map(|Segment { name, value, .. }| Parameter { name, charset: None, value });
    extended.chain(plain).collect()
}

/// Joins the segments 0, 1, 2, ... of one parameter, up to the first missing one. `name*=` is complete by itself and
/// sorts before `name*0=`.
fn join_parts(parts: &[Segment]) -> Parameter {
    let mut joined = Parameter { name: parts[0].name.clone(), charset: None, value: Vec::new() };
    if parts[0].part_number.is_none() {
        joined.push(&parts[0], true);
        return joined;
    }
    for (expected, same) in parts.chunk_by(|a, b| a.part_number == b.part_number).enumerate() {
        if same[0].part_number != Some(expected) {
            break;
        }
        joined.push(&same[0], expected == 0);
    }
    joined
}

impl Parameter {
    /// Appends a segment. The first segment contains the charset (`charset'language'text`). Each segment is
    /// percent-encoded or not.
    fn push(&mut self, segment: &Segment, first: bool) {
        if !segment.is_encoded {
            self.value.extend_from_slice(&segment.value);
            return;
        }
        let mut value = segment.value.as_slice();
        if first {
            let mut fields = value.splitn(3, |&b| b == b'\'');
            if let (Some(label), Some(_), Some(text)) = (fields.next(), fields.next(), fields.next()) {
                self.charset = Some(String::from_utf8_lossy(label).into_owned());
                value = text;
            }
        }
        transfer_encoding::unescape(value, b'%', &mut self.value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_values_and_parameters() {
        let table: &[(&str, &str, &str, Option<&str>)] = &[
            ("text/plain; charset=utf-8", "text/plain", "charset", Some("utf-8")),
            ("TEXT/Plain;CHARSET=\"utf-8\"", "text/plain", "charset", Some("utf-8")),
            ("text/plain (hi); charset = x (why)", "text/plain", "charset", Some("x")),
            ("text/plain; charset", "text/plain", "charset", None),
            ("text/html charset=utf-8", "text/html", "charset", Some("utf-8")),
            ("multipart/mixed boundary=\"b\" x=y", "multipart/mixed", "boundary", Some("b")),
            ("text/html\r\n\tcharset=utf-8", "text/html", "charset", Some("utf-8")),
            ("text/plain", "text/plain", "charset", None),
            ("", "", "charset", None),
            (";;; a=1 ;; b=2;", "", "b", Some("2")),
            ("m/x; boundary=\"a; b=\\\"c\\\\\"; x=y", "m/x", "boundary", Some("a; b=\"c\\")),
            ("m/x; boundary=\"never closed; x=y", "m/x", "boundary", Some("never closed; x=y")),
            ("m/x; a=1; a=2", "m/x", "a", Some("1")),
            ("attachment; filename=my report (1).pdf; size=3", "attachment", "filename", Some("my report (1).pdf")),
            ("attachment; filename=\"C:\\temp\\x.txt\"", "attachment", "filename", Some("C:\\temp\\x.txt")),
            ("attachment; filename=\"=?utf-8?Q?=C3=A9.txt?=\"", "attachment", "filename", Some("é.txt")),
            ("attachment; filename=é.txt", "attachment", "filename", Some("é.txt")),
            // RFC 2231.
            ("attachment; filename*=utf-8''%C3%A9.txt", "attachment", "filename", Some("é.txt")),
            ("attachment; filename=e.txt; filename*=utf-8'en'%C3%A9.txt", "attachment", "filename", Some("é.txt")),
            (
                "attachment; filename*0=\"long \"; filename*1=\"name.txt\"",
                "attachment",
                "filename",
                Some("long name.txt"),
            ),
            ("a; filename*1*=%A9.txt; filename*0*=utf-8''%C3", "a", "filename", Some("é.txt")),
            ("a; filename*0*=iso-8859-1''%E9; filename*1=\"%41\"", "a", "filename", Some("é%41")),
            ("a; filename*0=a; filename*2=c", "a", "filename", Some("a")),
            ("a; filename*0=a; filename*0=x; filename*1=b", "a", "filename", Some("ab")),
            ("a; filename*1=b", "a", "filename", None),
            ("a; filename=plain.pdf; filename*1=rest", "a", "filename", Some("plain.pdf")),
            ("a; filename=plain.pdf; filename*=utf-8''", "a", "filename", Some("plain.pdf")),
            ("a; filename*=no-charset%20here", "a", "filename", Some("no-charset here")),
            ("a; filename*99999999999999999999=x", "a", "filename", None),
            ("a; filename=\"line\r\n break\"", "a", "filename", Some("line break")),
        ];
        for (field, value, name, parameter) in table {
            let parsed = StructuredValue::parse(field.as_bytes());
            assert_eq!((parsed.value.as_str(), parsed.parameter(name).as_deref()), (*value, *parameter), "{field}");
        }
    }

    #[test]
    fn raw_parameters_are_not_decoded() {
        let table: &[(&[u8], &[u8])] = &[
            (b"m/x; b=\" a \"", b" a "),
            (b"m/x; b=\"=?utf-8?Q?abc?=\"", b"=?utf-8?Q?abc?="),
            (b"m/x; b=\"caf\xe9\"", b"caf\xe9"),
            (b"m/x; b*0=a; b*1=c", b"ac"),
        ];
        for (field, value) in table {
            assert_eq!(StructuredValue::parse(field).raw_parameter("b"), Some(*value));
        }
    }

    #[test]
    fn raw_parameters_keep_their_segments() {
        let field = b"a/b; X=\"1 \\\" 2\"; name*0*=utf-8''%C3; name*1=\r\n rest; =z";
        let table = [("x", "1 \" 2"), ("name*0*", "utf-8''%C3"), ("name*1", "rest"), ("", "z")];
        let expected = table.map(|(name, value)| (name.to_owned(), value.as_bytes().to_vec()));
        assert_eq!(StructuredValue::raw_parameters(field), expected);
    }

    #[test]
    fn limits_the_number_of_parameters() {
        let field = "a; ".to_owned() + &"x=1;".repeat(100_000);
        assert_eq!(StructuredValue::parse(field.as_bytes()).parameters.len(), MAX_PARAMETERS);
    }
}
