//! Dates and times as Mailpit accepts them: in the usual notations of ISO 8601, of mail headers and of the United States,
//! and as the number of seconds, milliseconds, microseconds or nanoseconds since 1970.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::{Offset, TimeZone};

/// The names of the months. Their abbreviations have three letters.
const MONTHS: &str = "JANUARY FEBRUARY MARCH APRIL MAY JUNE JULY AUGUST SEPTEMBER OCTOBER NOVEMBER DECEMBER";
const WEEKDAYS: [&str; 7] = ["MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"];

/// Parses a point in time. Without a zone it is in `zone`. A date without a time is the beginning of that day.
pub(crate) fn parse(text: &str, zone: &TimeZone) -> Option<Timestamp> {
    let text = text.trim().to_ascii_uppercase();
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return parse_digits(&text, zone);
    }
    let spaced = space_between_date_and_time(&text);
    let mut words: Vec<&str> = spaced.split([' ', ',']).filter(|word| !word.is_empty()).collect();
    if words.first().is_some_and(|word| WEEKDAYS.contains(&word.get(..3).unwrap_or_default())) {
        words.remove(0);
    }
    let (date, rest) = parse_date(&words)?;
    let (time, offset) = parse_time(rest)?;
    in_zone(DateTime::from_parts(date, time), offset.map(TimeZone::fixed).as_ref().unwrap_or(zone))
}

fn in_zone(datetime: DateTime, zone: &TimeZone) -> Option<Timestamp> {
    zone.to_timestamp(datetime).ok()
}

/// Parses a year, a date or a date with a time without separators, or a number of units since 1970.
fn parse_digits(text: &str, zone: &TimeZone) -> Option<Timestamp> {
    let number: i64 = text.parse().ok()?;
    match text.len() {
        4 | 8 | 14 => {
            let part = |start: usize, end: usize| text.get(start..end).unwrap_or_default();
            let (year, month, day) = (part(0, 4), part(4, 6), part(6, 8));
            let (month, day) = if text.len() == 4 { ("1", "1") } else { (month, day) };
            let date = date(year, month, day)?;
            let clock = |start: usize| if text.len() == 14 { part(start, start + 2).parse().ok() } else { Some(0) };
            let time = Time::new(clock(8)?, clock(10)?, clock(12)?, 0).ok()?;
            in_zone(DateTime::from_parts(date, time), zone)
        }
        10 => Timestamp::from_second(number).ok(),
        13 => Timestamp::from_millisecond(number).ok(),
        16 => Timestamp::from_microsecond(number).ok(),
        19 => Timestamp::from_nanosecond(number.into()).ok(),
        _ => None,
    }
}

/// Replaces the `T` between a date and a time.
fn space_between_date_and_time(text: &str) -> String {
    let bytes = text.as_bytes();
    let is_between = |at: usize| {
        let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
        bytes[at] == b'T' && at > 0 && is_digit(at - 1) && is_digit(at + 1)
    };
    text.char_indices().map(|(at, c)| if c == 'T' && is_between(at) { ' ' } else { c }).collect()
}

