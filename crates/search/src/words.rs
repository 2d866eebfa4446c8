//! Words: what texts and questions are compared by. Case, accents and the width of characters do not matter. A word is a run of
//! letters and digits; where a script puts no blanks between words, each character is one, so that a phrase finds them.

use std::ops::{ControlFlow, Range};

use unicode_normalization::char::{canonical_combining_class, decompose_compatible};

/// How long a word becomes, in bytes; what follows in the same run is not looked at. It is the same in texts and in questions, so
/// that also a longer one is found.
const MAX_WORD_BYTES: usize = 64;

/// Finds the words of a text, each with the place of the characters it comes from, until `found` has enough of them.
pub(crate) fn for_each(text: &str, mut found: impl FnMut(&str, Range<usize>) -> ControlFlow<()>) {
    // The only end before the last word is the one that is asked for.
    let _ = try_for_each(text, &mut found);
}

/// The words of a text.
pub(crate) fn split(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    for_each(text, |word, _| {
        words.push(word.to_owned());
        ControlFlow::Continue(())
    });
    words
}

fn try_for_each(text: &str, found: &mut impl FnMut(&str, Range<usize>) -> ControlFlow<()>) -> ControlFlow<()> {
    let mut open = PendingWord::default();
    for (start, c) in text.char_indices() {
        let end = start + c.len_utf8();
        if c.is_ascii() {
            if c.is_ascii_alphanumeric() {
                open.push(c.to_ascii_lowercase(), start..end);
            } else {
                open.finish(found)?;
            }
            continue;
        }
        let mut flow = ControlFlow::Continue(());
        fold(c, |c| {
            if flow.is_continue() {
                flow = open.accept(c, start..end, found);
            }
        });
        flow?;
        open.extend(start, end);
    }
    open.finish(found)
}

/// The word that is being read.
#[derive(Default)]
struct PendingWord {
    word: String,
    range: Range<usize>,
}

impl PendingWord {
    fn accept(
        &mut self,
        c: char,
        place: Range<usize>,
        found: &mut impl FnMut(&str, Range<usize>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if !c.is_alphanumeric() {
            return self.finish(found);
        }
        if !is_single_char_word(c) {
            self.push(c, place);
            return ControlFlow::Continue(());
        }
        self.finish(found)?;
        self.push(c, place);
        self.finish(found)
    }

    fn push(&mut self, c: char, place: Range<usize>) {
        if self.word.is_empty() {
            self.range.start = place.start;
        }
        self.range.end = place.end;
        if self.word.len() < MAX_WORD_BYTES {
            self.word.push(c);
        }
    }

    /// Makes an accent that stands behind its letter belong to the word, wherever that leads to nothing else.
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

/// A character as it is compared: compatibility forms taken apart, in lower case, without accents.
fn fold(c: char, mut each: impl FnMut(char)) {
    decompose_compatible(c, |piece| {
        for lower in piece.to_lowercase().filter(|&c| !is_ignored(c)) {
            match lower {
                'ß' => {
                    each('s');
                    each('s');
                }
                'ς' => each('σ'),
                other => each(ascii_digit(other)),
            }
        }
    });
}

/// A digit of another script as the one that everybody types: Arabic, Persian, Devanagari, Bengali, Thai.
fn ascii_digit(c: char) -> char {
    const ZEROS: [char; 5] = ['\u{660}', '\u{6f0}', '\u{966}', '\u{9e6}', '\u{e50}'];
    let value = ZEROS.iter().find_map(|&zero| (u32::from(c)).checked_sub(u32::from(zero)).filter(|&value| value < 10));
    value.and_then(|value| char::from_digit(value, 10)).unwrap_or(c)
}

/// Whether a character neither belongs to a word nor ends it: accents, and what only says how to draw or break a line. Vowel signs
/// of the scripts of India have no class and stay.
fn is_ignored(c: char) -> bool {
    let is_formatting =
        matches!(c, '\u{ad}' | '\u{34f}' | '\u{200c}' | '\u{200d}' | '\u{2060}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}');
    is_formatting || canonical_combining_class(c) != 0
}

/// Whether a character is of a script without blanks between words: Thai, Lao, Burmese, Khmer, Japanese, Chinese.
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
    fn texts_and_their_words() {
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
    fn a_long_run_is_one_short_word() {
        let words = split(&format!("{} end", "x".repeat(100_000)));
        assert_eq!(words, ["x".repeat(MAX_WORD_BYTES), "end".to_owned()]);
    }

    #[test]
    fn enough_is_enough() {
        let mut count = 0;
        for_each("確認コード", |_, _| {
            count += 1;
            if count == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert_eq!(count, 2);
    }

    proptest! {
        #[test]
        fn places_are_where_the_words_come_from(text in "[a-zé確ﬁ㍿ \u{301}.ß]{0,30}") {
            let mut last = 0;
            for_each(&text, |word, place| {
                assert!(last <= place.start || text[place.clone()].chars().count() == 1);
                assert!(split(&text[place.clone()]).iter().any(|other| other == word));
                last = place.end;
                ControlFlow::Continue(())
            });
        }

        #[test]
        fn words_of_words_are_the_same(text in any::<String>()) {
            let words = split(&text);
            prop_assert!(words.iter().all(|word| word.chars().all(char::is_alphanumeric)));
            prop_assert_eq!(split(&words.join(" ")), words);
        }
    }
}
