//! Points in time in a query: dates, times and ages. Days begin at midnight UTC.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

const DAY_SECONDS: i64 = 24 * 3600;

/// Parses a point in time. Ages are relative to `now`.
pub(super) fn parse(text: &str, now: Timestamp) -> Option<Timestamp> {
    let today = || TimeZone::UTC.to_datetime(now).start_of_day();
    if text.eq_ignore_ascii_case("today") {
        return in_utc(today());
    }
    if text.eq_ignore_ascii_case("yesterday") {
        return in_utc(today().date().yesterday().ok()?.to_datetime(jiff::civil::Time::midnight()));
    }
    if let Some(seconds) = parse_age(text) {
        // An age before the earliest timestamp becomes that timestamp.
        return Some(now.checked_sub(SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::MIN));
    }
    // With an offset or in UTC. A date without a time is the beginning of that day.
    text.parse().ok().or_else(|| in_utc(text.parse().ok()?))
}

fn in_utc(datetime: DateTime) -> Option<Timestamp> {
    datetime.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp())
}

/// Parses an age such as `2h` or `1h30m` to seconds: numbers with units, added up.
fn parse_age(mut text: &str) -> Option<i64> {
    let mut total = 0_i64;
    let mut is_empty = true;
    while !text.is_empty() {
        let digits = text.find(|c: char| !c.is_ascii_digit())?;
        let unit = match text.as_bytes().get(digits)?.to_ascii_lowercase() {
            b's' => 1,
            b'm' => 60,
            b'h' => 3600,
            b'd' => DAY_SECONDS,
            b'w' => 7 * DAY_SECONDS,
            _ => return None,
        };
        let count: i64 = text[..digits].parse().ok()?;
        total = total.checked_add(count.checked_mul(unit)?)?;
        text = &text[digits + 1..];
        is_empty = false;
    }
    (!is_empty).then_some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_points_in_time() {
        let now: Timestamp = "2026-11-15T18:30:00Z".parse().unwrap();
        let table = [
            ("2026-11-15", Some("2026-11-15T00:00:00Z")),
            ("2026-11-15T10:00Z", Some("2026-11-15T10:00:00Z")),
            ("2026-11-15T10:00:30+02:00", Some("2026-11-15T08:00:30Z")),
            ("2026-11-15T10:00", Some("2026-11-15T10:00:00Z")),
            ("today", Some("2026-11-15T00:00:00Z")),
            ("Yesterday", Some("2026-11-14T00:00:00Z")),
            ("30m", Some("2026-11-15T18:00:00Z")),
            ("1h30m", Some("2026-11-15T17:00:00Z")),
            ("7d", Some("2026-11-08T18:30:00Z")),
            ("2w", Some("2026-11-01T18:30:00Z")),
            ("0s", Some("2026-11-15T18:30:00Z")),
            ("", None),
            ("7", None),
            ("d", None),
            ("7x", None),
            ("1h30", None),
            ("-2h", None),
            ("2026-13-01", None),
            ("99999999999999999999d", None),
            ("tomorrow", None),
            ("2é", None),
        ];
        for (text, expected) in table {
            assert_eq!(parse(text, now), expected.map(|time| time.parse().unwrap()), "{text}");
        }
        assert_eq!(parse("999999999999d", now), Some(Timestamp::MIN));
    }
}
