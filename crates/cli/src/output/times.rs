//! Relative times for people.

use jiff::Timestamp;

/// The units in seconds, the longest first.
const UNITS: [(i64, &str); 4] = [(86_400, "d"), (3_600, "h"), (60, "min"), (1, "s")];

/// Returns `2 min ago` or `just now`, or the date if it is more than a month ago. A time in the future counts as now,
/// because clocks differ a little.
pub(crate) fn format_ago(at: Timestamp, now: Timestamp) -> String {
    let seconds = now.as_second().saturating_sub(at.as_second());
    if seconds > 31 * 86_400 {
        return at.strftime("%Y-%m-%d").to_string();
    }
    match UNITS.iter().find(|(length, _)| seconds >= *length) {
        Some((length, name)) => format!("{} {name} ago", seconds / length),
        None => "just now".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_relative_times() {
        let now: Timestamp = "2026-11-15T12:00:00Z".parse().unwrap();
        let table = [
            ("2026-11-15T12:00:05Z", "just now"),
            ("2026-11-15T12:00:00Z", "just now"),
            ("2026-11-15T11:59:01Z", "59 s ago"),
            ("2026-11-15T11:58:00Z", "2 min ago"),
            ("2026-11-15T09:01:00Z", "2 h ago"),
            ("2026-11-12T11:59:00Z", "3 d ago"),
            ("2026-10-01T11:59:00Z", "2026-10-01"),
        ];
        for (at, expected) in table {
            assert_eq!(format_ago(at.parse().unwrap(), now), expected, "{at}");
        }
    }
}
