//! Finds the words of the table in a line, in whatever case and with or without accents. The whole table is looked up at
//! once, so time depends on the line alone.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::LazyLock;

use unicode_normalization::UnicodeNormalization as _;

use super::words::{LANGUAGES, Sense};

/// From here on, scripts put words together without blanks, or something in front of them.
const JOINED: char = '\u{590}';
/// From here on, they also count without a blank before the word for what is counted.
const IDEOGRAPHIC: char = '\u{2e80}';

static LABELS: LazyLock<Index> = LazyLock::new(|| Index::of(|sense| sense != Sense::Unit));
static UNITS: LazyLock<Index> = LazyLock::new(|| Index::of(|sense| sense == Sense::Unit));

/// A word of the table, found in a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Hit {
    /// Where it starts, in bytes.
    pub(super) start: usize,
    /// Where it ends.
    pub(super) end: usize,
    pub(super) sense: Sense,
}

/// The words of a line, from left to right; none inside of another.
pub(super) fn hits(line: &str) -> Vec<Hit> {
    let folded = folded(line);
    let mut hits = Vec::new();
    let mut at = 0;
    while at < folded.len() {
        let found = LABELS.longest(&folded, at);
        if let Some((len, sense)) = found {
            let end = folded.get(at + len).map_or(line.len(), |&(_, start)| start);
            hits.push(Hit { start: folded[at].1, end, sense });
        }
        at += found.map_or(1, |(len, _)| len);
    }
    hits
}

/// Those of the words of a line that are in a range.
pub(super) fn within<'a>(hits: &'a [Hit], range: &Range<usize>) -> &'a [Hit] {
    let start = hits.partition_point(|hit| hit.start < range.start);
    let end = hits.partition_point(|hit| hit.end <= range.end);
    hits.get(start..end).unwrap_or_default()
}

/// Whether a text begins with a word for what the number before it counts.
pub(super) fn begins_with_unit(text: &str) -> bool {
    const LONGEST: usize = 64;
    let word = text.trim_start_matches([' ', '-']);
    let near = folded(&word[..word.floor_char_boundary(LONGEST)]);
    let is_joined = near.first().is_some_and(|&(first, _)| first >= IDEOGRAPHIC);
    (word.len() < text.len() || is_joined)
        && !(word.len() < text.len() && is_joined)
        && UNITS.longest(&near, 0).is_some()
}

/// The entries of the table as a tree, character by character: a place in a line is compared with all of them at once.
#[derive(Default)]
struct Index {
    nodes: Vec<Node>,
}

#[derive(Default)]
struct Node {
    next: HashMap<char, usize>,
    /// The entries that end here.
    ends: Vec<End>,
}

/// The end of an entry.
#[derive(Clone, Copy)]
struct End {
    sense: Sense,
    /// Whether the entry may begin inside of a word.
    inside: bool,
    /// Whether the word must end with it.
    whole: bool,
}

impl Index {
    fn of(wanted: impl Fn(Sense) -> bool) -> Self {
        let mut index = Self { nodes: vec![Node::default()] };
        let groups = LANGUAGES.iter().flat_map(|language| language.words);
        for (sense, words) in groups.filter(|(sense, _)| wanted(*sense)) {
            for written in *words {
                index.add(written, *sense);
            }
        }
        index
    }

    fn add(&mut self, written: &str, sense: Sense) {
        let bare = written.strip_prefix('*').unwrap_or(written);
        // A single dot at the end is the sign; `tel.` and the like lose nothing by it.
        let word = bare.strip_suffix('.').unwrap_or(bare);
        let mut node = 0;
        for (c, _) in folded(word) {
            let new = self.nodes.len();
            node = *self.nodes[node].next.entry(c).or_insert(new);
            if node == new {
                self.nodes.push(Node::default());
            }
        }
        let (inside, whole) = (bare.len() < written.len(), word.len() < bare.len());
        self.nodes[node].ends.push(End { sense, inside, whole });
    }

    /// The longest entry at a place: its length and what it says.
    fn longest(&self, text: &[(char, usize)], at: usize) -> Option<(usize, Sense)> {
        let is_letter = |at: usize| text.get(at).is_some_and(|&(c, _)| c.is_alphabetic());
        let inside = at > 0 && is_letter(at - 1) && text.get(at).is_some_and(|&(c, _)| c < JOINED);
        let mut found = None;
        let mut node = &self.nodes[0];
        for (len, (c, _)) in text.get(at..)?.iter().enumerate() {
            let Some(&next) = node.next.get(c) else { break };
            node = &self.nodes[next];
            let fits = |end: &&End| (end.inside || !inside) && !(end.whole && is_letter(at + len + 1));
            if let Some(end) = node.ends.iter().find(fits) {
                found = Some((len + 1, end.sense));
            }
        }
        found
    }
}

/// The characters of a text in lower case and without accents, each with the byte at which it starts.
fn folded(text: &str) -> Vec<(char, usize)> {
    text.char_indices().filter_map(|(at, c)| Some((fold(c)?, at))).collect()
}

/// Nothing for an accent that stands by itself.
fn fold(c: char) -> Option<char> {
    let c = match c {
        '\u{300}'..='\u{36f}' => return None,
        'ı' => 'i',
        'đ' | 'Đ' => 'd',
        'ł' | 'Ł' => 'l',
        'ø' | 'Ø' => 'o',
        '’' | 'ʼ' => '\'',
        c if c.is_whitespace() => ' ',
        // The other scripts have signs that belong to their letters.
        'À'..='\u{52f}' | '\u{1e00}'..='\u{1fff}' => std::iter::once(c).nfd().next().unwrap_or(c),
        c => c,
    };
    c.to_lowercase().next()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use Sense::{Act, Code, Other, Promo, Until};

    #[test]
    fn words_in_lines() {
        let table: &[(&str, &[(&str, Sense)])] = &[
            ("nothing to see", &[]),
            ("Your CODE, decoded", &[("CODE", Code)]),
            ("pink pins pin", &[("pin", Code)]),
            ("Sicherheitscode", &[("code", Code)]),
            ("zip code, Postcode, promo code", &[("zip code", Other), ("Postcode", Other), ("promo code", Promo)]),
            ("Verification code", &[("Verific", Act), ("code", Code)]),
            ("votre CODE est valable", &[("CODE", Code), ("valable", Until)]),
            ("Doğrulama, DOGRULAMA", &[("Doğrula", Act), ("DOGRULA", Act)]),
            ("您的验证码是", &[("验证码", Code)]),
            ("הקוד", &[("קוד", Code)]),
        ];
        for (line, expected) in table {
            let found: Vec<_> = hits(line).iter().map(|hit| (&line[hit.start..hit.end], hit.sense)).collect();
            assert_eq!(found, *expected, "{line}");
        }
    }

    #[test]
    fn units_behind_numbers() {
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
            assert_eq!(begins_with_unit(text), expected, "{text}");
        }
    }

    #[test]
    fn the_table_is_in_order() {
        let tags: HashSet<_> = LANGUAGES.iter().map(|language| language.tag).collect();
        assert_eq!(tags.len(), LANGUAGES.len(), "each language once");
        for language in LANGUAGES {
            let senses: HashSet<_> = language.words.iter().map(|(sense, _)| format!("{sense:?}")).collect();
            assert_eq!((senses.len(), language.words.len()), (11, 11), "{}", language.tag);
            let words = language.words.iter().flat_map(|(_, words)| *words);
            assert!(words.clone().all(|word| !word.trim_matches(['*', '.', ' ']).is_empty()), "{}", language.tag);
        }
    }
}
