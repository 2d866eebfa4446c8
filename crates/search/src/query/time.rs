//! Points in time in a query: dates, times and ages. Days begin at midnight UTC.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use restante_mail::duration;

/// Parses a point in time. Ages are relative to `now`.
pub(super) fn parse(text: &str, now: Timestamp) -> Option<Timestamp> {
    let today = || TimeZone::UTC.to_datetime(now).start_of_day();
    if text.eq_ignore_ascii_case("today") {
        return in_utc(today());
    }
    if text.eq_ignore_ascii_case("yesterday") {
        return in_utc(today().date().yesterday().ok()?.to_datetime(jiff::civil::Time::midnight()));
    }
    if let Ok(age) = duration::parse(&text.to_ascii_lowercase()) {
        // An age before the earliest timestamp becomes that timestamp.
        return Some(now.checked_sub(age).unwrap_or(Timestamp::MIN));
    }
    // With an offset or in UTC. A date without a time is the beginning of that day.
    text.parse().ok().or_else(|| in_utc(text.parse().ok()?))
}

fn in_utc(datetime: DateTime) -> Option<Timestamp> {
    datetime.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp())
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
            ("2W", Some("2026-11-01T18:30:00Z")),
            ("1.5h", Some("2026-11-15T17:00:00Z")),
            ("0s", Some("2026-11-15T18:30:00Z")),
            ("", None),
            ("7", None),
            ("d", None),
            ("7x", None),
            ("1h30", None),
            ("-2h", None),
            ("2026-13-01", None),
            ("tomorrow", None),
            ("2é", None),
        ];
        for (text, expected) in table {
            assert_eq!(parse(text, now), expected.map(|time| time.parse().unwrap()), "{text}");
        }
        for text in ["999999999999d", "99999999999999999999d"] {
            assert_eq!(parse(text, now), Some(Timestamp::MIN), "{text}");
        }
    }
}
