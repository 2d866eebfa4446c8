//! Formatting of the dates in messages that Restante writes. Dates in received messages are not parsed here.

use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimePrinter;

/// The printer of dates. It is several times faster than a format string, and every message needs a date.
const PRINTER: DateTimePrinter = DateTimePrinter::new();

/// Formats a time as RFC 5322 section 3.3 specifies, in UTC.
pub fn mail_date(at: Timestamp) -> String {
    // A date of HTTP differs in the zone only. Only years before zero cannot be formatted.
    let date = PRINTER.timestamp_to_rfc9110_string(&at).unwrap_or_default();
    [date.trim_end_matches("GMT"), "+0000"].concat()
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
            (253_402_207_199, "Thu, 30 Dec 9999 21:59:59 +0000"),
            (-62_135_596_800, "Mon, 01 Jan 0001 00:00:00 +0000"),
        ];
        for (second, expected) in table {
            assert_eq!(mail_date(Timestamp::from_second(second).unwrap()), expected);
        }
        for day in 0..400 {
            let at = Timestamp::from_second(day * 86_400 + 3_599).unwrap();
            assert_eq!(mail_date(at), at.strftime("%a, %d %b %Y %H:%M:%S +0000").to_string());
        }
    }
}
