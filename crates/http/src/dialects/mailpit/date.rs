//! The header field Date as RFC 3339 has it.

use jiff::fmt::rfc2822::DateTimeParser;

/// Accepts dates with a wrong day of the week.
static PARSER: DateTimeParser = DateTimeParser::new().relaxed_weekday(true);

/// Returns the date of the header field Date, in the time zone of the sender. `None` if it is not a date.
pub(crate) fn header_date(field: &str) -> Option<String> {
    let date = PARSER.parse_zoned(field.trim()).ok()?;
    let offset = date.offset().seconds();
    if offset == 0 {
        return Some(format!("{}Z", date.datetime()));
    }
    let (sign, minutes) = (if offset < 0 { '-' } else { '+' }, offset.abs() / 60);
    Some(format!("{}{sign}{:02}:{:02}", date.datetime(), minutes / 60, minutes % 60))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_dates_keep_their_zone() {
        let table = [
            ("Sat, 14 Nov 2026 09:30:00 +0100", Some("2026-11-14T09:30:00+01:00")),
            ("Mon, 14 Nov 2026 09:30:00 -0330", Some("2026-11-14T09:30:00-03:30")),
            ("14 Nov 2026 09:30 +0000", Some("2026-11-14T09:30:00Z")),
            ("Sat, 14 Nov 2026 09:30:00 GMT", Some("2026-11-14T09:30:00Z")),
            (" Sat, 14 Nov 2026 09:30:00 +0000 (UTC)", Some("2026-11-14T09:30:00Z")),
            ("2026-11-14T09:30:00Z", None),
            ("yesterday", None),
            ("", None),
        ];
        for (field, expected) in table {
            assert_eq!(header_date(field).as_deref(), expected, "{field}");
        }
    }
}
