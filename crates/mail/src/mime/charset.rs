//! Decoding of bytes to text: declared and undeclared charsets, and cleaning of decoded values that must fit on one
//! line.
//!
//! A declared charset is used unless the bytes contradict it: bytes that are not UTF-8 are declared as UTF-8, UTF-8 is
//! declared as a single-byte charset, or there is a byte order mark. Then the charset is detected.

use std::borrow::Cow;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_874, WINDOWS_1252};

use super::labels::Charset;
use super::{hz, iso2022, utf7, utf32};

/// The number of bytes that are used to guess the charset of a text.
const GUESS_SAMPLE_BYTES: usize = 64 * 1024;
/// The number of bytes of an HTML document that are searched for its declaration of a charset.
const META_SEARCH_BYTES: usize = 4096;
/// The minimum number of bytes outside of ASCII to detect a charset. With fewer bytes, the most common charset is a
/// better guess.
const MIN_GUESS_BYTES: usize = 4;

/// A decoded text, and the defect of its charset, if any.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DecodedText {
    pub(super) text: String,
    pub(super) defect: Option<String>,
}

/// Decodes bytes in the charset that a part or an encoded word declares, if any.
pub(super) fn decode(label: Option<&str>, bytes: &[u8]) -> DecodedText {
    let label = label.map_or("", |label| label.split(['(', ';']).next().unwrap_or_default().trim());
    let charset = Charset::from_label(label);
    if let Some(text) = decode_by_bom(charset, bytes) {
        return text;
    }
    let (text, has_errors) = match charset {
        Charset::Undeclared => return decode_undeclared(bytes),
        Charset::Unknown => {
            return DecodedText {
                text: decode_unlabelled(bytes).into_owned(),
                defect: Some(format!("The charset {label:?} is unknown. The charset was detected from the bytes.")),
            };
        }
        Charset::Utf7 => (utf7::decode(bytes), false),
        Charset::Hz => hz::decode(bytes),
        Charset::Iso2022(charset) => charset.decode(bytes),
        Charset::CodePage(_) if is_multi_byte_utf8(bytes, 2) => return decode_as_other_charset(label, UTF_8, bytes),
        Charset::CodePage(page) => page.decode(bytes),
        Charset::Utf16 => decode_known(guess_utf16_order(bytes), bytes),
        Charset::Utf32(order) => utf32::decode(bytes, order),
        Charset::Known(encoding) if encoding == UTF_8 => return decode_labelled_utf8(label, bytes),
        Charset::Known(encoding) if is_actually_utf8(encoding, bytes) => {
            return decode_as_other_charset(label, UTF_8, bytes);
        }
        Charset::Known(encoding) => decode_known(encoding, bytes),
    };
    // UTF-8 has no escape sequences of ISO 2022.
    if has_errors && is_multi_byte_utf8(bytes, 1) && iso2022::detect(bytes).is_none() {
        return decode_as_other_charset(label, UTF_8, bytes);
    }
    let defect = has_errors.then(|| format!("Some bytes are not valid in the declared charset {label:?}."));
    DecodedText { text, defect }
}

fn decode_known(encoding: &'static Encoding, bytes: &[u8]) -> (String, bool) {
    let (text, has_errors) = encoding.decode_with_bom_removal(bytes);
    (text.into_owned(), has_errors)
}

/// Decodes text that starts with a byte order mark. Returns `None` if there is no mark, or if UTF-8 after a mark is
/// invalid.
fn decode_by_bom(charset: Charset, bytes: &[u8]) -> Option<DecodedText> {
    // Every mark starts with one of these bytes, and ordinary text does not.
    if !matches!(bytes.first(), Some(0 | 0xef | 0xfe | 0xff)) {
        return None;
    }
    if let Some(order) = utf32::bom_byte_order(bytes) {
        let declared = matches!(charset, Charset::Utf32(_));
        let (text, has_errors) = utf32::decode(bytes, order);
        return Some(DecodedText { text, defect: bom_defect("UTF-32", declared, has_errors) });
    }
    let (encoding, _) = Encoding::for_bom(bytes)?;
    let declared = match charset {
        Charset::Utf16 => encoding != UTF_8,
        Charset::Known(declared) => declared == encoding,
        // A UTF-8 mark is common in text without a declared charset.
        Charset::Undeclared => encoding == UTF_8,
        _ => false,
    };
    let (text, has_errors) = decode_known(encoding, bytes);
    // Invalid UTF-8 is diagnosed without its mark, by the caller.
    (encoding != UTF_8 || !has_errors)
        .then(|| DecodedText { text, defect: bom_defect(encoding.name(), declared, has_errors) })
}

