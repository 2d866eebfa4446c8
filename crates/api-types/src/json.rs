//! Serializes values as JSON in the form of all responses: no whitespace, the fewest escapes that RFC 8259 section 7
//! permits, and numbers as [`std::fmt::Display`] writes them.

use std::io;

use serde::Serialize;
use serde_json::ser::{CharEscape, Formatter, Serializer};

/// Returns a value as JSON.
///
/// Fails only if the [`Serialize`] implementation of the value fails, or if a map has keys that are not strings.
pub fn to_vec(value: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut out = Vec::with_capacity(128);
    append(&mut out, value)?;
    Ok(out)
}

/// Appends a value as JSON to `out`. Fails like [`to_vec`].
pub fn append(out: &mut Vec<u8>, value: &impl Serialize) -> serde_json::Result<()> {
    value.serialize(&mut Serializer::with_formatter(out, Format))
}

/// A JSON formatter that differs from the compact form of `serde_json` in two details: backspace and form feed have no
/// short escape, and whole floating-point numbers have no fraction.
struct Format;

impl Formatter for Format {
    fn write_f32<W: io::Write + ?Sized>(&mut self, writer: &mut W, value: f32) -> io::Result<()> {
        write!(writer, "{value}")
    }

    fn write_f64<W: io::Write + ?Sized>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        write!(writer, "{value}")
    }

    fn write_char_escape<W: io::Write + ?Sized>(&mut self, writer: &mut W, escape: CharEscape) -> io::Result<()> {
        let byte = match escape {
            CharEscape::Quote => return writer.write_all(b"\\\""),
            CharEscape::ReverseSolidus => return writer.write_all(b"\\\\"),
            CharEscape::Solidus => return writer.write_all(b"\\/"),
            CharEscape::LineFeed => return writer.write_all(b"\\n"),
            CharEscape::CarriageReturn => return writer.write_all(b"\\r"),
            CharEscape::Tab => return writer.write_all(b"\\t"),
            CharEscape::Backspace => 0x08,
            CharEscape::FormFeed => 0x0c,
            CharEscape::AsciiControl(byte) => byte,
        };
        write!(writer, "\\u{byte:04x}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: impl Serialize) -> String {
        String::from_utf8(to_vec(&value).unwrap()).unwrap()
    }

    #[test]
    fn strings_have_fewest_escapes() {
        let table = [
            ("", r#""""#),
            ("say \"hi\" \\o/", r#""say \"hi\" \\o/""#),
            ("a\r\n\tb", r#""a\r\n\tb""#),
            ("\u{8}\u{c}", r#""\u0008\u000c""#),
            ("\0\u{1f}\u{7f}", "\"\\u0000\\u001f\u{7f}\""),
            ("Grüße 📬", "\"Grüße 📬\""),
        ];
        for (value, expected) in table {
            assert_eq!(text(value), expected);
        }
    }

    #[test]
    fn numbers_are_written_as_displayed() {
        for value in [0.0, 1.0, 0.97, 0.1 + 0.2, 1e-7, 1e21] {
            assert_eq!(text(value), value.to_string());
        }
        assert_eq!((text(0.5_f32), text(1.0_f32)), ("0.5".to_owned(), "1".to_owned()));
        assert_eq!(
            text((u64::MAX, i64::MIN, true, None::<u8>)),
            "[18446744073709551615,-9223372036854775808,true,null]"
        );
    }

    proptest::proptest! {
        #[test]
        fn strings_round_trip(value in ".*|[\\x00-\\x7f]*") {
            proptest::prop_assert_eq!(serde_json::from_str::<String>(&text(&value)).ok(), Some(value));
        }
    }
}
