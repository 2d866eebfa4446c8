//! DOS code pages, which the WHATWG Encoding Standard omits. Only the upper halves are listed; the lower half of
//! each is ASCII.

/// A DOS code page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CodePage {
    /// The characters of the bytes from 0x80 on. U+FFFD for an unassigned byte.
    upper: &'static str,
}

impl CodePage {
    /// Returns the code page of this number.
    pub(super) fn from_number(number: &str) -> Option<Self> {
        let upper = PAGES.lines().find_map(|page| page.strip_prefix(number)?.strip_prefix(' '))?;
        Some(Self { upper })
    }

    /// Decodes the text. Also returns whether some bytes are unassigned.
    pub(super) fn decode(self, bytes: &[u8]) -> (String, bool) {
        let upper: Vec<char> = self.upper.chars().collect();
        let character = |&byte: &u8| match byte {
            0..0x80 => char::from(byte),
            _ => upper.get(usize::from(byte) - 0x80).copied().unwrap_or(char::REPLACEMENT_CHARACTER),
        };
        let text: String = bytes.iter().map(character).collect();
        let broken = text.contains(char::REPLACEMENT_CHARACTER);
        (text, broken)
    }
}

/// The code pages: one line each with the number and the characters of the bytes from 0x80 on. 866 is missing, because
/// `encoding_rs` supports it.
const PAGES: &str = include_str!("code_pages.txt");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_page_has_128_characters() {
        for page in PAGES.lines() {
            let (number, upper) = page.split_once(' ').unwrap();
            assert_eq!(upper.chars().count(), 128, "{number}");
        }
    }

    #[test]
    fn decodes_samples() {
        let table: &[(&str, &[u8], &str)] = &[
            ("437", b"caf\x82 \xe1 \xc9\xcd\xbb", "café ß ╔═╗"),
            ("850", b"Gr\x81\xe1e, \x9d \xd5", "Grüße, Ø ı"),
            ("858", b"5 \xd5", "5 €"),
            ("852", b"\xa7lu\x9cou\xa0", "žluťouá"),
            ("737", b"\x89\x98\xa1\xe1", "Κακά"),
        ];
        for (number, bytes, text) in table {
            let decoded = CodePage::from_number(number).map(|page| page.decode(bytes));
            assert_eq!(decoded, Some(((*text).to_owned(), false)), "{number}");
        }
        assert!(CodePage::from_number("857").is_some_and(|page| page.decode(b"\xd5").1));
        assert_eq!(CodePage::from_number("1"), None);
    }
}
