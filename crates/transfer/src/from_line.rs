//! The `From ` line before a message of an mbox, and the time in it. The format is that of C's `asctime` (RFC 4155);
//! common deviations are accepted.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::fmt::rfc2822::DateTimeParser;
use jiff::tz::Offset;

/// The month names of asctime, in order.
const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
/// The day names of asctime, from Monday.
const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

/// Returns whether the text after `From ` is probably not ordinary text: it starts with an address, is one word, or
/// ends with a time.
pub(super) fn is_from_line(line: &[u8]) -> bool {
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let Some(first) = words.next() else { return false };
    first.contains(&b'@') || words.next().is_none() || parse_time(line).is_some()
}

/// Parses the time at the end of a `From ` line. With UUCP, the name of a machine follows it.
pub(super) fn parse_time(line: &[u8]) -> Option<Timestamp> {
    let line = std::str::from_utf8(line).ok()?;
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let words = if let [words @ .., "remote", "from", _] = words.as_slice() { words } else { &words };
    parse_asctime(words).or_else(|| parse_header_date(words))
}

/// Parses the format of `asctime`. Several programs write a time zone before or after the year. A named zone is
/// interpreted as UTC.
fn parse_asctime(words: &[&str]) -> Option<Timestamp> {
    let day = words.iter().rposition(|word| DAYS.contains(word))?;
    let [month, day, time, rest @ ..] = &words[day + 1..] else { return None };
    let month = i8::try_from(MONTHS.iter().position(|name| name == month)? + 1).ok()?;
    let (year, zone) = match rest {
        [year] => (year, None),
        [first_field, second_field] if is_year(first_field) => (first_field, Some(second_field)),
        [first_field, second_field] => (second_field, Some(first_field)),
        _ => return None,
    };
    if !is_year(year) {
        return None;
    }
    let mut clock = time.splitn(3, ':').map(str::parse::<i8>);
    let (hour, minute) = (clock.next()?.ok()?, clock.next()?.ok()?);
    let second = clock.next().transpose().ok()?.unwrap_or(0);
    let datetime = DateTime::new(year.parse().ok()?, month, day.parse().ok()?, hour, minute, second.min(59), 0).ok()?;
    offset(zone.copied())?.to_timestamp(datetime).ok()
}

/// Parses the date format of message headers (RFC 5322 section 3.3), with the name of the day.
fn parse_header_date(words: &[&str]) -> Option<Timestamp> {
    let day = words.iter().rposition(|word| word.strip_suffix(',').is_some_and(|day| DAYS.contains(&day)))?;
    DateTimeParser::new().relaxed_weekday(true).parse_timestamp(words[day..].join(" ")).ok()
}

fn is_year(word: &str) -> bool {
    word.len() == 4 && word.bytes().all(|digit| digit.is_ascii_digit())
}

/// Parses a zone like `+0130`. A name is UTC.
fn offset(zone: Option<&str>) -> Option<Offset> {
    let Some(zone) = zone else { return Some(Offset::UTC) };
    let Some(digits) = zone.strip_prefix(['+', '-']) else {
        return zone.bytes().all(|byte| byte.is_ascii_alphabetic()).then_some(Offset::UTC);
    };
    let (hours, minutes) = digits.split_at_checked(2)?;
    let seconds = i32::from(hours.parse::<u8>().ok()?) * 3600 + i32::from(minutes.parse::<u8>().ok()?) * 60;
    Offset::from_seconds(if zone.starts_with('-') { -seconds } else { seconds }).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_common_date_formats() {
        let at = "2026-11-05T02:52:50Z";
        let table = [
            ("a@x Thu Nov  5 02:52:50 2026", Some(at)),
            ("- Thu Nov 05 02:52:50 2026\r", Some(at)),
            ("123@xxx Thu Nov 05 03:52:50 +0100 2026", Some(at)),
            ("a@x Wed Nov  4 21:22:50 2026 -0530", Some(at)),
            ("a@x Thu Nov  5 02:52:50 GMT 2026", Some(at)),
            ("\"a Mon b\"@x Thu Nov  5 02:52:50 2026", Some(at)),
            ("a@x Thu Nov  5 02:52 2026", Some("2026-11-05T02:52:00Z")),
            ("a@x", None),
            ("here on, Thu is free", None),
            ("a@x Thu Nov 35 02:52:50 2026", None),
            ("a@x Thu Nov  5 02:52:50 26", None),
            ("a@x Thu Nov  5 02:52:50 +0é 2026", None),
            ("a@x Thu Nov  5 02:52:50 2026 remote from y", Some(at)),
            ("a@x Thu, 5 Nov 2026 03:52:50 +0100", Some(at)),
            ("a@x Thu, 05 Nov 2026 02:52:50 GMT (UTC) remote from y", Some(at)),
            ("a@x remote from y", None),
            ("away from y", None),
            ("a@x Thu, 35 Nov 2026 03:52:50 +0100", None),
        ];
        for (line, expected) in table {
            assert_eq!(parse_time(line.as_bytes()), expected.map(|at| at.parse().unwrap()), "{line}");
        }
    }
}
