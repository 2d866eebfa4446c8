//! Parsing of the Date field. Deviations from RFC 5322 are accepted.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::Offset;
use restante_mail::mime::unfold;

use super::write::MONTHS;

/// The number of bytes of the field that are parsed.
const MAX_FIELD_BYTES: usize = 256;

/// The value of a Date field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SentDate {
    /// The day as it is written, in the time zone of the sender.
    pub(super) day: Date,
    /// The time in UTC.
    pub(super) time: Timestamp,
}

impl SentDate {
    /// Parses the value of a Date field. RFC 5256 section 2.2: a missing or invalid time is midnight, and the zone is UTC if it
    /// is missing or unknown. Returns `None` if the day is invalid.
    pub(super) fn parse(field: &[u8]) -> Option<Self> {
        let field = unfold(&field[..field.len().min(MAX_FIELD_BYTES)]);
        let text = without_comments(&field);
        let words: Vec<&str> = text.split([' ', '\t', ',']).filter(|word| !word.is_empty()).collect();
        // `1-Jan-2024` is one word.
        let (day, rest) = words.iter().enumerate().find_map(|(index, word)| {
            let joined: Vec<&str> = word.split('-').collect();
            let (parts, next) = match joined[..] {
                [day, month, year] => ([day, month, year], index + 1),
                _ => ([*word, words.get(index + 1)?, words.get(index + 2)?], index + 3),
            };
            Some((parse_day(parts)?, words.get(next..)?))
        })?;
        let time = rest.first().and_then(|word| parse_time(word)).unwrap_or_default();
        let offset = rest.get(1).map_or(0, |word| zone_seconds(word));
        let local = DateTime::from_parts(day, time);
        let utc = Offset::UTC.to_timestamp(local).ok()?;
        let time = Timestamp::from_second(utc.as_second() - offset).unwrap_or(utc);
        Some(Self { day, time })
    }
}

/// Replaces comments by blanks, and bytes outside of ASCII by `?`.
fn without_comments(field: &[u8]) -> String {
    let mut depth = 0_usize;
    let text = field.iter().map(|&byte| match byte {
        b'(' => {
            depth += 1;
            ' '
        }
        b')' => {
            depth = depth.saturating_sub(1);
            ' '
        }
        _ if depth > 0 => ' ',
        0x80.. => '?',
        _ => char::from(byte),
    });
    text.collect()
}

fn parse_day([day, month, year]: [&str; 3]) -> Option<Date> {
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let name = month.get(..3)?;
    let month = MONTHS.iter().position(|known| known.eq_ignore_ascii_case(name))?;
    // RFC 5322 section 4.3.
    let century = match year.len() {
        2 if year < "50" => 2000,
        2 | 3 => 1900,
        _ => 0,
    };
    let year = year.parse::<i16>().ok().filter(|_| is_number(year))? + century;
    Date::new(year, i8::try_from(month + 1).ok()?, day.parse().ok().filter(|_| is_number(day))?).ok()
}

fn parse_time(word: &str) -> Option<Time> {
    let mut parts = word.split([':', '.']);
    let hour = parts.next()?.parse().ok()?;
    let minute = parts.next()?.parse().ok()?;
    let second: i8 = parts.next().map_or(Some(0), |second| second.parse().ok())?;
    // A leap second.
    Time::new(hour, minute, second.min(59), 0).ok()
}

/// Returns the offset of a zone from UTC, in seconds. Zero if it is unknown.
fn zone_seconds(zone: &str) -> i64 {
    let name = zone.to_ascii_uppercase();
    let hours = match name.as_str() {
        "EDT" => -4,
        "EST" | "CDT" => -5,
        "CST" | "MDT" => -6,
        "MST" | "PDT" => -7,
        "PST" => -8,
        _ => 0,
    };
    let digits = zone.strip_prefix(['+', '-']).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
    let digits = digits.and_then(|digits| digits.get(..4)?.parse::<i64>().ok());
    match digits {
        Some(digits) if digits < 2400 && digits % 100 < 60 => {
            let seconds = (digits / 100 * 60 + digits % 100) * 60;
            if zone.starts_with('-') { -seconds } else { seconds }
        }
        Some(_) => 0,
        None => hours * 3600,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_dates() {
        let table = [
            (" Mon, 1 Jan 2024 23:30:15 -0100", Some(("2024-01-01", "2024-01-02T00:30:15Z"))),
            ("1 Jan 2024 00:30 +0100", Some(("2024-01-01", "2023-12-31T23:30:00Z"))),
            ("Mon, 01 Jan 2024 10:00:00 GMT (comment (nested)) x", Some(("2024-01-01", "2024-01-01T10:00:00Z"))),
            ("Mon,\r\n 1 Jan 24 10:00:00 PST", Some(("2024-01-01", "2024-01-01T18:00:00Z"))),
            ("1 January 99 9:5:7 EDT", Some(("1999-01-01", "1999-01-01T13:05:07Z"))),
            ("1-Jan-2024 10:00:00 +0530", Some(("2024-01-01", "2024-01-01T04:30:00Z"))),
            ("31 Dec 2016 23:59:60 +0000", Some(("2016-12-31", "2016-12-31T23:59:59Z"))),
            ("1 Jan 2024", Some(("2024-01-01", "2024-01-01T00:00:00Z"))),
            ("1 Jan 2024 25:00:00 +0100", Some(("2024-01-01", "2023-12-31T23:00:00Z"))),
            ("1 Jan 2024 10:00:00 +9999", Some(("2024-01-01", "2024-01-01T10:00:00Z"))),
            ("1 Jan 2024 10:00:00 Nowhere", Some(("2024-01-01", "2024-01-01T10:00:00Z"))),
            ("32 Jan 2024 10:00:00", None),
            ("-1 Jan 2024 10:00:00", None),
            ("yesterday", None),
            ("é é é", None),
            ("", None),
        ];
        for (field, expected) in table {
            let expected =
                expected.map(|(day, time)| SentDate { day: day.parse().unwrap(), time: time.parse().unwrap() });
            assert_eq!(SentDate::parse(field.as_bytes()), expected, "{field}");
        }
    }
}
