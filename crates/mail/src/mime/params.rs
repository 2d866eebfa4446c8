//! The values of Content-Type and Content-Disposition: a word and its parameters (RFC 2045 section 5.1), with the
//! charsets and continuations of RFC 2231 and the habits of mailers that know neither.

use super::charset::{decode, one_line};
use super::header::unfold;
use super::transfer;
use super::words;

/// How many parameters of one field are looked at.
const MAX_PARAMETERS: usize = 200;

/// A structured value: `text/plain; charset=utf-8`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Structured {
    /// The word before the parameters, lower-cased.
    pub(super) value: String,
    parameters: Vec<(String, String)>,
}

impl Structured {
    /// Reads a field's value, folded or not. There is no value that cannot be read.
    pub(super) fn parse(field: &[u8]) -> Self {
        let line = unfold(field);
        let end = memchr::memchr(b';', &line).unwrap_or(line.len());
        let word = String::from_utf8_lossy(&line[..end]);
        let word = word.split('(').next().unwrap_or_default();
        Self { value: one_line(word).to_ascii_lowercase(), parameters: join(segments(&line[end..])) }
    }

    /// The parameter of that (lower-case) name.
    pub(super) fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }
}

/// One parameter as written. `name*1*=` is part 1 of `name`, percent-encoded (RFC 2231 sections 3 and 4).
#[derive(Debug)]
struct Segment {
    name: String,
    part: Option<usize>,
    encoded: bool,
    value: Vec<u8>,
}

/// Splits `; a=1; b="2"` into its parameters.
fn segments(line: &[u8]) -> Vec<Segment> {
    let mut segments = Vec::new();
    let mut rest = line;
    while segments.len() < MAX_PARAMETERS {
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
        let (value, used) = if value.first() == Some(&b'"') { quoted(value) } else { bare(value, &name) };
        rest = used;
        segments.push(Segment::new(&name, value));
    }
    segments
}

impl Segment {
    fn new(written: &str, value: Vec<u8>) -> Self {
        let (name, encoded) = match written.strip_suffix('*') {
            Some(name) => (name, true),
            None => (written, false),
        };
        let numbered = name.rsplit_once('*').and_then(|(name, part)| Some((name, part.parse().ok()?)));
        let (name, part) = numbered.map_or((name, None), |(name, part)| (name, Some(part)));
        Self { name: name.to_owned(), part, encoded, value }
    }
}

/// A quoted value and what follows it. Only `\"` and `\\` are escapes: a lone backslash is a path of Windows.
fn quoted(value: &[u8]) -> (Vec<u8>, &[u8]) {
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

/// A value without quotes and what follows it. It ends at a blank, but file names are written with blanks.
fn bare<'a>(value: &'a [u8], name: &str) -> (Vec<u8>, &'a [u8]) {
    let end = memchr::memchr(b';', value).unwrap_or(value.len());
    let whole = value[..end].trim_ascii_end();
    let content = if name.starts_with("name") || name.starts_with("filename") {
        whole
    } else {
        whole.split(u8::is_ascii_whitespace).next().unwrap_or_default()
    };
    (content.to_vec(), &value[end..])
}

/// Puts the parts of each parameter together. The form of RFC 2231 wins over a plain one of the same name; of two
/// equal forms the first.
fn join(segments: Vec<Segment>) -> Vec<(String, String)> {
    let (mut extended, plain): (Vec<_>, Vec<_>) = segments.into_iter().partition(|s| s.encoded || s.part.is_some());
    // A stable sort, so that of two parts with one number the first is the first here too.
    extended.sort_by(|a, b| (&a.name, a.part).cmp(&(&b.name, b.part)));
    let mut joined: Vec<(String, String)> =
        extended.chunk_by(|a, b| a.name == b.name).map(|parts| (parts[0].name.clone(), join_parts(parts))).collect();
    for segment in plain {
        let value = one_line(&words::decode_words(&segment.value));
        joined.push((segment.name, value));
    }
    joined
}

/// Parts 0, 1, 2, ... of one parameter, in order, up to the first that is missing.
fn join_parts(parts: &[Segment]) -> String {
    // `name*=` is complete in itself and sorts before `name*0=`.
    if parts[0].part.is_none() {
        return extended_value(&parts[..1]);
    }
    let mut next = 0;
    let end = parts.iter().position(|segment| {
        let gap = segment.part > Some(next);
        next += usize::from(segment.part == Some(next));
        gap
    });
    let parts = &parts[..end.unwrap_or(parts.len())];
    let distinct: Vec<&Segment> = parts.chunk_by(|a, b| a.part == b.part).map(|same| &same[0]).collect();
    extended_value(&distinct)
}

/// Decodes `charset'language'text`: the first part says the charset, every part says whether it is percent-encoded.
fn extended_value<S: std::borrow::Borrow<Segment>>(parts: &[S]) -> String {
    let mut charset = None;
    let mut bytes = Vec::new();
    for (n, part) in parts.iter().enumerate() {
        let segment = part.borrow();
        let mut value = segment.value.as_slice();
        if !segment.encoded {
            bytes.extend_from_slice(value);
            continue;
        }
        if n == 0 {
            let mut pieces = value.splitn(3, |&b| b == b'\'');
            if let (Some(label), Some(_), Some(text)) = (pieces.next(), pieces.next(), pieces.next()) {
                charset = Some(String::from_utf8_lossy(label).into_owned());
                value = text;
            }
        }
        transfer::unescape(value, b'%', &mut bytes);
    }
    match charset {
        Some(label) => one_line(&decode(Some(&label), &bytes).text),
        None => one_line(&words::decode_words(&bytes)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_parameters() {
        let table: &[(&str, &str, &str, Option<&str>)] = &[
            ("text/plain; charset=utf-8", "text/plain", "charset", Some("utf-8")),
            ("TEXT/Plain;CHARSET=\"utf-8\"", "text/plain", "charset", Some("utf-8")),
            ("text/plain (hi); charset = x (why)", "text/plain", "charset", Some("x")),
            ("text/plain; charset", "text/plain", "charset", None),
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
            ("a; filename*1=b", "a", "filename", Some("")),
            ("a; filename*=no-charset%20here", "a", "filename", Some("no-charset here")),
            ("a; filename*99999999999999999999=x", "a", "filename", None),
            ("a; filename=\"line\r\n break\"", "a", "filename", Some("line break")),
        ];
        for (field, value, name, parameter) in table {
            let parsed = Structured::parse(field.as_bytes());
            assert_eq!((parsed.value.as_str(), parsed.parameter(name)), (*value, *parameter), "{field}");
        }
    }

    #[test]
    fn the_number_of_parameters_is_bounded() {
        let field = "a; ".to_owned() + &"x=1;".repeat(100_000);
        assert_eq!(Structured::parse(field.as_bytes()).parameters.len(), MAX_PARAMETERS);
    }
}
