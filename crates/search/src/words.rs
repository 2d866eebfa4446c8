//! Splits texts and queries into words, which is how they are compared. Case, accents and the width of characters are
//! ignored. A word is a run of letters and digits. In scripts without spaces between words each character is a word, so
//! that phrases find words there.

use std::ops::{ControlFlow, Range};

use unicode_normalization::char::{canonical_combining_class, decompose_compatible};

/// The maximum length of a word in bytes. The rest of a longer run is ignored, in texts as in queries, so longer words
/// are found too.
const MAX_WORD_BYTES: usize = 64;

/// Calls `found` with each word of a text and the range of bytes it comes from, until `found` returns `Break`.
pub(crate) fn for_each(text: &str, mut found: impl FnMut(&str, Range<usize>) -> ControlFlow<()>) {
    // A `Break` only means that `found` ended the iteration.
    let _ = try_for_each(text, &mut found);
}

/// Returns the words of a text.
pub(crate) fn split(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    for_each(text, |word, _| {
        words.push(word.to_owned());
        ControlFlow::Continue(())
    });
    words
}

fn try_for_each(text: &str, found: &mut impl FnMut(&str, Range<usize>) -> ControlFlow<()>) -> ControlFlow<()> {
    let bytes = text.as_bytes();
    let mut pending = PendingWord::default();
    let mut start = 0;
    while let Some(&byte) = bytes.get(start) {
        if byte.is_ascii_alphanumeric() {
            let (length, has_capital) = ascii_run(&bytes[start..]);
            let end = start + length;
            let is_whole = pending.word.is_empty() && bytes.get(end).is_none_or(u8::is_ascii);
            if is_whole && !has_capital && length <= MAX_WORD_BYTES {
                // Most words need no copy.
                found(&text[start..end], start..end)?;
            } else {
                pending.push_ascii(&text[start..end], start);
            }
            start = end;
            continue;
        }
        if byte.is_ascii() {
            pending.finish(found)?;
            start += 1;
            continue;
        }
        let Some(c) = text[start..].chars().next() else { break };
        let end = start + c.len_utf8();
        let mut flow = ControlFlow::Continue(());
        fold(c, |c| {
            if flow.is_continue() {
                flow = pending.accept(c, start..end, found);
            }
        });
        flow?;
        pending.extend(start, end);
        start = end;
    }
    pending.finish(found)
}

/// Returns the length of the run of ASCII letters and digits at the start, and whether it has a capital letter. Reads eight
/// bytes at a time.
fn ascii_run(bytes: &[u8]) -> (usize, bool) {
    const ONES: u64 = u64::MAX / 255;
    const HIGH_BITS: u64 = ONES << 7;
    let (mut length, mut has_capital) = (0, false);
    for chunk in bytes.as_chunks::<8>().0 {
        let chunk = u64::from_le_bytes(*chunk);
        // Sets the high bit of the bytes in a range. No sum of two bytes exceeds a byte.
        let in_range = |bytes: u64, first: u8, last: u8| {
            (bytes + u64::from(0x80 - first) * ONES) & !(bytes + u64::from(0x7f - last) * ONES)
        };
        let ascii = chunk & !HIGH_BITS;
        let letters = in_range(ascii | (0x20 * ONES), b'a', b'z');
        let run = (letters | in_range(ascii, b'0', b'9')) & !chunk & HIGH_BITS;
        let end = run ^ HIGH_BITS;
        // The bit 0x20 of a capital letter is clear. Only those before the end count.
        let capitals = run & letters & !(chunk << 2);
        has_capital |= capitals & (end ^ end.wrapping_sub(1)) != 0;
        if end != 0 {
            return (length + end.trailing_zeros() as usize / 8, has_capital);
        }
        length += 8;
    }
    for byte in bytes[length..].iter().take_while(|byte| byte.is_ascii_alphanumeric()) {
        has_capital |= byte.is_ascii_uppercase();
        length += 1;
    }
    (length, has_capital)
}

/// The word being read.
#[derive(Default)]
struct PendingWord {
    word: String,
    range: Range<usize>,
}

