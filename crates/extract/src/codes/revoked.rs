//! Codes that count no more: `your old code 111111`, `111111 is no longer valid`. Which words say so stands in the table;
//! here is decided which number they mean. What else a number may be called is not looked at.

use std::ops::Range;

use super::lexicon::{Hit, begins_with_unit, within};
use super::lines::CELL;
use super::sentences::{LABEL, REACH, ends_sentence, sentence};
use super::words::Sense;

/// Whether what a line says in a range calls the number behind it a former code.
pub(super) fn is_former(line: &str, hits: &[Hit], range: Range<usize>) -> bool {
    let words = within(hits, &range);
    for (at, hit) in words.iter().enumerate().rev() {
        let gap = &line[hit.end..range.end];
        if gap.len() > REACH || ends_sentence(gap) {
            return false;
        }
        match hit.sense {
            // After `the old code was replaced by` and `instead of the old code use` comes the new one.
            Sense::Gone | Sense::Use => return false,
            Sense::Former if blanks(gap) <= 2 || is_behind_its_word(line, words, at) => return true,
            Sense::Code => return is_old(line, &words[..=at]),
            _ => {}
        }
    }
    false
}

/// Whether what a line says in a range takes back the number before it.
pub(super) fn is_gone(line: &str, hits: &[Hit], range: Range<usize>) -> bool {
    for hit in within(hits, &range) {
        let gap = &line[range.start..hit.start];
        if gap.len() > 2 * LABEL || ends_sentence(gap) {
            return false;
        }
        match hit.sense {
            Sense::Gone => {
                return !says_when(&line[range.start..range.end.min(line.ceil_char_boundary(hit.end + LABEL))]);
            }
            // `222222 is your code, the old one is no longer valid` speaks of another.
            Sense::Code | Sense::Former | Sense::Use => return false,
            _ => {}
        }
    }
    false
}

/// Whether a sentence says after how long, as `no longer valid after 10 minutes`: until then the code counts.
fn says_when(text: &str) -> bool {
    let sentence = sentence(text);
    sentence.rfind(|c: char| c.is_ascii_digit()).is_some_and(|digit| begins_with_unit(&sentence[digit + 1..]))
}

/// Whether the last of these words has one before it that calls it old, as in `old verification code`.
fn is_old(line: &str, words: &[Hit]) -> bool {
    let Some((code, before)) = words.split_last() else { return false };
    for (at, hit) in before.iter().enumerate().rev() {
        let gap = &line[hit.end..code.start];
        if gap.len() > LABEL || ends_sentence(gap) || gap.contains(CELL) {
            return false;
        }
        match hit.sense {
            Sense::Former => return !is_behind_its_word(line, words, at),
            Sense::Code | Sense::Gone => return false,
            _ => {}
        }
    }
    false
}

/// Whether a word stands right behind the one that it is about, as in `código anterior`.
fn is_behind_its_word(line: &str, words: &[Hit], at: usize) -> bool {
    let Some(word) = at.checked_sub(1).map(|before| words[before]) else { return false };
    let gap = &line[word.end..words[at].start];
    matches!(word.sense, Sense::Code | Sense::Act) && gap.len() <= LABEL && blanks(gap) <= 1 && !ends_sentence(gap)
}

/// How many blanks there are; more than any number of them where a cell of a table ends.
fn blanks(text: &str) -> usize {
    if text.contains(CELL) { usize::MAX } else { text.matches(' ').count() }
}

#[cfg(test)]
mod tests {
    use super::super::lexicon::hits;
    use super::*;

    /// What is said of the first run of ones in a line.
    fn is_revoked(line: &str) -> bool {
        let start = line.find("111111").expect("a number");
        let hits = hits(line);
        is_former(line, &hits, 0..start) || is_gone(line, &hits, start + 6..line.len())
    }

    #[test]
    fn which_number_counts_no_more() {
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
