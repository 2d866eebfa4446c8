//! Writers of the values in replies: strings, numbers, dates and names of sections.

use std::num::NonZeroU32;

use jiff::Timestamp;
use jiff::tz::Offset;

use super::command::{Section, SectionText};

/// The maximum length of a quoted string. Longer strings are literals, because some clients limit the length of a line.
const MAX_QUOTED_BYTES: usize = 1000;
pub(super) const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Writes a number.
pub(super) fn write_number(out: &mut Vec<u8>, number: u64) {
    let (mut digits, mut rest) = ([0; 20], number);
    let mut start = digits.len();
    for digit in digits.iter_mut().rev() {
        // The remainder is below ten.
        *digit = b'0' + u8::try_from(rest % 10).unwrap_or_default();
        rest /= 10;
        start -= 1;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[start..]);
}

/// Writes a literal: its length and its octets.
pub(super) fn write_literal(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'{');
    write_number(out, text.len() as u64);
    out.extend_from_slice(b"}\r\n");
    out.extend_from_slice(text);
}

/// Writes a string: quoted if it is short and its octets permit it, otherwise a literal. Text outside of ASCII is quoted only if
/// it is UTF-8 and `is_utf8` is set, after ENABLE of UTF8=ACCEPT or IMAP4rev2. NUL, which neither form can contain, becomes a
/// space.
pub(super) fn write_string(out: &mut Vec<u8>, text: &[u8], is_utf8: bool) {
    let is_short = text.len() <= MAX_QUOTED_BYTES;
    if is_short && text.iter().all(|byte| matches!(byte, 1..=0x7f) && !b"\r\n\"\\".contains(byte)) {
        out.push(b'"');
        out.extend_from_slice(text);
        out.push(b'"');
    } else if text.contains(&0) {
        let text: Vec<u8> = text.iter().map(|&byte| if byte == 0 { b' ' } else { byte }).collect();
        write_string(out, &text, is_utf8);
    } else if !is_short
        || memchr::memchr2(b'\r', b'\n', text).is_some()
        || !(text.is_ascii() || is_utf8 && std::str::from_utf8(text).is_ok())
    {
        write_literal(out, text);
    } else {
        out.push(b'"');
        for &byte in text {
            if matches!(byte, b'"' | b'\\') {
                out.push(b'\\');
            }
            out.push(byte);
        }
        out.push(b'"');
    }
}

/// Writes a string, or NIL. See [`write_string`].
pub(super) fn write_nstring(out: &mut Vec<u8>, text: Option<&[u8]>, is_utf8: bool) {
    match text {
        Some(text) => write_string(out, text, is_utf8),
        None => out.extend_from_slice(b"NIL"),
    }
}

/// Writes an atom if the octets permit it, otherwise a string. See [`write_string`].
pub(super) fn write_astring(out: &mut Vec<u8>, text: &[u8], is_utf8: bool) {
    let is_atom_octet = |byte: &u8| byte.is_ascii_graphic() && !b"(){%*\"\\".contains(byte);
    if !text.is_empty() && text.len() <= MAX_QUOTED_BYTES && text.iter().all(is_atom_octet) && !is_nil(text) {
        out.extend_from_slice(text);
    } else {
        write_string(out, text, is_utf8);
    }
}

/// Returns whether the text is NIL, which some clients do not accept as an atom.
fn is_nil(text: &[u8]) -> bool {
    text.eq_ignore_ascii_case(b"NIL")
}

/// Writes a time as INTERNALDATE does, in UTC and with quotes: `" 1-Jan-2024 10:00:00 +0000"`.
pub(super) fn write_internal_date(out: &mut Vec<u8>, time: Timestamp) {
    let time = Offset::UTC.to_datetime(time);
    let month = usize::try_from(time.month()).ok().and_then(|month| MONTHS.get(month - 1)).unwrap_or(&MONTHS[0]);
    let (day, year) = (time.day(), time.year().max(0));
    let (hour, minute, second) = (time.hour(), time.minute(), time.second());
    let text = format!("\"{day:>2}-{month}-{year:04} {hour:02}:{minute:02}:{second:02} +0000\"");
    out.extend_from_slice(text.as_bytes());
}

/// Writes the numbers of a part: `1.2.3`.
pub(super) fn write_part(out: &mut Vec<u8>, part: &[NonZeroU32]) {
    for (index, number) in part.iter().enumerate() {
        if index > 0 {
            out.push(b'.');
        }
        write_number(out, number.get().into());
    }
}

