//! Durations as text: the only format of settings, flags, parameters, search expressions and scripts.
//!
//! A duration is a sum of numbers with units, such as `90s`, `1h30m` or `2w`. The format extends that of Go, which existing
//! configurations use, by days and weeks.

use std::time::Duration;

/// The accepted format, for error messages.
const EXPECTED: &str = "must be a duration such as 90s, 15m, 12h, 1d, 2w, 1h30m or 500ms";

const NANOS_PER_SECOND: u128 = 1_000_000_000;

/// Parses `1h30m`, `1.5h`, `50ms`, `2w` or `0`: numbers with units, added up. A duration that is too large becomes
/// [`Duration::MAX`], so callers check their limits. The error says what is accepted.
pub fn parse(text: &str) -> Result<Duration, String> {
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    parse_nanos(text).map(from_nanos).ok_or_else(|| format!("{EXPECTED}, or 0"))
}

/// Parses a duration like [`parse`], or a number of seconds without a unit, which may have decimal places.
pub fn parse_or_seconds(text: &str) -> Result<Duration, String> {
    let seconds = scale(text, NANOS_PER_SECOND);
    seconds.or_else(|| parse_nanos(text)).map(from_nanos).ok_or_else(|| format!("{EXPECTED}, or a number of seconds"))
}

/// Formats a duration as Go does: `72h0m0s`, `1m30s`, `1.5s`, `50ms`.
pub fn format(duration: Duration) -> String {
    let (seconds, nanos) = (duration.as_secs(), duration.subsec_nanos());
    if seconds == 0 {
        return match nanos {
            0 => "0s".to_owned(),
            1..1_000 => format!("{nanos}ns"),
            1_000..1_000_000 => format!("{}\u{b5}s", format_decimal((nanos / 1_000).into(), nanos % 1_000, 3)),
            _ => format!("{}ms", format_decimal((nanos / 1_000_000).into(), nanos % 1_000_000, 6)),
        };
    }
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    let seconds = format_decimal(seconds % 60, nanos, 9);
    match (hours, minutes) {
        (0, 0) => format!("{seconds}s"),
        (0, _) => format!("{minutes}m{seconds}s"),
        _ => format!("{hours}h{minutes}m{seconds}s"),
    }
}

/// Formats a number with up to this many decimal places, without trailing zeros.
fn format_decimal(whole: u64, fraction: u32, places: usize) -> String {
    let text = format!("{whole}.{fraction:0places$}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn from_nanos(nanos: u128) -> Duration {
    let seconds = u64::try_from(nanos / NANOS_PER_SECOND);
    let subsecond_nanos = u32::try_from(nanos % NANOS_PER_SECOND).unwrap_or_default();
    seconds.map_or(Duration::MAX, |seconds| Duration::new(seconds, subsecond_nanos))
}

/// Parses the whole text to nanoseconds. Returns `None` if it is malformed.
fn parse_nanos(mut text: &str) -> Option<u128> {
    if text.is_empty() {
        return None;
    }
    let mut total = 0_u128;
    while !text.is_empty() {
        let number_end = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, rest) = text.split_at(number_end);
        let unit_end = rest.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(rest.len());
        let (unit, rest) = rest.split_at(unit_end);
        total = total.saturating_add(scale(number, unit_nanos(unit)?)?);
        text = rest;
    }
    Some(total)
}

fn unit_nanos(unit: &str) -> Option<u128> {
    Some(match unit {
        "ns" => 1,
        // The micro sign and the Greek letter look the same, and both are in use.
        "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
        "ms" => 1_000_000,
        "s" => NANOS_PER_SECOND,
        "m" => 60 * NANOS_PER_SECOND,
        "h" => 3600 * NANOS_PER_SECOND,
        "d" => 24 * 3600 * NANOS_PER_SECOND,
        "w" => 7 * 24 * 3600 * NANOS_PER_SECOND,
        _ => return None,
    })
}

