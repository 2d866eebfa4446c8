//! The header field Date as RFC 3339 has it.

use jiff::fmt::rfc2822::DateTimeParser;

/// Accepts dates with a wrong day of the week.
static PARSER: DateTimeParser = DateTimeParser::new().relaxed_weekday(true);

/// Returns the date of the header field Date, in the time zone of the sender. `None` if it is not a date. Text after the
/// zone is ignored.
pub(crate) fn header_date(field: &str) -> Option<String> {
    let parse = |date: &str| PARSER.parse_zoned(date).ok();
    let date = parse(field.trim()).or_else(|| parse(&normalize(field)?))?;
    let offset = date.offset().seconds();
    if offset == 0 {
        return Some(format!("{}Z", date.datetime()));
    }
    let (sign, minutes) = (if offset < 0 { '-' } else { '+' }, offset.abs() / 60);
    Some(format!("{}{sign}{:02}:{:02}", date.datetime(), minutes / 60, minutes % 60))
}

/// Writes a date of a program that deviates from RFC 5322 as the standard requires: with two digits of the hour, and
/// without text after the zone.
fn normalize(field: &str) -> Option<String> {
    let is_time = |word: &str| word.contains(':') && word.starts_with(|c: char| c.is_ascii_digit());
    let (at, time) = field.split_ascii_whitespace().enumerate().find(|(_, word)| is_time(word))?;
    let day = field.split_ascii_whitespace().take(at).collect::<Vec<_>>().join(" ");
    let zone = field.split_ascii_whitespace().nth(at + 1)?;
    let zone_end = zone.find(|c: char| !c.is_ascii_alphanumeric() && c != '+' && c != '-').unwrap_or(zone.len());
    let leading_zero = if time.find(':') == Some(1) { "0" } else { "" };
    Some(format!("{day} {leading_zero}{time} {}", &zone[..zone_end]))
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

    #[test]
    fn dates_with_a_short_hour_or_text_after_the_zone_are_parsed() {
        let table = [
            ("Sat, 14 Nov 2026 9:30:00 +0100", Some("2026-11-14T09:30:00+01:00")),
            ("14 Nov 26 9:30 EST", Some("2026-11-14T09:30:00-05:00")),
            ("Sat, 14 Nov 2026 09:30:00 +0100 (CET) and more", Some("2026-11-14T09:30:00+01:00")),
            ("Sat, 14 Nov 2026 09:30:00 +0100(CET)", Some("2026-11-14T09:30:00+01:00")),
            ("Sat,\t14 Nov  2026 9:30:00 +0100 (not closed", Some("2026-11-14T09:30:00+01:00")),
            ("Sat, 14 Nov 2026 09:30:00 GMT; text", Some("2026-11-14T09:30:00Z")),
            ("Sat, 14 Nov 2026 9:30 PM +0100", None),
            ("Sat, 14 Nov 2026 9:30:00", None),
            ("Sat, 14 Nov 2026 29:30:00 +0100", None),
        ];
        for (field, expected) in table {
            assert_eq!(header_date(field).as_deref(), expected, "{field}");
        }
    }
}
