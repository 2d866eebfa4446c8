//! File names: encoding of mailbox names as file names, decoding, and the order of file names.
//!
//! Mailbox names can contain `/`, resemble `..`, or be longer than a file name can be. Unsafe characters are written as
//! `%` and two hexadecimal digits.

use std::cmp::Ordering;
use std::fmt::Write as _;

use percent_encoding::percent_decode_str;
use restante_mail::naming::MailboxName;

/// The maximum length of a name. It leaves room for a suffix within the 255 bytes that file systems allow.
const MAX_NAME_BYTES: usize = 200;
/// Marks a truncated name. The encoding never produces it.
const TRUNCATION_MARK: &str = "%~";
/// The end of the name of a message in a Maildir that has been seen. Windows does not allow a colon in file names.
pub(super) const SEEN_SUFFIX: &str = if cfg!(windows) { ";2,S" } else { ":2,S" };
/// The folders of a Maildir. A mailbox of such a name would make its parent look like a Maildir.
const MAILDIR_FOLDERS: [&str; 3] = ["cur", "new", "tmp"];
/// Devices of Windows. A file of such a name cannot be created there, with or without an extension.
const DEVICES: [&str; 22] = [
    "con", "prn", "aux", "nul", "com1", "com2", "com3", "com4", "com5", "com6", "com7", "com8", "com9", "lpt1", "lpt2",
    "lpt3", "lpt4", "lpt5", "lpt6", "lpt7", "lpt8", "lpt9",
];

/// Assigns a unique file name to every mailbox of an export.
#[derive(Debug, Default)]
pub(super) struct FileNames {
    /// The number of truncated names so far.
    truncated_count: u64,
}

impl FileNames {
    /// Returns a name that is safe on all file systems. [`decode_mailbox_name`] decodes it, unless it was truncated. A
    /// truncated name gets a number that makes it unique.
    pub(super) fn assign(&mut self, mailbox: &MailboxName) -> String {
        let mut name = encode_mailbox_name(mailbox.as_str());
        if name.len() > MAX_NAME_BYTES {
            self.truncated_count += 1;
            let end = name.floor_char_boundary(MAX_NAME_BYTES - 30);
            name.truncate(end);
            // Writing to a string cannot fail.
            let _ = write!(name, "{TRUNCATION_MARK}{}", self.truncated_count);
        }
        name
    }
}

/// Decodes a file name. Returns `None` if it is not a valid encoding.
pub(super) fn decode_mailbox_name(name: &str) -> Option<String> {
    let is_valid = |escape: &str| escape.get(..2).is_some_and(|digits| digits.bytes().all(|c| c.is_ascii_hexdigit()));
    let decoded = percent_decode_str(name).decode_utf8().ok()?;
    name.split('%').skip(1).all(is_valid).then(|| decoded.into_owned())
}

/// Compares file names with runs of digits as numbers: `9.eml` precedes `10.eml`.
pub(super) fn natural_order(a: &[u8], b: &[u8]) -> Ordering {
    let (mut left, mut right) = (a, b);
    loop {
        let (Some(left_byte), Some(right_byte)) = (left.first(), right.first()) else {
            // Names that differ only in leading zeros still need an order.
            return left.len().cmp(&right.len()).then_with(|| a.cmp(b));
        };
        let step = if left_byte.is_ascii_digit() && right_byte.is_ascii_digit() {
            let (left_number, right_number) = (take_number(&mut left), take_number(&mut right));
            left_number.len().cmp(&right_number.len()).then_with(|| left_number.cmp(right_number))
        } else {
            let step = left_byte.cmp(right_byte);
            (left, right) = (&left[1..], &right[1..]);
            step
        };
        if step != Ordering::Equal {
            return step;
        }
    }
}

/// Removes a run of digits from the start and returns it without leading zeros.
fn take_number<'a>(text: &mut &'a [u8]) -> &'a [u8] {
    let end = text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    let (number, rest) = text.split_at(end);
    *text = rest;
    let zeros = number.iter().take_while(|digit| **digit == b'0').count();
    &number[zeros..]
}

