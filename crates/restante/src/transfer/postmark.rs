//! The time in the line before a mail of an mbox: the form of C's `asctime`, which RFC 4155 made the rule, and the
//! variants of it that are about.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{Offset, TimeZone};

/// The month names of asctime, in order.
const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
/// The day names of asctime, from Monday.
const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

/// `Sun Nov 15 02:52:50 2026`, in UTC (RFC 4155 appendix A).
pub(super) fn asctime(at: Timestamp) -> String {
    let at = TimeZone::UTC.to_datetime(at);
    let name = |names: &[&'static str], at: i8| names.get(usize::from(at.unsigned_abs())).copied().unwrap_or_default();
    format!(
        "{} {} {:2} {:02}:{:02}:{:02} {}",
        name(&DAYS, at.weekday().to_monday_zero_offset()),
        name(&MONTHS, at.month() - 1),
        at.day(),
        at.hour(),
        at.minute(),
        at.second(),
        at.year(),
    )
}

/// The time at the end of a `From ` line. Beside the plain form a zone may stand before or behind the year, as several
/// programs write it; a zone that is a name is taken as UTC.
pub(super) fn time(line: &[u8]) -> Option<Timestamp> {
    let line = std::str::from_utf8(line).ok()?;
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let day = words.iter().rposition(|word| DAYS.contains(word))?;
    let [month, day, time, rest @ ..] = &words[day + 1..] else { return None };
    let month = i8::try_from(MONTHS.iter().position(|name| name == month)? + 1).ok()?;
    let (year, zone) = match rest {
        [year] => (year, None),
        [one, other] if is_year(one) => (one, Some(other)),
        [one, other] => (other, Some(one)),
        _ => return None,
    };
    if !is_year(year) {
        return None;
    }
    let mut clock = time.splitn(3, ':').map(str::parse::<i8>);
    let (hour, minute) = (clock.next()?.ok()?, clock.next()?.ok()?);
    let second = clock.next().transpose().ok()?.unwrap_or(0);
    let at = DateTime::new(year.parse().ok()?, month, day.parse().ok()?, hour, minute, second.min(59), 0).ok()?;
    offset(zone.copied())?.to_timestamp(at).ok()
}

fn is_year(word: &str) -> bool {
    word.len() == 4 && word.bytes().all(|digit| digit.is_ascii_digit())
}

/// `+0130` and the like; a name is UTC.
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
    fn dates_as_programs_write_them() {
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
            ("a@x Thu Nov  5 02:52:50 2026 remote from y", None),
        ];
        for (line, expected) in table {
            assert_eq!(time(line.as_bytes()), expected.map(|at| at.parse().unwrap()), "{line}");
        }
    }
}
