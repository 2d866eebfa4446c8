//! The format of times in JSON.

use std::fmt;

use jiff::Timestamp;
use jiff::fmt::StdFmtWrite;
use jiff::fmt::temporal::DateTimePrinter;
use jiff::tz::Offset;
use serde::{Serialize, Serializer};

const PRINTER: DateTimePrinter = DateTimePrinter::new().precision(Some(6));

/// A time in UTC in the format of RFC 3339, always with six digits of fractional seconds and a numeric offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Time(pub Timestamp);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        PRINTER.print_timestamp_with_offset(&self.0, Offset::UTC, StdFmtWrite(f)).map_err(|_| fmt::Error)
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_six_digits_of_a_second() {
        let table =
            [(0, "1970-01-01T00:00:00.000000+00:00"), (1_794_699_770_123_456, "2026-11-14T23:42:50.123456+00:00")];
        for (micros, expected) in table {
            let time = Time(Timestamp::from_microsecond(micros).unwrap());
            assert_eq!(time.to_string(), expected);
            assert_eq!(serde_json::to_value(time).unwrap(), expected);
        }
    }
}
