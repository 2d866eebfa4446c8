//! Formatting of the dates in messages that Restante writes. Dates in received messages are not parsed here.

use std::fmt;

use jiff::{Timestamp, tz::TimeZone};

const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Formats a time as RFC 5322 section 3.3 specifies, in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MailDate(pub Timestamp);

impl fmt::Display for MailDate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let datetime = TimeZone::UTC.to_datetime(self.0);
        let name =
            |names: &[&'static str], index: i8| names.get(usize::from(index.unsigned_abs())).copied().unwrap_or("");
        write!(
            f,
            "{}, {:02} {} {} {:02}:{:02}:{:02} +0000",
            name(&DAYS, datetime.weekday().to_monday_zero_offset()),
            datetime.day(),
            name(&MONTHS, datetime.month() - 1),
            datetime.year(),
            datetime.hour(),
            datetime.minute(),
            datetime.second(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_dates_as_rfc_5322() {
        let table = [
            (0, "Thu, 01 Jan 1970 00:00:00 +0000"),
            (951_827_696, "Tue, 29 Feb 2000 12:34:56 +0000"),
            (1_794_711_170, "Sun, 15 Nov 2026 02:52:50 +0000"),
        ];
        for (second, expected) in table {
            assert_eq!(MailDate(Timestamp::from_second(second).unwrap()).to_string(), expected);
        }
    }
}
