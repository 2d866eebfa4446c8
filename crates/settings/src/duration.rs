//! Durations in the format of Go, because existing configurations use it.

use std::time::Duration;

const EXPECTED: &str = "must be a duration such as 300s, 24h, 50ms, 1h30m or 0";

/// Parses `1h30m`, `1.5h`, `50ms` or `0`: numbers with units, added up.
pub fn parse(text: &str) -> Result<Duration, String> {
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    parse_nanos(text).map(Duration::from_nanos).ok_or_else(|| EXPECTED.to_owned())
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

/// Parses the whole text to nanoseconds. Returns `None` if it is malformed or too large.
fn parse_nanos(mut text: &str) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    let mut total = 0_u64;
    while !text.is_empty() {
        let number_end = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, rest) = text.split_at(number_end);
        let unit_end = rest.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(rest.len());
        let (unit, rest) = rest.split_at(unit_end);
        total = total.checked_add(scale(number, unit_nanos(unit)?)?)?;
        text = rest;
    }
    Some(total)
}

fn unit_nanos(unit: &str) -> Option<u64> {
    Some(match unit {
        "ns" => 1,
        // The micro sign and the Greek letter look the same, and both are in use.
        "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    })
}

/// Multiplies a decimal number by a unit, without floating point.
fn scale(number: &str, unit: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut total = match whole {
        "" => 0,
        digits => digits.parse::<u64>().ok()?.checked_mul(unit)?,
    };
    let mut digit_unit = unit;
    for digit in fraction.chars() {
        digit_unit /= 10;
        total = total.checked_add(u64::from(digit.to_digit(10)?) * digit_unit)?;
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
        ];
        for (text, expected) in valid {
            assert_eq!(parse(text), Ok(expected), "{text}");
        }
        let invalid = [
            "",
            "1",
            "300",
            "s",
            "1x",
            "1 h",
            " 1h",
            "-1s",
            "+1s",
            "1h30",
            ".s",
            "1.2.3s",
            "1e3s",
            "1H",
            "99999999999h",
            "1d",
        ];
        for text in invalid {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