/// Parses the date at the beginning of the words. Also returns the other words.
fn parse_date<'w>(words: &'w [&'w str]) -> Option<(Date, &'w [&'w str])> {
    if let [first, second, third, rest @ ..] = words {
        let found = match (month(first), month(second)) {
            (Some(month), _) => date(third, &month, second),
            (_, Some(month)) => date(third, &month, first),
            _ => None,
        };
        if let Some(date) = found {
            return Some((date, rest));
        }
    }
    let (first, rest) = words.split_first()?;
    let separator = first.chars().find(|c| ['-', '/', '.'].contains(c))?;
    let parts: Vec<&str> = first.split(separator).collect();
    let date = match (parts[..].as_ref(), separator) {
        ([year, second], '-' | '/') if year.len() == 4 => date(year, second, "1"),
        ([year, second, day], _) if year.len() == 4 => date(year, month(second).as_deref().unwrap_or(second), day),
        ([day, name, year], '-') => date(year, &month(name)?, day),
        ([month, day, year], '/' | '.') => date(year, month, day),
        _ => None,
    };
    Some((date?, rest))
}

/// Returns the number of a month with this name or abbreviation.
fn month(name: &str) -> Option<String> {
    let has_name = |month: &str| name == month || name == &month[..3];
    MONTHS.split(' ').position(has_name).map(|index| (index + 1).to_string())
}

fn date(year: &str, month: &str, day: &str) -> Option<Date> {
    let is_number = |text: &str| (1..=4).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    if ![year, month, day].into_iter().all(is_number) {
        return None;
    }
    let year = match (year.len(), year.parse::<i16>().ok()?) {
        (4, year) => year,
        (2, year) if year >= 69 => 1900 + year,
        (2, year) => 2000 + year,
        _ => return None,
    };
    Date::new(year, month.parse().ok()?, day.parse().ok()?).ok()
}

/// Parses the words after the date: nothing, or a time, which may be followed by AM or PM and by a zone.
fn parse_time(words: &[&str]) -> Option<(Time, Option<Offset>)> {
    let Some((first, mut rest)) = words.split_first() else { return Some((Time::midnight(), None)) };
    let end = first.find(|c: char| !c.is_ascii_digit() && c != ':' && c != '.').unwrap_or(first.len());
    let (clock, mut suffix) = first.split_at(end);
    if suffix.is_empty()
        && let Some((half @ (&"AM" | &"PM"), after)) = rest.split_first()
    {
        (suffix, rest) = (half, after);
    }
    let half = ["AM", "PM"].into_iter().find(|half| suffix.starts_with(half));
    suffix = half.map_or(suffix, |_| &suffix[2..]);
    if suffix.is_empty()
        && let Some((zone, after)) = rest.split_first()
    {
        (suffix, rest) = (zone, after);
    }
    if !rest.is_empty() {
        return None;
    }
    let offset = if suffix.is_empty() { None } else { Some(parse_offset(suffix)?) };
    Some((parse_clock(clock, half)?, offset))
}

/// Parses `9:30`, `9:30:15` or `9:30:15.25`.
fn parse_clock(text: &str, half: Option<&str>) -> Option<Time> {
    let (text, fraction) = text.split_once('.').unwrap_or((text, ""));
    let mut parts = text.split(':');
    let hour: i8 = parts.next()?.parse().ok()?;
    let minute: i8 = parts.next()?.parse().ok()?;
    let second: i8 = parts.next().map_or(Some(0), |second| second.parse().ok())?;
    let hour = match half {
        Some(_) if !(1..=12).contains(&hour) => return None,
        Some("PM") => hour % 12 + 12,
        Some(_) => hour % 12,
        None => hour,
    };
    let nanoseconds: i32 = if fraction.is_empty() { 0 } else { format!("{fraction:0<9}").get(..9)?.parse().ok()? };
    if parts.next().is_some() { None } else { Time::new(hour, minute, second, nanoseconds).ok() }
}

/// Parses `Z`, `UTC`, `GMT`, `+0200` or `+02:00`.
fn parse_offset(text: &str) -> Option<Offset> {
    if ["Z", "UTC", "GMT"].contains(&text) {
        return Some(Offset::UTC);
    }
    let (sign, digits) = match text.split_at_checked(1)? {
        ("+", digits) => (1, digits),
        ("-", digits) => (-1, digits),
        _ => return None,
    };
    let digits = digits.replace(':', "");
    if digits.len() != 4 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let (hours, minutes): (i32, i32) = (digits[..2].parse().ok()?, digits[2..].parse().ok()?);
    if minutes > 59 { None } else { Offset::from_seconds(sign * (hours * 3600 + minutes * 60)).ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_points_in_time() {
        let zone = TimeZone::fixed(Offset::constant(13));
        let table = [
            ("2026-11-16", "2026-11-15T11:00:00Z"),
            ("2026-1-6", "2026-01-05T11:00:00Z"),
            ("2026/11/16", "2026-11-15T11:00:00Z"),
            ("2026.11.16", "2026-11-15T11:00:00Z"),
            ("2026-11", "2026-10-31T11:00:00Z"),
            ("2026/11", "2026-10-31T11:00:00Z"),
            ("2026", "2025-12-31T11:00:00Z"),
            ("20261116", "2026-11-15T11:00:00Z"),
            ("20261116093015", "2026-11-15T20:30:15Z"),
            ("2026-11-16 9:30", "2026-11-15T20:30:00Z"),
            ("2026-11-16 09:30:15.123", "2026-11-15T20:30:15.123Z"),
            ("2026-11-16t09:30", "2026-11-15T20:30:00Z"),
            ("2026-11-16T09:30Z", "2026-11-16T09:30:00Z"),
            ("2026-11-16T09:30:15.5Z", "2026-11-16T09:30:15.5Z"),
            ("2026-11-16T09:30:15+02:00", "2026-11-16T07:30:15Z"),
            ("2026-11-16 09:30:15 -0230", "2026-11-16T12:00:15Z"),
            ("2026-11-16 09:30:15 UTC", "2026-11-16T09:30:15Z"),
            ("2026-11-16 09:30 PM", "2026-11-16T08:30:00Z"),
            ("2026-11-16 9:30pm", "2026-11-16T08:30:00Z"),
            ("2026-11-16 12:05 AM +0000", "2026-11-16T00:05:00Z"),
            ("11/16/2026", "2026-11-15T11:00:00Z"),
            ("1/6/26", "2026-01-05T11:00:00Z"),
            ("11/16/99", "1999-11-15T11:00:00Z"),
            ("11.16.2026", "2026-11-15T11:00:00Z"),
            ("11/16/2026 09:30", "2026-11-15T20:30:00Z"),
            ("1794699770", "2026-11-14T23:42:50Z"),
            ("1794699770123", "2026-11-14T23:42:50.123Z"),
            ("1794699770123456", "2026-11-14T23:42:50.123456Z"),
            ("1794699770123456789", "2026-11-14T23:42:50.123456789Z"),
            ("16 Nov 2026", "2026-11-15T11:00:00Z"),
            ("November 16, 2026", "2026-11-15T11:00:00Z"),
            ("may 2 2026 09:30:15", "2026-05-01T20:30:15Z"),
            ("16-Nov-2026", "2026-11-15T11:00:00Z"),
            ("2026-Nov-16", "2026-11-15T11:00:00Z"),
            ("Mon, 16 Nov 2026 09:30:15 +0200", "2026-11-16T07:30:15Z"),
        ];
        for (text, expected) in table {
            assert_eq!(parse(text, &zone), Some(expected.parse().unwrap()), "{text}");
        }
    }

    #[test]
    fn refuses_other_texts() {
        let table = [
            "",
            " ",
            "today",
            "now",
            "7d",
            "1h",
            "0",
            "12",
            "99999",
            "Nov 2026",
            "2026-13-40",
            "2026-02-30",
            "13/1/2026",
            "16.11.2026",
            "11-16-2026",
            "2026-11-16T24:00",
            "2026-11-16 9",
            "2026-11-16 25:00",
            "2026-11-16 13:00 PM",
            "2026-11-16 09:30 CEST",
            "2026-11-16 09:30 +0275",
            "2026-11-16 09:30 UTC x",
            "2026-11-16 9:30:1:2",
            "-",
            "/",
            "2026-+1-06",
            "ü-ü-ü",
            "2026年",
            "T",
            "1T2",
        ];
        for text in table {
            assert_eq!(parse(text, &TimeZone::UTC), None, "{text}");
        }
    }

    #[test]
    fn zones_have_daylight_saving_time() {
        let zone = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        for (text, expected) in [("2026-07-01", "2026-06-30T22:00:00Z"), ("2026-12-01", "2026-11-30T23:00:00Z")] {
            assert_eq!(parse(text, &zone), Some(expected.parse().unwrap()), "{text}");
        }
    }
}