/// Multiplies a decimal number by a unit, without floating point. Returns `None` if it is not a number.
fn scale(number: &str, unit: u128) -> Option<u128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_digits(whole) || !is_digits(fraction) || whole.is_empty() && fraction.is_empty() {
        return None;
    }
    // Too many digits for an integer are a number that is too large in any unit.
    let mut total = match whole {
        "" => 0,
        digits => digits.parse().unwrap_or(u128::MAX).saturating_mul(unit),
    };
    let mut digit_unit = unit;
    for digit in fraction.bytes() {
        digit_unit /= 10;
        total = total.saturating_add(u128::from(digit - b'0') * digit_unit);
    }
    Some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_durations_like_go() {
        let table = [
            (Duration::ZERO, "0s"),
            (Duration::from_nanos(7), "7ns"),
            (Duration::from_nanos(1_500), "1.5\u{b5}s"),
            (Duration::from_millis(50), "50ms"),
            (Duration::from_micros(1_250), "1.25ms"),
            (Duration::from_secs(10), "10s"),
            (Duration::from_millis(1_500), "1.5s"),
            (Duration::from_secs(90), "1m30s"),
            (Duration::from_mins(10), "10m0s"),
            (Duration::from_hours(72), "72h0m0s"),
            (Duration::from_millis(3_600_050), "1h0m0.05s"),
        ];
        for (duration, expected) in table {
            assert_eq!(format(duration), expected);
            assert_eq!(parse(expected), Ok(duration));
        }
    }

    #[test]
    fn parses_durations() {
        let valid = [
            ("0", Duration::ZERO),
            ("0s", Duration::ZERO),
            ("300s", Duration::from_mins(5)),
            ("24h", Duration::from_hours(24)),
            ("50ms", Duration::from_millis(50)),
            ("1h30m", Duration::from_mins(90)),
            ("24h0m0s", Duration::from_hours(24)),
            ("1.5h", Duration::from_mins(90)),
            (".5s", Duration::from_millis(500)),
            ("1.s", Duration::from_secs(1)),
            ("7us", Duration::from_micros(7)),
            ("7\u{b5}s", Duration::from_micros(7)),
            ("9ns", Duration::from_nanos(9)),
            ("1.0000000000000000000001s", Duration::from_secs(1)),
            ("90s", Duration::from_secs(90)),
            ("15m", Duration::from_mins(15)),
            ("12h", Duration::from_hours(12)),
            ("1d", Duration::from_hours(24)),
            ("2w", Duration::from_hours(14 * 24)),
            ("1w2d3h", Duration::from_hours(9 * 24 + 3)),
            ("0.5d", Duration::from_hours(12)),
            ("99999999999h", Duration::from_hours(99_999_999_999)),
            ("99999999999999999999w", Duration::MAX),
        ];
        for (text, expected) in valid {
            assert_eq!(parse(text), Ok(expected), "{text}");
        }
        let invalid = [
            "", "1", "300", "s", "1x", "1 h", " 1h", "-1s", "+1s", "1h30", ".s", "1.2.3s", "1e3s", "1H", "1D", "1y",
            "1mo", "1\u{e9}",
        ];
        for text in invalid {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn parses_numbers_of_seconds() {
        let table = [
            ("30", Some(30_000)),
            ("1.5", Some(1500)),
            (".5", Some(500)),
            ("0", Some(0)),
            ("30s", Some(30_000)),
            ("1m30s", Some(90_000)),
            ("1d", Some(86_400_000)),
            ("", None),
            (".", None),
            ("1.2.3", None),
            ("+1", None),
            ("-1", None),
            ("1e3", None),
            ("inf", None),
            ("soon", None),
        ];
        for (text, expected) in table {
            assert_eq!(parse_or_seconds(text).ok(), expected.map(Duration::from_millis), "{text}");
        }
        assert_eq!(parse_or_seconds(&"9".repeat(99)), Ok(Duration::MAX));
    }
}