/// Writes the name of a section in a reply, with the first octet of a partial fetch: `BODY[1.HEADER.FIELDS (DATE)]<0>`.
pub(super) fn write_section_name(out: &mut Vec<u8>, section: &Section, origin: Option<u32>) {
    out.extend_from_slice(b"BODY[");
    write_part(out, &section.part);
    let (name, fields): (&[u8], &[String]) = match &section.text {
        SectionText::All => (b"", &[]),
        SectionText::Header => (b"HEADER", &[]),
        SectionText::HeaderFields(fields) => (b"HEADER.FIELDS", fields),
        SectionText::HeaderFieldsNot(fields) => (b"HEADER.FIELDS.NOT", fields),
        SectionText::Text => (b"TEXT", &[]),
        SectionText::Mime => (b"MIME", &[]),
    };
    if !section.part.is_empty() && !name.is_empty() {
        out.push(b'.');
    }
    out.extend_from_slice(name);
    for (index, field) in fields.iter().enumerate() {
        out.extend_from_slice(if index == 0 { b" (" } else { b" " });
        write_astring(out, field.as_bytes(), false);
    }
    out.extend_from_slice(if fields.is_empty() { b"]" } else { b")]" });
    if let Some(origin) = origin {
        out.push(b'<');
        write_number(out, origin.into());
        out.push(b'>');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn writes_strings() {
        let long = "x".repeat(MAX_QUOTED_BYTES + 1);
        let long_literal = format!("{{{}}}\r\n{long}", long.len());
        let table = [
            ("", "\"\"", "\"\"", "\"\""),
            ("abc", "abc", "\"abc\"", "\"abc\""),
            ("a b", "\"a b\"", "\"a b\"", "\"a b\""),
            ("a]", "a]", "\"a]\"", "\"a]\""),
            ("nil", "\"nil\"", "\"nil\"", "\"nil\""),
            ("a\"\\", "\"a\\\"\\\\\"", "\"a\\\"\\\\\"", "\"a\\\"\\\\\""),
            ("é", "{2}\r\né", "{2}\r\né", "\"é\""),
            ("a\nb", "{3}\r\na\nb", "{3}\r\na\nb", "{3}\r\na\nb"),
            ("a\0b", "\"a b\"", "\"a b\"", "\"a b\""),
            (&long, &long_literal, &long_literal, &long_literal),
        ];
        for (text, atom, string, utf8) in table {
            assert_eq!(written(|out| write_astring(out, text.as_bytes(), false)), atom, "{text:?}");
            assert_eq!(written(|out| write_string(out, text.as_bytes(), false)), string, "{text:?}");
            assert_eq!(written(|out| write_string(out, text.as_bytes(), true)), utf8, "{text:?}");
        }
        assert_eq!(written(|out| write_string(out, b"\xe9", true)), "{1}\r\n\u{fffd}");
        assert_eq!(written(|out| write_nstring(out, None, false)), "NIL");
    }

    #[test]
    fn writes_numbers_and_dates() {
        for number in [0, 7, 10, 4_294_967_295, u64::MAX] {
            assert_eq!(written(|out| write_number(out, number)), number.to_string());
        }
        let table = [
            (1_704_103_200, "\" 1-Jan-2024 10:00:00 +0000\""),
            (0, "\" 1-Jan-1970 00:00:00 +0000\""),
            (253_402_207_199, "\"30-Dec-9999 21:59:59 +0000\""),
        ];
        for (second, expected) in table {
            assert_eq!(written(|out| write_internal_date(out, Timestamp::from_second(second).unwrap())), expected);
        }
    }

    #[test]
    fn writes_names_of_sections() {
        let part: Vec<_> = [1, 12].into_iter().filter_map(NonZeroU32::new).collect();
        let fields = || vec!["Date".to_owned(), "a b".to_owned()];
        let table = [
            (SectionText::All, "BODY[]", "BODY[1.12]"),
            (SectionText::Header, "BODY[HEADER]", "BODY[1.12.HEADER]"),
            (SectionText::Text, "BODY[TEXT]", "BODY[1.12.TEXT]"),
            (SectionText::Mime, "BODY[MIME]", "BODY[1.12.MIME]"),
            (
                SectionText::HeaderFields(fields()),
                "BODY[HEADER.FIELDS (Date \"a b\")]",
                "BODY[1.12.HEADER.FIELDS (Date \"a b\")]",
            ),
            (
                SectionText::HeaderFieldsNot(vec!["X".to_owned()]),
                "BODY[HEADER.FIELDS.NOT (X)]",
                "BODY[1.12.HEADER.FIELDS.NOT (X)]",
            ),
        ];
        for (text, message, of_part) in table {
            let section = Section { part: Vec::new(), text: text.clone() };
            assert_eq!(written(|out| write_section_name(out, &section, None)), message);
            let section = Section { part: part.clone(), text };
            assert_eq!(written(|out| write_section_name(out, &section, Some(7))), of_part.to_owned() + "<7>");
        }
    }
}