fn bom_defect(name: &str, declared: bool, has_errors: bool) -> Option<String> {
    if has_errors {
        Some(format!("Some bytes are not valid in {name}, the charset of the byte order mark."))
    } else {
        (!declared).then(|| format!("The text is read as {name} because of its byte order mark."))
    }
}

/// Guesses the byte order of UTF-16 without a mark: in most scripts the upper byte of common characters is zero.
fn guess_utf16_order(bytes: &[u8]) -> &'static Encoding {
    let zeros =
        |from: usize| bytes.iter().skip(from).step_by(2).take(GUESS_SAMPLE_BYTES).filter(|&&byte| byte == 0).count();
    if zeros(0) > zeros(1) { UTF_16BE } else { UTF_16LE }
}

/// Returns whether bytes that are declared to be in this single-byte charset are in fact UTF-8: multi-byte sequences of
/// UTF-8 hardly occur in other charsets by chance. For a Latin script one sequence is enough, because it would be a
/// letter followed by an unlikely sign. In other scripts two letters can look like one sequence. In Thai, many
/// sequences can occur by chance, so this returns false.
fn is_actually_utf8(encoding: &'static Encoding, bytes: &[u8]) -> bool {
    Encoding::ascii_valid_up_to(bytes) < bytes.len()
        && encoding.is_single_byte()
        && encoding != WINDOWS_874
        && is_multi_byte_utf8(bytes, if is_latin(encoding) { 1 } else { 2 })
}

/// Returns whether a single-byte charset is for a Latin script.
fn is_latin(encoding: &'static Encoding) -> bool {
    let latin = ["windows-1250", "windows-1252", "windows-1254", "windows-1257", "windows-1258", "macintosh"];
    let other = ["ISO-8859-5", "ISO-8859-6", "ISO-8859-7", "ISO-8859-8", "ISO-8859-8-I"];
    let name = encoding.name();
    latin.contains(&name) || name.starts_with("ISO-8859-") && !other.contains(&name)
}

/// Returns whether the bytes are UTF-8 with at least `min_chars` characters outside of ASCII.
fn is_multi_byte_utf8(bytes: &[u8], min_chars: usize) -> bool {
    let ascii = Encoding::ascii_valid_up_to(bytes);
    let rest = &bytes[ascii..];
    !rest.is_empty()
        && std::str::from_utf8(rest)
            .is_ok_and(|text| text.chars().filter(|c| !c.is_ascii()).take(min_chars).count() == min_chars)
}

/// Decodes text that is declared as UTF-8. Valid UTF-8 characters are kept, unless the text is in a charset in which
/// they occur by chance. If there are none, the charset is detected.
fn decode_labelled_utf8(label: &str, bytes: &[u8]) -> DecodedText {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    if let Ok(text) = std::str::from_utf8(bytes) {
        return DecodedText { text: text.to_owned(), defect: None };
    }
    let (mut valid_chars, mut invalid_runs, mut invalid_bytes) = (0_usize, 0_usize, 0_usize);
    for chunk in bytes.utf8_chunks() {
        valid_chars += chunk.valid().chars().filter(|c| !c.is_ascii()).count();
        invalid_runs += usize::from(!chunk.invalid().is_empty());
        invalid_bytes += chunk.invalid().len();
    }
    let is_truncated = invalid_runs == 1 && invalid_bytes > 1 && truncated_char_start(bytes).is_some();
    if valid_chars == 0 && !is_truncated {
        let encoding = if invalid_bytes < MIN_GUESS_BYTES { WINDOWS_1252 } else { guess_encoding(bytes) };
        return decode_as_other_charset(label, encoding, bytes);
    }
    if valid_chars < invalid_runs.div_ceil(2) && !is_truncated {
        let encoding = guess_encoding(bytes);
        // About every fifth character of GBK looks like UTF-8.
        if !is_latin(encoding) {
            return decode_as_other_charset(label, encoding, bytes);
        }
    }
    let text = repair_utf8(bytes);
    DecodedText { text, defect: Some(format!("Some bytes are not valid in the declared charset {label:?}.")) }
}