impl PendingWord {
    fn accept(
        &mut self,
        c: char,
        range: Range<usize>,
        found: &mut impl FnMut(&str, Range<usize>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if !c.is_alphanumeric() {
            return self.finish(found);
        }
        if !is_single_char_word(c) {
            self.push(c, range);
            return ControlFlow::Continue(());
        }
        self.finish(found)?;
        self.push(c, range);
        self.finish(found)
    }

    fn push(&mut self, c: char, range: Range<usize>) {
        if self.word.is_empty() {
            self.range.start = range.start;
        }
        self.range.end = range.end;
        if self.word.len() < MAX_WORD_BYTES {
            self.word.push(c);
        }
    }

    /// Adds ASCII letters and digits that start at this byte.
    fn push_ascii(&mut self, letters: &str, start: usize) {
        if self.word.is_empty() {
            self.range.start = start;
        }
        self.range.end = start + letters.len();
        let old_length = self.word.len();
        let added = letters.len().min(MAX_WORD_BYTES.saturating_sub(old_length));
        self.word.push_str(&letters[..added]);
        self.word[old_length..].make_ascii_lowercase();
    }

    /// Extends the range of the current word to a combining accent after it.
    fn extend(&mut self, start: usize, end: usize) {
        if !self.word.is_empty() && self.range.end == start {
            self.range.end = end;
        }
    }

    fn finish(&mut self, found: &mut impl FnMut(&str, Range<usize>) -> ControlFlow<()>) -> ControlFlow<()> {
        if self.word.is_empty() {
            return ControlFlow::Continue(());
        }
        let flow = found(&self.word, self.range.clone());
        self.word.clear();
        flow
    }
}

/// Folds a character for comparison: compatibility decomposition, lower case, no accents.
fn fold(c: char, mut push: impl FnMut(char)) {
    decompose_compatible(c, |part| {
        for lower in part.to_lowercase().filter(|&c| !is_ignored(c)) {
            match lower {
                'ß' => {
                    push('s');
                    push('s');
                }
                'ς' => push('σ'),
                other => push(ascii_digit(other)),
            }
        }
    });
}

/// Converts digits of other scripts to ASCII digits: Arabic, Persian, Devanagari, Bengali, Thai.
fn ascii_digit(c: char) -> char {
    const ZEROS: [char; 5] = ['\u{660}', '\u{6f0}', '\u{966}', '\u{9e6}', '\u{e50}'];
    let value = ZEROS.iter().find_map(|&zero| (u32::from(c)).checked_sub(u32::from(zero)).filter(|&value| value < 10));
    value.and_then(|value| char::from_digit(value, 10)).unwrap_or(c)
}

/// Returns true if a character neither belongs to a word nor ends it: accents and formatting characters. Vowel signs of
/// Indic scripts have combining class 0 and are kept.
fn is_ignored(c: char) -> bool {
    let is_formatting =
        matches!(c, '\u{ad}' | '\u{34f}' | '\u{200c}' | '\u{200d}' | '\u{2060}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}');
    is_formatting || canonical_combining_class(c) != 0
}

/// Returns true for characters of scripts without spaces between words: Thai, Lao, Burmese, Khmer, Japanese, Chinese.
fn is_single_char_word(c: char) -> bool {
    matches!(
        c,
        '\u{e00}'..='\u{eff}'
            | '\u{1000}'..='\u{109f}'
            | '\u{1780}'..='\u{17ff}'
            | '\u{3005}'..='\u{3007}'
            | '\u{3040}'..='\u{30ff}'
            | '\u{31f0}'..='\u{31ff}'
            | '\u{3400}'..='\u{4dbf}'
            | '\u{4e00}'..='\u{9fff}'
            | '\u{20000}'..='\u{3ffff}'
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn splits_texts_into_words() {
        let table: &[(&str, &[&str])] = &[
            ("", &[]),
            (" -- !? ", &[]),
            ("Hello, World", &["hello", "world"]),
            ("no-reply@x.org", &["no", "reply", "x", "org"]),
            ("code 123456.", &["code", "123456"]),
            ("Café CAFE\u{301} cafe", &["cafe", "cafe", "cafe"]),
            ("Grüße GRÜSSE", &["grusse", "grusse"]),
            ("ΟΔΟΣ οδός", &["οδοσ", "οδοσ"]),
            ("İstanbul ﬁne Ｗｉｄｅ", &["istanbul", "fine", "wide"]),
            ("soft\u{ad}ware", &["software"]),
            ("確認コード", &["確", "認", "コ", "ー", "ト"]),
            ("株a式", &["株", "a", "式"]),
            ("รหัส", &["ร", "ห", "\u{e31}", "ส"]),
            (
                "한국어 하다",
                &[
                    "\u{1112}\u{1161}\u{11ab}\u{1100}\u{116e}\u{11a8}\u{110b}\u{1165}",
                    "\u{1112}\u{1161}\u{1103}\u{1161}",
                ],
            ),
            ("हिन्दी", &["हिनदी"]),
            ("привет, МИР", &["привет", "мир"]),
            ("٤٨٢٩١٣ ۴۸ ४२", &["482913", "48", "42"]),
        ];
        for (text, words) in table {
            assert_eq!(split(text), *words, "{text}");
        }
    }

    #[test]
    fn long_words_are_truncated() {
        let words = split(&format!("{} end", "x".repeat(100_000)));
        assert_eq!(words, ["x".repeat(MAX_WORD_BYTES), "end".to_owned()]);
    }

    #[test]
    fn every_byte_ends_an_ascii_run_unless_it_is_a_letter_or_digit() {
        for (position, byte) in (0..20).flat_map(|position| (0..=u8::MAX).map(move |byte| (position, byte))) {
            let mut bytes = *b"abcdefghij0123456789-Z";
            bytes[position] = byte;
            let length = bytes.iter().position(|byte| !byte.is_ascii_alphanumeric()).unwrap();
            let has_capital = bytes[..length].iter().any(u8::is_ascii_uppercase);
            assert_eq!(ascii_run(&bytes), (length, has_capital), "{byte} at {position}");
        }
    }

    #[test]
    fn break_ends_the_iteration() {
        let mut count = 0;
        for_each("確認コード", |_, _| {
            count += 1;
            if count == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert_eq!(count, 2);
    }

    proptest! {
        #[test]
        fn ranges_contain_the_words(text in "[a-zé確ﬁ㍿ \u{301}.ß]{0,30}") {
            let mut last = 0;
            for_each(&text, |word, range| {
                assert!(last <= range.start || text[range.clone()].chars().count() == 1);
                assert!(split(&text[range.clone()]).iter().any(|other| other == word));
                last = range.end;
                ControlFlow::Continue(())
            });
        }

        #[test]
        fn splitting_is_idempotent(text in any::<String>()) {
            let words = split(&text);
            prop_assert!(words.iter().all(|word| word.chars().all(char::is_alphanumeric)));
            prop_assert_eq!(split(&words.join(" ")), words);
        }
    }
}
