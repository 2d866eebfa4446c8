//! Lengths of time in the form that Go programs use, because existing configurations are written in it.

use std::time::Duration;

const ALLOWED: &str = "must be a length of time such as 300s, 24h, 50ms, 1h30m or 0";

/// Parses `1h30m`, `1.5h`, `50ms`, `0`: numbers, each with its unit, added up.
pub(super) fn parse(text: &str) -> Result<Duration, String> {
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    sum(text).map(Duration::from_nanos).ok_or_else(|| ALLOWED.to_owned())
}

/// The whole text in nanoseconds; none when it is malformed or does not fit.
fn sum(mut text: &str) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    let mut total = 0_u64;
    while !text.is_empty() {
        let number_end = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, rest) = text.split_at(number_end);
        let unit_end = rest.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(rest.len());
        let (unit, rest) = rest.split_at(unit_end);
        total = total.checked_add(scaled(number, unit_nanos(unit)?)?)?;
        text = rest;
    }
    Some(total)
}

fn unit_nanos(unit: &str) -> Option<u64> {
    Some(match unit {
        "ns" => 1,
        // The micro sign and the Greek letter look the same, and both get typed.
        "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    })
}

/// A decimal number of units, without going through floating point.
fn scaled(number: &str, unit: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut total = match whole {
        "" => 0,
        digits => digits.parse::<u64>().ok()?.checked_mul(unit)?,
    };
    let mut place = unit;
    for digit in fraction.chars() {
        place /= 10;
        total = total.checked_add(u64::from(digit.to_digit(10)?) * place)?;
    }
    Some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        let good = [
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
        for (text, expected) in good {
            assert_eq!(parse(text), Ok(expected), "{text}");
        }
        let bad = [
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
        for text in bad {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