/// Decodes partly invalid UTF-8. Invalid bytes are decoded as windows-1252. A truncated character at the end becomes
/// U+FFFD.
fn repair_utf8(bytes: &[u8]) -> String {
    let truncated_start = truncated_char_start(bytes).unwrap_or(bytes.len());
    let mut text = String::with_capacity(bytes.len() + bytes.len() / 8);
    let mut pos = 0;
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        pos += chunk.valid().len();
        if pos == truncated_start && !chunk.invalid().is_empty() {
            text.push(char::REPLACEMENT_CHARACTER);
        } else {
            let (invalid, _) = WINDOWS_1252.decode_without_bom_handling(chunk.invalid());
            text.extend(invalid.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }));
        }
        pos += chunk.invalid().len();
    }
    text
}

/// Returns the start of a character that is truncated at the end of the text. A line end may follow two or more of its
/// bytes. A single byte before a line end is more likely a letter in another charset.
fn truncated_char_start(bytes: &[u8]) -> Option<usize> {
    let text = bytes.trim_ascii_end();
    // A character has at most four bytes.
    let start = text.len().saturating_sub(4);
    let lead = start + text[start..].iter().rposition(|byte| !(0x80..0xc0).contains(byte))?;
    let error = std::str::from_utf8(&text[lead..]).err()?;
    let is_incomplete = error.valid_up_to() == 0 && error.error_len().is_none();
    (is_incomplete && (text.len() == bytes.len() || text.len() - lead > 1)).then_some(lead)
}

/// Decodes text in another charset than the declared one, and records a defect.
fn decode_as_other_charset(label: &str, encoding: &'static Encoding, bytes: &[u8]) -> DecodedText {
    let (text, _) = decode_known(encoding, bytes);
    DecodedText {
        text,
        defect: Some(format!(
            "The declared charset is {label:?}. The text is read as {} because of its bytes.",
            encoding.name()
        )),
    }
}

/// Decodes bytes without a declared charset: as UTF-8 if they are valid or mostly valid, otherwise in the most likely
/// charset. Invalid bytes of UTF-8 become U+FFFD.
pub(super) fn decode_unlabelled(bytes: &[u8]) -> Cow<'_, str> {
    if let Some(charset) = iso2022::detect(bytes) {
        return Cow::Owned(charset.decode(bytes).0);
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) if is_mostly_utf8(bytes) => String::from_utf8_lossy(bytes),
        Err(_) => guess_encoding(bytes).decode_without_bom_handling(bytes).0,
    }
}

/// Returns whether partly invalid bytes are UTF-8: the evidence of their valid characters outside of ASCII is at least
/// that of their invalid sequences. Characters from U+0180 to U+07FF count half: their bytes are more often letters of other
/// charsets. In windows-1252, an opening quotation mark is invalid, and a letter before the closing one can be valid: such a
/// pair is no evidence for UTF-8.
fn is_mostly_utf8(bytes: &[u8]) -> bool {
    let is_quotation_mark = |byte: u8| matches!(byte, 0x82 | 0x84 | 0x8b | 0x91..=0x94 | 0x9b | 0xab | 0xbb);
    let (mut valid, mut invalid) = (0_usize, 0_usize);
    let (mut opening, mut closing) = (0_usize, 0_usize);
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars().filter(|c| !c.is_ascii()) {
            valid += if matches!(c, '\u{180}'..='\u{7ff}') { 1 } else { 2 };
            let mut encoded = [0; 4];
            if let [_, last] = *c.encode_utf8(&mut encoded).as_bytes() {
                closing += usize::from(is_quotation_mark(last));
            }
        }
        invalid += usize::from(!chunk.invalid().is_empty());
        opening += usize::from(chunk.invalid().first().copied().is_some_and(is_quotation_mark));
    }
    valid.saturating_sub(2 * opening.min(closing)) >= 2 * invalid
}

