//! Finds the words of the table in a line, regardless of case and accents. All entries are matched at once by a trie,
//! so the time depends only on the line.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::LazyLock;

use unicode_normalization::UnicodeNormalization as _;

use super::vocabulary::{self, Sense};

/// From this character on, scripts write words without spaces, or with attached prefixes.
const FIRST_UNSPACED_CHAR: char = '\u{590}';
/// From this character on, scripts write units without a space after the number.
const FIRST_IDEOGRAPHIC_CHAR: char = '\u{2e80}';

static LABELS: LazyLock<Trie> = LazyLock::new(|| Trie::build(|sense| sense != Sense::Unit));
static UNITS: LazyLock<Trie> = LazyLock::new(|| Trie::build(|sense| sense == Sense::Unit));

/// A word of the table, found in a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WordMatch {
    /// Its start, in bytes.
    pub(super) start: usize,
    /// Its end, in bytes.
    pub(super) end: usize,
    pub(super) sense: Sense,
}

/// Returns the words of a line, from left to right, without overlaps.
pub(super) fn find_words(line: &str) -> Vec<WordMatch> {
    let folded = fold_text(line);
    let mut words = Vec::new();
    let mut at = 0;
    while at < folded.len() {
        let found = LABELS.longest_match(&folded, at);
        if let Some((len, sense)) = found {
            let end = folded.get(at + len).map_or(line.len(), |&(_, start)| start);
            words.push(WordMatch { start: folded[at].1, end, sense });
        }
        at += found.map_or(1, |(len, _)| len);
    }
    words
}

/// Returns the words of a line that are in a range.
pub(super) fn words_within<'a>(words: &'a [WordMatch], range: &Range<usize>) -> &'a [WordMatch] {
    let start = words.partition_point(|word| word.start < range.start);
    let end = words.partition_point(|word| word.end <= range.end);
    words.get(start..end).unwrap_or_default()
}

/// Returns whether a text starts with a unit for the number before it. A space or a dash precedes the unit, except in
/// ideographic scripts, where nothing precedes it.
pub(super) fn starts_with_unit(text: &str) -> bool {
    const MAX_UNIT_BYTES: usize = 64;
    let word = text.trim_start_matches([' ', '-']);
    let prefix = fold_text(&word[..word.floor_char_boundary(MAX_UNIT_BYTES)]);
    let is_joined = prefix.first().is_some_and(|&(first, _)| first >= FIRST_IDEOGRAPHIC_CHAR);
    (word.len() < text.len() || is_joined)
        && !(word.len() < text.len() && is_joined)
        && UNITS.longest_match(&prefix, 0).is_some()
}

/// A trie of the entries of the table. It matches all entries at a position at once.
#[derive(Default)]
struct Trie {
    nodes: Vec<Node>,
}

#[derive(Default)]
struct Node {
    next: HashMap<char, usize>,
    /// The entries that end here.
    entries: Vec<TrieEntry>,
}

/// The end of an entry.
#[derive(Clone, Copy)]
struct TrieEntry {
    sense: Sense,
    /// Whether the entry may start inside of a word.
    may_start_inside_word: bool,
    /// Whether the word must end with the entry.
    must_end_word: bool,
}

impl Trie {
    fn build(is_wanted: impl Fn(Sense) -> bool) -> Self {
        let mut trie = Self { nodes: vec![Node::default()] };
        for (sense, pattern) in vocabulary::words().filter(|(sense, _)| is_wanted(*sense)) {
            trie.add(&pattern, sense);
        }
        trie
    }

    fn add(&mut self, pattern: &str, sense: Sense) {
        let bare = pattern.strip_prefix('*').unwrap_or(pattern);
        // One dot at the end marks the end of a word. It is not part of the entry, also in `tel.`.
        let word = bare.strip_suffix('.').unwrap_or(bare);
        let mut node = 0;
        for (c, _) in fold_text(word) {
            let new = self.nodes.len();
            node = *self.nodes[node].next.entry(c).or_insert(new);
            if node == new {
                self.nodes.push(Node::default());
            }
        }
        let (may_start_inside_word, must_end_word) = (bare.len() < pattern.len(), word.len() < bare.len());
        self.nodes[node].entries.push(TrieEntry { sense, may_start_inside_word, must_end_word });
    }

