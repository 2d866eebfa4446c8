//! Codes that count no more: `your old code 111111`, `111111 is no longer valid`. Which words say so stands in the table;
//! here is decided which number they mean. What else a number may be called is not looked at.

use std::ops::Range;

use super::lexicon::{WordMatch, starts_with_unit, words_within};
use super::lines::CELL_SEPARATOR;
use super::sentences::{MAX_LABEL_DISTANCE, MAX_WORD_DISTANCE, contains_sentence_end, first_sentence};
use super::vocabulary::Sense;

/// Whether what a line says in a range calls the number behind it a former code.
pub(super) fn is_labeled_former(line: &str, line_words: &[WordMatch], range: Range<usize>) -> bool {
    let words = words_within(line_words, &range);
    for (at, word_match) in words.iter().enumerate().rev() {
        let gap = &line[word_match.end..range.end];
        if gap.len() > MAX_WORD_DISTANCE || contains_sentence_end(gap) {
            return false;
        }
        match word_match.sense {
            // After `the old code was replaced by` and `instead of the old code use` comes the new one.
            Sense::Revoked | Sense::Use => return false,
            Sense::Former if count_blanks(gap) <= 2 || follows_its_noun(line, words, at) => return true,
            Sense::Code => return is_described_as_old(line, &words[..=at]),
            _ => {}
        }
    }
    false
}

/// Whether what a line says in a range takes back the number before it.
pub(super) fn is_declared_invalid(line: &str, line_words: &[WordMatch], range: Range<usize>) -> bool {
    for word_match in words_within(line_words, &range) {
        let gap = &line[range.start..word_match.start];
        if gap.len() > 2 * MAX_LABEL_DISTANCE || contains_sentence_end(gap) {
            return false;
        }
        match word_match.sense {
            Sense::Revoked => {
                return !states_validity_period(
                    &line[range.start..range.end.min(line.ceil_char_boundary(word_match.end + MAX_LABEL_DISTANCE))],
                );
            }
            // `222222 is your code, the old one is no longer valid` speaks of another.
            Sense::Code | Sense::Former | Sense::Use => return false,
            _ => {}
        }
    }
    false
}

/// Whether a sentence says after how long, as `no longer valid after 10 minutes`: until then the code counts.
fn states_validity_period(text: &str) -> bool {
    let sentence = first_sentence(text);
    sentence.rfind(|c: char| c.is_ascii_digit()).is_some_and(|digit| starts_with_unit(&sentence[digit + 1..]))
}

/// Whether the last of these words has one before it that calls it old, as in `old verification code`.
fn is_described_as_old(line: &str, words: &[WordMatch]) -> bool {
    let Some((code, before)) = words.split_last() else { return false };
    for (at, word_match) in before.iter().enumerate().rev() {
        let gap = &line[word_match.end..code.start];
        if gap.len() > MAX_LABEL_DISTANCE || contains_sentence_end(gap) || gap.contains(CELL_SEPARATOR) {
            return false;
        }
        match word_match.sense {
            Sense::Former => return !follows_its_noun(line, words, at),
            Sense::Code | Sense::Revoked => return false,
            _ => {}
        }
    }
    false
}

/// Whether a word stands right behind the one that it is about, as in `código anterior`.
fn follows_its_noun(line: &str, words: &[WordMatch], at: usize) -> bool {
    let Some(word) = at.checked_sub(1).map(|before| words[before]) else { return false };
    let gap = &line[word.end..words[at].start];
    matches!(word.sense, Sense::Code | Sense::Action)
        && gap.len() <= MAX_LABEL_DISTANCE
        && count_blanks(gap) <= 1
        && !contains_sentence_end(gap)
}

/// How many blanks there are; more than any number of them where a cell of a table ends.
fn count_blanks(text: &str) -> usize {
    if text.contains(CELL_SEPARATOR) { usize::MAX } else { text.matches(' ').count() }
}

#[cfg(test)]
mod tests {
    use super::super::lexicon::find_words;
    use super::*;

    /// What is said of the first run of ones in a line.
    fn is_revoked(line: &str) -> bool {
        let start = line.find("111111").expect("a number");
        let line_words = find_words(line);
        is_labeled_former(line, &line_words, 0..start) || is_declared_invalid(line, &line_words, start + 6..line.len())
    }

    #[test]
    fn recognizes_revoked_codes() {
        let table = [
            ("Your old code 111111", true),
            ("Your previous verification code was 111111", true),
            ("The code sent earlier, 111111", true),
            ("New code: see above (previously 111111)", true),
            ("Tu código anterior es 111111", true),
            ("Il precedente codice di verifica era 111111", true),
            ("The code 111111 is no longer valid", true),
            ("The code 111111 that we sent you has been replaced", true),
            ("Der Code 111111 ist abgelaufen", true),
            ("验证码111111已失效", true),
            ("Your new code is 111111", false),
            ("Your old code does not work any more. The new code is 111111", false),
            ("Your old code has been replaced by 111111", false),
            ("Instead of your old code use 111111", false),
            ("The code that replaces the old one is 111111", false),
            ("Tu código anterior por el código 111111", false),
            ("Old code\tnew code\t111111", false),
            ("111111 is your code, the old one is no longer valid", false),
            ("Your code is 111111. If it is no longer valid, ask for another", false),
            ("Your code is 111111 (will be expired in 10 minutes)", false),
            ("Der Code 111111 ist nach 10 Minuten nicht mehr gültig", false),
            ("Le code 111111 n'est plus valable après 10 minutes", false),
            ("The code 111111 is no longer valid. The new one is good for 10 minutes", true),
            ("Your code is 111111, request another if it has expired", false),
        ];
        for (line, expected) in table {
            assert_eq!(is_revoked(line), expected, "{line}");
        }
    }
}
