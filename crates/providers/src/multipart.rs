//! Forms in `multipart/form-data` (RFC 7578). Values are ranges of the body and are not copied or decoded.

use bytes::Bytes;
use memchr::memmem::Finder;
use restante_mail::mime::{RawFields, StructuredValue};

use crate::failure::Failure;

/// The maximum number of fields of a form.
const MAX_FIELDS: usize = 10_000;
/// The maximum length of a boundary. RFC 2046 section 5.1.1 allows 70 bytes.
const MAX_BOUNDARY_BYTES: usize = 200;

/// A field of a form: a value, or a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FormField {
    pub(crate) name: String,
    pub(crate) filename: Option<String>,
    pub(crate) content_type: Option<String>,
    pub(crate) value: Bytes,
}

/// Parses a form. Fails if it has no end, or a field without a name.
pub(crate) fn parse(content_type: &str, body: &Bytes) -> Result<Vec<FormField>, Failure> {
    let content_type = StructuredValue::parse(content_type.as_bytes());
    let boundary = content_type.raw_parameter("boundary").unwrap_or_default();
    if boundary.is_empty() || boundary.len() > MAX_BOUNDARY_BYTES {
        return Err(Failure::malformed("the content type has no valid boundary"));
    }
    let delimiter = [b"\r\n--", boundary].concat();
    let finder = Finder::new(&delimiter);
    let at_start = body.starts_with(&delimiter[2..]).then(|| delimiter_end(body, delimiter.len() - 2)).flatten();
    let mut delimiter = at_start.or_else(|| next_delimiter(&finder, body, 0).map(|(_, end)| end));
    let mut fields = Vec::new();
    while let Some(DelimiterEnd::Part(start)) = delimiter {
        if fields.len() == MAX_FIELDS {
            return Err(Failure::malformed(format_args!("it has more than {MAX_FIELDS} fields")));
        }
        let next = next_delimiter(&finder, body, start);
        let (end, following) = next.ok_or_else(|| Failure::malformed("the form has no end"))?;
        fields.push(parse_field(&body.slice(start..end))?);
        delimiter = Some(following);
    }
    if delimiter.is_none() { Err(Failure::malformed("the form has no beginning")) } else { Ok(fields) }
}

/// What follows a delimiter: a part that starts here, or nothing.
enum DelimiterEnd {
    Part(usize),
    Last,
}

/// Returns the start of the next delimiter, and what follows it.
fn next_delimiter(finder: &Finder<'_>, body: &[u8], from: usize) -> Option<(usize, DelimiterEnd)> {
    let mut from = from;
    loop {
        let start = from + finder.find(&body[from..])?;
        from = start + finder.needle().len();
        if let Some(end) = delimiter_end(body, from) {
            return Some((start, end));
        }
    }
}

/// Returns what follows a delimiter whose boundary ends at `end`. `None` if the line contains other text.
fn delimiter_end(body: &[u8], end: usize) -> Option<DelimiterEnd> {
    let rest = &body[end..];
    if rest.starts_with(b"--") {
        return Some(DelimiterEnd::Last);
    }
    let padding = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    rest[padding..].starts_with(b"\r\n").then_some(DelimiterEnd::Part(end + padding + 2))
}