    /// Returns the length and the sense of the longest entry at a position.
    fn longest_match(&self, text: &[(char, usize)], at: usize) -> Option<(usize, Sense)> {
        let is_letter = |at: usize| text.get(at).is_some_and(|&(c, _)| c.is_alphabetic());
        let inside = at > 0 && is_letter(at - 1) && text.get(at).is_some_and(|&(c, _)| c < FIRST_UNSPACED_CHAR);
        let mut found = None;
        let mut node = &self.nodes[0];
        for (len, (c, _)) in text.get(at..)?.iter().enumerate() {
            let Some(&next) = node.next.get(c) else { break };
            node = &self.nodes[next];
            let fits = |entry: &&TrieEntry| {
                (entry.may_start_inside_word || !inside) && !(entry.must_end_word && is_letter(at + len + 1))
            };
            if let Some(entry) = node.entries.iter().find(fits) {
                found = Some((len + 1, entry.sense));
            }
        }
        found
    }
}

/// Returns the characters of a text in lower case and without accents, each with its byte position.
fn fold_text(text: &str) -> Vec<(char, usize)> {
    text.char_indices().filter_map(|(at, c)| Some((fold_char(c)?, at))).collect()
}

/// Folds a character. Returns `None` for a combining accent.
fn fold_char(c: char) -> Option<char> {
    let c = match c {
        '\u{300}'..='\u{36f}' => return None,
        'ı' => 'i',
        'đ' | 'Đ' => 'd',
        'ł' | 'Ł' => 'l',
        'ø' | 'Ø' => 'o',
        '’' | 'ʼ' => '\'',
        c if c.is_whitespace() => ' ',
        // In other scripts, combining marks are part of the letters.
        'À'..='\u{52f}' | '\u{1e00}'..='\u{1fff}' => std::iter::once(c).nfd().next().unwrap_or(c),
        c => c,
    };
    c.to_lowercase().next()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use Sense::{Action, Code, Expiry, Other, Promo};

    #[test]
    fn finds_words_in_lines() {
        let table: &[(&str, &[(&str, Sense)])] = &[
            ("nothing to see", &[]),
            ("Your CODE, decoded", &[("CODE", Code)]),
            ("pink pins pin", &[("pin", Code)]),
            ("Sicherheitscode", &[("code", Code)]),
            ("zip code, Postcode, promo code", &[("zip code", Other), ("Postcode", Other), ("promo code", Promo)]),
            ("Verification code", &[("Verific", Action), ("code", Code)]),
            ("votre CODE est valable", &[("CODE", Code), ("valable", Expiry)]),
            ("Doğrulama, DOGRULAMA", &[("Doğrula", Action), ("DOGRULA", Action)]),
            ("您的验证码是", &[("验证码", Code)]),
            ("הקוד", &[("קוד", Code)]),
        ];
        for (line, expected) in table {
            let found: Vec<_> = find_words(line).iter().map(|word| (&line[word.start..word.end], word.sense)).collect();
            assert_eq!(found, *expected, "{line}");
        }
    }

    #[test]
    fn recognizes_units_after_numbers() {
        let table = [
            (" minutes", true),
            (" Minuten.", true),
            ("円", true),
            (" 円", false),
            (" is", false),
            ("min", false),
            ("", false),
        ];
        for (text, expected) in table {
            assert_eq!(starts_with_unit(text), expected, "{text}");
        }
    }

    #[test]
    fn every_language_has_words_of_every_sense() {
        let mut tags = HashSet::new();
        for language in vocabulary::TABLE.split("\n[").skip(1) {
            let (tag, lines) = language.split_once("]\n").unwrap();
            assert!(tags.insert(tag), "{tag} is listed once");
            let lines: Vec<_> = lines.lines().filter(|line| !line.is_empty()).collect();
            let senses: HashSet<_> =
                lines.iter().filter_map(|line| vocabulary::parse_line(line)).map(|(sense, _)| sense).collect();
            assert_eq!((senses.len(), lines.len()), (11, 11), "{tag}");
        }
        assert_eq!(tags.len(), 28);
        assert!(vocabulary::words().all(|(_, word)| !word.trim_matches(['*', '.', ' ']).is_empty()));
    }
}