/// Puts a text on one line: replaces control characters by spaces and trims the result.
pub(super) fn one_line(text: &str) -> String {
    let text = text.trim();
    // This is the most common case.
    if text.bytes().all(|b| (b' '..=b'~').contains(&b)) {
        return text.to_owned();
    }
    let cleaned: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    cleaned.trim().to_owned()
}

/// Returns the charset that an HTML document declares in a `meta` element, for a part that declares none. Ignored for
/// valid UTF-8: programs that write it often leave the declaration of their template unchanged.
pub(super) fn charset_declared_in_html(html: &[u8]) -> Option<String> {
    let head = &html[..html.len().min(META_SEARCH_BYTES)];
    if std::str::from_utf8(html).is_ok() {
        return None;
    }
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    let meta = &head[head.find("<meta")?..];
    let (_, value) = meta.split_once("charset=")?;
    let label = value.trim_start_matches(['"', '\'', ' ']);
    let end = label.find(|c: char| !c.is_ascii_alphanumeric() && !"-_:.".contains(c)).unwrap_or(label.len());
    Some(label[..end].to_owned())
}

fn decode_undeclared(bytes: &[u8]) -> DecodedText {
    let text = decode_unlabelled(bytes);
    // Valid UTF-8 is borrowed, except for an ISO 2022 charset.
    let is_guess = matches!(text, Cow::Owned(_)) && std::str::from_utf8(bytes).is_err();
    let text = match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text.into_owned(),
    };
    let defect = is_guess
        .then(|| "The text is not UTF-8 and declares no charset. The charset was detected from the bytes.".to_owned());
    DecodedText { text, defect }
}

