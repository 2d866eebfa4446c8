//! Labels of charsets: those of the WHATWG Encoding Standard, and others that occur in messages.

use encoding_rs::{Encoding, ISO_2022_JP, UTF_8};

use super::code_pages::CodePage;
use super::iso2022::Iso2022;
use super::utf32::ByteOrder;

/// The charset that a label names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Charset {
    Known(&'static Encoding),
    Iso2022(Iso2022),
    CodePage(CodePage),
    Hz,
    Utf7,
    /// UTF-16 of unspecified byte order.
    Utf16,
    Utf32(ByteOrder),
    /// No charset, or US-ASCII, which does not describe the 8-bit bytes that may be present.
    Undeclared,
    Unknown,
}

impl Charset {
    /// Returns the charset of a label.
    pub(super) fn from_label(label: &str) -> Self {
        // These are the most common labels.
        match label {
            "utf-8" | "UTF-8" => return Self::Known(UTF_8),
            "us-ascii" | "" => return Self::Undeclared,
            _ => {}
        }
        let lower = label.to_ascii_lowercase();
        match lower.as_str() {
            "" | "us-ascii" | "ascii" | "us" | "ansi_x3.4-1968" | "ansi_x3.4-1986" | "iso646-us" => Self::Undeclared,
            "utf-7" | "utf7" | "unicode-1-1-utf-7" | "csunicode11utf7" | "x-unicode-2-0-utf-7" => Self::Utf7,
            "hz-gb-2312" | "hz" | "hz-gb2312" | "hzgb2312" => Self::Hz,
            "utf-16" | "utf16" | "ucs-2" | "iso-10646-ucs-2" => Self::Utf16,
            "utf-32" | "utf32" | "utf-32be" | "ucs-4" | "iso-10646-ucs-4" => Self::Utf32(ByteOrder::Big),
            "utf-32le" => Self::Utf32(ByteOrder::Little),
            "iso-2022-kr" | "csiso2022kr" => Self::Iso2022(Iso2022::Korean),
            // `encoding_rs` decodes the "replacement" charsets to a single U+FFFD, which is useless to a reader.
            other => match Encoding::for_label_no_replacement(other.as_bytes()).or_else(|| alias(other)) {
                Some(encoding) if encoding == ISO_2022_JP => Self::Iso2022(Iso2022::Japanese),
                Some(encoding) => Self::Known(encoding),
                None => code_page(other).map_or(Self::Unknown, Self::CodePage),
            },
        }
    }
}

/// Parses the label of a code page: `cp850`, `ibm850`, `IBM-850`, `cspc850multilingual`, `850`.
fn code_page(label: &str) -> Option<CodePage> {
    let number: String = label.trim_start_matches("cspc").chars().filter(char::is_ascii_digit).collect();
    let name: String = label.chars().filter(char::is_ascii_alphabetic).collect();
    let known = matches!(name.as_str(), "" | "cp" | "ibm" | "dos" | "oem" | "pc" | "csibm" | "codepage" | "x")
        || name.starts_with("cspc");
    CodePage::from_number(&number).filter(|_| known)
}

/// Resolves labels that only occur in messages. Their punctuation varies, so it is ignored.
fn alias(label: &str) -> Option<&'static Encoding> {
    let bare: String = label.chars().filter(char::is_ascii_alphanumeric).collect();
    let number = ["windows", "win", "cp", "ms"].iter().find_map(|prefix| bare.strip_prefix(prefix));
    let part = bare.strip_prefix("iso").unwrap_or(&bare).strip_prefix("8859");
    let name = match (number, part, bare.as_str()) {
        (Some("932"), ..) => "shift_jis".to_owned(),
        (Some("936"), ..) => "gbk".to_owned(),
        (Some("949"), ..) | (.., "ksc5601" | "euckr") => "euc-kr".to_owned(),
        (Some("950"), ..) => "big5".to_owned(),
        (Some("50220" | "50221" | "50222"), ..) | (.., "iso2022jp1" | "iso2022jp2" | "iso2022jpms") => {
            "iso-2022-jp".to_owned()
        }
        (Some("65001"), ..) => "utf-8".to_owned(),
        (Some("10000"), ..) | (.., "macroman") => "macintosh".to_owned(),
        (.., "eucjp" | "ujis") => "euc-jp".to_owned(),
        (.., "koi8u") => "koi8-u".to_owned(),
        (.., "koi8r") => "koi8-r".to_owned(),
        (Some("866"), ..) | (.., "dos866" | "oem866" | "ibm866") => "ibm866".to_owned(),
        (Some(number), ..) => format!("windows-{number}"),
        (_, Some(part), _) => format!("iso-8859-{part}"),
        (.., bare) => bare.to_owned(),
    };
    Encoding::for_label_no_replacement(name.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resolves_labels_that_messages_use() {
        let table = [
            ("mac-roman", "macintosh"),
            ("MacRoman", "macintosh"),
            ("cp932", "Shift_JIS"),
            ("ms_kanji", "Shift_JIS"),
            ("windows-932", "Shift_JIS"),
            ("CP936", "GBK"),
            ("ms936", "GBK"),
            ("cp949", "EUC-KR"),
            ("ks_c_5601", "EUC-KR"),
            ("euc_kr", "EUC-KR"),
            ("cp950", "Big5"),
            ("cp-1252", "windows-1252"),
            ("win-1251", "windows-1251"),
            ("windows1250", "windows-1250"),
            ("windows_874", "windows-874"),
            ("8859-1", "windows-1252"),
            ("8859_2", "ISO-8859-2"),
            ("ISO8859_15", "ISO-8859-15"),
            ("latin-1", "windows-1252"),
            ("utf_8", "UTF-8"),
            ("'utf-8'", "UTF-8"),
            ("cp65001", "UTF-8"),
            ("utf-16le", "UTF-16LE"),
            ("cp866", "IBM866"),
            ("cp-866", "IBM866"),
            ("eucJP", "EUC-JP"),
            ("koi8r", "KOI8-R"),
        ];
        for (label, name) in table {
            let found = Charset::from_label(label);
            assert!(matches!(found, Charset::Known(encoding) if encoding.name() == name), "{label}: {found:?}");
        }
        for label in ["iso-2022-jp", "ISO-2022-JP-MS", "cp50220"] {
            assert_eq!(Charset::from_label(label), Charset::Iso2022(Iso2022::Japanese), "{label}");
        }
        assert_eq!(Charset::from_label("unicode-1-1-utf-7"), Charset::Utf7);
        assert_eq!(Charset::from_label("HZ-GB-2312"), Charset::Hz);
        assert_eq!(Charset::from_label("UTF-16"), Charset::Utf16);
        assert_eq!(Charset::from_label("utf-32le"), Charset::Utf32(ByteOrder::Little));
        for label in ["cp850", "IBM850", "ibm-850", "850", "cspc850multilingual", "dos-850", "oem850"] {
            let page = CodePage::from_number("850").map(Charset::CodePage);
            assert_eq!(Some(Charset::from_label(label)), page, "{label}");
        }
        for label in ["x-no-such", "cp438", "x-rated-850", "cp", "8859", "iso-8859-99", "-", "iso-2022-cn"] {
            assert_eq!(Charset::from_label(label), Charset::Unknown, "{label}");
        }
    }
}
