//! Codes that are no longer valid: `your old code 111111`, `111111 is no longer valid`. The words are in the table of
//! `vocabulary`. This module decides which number they describe. Other labels of a number are not considered.

use std::ops::Range;

use super::lexicon::{WordMatch, starts_with_unit, words_within};
use super::lines::CELL_SEPARATOR;
use super::sentences::{MAX_LABEL_DISTANCE, MAX_WORD_DISTANCE, contains_sentence_end, first_sentence};
use super::vocabulary::Sense;

/// Returns whether the words of a line in a range label the number after the range as a former code.
pub(super) fn is_labeled_former(line: &str, line_words: &[WordMatch], range: Range<usize>) -> bool {
    let words = words_within(line_words, &range);
    for (at, word_match) in words.iter().enumerate().rev() {
        let gap = &line[word_match.end..range.end];
        if gap.len() > MAX_WORD_DISTANCE || contains_sentence_end(gap) {
            return false;
        }
        match word_match.sense {
            // `the old code was replaced by` and `instead of the old code use` are followed by the new code.
            Sense::Revoked | Sense::Use => return false,
            Sense::Former if count_blanks(gap) <= 2 || follows_its_noun(line, words, at) => return true,
            Sense::Code => return is_described_as_old(line, &words[..=at]),
            _ => {}
        }
    }
    false
}

/// Returns whether the words of a line in a range declare the number before the range invalid.
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
            // `222222 is your code, the old one is no longer valid` is about another code.
            Sense::Code | Sense::Former | Sense::Use => return false,
            _ => {}
        }
    }
    false
}

/// Returns whether a sentence states a period, as `no longer valid after 10 minutes` does. Until then the code is
/// valid.
fn states_validity_period(text: &str) -> bool {
    let sentence = first_sentence(text);
    sentence.rfind(|c: char| c.is_ascii_digit()).is_some_and(|digit| starts_with_unit(&sentence[digit + 1..]))
}

/// Returns whether a word before the last one describes it as old, as in `old verification code`.
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

/// Returns whether an adjective directly follows its noun, as in `código anterior`.
fn follows_its_noun(line: &str, words: &[WordMatch], at: usize) -> bool {
    let Some(word) = at.checked_sub(1).map(|before| words[before]) else { return false };
    let gap = &line[word.end..words[at].start];
    matches!(word.sense, Sense::Code | Sense::Action)
        && gap.len() <= MAX_LABEL_DISTANCE
        && count_blanks(gap) <= 1
        && !contains_sentence_end(gap)
}

/// Returns the number of spaces, or `usize::MAX` if the text contains a cell separator.
fn count_blanks(text: &str) -> usize {
    if text.contains(CELL_SEPARATOR) { usize::MAX } else { text.matches(' ').count() }
}

#[cfg(test)]
mod tests {
    use super::super::lexicon::find_words;
    use super::*;

    /// Returns whether the first run of ones in a line is a revoked code.
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