fn guess_encoding(bytes: &[u8]) -> &'static Encoding {
    let sample = &bytes[..bytes.len().min(GUESS_SAMPLE_BYTES)];
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Allow);
    detector.feed(sample, true);
    detector.guess(None, Utf8Detection::Deny)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decodes_declared_charsets() {
        let table: &[(&str, &[u8], &str)] = &[
            ("UTF-8", "naïve 😀".as_bytes(), "naïve 😀"),
            ("utf8", b"\xef\xbb\xbfbom", "bom"),
            ("iso-8859-1", b"caf\xe9", "café"),
            ("ISO-8859-2", b"\xb3\xf3d\xbc", "łódź"),
            ("iso-8859-5", b"\xbf\xe0\xd8\xd2\xd5\xe2", "Привет"),
            ("iso-8859-7", b"\xea\xe1\xeb\xe7", "καλη"),
            ("iso-8859-9", b"\xfe\xf0\xfd", "şğı"),
            ("iso-8859-15", b"\xa4 5", "€ 5"),
            ("windows-1250", b"\x9elu\x9dou\xe8k\xfd", "žluťoučký"),
            ("windows-1251", b"\xcf\xf0\xe8\xe2\xe5\xf2", "Привет"),
            ("Windows-1252", b"\x93quoted\x94", "“quoted”"),
            ("windows-1253", b"\xea\xe1\xeb\xe7", "καλη"),
            ("windows-1255", b"\xf9\xec\xe5\xed", "שלום"),
            ("windows-1256", b"\xd3\xe1\xc7\xe3", "سلام"),
            ("koi8-r", b"\xf0\xd2\xc9\xd7\xc5\xd4", "Привет"),
            ("koi8-u", b"\xa7", "ї"),
            ("Shift_JIS", b"\x93\xfa\x96{\x8c\xea", "日本語"),
            ("iso-2022-jp", b"\x1b$BF|K\\8l\x1b(B", "日本語"),
            ("euc-jp", b"\xc6\xfc\xcb\xdc\xb8\xec", "日本語"),
            ("gb2312", b"\xd6\xd0\xce\xc4", "中文"),
            ("gb18030", b"\xd6\xd0\xce\xc4", "中文"),
            ("big5", b"\xa4\xa4\xa4\xe5", "中文"),
            ("euc-kr", b"\xc7\xd1\xb1\xdb", "한글"),
            ("ks_c_5601-1987", b"\xc7\xd1\xb1\xdb", "한글"),
            ("utf-16", b"\xfe\xff\x00H\x00i", "Hi"),
            ("utf-16", b"\x00H\x00i", "Hi"),
            ("utf-16", b"H\x00i\x00", "Hi"),
            ("utf-16le", b"H\x00i\x00", "Hi"),
            ("utf-32", b"\xff\xfe\x00\x00H\x00\x00\x00", "H"),
            ("utf-32be", b"\x00\x00\x00H", "H"),
            ("ibm850", b"Gr\x81\xe1e", "Grüße"),
            ("cp437", b"caf\x82", "café"),
            ("cp866", b"\x8f\xe0\xa8\xa2\xa5\xe2", "Привет"),
            ("hz-gb-2312", b"~{VPND~}", "中文"),
            ("iso-2022-kr", b"\x1b$)C\x0eGQ1[\x0f", "한글"),
            ("mac-roman", b"caf\x8e", "café"),
            ("utf-7", b"Hi +Jjo-", "Hi ☺"),
            ("us-ascii (Plain text)", b"plain", "plain"),
        ];
        for (label, bytes, text) in table {
            let decoded = decode(Some(label), bytes);
            assert_eq!((decoded.text.as_str(), &decoded.defect), (*text, &None), "{label}");
        }
    }

    #[test]
    fn detects_wrong_or_missing_charsets() {
        let russian = b"\xcf\xf0\xe8\xe2\xe5\xf2, \xea\xe0\xea \xe4\xe5\xeb\xe0 \xf1\xe5\xe3\xee\xe4\xed\xff?";
        // In GBK the first character is valid UTF-8.
        let (chinese, ..) = encoding_rs::GBK.encode("模型是中国人民的语言，我们今天不去学校了。");
        let table: &[(Option<&str>, &[u8], &str, bool)] = &[
            (None, "é".as_bytes(), "é", false),
            (Some("us-ascii"), "é".as_bytes(), "é", false),
            (None, b"caf\xe9 au lait", "café au lait", true),
            (None, russian, "Привет, как дела сегодня?", true),
            (Some("x-no-such"), b"plain", "plain", true),
            (Some("utf-8"), b"caf\xe9!", "café!", true),
            (Some("utf-8"), b"caf\xe9", "café", true),
            (Some("utf-8"), b"caf\xe9 \xc3\xa9\xc3\xa9", "café éé", true),
            (Some("utf-8"), b"Total: \xa3100", "Total: £100", true),
            (Some("utf-8"), b"20\xb0C, \xa7 5", "20°C, § 5", true),
            (
                Some("utf-8"),
                b"\xc3\xbcber gr\xc3\xb6\xc3\x9fe f\xfcr Stra\xdfe k\xf6nnen d\xfcrfen m\xfcssen",
                "über größe für Straße können dürfen müssen",
                true,
            ),
            (
                Some("utf-8"),
                b"gr\xc3\xbcn, f\xfcr Stra\xdfe k\xf6nnen d\xfcrfen m\xfcssen h\xe4tten w\xfcrden",
                "grün, für Straße können dürfen müssen hätten würden",
                true,
            ),
            (Some("utf-8"), b"price 5 \xe2\x82", "price 5 \u{fffd}", true),
            (Some("utf-8"), b"price 5 \xe2\x82\r\n", "price 5 \u{fffd}\r\n", true),
            (Some("utf-8"), b"na\xc3\xafve \xf0\x9f\x98", "naïve \u{fffd}", true),
            (Some("utf-8"), b"na\xc3\xafve caf\xc3", "naïve caf\u{fffd}", true),
            (Some("utf-8"), b"na\xc3\xafve caf\xe9\r\n", "naïve café\r\n", true),
            (Some("utf-8"), b"na\xc3\xafve \x81 \x80", "naïve \u{fffd} €", true),
            (Some("utf-8"), &chinese, "模型是中国人民的语言，我们今天不去学校了。", true),
            (Some("utf-8"), russian, "Привет, как дела сегодня?", true),
            (Some("iso-8859-1"), "café".as_bytes(), "café", true),
            (Some("iso-8859-15"), "café".as_bytes(), "café", true),
            (Some("us-ascii"), "café".as_bytes(), "café", false),
            (Some("windows-1251"), "Привет".as_bytes(), "Привет", true),
            (Some("windows-1251"), b"\xd7\xb8", "Чё", false),
            (Some("ibm850"), "Grüße".as_bytes(), "Grüße", true),
            (Some("euc-jp"), "日本語".as_bytes(), "日本語", true),
            (Some("windows-874"), b"\xc2\xa1", "ยก", false),
            (Some("iso-8859-1"), b"\xff\xfeH\0i\0", "Hi", true),
            (None, b"\xfe\xff\0H\0i", "Hi", true),
            (None, b"\xff\xfe\0\0H\0\0\0", "H", true),
            (None, b"\xef\xbb\xbfcaf\xc3\xa9", "café", false),
            (Some("iso-8859-1"), b"\xef\xbb\xbfcaf\xc3\xa9", "café", true),
            (Some("iso-2022-jp"), "日本語".as_bytes(), "日本語", true),
            (Some("iso-2022-kr"), "한글".as_bytes(), "한글", true),
            (Some("hz-gb-2312"), "中文".as_bytes(), "中文", true),
            (Some("iso-2022-jp"), b"\x1b$BF|K\\\x1b(B caf\xc3\xa9", "日本 caf\u{fffd}\u{fffd}", true),
            (None, b"\x1b$BF|K\\\x1b(B\x1b$B8l\x1b(B", "日本語", false),
            (None, b"\x1b$)C\x0eGQ1[\x0f", "한글", false),
        ];
        for (label, bytes, text, defect) in table {
            let decoded = decode(*label, bytes);
            assert_eq!((decoded.text.as_str(), decoded.defect.is_some()), (*text, *defect), "{label:?}");
        }
    }

    #[test]
    fn undeclared_utf_8_with_an_invalid_byte_stays_utf_8() {
        let table: &[(&[u8], &str)] = &[
            (b"Gr\xc3\xbc\xc3\x9fe \xff", "Grüße \u{fffd}"),
            (b"caf\xc3\xa9 \xff", "café \u{fffd}"),
            (b"Zo\xc3\xab \xff", "Zoë \u{fffd}"),
            (b"na\xc3\xafve caf\xe9", "naïve caf\u{fffd}"),
            (b"\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa", "日本\u{fffd}"),
            (b"\xd0\x94\xd0\xb0 \xe4", "Да \u{fffd}"),
            // Not UTF-8.
            (b"caf\xe9 \xe0 la", "café à la"),
            (b"Stra\xdfe f\xfcr M\xfcller, gr\xc3\xbcn", "Straße für Müller, grÃ¼n"),
            (b"\x93Spa\xdf\x94", "“Spaß”"),
            (b"\xabMARCH\xc9\xbb", "«MARCHÉ»"),
            (b"\x94HYV\xc4\x94", "”HYVÄ”"),
            (b"\xabSK\xc5\xbb", "«SKÅ»"),
            (b"\x93S\xc4\x94: nyt", "“SÄ”: nyt"),
        ];
        for (bytes, text) in table {
            for label in [None, Some("x-no-such")] {
                let decoded = decode(label, bytes);
                assert_eq!((decoded.text.as_str(), decoded.defect.is_some()), (*text, true), "{label:?}");
            }
        }
    }

    #[test]
    fn finds_charsets_declared_in_html() {
        let table: &[(&[u8], Option<&str>)] = &[
            (b"<meta charset=\"KOI8-R\"><p>\xf0", Some("koi8-r")),
            (b"<META http-equiv=x content='text/html; charset=iso-8859-2'>\xb3", Some("iso-8859-2")),
            (b"<meta charset=koi8-r><p>plain", None),
            (b"<p>charset=koi8-r \xf0", None),
        ];
        for (html, charset) in table {
            assert_eq!(charset_declared_in_html(html).as_deref(), *charset);
        }
    }

    #[test]
    fn one_line_removes_control_characters() {
        assert_eq!(one_line(" a\r\nb\0c\u{85}d\t"), "a  b c d");
    }
}