fn parse_field(part: &Bytes) -> Result<FormField, Failure> {
    let mut fields = RawFields::new(part);
    let (mut disposition, mut content_type) = (StructuredValue::default(), None);
    for (name, value) in fields.by_ref() {
        if name.eq_ignore_ascii_case(b"content-disposition") {
            disposition = StructuredValue::parse(value);
        } else if name.eq_ignore_ascii_case(b"content-type") {
            content_type = Some(String::from_utf8_lossy(value).trim().to_owned());
        }
    }
    let name = disposition.parameter("name").ok_or_else(|| Failure::malformed("a field of the form has no name"))?;
    // The HTML standard encodes quotes in names like this.
    let filename = disposition.parameter("filename").map(|name| name.replace("%22", "\""));
    Ok(FormField { name, filename, content_type, value: part.slice_ref(fields.into_body()) })
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::time::{Duration, Instant};

    use super::*;

    const TYPE: &str = "multipart/form-data; boundary=x";

    /// Returns the fields as `name=value`, with the file name and the content type if there are any.
    fn describe(content_type: &str, body: &[u8]) -> Option<String> {
        let fields = parse(content_type, &Bytes::copy_from_slice(body)).ok()?;
        let describe = |field: &FormField| {
            let FormField { name, filename, content_type, value } = field;
            let mut text = format!("{name}={}", value.escape_ascii());
            for extra in [filename, content_type].into_iter().flatten() {
                let _ = write!(text, " {extra}");
            }
            text
        };
        Some(fields.iter().map(describe).collect::<Vec<_>>().join("|"))
    }

    #[test]
    fn parses_forms() {
        let field = "Content-Disposition: form-data; name=\"a\"\r\n\r\n";
        let table: &[(String, Option<&str>)] = &[
            (format!("--x\r\n{field}1\r\n--x--\r\n"), Some("a=1")),
            (format!("--x\r\n{field}1\r\n--x--"), Some("a=1")),
            (format!("preamble\r\n--x \t\r\n{field}\r\n--x\r\n{field}2\r\n--x--epilogue"), Some("a=|a=2")),
            ("--x--".to_owned(), Some("")),
            // Exact values.
            (format!("--x\r\n{field}\r\n\r\n--xy\r\n-- \r\n\r\n--x--"), Some(r"a=\r\n\r\n--xy\r\n-- \r\n")),
            (
                "--x\r\ncontent-disposition: form-data; name=f; filename=\"%22ü%22.txt\"\r\nContent-Type: text/plain; \
                 charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n\r\naGk=\r\n--x--"
                    .to_owned(),
                Some("f=aGk= \"ü\".txt text/plain; charset=utf-8"),
            ),
            (
                "--x\r\nContent-Disposition: form-data; name=\"f\"; filename*=utf-8''%C3%A9.txt\r\n\r\nx\r\n--x--"
                    .to_owned(),
                Some("f=x é.txt"),
            ),
            // Invalid forms.
            (String::new(), None),
            ("a=1".to_owned(), None),
            (format!("--x\r\n{field}1\r\n"), None),
            (format!("--xy\r\n{field}1\r\n--xy--"), None),
            ("--x\r\nContent-Type: text/plain\r\n\r\n1\r\n--x--".to_owned(), None),
            ("--x\r\n\r\n1\r\n--x--".to_owned(), None),
            ("--x\r\n--x--".to_owned(), None),
        ];
        for (body, expected) in table {
            assert_eq!(describe(TYPE, body.as_bytes()).as_deref(), *expected, "{body:?}");
        }
        let body = format!("--x\r\n{field}\0\u{ff}\r\n--x--");
        assert_eq!(describe(TYPE, body.as_bytes()).as_deref(), Some(r"a=\x00\xc3\xbf"));
        for content_type in ["multipart/form-data", "multipart/form-data; boundary=\"\"", "x"] {
            assert_eq!(describe(content_type, body.as_bytes()), None, "{content_type}");
        }
    }

    #[test]
    fn hostile_forms_are_refused_quickly() {
        let field = "--x\r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n";
        let table = [
            field.repeat(1_000_000),
            format!("{}--x--", field.repeat(MAX_FIELDS + 1)),
            "--x\r\n".repeat(1_000_000),
            format!("--x\r\n{}", "\r\n--x ".repeat(1_000_000)),
            format!("--x\r\n{}", "A: b\r\n".repeat(1_000_000)),
            format!("--x\r\nContent-Disposition: {}\r\n--x--", "a=b;".repeat(1_000_000)),
        ];
        for body in table {
            let started = Instant::now();
            assert!(describe(TYPE, body.as_bytes()).is_none(), "{body:.80}");
            assert!(started.elapsed() < Duration::from_secs(5), "{body:.80}");
        }
        assert!(describe(TYPE, format!("{}--x--", field.repeat(MAX_FIELDS)).as_bytes()).is_some());
    }
}