fn encode_mailbox_name(text: &str) -> String {
    let stem = text.split('.').next().unwrap_or(text);
    let is_device = cfg!(windows) && DEVICES.iter().any(|device| stem.eq_ignore_ascii_case(device));
    let is_reserved = MAILDIR_FOLDERS.contains(&text) || is_device;
    let mut name = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        let is_safe = c.is_alphanumeric() || matches!(c, '_' | '@' | '=' | '+') || (at > 0 && matches!(c, '.' | '-'));
        // Windows removes a dot at the end.
        let is_removed = cfg!(windows) && c == '.' && at + 1 == text.len();
        if is_safe && !is_removed && !(is_reserved && at == 0) {
            name.push(c);
            continue;
        }
        for byte in c.encode_utf8(&mut [0; 4]).bytes() {
            // Writing to a string cannot fail.
            let _ = write!(name, "%{byte:02X}");
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodes_and_decodes_mailbox_names() {
        let table = [
            ("bob", "bob"),
            ("bob@x.org", "bob@x.org"),
            ("first.last", "first.last"),
            ("a/b", "a%2Fb"),
            ("../../etc/passwd", "%2E./../etc/passwd"),
            (".hidden", "%2Ehidden"),
            ("..", if cfg!(windows) { "%2E%2E" } else { "%2E." }),
            ("name.", if cfg!(windows) { "name%2E" } else { "name." }),
            ("nul", if cfg!(windows) { "%6Eul" } else { "nul" }),
            ("con.fig", if cfg!(windows) { "%63on.fig" } else { "con.fig" }),
            ("console", "console"),
            ("-rf", "%2Drf"),
            ("100%", "100%25"),
            ("jöran", "jöran"),
            ("a@[ipv6:2001:db8::1]", "a@%5Bipv6%3A2001%3Adb8%3A%3A1%5D"),
            ("cur", "%63ur"),
            ("new", "%6Eew"),
            ("current", "current"),
            ("a\u{200b}b", "a%E2%80%8Bb"),
        ];
        for (mailbox, expected) in table {
            let name = FileNames::default().assign(&mailbox.to_owned().into());
            assert_eq!(name, expected.replace("/..", "%2F..").replace("/etc/", "%2Fetc%2F"), "{mailbox}");
            assert!(!name.contains('/'));
            assert_eq!(decode_mailbox_name(&name).as_deref(), Some(mailbox));
        }
    }

    #[test]
    fn truncates_long_names_uniquely() {
        let mut names = FileNames::default();
        let long = |last: char| MailboxName::from(format!("{}{last}", "ж".repeat(127)));
        let (first, second) = (names.assign(&long('a')), names.assign(&long('b')));
        assert_ne!(first, second);
        assert!(first.len() <= MAX_NAME_BYTES && first.starts_with("жж"));
        assert_eq!(decode_mailbox_name(&first), None);
    }

    #[test]
    fn rejects_invalid_file_names() {
        for name in ["100%", "%4", "%zz", "%+1", "%FF", "a%~1", "%é"] {
            assert_eq!(decode_mailbox_name(name), None, "{name}");
        }
    }

    #[test]
    fn orders_digits_as_numbers() {
        let mut names =
            vec!["10.eml", "9.eml", "a", "009.eml", "20160829T214536-0001.raw", "20160829T214536-0000.raw", "1"];
        names.sort_by(|a, b| natural_order(a.as_bytes(), b.as_bytes()));
        let sorted = ["1", "009.eml", "9.eml", "10.eml", "20160829T214536-0000.raw", "20160829T214536-0001.raw", "a"];
        assert_eq!(names, sorted);
    }

    proptest::proptest! {
        #[test]
        fn decodes_encoded_names(text in "[a-z0-9./%~\\-@é\u{300}-\u{310} ]{1,40}|.{1,20}") {
            let name = FileNames::default().assign(&text.clone().into());
            proptest::prop_assert!(!name.contains(['/', '\0']) && !name.starts_with('.') && name.len() < 230);
            if !name.contains(TRUNCATION_MARK) {
                proptest::prop_assert_eq!(decode_mailbox_name(&name), Some(text));
            }
        }
    }
}
